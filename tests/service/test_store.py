"""The store: its file, its transactions, and what other processes see of them."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, insert, select
from sqlalchemy.exc import IntegrityError, ResourceClosedError

from svcctl.errors import UsageError
from svcctl.service.schema import queries
from svcctl.service.store import Store, is_there, replace


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def store(file: Path) -> Iterator[Store]:
    store = Store(file)
    yield store
    store.close()


def save(connection: Connection, id: str, text: str = "from t") -> None:
    connection.execute(insert(queries).values(id=id, text=text))


def saved(store: Store) -> list[str]:
    with store.reading() as connection:
        return list(connection.scalars(select(queries.c.id).order_by(queries.c.id)))


def test_the_file_is_its_owners_alone_and_survives_a_power_cut(store: Store, file: Path) -> None:
    assert oct(file.stat().st_mode & 0o777) == "0o600"
    cursor = store._connection.connection.cursor()
    settings = ("journal_mode", "synchronous", "foreign_keys")
    assert [cursor.execute(f"pragma {name}").fetchone()[0] for name in settings] == ["wal", 2, 1]


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


def test_nobody_else_writes_in_a_transaction(store: Store, file: Path) -> None:
    with closing(sqlite3.connect(file, timeout=0)) as other:
        with store.transaction(), pytest.raises(sqlite3.OperationalError, match=r"^database is locked$"):
            other.execute("insert into queries (id, text) values ('theirs', 'from t')")
        other.execute("insert into queries (id, text) values ('theirs', 'from t')")
        other.commit()
    assert saved(store) == ["theirs"]


def test_reading_sees_one_state_of_the_file(store: Store, file: Path) -> None:
    with closing(Store(file)) as other, store.reading() as connection:
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
        f"state file {file} cannot be opened: file is not a database",
        "restore it from a backup, or start over with 'svcctl service reset'",
    )


def test_a_file_that_cannot_be_changed_is_no_reason_to_start_over(store: Store, file: Path) -> None:
    with closing(sqlite3.connect(file)) as other:
        other.execute("update alembic_version set version_num = '0001'")
        other.commit()
    with store.transaction(), pytest.raises(UsageError) as caught:
        Store(file, lock_seconds=0.01)
    assert (caught.value.message, caught.value.hint) == (
        f"state file {file} cannot be opened: database is locked",
        None,
    )
