"""Price plans, the resellers that have them, and the policies and applications that a plan includes.

Policies and applications are called features. Every domain has the generic features. The HTTP interface mentions price
plans, resellers and features, but cannot change them. So a new service starts with examples. They can be changed with
`svcctl service accounts`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from sqlalchemy import ColumnElement, Connection, delete, insert, select

from svcctl.errors import NotFound, UsageError
from svcctl.service.state import schema
from svcctl.service.state.store import Store, is_there, replace

Kind = Literal["policy", "application"]


@dataclass(frozen=True, slots=True)
class Reseller:
    """A reseller. If `include_all_available_apps` is False, new domains of the reseller start without applications."""

    name: str
    include_all_available_apps: bool = True


@dataclass(frozen=True, slots=True)
class Feature:
    kind: Kind
    name: str
    generic: bool = False


@dataclass(frozen=True, slots=True)
class PricePlan:
    """A reseller's price plan.

    A domain also has a `time` and a `volume`. The plan's `time` is both the maximum and the default for the `time` of
    its domains. If the plan has no `time`, its domains cannot have a `time`. The same rules apply to `volume`.
    """

    reseller: str
    name: str
    time: float | None = None
    volume: float | None = None
    policies: tuple[str, ...] = ()
    applications: tuple[str, ...] = ()


def put_reseller(store: Store, reseller: Reseller) -> None:
    """Add a reseller, or change whether the reseller's new domains get applications."""
    if not reseller.name or "@" in reseller.name:
        raise UsageError(f"invalid reseller name '{reseller.name}'", hint="use any text without '@'")
    with store.transaction() as connection:
        replace(connection, schema.resellers, **asdict(reseller))


def put_feature(store: Store, feature: Feature) -> None:
    """Add a policy or an application, or change whether the policy or application is generic."""
    if not feature.name or feature.name == "*":
        raise UsageError(f"invalid {feature.kind} name '{feature.name}'", hint="use any text but '*'")
    with store.transaction() as connection:
        replace(connection, schema.features, **asdict(feature))


def put_plan(store: Store, plan: PricePlan) -> None:
    """Add a price plan, or replace the plan with the same name.

    Raises UsageError if the reseller of the plan does not exist. Also raises UsageError if one of the plan's policies
    or applications does not exist.
    """
    with store.transaction() as connection:
        if reseller(connection, plan.reseller) is None:
            raise UsageError(f"no reseller '{plan.reseller}'", reason="unknown-reseller")
        key = {"reseller": plan.reseller, "name": plan.name}
        replace(connection, schema.plans, **key, time=plan.time, volume=plan.volume)
        connection.execute(delete(schema.plan_features).where(*_of_plan(plan.reseller, plan.name)))
        for kind, names in (("policy", plan.policies), ("application", plan.applications)):
            for name in dict.fromkeys(names):
                if not is_there(connection, *_is_feature(kind, name)):
                    raise UsageError(f"no {kind} '{name}'", reason="unknown-feature", data={"kind": kind})
                row = {"reseller": plan.reseller, "plan": plan.name, "kind": kind, "name": name}
                connection.execute(insert(schema.plan_features).values(row))


def reseller(connection: Connection, name: str) -> Reseller | None:
    return next(iter(_resellers(connection, schema.resellers.c.name == name)), None)


def plan(connection: Connection, reseller: str, name: str) -> PricePlan | None:
    table = schema.plans
    row = connection.execute(select(table).where(table.c.reseller == reseller, table.c.name == name)).one_or_none()
    if row is None:
        return None
    policies, applications = (_plan_features(connection, reseller, name, kind) for kind in ("policy", "application"))
    return PricePlan(reseller, name, row.time, row.volume, policies, applications)


def generic_feature_names(connection: Connection, kind: Kind) -> tuple[str, ...]:
    """Return the names of the generic policies or of the generic applications. Every domain has these features."""
    return tuple(feature.name for feature in _features(connection, kind) if feature.generic)


def feature_names(connection: Connection, kind: Kind) -> tuple[str, ...]:
    return tuple(feature.name for feature in _features(connection, kind))


def resellers(store: Store) -> list[Reseller]:
    with store.reading() as connection:
        return _resellers(connection)


def features(store: Store, kind: Kind) -> list[Feature]:
    with store.reading() as connection:
        return _features(connection, kind)


def plan_names(connection: Connection, reseller: str) -> list[str]:
    table = schema.plans
    return list(
        connection.execute(select(table.c.name).where(table.c.reseller == reseller).order_by(table.c.name)).scalars()
    )


def plans(store: Store) -> list[PricePlan]:
    table = schema.plans
    with store.reading() as connection:
        keys = connection.execute(select(table.c.reseller, table.c.name).order_by(table.c.reseller, table.c.name)).all()
        return [price_plan for key in keys if (price_plan := plan(connection, *key)) is not None]


def remove_plan(store: Store, reseller: str, name: str) -> None:
    """Delete a price plan. Raises UsageError if a domain still has the plan, and NotFound if there is no such plan."""
    domains, plans = schema.domains.c, schema.plans
    with store.transaction() as connection:
        if is_there(connection, domains.deleted_at.is_(None), domains.reseller == reseller, domains.plan == name):
            raise UsageError(f"plan '{name}' of reseller '{reseller}' still has domains")
        if not connection.execute(delete(plans).where(plans.c.reseller == reseller, plans.c.name == name)).rowcount:
            raise NotFound(f"no plan '{name}' of reseller '{reseller}'")


def remove_feature(store: Store, kind: Kind, name: str) -> None:
    """Delete a policy or an application, and remove it from plans and domains.

    Raises NotFound if there is no such policy or application.
    """
    with store.transaction() as connection:
        if not connection.execute(delete(schema.features).where(*_is_feature(kind, name))).rowcount:
            raise NotFound(f"no {kind} '{name}'")


def remove_reseller(store: Store, name: str) -> None:
    """Delete a reseller with its accounts and jobs.

    Raises UsageError if the reseller still has plans or domains, even deleted domains. Raises NotFound if there is no
    such reseller.
    """
    with store.transaction() as connection:
        if reseller(connection, name) is None:
            raise NotFound(f"no reseller '{name}'")
        for table, what in ((schema.plans, "plans"), (schema.domains, "domains (deleted ones count)")):
            if is_there(connection, table.c.reseller == name):
                raise UsageError(f"reseller '{name}' still has {what}")
        for table in (schema.accounts, schema.jobs):
            connection.execute(delete(table).where(table.c.reseller == name))
        connection.execute(delete(schema.resellers).where(schema.resellers.c.name == name))


def _resellers(connection: Connection, *conditions: ColumnElement[bool]) -> list[Reseller]:
    rows = connection.execute(select(schema.resellers).where(*conditions).order_by(schema.resellers.c.name))
    return [Reseller(**row) for row in rows.mappings()]


def _features(connection: Connection, kind: Kind) -> list[Feature]:
    table = schema.features
    rows = connection.execute(select(table).where(table.c.kind == kind).order_by(table.c.name))
    return [Feature(**row) for row in rows.mappings()]


def _plan_features(connection: Connection, reseller: str, plan: str, kind: str) -> tuple[str, ...]:
    table = schema.plan_features
    names = select(table.c.name).where(*_of_plan(reseller, plan), table.c.kind == kind).order_by(table.c.name)
    return tuple(connection.scalars(names))


def _of_plan(reseller: str, plan: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return schema.plan_features.c.reseller == reseller, schema.plan_features.c.plan == plan


def _is_feature(kind: str, name: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return schema.features.c.kind == kind, schema.features.c.name == name
