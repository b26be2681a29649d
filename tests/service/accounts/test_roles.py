"""The roles of a domain: how they are stored, and who may manage them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svcctl.api.models import DomainStatus
from svcctl.errors import ServiceError
from svcctl.service.accounts import domains, price_plans, roles, users
from svcctl.service.accounts.accounts import Account
from svcctl.service.accounts.codes import Reason
from svcctl.service.accounts.price_plans import Feature, PricePlan, Reseller
from svcctl.service.accounts.rules import CustomRole
from svcctl.service.state.store import Store


def refusal(call: Callable[[], object]) -> tuple[int | None, str]:
    with pytest.raises(ServiceError) as caught:
        call()
    return caught.value.code, caught.value.message


ADMIN = Account("a", "s", None, "acme@north", administrator=True, domain_id=1)
ORDINARY = Account("o", "s", None, "acme@north", domain_id=1)
RESELLER = Account("r", "s", None, "", reseller="north")
OTHER_RESELLER = Account("x", "s", None, "", reseller="south")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "state.db")
    for name in ("north", "south"):
        price_plans.put_reseller(store, Reseller(name))
    price_plans.put_feature(store, Feature("policy", "Search", True))
    price_plans.put_feature(store, Feature("application", "explorer", True))
    price_plans.put_plan(store, PricePlan("north", "basic"))
    domains.create(store, "north", {"name": "acme", "plan": "basic"})
    users.assign(store, "acme@north", "ann@acme.example", "OWNER")
    yield store
    store.close()


def test_roles_are_kept_with_their_domain(store: Store) -> None:
    roles.create(store, ADMIN, "acme", {"name": "b", "policies": "Search", "resourceIds": {"x": [2, 1]}})
    roles.create(store, RESELLER, "acme@north", {"name": "a"})
    assert [role.name for role in roles.list_roles(store, ADMIN, "acme@north")] == ["a", "b"]
    assert roles.get(store, RESELLER, "acme", "b") == CustomRole("b", None, ("Search",), (), (1, 2), None, None)
    users.assign(store, "acme@north", "bob@acme.example", "b")
    assert roles.delete(store, ADMIN, "acme", "b").name == "b"
    roles.create(store, ADMIN, "acme", {"name": "b"})
    assert roles.users(store, ADMIN, "acme", "b") == []
    _, members = domains.get(store, "north", "acme")
    assert [(member.email, member.role) for member in members] == [
        ("ann@acme.example", "ADMIN"),
        ("bob@acme.example", None),
    ]
    roles.delete(store, ADMIN, "acme", "b")
    assert refusal(lambda: roles.get(store, ADMIN, "acme", "b")) == (140, "domain acme@north has no role 'b'")
    domains.delete(store, "north", "acme")
    domains.create(store, "north", {"name": "acme", "plan": "basic"})
    users.assign(store, "acme@north", "ann@acme.example", "OWNER")
    assert roles.list_roles(store, RESELLER, "acme") == []


def test_a_name_is_taken_once_and_an_update_may_change_it(store: Store) -> None:
    taken = (141, "domain acme@north already has a role 'a'")
    roles.create(store, ADMIN, "acme", {"name": "a"})
    roles.create(store, ADMIN, "acme", {"name": "b"})
    assert refusal(lambda: roles.create(store, ADMIN, "acme", {"name": "a"})) == taken
    assert refusal(lambda: roles.update(store, ADMIN, "acme", "b", {"name": "a"})) == taken
    assert [role.name for role in roles.list_roles(store, ADMIN, "acme")] == ["a", "b"]
    assert roles.update(store, ADMIN, "acme", "b", {"name": "b"}).name == "b"
    assert roles.update(store, ADMIN, "acme", "b", {"name": "c"}).name == "c"
    assert [role.name for role in roles.list_roles(store, ADMIN, "acme")] == ["a", "c"]


@pytest.mark.parametrize("name", ["OWNER", "ADMIN", "USER"])
def test_no_role_has_the_name_of_a_built_in_one(store: Store, name: str) -> None:
    taken = (141, f"{name} is the name of a built-in role")
    roles.create(store, ADMIN, "acme", {"name": "b"})
    assert refusal(lambda: roles.create(store, ADMIN, "acme", {"name": name})) == taken
    assert refusal(lambda: roles.update(store, ADMIN, "acme", "b", {"name": name})) == taken
    assert [role.name for role in roles.list_roles(store, ADMIN, "acme")] == ["b"]


def test_the_users_of_a_role_are_known_and_keep_it_under_a_new_name(store: Store) -> None:
    roles.create(store, ADMIN, "acme", {"name": "a"})
    for email in ("eve@acme.example", "bob@acme.example"):
        users.assign(store, "acme@north", email, "a")
    assert roles.users(store, ADMIN, "acme", "a") == ["bob@acme.example", "eve@acme.example"]
    roles.update(store, RESELLER, "acme", "a", {"name": "b"})
    assert [roles.users(store, ADMIN, "acme", name) for name in "ab"] == [[], ["bob@acme.example", "eve@acme.example"]]
    _, members = domains.get(store, "north", "acme")
    assert [user.role for user in members] == ["ADMIN", "b", "b"]


@pytest.mark.parametrize(
    ("account", "name", "outcome"),
    [
        (ADMIN, "acme@north", None),
        (ADMIN, "acme", None),
        (RESELLER, "acme", None),
        (RESELLER, "other", (106, "no domain other@north")),
        (OTHER_RESELLER, "acme@north", (106, "no domain acme@north")),
        (ORDINARY, "acme", (126, "the account is not an administrator of domain acme@north")),
        (ADMIN, "other", (126, "the account belongs to domain acme@north and cannot manage other")),
        (ADMIN, "acme@south", (126, "the account belongs to domain acme@north and cannot manage acme@south")),
    ],
)
@pytest.mark.parametrize("operation", ["listed", "get", "create", "update", "delete"])
def test_administrators_of_the_domain_and_its_reseller_may(
    store: Store, account: Account, name: str, outcome: tuple[int, str] | None, operation: str
) -> None:
    roles.create(store, ADMIN, "acme", {"name": "a"})
    calls: dict[str, Callable[[], object]] = {
        "listed": lambda: roles.list_roles(store, account, name),
        "get": lambda: roles.get(store, account, name, "a"),
        "create": lambda: roles.create(store, account, name, {"name": "b"}),
        "update": lambda: roles.update(store, account, name, "a", {"description": "d"}),
        "delete": lambda: roles.delete(store, account, name, "a"),
    }
    if outcome is None:
        calls[operation]()
    else:
        assert refusal(calls[operation]) == outcome


@pytest.mark.parametrize(
    ("status", "code"),
    [(DomainStatus.DISABLED, Reason.DISABLED), (DomainStatus.PENDING, Reason.PENDING), (DomainStatus.ACTIVE, None)],
)
def test_roles_belong_to_what_cannot_be_accessed_then(store: Store, status: DomainStatus, code: Reason | None) -> None:
    domains.set_status(store, "acme@north", status)
    for account in (ADMIN, RESELLER):
        try:
            roles.list_roles(store, account, "acme")
            found = None
        except ServiceError as error:
            found = error.code
        assert found == code
