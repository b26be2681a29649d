"""Domains: every state with every operation, names, amounts, users; and a model to compare a long life with."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from peers.postgresql import PASSWORD, PostgreSQLPeer
from sqlalchemy import event, select

from svcctl.api.models import DomainStatus
from svcctl.errors import NotFound, ServiceError, UsageError
from svcctl.service.accounts import accounts, domains, keys, price_plans, roles, users
from svcctl.service.accounts.accounts import Account
from svcctl.service.accounts.domains import StoredDomain
from svcctl.service.accounts.price_plans import Feature, Kind, PricePlan, Reseller
from svcctl.service.state import schema
from svcctl.service.state.postgresql import PostgreSQL
from svcctl.service.state.sqlite import SQLite
from svcctl.service.state.store import Store


def fill(store: Store) -> None:
    """Two resellers with a plan of the same name, one of them with a preference against applications."""
    price_plans.put_reseller(store, Reseller("north"))
    price_plans.put_reseller(store, Reseller("south", include_all_available_apps=False))
    features: tuple[tuple[Kind, str, bool], ...] = (
        ("policy", "Search", True),
        ("policy", "Alerts", False),
        ("policy", "Lookups", False),
        ("application", "explorer", True),
        ("application", "reports", False),
        ("application", "dashboards", False),
    )
    for kind, name, generic in features:
        price_plans.put_feature(store, Feature(kind, name, generic))
    for reseller in ("north", "south"):
        price_plans.put_plan(store, PricePlan(reseller, "basic", 30, 10.5, ("Alerts",), ("dashboards",)))
        price_plans.put_plan(store, PricePlan(reseller, "trial"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "state.db")
    fill(made)
    yield made
    made.close()


def create(store: Store, name: str = "acme", plan: str = "basic", **fields: Any) -> StoredDomain:
    return domains.create(store, "north", {"name": name, "plan": plan, **fields})


def refusal(call: Callable[[], object]) -> tuple[int | None, str]:
    with pytest.raises(ServiceError) as caught:
        call()
    return caught.value.code, caught.value.message


def test_a_new_domain_is_active_and_has_its_full_name(store: Store) -> None:
    assert create(store).to_json() == {
        "name": "acme@north",
        "plan": "basic",
        "time": 30.0,
        "volume": 10.5,
        "status": "Active",
    }


def test_the_tail_may_be_given_and_is_the_same_domain(store: Store) -> None:
    assert create(store, "acme@north").name == "acme@north"
    assert refusal(lambda: create(store, "acme")) == (122, "domain acme@north already exists")


def test_two_resellers_may_have_domains_of_the_same_name(store: Store) -> None:
    create(store)
    domains.create(store, "south", {"name": "acme", "plan": "trial"})
    assert [one.name for one in domains.list_domains(store, "north")] == ["acme@north"]
    assert [one.name for one in domains.list_domains(store, "south")] == ["acme@south"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("acme@south", "domain name 'acme@south' must end in @north"),
        ("acme@", "domain name 'acme@' must end in @north"),
        ("@north", "invalid domain name '': use a-z, 0-9, '.', '_' and '-', and start with a letter or digit"),
        ("Acme", "invalid domain name 'Acme': use a-z, 0-9, '.', '_' and '-', and start with a letter or digit"),
        ("a b", "invalid domain name 'a b': use a-z, 0-9, '.', '_' and '-', and start with a letter or digit"),
        ("-a", "invalid domain name '-a': use a-z, 0-9, '.', '_' and '-', and start with a letter or digit"),
        ("a/b", "invalid domain name 'a/b': use a-z, 0-9, '.', '_' and '-', and start with a letter or digit"),
        ("acme\n", "invalid domain name 'acme\n': use a-z, 0-9, '.', '_' and '-', and start with a letter or digit"),
        ("é", "invalid domain name 'é': use a-z, 0-9, '.', '_' and '-', and start with a letter or digit"),
        ("a" * 59, f"domain name '{'a' * 59}@north' has 65 characters, more than 64"),
    ],
)
def test_a_name_is_checked_in_its_full_form(store: Store, name: str, message: str) -> None:
    assert refusal(lambda: create(store, name)) == (121, message)


def test_the_length_of_a_name_counts_the_tail(store: Store) -> None:
    assert len(create(store, "a" * 58).name) == 64


@pytest.mark.parametrize(
    ("plan", "fields", "code", "message"),
    [
        ("gold", {}, 123, "reseller 'north' has no plan 'gold'"),
        ("trial", {"time": 1}, 124, "plan 'trial' does not accept time"),
        ("trial", {"volume": 1}, 128, "plan 'trial' does not accept volume"),
        ("basic", {"time": 31}, 124, "time must be more than 0 and at most 30 in plan 'basic', not 31"),
        ("basic", {"time": 0}, 124, "time must be more than 0 and at most 30 in plan 'basic', not 0"),
        ("basic", {"volume": -1}, 128, "volume must be more than 0 and at most 10.5 in plan 'basic', not -1"),
        (
            "basic",
            {"volume": float("nan")},
            128,
            "volume must be more than 0 and at most 10.5 in plan 'basic', not nan",
        ),
        ("basic", {"time": "1"}, 125, "time must be a number"),
        ("basic", {"time": True}, 125, "time must be a number"),
        ("", {}, 125, "plan must be text"),
        (None, {}, 125, "plan is missing"),
        (7, {}, 125, "plan must be text"),
        ("basic", {"name": None}, 125, "name is missing"),
    ],
)
def test_a_domain_must_fit_its_plan(store: Store, plan: Any, fields: dict[str, Any], code: int, message: str) -> None:
    body = {"name": "acme", "plan": plan, **fields}
    assert refusal(lambda: domains.create(store, "north", body)) == (code, message)
    assert domains.list_domains(store, "north") == []


def test_time_and_volume_are_the_plans_unless_given(store: Store) -> None:
    assert (create(store, "a", time=14).time, create(store, "b", volume=0.5).volume) == (14.0, 0.5)
    assert create(store, "c", "trial").to_json() == {"name": "c@north", "plan": "trial", "status": "Active"}


def applications_of(store: Store, domain: StoredDomain) -> tuple[str, ...]:
    with store.reading() as connection:
        return domains.available(connection, domain, "application")


def test_the_plans_applications_and_the_generic_ones_are_activated(store: Store) -> None:
    domain = create(store)
    assert applications_of(store, domain) == ("dashboards", "explorer")
    price_plans.put_plan(store, PricePlan("north", "basic", 30, 10.5, ("Alerts",), ("reports",)))
    assert applications_of(store, domain) == ("dashboards", "explorer")


def test_no_application_is_activated_for_a_reseller_that_prefers_so(store: Store) -> None:
    assert applications_of(store, domains.create(store, "south", {"name": "acme", "plan": "basic"})) == ()


def test_an_application_that_is_removed_is_not_available_any_more(store: Store) -> None:
    domain = create(store)
    price_plans.remove_feature(store, "application", "dashboards")
    assert applications_of(store, domain) == ("explorer",)


def test_available_policies_are_those_of_the_plan_and_the_generic_ones(store: Store) -> None:
    domain = create(store)
    with store.reading() as connection:
        assert domains.available(connection, domain, "policy") == ("Alerts", "Search")


def test_a_domain_of_the_providers_own_has_everything(store: Store) -> None:
    domains.put_provider_domain(store, "local")
    with store.reading() as connection:
        domain = domains.find(connection, "local")
        assert domains.available(connection, domain, "policy") == ("Alerts", "Lookups", "Search")
        assert domains.available(connection, domain, "application") == ("dashboards", "explorer", "reports")
    assert domain.to_json() == {"name": "local", "status": "Active"}


# Every state with every operation

OPERATIONS: dict[str, Callable[[Store, str, str], Any]] = {
    "get": lambda store, reseller, name: domains.get(store, reseller, name)[0],
    "enable": domains.enable,
    "disable": domains.disable,
    "delete": domains.delete,
    "create": lambda store, reseller, name: domains.create(store, reseller, {"name": name, "plan": "trial"}),
}
NO_SUCH = (106, "no domain acme@north")
EXISTS = (122, "domain acme@north already exists")
TRANSITIONS = [
    (None, "get", NO_SUCH),
    (None, "enable", NO_SUCH),
    (None, "disable", NO_SUCH),
    (None, "delete", NO_SUCH),
    (None, "create", "Active"),
    ("Active", "get", "Active"),
    ("Active", "enable", (117, "domain acme@north is already enabled")),
    ("Active", "disable", "Disabled"),
    ("Active", "delete", "Deleted"),
    ("Active", "create", EXISTS),
    ("Disabled", "get", "Disabled"),
    ("Disabled", "enable", "Active"),
    ("Disabled", "disable", (117, "domain acme@north is already disabled")),
    ("Disabled", "delete", "Deleted"),
    ("Disabled", "create", EXISTS),
    ("Pending", "get", "Pending"),
    ("Pending", "enable", (118, "domain acme@north is pending and cannot be enabled")),
    ("Pending", "disable", (118, "domain acme@north is pending and cannot be disabled")),
    ("Pending", "delete", "Deleted"),
    ("Pending", "create", EXISTS),
    ("Deleted", "get", NO_SUCH),
    ("Deleted", "enable", NO_SUCH),
    ("Deleted", "disable", NO_SUCH),
    ("Deleted", "delete", NO_SUCH),
    ("Deleted", "create", "Active"),
]


def put_into(store: Store, state: str | None) -> None:
    if state is None:
        return
    create(store)
    if state == "Deleted":
        domains.delete(store, "north", "acme")
    else:
        domains.set_status(store, "acme@north", DomainStatus(state))


@pytest.mark.parametrize("name", ["acme", "acme@north"])
@pytest.mark.parametrize(("state", "operation", "outcome"), TRANSITIONS)
def test_every_operation_in_every_state_does_this(
    store: Store, state: str | None, operation: str, outcome: str | tuple[int, str], name: str
) -> None:
    put_into(store, state)
    if isinstance(outcome, tuple):
        before = domains.list_all(store)
        assert refusal(lambda: OPERATIONS[operation](store, "north", name)) == outcome
        assert domains.list_all(store) == before
        return
    assert OPERATIONS[operation](store, "north", name).status == outcome
    remaining = [domain.status for domain in domains.list_domains(store, "north")]
    assert remaining == ([] if outcome == "Deleted" else [outcome])


def test_the_transitions_are_complete() -> None:
    states = [None, *DomainStatus]
    assert {(state, operation) for state, operation, _ in TRANSITIONS} == {
        (state, operation) for state in states for operation in OPERATIONS
    }


@pytest.mark.parametrize("operation", ["get", "enable", "disable", "delete"])
def test_a_domain_of_another_reseller_does_not_exist(store: Store, operation: str) -> None:
    create(store)
    assert refusal(lambda: OPERATIONS[operation](store, "south", "acme@north")) == NO_SUCH


def test_deletion_is_logical(store: Store) -> None:
    domain = create(store)
    domains.delete(store, "north", "acme")
    with store.reading() as connection:
        domains_ = schema.domains.c
        query = select(domains_.id, domains_.name, domains_.status).where(domains_.deleted_at.is_not(None))
        rows = connection.execute(query).all()
    assert rows == [(domain.id, "acme@north", "Active")]


# Users and access


def access(store: Store, name: str = "acme@north") -> tuple[int | None, str] | None:
    try:
        with store.reading() as connection:
            domain = domains.find(connection, name).id
        domains.require_access(store, domain)
    except ServiceError as error:
        return error.code, error.message
    return None


def test_a_domain_without_an_owner_cannot_be_accessed(store: Store) -> None:
    create(store)
    assert access(store) == (119, "domain acme@north has no owner and cannot be accessed until one is assigned")
    users.assign(store, "acme@north", "ann@acme.example", "OWNER")
    assert access(store) is None


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ("Active", None),
        ("Disabled", (127, "domain acme@north is disabled and cannot be accessed")),
        ("Pending", (118, "domain acme@north is pending and cannot be accessed")),
    ],
)
def test_access_depends_on_the_state(store: Store, state: str, outcome: tuple[int, str] | None) -> None:
    create(store)
    users.assign(store, "acme@north", "ann@acme.example", "OWNER")
    domains.set_status(store, "acme@north", DomainStatus(state))
    assert access(store) == outcome


def test_the_role_owner_becomes_admin_and_the_mark_of_an_owner(store: Store) -> None:
    create(store)
    users.assign(store, "acme@north", "ann@acme.example", "OWNER")
    users.assign(store, "acme@north", "bob@acme.example", "USER")
    _, members = domains.get(store, "north", "acme")
    assert [user.to_json() for user in members] == [
        {"email": "ann@acme.example", "role": "ADMIN", "owner": True, "lastDomain": True},
        {"email": "bob@acme.example", "role": "USER", "owner": False, "lastDomain": True},
    ]


def test_a_user_has_a_role_of_the_domain(store: Store) -> None:
    create(store)
    users.assign(store, "acme@north", "ann@acme.example", "OWNER")
    account = accounts.issue(store, domain="acme@north", administrator=True)
    roles.create(store, account, "acme@north", {"name": "Reader", "policies": [], "applications": "*"})
    users.assign(store, "acme@north", "bob@acme.example", "Reader")
    with pytest.raises(NotFound, match=r"^acme@north has no role 'reader'$") as caught:
        users.assign(store, "acme@north", "bob@acme.example", "reader")
    assert caught.value.hint == "did you mean 'Reader'?"
    _, members = domains.get(store, "north", "acme")
    assert [(user.email, user.role) for user in members] == [
        ("ann@acme.example", "ADMIN"),
        ("bob@acme.example", "Reader"),
    ]


def test_another_owner_takes_the_mark_over(store: Store) -> None:
    create(store)
    users.assign(store, "acme@north", "ann@acme.example", "OWNER")
    users.assign(store, "acme@north", "bob@acme.example", "OWNER")
    _, members = domains.get(store, "north", "acme")
    assert [(user.email, user.role, user.owner) for user in members] == [
        ("ann@acme.example", "ADMIN", False),
        ("bob@acme.example", "ADMIN", True),
    ]


def test_the_first_user_must_be_the_owner_and_an_owner_stays_one(store: Store) -> None:
    create(store)
    with pytest.raises(UsageError, match=r"^the first user of acme@north must be its owner$"):
        users.assign(store, "acme@north", "ann@acme.example", "USER")
    users.assign(store, "acme@north", "ann@acme.example", "OWNER")
    with pytest.raises(UsageError, match=r"^ann@acme\.example is the owner of acme@north$"):
        users.assign(store, "acme@north", "ann@acme.example", "USER")


def test_deleting_a_domain_deletes_the_users_who_have_no_other(store: Store) -> None:
    create(store, "one")
    create(store, "two")
    for name, email in (("one", "ann@x.example"), ("two", "ann@x.example"), ("one", "bob@x.example")):
        role = "USER" if email.startswith("bob") else "OWNER"
        users.assign(store, f"{name}@north", email, role)
    _, members = domains.get(store, "north", "one")
    assert [(user.email, user.last_domain) for user in members] == [("ann@x.example", False), ("bob@x.example", True)]
    domains.delete(store, "north", "one")
    with store.reading() as connection:
        assert connection.execute(select(schema.users.c.email)).all() == [("ann@x.example",)]
        assert connection.execute(select(schema.members.c.user)).all() == [("ann@x.example",)]


def test_the_keys_of_a_deleted_domain_do_not_open_the_next_of_its_name(store: Store) -> None:
    create(store)
    accounts.put(store, Account("key", "secret", "token", "acme@north", administrator=True))
    domains.delete(store, "north", "acme")
    create(store)
    assert (accounts.with_key(store, "key"), accounts.with_token(store, "token")) == (None, None)


def test_a_key_needs_a_domain(store: Store) -> None:
    assert refusal(lambda: accounts.put(store, Account("key", "secret", None, "elsewhere"))) == (
        106,
        "no domain elsewhere",
    )


def test_an_account_of_a_deleted_domain_is_refused_while_another_has_the_name(store: Store) -> None:
    create(store)
    users.assign(store, "acme@north", "ann@acme.example", "OWNER")
    account = accounts.issue(store, domain="acme@north", administrator=True)
    domains.delete(store, "north", "acme")
    create(store)
    users.assign(store, "acme@north", "eve@acme.example", "OWNER")
    assert account.domain_id is not None
    deleted = (106, "domain acme@north is deleted")
    assert refusal(lambda: domains.require_access(store, account.domain_id or 0)) == deleted
    assert refusal(lambda: roles.list_roles(store, account, "acme")) == deleted
    assert keys.list_keys(store) == []


# Plans and resellers


def test_a_plan_refers_to_what_exists(store: Store) -> None:
    with pytest.raises(UsageError, match=r"^no reseller 'west'$"):
        price_plans.put_plan(store, PricePlan("west", "basic"))
    with pytest.raises(UsageError, match=r"^no policy 'Sorting'$"):
        price_plans.put_plan(store, PricePlan("north", "new", policies=("Search", "Sorting")))
    assert [(plan.reseller, plan.name) for plan in price_plans.plans(store)] == [
        ("north", "basic"),
        ("north", "trial"),
        ("south", "basic"),
        ("south", "trial"),
    ]


def test_what_is_in_use_is_not_removed(store: Store) -> None:
    create(store)
    with pytest.raises(UsageError, match=r"^plan 'basic' of reseller 'north' still has domains$"):
        price_plans.remove_plan(store, "north", "basic")
    with pytest.raises(UsageError, match=r"^reseller 'north' still has plans$"):
        price_plans.remove_reseller(store, "north")
    domains.delete(store, "north", "acme")
    price_plans.remove_plan(store, "north", "basic")
    price_plans.remove_plan(store, "north", "trial")
    with pytest.raises(UsageError, match=r"^reseller 'north' still has domains \(deleted ones count\)$"):
        price_plans.remove_reseller(store, "north")
    with pytest.raises(NotFound, match=r"^no plan 'basic' of reseller 'north'$"):
        price_plans.remove_plan(store, "north", "basic")


def test_a_reseller_goes_with_its_accounts(store: Store) -> None:
    accounts.put(store, Account("key", "secret", None, "", reseller="south"))
    price_plans.remove_plan(store, "south", "basic")
    price_plans.remove_plan(store, "south", "trial")
    price_plans.remove_reseller(store, "south")
    assert (price_plans.resellers(store), accounts.with_key(store, "key")) == ([Reseller("north")], None)


# A long life, compared with a model

NAMES = st.sampled_from(["a", "b", "c@north"])
EMAILS = st.sampled_from(["ann@x.example", "bob@x.example", "eve@x.example"])


class Life(RuleBasedStateMachine):
    """The model: the state of each domain, and the users of each with the owner first."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.store = self.opened()
        fill(self.store)
        self.states: dict[str, str] = {}
        self.users: dict[str, list[str]] = {}

    def opened(self) -> Store:
        database = SQLite(Path(self.directory.name) / "state.db")
        hasten = "pragma synchronous = off"  # a model needs no power cut
        event.listen(database.engine, "connect", lambda driver, _: driver.execute(hasten))
        return Store(database)

    def teardown(self) -> None:
        self.store.close()
        self.directory.cleanup()

    def attempt(self, call: Callable[[], Any]) -> int | None:
        try:
            call()
        except ServiceError as error:
            return error.code
        return None

    @rule(name=NAMES)
    def create(self, name: str) -> None:
        full = name.partition("@")[0] + "@north"
        code = self.attempt(lambda: create(self.store, name))
        assert code == (122 if full in self.states else None)
        self.states.setdefault(full, "Active")
        self.users.setdefault(full, [])

    @rule(name=NAMES, goal=st.sampled_from(["Active", "Disabled"]))
    def move(self, name: str, goal: str) -> None:
        full = name.partition("@")[0] + "@north"
        operation = domains.enable if goal == "Active" else domains.disable
        code = self.attempt(lambda: operation(self.store, "north", name))
        expected = {None: 106, "Pending": 118, goal: 117}.get(self.states.get(full))
        assert code == expected
        if expected is None:
            self.states[full] = goal

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        full = name.partition("@")[0] + "@north"
        code = self.attempt(lambda: domains.delete(self.store, "north", name))
        assert code == (None if full in self.states else 106)
        self.states.pop(full, None)
        self.users.pop(full, None)

    @rule(name=NAMES)
    def keep_waiting(self, name: str) -> None:
        full = name.partition("@")[0] + "@north"
        code = self.attempt(lambda: domains.set_status(self.store, full, DomainStatus.PENDING))
        assert code == (None if full in self.states else 106)
        if full in self.states:
            self.states[full] = "Pending"

    @rule(name=NAMES, email=EMAILS)
    def own(self, name: str, email: str) -> None:
        full = name.partition("@")[0] + "@north"
        code = self.attempt(lambda: users.assign(self.store, full, email, "OWNER"))
        assert code == (None if full in self.states else 106)
        if full in self.users:
            self.users[full] = [email, *(other for other in self.users[full] if other != email)]

    @invariant()
    def the_store_is_as_the_model(self) -> None:
        found = domains.list_all(self.store)
        assert {domain.name: str(domain.status) for domain, _ in found} == self.states
        assert {domain.name: {member.email for member in members} for domain, members in found} == {
            name: set(users) for name, users in self.users.items()
        }
        assert {domain.name: [one.email for one in members if one.owner] for domain, members in found} == {
            name: users[:1] for name, users in self.users.items()
        }
        with self.store.reading() as connection:
            users = set(connection.scalars(select(schema.users.c.email)))
        assert users == {email for users in self.users.values() for email in users}

    @invariant()
    def whoever_may_not_come_in_is_told_why(self) -> None:
        for name, state in self.states.items():
            expected = {"Pending": 118, "Disabled": 127}.get(state) or (None if self.users[name] else 119)
            assert (access(self.store, name) or (None,))[0] == expected


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=8, stateful_step_count=25, deadline=None)


@pytest.mark.slow
def test_a_life_in_postgresql_is_the_same(postgresql_peer: PostgreSQLPeer) -> None:
    class OnServer(Life):
        def opened(self) -> Store:
            return Store(PostgreSQL(postgresql_peer.fresh_schema(), password=PASSWORD))

    run_state_machine_as_test(OnServer, settings=settings(max_examples=12, stateful_step_count=40, deadline=None))
