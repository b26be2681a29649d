"""What the provider sells: resellers, their plans, and the policies and applications that a plan includes.

The interface names these things without operations on them, so they are seeded, and changed with
`svcctl service accounts`. A policy or an application is a feature. A generic one comes with every domain.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from svcctl.errors import NotFound, UsageError
from svcctl.service.store import Store

Kind = Literal["policy", "application"]


@dataclass(frozen=True, slots=True)
class Reseller:
    """`include_all_available_apps` is the interface's preference: False activates no applications in new domains."""

    name: str
    include_all_available_apps: bool = True


@dataclass(frozen=True, slots=True)
class Feature:
    kind: Kind
    name: str
    generic: bool = False


@dataclass(frozen=True, slots=True)
class PricePlan:
    """A reseller's price plan. `time` and `volume` are the most a domain may ask for, and what it gets when it asks for
    nothing; None is a plan that does not take the field.
    """

    reseller: str
    name: str
    time: float | None = None
    volume: float | None = None
    policies: tuple[str, ...] = ()
    applications: tuple[str, ...] = ()


def put_reseller(store: Store, reseller: Reseller) -> None:
    """Add a reseller, or change its preference."""
    with store.transaction() as connection:
        connection.execute(
            "insert into resellers values (?, ?) on conflict (name) do update set"
            " include_all_available_apps = excluded.include_all_available_apps",
            (reseller.name, int(reseller.include_all_available_apps)),
        )


def put_feature(store: Store, feature: Feature) -> None:
    """Add a policy or an application, or change whether it is generic."""
    with store.transaction() as connection:
        connection.execute(
            "insert into features values (?, ?, ?) on conflict (kind, name) do update set generic = excluded.generic",
            (feature.kind, feature.name, int(feature.generic)),
        )


def put_plan(store: Store, plan: PricePlan) -> None:
    """Add a plan, or replace what it says. UsageError names what it refers to and does not exist."""
    with store.transaction() as connection:
        if not _exists(connection, "resellers where name = ?", (plan.reseller,)):
            raise UsageError(f"no reseller '{plan.reseller}'", hint="see 'svcctl service accounts list resellers'")
        connection.execute(
            "insert into plans values (?, ?, ?, ?) on conflict (reseller, name) do update set"
            " time = excluded.time, volume = excluded.volume",
            (plan.reseller, plan.name, plan.time, plan.volume),
        )
        connection.execute("delete from plan_features where reseller = ? and plan = ?", (plan.reseller, plan.name))
        for kind, names in (("policy", plan.policies), ("application", plan.applications)):
            for name in dict.fromkeys(names):
                if not _exists(connection, "features where kind = ? and name = ?", (kind, name)):
                    raise UsageError(f"no {kind} '{name}'", hint=f"make it with 'svcctl service accounts {kind}'")
                connection.execute(
                    "insert into plan_features values (?, ?, ?, ?)", (plan.reseller, plan.name, kind, name)
                )


def reseller(connection: sqlite3.Connection, name: str) -> Reseller | None:
    row = connection.execute("select name, include_all_available_apps from resellers where name = ?", (name,))
    return next((Reseller(name, bool(every)) for name, every in row), None)


def plan(connection: sqlite3.Connection, reseller: str, name: str) -> PricePlan | None:
    row = connection.execute("select time, volume from plans where reseller = ? and name = ?", (reseller, name))
    found = row.fetchone()
    if found is None:
        return None
    time, volume = found
    policies = _included(connection, reseller, name, "policy")
    return PricePlan(reseller, name, time, volume, policies, _included(connection, reseller, name, "application"))


def generic(connection: sqlite3.Connection, kind: Kind) -> tuple[str, ...]:
    """The names of the features that come with every domain."""
    return _names(connection.execute("select name from features where kind = ? and generic order by name", (kind,)))


def every(connection: sqlite3.Connection, kind: Kind) -> tuple[str, ...]:
    return _names(connection.execute("select name from features where kind = ? order by name", (kind,)))


def resellers(store: Store) -> list[Reseller]:
    with store.reading() as connection:
        rows = connection.execute("select name, include_all_available_apps from resellers order by name").fetchall()
    return [Reseller(name, bool(every)) for name, every in rows]


def features(store: Store, kind: Kind) -> list[Feature]:
    with store.reading() as connection:
        rows = connection.execute("select name, generic from features where kind = ? order by name", (kind,)).fetchall()
    return [Feature(kind, name, bool(generic)) for name, generic in rows]


def plans(store: Store) -> list[PricePlan]:
    with store.reading() as connection:
        keys = connection.execute("select reseller, name from plans order by reseller, name").fetchall()
        return [found for key in keys if (found := plan(connection, *key)) is not None]


def remove_plan(store: Store, reseller: str, name: str) -> None:
    """Forget a plan. UsageError while a domain has it, NotFound when there is none."""
    with store.transaction() as connection:
        if _exists(connection, "domains where deleted_at is null and reseller = ? and plan = ?", (reseller, name)):
            raise UsageError(f"plan '{name}' of reseller '{reseller}' has domains")
        if not connection.execute("delete from plans where reseller = ? and name = ?", (reseller, name)).rowcount:
            raise NotFound(f"no plan '{name}' of reseller '{reseller}'")


def remove_feature(store: Store, kind: Kind, name: str) -> None:
    """Forget a policy or an application; plans and domains lose it. NotFound when there is none."""
    with store.transaction() as connection:
        if not connection.execute("delete from features where kind = ? and name = ?", (kind, name)).rowcount:
            raise NotFound(f"no {kind} '{name}'")


def remove_reseller(store: Store, name: str) -> None:
    """Forget a reseller without plans or domains, and its accounts. UsageError when it has some."""
    with store.transaction() as connection:
        if not _exists(connection, "resellers where name = ?", (name,)):
            raise NotFound(f"no reseller '{name}'")
        for table, what in (("plans", "plans"), ("domains", "domains, deleted ones included")):
            if _exists(connection, f"{table} where reseller = ?", (name,)):
                raise UsageError(f"reseller '{name}' has {what}")
        connection.execute("delete from accounts where reseller = ?", (name,))
        connection.execute("delete from resellers where name = ?", (name,))


def _exists(connection: sqlite3.Connection, what: str, values: Sequence[str]) -> bool:
    return connection.execute(f"select 1 from {what} limit 1", values).fetchone() is not None


def _included(connection: sqlite3.Connection, reseller: str, plan: str, kind: Kind) -> tuple[str, ...]:
    return _names(
        connection.execute(
            "select name from plan_features where reseller = ? and plan = ? and kind = ? order by name",
            (reseller, plan, kind),
        )
    )


def _names(rows: Iterable[tuple[str]]) -> tuple[str, ...]:
    return tuple(name for (name,) in rows)
