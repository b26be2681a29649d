"""`svcctl domain`: a reseller's customer domains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from svcctl.api.models import Domain
from svcctl.api.refusals import Code
from svcctl.completion.words import Completes
from svcctl.context import Context
from svcctl.errors import Conflict, NotFound, ServiceError
from svcctl.options import FormatOpt, YesOpt
from svcctl.terminal.tables import TableColumn

_NAME = typer.Argument(metavar="NAME", help="Name of a domain; @RESELLER at its end may be left out.")
DomainArg = Annotated[str, _NAME, Completes("domains")]
NewDomainArg = Annotated[str, _NAME]
PlanOpt = Annotated[str, typer.Option("--plan", metavar="PLAN", help="One of the reseller's price plans.")]
TimeOpt = Annotated[float | None, typer.Option("--time", metavar="N", help="Time, where the plan lets one choose.")]
VolumeOpt = Annotated[
    float | None, typer.Option("--volume", metavar="N", help="Volume, where the plan lets one choose.")
]
IfNeededOpt = Annotated[bool, typer.Option("--if-needed", help="Succeed when there is nothing to do.")]

_app = typer.Typer(
    help="Manage a reseller's customer domains (with reseller credentials).",
    rich_markup_mode=None,
    no_args_is_help=True,
)


def register(app: typer.Typer) -> None:
    app.add_typer(_app, name="domain")


@_app.command("list")
def list_(ctx: typer.Context, format: FormatOpt = None) -> None:
    """List the domains"""
    svc: Context = ctx.obj
    _print(svc, svc.client.domains(), format)


@_app.command()
def show(ctx: typer.Context, name: DomainArg, format: FormatOpt = None) -> None:
    """Show a domain"""
    svc: Context = ctx.obj
    _print(svc, [svc.client.domain(name)], format)


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
    """Create a domain and print it, with its full name

    Nobody can use the domain until it has an owner.
    """
    svc: Context = ctx.obj
    try:
        domain = svc.client.create_domain(name, plan, time=time, volume=volume)
    except ServiceError:
        if not if_needed or (existing := _existing(svc, name, plan, time, volume)) is None:
            raise
        domain = existing
    _print(svc, [domain], format)


@_app.command()
def enable(ctx: typer.Context, name: DomainArg, if_needed: IfNeededOpt = False) -> None:
    """Enable a disabled domain"""
    svc: Context = ctx.obj
    with _needed(svc, Code.ALREADY_SO, if_needed):
        svc.client.enable_domain(name)


@_app.command()
def disable(ctx: typer.Context, name: DomainArg, if_needed: IfNeededOpt = False) -> None:
    """Disable a domain: nobody can use it until it is enabled again"""
    svc: Context = ctx.obj
    with _needed(svc, Code.ALREADY_SO, if_needed):
        svc.client.disable_domain(name)


@_app.command()
def rm(ctx: typer.Context, name: DomainArg, yes: YesOpt = False, if_needed: IfNeededOpt = False) -> None:
    """Delete a domain, its users with it

    Users who have no other domain are deleted altogether. The name must be typed, or --yes given.
    """
    svc: Context = ctx.obj
    with _needed(svc, Code.NO_DOMAIN, if_needed):
        domain = svc.client.domain(name)
        svc.diagnostics.note(f"deleting {_about(domain)} deletes {_users(domain)}")
        if not yes:
            svc.ask_word(f"Delete {domain.name}? (type its name)", domain.name)
        svc.client.delete_domain(domain.name)


@contextmanager
def _needed(svc: Context, code: int, if_needed: bool) -> Iterator[None]:
    """With --if-needed, the error that says there is nothing to do is a note."""
    try:
        yield
    except ServiceError as error:
        if not if_needed or error.code != code:
            raise
        svc.diagnostics.note(f"nothing to do: {error.message}")


def _existing(svc: Context, name: str, plan: str, time: float | None, volume: float | None) -> Domain | None:
    """The domain if it is there as asked for; Conflict when it differs."""
    try:
        domain = svc.client.domain(name)
    except NotFound:
        return None
    for what, wanted, found in (
        ("plan", plan, domain.plan),
        ("time", time, domain.time),
        ("volume", volume, domain.volume),
    ):
        if wanted is not None and wanted != found:
            raise Conflict(f"domain {domain.name} exists with {what} {found}, not {wanted}")
    svc.diagnostics.note(f"nothing to do: domain {domain.name} exists")
    return domain


def _print(svc: Context, domains: Sequence[Domain], format: str | None) -> None:
    """The interface's fields, then those that this service adds."""
    chosen = svc.format(format, lists=True)
    extra = list(dict.fromkeys(key for domain in domains for key in domain.extra))
    rows: list[list[Any]] = [
        [
            *(domain.name, domain.plan, domain.time, domain.volume, domain.status),
            *(domain.extra.get(key) if chosen.raw else _in_words(domain.extra.get(key)) for key in extra),
        ]
        for domain in domains
    ]
    columns = [
        TableColumn("name"),
        TableColumn("plan"),
        TableColumn("time", "float8"),
        TableColumn("volume", "float8"),
        *map(TableColumn, ["status", *extra]),
    ]
    svc.output.records(columns, rows, chosen)


def _in_words(value: Any) -> Any:
    """A list as a table shows it: users by who they are."""
    if not isinstance(value, list):
        return value
    return ", ".join(
        str(one.get("email", one)) + " (owner)" * bool(one.get("owner")) if isinstance(one, dict) else str(one)
        for one in value
    )


def _about(domain: Domain) -> str:
    facts = [f"plan {domain.plan}"] if domain.plan else []
    facts += [domain.status] if domain.status else []
    return f"{domain.name} ({', '.join(facts)})" if facts else domain.name


def _users(domain: Domain) -> str:
    """Whom a deletion takes along, by name where the service tells."""
    users = domain.extra.get("users")
    if not isinstance(users, list):
        return "its users too, altogether when they have no other domain"
    if not users:
        return "no users: it has none"
    leaving = [str(user.get("email")) for user in users if user.get("lastDomain")]
    staying = [str(user.get("email")) for user in users if not user.get("lastDomain")]
    parts = [f"the users {', '.join(leaving)}"] if leaving else []
    parts += [f"the memberships of {', '.join(staying)} (users of other domains)"] if staying else []
    return " and ".join(parts)
