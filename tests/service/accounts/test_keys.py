"""The names, the expiry and the last use of API keys, in both databases."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from peers.postgresql import PASSWORD
from support.state import read_only

from svcctl.errors import NotFound, UsageError
from svcctl.service.accounts import accounts, keys, seed
from svcctl.service.accounts.accounts import Account
from svcctl.service.accounts.keys import LOG_SECONDS, WRITE_SECONDS, Key, KeyUses
from svcctl.service.state.database import StateUnavailable
from svcctl.service.state.postgresql import PostgreSQL
from svcctl.service.state.store import Store

DAY = 86_400_000


@pytest.fixture(params=["sqlite", "postgresql_peer"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        place: Path | PostgreSQL = tmp_path / "state.db"
    else:
        place = PostgreSQL(request.getfixturevalue(request.param).fresh_database(), password=PASSWORD)
    with closing(Store(place, fill=seed.catalog)) as made:
        yield made


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "state.db", fill=seed.catalog)) as made:
        yield made


def issue(store: Store, name: str | None, **more: Any) -> str:
    return accounts.issue(store, domain="local", name=name, **more).api_key


def listed(store: Store) -> dict[str | None, Key]:
    return {key.name: key for key in keys.list_keys(store)}


def test_a_list_says_whose_a_key_is_when_it_was_made_and_when_it_ends(store: Store) -> None:
    began = int(time.time() * 1000)
    ends = {"old": began - 1, "soon": began + 7 * DAY, "later": began + 8 * DAY, "never": None}
    for name, expires in ends.items():
        issue(store, name, expires=expires)
    accounts.issue(store, reseller="demo", name="west")
    found = listed(store)
    assert list(found) == ["west", "later", "never", "old", "soon"]
    assert {name: str(key.status) for name, key in found.items()} == {
        "west": "valid",
        "later": "valid",
        "never": "valid",
        "old": "expired",
        "soon": "expiring",
    }
    assert {name: found[name].expires for name in ends} == ends
    assert {(key.domain, key.reseller) for key in found.values()} == {("local", None), (None, "demo")}
    assert all(began - 1000 <= (key.created or 0) <= time.time() * 1000 + 1000 for key in found.values())
    assert {key.last_used for key in found.values()} == {None}


def test_a_key_that_is_stored_again_keeps_its_dates(store: Store) -> None:
    account = Account("key", "secret", "token", "local", name="before")
    accounts.put(store, account)
    uses = KeyUses(store)
    uses.note_use(account, 1_700_000_000.5)
    uses.write()
    before = listed(store)["before"]
    accounts.put(store, Account("key", "secret", "token", "local", name="after"))
    after = listed(store)["after"]
    assert (after.created, after.last_used) == (before.created, 1_700_000_000_500)


def test_a_key_is_found_and_deleted_by_its_name_or_by_itself(store: Store) -> None:
    ann, bob = issue(store, "ann"), issue(store, "bob")
    assert keys.describe(store, "ann") == f"ann ({ann}, of local)"
    uses = KeyUses(store)
    uses.note_use(accounts.with_key(store, bob) or Account("", "", None, ""), 1_700_000_000)
    uses.write()
    assert keys.describe(store, bob) == f"bob ({bob}, of local, last used 2023-11-14 22:13:20 UTC)"
    accounts.remove(store, "ann")
    accounts.remove(store, bob)
    assert listed(store) == {}
    with pytest.raises(NotFound):
        accounts.remove(store, "ann")


def test_a_key_is_not_deleted_by_a_name_that_several_have(local: Store) -> None:
    for key in ("one", "two"):
        accounts.put(local, Account(key, "secret", None, "local", name="built in"))
    with pytest.raises(UsageError) as caught:
        accounts.remove(local, "built in")
    assert caught.value.hint == "name one by its key: one, two"
    accounts.remove(local, "two")
    accounts.remove(local, "built in")
    assert listed(local) == {}


@pytest.mark.parametrize("name", ["", " ", "ann ", "a\nb", "a\x1b[31m", "\u202eann", "\udcff"])
def test_a_name_is_printable(local: Store, name: str) -> None:
    with pytest.raises(UsageError, match=r"^invalid key name"):
        issue(local, name)


def test_two_keys_do_not_get_the_same_name_nor_the_key_of_another(local: Store) -> None:
    ann = issue(local, "ann")
    for name in ("ann", ann):
        with pytest.raises(UsageError, match=r"^another key has the name"):
            issue(local, name)
    assert [key.api_key for key in keys.list_keys(local)] == [ann]


def test_the_name_of_a_deleted_key_can_be_given_again_and_the_old_key_stays_deleted(local: Store) -> None:
    old = issue(local, "ann")
    accounts.remove(local, "ann")
    new = issue(local, "ann")
    assert accounts.with_key(local, old) is None
    assert [key.api_key for key in keys.list_keys(local)] == [new]


def test_of_keys_with_one_name_that_are_created_at_once_one_is_created(tmp_path: Path, local: Store) -> None:
    barrier, refused = Barrier(4), list[str]()

    def create() -> None:
        with closing(Store(tmp_path / "state.db")) as store:
            barrier.wait()
            try:
                issue(store, "ann")
            except UsageError as error:
                refused.append(error.message)

    threads = [Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(refused), [key.name for key in keys.list_keys(local)]) == (3, ["ann"])


def test_uses_are_stored_once_a_minute_and_never_backwards(store: Store) -> None:
    ann, bob = (accounts.issue(store, domain="local", name=name) for name in ("ann", "bob"))
    now = 0.0
    uses, other = KeyUses(store, monotonic=lambda: now), KeyUses(store)

    def last() -> tuple[int | None, int | None]:
        found = listed(store)
        return found["ann"].last_used, found["bob"].last_used

    uses.note_use(ann, 100)
    uses.write_in_time()
    assert last() == (100_000, None)
    uses.note_use(ann, 101)
    uses.note_use(bob, 102)
    now = WRITE_SECONDS - 1
    uses.write_in_time()
    assert last() == (100_000, None)
    now = WRITE_SECONDS
    uses.write_in_time()
    assert last() == (101_000, 102_000)
    other.note_use(ann, 99)
    other.write()
    assert last() == (101_000, 102_000)


def test_the_use_of_a_key_that_was_deleted_is_forgotten(local: Store) -> None:
    ann = accounts.issue(local, domain="local", name="ann")
    uses = KeyUses(local)
    uses.note_use(ann, 100)
    accounts.remove(local, "ann")
    uses.write()
    assert listed(local) == {}


def test_uses_are_kept_while_the_state_cannot_be_written(local: Store) -> None:
    ann, bob = (accounts.issue(local, domain="local", name=name) for name in ("ann", "bob"))
    uses = KeyUses(local, monotonic=lambda: 0)
    uses.note_use(ann, 100)
    uses.note_use(bob, 100)
    with read_only(local):
        with pytest.raises(StateUnavailable):
            uses.write_in_time()
        uses.note_use(ann, 101)
    uses.write_in_time()
    assert {name: key.last_used for name, key in listed(local).items()} == {"ann": 101_000, "bob": 100_000}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ann", "refused a request: the key 'ann' ({}) expired on 2023-11-14 22:13:20 (UTC)"),
        (None, "refused a request: the key {} expired on 2023-11-14 22:13:20 (UTC)"),
    ],
)
def test_the_log_names_an_expired_key_once_an_hour(
    local: Store, caplog: pytest.LogCaptureFixture, name: str | None, text: str
) -> None:
    key, other = (accounts.issue(local, domain="local", name=one, expires=1_700_000_000_000) for one in (name, "other"))
    now = 0.0
    uses = KeyUses(local, monotonic=lambda: now)
    for later in (0, 1, LOG_SECONDS - 1, LOG_SECONDS):
        now = later
        uses.note_refusal(key)
    uses.note_refusal(other)
    assert caplog.messages[:-1] == [text.format(key.api_key)] * 2
    assert other.api_key in caplog.messages[-1]
