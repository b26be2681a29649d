"""The steps of a query cover its range without a gap or an overlap, whatever arrives meanwhile, and end once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engines import chosen_engine, engines_of
from support.events import batches, selected

from svcctl.dates.range import Range
from svcctl.errors import ServiceError
from svcctl.service.engines import Engines
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.engines.table_rules import ColumnChange
from svcctl.service.language import Column, QueryError, Type
from svcctl.service.queries.continuous import LATE_MS, RANGE_GRACE, Steps
from svcctl.service.queries.request import AskedQuery
from svcctl.service.queries.schedule import LAG_MS, LateEvents, Schedule, Step, StepKind, next_step

START, END, PERIOD, GRACE_MS = 10_500, 60_200, 7_000, 2_000
"""In epoch milliseconds; neither end of the range is a multiple of the period."""
ARRIVALS = Schedule(StepKind.ARRIVALS, START, END, END + GRACE_MS)
BUCKETS = Schedule(StepKind.BUCKETS, START, END, END + GRACE_MS, period=PERIOD)
ONCE = Schedule(StepKind.ONCE, START, END, END + GRACE_MS)


@dataclass(frozen=True)
class Lot:
    """Events that are stored at one moment: their dates, in epoch milliseconds."""

    at: int
    dates: tuple[int, ...]


lots = st.lists(
    st.builds(
        Lot, st.integers(START, END + GRACE_MS - 1), st.lists(st.integers(0, END + 20_000), max_size=8).map(tuple)
    ),
    max_size=8,
).map(lambda lots: sorted(lots, key=lambda lot: lot.at))
"""Late events, events of one date, and events outside the range."""


@dataclass
class Answered:
    """A query that was looked at after every lot, and at the end of its range."""

    schedule: Schedule
    stored: list[int] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    rows: list[tuple[int, int]] = field(default_factory=list)

    def follow(self, lots: list[Lot]) -> Answered:
        for lot in [*lots, Lot(END + GRACE_MS, ())]:
            self.stored += lot.dates
            if (step := self.look(lot.at)) is not None:
                self.steps.append(step)
                self.rows += self.run(step)
                assert self.look(lot.at) is None
        return self

    def look(self, now: int) -> Step | None:
        """The next step, as it is after it was saved and read again."""
        before = self.steps[-1] if self.steps else None
        step = next_step(self.schedule, before, len(self.rows), now, len(self.stored))
        return step and Step.from_json(json.loads(json.dumps(step.to_json())))

    def run(self, step: Step) -> list[tuple[int, int]]:
        """The rows of a step: dates with their place in the table, or periods with their number of events."""
        assert isinstance(step.until, int)
        places = range(int(step.since or 0), step.until)
        assert step.end is not None
        rows = sorted((self.stored[n], n) for n in places if step.start <= self.stored[n] < step.end)
        if self.schedule.kind is StepKind.BUCKETS:
            rows = sorted(Counter(date - date % PERIOD for date, _ in rows).items())
        rows = rows[step.skip :]
        return rows if self.schedule.limit is None else rows[: self.schedule.limit - step.first]

    def within(self) -> list[tuple[int, int]]:
        """All events of the range, by date."""
        return sorted((date, n) for n, date in enumerate(self.stored) if START <= date < END)


@given(lots)
def test_a_step_of_arrivals_begins_where_the_one_before_ended(lots: list[Lot]) -> None:
    answered = Answered(ARRIVALS).follow(lots)
    ends = [step.until for step in answered.steps]
    assert [step.since for step in answered.steps] == [None, *ends[:-1]]
    assert ends[-1] == len(answered.stored)
    assert sorted(answered.rows) == answered.within()


@given(lots)
def test_a_step_of_buckets_begins_where_the_one_before_ended(lots: list[Lot]) -> None:
    answered = Answered(BUCKETS).follow(lots)
    ends = [step.end or 0 for step in answered.steps]
    assert [step.start for step in answered.steps] == [START, *ends[:-1]]
    assert ends[-1] == END
    assert [end % PERIOD for end in ends[:-1]] == [0] * (len(ends) - 1)
    assert all(
        end <= step.now - (GRACE_MS if step.last else LAG_MS) for end, step in zip(ends, answered.steps, strict=True)
    )


@given(st.lists(st.builds(Lot, st.just(START), st.lists(st.integers(START, END - 1)).map(tuple)), max_size=1))
def test_the_periods_of_all_steps_are_those_of_the_range(lots: list[Lot]) -> None:
    looks = [Lot(at, ()) for at in range(START, END, 1_100)]
    answered = Answered(BUCKETS).follow(lots + looks)
    assert answered.rows == sorted(Counter(date - date % PERIOD for date, _ in answered.within()).items())


@given(lots)
def test_a_single_step_waits_for_the_end_of_the_range(lots: list[Lot]) -> None:
    answered = Answered(ONCE).follow(lots)
    assert answered.steps == [Step(0, 0, None, len(answered.stored), START, END, END + GRACE_MS, True)]
    assert answered.rows == answered.within()


@pytest.mark.parametrize("schedule", [ARRIVALS, BUCKETS, ONCE], ids=lambda schedule: schedule.kind)
@given(lots=lots)
def test_the_end_is_reached_once_and_nothing_follows_it(schedule: Schedule, lots: list[Lot]) -> None:
    answered = Answered(schedule).follow(lots)
    assert [step.last for step in answered.steps] == [False] * (len(answered.steps) - 1) + [True]
    answered.stored.append(START)
    assert answered.look(END + 1_000_000) is None


@pytest.mark.parametrize("schedule", [ARRIVALS, BUCKETS], ids=lambda schedule: schedule.kind)
@given(lots=lots)
def test_a_query_without_an_end_has_no_last_step(schedule: Schedule, lots: list[Lot]) -> None:
    answered = Answered(replace(schedule, end=None, due=None))
    answered.stored = [date for lot in lots for date in lot.dates]
    step = answered.look(END + 1_000_000)
    assert step is not None
    assert not step.last
    assert step.end == (None if schedule.kind is StepKind.ARRIVALS else (END + 1_000_000 - LAG_MS) // PERIOD * PERIOD)


bounds = {"skip": st.integers(0, 30), "limit": st.none() | st.integers(0, 30)}


@given(lots=lots, **bounds)
def test_skip_and_limit_count_over_all_steps(lots: list[Lot], skip: int, limit: int | None) -> None:
    answered = Answered(replace(ARRIVALS, skip=skip, limit=limit)).follow(lots)
    assert len(answered.rows) == len(answered.within()[skip:][:limit])
    assert set(answered.rows) <= set(answered.within())
    assert len(set(answered.rows)) == len(answered.rows)


@pytest.mark.parametrize("schedule", [ARRIVALS, BUCKETS, ONCE], ids=lambda schedule: schedule.kind)
@given(dates=st.lists(st.integers(START, END - 1)).map(tuple), **bounds)
def test_skip_and_limit_leave_the_same_rows_as_without_steps(
    schedule: Schedule, dates: tuple[int, ...], skip: int, limit: int | None
) -> None:
    looks = [Lot(START, dates), *(Lot(at, ()) for at in range(START, END, 1_100))]
    whole = Answered(schedule).follow(looks).rows
    assert Answered(replace(schedule, skip=skip, limit=limit)).follow(looks).rows == whole[skip:][:limit]


@pytest.mark.parametrize("schedule", [ARRIVALS, BUCKETS, ONCE], ids=lambda schedule: schedule.kind)
@given(lots=lots, skip=st.integers(0, 10), later=st.lists(st.integers(START, END), max_size=8))
def test_a_step_returns_the_same_rows_whatever_is_stored_later(
    schedule: Schedule, lots: list[Lot], skip: int, later: list[int]
) -> None:
    answered = Answered(replace(schedule, skip=skip)).follow(lots)
    before = [answered.run(step) for step in answered.steps]
    answered.stored += later
    assert [answered.run(step) for step in answered.steps] == before


@pytest.mark.parametrize("schedule", [ARRIVALS, BUCKETS], ids=lambda schedule: schedule.kind)
def test_a_query_that_reached_its_limit_is_over(schedule: Schedule) -> None:
    answered = Answered(replace(schedule, limit=2), [START, START + PERIOD, START + 2 * PERIOD])
    first = answered.look(END)
    assert first is not None
    answered.steps, answered.rows = [first], answered.run(first)
    assert answered.schedule.over(first, len(answered.rows))
    assert not answered.schedule.over(first, len(answered.rows) - 1)
    answered.stored.append(END - 1)
    assert answered.look(END + 1_000_000) is None


FIRST = datetime(2024, 1, 1, tzinfo=UTC)
NOON = FIRST + timedelta(hours=12)


@pytest.fixture
def engines() -> Iterator[Engines]:
    with chosen_engine() as engines:
        engines.of("t").stored.create("t", (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8)))
        yield engines


def schedule(engines: Engines, text: str, end: datetime | None, skip: int = 0, limit: int | None = None) -> Schedule:
    asked = AskedQuery(text, Range(FIRST, end), skip=skip, limit=limit)
    return Steps(engines, asked, lambda: NOON, launched=NOON).schedule


FIRST_MS, NOON_MS = 1_704_067_200_000, 1_704_110_400_000


@pytest.mark.parametrize("text", ["from t", "from t group every 1m", "from t group by n select count()"])
def test_a_query_whose_range_is_over_has_one_step_at_once(engines: Engines, text: str) -> None:
    assert schedule(engines, text, NOON) == Schedule(StepKind.ONCE, FIRST_MS, NOON_MS, NOON_MS)


@pytest.mark.parametrize(
    ("text", "kind", "period"),
    [
        ("from t where n > 1", StepKind.ARRIVALS, 0),
        ("from t group every 90s by n", StepKind.BUCKETS, 90_000),
        ("from t group by n select count()", StepKind.ONCE, 0),
        ("from t group every 1m by n group every 1h", StepKind.ONCE, 0),
    ],
)
def test_what_a_query_groups_by_decides_the_steps_of_a_range_that_is_not_over(
    engines: Engines, text: str, kind: StepKind, period: int
) -> None:
    end = NOON + timedelta(seconds=1)
    due = NOON_MS + 1000 + RANGE_GRACE // timedelta(milliseconds=1)
    assert schedule(engines, text, end) == Schedule(kind, FIRST_MS, NOON_MS + 1000, due, period=period)


@pytest.mark.parametrize(
    ("text", "skip", "limit", "counted"),
    [
        ("from t limit 10", 0, None, (0, 10)),
        ("from t offset 5 limit 10", 3, None, (8, 7)),
        ("from t limit 10 offset 5", 3, 4, (8, 4)),
        ("from t limit 10 limit 20", 12, None, (12, 0)),
        ("from t", 2, 9, (2, 9)),
        ("from t group every 1m offset 2 offset 3", 0, None, (5, None)),
    ],
)
def test_the_bounds_of_a_query_and_of_its_request_count_together(
    engines: Engines, text: str, skip: int, limit: int | None, counted: tuple[int, int | None]
) -> None:
    found = schedule(engines, text, None, skip, limit)
    assert (found.skip, found.limit) == counted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from t limit 3 where n > 1", "in a continuous query, limit and offset must come last"),
        (
            "from t group by n select count()",
            "a query without an end cannot group like this: the groups would never be complete "
            "(group once, with every, or give the query an end)",
        ),
    ],
)
def test_a_query_that_cannot_run_without_an_end_is_refused(engines: Engines, text: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        schedule(engines, text, None)
    assert str(caught.value).endswith(f": {message}")


def test_a_range_may_end_on_the_last_day_of_the_calendar() -> None:
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    with chosen_engine() as engines:
        engines.of("t").stored.create("t", [Column("eventdate", Type.TIMESTAMP)])
        asked = AskedQuery("from t", Range(last, last))
        assert (
            Steps(engines, asked, lambda: last - RANGE_GRACE, launched=last - RANGE_GRACE).schedule.due
            == 253402300799000 + GRACE_MS
        )


class Asked:
    """A query that groups by 10 s, closed 3 s after their end, over a range without an end; its clock is turned."""

    def __init__(self, engines: Engines, text: str, *, skip: int = 0) -> None:
        self.now, self.rows = FIRST, 0
        self.groups: Counter[int] = Counter()
        self.step: Step | None = None
        self.counted: LateEvents | None = None
        self._engines = engines
        asked = AskedQuery(text, Range(FIRST, None), skip=skip)
        self.steps = Steps(engines, asked, lambda: self.now, launched=FIRST, lag=3)

    def store(self, *seconds: float) -> None:
        """Events at so many seconds after FIRST."""
        values = ", ".join(f"(INTERVAL '{round(second * 1000)} milliseconds')" for second in seconds)
        events = f"SELECT TIMESTAMP '2024-01-01' + s AS eventdate, 1 AS n FROM (VALUES {values}) AS v(s)"
        self._engines.of("t").stored.append("t", selected(events))

    def look(self, second: float) -> None:
        """Run the next step if there is one at that moment."""
        self.now = FIRST + timedelta(seconds=second)
        step = self.steps.next(self.step, self.rows)
        self.counted = self.steps.late_after(self.step, step, self.rows, self.counted)
        if step is not None:
            self.step = step
            with self._engines.of("t").reader.stream(
                self.steps.plan(step), since=step.since, until=step.until
            ) as stream:
                for batch in stream:
                    self.rows += batch.num_rows
                    starts, counts = (column.to_pylist() for column in batch.columns)
                    self.groups.update(dict(zip((start.timestamp() for start in starts), counts, strict=True)))

    @property
    def late(self) -> int:
        return self.counted.count if self.counted else 0


def change(engines: Engines, column: Column) -> None:
    """Give table t a column, or another type of one, with an event."""
    stored = engines.of("t").stored
    before = stored.table("t").columns
    after = tuple(({one.name: one for one in before} | {column.name: column}).values())
    event = [NOON.replace(tzinfo=None), *[1] * (len(after) - 1)]
    stored.append("t", batches(after, [event]), change=ColumnChange(before, after))


@pytest.mark.parametrize("query", ["from t", "from t select *", "from t where n = 1 select *, n as m"])
def test_an_answer_keeps_its_columns_and_ends_when_one_gets_another_type(engines: Engines, query: str) -> None:
    steps = Steps(engines, AskedQuery(query, Range(FIRST, None)), lambda: NOON, launched=NOON)
    first = steps.next(None, 0)
    assert first is not None
    change(engines, Column("added", Type.INT8))
    second = steps.next(first, 0)
    assert second is not None
    assert steps.plan(second).columns == steps.plan(first).columns == steps.shape.columns
    assert "added" not in [column.name for column in steps.shape.columns]
    change(engines, Column("n", Type.FLOAT8))
    with pytest.raises(ServiceError, match=r"^a column of table 't' has a wider type now"):
        steps.plan(replace(second, now=second.now + 1))


GROUPS = "from t where n = 1 group every 10s select count() as n"


def test_an_event_is_in_its_group_until_the_lag_is_over_and_counted_after_that(engines: Engines) -> None:
    asked = Asked(engines, GROUPS)
    told = []
    for moment, stored in ((12.9, 1), (13, 2), (14, 3), (22.9, 11), (23, 13), (40, 4)):
        asked.store(stored)
        asked.look(moment)
        told.append((asked.groups.total(), asked.late))
    assert told == [(0, 0), (2, 0), (2, 1), (2, 1), (4, 1), (4, 2)]


def test_events_that_the_query_does_not_ask_for_are_not_late(engines: Engines) -> None:
    asked = Asked(engines, "from t where n = 2 group every 10s select count() as n")
    asked.look(30)
    asked.store(1, 2)
    asked.look(40)
    assert asked.late == 0


def test_while_all_groups_are_skipped_no_event_is_late(engines: Engines) -> None:
    asked = Asked(engines, GROUPS, skip=2)
    for moment, stored in ((20, 1), (30, 2), (40, 15), (50, 25), (60, 3)):
        asked.store(stored)
        asked.look(moment)
    assert (asked.rows, asked.late) == (1, 1)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    arrivals=st.lists(
        st.tuples(st.floats(0, 20), st.lists(st.floats(0, 59), min_size=1, max_size=5)), min_size=1, max_size=8
    )
)
def test_every_event_is_in_one_group_or_late(arrivals: list[tuple[float, list[float]]]) -> None:
    with DuckDBEngine() as engine:
        engines = engines_of(engine)
        engines.of("t").stored.create("t", (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8)))
        asked = Asked(engines, GROUPS)
        moment, stored = 0.0, 0
        for pause, seconds in arrivals:
            moment += pause
            asked.store(*seconds)
            stored += len(seconds)
            asked.look(moment)
        asked.look(moment + LATE_MS / 1000)
        asked.look(100 + moment)
        assert asked.groups.total() + asked.late == stored
