"""The rows of a log's steps are produced again, or said to be impossible to produce, on each place of tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.engines import engines_of, new_lake
from support.events import batches, store

from svcctl.dates.range import Range
from svcctl.errors import Unavailable
from svcctl.service import rendering
from svcctl.service.engines import Engines
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.engines.table_rules import ColumnChange, replaced
from svcctl.service.jobs.checkpoint import JobProgress, Rest, StoredQuery
from svcctl.service.jobs.step_log import StepEntry
from svcctl.service.language.types import Column, Type
from svcctl.service.queries.continuous import Steps
from svcctl.service.queries.request import AskedQuery
from svcctl.service.queries.schedule import Step
from svcctl.service.rendering import DateStyle
from svcctl.service.rendering.rows import CSV
from svcctl.service.verification import DeliveryFinding, FaultKind
from svcctl.service.verification.comparison import CSV_TOKENS, same_values
from svcctl.service.verification.expected import REMOVED, Production

FIRST = datetime(2024, 1, 1)
LAUNCH = datetime(2024, 1, 1, 1, tzinfo=UTC)
COLUMNS = (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8))
MS = 1_704_067_200_000


@pytest.fixture(params=["file", "folder"])
def engines(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engines]:
    tables = DuckDBEngine() if request.param == "file" else new_lake(str(tmp_path / "tables"))
    with closing(tables) as engine:
        made = engines_of(engine)
        made.of("t").stored.create("t", COLUMNS)
        yield made


class Delivery:
    """A job that has delivered what its steps returned so far."""

    def __init__(self, engines: Engines, query: str, *, end: datetime | None = None) -> None:
        self.engines, self.now = engines, LAUNCH
        asked = AskedQuery(query, Range(FIRST.replace(tzinfo=UTC), end))
        self.job = Rest("job", "s3", {}, StoredQuery(asked, LAUNCH), JobProgress())
        self.steps = Steps(engines, asked, lambda: self.now, launched=LAUNCH, lag=60, repeatable=True)
        self.entries: list[StepEntry] = []
        self.rows: list[str] = []
        self.last: Step | None = None

    def deliver(self, *events: tuple[float, int]) -> None:
        """Store events, each with its second and its number, and deliver what is new."""
        if events:
            store(self.engines.of("t").stored, "t", COLUMNS, [(at(second), n) for second, n in events])
        if (step := self.steps.next(self.last, len(self.rows))) is None:
            return
        plan = self.steps.plan(step)
        reader = self.engines.of("t").reader
        with rendering.stream(
            reader, plan, [CSV.text(plan.columns, DateStyle())], since=step.since, until=step.until
        ) as stream:
            lines = [line for batch in stream for line in batch.column(0).to_pylist()]
        if lines:
            self.entries.append(StepEntry(len(self.rows), step))
        self.rows += lines
        self.last = step

    def produced(
        self,
        entries: Sequence[StepEntry] | None = None,
        *,
        first: int = 0,
        more: int = 0,
        between: Callable[[], object] = str,
    ) -> tuple[list[object], list[DeliveryFinding]]:
        """The rows, and for those that cannot be produced their number and the reason; the faults.

        `more` rows are said to be delivered than were. `between` is called after each part.
        """
        production = Production(self.engines, self.job, first, len(self.rows) + more, True, lambda: False)
        found: list[object] = []
        row = first
        for part in production.rows(self.entries if entries is None else entries):
            assert part.first == row
            found += [(part.end - row, part.reason)] if part.lines is None else part.lines.to_pylist()
            row = part.end
            between()
        assert row == len(self.rows) + more
        return found, production.faults


def at(second: float) -> datetime:
    return FIRST + timedelta(seconds=second)


def remove(engines: Engines, second: float) -> None:
    assert engines.of("t").stored.remove_before("t", at(second)) > 0


def test_the_rows_of_all_steps_are_produced_in_the_order_of_their_delivery(engines: Engines) -> None:
    delivery = Delivery(engines, "from t where n > 0 select n")
    delivery.deliver((5, 1), (3, 2), (4, 0))
    delivery.deliver((1, 0))  # a step without rows
    delivery.deliver((2, 3), (9, 4))
    assert delivery.rows == ["2\n", "1\n", "3\n", "4\n"]
    assert [entry.first for entry in delivery.entries] == [0, 2]
    assert delivery.produced() == (delivery.rows, [])
    assert delivery.produced(first=1) == (delivery.rows[1:], [])
    assert delivery.produced(delivery.entries[1:], first=2) == (
        delivery.rows[2:],
        [],
    )  # a job that is older than its log


@pytest.mark.parametrize(
    ("query", "exact"), [("from t select n", True), ("from t group every 1m select sum(n) as n", False)]
)
def test_only_rows_of_single_events_have_exact_floats(engines: Engines, query: str, exact: bool) -> None:
    delivery = Delivery(engines, query, end=datetime(2024, 1, 2, tzinfo=UTC))
    delivery.now = at(0).replace(tzinfo=UTC) + timedelta(hours=1)
    delivery.deliver((10, 1), (70, 2))
    production = Production(engines, delivery.job, 0, len(delivery.rows), True, lambda: False)
    assert {part.exact for part in production.rows(delivery.entries)} == {exact}


def test_a_query_of_now_is_produced_with_the_moment_of_each_step(engines: Engines) -> None:
    delivery = Delivery(engines, "from t where eventdate > now() select n, now() as moment")
    delivery.deliver((7200, 1), (3000, 2))
    delivery.deliver((5400, 3))
    delivery.now += timedelta(hours=1)
    delivery.deliver((7100, 4))  # was in no step: it is in the past by now
    delivery.deliver((7300, 5))
    assert [row.split(",")[0] for row in delivery.rows] == ["1", "3", "5"]
    assert delivery.produced() == (delivery.rows, [])


def test_periods_are_produced_without_the_events_that_came_late(engines: Engines) -> None:
    delivery = Delivery(engines, "from t group every 1m select count() as count", end=datetime(2024, 1, 2, tzinfo=UTC))
    delivery.now = at(0).replace(tzinfo=UTC) + timedelta(hours=1)
    delivery.deliver((10, 1), (70, 2), (75, 3))
    delivery.deliver((20, 4))  # late
    delivery.now += timedelta(minutes=10)
    delivery.deliver((3700, 5), (3701, 6))
    delivery.now += timedelta(minutes=10)
    delivery.deliver()
    assert len(delivery.rows) == 3
    assert delivery.produced() == (delivery.rows, [])
    remove(engines, 60)
    delivery.deliver()
    assert delivery.produced()[0] == [(2, REMOVED), delivery.rows[2]]


def test_steps_with_removed_events_cannot_be_produced_and_all_others_can(engines: Engines) -> None:
    delivery = Delivery(engines, "from t where n != 2 select n")
    delivery.deliver((1, 1), (2, 2), (3, 3))
    delivery.deliver((4, 4), (2, 2))
    delivery.deliver((5, 5))
    remove(engines, 3)
    assert delivery.produced() == ([(2, REMOVED), "4\n", "5\n"], [])  # the second step has lost no row
    remove(engines, 5)
    assert delivery.produced() == ([(2, REMOVED), (1, REMOVED), "5\n"], [])
    engines.of("t").stored.trim("t", most=0, since=FIRST)
    assert delivery.produced()[0] == [(2, REMOVED), (1, REMOVED), (1, REMOVED)]


def test_a_limit_hides_which_rows_a_step_had(engines: Engines) -> None:
    delivery = Delivery(engines, "from t select n limit 2")
    delivery.deliver((1, 1), (2, 2), (3, 3), (4, 4))
    assert delivery.produced() == (["1\n", "2\n"], [])
    remove(engines, 2)
    assert delivery.produced() == ([(2, REMOVED)], [])


def test_no_step_of_a_table_that_was_replaced_can_be_produced(engines: Engines) -> None:
    delivery = Delivery(engines, "from t select n")
    delivery.deliver((1, 1), (2, 2))
    delivery.deliver((3, 3))
    engines.of("t").stored.drop("t")
    assert delivery.produced()[0] == [(3, "no table 't'")]
    engines.of("t").stored.create("t", COLUMNS)
    reason = replaced("t").message
    assert delivery.produced() == ([(2, reason), (1, reason)], [])


def test_a_wider_type_of_a_column_changes_the_text_of_its_values(engines: Engines) -> None:
    delivery = Delivery(engines, "from t where n > 0 select n")
    delivery.deliver((1, 1), (2, 2))
    wider = (COLUMNS[0], Column("n", Type.FLOAT8))
    engines.of("t").stored.append("t", batches(wider, [(at(3), 0.5)]), change=ColumnChange(COLUMNS, wider))
    assert delivery.produced() == (["1.0\n", "2.0\n"], [])


def test_floats_that_are_null_in_files_have_the_same_values_once_their_column_is_text(engines: Engines) -> None:
    stored, delivery = engines.of("t").stored, Delivery(engines, "from t select n, 1 as one")
    floats, texts = ((COLUMNS[0], Column("n", type_)) for type_ in (Type.FLOAT8, Type.STR))
    events = [(at(second), n) for second, n in enumerate((math.nan, math.inf, -math.inf, 0.5))]
    stored.append("t", batches(floats, events), change=ColumnChange(COLUMNS, floats))
    delivery.deliver()
    assert delivery.rows == [",1\n", ",1\n", ",1\n", "0.5,1\n"]
    stored.append("t", batches(texts, [(at(9), "x")]), change=ColumnChange(floats, texts))
    produced, _ = delivery.produced()
    pairs = zip(map(str, produced), delivery.rows, strict=True)
    assert [same_values(line.encode(), row.encode(), CSV_TOKENS) for line, row in pairs] == [True] * 4


def test_rows_that_a_delivery_left_out_are_missing(engines: Engines) -> None:
    delivery = Delivery(engines, "from t select n")
    delivery.deliver((1, 1))
    rows = list(delivery.rows)
    delivery.deliver((2, 2), (3, 3))
    delivery.entries.pop()
    delivery.rows = rows  # as if the step had been empty
    delivery.deliver((4, 4))
    assert delivery.rows == ["1\n", "4\n"]
    produced, faults = delivery.produced()
    assert produced == ["1\n", "2\n"]
    assert faults == [DeliveryFinding(FaultKind.MISSING, 2, 4, from_ms=MS + 3000, to_ms=MS + 4000)]


def test_rows_that_a_step_does_not_have_are_foreign(engines: Engines) -> None:
    delivery = Delivery(engines, "from t select n")
    delivery.deliver((1, 1), (2, 2))
    produced, faults = delivery.produced(more=3)
    assert produced == ["1\n", "2\n", (3, "its step has fewer rows")]
    assert faults == [DeliveryFinding(FaultKind.FOREIGN, 2, 5)]


def test_events_that_are_removed_while_they_are_produced_end_the_check(engines: Engines) -> None:
    delivery = Delivery(engines, "from t select n")
    delivery.deliver((1, 1), (2, 2))
    delivery.deliver((3, 3))
    gone = iter([2])

    def cut() -> None:
        for second in gone:
            remove(engines, second)

    with pytest.raises(Unavailable, match="removed meanwhile"):
        delivery.produced(between=cut)
