"""A small table of events, and a way to run a query over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from support.engines import EVERY_ENGINE, rows_of_engines
from support.events import store

from svcctl.service.engines import Engine
from svcctl.service.engines.duckdb.dialect import DuckDBDialect
from svcctl.service.language import Column, Plan, Table, Type, compile, parse

Run = Callable[..., list[tuple[Any, ...]]]

START = datetime(2024, 1, 1, tzinfo=UTC)
NOW = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
EVENTS = Table(
    "web.data",
    (
        Column("eventdate", Type.TIMESTAMP),
        Column("user", Type.STR),
        Column("status", Type.INT4),
        Column("bytes", Type.INT8),
        Column("seconds", Type.FLOAT8),
        Column("ok", Type.BOOL),
        Column("ip", Type.IP4),
        Column('odd "name`', Type.STR),
    ),
)
ROWS = (
    (datetime(2024, 1, 1, 10, 3), "cid", 500, 9223372036854775807, None, False, 3232235777, "x"),
    (datetime(2024, 1, 1, 10, 0), "ann", 200, 10, 1.5, True, 167772161, "it's"),
    (datetime(2024, 1, 1, 10, 1), "Bob", 404, 20, 2.5, True, 167772162, "a\\b"),
    (datetime(2024, 1, 1, 10, 12), "ann", 404, 0, 9.5, False, 167772161, "x"),
    (datetime(2024, 1, 1, 10, 13), None, None, None, 0, None, None, None),
)
"""Stored one by one, so that they are not in the order of their dates."""


def plan(query: str, **options: Any) -> Plan:
    given: dict[str, Any] = {"dialect": DuckDBDialect(), "start": START, "end": None, "now": NOW} | options
    catalog = given.pop("catalog", {EVENTS.name: EVENTS})
    return compile(parse(query), catalog, **given)


ROWS_OF_ENGINES = rows_of_engines("lake")
"""The lake runs in DuckDB as the first engine does, so what it adds is in the conformance tests."""


@pytest.fixture(scope="session", params=ROWS_OF_ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with EVERY_ENGINE[request.param]() as engine:
        for row in ROWS:
            store(engine.stored, EVENTS.name, EVENTS.columns, [row])
        yield engine


@pytest.fixture
def run(engine: Engine) -> Run:
    """The rows of a query."""

    def rows(query: str, **options: Any) -> list[tuple[Any, ...]]:
        with engine.reader.stream(plan(query, dialect=engine.reader.dialect, **options)) as stream:
            return [
                row for batch in stream for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
            ]

    return rows


@pytest.fixture
def compiled() -> Callable[..., Plan]:
    return plan
