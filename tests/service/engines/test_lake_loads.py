"""Loads by several processes at once: readers see whole loads only, also of loaders that are killed."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from typing import Any

import pyarrow as pa
import pytest
from support.engines import new_lake
from support.places import Place, hdfs, local, s3

from svcctl.service.engines.duckdb.lake_reader import LakeReader
from svcctl.service.engines.lake.shared_tables import LakeTables
from svcctl.service.language import Column, Type, compile, parse

COLUMNS = (Column("eventdate", Type.TIMESTAMP), Column("load", Type.INT8), Column("n", Type.INT8))
ROWS = 12_000
DAY = 86_400_000_000
FIRST = 19_723 * DAY  # 2024-01-01

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["svcctl.service.engines.duckdb.lake_reader", "svcctl.service.engines.lake"])


def opened(place: Place | tuple[str, dict[str, str]]) -> LakeTables:
    target, environment = place if isinstance(place, tuple) else (place.target, place.environment)
    return new_lake(f"{target}/tables", environment)


def rows(load: int) -> pa.RecordBatchReader:
    """A load over three days."""
    dates = pa.array([FIRST + number * 3 * DAY // ROWS for number in range(ROWS)], pa.timestamp("us"))
    loads = pa.repeat(pa.scalar(load, pa.int64()), ROWS)
    return pa.table({"eventdate": dates, "load": loads, "n": pa.arange(0, ROWS)}).to_reader(8192)


def keep_loading(place: tuple[str, dict[str, str]], loads: range, told: Connection, more: Event) -> None:
    """Make loads, after the second only when there may be more, and tell the number of each when it is stored."""
    with opened(place) as lake:
        for load in loads:
            if load == loads[2]:
                more.wait()
            lake.append("t", rows(load))
            told.send(load)


def loads(lake: LakeTables) -> dict[int, tuple[int, int]]:
    """The rows of each load, and the sum of their n."""
    given: dict[str, Any] = {"start": datetime(2023, 1, 1, tzinfo=UTC), "end": None, "now": datetime.now(UTC)}
    query = parse("from t group by load select count() as c, sum(n) as s")
    reader = LakeReader(lake)
    with reader.stream(compile(query, lake.tables(), dialect=reader.dialect, **given)) as stream:
        return {
            load: (count, total)
            for batch in stream
            for load, count, total in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        }


WHOLE = (ROWS, ROWS * (ROWS - 1) // 2)


@pytest.fixture(params=["tmp_path", "ceph_peer", "hdfs_peer"])
def place(request: pytest.FixtureRequest) -> Place:
    kinds: dict[str, Callable[[Any], Place]] = {"tmp_path": local, "ceph_peer": s3, "hdfs_peer": hdfs}
    return kinds[request.param](request.getfixturevalue(request.param))


@pytest.fixture
def lake(place: Place) -> Iterator[LakeTables]:
    with opened(place) as lake:
        lake.create("t", COLUMNS)
        yield lake


def start_loading(place: Place, loads: range, more: Event) -> tuple[BaseProcess, Connection]:
    """A process that loads, and where it tells of its loads."""
    reader, writer = _context.Pipe(duplex=False)
    arguments = ((place.target, dict(place.environment)), loads, writer, more)
    process = _context.Process(target=keep_loading, args=arguments, daemon=True)
    process.start()
    writer.close()
    return process, reader


@pytest.mark.slow
def test_readers_see_whole_loads_of_four_processes_and_none_is_lost(place: Place, lake: LakeTables) -> None:
    count, compacted, more = 3, 0, _context.Event()
    started = [start_loading(place, range(first, first + count), more) for first in range(0, 4 * count, count)]
    processes = [process for process, _ in started]
    while any(process.is_alive() for process in processes):
        found = loads(lake)
        assert set(found.values()) <= {WHOLE}
        if len(found) == 4 * (count - 1) and not more.is_set():
            more.set()
            compacted, _ = lake.compact("t")
    assert loads(lake) == dict.fromkeys(range(4 * count), WHOLE)
    assert [process.exitcode for process in processes] == [0] * 4
    assert compacted


@pytest.mark.slow
def test_a_loader_that_is_killed_leaves_whole_loads_and_each_that_was_told(place: Place, lake: LakeTables) -> None:
    told: set[int] = set()
    dice = random.Random(7)
    deadline = time.monotonic() + 8
    kills = 0
    while kills < 12 and time.monotonic() < deadline:
        more = _context.Event()
        more.set()
        process, reader = start_loading(place, range(kills * 1000, kills * 1000 + 1000), more)
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
        found = loads(lake)
        assert set(found.values()) == {WHOLE}
        assert told <= set(found)
        assert len(found) <= len(told) + kills
    assert kills >= 2
