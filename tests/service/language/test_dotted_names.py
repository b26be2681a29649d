"""Columns with dots in their names: on every engine, in every clause, and the answers to names that do not exist."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from support.engines import EVERY_ENGINE, rows_of_engines
from support.events import store

from svcctl.service.engines import Engine
from svcctl.service.language import Column, Plan, QueryError, Table, Type

LOGS = Table(
    "web.logs",
    (
        Column("eventdate", Type.TIMESTAMP),
        Column("req", Type.STR),
        Column("req.status", Type.INT4),
        Column("req.hdr.host", Type.STR),
        Column("err.code", Type.INT8),
        Column("user", Type.STR),
        Column("a.b c", Type.STR),
    ),
)
ROWS = (
    (datetime(2024, 1, 1, 10, 0), "text", 200, "a.example", 1, "ann", "x"),
    (datetime(2024, 1, 1, 10, 1), None, 500, "b.example", 2, "bob", "y"),
    (datetime(2024, 1, 1, 10, 2), None, 404, "a.example", None, None, None),
)

Compiled = Callable[..., Plan]


@pytest.fixture(scope="module", params=rows_of_engines())
def logs(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with EVERY_ENGINE[request.param]() as engine:
        store(engine.stored, LOGS.name, LOGS.columns, list(ROWS))
        yield engine


@pytest.mark.parametrize(
    ("query", "names", "rows"),
    [
        ("select req.status, req", ["req.status", "req"], [(200, "text"), (500, None), (404, None)]),
        ("where req.status >= 404, req.hdr.host -> 'a.' select err.code", ["err.code"], [(None,)]),
        ("select req.status + 1.5 as req.more where req.more < 300 select req.more", ["req.more"], [(201.5,)]),
        (
            "group by req.hdr.host as host.name select max(req.status) as n.max, sum(err.code) as n.s where n.max > 1",
            ["host.name", "n.max", "n.s"],
            [("a.example", 404, 1), ("b.example", 500, 2)],
        ),
        (
            "group by req.hdr.host select 1 as one where `req.hdr.host` -> 'b'",
            ["req.hdr.host", "one"],
            [("b.example", 1)],
        ),
        ("where `a.b c` = 'y' select `a.b c` as a.b", ["a.b"], [("y",)]),
    ],
)
def test_a_dotted_name_is_a_column_in_every_clause(
    logs: Engine, compiled: Compiled, query: str, names: list[str], rows: list[tuple[Any, ...]]
) -> None:
    plan = compiled(f"from web.logs {query}", catalog={LOGS.name: LOGS}, dialect=logs.reader.dialect)
    assert [column.name for column in plan.columns] == names
    with logs.reader.stream(plan) as stream:
        read = [row for batch in stream for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]
    assert read == rows


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("select req.statsu", "did you mean 'req.status'?"),
        ("where req.hdr = 'x'", "columns of req.hdr are req.hdr.host"),
        ("where user = err", "columns of err are err.code"),
        ("select req.body.id", 'a member of JSON text in req: jsonparse(req, "body.id")'),
        ("where req.hdr.host.a.b = 1", 'a member of JSON text in req.hdr.host: jsonparse(req.hdr.host, "a.b")'),
        ("select logs.user", "a column is named without its table: user"),
        ("where web.logs.req.status = 1", "a column is named without its table: req.status"),
        (
            "where req.hdr.host = www.example.com",
            'text is in quotes: "www.example.com"; in a shell, put the query in single quotes',
        ),
        ("select req.hdr.host.lower()", "write lower(req.hdr.host)"),
        ("select user.split('.', 1)", 'write split(user, ".", 1)'),
        ("select user.to_lower()", "write lower(…)"),
    ],
)
def test_an_unknown_dotted_name_is_answered_with_what_it_may_mean(compiled: Compiled, query: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        compiled(f"from web.logs {query}", catalog={LOGS.name: LOGS})
    assert caught.value.hint == hint
