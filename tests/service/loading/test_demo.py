"""The demo events: enough of them, the same whenever made, in step with the clock, with incidents to find."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from support.events import selected

from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.engines.duckdb.demo_events import made
from svcctl.service.loading.demo import SECONDS_AHEAD, TABLES, GrowingTables, extend

NOW = datetime(2026, 3, 20, 12, 0, 0, 700_000, tzinfo=UTC)
START = datetime(2026, 2, 18, 12, 0)
HISTORY = timedelta(days=30)


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDBEngine]:
    with DuckDBEngine() as engine:
        steps = list(extend(engine, NOW, HISTORY))
        assert sum(added for *_, added in steps) == sum(engine.events(table) for table in TABLES)
        assert [(table, round(share * 6, 3)) for table, share, _ in steps] == [
            (table, step) for table in TABLES for step in range(1, 7)
        ]
        yield engine


def rows(engine: DuckDBEngine, select: str) -> list[tuple[object, ...]]:
    with engine.statement(select) as stream:
        return [tuple(row.values()) for batch in stream for row in batch.to_pylist()]


@pytest.mark.slow
def test_thirty_days_hold_two_million_events_in_order(engine: DuckDBEngine) -> None:
    assert {name: (engine.events(name) // 100_000, table.ordered) for name, table in engine.tables().items()} == {
        "demo.ecommerce.data": (12, True),
        "auth.all": (1, True),
        "firewall.all": (9, True),
    }
    for table in TABLES:
        ((first, last),) = rows(engine, f'SELECT min(eventdate), max(eventdate) FROM events."{table}"')
        assert isinstance(first, datetime)
        assert isinstance(last, datetime)
        assert START <= first < START + timedelta(minutes=10)
        assert NOW.replace(tzinfo=None) - timedelta(minutes=10) < last < NOW.replace(tzinfo=None, microsecond=0)


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_the_same_seconds_have_the_same_events_however_they_are_cut(engine: DuckDBEngine, table: str) -> None:
    def events(start: int, end: int) -> list[tuple[object, ...]]:
        return [tuple(row.values()) for row in made(table, start, end).to_pylist()]

    at = int(datetime(2026, 3, 1, 2, 0, tzinfo=UTC).timestamp())
    whole = events(at, at + 7200)
    assert len(whole) > 50
    assert sorted(map(repr, whole)) == sorted(map(repr, events(at, at + 1234) + events(at + 1234, at + 7200)))
    stored = rows(
        engine,
        f'SELECT * FROM events."{table}" '
        "WHERE eventdate >= TIMESTAMP '2026-03-01 02:00:00' AND eventdate < TIMESTAMP '2026-03-01 04:00:00'",
    )
    assert sorted(map(repr, whole)) == sorted(map(repr, stored))


def test_a_later_call_adds_only_what_happened_since(engine: DuckDBEngine) -> None:
    with DuckDBEngine() as other:
        for table, columns in TABLES.items():
            newest = datetime(2026, 3, 20, 12, 0, 1)
            values = {
                column.name: f"TIMESTAMP '{newest}'" if column.name == "eventdate" else "NULL" for column in columns
            }
            seed = ", ".join(f'{value} AS "{name}"' for name, value in values.items())
            other.append(table, selected(f"SELECT {seed}"), create=columns)
        later = datetime(2026, 3, 20, 12, 10, 1, 900_000, tzinfo=UTC)
        added = sum(added for *_, added in extend(other, later, HISTORY))
        assert added == sum(other.events(table) for table in TABLES) - 3
        assert 300 < added < 1500
        assert sum(added for *_, added in extend(other, later, HISTORY)) == 0
        assert list(extend(other, later - timedelta(hours=1), HISTORY)) == []
        for table in TABLES:
            ((first, last),) = rows(
                other,
                f"SELECT min(eventdate), max(eventdate) FROM events.\"{table}\" WHERE eventdate > '{newest}'",
            )
            assert isinstance(first, datetime)
            assert isinstance(last, datetime)
            assert first >= newest + timedelta(seconds=1)
            assert last < later.replace(tzinfo=None, microsecond=0)


def test_a_running_service_stores_each_event_once_its_second_has_passed() -> None:
    with DuckDBEngine() as engine, DuckDBEngine() as other:
        begun, history = NOW - timedelta(hours=1), timedelta(minutes=10)
        growing = GrowingTables(engine, history)
        growing.extend(begun)
        passed = (0.5, 1, 1.2, 30, 29, 30, SECONDS_AHEAD, SECONDS_AHEAD + 1, SECONDS_AHEAD + 2, 5 * SECONDS_AHEAD)
        for number, seconds in enumerate(passed):
            growing.extend(begun + timedelta(seconds=seconds))
            latest = begun + timedelta(seconds=max(passed[: number + 1]))
            for table in TABLES:
                newest = engine.newest(table)
                assert newest is not None
                assert newest < latest.replace(tzinfo=None, microsecond=0)
        list(extend(other, begun + timedelta(seconds=passed[-1]), history + timedelta(seconds=passed[-1])))
        for table in TABLES:
            select = f'SELECT * FROM events."{table}" ORDER BY ALL'
            assert rows(engine, select) == rows(other, select)
            assert engine.table(table).ordered


def test_every_ninth_night_someone_guesses_the_password_of_admin(engine: DuckDBEngine) -> None:
    attacks = rows(
        engine,
        "SELECT strftime(eventdate, '%m-%d %H:%M'), result, count(DISTINCT \"srcIp\"), count(*), count(reason) "
        "FROM (SELECT * REPLACE (date_trunc('hour', eventdate) AS eventdate) FROM events.\"auth.all\" "
        "WHERE user = 'admin') GROUP BY eventdate, result ORDER BY eventdate, result",
    )
    assert attacks == [
        (day, result, 1, count, reasons)
        for day in ("02-22 02:00", "03-03 02:00", "03-12 02:00")
        for result, count, reasons in (("FAIL", 720, 720), ("OK", 1, 0))
    ]


def test_every_seventh_day_the_shop_fails_for_twelve_minutes(engine: DuckDBEngine) -> None:
    bursts = rows(
        engine,
        "SELECT strftime(minute, '%m-%d %H:%M') FROM (SELECT date_trunc('minute', eventdate) AS minute, "
        'avg(("statusCode" >= 500)::INTEGER) AS broken FROM events."demo.ecommerce.data" GROUP BY minute '
        "HAVING count(*) > 10) WHERE broken > 0.4 ORDER BY 1",
    )
    days = ("02-22", "03-01", "03-08", "03-15")
    assert bursts == [(f"{day} 14:{minute:02}",) for day in days for minute in range(12)]


def test_every_eleventh_night_a_host_sends_gigabytes_out(engine: DuckDBEngine) -> None:
    leaks = rows(
        engine,
        'SELECT strftime(eventdate, \'%m-%d\'), "srcIp" FROM events."firewall.all" GROUP BY ALL '
        'HAVING sum("bytesOut") > 1e9 ORDER BY 1',
    )
    host = (10 << 24) + (3 << 8) + 77
    assert leaks == [("02-26", host), ("03-09", host), ("03-20", host)]


def test_the_shop_looks_like_one(engine: DuckDBEngine) -> None:
    (shares,) = rows(
        engine,
        """
        SELECT avg(("statusCode" = 200)::INT) > 0.8, avg(("userId" IS NULL)::INT) BETWEEN 0.15 AND 0.35,
            avg(("userAgent" LIKE '%,%')::INT) > 0.5, count(DISTINCT "userId") BETWEEN 2000 AND 4000,
            count(DISTINCT country), count("referralUri") < count(*),
            count_if(hour(eventdate) = 14) > 2 * count_if(hour(eventdate) = 2)
        FROM events."demo.ecommerce.data"
        """,
    )
    assert shares == (True, True, True, True, 14, True, True)
