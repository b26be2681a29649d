"""Lost events are noticed at the next start, kept until they are confirmed, and end the jobs that had read them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from svcctl.errors import ServiceError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.language.types import Column, Type
from svcctl.service.state.events_record import EventsRecord, Loss, loss_of
from svcctl.service.state.store import Store

COLUMNS = (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8))
HERE = "here"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "state.db")) as store:
        yield store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "events.duckdb"


def load(engine: DuckDBEngine, table: str, events: int) -> None:
    dates = [datetime(2024, 1, 1) + timedelta(seconds=n) for n in range(events)]
    rows = pa.table({"eventdate": pa.array(dates, pa.timestamp("us")), "n": list(range(events))})
    create = None if table in engine.tables() else COLUMNS
    engine.append(table, rows.to_reader(), create=create)


def started(store: Store, path: Path, *, adopts: bool = False) -> Loss | None:
    """The loss that a start reports."""
    with DuckDBEngine(path) as engine:
        record = EventsRecord(store, HERE, engine)
        new = record.check(adopts=adopts)
        assert new is None or record.loss is not None
        return new


def wal(path: Path) -> Path:
    return Path(f"{path}.wal")


def killed(store: Store, path: Path, work: Callable[[DuckDBEngine], None], *, recorded: bool = True) -> None:
    """Work on a file that is then as a killed service leaves it, with its write-ahead log."""
    left = path.with_name("left")
    with DuckDBEngine(path) as engine:
        record = EventsRecord(store, HERE, engine)
        record.check()
        work(engine)
        if recorded:
            record.record()
        left.mkdir()
        for file in (path, wal(path)):
            if file.exists():
                shutil.copy(file, left)
    for file in path.parent.glob("events*"):
        file.unlink()
    for file in left.iterdir():
        file.rename(path.parent / file.name)
    left.rmdir()


def two_loads(engine: DuckDBEngine) -> None:
    load(engine, "t", 3)
    load(engine, "t", 4)


def nothing(path: Path) -> None:
    return


def without_file(path: Path) -> None:
    path.unlink()
    wal(path).unlink()


def without_log(path: Path) -> None:
    wal(path).unlink()


def empty_log(path: Path) -> None:
    wal(path).write_bytes(b"")


def cut_log(path: Path) -> None:
    wal(path).write_bytes(wal(path).read_bytes()[:-5])


def other_file(path: Path) -> None:
    without_file(path)
    with DuckDBEngine(path) as engine:
        load(engine, "t", 100)


@pytest.mark.parametrize(
    ("damage", "whole", "lost"),
    [
        (nothing, None, None),
        (without_file, True, {"before": 2, "t": 7}),
        (other_file, True, {"before": 2, "t": 7}),
        (without_log, False, {"t": 7}),
        (empty_log, False, {"t": 7}),
        (cut_log, False, {"t": 4}),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_start_says_which_events_are_lost_until_that_is_confirmed(
    store: Store, path: Path, damage: Callable[[Path], None], whole: bool | None, lost: dict[str, int] | None
) -> None:
    with DuckDBEngine(path) as engine:
        load(engine, "before", 2)
    killed(store, path, two_loads)
    damage(path)
    loss = started(store, path)
    assert (loss and loss.whole, loss and loss.tables) == (whole, lost)
    assert started(store, path) is None
    kept = loss_of(store, HERE)
    assert (kept and kept.tables) == lost
    with DuckDBEngine(path) as engine:
        record = EventsRecord(store, HERE, engine)
        record.check()
        assert record.confirm() == loss
        assert record.confirm() is None
    assert loss_of(store, HERE) is None


def test_an_older_copy_of_the_file_lacks_what_came_after_it(store: Store, path: Path, tmp_path: Path) -> None:
    with DuckDBEngine(path) as engine:
        load(engine, "t", 3)
    shutil.copy(path, tmp_path / "backup")
    assert started(store, path) is None
    with DuckDBEngine(path) as engine:
        record = EventsRecord(store, HERE, engine)
        load(engine, "t", 5)
        load(engine, "u", 1)
        record.record()
    shutil.copy(tmp_path / "backup", path)
    loss = started(store, path)
    assert loss is not None
    assert (loss.whole, loss.tables) == (False, {"t": 5, "u": 1})
    assert loss.text.startswith("the service's file of events lacks the latest changes; lost before 20")
    assert loss.text.endswith("(UTC): t (5 events), u (1 event)")


def drop(engine: DuckDBEngine) -> None:
    engine.drop("t")


def drop_and_load(engine: DuckDBEngine) -> None:
    engine.drop("t")
    load(engine, "t", 1)


def trim(engine: DuckDBEngine) -> None:
    engine.trim("t", most=1, since=datetime(2000, 1, 1))


def remove(engine: DuckDBEngine) -> None:
    engine.remove_before("t", datetime(2025, 1, 1))


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("work", [two_loads, drop, drop_and_load, trim, remove])
def test_a_kill_at_any_moment_is_no_loss(
    store: Store, path: Path, work: Callable[[DuckDBEngine], None], recorded: bool
) -> None:
    with DuckDBEngine(path) as engine:
        load(engine, "t", 3)
    assert started(store, path) is None
    killed(store, path, work, recorded=recorded)
    assert started(store, path) is None


def test_the_first_start_a_new_state_and_a_reset_miss_nothing(store: Store, path: Path, tmp_path: Path) -> None:
    assert started(store, path) is None
    with DuckDBEngine(path) as engine:
        load(engine, "t", 3)
    with closing(Store(tmp_path / "other.db")) as other:
        assert started(other, path) is None
    assert started(store, path) is None
    path.unlink()
    assert started(store, path, adopts=True) is None
    assert started(store, path) is None


def test_losses_that_are_not_confirmed_add_up(store: Store, path: Path) -> None:
    for table, events in (("t", 3), ("u", 1)):
        with DuckDBEngine(path) as engine:
            load(engine, table, events)
            EventsRecord(store, HERE, engine).check()
        path.unlink()
        assert started(store, path) is not None
    loss = loss_of(store, HERE)
    assert loss is not None
    assert loss.tables == {"t": 3, "u": 1}


@pytest.mark.parametrize("damage", [without_file, other_file, without_log])
def test_marks_of_lost_events_are_refused_also_when_as_many_are_loaded_again(
    store: Store, path: Path, damage: Callable[[Path], None]
) -> None:
    marks = []

    def work(engine: DuckDBEngine) -> None:
        two_loads(engine)
        marks.append(engine.mark("t"))

    killed(store, path, work)
    damage(path)
    started(store, path)
    with DuckDBEngine(path) as engine:
        load(engine, "t", 20)
        for mark in marks:
            with pytest.raises(ServiceError):
                engine.check_mark("t", mark)
        engine.check_mark("t", engine.mark("t"))


def test_marks_of_the_events_that_are_left_go_on(store: Store, path: Path) -> None:
    with DuckDBEngine(path) as engine:
        load(engine, "t", 3)
        before = engine.mark("t")
    killed(store, path, lambda engine: load(engine, "t", 4))
    without_log(path)
    assert started(store, path) is not None
    with DuckDBEngine(path) as engine:
        engine.check_mark("t", before)
        load(engine, "t", 5)
        engine.check_mark("t", before)
        assert engine.trim("t", most=1, since=datetime(2000, 1, 1)) == 1
        engine.check_mark("t", before)


def test_tables_that_always_grow_are_recorded_less_often(store: Store, path: Path) -> None:
    with DuckDBEngine(path) as engine:
        record = EventsRecord(store, HERE, engine)
        record.check()
        load(engine, "t", 1)
        record.record()
        load(engine, "t", 1)
        record.record_in_time()
    path.unlink()
    loss = started(store, path)
    assert loss is not None
    assert loss.tables == {"t": 1}
