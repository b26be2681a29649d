"""Rendering the rows of any engine: DuckDB's own in one statement, every other's batches in a DuckDB aside."""

from __future__ import annotations

import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from support.engines import ENGINES, EVERY_ENGINE, PlainEngine, PlainStream, new_lake, rows_of_engines
from support.events import store

from svcctl.errors import ServiceError
from svcctl.service.engines import Engine, Stream
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.engines.duckdb.lake_reader import LakeReader
from svcctl.service.language import Column, Plan, Type, compile, parse
from svcctl.service.rendering import ENCODERS, Rendering, stream

COLUMNS = tuple(Column("eventdate" if type_ is Type.TIMESTAMP else f"a {type_}", type_) for type_ in Type)
FIRST = datetime(2024, 1, 1)
TEXTS = ("plain", "", None, 'a "b", c\nd', "<é&\t😀>", "_x0041_\x01")
QUERIES = (
    "from t",
    "from t where `a int4` > 500 limit 700 offset 30",
    "from t select `a str` as b, `a ip4`, `a float8` / 0 as nothing, eventdate as eventdate",
    "from t group every 10m by `a bool`, `a ip4` select count() as n, sum(`a int8`) as s, last(`a str`) as l",
    "from t group select count() as n, round(avg(`a float8`), 6) as mean, collectdistinct(`a ip4`) as ips",
    "from t where false",
)


def event(n: int) -> tuple[object, ...]:
    numbers = (n, n * 2**40, n / 7 if n % 5 else None)
    values: dict[Type, object] = {
        Type.TIMESTAMP: FIRST + timedelta(seconds=n * 7 % 20_000, milliseconds=n % 1000),
        Type.STR: TEXTS[n % len(TEXTS)],
        **dict(zip((Type.INT4, Type.INT8, Type.FLOAT8), numbers, strict=True)),
        Type.BOOL: (True, False, None)[n % 3],
        Type.IP4: None if n % 11 == 0 else n * 1_000_003 % 2**32,
    }
    return tuple(values[column.type] for column in COLUMNS)


Filled = Callable[[str], Engine]


@pytest.fixture(scope="module")
def filled() -> Iterator[Filled]:
    """Makes an engine by its name: each with the same 20,000 events, stored in two parts that overlap."""
    with ExitStack() as stack:

        @cache
        def made(name: str) -> Engine:
            engine = stack.enter_context(EVERY_ENGINE[name]())
            for part in (range(10_000, 20_000), range(10_000)):
                store(engine.stored, "t", COLUMNS, map(event, part))
            return engine

        yield made


@pytest.fixture
def engines(filled: Filled) -> dict[str, Engine]:
    return {name: filled(name) for name in ENGINES}


@pytest.fixture
def plain(filled: Filled) -> Engine:
    return filled("plain")


def plan(engine: Engine, query: str = "from t", **options: Any) -> Plan:
    return compile(
        parse(query),
        engine.stored.tables(),
        dialect=engine.reader.dialect,
        start=FIRST.replace(tzinfo=UTC),
        end=None,
        now=datetime(2024, 5, 6, tzinfo=UTC),
        **options,
    )


def body(engine: Engine, query: str, mode: str, **options: Any) -> bytes:
    made = plan(engine, query)
    with ENCODERS[mode](made.columns, Rendering("c1d", 0)) as encoder:
        with stream(engine.reader, made, encoder.expressions(), **options) as batches:
            chunks = [bytes(encoder.chunk(batch)) for batch in batches]
        return b"".join([encoder.head(), *chunks, *encoder.tail()])


@pytest.mark.parametrize("mode", [mode for mode in ENCODERS if mode != "xls"])
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("name", rows_of_engines("plain")[1:-1])
def test_the_bytes_are_the_same_whichever_engine_runs_the_query(
    filled: Filled, name: str, query: str, mode: str
) -> None:
    expected = body(filled("duckdb"), query, mode)
    assert body(filled(name), query, mode) == expected
    assert len(expected) > 10 or mode == "json/simple"


@pytest.mark.parametrize("skip", [0, 1, 8192, 19_999, 20_000, 30_000])
def test_the_first_rows_can_be_left_out(engines: dict[str, Engine], skip: int) -> None:
    whole = body(engines["duckdb"], "from t", "json/simple").splitlines(keepends=True)
    for engine in engines.values():
        assert body(engine, "from t", "json/simple", skip=skip).splitlines(keepends=True) == whole[skip:]


def test_the_date_of_a_dated_plan_is_its_last_column(engines: dict[str, Engine]) -> None:
    for engine in engines.values():
        dated = plan(engine, "from t select `a int4` limit 3", dated=True)
        with stream(engine.reader, dated, ["c0 + 1", "epoch_ms(c1)"]) as batches:
            [batch] = batches
        assert [column.to_pylist() for column in batch.columns] == [
            [1, 17_144, 14_287],
            [1704067200000, 1704067201143, 1704067202286],
        ]


def test_a_failure_of_the_engine_is_the_failure_of_the_rendered_rows(plain: Engine) -> None:
    class Failing(PlainEngine):
        def stream(self, plan: Plan, **options: Any) -> Any:
            return _Failing(super().stream(plan, **options))

    both = Failing()
    engine = Engine(both, both)
    store(engine.stored, "t", COLUMNS, map(event, range(20_000)))
    failing = stream(engine.reader, plan(engine), ["c0"], rows_per_batch=100)
    with failing as batches, pytest.raises(ServiceError, match=r"^the disk is gone$") as caught:
        list(batches)
    assert caught.value.code == 500


class _Failing:
    """A stream that breaks after its first batch."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __enter__(self) -> Stream:
        self._stream: PlainStream = self._inner.__enter__()
        return self

    def __exit__(self, *failure: Any) -> None:
        self._inner.__exit__(*failure)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield next(iter(self._stream))
        raise ServiceError("the disk is gone", code=500)

    def interrupt(self, reason: Any = None) -> None:
        self._stream.interrupt(reason)


def _interrupted(batches: Stream, before: Callable[[Stream], object]) -> ServiceError:
    reason = ServiceError("enough", code=503)
    before(batches)
    thread = threading.Thread(target=batches.interrupt, args=[reason])
    thread.start()
    thread.join()
    with pytest.raises(ServiceError) as caught:
        list(batches)
    return caught.value


BEFORE: Sequence[Callable[[Stream], object]] = (lambda batches: None, lambda batches: next(iter(batches)))


@pytest.mark.parametrize("before", BEFORE, ids=["at the start", "after a batch"])
def test_an_interrupt_reaches_the_engine(plain: Engine, before: Callable[[Stream], object]) -> None:
    with stream(plain.reader, plan(plain), ["c0"], rows_per_batch=10) as batches:
        assert _interrupted(batches, before).message == "enough"


def test_an_expression_that_fails_is_one_line(engines: dict[str, Engine]) -> None:
    for engine in engines.values():
        with stream(engine.reader, plan(engine), ["error('boom')"]) as batches, pytest.raises(ServiceError) as caught:
            list(batches)
        assert (caught.value.message, caught.value.code) == ("boom", None)


@pytest.fixture(scope="module", params=["own", "shared"])
def large(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Tables of 80 MB, one ordered and one not, in an engine that may use 150 MB."""
    folder = tmp_path_factory.mktemp("large")
    text = b64encode(Random(1).randbytes(1_500_000)).decode()
    with ExitStack() as opened:
        if request.param == "own":
            both = opened.enter_context(DuckDBEngine(folder / "events.duckdb", memory_limit="150MB"))
            engine = Engine(both, both)
        else:
            lake = opened.enter_context(new_lake(f"{folder}/tables", memory_limit="150MB", spill=folder / "spill"))
            engine = Engine(lake, LakeReader(lake))
        for name, first in (("ordered", 0), ("unordered", 1), ("unordered", 0), ("ordered", 20)):
            numbers = range(first, 40, 2) if name == "unordered" else range(first, first + 20)
            events = [(FIRST + timedelta(seconds=n), f"{n} {text[n:]}") for n in numbers]
            store(engine.stored, name, (COLUMNS[0], Column("s", Type.STR)), events)
        yield engine


@pytest.mark.parametrize(
    ("table", "mode"),
    [
        ("ordered", "csv"),
        *(pytest.param("unordered", mode, marks=pytest.mark.slow) for mode in ENCODERS),
    ],
)
def test_rows_that_do_not_fit_in_memory_together_are_read_in_every_format(large: Engine, table: str, mode: str) -> None:
    whole = plan(large, f"from {table}")
    with (
        ENCODERS[mode](whole.columns, Rendering("cid", 0)) as encoder,
        stream(large.reader, whole, encoder.expressions()) as batches,
    ):
        sizes = [(batch.num_rows, len(encoder.chunk(batch))) for batch in batches]
        assert sum(rows for rows, _ in sizes) == 40
        assert max(size for _, size in sizes) < 7_000_000
        assert next(encoder.tail()) or mode in ("json/simple", "json/simple/compact", "csv", "tsv")
