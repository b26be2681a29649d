"""`svcctl service accounts`: what the provider of the local service does, straight in its file of state.

The interface has no operations for this, and the service need not run for it. These commands are part of the
`service` noun.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svcctl.api.models import DomainStatus
from svcctl.completion.words import Completes
from svcctl.context import Context
from svcctl.errors import UsageError
from svcctl.options import FormatOpt, YesOpt
from svcctl.terminal.records import KEY, rows

if TYPE_CHECKING:
    from svcctl.service.provisioning.offers import Kind as FeatureKind
    from svcctl.service.store import Store

STATES = tuple(status.value for status in DomainStatus if status is not DomainStatus.DELETED)

NameArg = Annotated[str, typer.Argument(metavar="NAME")]
DomainArg = Annotated[str, typer.Argument(metavar="DOMAIN", help="Full name of a domain."), Completes("domains")]
ResellerOpt = Annotated[str, typer.Option("--reseller", metavar="NAME", help="Whose plan it is.")]
AmountOpt = Annotated[
    float | None, typer.Option(metavar="N", min=0, help="The most a domain may have; none otherwise.")
]
PoliciesOpt = Annotated[list[str] | None, typer.Option("--policy", metavar="NAME", help="Included; again for more.")]
ApplicationsOpt = Annotated[
    list[str] | None, typer.Option("--application", metavar="NAME", help="Included; again for more.")
]
GenericOpt = Annotated[bool, typer.Option("--generic", help="It comes with every domain, whatever its plan.")]

app = typer.Typer(
    help="Manage accounts, resellers, plans, policies, applications and users of the local service.",
    rich_markup_mode=None,
    no_args_is_help=True,
)


@app.command("list")
def list_(
    ctx: typer.Context,
    kind: Annotated[
        str,
        typer.Argument(metavar="KIND", help="keys, resellers, plans, … (all of them in the error)."),
        Completes(words=lambda: KINDS),
    ],
    format: FormatOpt = None,
) -> None:
    """List keys, resellers, plans, policies, applications, domains or users; secrets are not shown"""
    svc: Context = ctx.obj
    listing = _kind(kind)
    found = listing.rows(_store(svc))
    svc.output.records(rows(*listing.columns), found, svc.format(format, lists=True))


@app.command()
def key(
    ctx: typer.Context,
    domain: Annotated[str | None, typer.Option("--domain", metavar="NAME", help="A key for this domain.")] = None,
    admin: Annotated[bool, typer.Option("--admin", help="It administrates the domain: its roles.")] = False,
    reseller: Annotated[str | None, typer.Option("--reseller", metavar="NAME", help="A key for this reseller.")] = None,
    format: FormatOpt = None,
) -> None:
    """Make an API key with its secret and token, and print them: the one time they are shown"""
    svc: Context = ctx.obj
    from svcctl.service.provisioning.accounts import issue

    if (domain is None) == (reseller is None):
        raise UsageError("a key is for a domain or for a reseller", hint="give --domain NAME or --reseller NAME")
    made = issue(_store(svc), domain=domain, reseller=reseller, administrator=admin)
    svc.output.records(KEY, [made], svc.format(format, lists=True))


@app.command()
def reseller(
    ctx: typer.Context,
    name: NameArg,
    include_all_apps: Annotated[
        bool, typer.Option("--include-all-apps/--no-include-all-apps", help="New domains get the applications.")
    ] = True,
) -> None:
    """Make a reseller, or change its preference includeAllAvailableApps"""
    svc: Context = ctx.obj
    from svcctl.service.provisioning import offers

    if not name or "@" in name:
        raise UsageError(f"'{name}' cannot be a reseller's name")
    offers.put_reseller(_store(svc), offers.Reseller(name, include_all_apps))


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
    """Make a reseller's plan, or replace what it says"""
    svc: Context = ctx.obj
    from svcctl.service.provisioning import offers

    offers.put_plan(
        _store(svc), offers.PricePlan(reseller, name, time, volume, tuple(policies or ()), tuple(applications or ()))
    )


@app.command()
def policy(ctx: typer.Context, name: NameArg, generic: GenericOpt = False) -> None:
    """Make a policy, or change whether it is generic"""
    _put_feature(ctx.obj, "policy", name, generic)


@app.command()
def application(ctx: typer.Context, name: NameArg, generic: GenericOpt = False) -> None:
    """Make an application, or change whether it is generic"""
    _put_feature(ctx.obj, "application", name, generic)


@app.command()
def user(
    ctx: typer.Context,
    email: Annotated[str, typer.Argument(metavar="EMAIL")],
    domain: DomainArg,
    role: Annotated[str, typer.Option("--role", metavar="ROLE", help="OWNER is the role ADMIN, as owner.")] = "USER",
) -> None:
    """Make someone a user of a domain; the first must be its OWNER"""
    svc: Context = ctx.obj
    from svcctl.service.provisioning import domains

    domains.assign(_store(svc), domain, email, role)


@app.command()
def status(
    ctx: typer.Context,
    domain: DomainArg,
    status: Annotated[str, typer.Argument(metavar="STATUS", help=", ".join(STATES)), Completes(words=STATES)],
) -> None:
    """Put a domain into a state, whatever it is in: the only way into Pending and out of it"""
    svc: Context = ctx.obj
    from svcctl.service.provisioning import domains

    if status not in STATES:
        raise UsageError(f"status '{status}' is not one of {', '.join(STATES)}")
    domains.set_status(_store(svc), domain, DomainStatus(status))


@app.command()
def rm(
    ctx: typer.Context,
    kind: Annotated[
        str,
        typer.Argument(metavar="KIND", help="keys, resellers, plans, policies or applications."),
        Completes(words=lambda: [name for name, row in KINDS.items() if row.remove]),
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name; RESELLER/PLAN for a plan.")],
    yes: YesOpt = False,
) -> None:
    """Remove a key, a reseller, a plan, a policy or an application"""
    svc: Context = ctx.obj
    remove = _kind(kind).remove
    if remove is None:
        raise UsageError(f"{kind} are not removed here", hint="see 'svcctl domain rm'")
    if not yes:
        svc.ask(f"Remove {name} of the {kind}?")
    remove(_store(svc), name)


def _store(svc: Context) -> Store:
    from svcctl.service.provisioning.seed import open_store

    store = open_store(svc.files)
    svc.closing.callback(store.close)
    return store


def _put_feature(svc: Context, kind: FeatureKind, name: str, generic: bool) -> None:
    from svcctl.service.provisioning import offers

    if not name or name == "*":
        raise UsageError(f"'{name}' cannot be a name")
    offers.put_feature(_store(svc), offers.Feature(kind, name, generic))


# What can be listed and removed


@dataclass(frozen=True, slots=True)
class _Kind:
    columns: tuple[str, ...]
    rows: Callable[[Store], list[list[Any]]]
    remove: Callable[[Store, str], None] | None = None


def _keys(store: Store) -> list[list[Any]]:
    from svcctl.service.provisioning import accounts

    return [[one.api_key, one.domain or None, one.reseller, one.administrator] for one in accounts.every(store)]


def _remove_key(store: Store, name: str) -> None:
    from svcctl.service.provisioning import accounts

    accounts.remove(store, name)


def _resellers(store: Store) -> list[list[Any]]:
    from svcctl.service.provisioning import offers

    return [[one.name, one.include_all_available_apps] for one in offers.resellers(store)]


def _remove_reseller(store: Store, name: str) -> None:
    from svcctl.service.provisioning import offers

    offers.remove_reseller(store, name)


def _plans(store: Store) -> list[list[Any]]:
    from svcctl.service.provisioning import offers

    return [
        [one.reseller, one.name, one.time, one.volume, ", ".join(one.policies), ", ".join(one.applications)]
        for one in offers.plans(store)
    ]


def _remove_plan(store: Store, name: str) -> None:
    from svcctl.service.provisioning import offers

    reseller, _, plan = name.partition("/")
    offers.remove_plan(store, reseller, plan)


def _features(kind: FeatureKind) -> Callable[[Store], list[list[Any]]]:
    def rows(store: Store) -> list[list[Any]]:
        from svcctl.service.provisioning import offers

        return [[one.name, one.generic] for one in offers.features(store, kind)]

    return rows


def _remove_feature(kind: FeatureKind) -> Callable[[Store, str], None]:
    def remove(store: Store, name: str) -> None:
        from svcctl.service.provisioning import offers

        offers.remove_feature(store, kind, name)

    return remove


def _domains(store: Store) -> list[list[Any]]:
    from svcctl.service.provisioning import domains

    return [
        [domain.name, domain.plan, domain.status.value, ", ".join(member.email for member in members if member.owner)]
        for domain, members in domains.every(store)
    ]


def _users(store: Store) -> list[list[Any]]:
    from svcctl.service.provisioning import domains

    return [
        [member.email, domain.name, member.role, member.owner]
        for domain, members in domains.every(store)
        for member in members
    ]


KINDS = {
    "keys": _Kind(("api_key", "domain", "reseller", "administrator"), _keys, _remove_key),
    "resellers": _Kind(("name", "include_all_available_apps"), _resellers, _remove_reseller),
    "plans": _Kind(("reseller", "name", "time", "volume", "policies", "applications"), _plans, _remove_plan),
    "policies": _Kind(("name", "generic"), _features("policy"), _remove_feature("policy")),
    "applications": _Kind(("name", "generic"), _features("application"), _remove_feature("application")),
    "domains": _Kind(("name", "plan", "status", "owner"), _domains),
    "users": _Kind(("email", "domain", "role", "owner"), _users),
}


def _kind(name: str) -> _Kind:
    if name not in KINDS:
        raise UsageError(f"'{name}' is not one of {', '.join(KINDS)}")
    return KINDS[name]
