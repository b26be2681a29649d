"""A small table of events, and a way to run a query over it through DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import duckdb
import pytest

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
    ("ev", 'we"b'),
)
ROWS = """
    ('2024-01-01 10:03:00', 'cid',  500, 9223372036854775807, null, false, 3232235777, 'x'),
    ('2024-01-01 10:00:00', 'ann',  200, 10, 1.5,  true,  167772161, 'it''s'),
    ('2024-01-01 10:01:00', 'Bob',  404, 20, 2.5,  true,  167772162, 'a\\b'),
    ('2024-01-01 10:12:00', 'ann',  404, 0,  9.5,  false, 167772161, 'x'),
    ('2024-01-01 10:13:00', null,   null, null, 0, null,  null, null)
"""


def plan(query: str, **options: Any) -> Plan:
    given: dict[str, Any] = {"start": START, "end": None, "now": NOW} | options
    catalog = given.pop("catalog", {EVENTS.name: EVENTS})
    return compile(parse(query), catalog, **given)


@pytest.fixture(scope="session")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1, "memory_limit": "400MB"}) as connection:
        connection.execute("CREATE SCHEMA ev")
        connection.execute(
            'CREATE TABLE ev."we""b" (eventdate TIMESTAMP, "user" VARCHAR, status INTEGER, bytes BIGINT,'
            ' seconds DOUBLE, ok BOOLEAN, ip UINTEGER, "odd ""name`" VARCHAR)'
        )
        connection.execute('INSERT INTO ev."we""b" VALUES' + ROWS)
        yield connection


@pytest.fixture
def run(database: duckdb.DuckDBPyConnection) -> Run:
    """The rows of a query."""

    def rows(query: str, **options: Any) -> list[tuple[Any, ...]]:
        return database.execute(plan(query, **options).sql("duckdb")).fetchall()

    return rows


@pytest.fixture
def compiled() -> Callable[..., Plan]:
    return plan
