"""`svcctl domain`: a reseller's customer domains."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from svcctl.api.models import Domain
from svcctl.api.refusals import already_so, no_domain
from svcctl.api.roles import known_domain
from svcctl.cli.apply import domain_steps
from svcctl.cli.apply.options import ApplyOptions
from svcctl.cli.apply.steps import carry_out
from svcctl.cli.columns.domain import DOMAINS
from svcctl.cli.commands import verbs_of
from svcctl.cli.completion.words import Completes
from svcctl.cli.context import Context
from svcctl.cli.idempotence import create_domain, done_if
from svcctl.cli.inputs import domain_files, yaml_files
from svcctl.cli.listing import ListOptions, print_list
from svcctl.cli.options import FormatOpt, YesOpt, spread
from svcctl.errors import Advice, CommandLine, SvcctlError
from svcctl.profiles import BUILT_IN
from svcctl.words import plural

_NAME = typer.Argument(metavar="NAME", help="Name of a domain; the @RESELLER part is optional.")
DomainArg = Annotated[str, _NAME, Completes("domains")]
ExportedDomainArg = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="Name of a domain (default: all domains)."), Completes("domains")
]
NewDomainArg = Annotated[str, _NAME]
PlanOpt = Annotated[
    str,
    typer.Option(
        "--plan",
        metavar="PLAN",
        help="One of the reseller's price plans; 'svcctl service accounts list plans' has those of the local service.",
    ),
]
TimeOpt = Annotated[
    float | None, typer.Option("--time", metavar="N", help="Time, in the service's unit, if the plan accepts one.")
]
VolumeOpt = Annotated[
    float | None, typer.Option("--volume", metavar="N", help="Volume, in the service's unit, if the plan accepts one.")
]
IfNeededOpt = Annotated[bool, typer.Option("--if-needed", help="Do not fail if nothing needs to change.")]
IfThereOpt = Annotated[bool, typer.Option("--if-needed", help="Do not fail if the domain does not exist.")]

PruneOpt = Annotated[
    int | None,
    typer.Option(
        "--prune-domains",
        min=0,
        metavar="N",
        help="Remove the domains that no file contains, and their users; change nothing if more than N would be "
        "removed.",
    ),
]

_app = verbs_of("domain")


def register(app: typer.Typer) -> None:
    app.add_typer(_app, name="domain")


@_app.command("list")
@spread
def list_(ctx: typer.Context, options: ListOptions) -> None:
    """List domains"""
    svc: Context = ctx.obj
    # The client is made only after the options were checked.
    print_list(svc, DOMAINS, lambda: svc.client.domains(), options, "no domains")  # noqa: PLW0108


@_app.command()
def show(ctx: typer.Context, name: DomainArg, format: FormatOpt = None) -> None:
    """Show a domain"""
    svc: Context = ctx.obj
    chosen = svc.format(format, lists=True)
    with known_domain(svc.client, name):
        domain = svc.client.domain(name)
    svc.output.records(DOMAINS, [domain], chosen, single=True)


@_app.command()
def create(
    ctx: typer.Context,
    name: NewDomainArg,
    plan: PlanOpt,
    time: TimeOpt = None,
    volume: VolumeOpt = None,
    if_needed: IfNeededOpt = False,
    format: FormatOpt = None,
) -> None:
    """Create a domain and print it with its full name

    Nobody can use the domain until it has an owner.

    The service decides what --time and --volume mean. In the local service, both default to the plan's numbers, and
    must not be larger. The local service stores the numbers, but does not enforce them as limits.
    """
    svc: Context = ctx.obj
    chosen = svc.format(format, lists=True)
    domain = create_domain(svc.client, name, plan, time, volume, svc.diagnostics.note, if_needed=if_needed)
    svc.output.records(DOMAINS, [domain], chosen)
    if not domain.extra.get("users"):
        assign = (": ", CommandLine(f"svcctl service accounts user EMAIL {domain.name} --role OWNER"))
        local = assign if svc.profile.name in BUILT_IN else ()
        svc.diagnostics.note(Advice(f"nobody can use {domain.name} until it has an owner", *local))


@_app.command()
def export(ctx: typer.Context, name: ExportedDomainArg = None) -> None:
    """Print domains as a file for 'svcctl domain apply'

    \b
    svcctl -p local-reseller domain export > domains.yaml
    svcctl -p local-reseller domain apply -F domains.yaml --dry-run
    """
    svc: Context = ctx.obj
    with known_domain(svc.client, name or ""):
        domains = svc.client.domains() if name is None else [svc.client.domain(name)]
    svc.output.text(yaml_files.to_yaml([domain_files.exported(domain) for domain in domains]))


@_app.command("apply")
@spread
def apply_(ctx: typer.Context, options: ApplyOptions, prune_domains: PruneOpt = None) -> None:
    """Create, enable and disable domains as files say, showing the differences

    A domain in a file has a name and a plan, and can have a time, a volume and a state (enabled or disabled). Domains
    that are in no file stay unchanged, unless --prune-domains is given. Applying a file twice changes nothing the
    second time. Asks before the first change. See 'svcctl help apply'.
    """
    svc: Context = ctx.obj
    documents = yaml_files.read(options.file, "domain", options.var or ())
    written = list(svc.diagnostics.for_each(documents, domain_files.written))
    domains = domain_steps.Domains(svc.client)
    steps = domains.steps(written, prune=prune_domains)
    carry_out(svc, domains, steps, options)


@_app.command()
def enable(ctx: typer.Context, name: DomainArg, if_needed: IfNeededOpt = False) -> None:
    """Enable a disabled domain"""
    svc: Context = ctx.obj
    with known_domain(svc.client, name), done_if(if_needed, already_so, svc.diagnostics.note):
        svc.client.enable_domain(name)
        svc.diagnostics.note(f"domain {_full_name(svc, name)} is enabled")


@_app.command()
def disable(ctx: typer.Context, name: DomainArg, if_needed: IfNeededOpt = False) -> None:
    """Disable a domain; nobody can use it until it is enabled

    The open queries of the domain end with an error, and its jobs stop. Jobs that were running continue when the domain
    is enabled again.
    """
    svc: Context = ctx.obj
    with known_domain(svc.client, name), done_if(if_needed, already_so, svc.diagnostics.note):
        svc.client.disable_domain(name)
        svc.diagnostics.note(f"domain {_full_name(svc, name)} is disabled")


@_app.command()
def rm(ctx: typer.Context, name: DomainArg, yes: YesOpt = False, if_needed: IfThereOpt = False) -> None:
    """Delete a domain and its users

    Users who also belong to other domains stay in those domains. Asks for the name of the domain, unless --yes is
    given.
    """
    svc: Context = ctx.obj
    with done_if(if_needed, no_domain, svc.diagnostics.note):
        with known_domain(svc.client, name):
            domain = svc.client.domain(name)
        lost = f"{_about(domain)}{_users(domain)}"
        if not yes:
            svc.ask_word(f"Delete {lost}? (type its name)", domain.name, name)
        svc.client.delete_domain(domain.name)
        svc.diagnostics.note(f"deleted {lost}")


def _full_name(svc: Context, name: str) -> str:
    """Return the full name of a domain, such as acme@demo.

    If the service does not know the domain, return the typed name.
    """
    if "@" not in name:
        with suppress(SvcctlError):
            return svc.client.domain(name).name
    return name


def _about(domain: Domain) -> str:
    facts = [f"plan {domain.plan}"] if domain.plan else []
    facts += [domain.status] if domain.status else []
    return f"{domain.name} ({', '.join(facts)})" if facts else domain.name


def _users(domain: Domain) -> str:
    """Describe the users that are removed with a domain. The users are named if the service lists them."""
    users = domain.extra.get("users")
    if not isinstance(users, list):
        return " and its users, completely when they have no other domain"
    if not users:
        return ", which has no users"
    leaving = [str(user.get("email")) for user in users if user.get("lastDomain")]
    staying = [str(user.get("email")) for user in users if not user.get("lastDomain")]
    parts = [f" and the {plural(len(leaving), 'user')} {', '.join(leaving)}"] if leaving else []
    parts += [f" and the memberships of {', '.join(staying)} (users of other domains)"] if staying else []
    return "".join(parts)
