"""`svcctl service accounts`: set up the resellers, plans, policies, users and keys of the local service."""

from __future__ import annotations

import shlex
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svcctl.api.models import DomainStatus
from svcctl.cli.app import App
from svcctl.cli.commands.service.control import need_service, open_state
from svcctl.cli.completion.words import Completes
from svcctl.cli.context import Context
from svcctl.cli.listing import ListOptions, print_list
from svcctl.cli.options import FormatOpt, YesOpt, length_option, spread
from svcctl.dates.deadline import parse_deadline
from svcctl.dates.epochs import to_ms
from svcctl.dates.operators import moment_text
from svcctl.errors import Advice, CommandLine, UsageError
from svcctl.profiles.settings import LOCAL_URL
from svcctl.terminal.records import Listing, attributes
from svcctl.words import suggesting

if TYPE_CHECKING:
    from svcctl.cli.commands.service.kinds import AccountKind
    from svcctl.service.accounts.accounts import Account
    from svcctl.service.state.store import Store

KIND_NAMES = ("keys", "resellers", "plans", "policies", "applications", "domains", "users")
"""The names of the kinds in `kinds.py`. Help and completion use these names without importing the service."""
REMOVABLE_KINDS = tuple(name for name in KIND_NAMES if name != "domains")
STATES = tuple(status.value for status in DomainStatus if status is not DomainStatus.DELETED)

KindArg = Annotated[
    str,
    typer.Argument(metavar="KIND", help="keys, resellers, plans, policies, applications, domains or users."),
    Completes(words=KIND_NAMES),
]
RemovableKindArg = Annotated[
    str,
    typer.Argument(metavar="KIND", help="keys, resellers, plans, policies, applications or users."),
    Completes(words=REMOVABLE_KINDS),
]
NameArg = Annotated[str, typer.Argument(metavar="NAME", help="Its name.")]
KindNameArg = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Name; for a key also KEY, for a plan RESELLER/PLAN, for a user EMAIL, or DOMAIN/EMAIL to remove the user "
        "from one domain only.",
    ),
]
EmailArg = Annotated[str, typer.Argument(metavar="EMAIL", help="The user's email address.")]
DomainArg = Annotated[
    str,
    typer.Argument(metavar="DOMAIN", help="Name of a domain; the @RESELLER part is optional."),
    Completes("domains"),
]
StatusArg = Annotated[str, typer.Argument(metavar="STATUS", help=", ".join(STATES)), Completes(words=STATES)]
KeyDomainOpt = Annotated[str | None, typer.Option("--domain", metavar="NAME", help="Create a key for this domain.")]
KeyResellerOpt = Annotated[
    str | None, typer.Option("--reseller", metavar="NAME", help="Create a key for this reseller.")
]
KeyNameOpt = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="Owner of the key, such as ann or etl-2.")
]
KeyExpiresOpt = Annotated[
    str | None,
    typer.Option(
        "--expires", metavar="DATE|LENGTH", help="When the key expires: 90d from now, or 2030-01-31 (default: never)."
    ),
]
TokenKeyArg = Annotated[str, typer.Argument(metavar="KEY", help="An API key or its name, as 'list keys' prints them.")]
ExpiresOpt = Annotated[
    Any,
    length_option("--expires", "Time until the token expires: 30m, 8h, 7d.", None),
]
AdminOpt = Annotated[bool, typer.Option("--admin", help="Let the key manage the roles of its domain.")]
IncludeAppsOpt = Annotated[
    bool,
    typer.Option(
        "--include-all-apps/--no-include-all-apps", help="Activate all available applications in new domains."
    ),
]
ResellerOpt = Annotated[str, typer.Option("--reseller", metavar="NAME", help="The reseller that sells the plan.")]
AmountOpt = Annotated[float | None, typer.Option(metavar="N", min=0, help="Maximum for a domain (default: none).")]
PoliciesOpt = Annotated[
    list[str] | None, typer.Option("--policy", metavar="NAME", help="A policy of the plan; repeatable.")
]
ApplicationsOpt = Annotated[
    list[str] | None, typer.Option("--application", metavar="NAME", help="An application of the plan; repeatable.")
]
GenericOpt = Annotated[bool, typer.Option("--generic", help="Include it in every domain, with any plan.")]
RoleOpt = Annotated[
    str | None,
    typer.Option(
        "--role", metavar="ROLE", help="OWNER makes the user an ADMIN and the owner (default: the user's, or USER)."
    ),
    Completes(words=("OWNER", "ADMIN", "USER")),
]

KEY: Listing[Account] = Listing(
    attributes("api_key", "api_secret", "token", api_key="id", api_secret="id", token="id"), whole=True
)
"""The columns of a new key, with its secrets."""

app = App(help="Manage keys, resellers, plans and users of the service.", no_args_is_help=True)


@app.command("list")
@spread
def list_(ctx: typer.Context, kind: KindArg, options: ListOptions) -> None:
    """List keys, resellers, plans, policies, applications, domains or users

    Secrets are not shown.
    """
    svc: Context = ctx.obj
    row = _kind(kind)
    print_list(svc, row.listing, lambda: [*row.every(open_state(svc))], options)


@app.command()
def key(
    ctx: typer.Context,
    domain: KeyDomainOpt = None,
    admin: AdminOpt = False,
    reseller: KeyResellerOpt = None,
    name: KeyNameOpt = None,
    expires: KeyExpiresOpt = None,
    format: FormatOpt = None,
) -> None:
    """Create an API key and print its secret and token

    The secret and the token are shown only once. A domain may have several keys, so a new key can be in use before the
    old key expires.

    \b
    svcctl service accounts key --domain acme@demo --name ann --expires 90d
    """
    svc: Context = ctx.obj
    end = None if expires is None else parse_deadline(expires, svc.now())
    store = open_state(svc)
    from svcctl.service.accounts import accounts

    milliseconds = None if end is None else to_ms(end)
    with _among("domains", domain, store) if reseller is None else _among("resellers", reseller, store):
        made = accounts.issue(
            store, domain=domain, reseller=reseller, administrator=admin, name=name, expires=milliseconds
        )
    svc.output.records(KEY, [made], svc.format(format, lists=True))
    if end is not None:
        svc.diagnostics.note(f"the key expires {moment_text(end)} (UTC)")
    if svc.diagnostics.is_terminal:
        socket = f"base_url={LOCAL_URL} socket={shlex.quote(str(svc.files.socket))}"
        profile = CommandLine(f"svcctl profile set NAME {socket} api_key={made.api_key}")
        svc.diagnostics.note(Advice("to use it (the command asks for the secret): ", profile))


@app.command()
def token(ctx: typer.Context, key: TokenKeyArg, expires: ExpiresOpt = "1h") -> None:
    """Print a jwt, which is a token that expires, made from an API key's secret

    The service does not store the token, so the token is valid until it expires or the key is deleted. Requests send it
    as 'Authorization: jwt TOKEN'; 'svcctl help service' says what it contains.

    \b
    svcctl service accounts token KEY --expires 8h
    """
    svc: Context = ctx.obj
    store = open_state(svc)
    from svcctl.service.http.auth import expiring_token

    made = expiring_token(store, key, int(svc.clock() + expires))
    svc.output.text(made)
    if svc.diagnostics.is_terminal:
        profile = CommandLine("svcctl profile set NAME auth=jwt token=-")
        svc.diagnostics.note(Advice("to use it (the command asks for the token): ", profile))


@app.command()
def reseller(ctx: typer.Context, name: NameArg, include_all_apps: IncludeAppsOpt = True) -> None:
    """Create a reseller, or change its preference

    The preference, --include-all-apps, applies to domains that are created later.
    """
    svc: Context = ctx.obj
    store = open_state(svc)
    from svcctl.service.accounts import price_plans

    price_plans.put_reseller(store, price_plans.Reseller(name, include_all_apps))
    svc.diagnostics.note(f"stored reseller {name}")


@app.command()
def plan(
    ctx: typer.Context,
    name: NameArg,
    reseller: ResellerOpt,
    time: AmountOpt = None,
    volume: AmountOpt = None,
    policies: PoliciesOpt = None,
    applications: ApplicationsOpt = None,
) -> None:
    """Create a reseller's price plan, or replace it

    The numbers of --time and --volume have no unit. The service only checks that the numbers of a domain with this plan
    are not larger.
    """
    svc: Context = ctx.obj
    store = open_state(svc)
    from svcctl.service.accounts import price_plans

    included = tuple(policies or ()), tuple(applications or ())
    price_plans.put_plan(store, price_plans.PricePlan(reseller, name, time, volume, *included))
    svc.diagnostics.note(f"stored plan {reseller}/{name}")


@app.command()
def policy(ctx: typer.Context, name: NameArg, generic: GenericOpt = False) -> None:
    """Create a policy, or change whether it is generic

    A generic policy is included in every domain, with any plan.
    """
    svc: Context = ctx.obj
    store = open_state(svc)
    from svcctl.service.accounts import price_plans

    price_plans.put_feature(store, price_plans.Feature("policy", name, generic))
    svc.diagnostics.note(f"stored policy {name}")


@app.command()
def application(ctx: typer.Context, name: NameArg, generic: GenericOpt = False) -> None:
    """Create an application, or change whether it is generic

    A generic application is included in every domain, with any plan.
    """
    svc: Context = ctx.obj
    store = open_state(svc)
    from svcctl.service.accounts import price_plans

    price_plans.put_feature(store, price_plans.Feature("application", name, generic))
    svc.diagnostics.note(f"stored application {name}")


@app.command()
def user(ctx: typer.Context, email: EmailArg, domain: DomainArg, role: RoleOpt = None) -> None:
    """Add a user to a domain, or change the user's role

    The first user of a domain must be its OWNER. A new OWNER replaces the previous owner, who stays ADMIN.

    In tables, the owner has the role OWNER. In csv and JSON, the owner has the role ADMIN, and the field owner is true.
    """
    svc: Context = ctx.obj
    store = open_state(svc)
    from svcctl.service.accounts import users

    with _among("domains", domain, store):
        full, role_name, former = users.assign(store, domain, email, role)
    owned = f"; the owner was {former}, who stays ADMIN" if former else ""
    svc.diagnostics.note(f"{email} has the role {role_name} in {full}{owned}")


@app.command()
def status(ctx: typer.Context, domain: DomainArg, status: StatusArg) -> None:
    """Set the status of a domain

    Only this command can set or end the status Pending.
    """
    spelling = next((state for state in STATES if state.lower() == status.lower()), None)
    if spelling is None:
        raise UsageError(f"unknown status '{status}'", hint=f"a domain can be {', '.join(STATES)}")
    svc: Context = ctx.obj
    store = open_state(svc)
    from svcctl.service.accounts import domains

    with _among("domains", domain, store):
        full = domains.set_status(store, domain, DomainStatus(spelling))
    svc.diagnostics.note(f"domain {full} is {spelling}")


@app.command()
def rm(ctx: typer.Context, kind: RemovableKindArg, name: KindNameArg, yes: YesOpt = False) -> None:
    """Delete a key, reseller, plan, policy, application or user

    \b
    svcctl service accounts rm keys ann --yes
    svcctl service accounts rm users ann@acme.example --yes
    svcctl service accounts rm users acme@demo/bob@acme.example --yes
    """
    svc: Context = ctx.obj
    row = _kind(kind)
    if row.remove is None:
        remove = CommandLine(f"svcctl domain rm {shlex.quote(name)}")
        raise UsageError(f"{kind} cannot be deleted here", hint=Advice("use: ", remove))
    store = open_state(svc)
    with _among(kind, name, store):
        lost = f"{row.about(store, name)} from the {kind}"
        if not yes:
            svc.ask(f"Delete {lost}?")
        row.remove(store, name)
    svc.diagnostics.note(f"deleted {lost}")


def _kind(name: str) -> AccountKind[Any]:
    """Return the kind with a name, such as `users`.

    Raises MissingExtra if the packages of the service are not installed.
    """
    if name not in KIND_NAMES:
        raise UsageError(f"unknown kind '{name}'", hint=f"kinds are: {', '.join(KIND_NAMES)}")
    need_service()
    from svcctl.cli.commands.service.kinds import KINDS

    return KINDS[name]


def _among(kind: str, name: str | None, store: Store) -> AbstractContextManager[None]:
    """Add a hint to an error about an unknown `name`. The hint has the existing names of this kind.

    An error that has a hint is not changed.
    """
    row = _kind(kind)
    what = "" if kind == "keys" else kind  # the names of keys are random, so a list of them would not help
    return suggesting(name or "", lambda: map(row.typed, row.every(store)), what, when=lambda error: not error.hint)
