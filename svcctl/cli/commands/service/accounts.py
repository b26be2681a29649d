"""`svcctl service accounts`: set up the resellers, plans, policies, users and keys of the local service."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svcctl.api.models import DomainStatus
from svcctl.cli.app import App
from svcctl.cli.commands.service.control import open_state
from svcctl.cli.completion.words import Completes
from svcctl.cli.context import Context
from svcctl.cli.listing import ListOptions, print_list
from svcctl.cli.options import FormatOpt, YesOpt, length_option, spread
from svcctl.errors import UsageError
from svcctl.profiles.settings import LOCAL_URL
from svcctl.terminal import records
from svcctl.terminal.records import Listing
from svcctl.words import suggesting

if TYPE_CHECKING:
    from svcctl.service.state.store import Store

STATES = tuple(status.value for status in DomainStatus if status is not DomainStatus.DELETED)

KindArg = Annotated[
    str,
    typer.Argument(metavar="KIND", help="keys, resellers, plans, policies, applications, domains or users."),
    Completes(words=lambda: KINDS),
]
RemovableKindArg = Annotated[
    str,
    typer.Argument(metavar="KIND", help="keys, resellers, plans, policies, applications or users."),
    Completes(words=lambda: [name for name, kind in KINDS.items() if kind.remove]),
]
NameArg = Annotated[str, typer.Argument(metavar="NAME", help="Its name.")]
KindNameArg = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Its name; RESELLER/PLAN for a plan, EMAIL for a user, DOMAIN/EMAIL to take a user out of one domain.",
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
TokenKeyArg = Annotated[str, typer.Argument(metavar="KEY", help="An API key, as 'list keys' prints it.")]
ExpiresOpt = Annotated[
    Any,
    length_option("--expires", "Time until it expires: 30m, 8h, 7d.", None),
]
AdminOpt = Annotated[bool, typer.Option("--admin", help="Let the key manage the roles of its domain.")]
IncludeAppsOpt = Annotated[
    bool,
    typer.Option(
        "--include-all-apps/--no-include-all-apps", help="Activate all available applications in new domains."
    ),
]
ResellerOpt = Annotated[str, typer.Option("--reseller", metavar="NAME", help="The reseller that sells the plan.")]
AmountOpt = Annotated[
    float | None, typer.Option(metavar="N", min=0, help="Maximum for a domain; without it, domains have none.")
]
PoliciesOpt = Annotated[
    list[str] | None, typer.Option("--policy", metavar="NAME", help="A policy of the plan; repeatable.")
]
ApplicationsOpt = Annotated[
    list[str] | None, typer.Option("--application", metavar="NAME", help="An application of the plan; repeatable.")
]
GenericOpt = Annotated[bool, typer.Option("--generic", help="Include it in every domain, whatever its plan.")]
RoleOpt = Annotated[
    str | None,
    typer.Option(
        "--role", metavar="ROLE", help="OWNER makes the user an ADMIN and the owner (default: the user's, or USER)."
    ),
    Completes(words=("OWNER", "ADMIN", "USER")),
]

app = App(help="Manage keys, resellers, plans and users of the service.", no_args_is_help=True)


@app.command("list")
@spread
def list_(ctx: typer.Context, kind: KindArg, options: ListOptions) -> None:
    """List keys, resellers, plans, policies, applications, domains or users

    Secrets are not shown.
    """
    svc: Context = ctx.obj
    found = _kind(kind)
    print_list(svc, found.listing, lambda: [*found.every(open_state(svc))], options)


@app.command()
def key(
    ctx: typer.Context,
    domain: KeyDomainOpt = None,
    admin: AdminOpt = False,
    reseller: KeyResellerOpt = None,
    format: FormatOpt = None,
) -> None:
    """Create an API key and print its secret and token

    They are shown only this once.
    """
    svc: Context = ctx.obj
    store = open_state(svc)
    from svcctl.service.accounts import accounts

    with _among("domains", domain, store) if reseller is None else _among("resellers", reseller, store):
        made = accounts.issue(store, domain=domain, reseller=reseller, administrator=admin)
    svc.output.records(records.KEY, [made], svc.format(format, lists=True))
    if svc.diagnostics.is_terminal:
        socket = f"base_url={LOCAL_URL} socket={shlex.quote(str(svc.files.socket))}"
        svc.diagnostics.note(
            f"to use it: svcctl profile set NAME {socket} api_key={made.api_key}, which asks for the secret"
        )


@app.command()
def token(ctx: typer.Context, key: TokenKeyArg, expires: ExpiresOpt = "1h") -> None:
    """Print a jwt: a token that is made from an API key's secret and expires

    The service does not store it, so it is valid until it expires or the key is deleted. Requests send it as
    'Authorization: jwt TOKEN'; 'svcctl help service' says what it holds.

    \b
    svcctl service accounts token KEY --expires 8h
    """
    svc: Context = ctx.obj
    store = open_state(svc)
    from svcctl.service.http.auth import expiring_token

    made = expiring_token(store, key, int(svc.clock() + expires))
    svc.output.text(made)
    if svc.diagnostics.is_terminal:
        svc.diagnostics.note("to use it: svcctl profile set NAME auth=jwt token=-, which asks for the token")


@app.command()
def reseller(ctx: typer.Context, name: NameArg, include_all_apps: IncludeAppsOpt = True) -> None:
    """Create a reseller, or change its preference"""
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

    The numbers of --time and --volume have no unit: the service compares those of domains with them, and no more.
    """
    svc: Context = ctx.obj
    store = open_state(svc)
    from svcctl.service.accounts import price_plans

    included = tuple(policies or ()), tuple(applications or ())
    price_plans.put_plan(store, price_plans.PricePlan(reseller, name, time, volume, *included))
    svc.diagnostics.note(f"stored plan {reseller}/{name}")


@app.command()
def policy(ctx: typer.Context, name: NameArg, generic: GenericOpt = False) -> None:
    """Create a policy, or change whether it is generic"""
    svc: Context = ctx.obj
    store = open_state(svc)
    from svcctl.service.accounts import price_plans

    price_plans.put_feature(store, price_plans.Feature("policy", name, generic))
    svc.diagnostics.note(f"stored policy {name}")


@app.command()
def application(ctx: typer.Context, name: NameArg, generic: GenericOpt = False) -> None:
    """Create an application, or change whether it is generic"""
    svc: Context = ctx.obj
    store = open_state(svc)
    from svcctl.service.accounts import price_plans

    price_plans.put_feature(store, price_plans.Feature("application", name, generic))
    svc.diagnostics.note(f"stored application {name}")


@app.command()
def user(ctx: typer.Context, email: EmailArg, domain: DomainArg, role: RoleOpt = None) -> None:
    """Add a user to a domain, or change the user's role

    The first user of a domain must be its OWNER. A new OWNER takes the place of the one before, who stays ADMIN.

    Tables show the owner's role as OWNER; programs get the role ADMIN and owner true, as the interface has them.
    """
    svc: Context = ctx.obj
    store = open_state(svc)
    from svcctl.service.accounts import users

    with _among("domains", domain, store):
        full, given, former = users.assign(store, domain, email, role)
    owned = f"; the owner was {former}, who stays ADMIN" if former else ""
    svc.diagnostics.note(f"{email} has the role {given} in {full}{owned}")


@app.command()
def status(ctx: typer.Context, domain: DomainArg, status: StatusArg) -> None:
    """Set the status of a domain

    This is the only way into Pending and out of it.
    """
    known = next((state for state in STATES if state.lower() == status.lower()), None)
    if known is None:
        raise UsageError(f"unknown status '{status}'", hint=f"a domain can be {', '.join(STATES)}")
    svc: Context = ctx.obj
    store = open_state(svc)
    from svcctl.service.accounts import domains

    with _among("domains", domain, store):
        full = domains.set_status(store, domain, DomainStatus(known))
    svc.diagnostics.note(f"domain {full} is {known}")


@app.command()
def rm(ctx: typer.Context, kind: RemovableKindArg, name: KindNameArg, yes: YesOpt = False) -> None:
    """Delete a key, reseller, plan, policy, application or user

    \b
    svcctl service accounts rm users ann@acme.example --yes
    svcctl service accounts rm users acme@demo/bob@acme.example --yes
    """
    svc: Context = ctx.obj
    found = _kind(kind)
    if found.remove is None:
        raise UsageError(f"{kind} cannot be deleted here", hint=f"use: svcctl domain rm {shlex.quote(name)}")
    store = open_state(svc)
    with _among(kind, name, store):
        lost = f"{found.about(store, name)} from the {kind}"
        if not yes:
            svc.ask(f"Delete {lost}?")
        found.remove(store, name)
    svc.diagnostics.note(f"deleted {lost}")


# The kinds to list and delete. Their functions import the service, since completion needs the names without it.


@dataclass(frozen=True, slots=True)
class _Kind:
    listing: Listing[Any]
    every: Callable[[Store], Iterable[Any]]
    remove: Callable[[Store, str], None] | None = None
    typed: Callable[[Any], str] = attrgetter("name")
    """The name of one model, as people type it."""
    about: Callable[[Store, str], str] = lambda store, name: name
    """A description of what is deleted with a name."""


def _keys(store: Store) -> Iterable[Any]:
    from svcctl.service.accounts import accounts

    return accounts.every(store)


def _remove_key(store: Store, name: str) -> None:
    from svcctl.service.accounts import accounts

    accounts.remove(store, name)


def _resellers(store: Store) -> Iterable[Any]:
    from svcctl.service.accounts import price_plans

    return price_plans.resellers(store)


def _remove_reseller(store: Store, name: str) -> None:
    from svcctl.service.accounts import price_plans

    price_plans.remove_reseller(store, name)


def _plans(store: Store) -> Iterable[Any]:
    from svcctl.service.accounts import price_plans

    return price_plans.plans(store)


def _remove_plan(store: Store, name: str) -> None:
    from svcctl.service.accounts import price_plans

    reseller, _, plan = name.partition("/")
    price_plans.remove_plan(store, reseller, plan)


def _policies(store: Store) -> Iterable[Any]:
    from svcctl.service.accounts import price_plans

    return price_plans.features(store, "policy")


def _remove_policy(store: Store, name: str) -> None:
    from svcctl.service.accounts import price_plans

    price_plans.remove_feature(store, "policy", name)


def _applications(store: Store) -> Iterable[Any]:
    from svcctl.service.accounts import price_plans

    return price_plans.features(store, "application")


def _remove_application(store: Store, name: str) -> None:
    from svcctl.service.accounts import price_plans

    price_plans.remove_feature(store, "application", name)


def _domains(store: Store) -> Iterable[Any]:
    from svcctl.service.accounts import domains

    return domains.every(store)


def _users(store: Store) -> Iterable[Any]:
    from svcctl.service.accounts import domains

    return [(domain, member) for domain, members in domains.every(store) for member in members]


def _remove_user(store: Store, name: str) -> None:
    from svcctl.service.accounts import users

    users.remove(store, name)


def _user_name(domain_and_user: tuple[Any, Any]) -> str:
    domain, member = domain_and_user
    return f"{domain.name}/{member.email}"


def _about_user(store: Store, name: str) -> str:
    """A user, with the memberships that are deleted and those that stay."""
    from svcctl.service.accounts import users

    going = users.leaving(store, name)
    email = going[0][1].email
    staying = [one for one in _users(store) if one[1].email == email and one not in going]
    roles = ", ".join(f"{member.role or 'no role'} in {domain.name}" for domain, member in going)
    stays = ", ".join(domain.name for domain, _ in staying)
    return f"{email} ({roles}{f'; stays in {stays}' if stays else ''})"


KINDS = {
    "keys": _Kind(records.KEYS, _keys, _remove_key, attrgetter("api_key")),
    "resellers": _Kind(records.RESELLERS, _resellers, _remove_reseller),
    "plans": _Kind(records.PLANS, _plans, _remove_plan, lambda plan: f"{plan.reseller}/{plan.name}"),
    "policies": _Kind(records.FEATURES, _policies, _remove_policy),
    "applications": _Kind(records.FEATURES, _applications, _remove_application),
    "domains": _Kind(records.OWNED_DOMAINS, _domains, typed=lambda domain_and_users: str(domain_and_users[0].name)),
    "users": _Kind(records.USERS, _users, _remove_user, _user_name, _about_user),
}


def _kind(name: str) -> _Kind:
    if name not in KINDS:
        raise UsageError(f"unknown kind '{name}'", hint=f"kinds are: {', '.join(KINDS)}")
    return KINDS[name]


def _among(kind: str, name: str | None, store: Store) -> AbstractContextManager[None]:
    """Add the existing names of a kind to the hint of an error about an unknown `name`, unless it has a hint."""
    known = KINDS[kind]
    what = "" if kind == "keys" else kind  # a list of random numbers helps nobody
    return suggesting(name or "", lambda: map(known.typed, known.every(store)), what, when=lambda error: not error.hint)
