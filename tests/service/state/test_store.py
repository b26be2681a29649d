"""The store: its database, its transactions, and what other processes see of them; in SQLite and in PostgreSQL."""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from copy import copy
from pathlib import Path

import pytest
from peers.postgresql import PASSWORD, PostgreSQLPeer
from sqlalchemy import Connection, func, insert, select
from sqlalchemy.exc import IntegrityError, ResourceClosedError
from support.state import locked

from svcctl.errors import Locked, ServiceError, UsageError
from svcctl.service.state.database import STATE_AWAY, STATE_LOCKED, STATE_READ_ONLY, StateUnavailable
from svcctl.service.state.postgresql import PAUSE_SECONDS, PostgreSQL, database_of
from svcctl.service.state.schema import queries
from svcctl.service.state.sqlite import SQLite
from svcctl.service.state.store import Store, is_there, replace


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


Opened = Callable[[], Store]
"""Opens the state as another process does."""


@pytest.fixture(params=["sqlite", "postgresql_peer"])
def opened(request: pytest.FixtureRequest, file: Path) -> Iterator[Opened]:
    with ExitStack() as stack:
        if request.param == "sqlite":
            place: Path | PostgreSQL = file
        else:
            place = PostgreSQL(request.getfixturevalue(request.param).fresh_database(), password=PASSWORD)
        yield lambda: stack.enter_context(closing(Store(copy(place))))


@pytest.fixture
def store(opened: Opened) -> Store:
    return opened()


def save(connection: Connection, id: str, text: str = "from t") -> None:
    connection.execute(insert(queries).values(id=id, text=text))


def saved(store: Store) -> list[str]:
    with store.reading() as connection:
        return list(connection.scalars(select(queries.c.id).order_by(queries.c.id)))


def test_the_file_is_its_owners_alone_and_survives_a_power_cut(file: Path) -> None:
    store = Store(file)
    assert oct(file.stat().st_mode & 0o777) == "0o600"
    settings = ("journal_mode", "synchronous", "foreign_keys")
    with store.reading() as connection:
        assert [connection.exec_driver_sql(f"pragma {name}").scalar() for name in settings] == ["wal", 2, 1]
    store.close()


def test_a_transaction_is_all_or_nothing(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.transaction() as connection:
        save(connection, "lost")
        raise ZeroDivisionError
    with store.transaction() as connection:
        save(connection, "one")
        save(connection, "two")
    assert saved(store) == ["one", "two"]


def test_a_refused_statement_takes_the_whole_transaction_along(store: Store) -> None:
    with pytest.raises(IntegrityError), store.transaction() as connection:
        save(connection, "one")
        save(connection, "one")
    assert saved(store) == []


def test_nobody_else_writes_in_a_transaction(store: Store, opened: Opened) -> None:
    """Each counts what is there and then adds to it, which is right only one after the other."""

    def work(store: Store) -> None:
        for _ in range(20):
            with store.transaction() as connection:
                save(connection, f"{connection.scalar(select(func.count()).select_from(queries)):02}")

    threads = [threading.Thread(target=work, args=(each,)) for each in (store, opened(), opened())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert saved(store) == [f"{number:02}" for number in range(60)]


def test_reading_sees_one_state_of_the_database(store: Store, opened: Opened) -> None:
    other = opened()
    with store.reading() as connection:
        count = select(func.count()).select_from(queries)
        before = connection.scalar(count)
        with other.transaction() as theirs:
            save(theirs, "new")
        assert (before, connection.scalar(count)) == (0, 0)
    assert saved(store) == ["new"]


def test_threads_take_turns(store: Store) -> None:
    def work(name: str) -> None:
        for number in range(20):
            with store.transaction() as connection:
                save(connection, f"{name}{number:02}")

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert saved(store) == [f"{name}{number:02}" for name in "abcd" for number in range(20)]


def test_threads_read_while_another_process_keeps_one_from_writing(file: Path) -> None:
    store = Store(SQLite(file, lock_seconds=30))
    with store.transaction() as connection:
        save(connection, "before")
    with locked(store):
        writing = threading.Thread(target=lambda: add(store, "after"))
        writing.start()
        began = time.monotonic()
        assert [saved(store) for _ in range(20)] == [["before"]] * 20
        assert time.monotonic() - began < 5
        assert writing.is_alive()
    writing.join(10)
    assert saved(store) == ["after", "before"]
    store.close()


def add(store: Store, id: str) -> None:
    with store.transaction() as connection:
        save(connection, id)


def test_a_store_is_closed_behind_the_transaction_of_another_thread(store: Store, opened: Opened) -> None:
    with store.transaction() as connection:
        closer = threading.Thread(target=store.close)
        closer.start()
        closer.join(0.1)
        save(connection, "one")
    closer.join(10)
    assert saved(opened()) == ["one"]


def test_a_closed_store_answers_nothing(store: Store) -> None:
    store.close()
    with pytest.raises(ResourceClosedError), store.reading():
        pass


def test_replace_adds_a_row_or_changes_the_one_with_its_key(store: Store) -> None:
    with store.transaction() as connection:
        save(connection, "other", "from b")
        replace(connection, queries, id="mine", text="from a")
        replace(connection, queries, id="mine", text="from c")
        rows = connection.execute(select(queries.c.id, queries.c.text).order_by(queries.c.id)).all()
        there = [is_there(connection, queries.c.id == "mine", queries.c.text == text) for text in ("from a", "from c")]
    assert rows == [("mine", "from c"), ("other", "from b")]
    assert there == [False, True]


def test_a_damaged_file_is_refused_in_one_line(file: Path) -> None:
    file.write_text("not a database at all, not a database at all")
    with pytest.raises(UsageError) as caught:
        Store(file)
    assert (caught.value.message, caught.value.hint) == (
        f"the state in file {file} cannot be read: file is not a database",
        "restore it from a backup",
    )


def test_a_file_that_cannot_be_changed_is_no_reason_to_start_over(file: Path) -> None:
    store = Store(file)
    with closing(sqlite3.connect(file)) as other:
        other.execute("update alembic_version set version_num = '0000'")
        other.commit()
    with store.transaction(), pytest.raises(StateUnavailable) as caught:
        Store(SQLite(file, lock_seconds=0.01))
    assert (caught.value.failure, caught.value.detail, caught.value.advice) == (
        STATE_LOCKED,
        f"the state in file {file} cannot be written: database is locked",
        "end the process that holds the lock",
    )
    store.close()


def test_what_is_remembered_is_asked_again_after_each_change_and_never_when_it_is_not_there(
    store: Store, opened: Opened
) -> None:
    asked = 0

    def text(connection: Connection) -> str | None:
        nonlocal asked
        asked += 1
        return connection.scalar(select(queries.c.text).where(queries.c.id == "one"))

    def remembered() -> tuple[str | None, int]:
        return store.cached_value("text of one", text), asked

    assert (remembered(), remembered()) == ((None, 1), (None, 2))
    with store.transaction() as connection:
        save(connection, "one", "from a")
    assert (remembered(), remembered()) == (("from a", 3), ("from a", 3))
    with store.transaction() as connection:
        replace(connection, queries, id="one", text="from b")
    assert (remembered(), remembered()) == (("from b", 4), ("from b", 4))
    with opened().transaction() as connection:
        replace(connection, queries, id="one", text="from c")
    assert (remembered(), remembered()) == (("from c", 5), ("from c", 5))


# What only a server does


def in_postgresql(peer: PostgreSQLPeer, url: str | None = None) -> Store:
    return Store(PostgreSQL(url or peer.fresh_database(), password=PASSWORD))


def test_a_database_that_goes_away_is_an_error_until_it_comes_back(postgresql_peer: PostgreSQLPeer) -> None:
    with closing(in_postgresql(postgresql_peer)) as store:

        def read(connection: Connection) -> str | None:
            return connection.scalar(select(queries.c.text).where(queries.c.id == "one"))

        with store.transaction() as connection:
            save(connection, "one")
        assert store.cached_value("one", read) == "from t"
        with postgresql_peer.down():
            for ask in (lambda: saved(store), lambda: store.cached_value("one", read), lambda: saved(store)):
                with pytest.raises(StateUnavailable, match=r"^the service cannot reach its state$") as caught:
                    ask()
                assert caught.value.failure is STATE_AWAY
                assert re.match(r"the state in postgresql://127.0.0.1:\d+/\w+ cannot be reached: ", caught.value.detail)
        threading.Event().wait(PAUSE_SECONDS)
        assert store.cached_value("one", read) == "from t"
        with store.transaction() as connection:
            save(connection, "two")
        assert saved(store) == ["one", "two"]


@pytest.mark.slow
def test_a_process_that_hangs_in_a_transaction_keeps_nobody_from_writing(postgresql_peer: PostgreSQLPeer) -> None:
    url = postgresql_peer.fresh_database()
    with closing(in_postgresql(postgresql_peer, url)) as hanging, closing(in_postgresql(postgresql_peer, url)) as other:
        with pytest.raises(StateUnavailable), hanging.transaction() as connection:
            save(connection, "never")
            with other.transaction() as theirs:
                save(theirs, "theirs")
            save(connection, "later")
        assert saved(hanging) == ["theirs"]


def test_several_processes_make_the_tables_once(postgresql_peer: PostgreSQLPeer) -> None:
    url = postgresql_peer.fresh_database()
    stores: list[Store] = []
    threads = [threading.Thread(target=lambda: stores.append(in_postgresql(postgresql_peer, url))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [saved(store) for store in stores] == [[]] * 4
    for store in stores:
        store.close()


def test_tables_are_not_upgraded_under_an_older_service(postgresql_peer: PostgreSQLPeer) -> None:
    url = postgresql_peer.fresh_database()
    database = PostgreSQL(url, password=PASSWORD)
    with closing(Store(database)) as store, store.reading() as connection:
        driver = connection.connection.driver_connection
        database.mark_version(driver, "0002")
        other = PostgreSQL(url, password=PASSWORD)
        with pytest.raises(Locked) as caught:
            other.keep_copy(driver, "9999")
    assert caught.value.message.endswith("needs an upgrade, and processes of an older svcctl use it (1)")


def test_tables_of_an_older_version_are_upgraded_and_keep_their_keys(postgresql_peer: PostgreSQLPeer) -> None:
    url = postgresql_peer.fresh_database()
    in_postgresql(postgresql_peer, url).close()
    with postgresql_peer.connection(url) as connection:
        connection.execute("insert into accounts (api_key, api_secret) values ('key', 'secret')")
        for column in ("name", "created", "expires", "last_used"):
            connection.execute(f"alter table accounts drop column {column}")
        connection.execute("update alembic_version set version_num = '0002'")
    in_postgresql(postgresql_peer, url).close()
    with postgresql_peer.connection(url) as connection:
        columns = "api_key, api_secret, administrator, name, created, expires, last_used"
        assert connection.execute(f"select {columns} from accounts").fetchall() == [
            ("key", "secret", False, None, None, None, None)
        ]


def test_tables_of_other_programs_are_left_alone(postgresql_peer: PostgreSQLPeer) -> None:
    url = postgresql_peer.fresh_database()
    with postgresql_peer.connection(url) as connection:
        connection.execute("create table accounts (id integer)")
    with pytest.raises(UsageError) as caught:
        in_postgresql(postgresql_peer, url)
    assert (caught.value.message, caught.value.hint) == (
        f"the state {url.replace('svcctl@', '')} has tables of other programs",
        "give svcctl a database of its own",
    )


def test_a_text_that_the_database_cannot_hold_is_refused(postgresql_peer: PostgreSQLPeer) -> None:
    store, refused = in_postgresql(postgresql_peer), pytest.raises(ServiceError, match="cannot hold this value")
    with closing(store), refused, store.transaction() as connection:
        save(connection, "nul \0")


def test_the_password_comes_from_a_file_and_is_in_no_message(postgresql_peer: PostgreSQLPeer, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    url = postgresql_peer.fresh_database()
    database = database_of(url, str(file), may_hold_password=True)
    Store(database).close()
    file.write_text("wr0ng\n")
    with pytest.raises(StateUnavailable) as caught:
        Store(database)
    assert "password authentication failed" in caught.value.detail
    assert "wr0ng" not in caught.value.detail
    assert caught.value.advice == "set SVCCTL_SERVICE_STATE_PASSWORD_FILE to a file with its password, or PGPASSWORD"
    file.write_text(PASSWORD)
    threading.Event().wait(PAUSE_SECONDS)
    Store(database).close()
    with pytest.raises(StateUnavailable) as caught:
        in_postgresql(postgresql_peer, url.replace("/state_", "/none_"))
    assert caught.value.advice == "create it on the server, or check its name"


def test_a_user_who_may_not_create_tables_is_told(postgresql_peer: PostgreSQLPeer) -> None:
    url = postgresql_peer.fresh_database()
    with postgresql_peer.connection(url) as connection:
        connection.execute("create role reader login password 'x'")
        connection.execute("revoke create on schema public from public")
    with pytest.raises(StateUnavailable) as caught:
        Store(PostgreSQL(url.replace("svcctl@", "reader@"), password="x"))
    assert (caught.value.failure, caught.value.detail, caught.value.advice) == (
        STATE_READ_ONLY,
        f"the state in {url.replace('svcctl@', '')} cannot be written: permission denied for schema public",
        "let the user create tables there: grant create on schema public to …",
    )


ADDRESSES = {
    **dict.fromkeys(
        ["postgresql://u:se@cret@h/db", "postgresql://u:se/cret@h/db", "postgresql://u:secret@h:x@y/db"],
        (
            True,
            "the address of the state is not a URL of PostgreSQL",
            "write postgresql://user@host:5432/name; in a password, @ is %40, / is %2F and % is %25",
        ),
    ),
    "postgresql://u:secret@h/db": (
        False,
        "--state has a password, which everybody on this machine can see in the list of processes",
        "set PGPASSWORD or SVCCTL_SERVICE_STATE_PASSWORD_FILE, or the whole URL as SVCCTL_SERVICE_STATE",
    ),
}


@pytest.mark.parametrize("url", ADDRESSES)
def test_an_address_that_is_refused_is_not_repeated(url: str) -> None:
    may_hold_password, message, hint = ADDRESSES[url]
    with pytest.raises(UsageError) as caught:
        database_of(url, None, may_hold_password=may_hold_password)
    assert (caught.value.message, caught.value.hint) == (message, hint)
