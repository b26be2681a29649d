"""Loads by several processes at once: readers see whole loads only, also of loaders that are killed."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from multiprocessing.connection import Connection, wait
from typing import Any

import pyarrow as pa
import pytest
from support.places import Place, hdfs, local, s3

from svcctl.service.engines.duckdb.lake import LakeEngine
from svcctl.service.engines.lake import Lake
from svcctl.service.language import Column, Type, compile, parse

COLUMNS = (Column("eventdate", Type.TIMESTAMP), Column("load", Type.INT8), Column("n", Type.INT8))
ROWS = 12_000
DAY = 86_400_000_000
FIRST = 19_723 * DAY  # 2024-01-01
PROCESSES = 4

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["svcctl.service.engines.duckdb.lake", "svcctl.service.engines.lake"])


def opened(place: Place | tuple[str, dict[str, str]]) -> LakeEngine:
    target, environment = place if isinstance(place, tuple) else (place.target, place.environment)
    return LakeEngine(Lake(f"{target}/tables", environment))


def rows(load: int) -> pa.RecordBatchReader:
    """A load over three days."""
    dates = pa.array([FIRST + number * 3 * DAY // ROWS for number in range(ROWS)], pa.timestamp("us"))
    loads = pa.repeat(pa.scalar(load, pa.int64()), ROWS)
    return pa.table({"eventdate": dates, "load": loads, "n": pa.arange(0, ROWS)}).to_reader(8192)


def keep_loading(place: tuple[str, dict[str, str]], first: int, count: int, told: Connection) -> None:
    """Make so many loads, and tell the number of each when it is stored."""
    with opened(place) as engine:
        for load in range(first, first + count):
            engine.append("t", rows(load))
            told.send(load)


def loads(engine: LakeEngine) -> dict[int, tuple[int, int]]:
    """The rows of each load, and the sum of their n."""
    given: dict[str, Any] = {"start": datetime(2023, 1, 1, tzinfo=UTC), "end": None, "now": datetime.now(UTC)}
    query = parse("from t group by load select count() as c, sum(n) as s")
    with engine.stream(compile(query, engine.tables(), dialect=engine.dialect, **given)) as stream:
        return {
            load: (count, total)
            for batch in stream
            for load, count, total in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        }


WHOLE = (ROWS, ROWS * (ROWS - 1) // 2)


@pytest.fixture(
    params=["tmp_path", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ceph_peer", "hdfs_peer"))]
)
def place(request: pytest.FixtureRequest) -> Place:
    kinds: dict[str, Callable[[Any], Place]] = {"tmp_path": local, "ceph_peer": s3, "hdfs_peer": hdfs}
    return kinds[request.param](request.getfixturevalue(request.param))


@pytest.fixture
def engine(place: Place) -> Iterator[LakeEngine]:
    with opened(place) as engine:
        engine.create("t", COLUMNS)
        yield engine


def test_readers_see_whole_loads_of_four_processes_and_none_is_lost(place: Place, engine: LakeEngine) -> None:
    count, seen = 3, 0
    readers, processes = [], []
    for number in range(PROCESSES):
        reader, writer = _context.Pipe(duplex=False)
        arguments = ((place.target, dict(place.environment)), number * count, count, writer)
        processes.append(_context.Process(target=keep_loading, args=arguments, daemon=True))
        readers.append(reader)
        processes[-1].start()
        writer.close()
    compacted = 0
    while any(process.is_alive() for process in processes):
        found = loads(engine)
        assert set(found.values()) <= {WHOLE}
        seen += 1
        if len(found) >= PROCESSES and not compacted:
            compacted, _ = engine.compact("t")
    assert loads(engine) == dict.fromkeys(range(PROCESSES * count), WHOLE)
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    assert seen > 1
    assert compacted


@pytest.mark.slow
def test_a_loader_that_is_killed_leaves_whole_loads_and_each_that_was_told(place: Place, engine: LakeEngine) -> None:
    told: set[int] = set()
    dice = random.Random(7)
    deadline = time.monotonic() + 8
    kills = 0
    while kills < 12 and time.monotonic() < deadline:
        reader, writer = _context.Pipe(duplex=False)
        arguments = ((place.target, dict(place.environment)), kills * 1000, 1000, writer)
        process = _context.Process(target=keep_loading, args=arguments, daemon=True)
        process.start()
        writer.close()
        wait([reader], timeout=10)  # its first load is stored
        time.sleep(dice.uniform(0, 0.15))  # anywhere in the next ones
        process.kill()
        process.join()
        kills += 1
        with reader:
            try:
                while True:
                    told.add(reader.recv())
            except EOFError:
                pass
        found = loads(engine)
        assert set(found.values()) == {WHOLE}
        assert told <= set(found)
        assert len(found) <= len(told) + kills
    assert kills >= 2
