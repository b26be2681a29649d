"""The kinds of `service accounts`, such as users: how each kind is listed, named and deleted.

This module imports the service, so `accounts.py` imports this module only when a command needs a kind. The names of the
kinds are in `accounts.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, Generic, TypeVar

from svcctl.service.accounts import accounts, domains, keys, price_plans, users
from svcctl.service.accounts.domains import Member, StoredDomain
from svcctl.service.accounts.keys import Key
from svcctl.service.accounts.price_plans import Feature, PricePlan, Reseller
from svcctl.service.state.store import Store
from svcctl.terminal.layout import iso_text, second_text
from svcctl.terminal.records import ListField, Listing, attributes

T = TypeVar("T")
DomainWithUsers = tuple[StoredDomain, list[Member]]
Membership = tuple[StoredDomain, Member]


@dataclass(frozen=True)
class AccountKind(Generic[T]):
    """A kind of object, such as users, with functions that list and delete objects of this kind.

    `T` is the type of the objects.
    """

    listing: Listing[T]
    every: Callable[[Store], Sequence[T]]
    typed: Callable[[T], str]
    """A function that returns the name of an object, as people type it."""
    remove: Callable[[Store, str], None] | None = None
    """A function that deletes an object by its name; None if `service accounts rm` refuses this kind."""
    about: Callable[[Store, str], str] = lambda store, name: name
    """A function that takes the name of an object, and describes the object and all things that are deleted with it."""


def _memberships(store: Store) -> list[Membership]:
    return [(domain, member) for domain, members in domains.list_all(store) for member in members]


def _remove_plan(store: Store, name: str) -> None:
    reseller, _, plan = name.partition("/")
    price_plans.remove_plan(store, reseller, plan)


def _about_user(store: Store, name: str) -> str:
    """Describe a user, the domains that the user is removed from, and the domains in which the user stays."""
    going = users.memberships_to_end(store, name)
    email = going[0][1].email
    staying = [
        membership for membership in _memberships(store) if membership[1].email == email and membership not in going
    ]
    roles = ", ".join(f"{member.role or 'no role'} in {domain.name}" for domain, member in going)
    stays = ", ".join(domain.name for domain, _ in staying)
    return f"{email} ({roles}{f'; stays in {stays}' if stays else ''})"


def _features(kind: price_plans.Kind) -> AccountKind[Feature]:
    return AccountKind(
        Listing(attributes("name", "generic")),
        partial(price_plans.features, kind=kind),
        lambda feature: feature.name,
        lambda store, name: price_plans.remove_feature(store, kind, name),
    )


def _moment_field(name: str) -> ListField[Key]:
    """Return a column of dates for an attribute in epoch milliseconds."""
    moment = attrgetter(name)
    return ListField(
        name, lambda key: iso_text(moment(key)), shown=lambda key: second_text(moment(key)), shown_type="id"
    )


_KEY = ListField[Key]("api_key", attrgetter("api_key"), "id")
_STATUS = ListField[Key]("status", attrgetter("status"), "id", marks={"expiring": 33, "expired": 31})
_CREATED, _EXPIRES, _LAST_USED = map(_moment_field, ("created", "expires", "last_used"))
_OWNER = attributes("name", "domain", "reseller", "administrator")

KINDS: Mapping[str, AccountKind[Any]] = {
    "keys": AccountKind[Key](
        Listing(
            (_KEY, *_OWNER, _CREATED, _EXPIRES, _LAST_USED, _STATUS),
            people=(_KEY, _OWNER[0], _STATUS, _EXPIRES, _LAST_USED, *_OWNER[1:], _CREATED),
        ),
        keys.list_keys,
        lambda key: key.api_key,
        accounts.remove,
        keys.describe,
    ),
    "resellers": AccountKind[Reseller](
        Listing(attributes("name", "include_all_available_apps")),
        price_plans.resellers,
        lambda reseller: reseller.name,
        price_plans.remove_reseller,
    ),
    "plans": AccountKind[PricePlan](
        Listing(
            (
                *attributes("reseller", "name", "time", "volume"),
                ListField("policies", lambda plan: ", ".join(plan.policies)),
                ListField("applications", lambda plan: ", ".join(plan.applications)),
            )
        ),
        price_plans.plans,
        lambda plan: f"{plan.reseller}/{plan.name}",
        _remove_plan,
    ),
    "policies": _features("policy"),
    "applications": _features("application"),
    "domains": AccountKind[DomainWithUsers](
        Listing(
            (
                ListField("name", lambda pair: pair[0].name),
                ListField("plan", lambda pair: pair[0].plan),
                ListField("status", lambda pair: pair[0].status.value),
                ListField("owner", lambda pair: ", ".join(member.email for member in pair[1] if member.owner)),
            )
        ),
        domains.list_all,
        lambda pair: pair[0].name,
    ),
    "users": AccountKind[Membership](
        Listing(
            (
                ListField("email", lambda pair: pair[1].email),
                ListField("domain", lambda pair: pair[0].name),
                ListField(
                    "role",
                    lambda pair: pair[1].role,
                    shown=lambda pair: "OWNER" if pair[1].owner else pair[1].role,
                ),
                ListField("owner", lambda pair: pair[1].owner),
            )
        ),
        _memberships,
        lambda pair: f"{pair[0].name}/{pair[1].email}",
        users.remove,
        _about_user,
    ),
}
