"""Dates in a time zone, compared with Python's zoneinfo where the clocks change, on every engine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest
from support.engines import EVERY_ENGINE, rows_of_engines
from support.events import store

from svcctl.service.engines import Engine
from svcctl.service.engines.duckdb.dialect import DuckDBDialect
from svcctl.service.engines.spark.dialect import SparkDialect
from svcctl.service.language import Column, Plan, QueryError, Table, Type
from svcctl.service.language.dialect import Dialect

Compiled = Callable[..., Plan]

EVENTS = Table(
    "t",
    (
        Column("eventdate", Type.TIMESTAMP),
        Column("moment", Type.TIMESTAMP),
        Column("zone", Type.STR),
        Column("text", Type.STR),
    ),
)
STORED = datetime(2024, 1, 1, tzinfo=UTC)
"""The date of all events. A shared folder has a file for each day, and Spark opens thousands of them slowly."""
PATTERN = "yyyy-MM-dd HH:mm:ss.SSS"
FIRST, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2038, 1, 1, tzinfo=UTC)
"""The first moment that has an offset, and the first one after them that has none."""
ZONES = (
    "Africa/Cairo", "Africa/Casablanca", "Africa/El_Aaiun", "Africa/Johannesburg", "Africa/Lagos",
    "Africa/Monrovia", "America/Anchorage", "America/Argentina/Tucuman", "America/Bogota", "America/Caracas",
    "America/Havana", "America/Los_Angeles", "America/Mexico_City", "America/New_York", "America/Noronha",
    "America/Nuuk", "America/Santiago", "America/Sao_Paulo", "America/St_Johns", "Antarctica/Troll",
    "Asia/Dhaka", "Asia/Gaza", "Asia/Jerusalem", "Asia/Kathmandu", "Asia/Kolkata", "Asia/Pyongyang",
    "Asia/Shanghai", "Asia/Tehran", "Asia/Tokyo", "Australia/Adelaide", "Australia/Lord_Howe", "Europe/Berlin",
    "Europe/Dublin", "Europe/Istanbul", "Europe/Lisbon", "Europe/Moscow", "Pacific/Apia", "Pacific/Chatham",
    "Pacific/Kiritimati", "Pacific/Kwajalein",
)  # fmt: skip
"""Half and quarter hours, seconds, days left out, negative summer time, short summers, new offsets, none at all."""


@cache
def changes(zone: str) -> tuple[datetime, ...]:
    """The moments from 1970 to 2037 at which the offset of a zone changes, found from day to day."""
    clocks = ZoneInfo(zone)
    days = range(int(FIRST.timestamp()), int(LAST.timestamp()) + 1, 24 * 3600)

    def offset(second: int) -> timedelta | None:
        return datetime.fromtimestamp(second, clocks).utcoffset()

    def change(before: int, after: int) -> datetime:
        while after - before > 1:
            middle = (before + after) // 2
            before, after = (middle, after) if offset(middle) == offset(before) else (before, middle)
        return datetime.fromtimestamp(after, UTC)

    offsets = pairwise((day, offset(day)) for day in days)
    return tuple(change(day, next_day) for (day, before), (next_day, after) in offsets if before != after)


def moments(zone: str) -> Iterator[datetime]:
    """Moments around the changes of a zone and the ends of its years, and some others."""
    random = Random(zone)
    for edge in (FIRST, *changes(zone), LAST):
        for hours in (-1, -0.5, 0, 0.5, 1):
            yield edge + timedelta(hours=hours)
        yield edge - timedelta(milliseconds=1)
    for _ in range(20):
        yield FIRST + timedelta(milliseconds=random.randrange((LAST - FIRST) // timedelta(milliseconds=1)))


def written(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(" ", "milliseconds")


def local_text(moment: datetime, zone: str) -> str | None:
    return written(moment.astimezone(ZoneInfo(zone))) if FIRST <= moment < LAST else None


def moment_of(text: str, zone: str) -> datetime | None:
    """The moment of a local time, with the offset before a change; None if it is outside the years."""
    local = datetime.fromisoformat(text)
    moment = local.replace(tzinfo=ZoneInfo(zone), fold=0).astimezone(UTC)
    return moment.replace(tzinfo=None) if FIRST <= moment < LAST else None


def events(zone: str) -> Iterator[tuple[datetime, str, str]]:
    """Events at the moments of a zone, with their times by the offsets before and after: some do not exist there."""
    for moment in moments(zone):
        for offset in {(moment + timedelta(days=days)).astimezone(ZoneInfo(zone)).utcoffset() for days in (-2, 2)}:
            yield moment.replace(tzinfo=None), zone, written(moment + (offset or timedelta()))


@contextmanager
def engine_with_zones(name: str, zones: Iterable[str]) -> Iterator[Engine]:
    """An engine that has the events of these zones, all in one table."""
    with EVERY_ENGINE[name]() as engine:
        store(engine.stored, "t", EVENTS.columns, [(STORED, *event) for zone in zones for event in events(zone)])
        yield engine


def check_zone(engine: Engine, compiled: Compiled, zone: str) -> None:
    """Compare what the engine makes of the events of a zone with what zoneinfo says."""
    query = (
        f'from t where zone = "{zone}" select formatdate(moment, "{PATTERN}", "{zone}") as there, text, '
        f'parsedate(text, "{PATTERN}", "{zone}") as at'
    )
    plan = compiled(query, catalog={"t": EVENTS}, dialect=engine.reader.dialect, start=STORED)
    with engine.reader.stream(plan, rows_per_batch=100_000) as stream:
        columns = [batch.to_pydict().values() for batch in stream]
    rows = [row for batch in columns for row in zip(*batch, strict=True)]
    wanted = [
        (local_text(moment.replace(tzinfo=UTC), zone), text, moment_of(text, zone)) for moment, _, text in events(zone)
    ]
    assert len(rows) == len(wanted) > 0
    assert sorted(rows, key=str) == sorted(wanted, key=str)


@pytest.fixture(scope="module", params=rows_of_engines("plain", "lake"))
def dated(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with engine_with_zones(request.param, ZONES) as engine:
        yield engine


@pytest.mark.parametrize("zone", ZONES)
def test_dates_of_a_zone_are_those_of_zoneinfo_where_its_clocks_change(
    zone: str, dated: Engine, compiled: Compiled
) -> None:
    check_zone(dated, compiled, zone)


OTHER_ZONES = sorted(available_timezones() - {*ZONES, "GMT", "GMT0", "GMT+0", "GMT-0", "UTC"})
"""Without the names that are offsets of the interface: these have no years in which they end."""


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, len(OTHER_ZONES), 20))
def test_dates_of_all_other_zones_are_those_of_zoneinfo(first: int, compiled: Compiled) -> None:
    assert len(OTHER_ZONES) > 400
    zones = OTHER_ZONES[first : first + 20]
    with engine_with_zones("duckdb", zones) as engine:
        for zone in zones:
            check_zone(engine, compiled, zone)


def sql_of(compiled: Compiled, dialect: Dialect, expression: str) -> str:
    plan = compiled(f"from t select {expression} as x", catalog={"t": EVENTS}, dialect=dialect)
    return plan.select.sql(dialect.name)


@pytest.mark.parametrize("dialect", [DuckDBDialect(), SparkDialect()], ids=["duckdb", "spark"])
def test_no_engine_uses_rules_of_its_own(dialect: Dialect, compiled: Compiled) -> None:
    """So the list of zones whose rules differ between engines is empty, whichever databases they have."""
    for expression in ('formatdate(eventdate, "HH", "Europe/Berlin")', 'parsedate(text, "HH", "Europe/Berlin")'):
        assert re.findall("berlin|zone|utc", sql_of(compiled, dialect, expression), re.IGNORECASE) == []


@pytest.mark.parametrize(
    ("zone", "there"),
    [
        ("GMT", "2024-01-01 10:00"),
        ("UTC", "2024-01-01 10:00"),
        ("utc", "2024-01-01 10:00"),
        ("GMT+2", "2024-01-01 12:00"),
        ("gmt-3:30", "2024-01-01 06:30"),
        ("+0530", "2024-01-01 15:30"),
        ("Etc/GMT+2", "2024-01-01 08:00"),
        ("GMT+14", "2024-01-02 00:00"),
    ],
)
def test_a_zone_may_be_written_as_the_interface_writes_it(zone: str, there: str, run: Callable[..., Any]) -> None:
    query = (
        'from web.data where user = "ann" limit 1 '
        f'select formatdate(eventdate, "yyyy-MM-dd HH:mm", "{zone}") as there '
        f'select there, formatdate(parsedate(there, "yyyy-MM-dd HH:mm", "{zone}"), "HH:mm") as back'
    )
    assert run(query) == [(there, "10:00")]


def test_an_offset_has_no_years_in_which_it_ends(run: Callable[..., Any]) -> None:
    query = (
        "from web.data limit 1 select timestamp(-86400000) as old, timestamp(9223372036854775807) as never "
        'select formatdate(old, "yyyy-MM-dd HH", "GMT+2") as a, formatdate(never, "yyyy", "GMT+2") as b, '
        'formatdate(old, "yyyy", "Asia/Tokyo") as c, formatdate(null, "yyyy", "Asia/Tokyo") as d'
    )
    assert run(query) == [("1969-12-31 02", None, None, None)]


def test_a_written_time_of_a_zone_is_its_moment(run: Callable[..., Any]) -> None:
    query = (
        'from web.data limit 1 select parsedate("31/07/2024 7:05:06.5", "dd/MM/yyyy HH:mm:ss.SSS", "Europe/Berlin") '
        'as a, parsedate("2024-01-31", "yyyy-MM-dd", "GMT-5") as b'
    )
    assert run(query) == [(datetime(2024, 7, 31, 5, 5, 6, 500_000), datetime(2024, 1, 31, 5))]


@pytest.mark.parametrize(
    ("zone", "day", "moment"),
    [
        ("Africa/Cairo", "2026-04-24", datetime(2026, 4, 23, 22)),
        ("America/Havana", "2026-11-01", datetime(2026, 11, 1, 4)),
        ("Europe/Berlin", "2026-10-25", datetime(2026, 10, 24, 22)),
    ],
    ids=["without-midnight", "with-two-midnights", "ordinary"],
)
def test_a_day_of_a_zone_begins_with_its_first_moment(
    zone: str, day: str, moment: datetime, run: Callable[..., Any]
) -> None:
    query = (
        f'from web.data limit 1 select parsedate("{day}", "yyyy-MM-dd", "{zone}") as written, '
        f'parsedate(replaceall("{day}", "x", user), "yyyy-MM-dd", "{zone}") as computed'
    )
    assert run(query) == [(moment, moment)]


BERLIN = 'parsedate("{}", "yyyy-MM-dd HH:mm", "Europe/Berlin")'
REFUSED = {
    'formatdate(eventdate, "HH", "Europe/berlin")': "line 1, column 50: there is no time zone 'Europe/berlin'"
    " (did you mean 'Europe/Berlin'?)",
    'formatdate(eventdate, "HH", "Mars")': "line 1, column 50: there is no time zone 'Mars'"
    " (write GMT+2, UTC, or a name such as Europe/Berlin)",
    'formatdate(eventdate, "HH", "")': "line 1, column 50: there is no time zone ''"
    " (write GMT+2, UTC, or a name such as Europe/Berlin)",
    'formatdate(eventdate, "HH", "local")': "line 1, column 50: a query cannot use the time zone 'local'"
    " (write GMT+2, UTC, or a name such as Europe/Berlin)",
    'formatdate(eventdate, "HH", "GMT+15")': "line 1, column 50: time zone 'GMT+15' is more than 14 hours from GMT",
    'formatdate(eventdate, "HH", user)': "line 1, column 50: argument 3 of formatdate must be a literal, not an"
    ' expression (for example formatdate(timestamp(0), "dd\'T\'HH:mm", "Asia/Kolkata"))',
    'formatdate(eventdate, "Europe/Berlin")': "line 1, column 44: unknown part 'E' in a date pattern (a zone is the"
    ' third argument: formatdate(eventdate, "yyyy-MM-dd HH:mm", "Europe/Berlin"))',
    'parsedate(user, "HH", "Marz/Berlin")': "line 1, column 44: there is no time zone 'Marz/Berlin'",
    BERLIN.format("2026-10-25 02:30"): "line 1, column 32: '2026-10-25 02:30' occurs twice in Europe/Berlin"
    ' (write it in UTC: parsedate("2026-10-25 00:30:00") or parsedate("2026-10-25 01:30:00"))',
    BERLIN.format("2026-03-29 02:30"): "line 1, column 32: '2026-03-29 02:30' does not exist in Europe/Berlin:"
    " its clocks skip this time",
    'parsedate("2011-12-30", "yyyy-MM-dd", "Pacific/Apia")': "line 1, column 32: '2011-12-30' does not exist in"
    " Pacific/Apia: its clocks skip this time",
    BERLIN.format("1960-01-01 00:00"): "line 1, column 32: '1960-01-01 00:00' is not in the years 1970 to 2037,"
    " for which Europe/Berlin has offsets",
    BERLIN.format("1970-01-01 00:59"): "line 1, column 32: '1970-01-01 00:59' is not in the years 1970 to 2037,"
    " for which Europe/Berlin has offsets",
    BERLIN.format("2026-02-30 02:30"): "line 1, column 32: there is no date '2026-02-30 02:30'",
    'parsedate("0001-01-01", "yyyy-MM-dd", "GMT+1")': "line 1, column 32: '0001-01-01' is outside the calendar",
}


@pytest.mark.parametrize(("expression", "message"), REFUSED.items())
def test_a_zone_or_time_that_is_not_clear_is_refused(expression: str, message: str, compiled: Compiled) -> None:
    with pytest.raises(QueryError) as caught:
        compiled(f"from web.data select {expression}")
    assert str(caught.value).startswith(message)
