"""The example queries of the language's notes: what the service answers equals what SQL, written by hand, says.

The reference is a database of its own with the same events: the demo's, made again for the window that is asked for,
and tables of every case that a query tells apart, which the service loads from files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import duckdb
import pytest
from support.clients import client_of
from support.engines import EVERY_ENGINE, rows_of_engines
from support.events import selected
from support.shells import Shell

from svcctl.api.client import Client
from svcctl.api.query import QueryRequest
from svcctl.service import rendering
from svcctl.service.engines import ARROW, Engine
from svcctl.service.engines.duckdb.demo_events import SELECTS
from svcctl.service.engines.duckdb.demo_events import made as made_events
from svcctl.service.language import Column, compile, parse
from svcctl.service.loading import demo
from svcctl.service.rendering import DateStyle
from svcctl.service.rendering.rows import CSV

OF_ARROW = {arrow: type_ for type_, arrow in ARROW.items()}
START = datetime(2024, 1, 31, 10, tzinfo=UTC)
HOURS = 3
MADE = {
    "web.activity": """
        SELECT TIMESTAMP '2024-01-31 09:50:00' + to_seconds(i * 7) AS eventdate,
            ['a.example', 'b.example', NULL][1 + i % 3] AS domain,
            ['ann', 'bob'][1 + i // 100 % 2] AS username,
            CASE WHEN i % 11 <> 0 THEN i * 37 % 1000 END AS responseTime
        FROM range(2000) r(i)""",
    "counter": """
        SELECT TIMESTAMP '2024-01-31 10:00:00' + to_milliseconds(i * 1007) AS eventdate,
            ['table', 'view', NULL][1 + i % 3] AS kind,
            ['a', 'b', 'c', 'A', NULL][1 + i % 5] AS object
        FROM range(300) r(i)""",
    "T": """
        SELECT TIMESTAMP '2024-01-31 10:00:00' + to_seconds(i) AS eventdate,
            ['v1', 'v2', 'v3', NULL][1 + i % 4] AS f1,
            ['v5', '3', '8.5', NULL, '21', 'x', ''][1 + i % 7] AS f2,
            ['x', 'y', 'z', NULL][1 + i // 50 % 4] AS f3,
            ['an ErrorCode 7', 'errorcode', 'error code', NULL][1 + i % 4] AS rawMessage,
            ['Ann', 'ANN', 'bob', NULL][1 + i // 3 % 4] AS "user",
            ([200, 399, 400, 503, NULL][1 + i % 5])::INTEGER AS status
        FROM range(700) r(i)""",
    "siem.web": """
        SELECT TIMESTAMP '2024-01-31 10:00:00' + to_seconds(i) AS eventdate,
            ['dns 8.8.8.8 asked', 'dns 8.8.8.80', '18.8.8.8', '(8.8.8.8)', NULL, '8.8.8.8'][1 + i % 6] AS message
        FROM range(40) r(i)""",
}

EXAMPLES: dict[str, str] = {
    "from demo.ecommerce.data select eventdate, protocol, statusCode, method": """
        SELECT epoch_ms(eventdate), protocol, statusCode, method FROM "demo.ecommerce.data" ORDER BY eventdate""",
    "from demo.ecommerce.data where statusCode = 404"
    " group every 10m by method, clientIpAddress every 10m select count() as myCount": """
        SELECT epoch_ms(eventdate) // 600000 * 600000 AS bucket, method, ip(clientIpAddress), count(*)
        FROM "demo.ecommerce.data" WHERE statusCode = 404
        GROUP BY bucket, method, clientIpAddress ORDER BY bucket, method, clientIpAddress""",
    "from web.activity group every 30m by domain, username every 30m"
    " select count() as count, max(responseTime) as responseTime": """
        SELECT epoch_ms(eventdate) // 1800000 * 1800000 AS bucket, domain, username, count(*), max(responseTime)
        FROM "web.activity" WHERE eventdate >= '2024-01-31 10:00:00' AND eventdate < '2024-01-31 13:00:00'
        GROUP BY bucket, domain, username ORDER BY ALL""",
    'from auth.all where result = "FAIL" group by user select count() as n where n > 1': """
        SELECT "user", count(*) AS n FROM "auth.all" WHERE result = 'FAIL' GROUP BY "user" HAVING n > 1 ORDER BY 1""",
    'from counter where kind = "table", object in {"a","b"} group by object select max(eventdate) as last': """
        SELECT object, epoch_ms(max(eventdate)) FROM counter WHERE kind = 'table' AND object IN ('a', 'b')
        GROUP BY object ORDER BY object""",
    'from T where (has(f1,"v1","v2") and not (f2 = "v5")) group by f3 select avg(f2) as agg where agg > 5 select *': """
        SELECT f3, avg(TRY_CAST(f2 AS DOUBLE)) AS agg FROM T
        WHERE (f1 LIKE '%v1%' OR f1 LIKE '%v2%') AND f2 IS NOT NULL AND f2 <> 'v5'
        GROUP BY f3 HAVING agg > 5 ORDER BY f3""",
    'from T where weakhas(rawMessage, "errorCode") select lower(user) as u,'
    ' ifthenelse(status >= 400, "bad", "good") as verdict group by u, verdict select count() as n': """
        SELECT lower("user") AS u, CASE WHEN status >= 400 THEN 'bad' ELSE 'good' END AS verdict, count(*)
        FROM T WHERE rawMessage ILIKE '%errorcode%' GROUP BY ALL ORDER BY u, verdict""",
    'from siem.web where toktains(message, "8.8.8.8") limit 10 pragma comment.user:"ops"': r"""
        SELECT epoch_ms(eventdate), message FROM "siem.web"
        WHERE regexp_matches(message, '(^|[^0-9A-Za-z])8\.8\.8\.8($|[^0-9A-Za-z])') ORDER BY eventdate LIMIT 10""",
    "from T where false": "SELECT epoch_ms(eventdate), * EXCLUDE (eventdate) FROM T WHERE false",
}


@pytest.fixture(scope="module")
def client(service: Shell) -> Iterator[Client]:
    """A client of a service that has the made tables beside its demo."""
    with duckdb.connect() as connection:
        for name, select in MADE.items():
            connection.execute(f"COPY ({select}) TO '{service.home}/made.parquet'")
            loaded = service("service", "load", "made.parquet", "--table", name)
            assert loaded.returncode == 0, loaded.stderr
    with client_of(service) as client:
        yield client


def window(query: str) -> tuple[datetime, datetime]:
    """What is asked for: hours of yesterday in a demo table, which lives with the calendar, or those of a made one."""
    if not query.startswith(("from demo.", "from auth.")):
        return START, START + timedelta(hours=HOURS)
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    # Few log in, and at night nobody fails twice: a whole day has somebody.
    hours = 24 if query.startswith("from auth.") else HOURS
    return now - timedelta(days=1), now - timedelta(days=1) + timedelta(hours=hours)


def reference(query: str, start: datetime, end: datetime) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute(
            "SET TimeZone = 'UTC';"
            "CREATE MACRO ip(x) AS concat_ws('.', x >> 24, (x >> 16) & 255, (x >> 8) & 255, x & 255)"
        )
        for name, select in MADE.items():
            connection.execute(f'CREATE TABLE "{name}" AS {select}')
        for table, columns in demo.TABLES.items():
            names = ", ".join(f'"{column.name}"' for column in columns)
            events = SELECTS[table].format(start=int(start.timestamp()), end=int(end.timestamp()))
            connection.execute(f'CREATE TABLE "{table}" AS SELECT {names} FROM ({events})')
        return connection.execute(EXAMPLES[query]).fetchall()


@pytest.mark.parametrize("query", EXAMPLES)
def test_an_example_answers_as_sql_does(client: Client, query: str) -> None:
    start, end = window(query)
    asked = QueryRequest(query=query, from_=int(start.timestamp()), to=int(end.timestamp()), mode="json/simple/compact")
    with client.query(asked) as answer:
        found = list(answer.rows())
    expected = reference(query, start, end)
    assert bool(expected) == (query != "from T where false")
    if query.startswith("from demo.ecommerce.data select"):  # events of one moment come in any order
        assert [row[0] for row in found] == [row[0] for row in expected]
        found, expected = sorted(found, key=repr), sorted(expected, key=repr)
    assert found == expected


@pytest.fixture(scope="module")
def filled() -> Iterator[Callable[[str], Engine]]:
    """Makes an engine by its name, with the tables of the examples."""
    with ExitStack() as stack:

        @cache
        def made(name: str) -> Engine:
            engine = stack.enter_context(EVERY_ENGINE[name]())
            for table, select in MADE.items():
                rows = selected(select)
                engine.stored.append(
                    table, rows, create=[Column(each.name, OF_ARROW[each.type]) for each in rows.schema]
                )
            for table, columns in demo.TABLES.items():
                start, end = window("from auth." if table == "auth.all" else "from demo.")
                events = made_events(table, int(start.timestamp()), int(end.timestamp()))
                engine.stored.append(table, events.to_reader(), create=columns)
            return engine

        yield made


@pytest.mark.parametrize("name", rows_of_engines()[1:-1])
@pytest.mark.parametrize("query", EXAMPLES)
def test_an_example_has_the_same_bytes_on_every_engine(filled: Callable[[str], Engine], query: str, name: str) -> None:
    start, end = window(query)
    answers = []
    for engine in (filled("duckdb"), filled(name)):
        plan = compile(
            parse(query),
            engine.stored.tables(),
            dialect=engine.reader.dialect,
            start=start,
            end=end,
            now=datetime.now(UTC),
        )
        with rendering.stream(engine.reader, plan, [CSV.text(plan.columns, DateStyle())]) as batches:
            answers.append([line for batch in batches for line in batch.column(0).to_pylist()])
    assert sorted(answers[1]) == sorted(answers[0])  # events of one moment are stored in any order
    assert bool(answers[0]) == (query != "from T where false")
