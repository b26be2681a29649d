"""The messages of a partition: which rows are missing, out of order or altered, and which are gone or not there yet."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Message

from svcctl.service.verification import DeliveredJob, ExpectedRows, FaultKind
from svcctl.service.verification.comparison import ExpectedCursor
from svcctl.service.verification.findings import FaultLog
from svcctl.service.verification.keyed_rows import MAX_HELD_BYTES, PartitionComparison

JOB = DeliveredJob("job", "kafka", {}, 10, 0, 3, 10, [(0, 0)], (), lambda: False, dict, None)
MISSING, ALTERED, FOREIGN = FaultKind.MISSING, FaultKind.ALTERED, FaultKind.FOREIGN
TWICE, MOVED = FaultKind.DUPLICATED, FaultKind.OUT_OF_ORDER


def expected(job: DeliveredJob) -> ExpectedRows:
    """Row 7 has the text `7` and the date 700."""
    numbers = range(job.first, job.sent)
    dates = pa.array([n * 100 for n in numbers], pa.int64())
    return ExpectedRows(job.first, job.sent, pa.array(map(str, numbers)), dates)


def message(offset: int, key: object, value: object = None) -> Message:
    text = f"job/{key}" if isinstance(key, int) else str(key)
    content = str(key if value is None else value).encode()
    return Message(topic="t", partition=3, offset=offset, key=text.encode(), value=content)


def compare(
    messages: Iterable[Message],
    job: DeliveredJob = JOB,
    *,
    low: int = 0,
    hidden: int | None = None,
    rows: Sequence[ExpectedRows] | None = None,
    at_once: int = 100,
    max_held_bytes: int = MAX_HELD_BYTES,
) -> tuple[list[tuple[Any, ...]], PartitionComparison, FaultLog]:
    """What is found, as the kind, the first row, the one after the last, and the offset."""
    cursor = ExpectedCursor([expected(job)] if rows is None else rows, job.first, job.sent, job.since)
    log = FaultLog(cursor)
    comparison = PartitionComparison(job, cursor, log, max_held_bytes=max_held_bytes)
    there = list(messages)
    for at in range(0, len(there), at_once):
        comparison.add(there[at : at + at_once])
    comparison.finish(low, hidden)
    found = [(one.kind, one.first, one.end, one.offset) for one in log.rest()]
    return found, comparison, log


def stream(*keys: object) -> list[Message]:
    return [message(offset, key) for offset, key in enumerate(keys)]


@pytest.mark.parametrize("at_once", [1, 2, 100])
@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ([*range(10)], []),
        ([0, 1, 2, 3, 6, 7, 8, 9], [(MISSING, 4, 6, 4)]),
        ([1, 2, 3, 4, 5, 6, 7, 8], [(MISSING, 0, 1, 0), (MISSING, 9, 10, None)]),
        ([], [(MISSING, 0, 10, None)]),
        ([0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 0], [(TWICE, 2, 3, 3), (TWICE, 0, 1, 11)]),
        ([0, 2, 1, 3, 4, 5, 6, 7, 8, 9], [(MOVED, 1, 3, 2)]),
        ([0, 5, 2, 3, 4, 1, 6, 7, 8, 9], [(MOVED, 1, 2, 5), (MOVED, 5, 6, 1)]),
        ([0, 2, 3, 4, 1, 5, 6, 7, 8, 9], [(MOVED, 1, 2, 4)]),
        ([0, 4, 1, 2, 3, 5, 6, 7, 8, 9], [(MOVED, 4, 5, 1)]),
        ([0, 1, 6, 7, 8, 9, 2, 3, 4, 5], [(MOVED, 2, 6, 6)]),
        ([0, 1, 3, "other/2", "job", "job2/4", 4, 5, 6, 7, 8, 9], [(MISSING, 2, 3, 2)]),
        ([0, 1, 9, "job/10", "job/x", 1, 2, 3, 4, 5, 6, 7, 8], None),
        (
            [*range(10), "job/10", "job/07", "job/"],
            [(FOREIGN, 10, 11, 10), (FOREIGN, 10, 10, 11), (FOREIGN, 10, 10, 12)],
        ),
    ],
)
def test_rows_that_are_not_where_they_should_be_are_named(
    keys: list[object], wanted: list[tuple[Any, ...]] | None, at_once: int
) -> None:
    if wanted is None:
        wanted = [(FOREIGN, 10, 11, 3), (FOREIGN, 2, 2, 4), (MOVED, 9, 10, 2), (TWICE, 1, 2, 5)]
    assert sorted(compare(stream(*keys), at_once=at_once)[0], key=str) == sorted(wanted, key=str)


def test_values_are_compared_wherever_the_rows_are() -> None:
    messages = stream(0, 4, 1, 2, 3, 6, 7, 5, 8, 9)
    messages[1], messages[4], messages[7] = message(1, 4, "x"), message(4, 3, "y"), message(7, 5, "z")
    found, _, log = compare(messages)
    assert found == [(ALTERED, 3, 6, 4)]
    assert (log.tally.counts, log.tally.gap_from) == ({ALTERED: 3}, 300)


def test_a_message_without_a_value_is_altered() -> None:
    empty = Message(topic="t", partition=3, offset=0, key=b"job/0")
    assert compare([empty, *stream(*range(10))[1:]])[0] == [(ALTERED, 0, 1, 0)]


def test_a_gap_has_the_dates_of_its_rows() -> None:
    cursor = ExpectedCursor([expected(JOB)], 0, 10)
    log = FaultLog(cursor)
    comparison = PartitionComparison(JOB, cursor, log)
    comparison.add(stream(0, 1, 2, 6, 7, 8, 9))
    comparison.finish(0, None)
    [finding] = log.rest()
    assert (finding.from_ms, finding.to_ms, finding.partition, log.tally.gap_from) == (300, 500, 3, 300)


def at(first: int, *rows: int) -> list[Message]:
    return [message(first + index, row) for index, row in enumerate(rows)]


@pytest.mark.parametrize(
    ("messages", "low", "offsets", "gone", "wanted"),
    [
        (at(104, *range(4, 10)), 104, [(0, 100)], 4, []),
        (at(105, *range(5, 10)), 104, [(0, 100)], 4, [(MISSING, 4, 5, 105)]),
        (at(104, *range(4, 8)), 104, [(0, 100)], 4, [(MISSING, 8, 10, None)]),
        (at(106, *range(6, 10)), 104, [(0, 100), (4, 104)], 4, [(MISSING, 4, 6, 106)]),
        (at(106, *range(6, 10)), 0, [(0, 100)], 0, [(MISSING, 0, 6, 106)]),
        ([], 104, [(0, 100), (4, 104)], 4, [(MISSING, 4, 10, None)]),
        ([], 110, [(0, 100), (4, 104)], 10, []),
        (at(102, 2, 3, 7, 8, 9), 103, [(0, 100)], 2, [(MISSING, 4, 7, 104)]),
    ],
)
def test_rows_before_the_oldest_message_are_no_longer_there(
    messages: list[Message], low: int, offsets: list[tuple[int, int]], gone: int, wanted: list[tuple[Any, ...]]
) -> None:
    found, _, log = compare(messages, replace(JOB, offset=110, offsets=offsets), low=low)
    assert (found, log.tally.no_longer_there) == (wanted, gone)


def test_rows_that_may_be_gone_by_their_date_are_no_failure() -> None:
    found, _, log = compare(stream(2, 3, 5, 6, 8, 9), replace(JOB, since=500))
    assert (found, log.tally.no_longer_there) == ([(MISSING, 7, 8, 4)], 3)


def test_rows_after_an_open_transaction_are_not_there_yet() -> None:
    found, _, log = compare(stream(0, 1, 2, 4, 5), hidden=7)
    assert (found, log.tally.not_yet, log.tally.hidden) == ([(MISSING, 3, 4, 3), (MISSING, 6, 7, None)], 3, 3)


def test_rows_that_a_running_job_delivers_meanwhile_are_not_counted() -> None:
    found, _, log = compare(stream(*range(10), 10, 11), replace(JOB, running=lambda: True))
    assert (found, log.tally.not_yet) == ([], 2)
    early = replace(JOB, running=lambda: True, offset=11)
    assert compare(stream(*range(10), 10, 11), early)[0] == [(FOREIGN, 10, 11, 10)]


def test_rows_from_before_the_log_are_not_compared() -> None:
    assert compare(stream(3, 2, 2, 4, 5, 7, 8, 9), replace(JOB, first=4))[0] == [(MISSING, 6, 7, 5)]


def test_rows_that_cannot_be_produced_are_counted_and_missed() -> None:
    rest = ExpectedRows(5, 10, pa.array(["5", "6", "7", "8", "9"]), pa.array([1] * 5))
    rows = [ExpectedRows(0, 5), rest]
    found, _, log = compare([message(0, 0, "x"), *stream(0, 1, 2, 4, 5, 6, 7, 8, 9)[1:]], rows=rows)
    assert (found, log.tally.not_reproducible, log.tally.gap_from) == ([(MISSING, 3, 4, 3)], 4, 0)


def test_more_rows_out_of_order_than_are_held_are_found() -> None:
    found, comparison, _ = compare(stream(0, 6, 7, 8, 9, 1, 2, 3, 4, 5), max_held_bytes=700)
    assert (found, comparison.not_compared) == ([(MOVED, 1, 6, 5)], 3)


def test_more_gaps_than_are_held_are_merged() -> None:
    cursor = ExpectedCursor([expected(JOB)], 0, 10)
    log = FaultLog(cursor)
    comparison = PartitionComparison(JOB, cursor, log, max_skips=2)
    comparison.add(stream(0, 2, 4, 6, 8, 3))
    comparison.finish(0, None)
    found = sorted((one.first, one.end, one.kind) for one in log.rest())
    assert found == [(1, 2, MISSING), (3, 4, MOVED), (5, 6, MISSING), (7, 8, MISSING), (9, 10, MISSING)]


def test_any_order_of_rows_is_understood() -> None:
    """No row is missed that is there, and none is found that is not."""
    dice = random.Random(7)
    for _ in range(300):
        keys = dice.choices(range(14), k=dice.randrange(20)) if dice.random() < 0.5 else dice.sample(range(10), 10)
        found, _, log = compare(stream(*keys), at_once=dice.randrange(1, 8))
        missing = [row for kind, first, end, _ in found if kind is MISSING for row in range(first, end)]
        assert sorted(missing) == sorted(set(range(10)) - set(keys))
        assert log.tally.counts[FOREIGN] == sum(1 for key in keys if key >= 10)
        assert sum(1 for one in found if one[0] is TWICE) <= len(keys) - len(set(keys))


def test_rows_of_a_job_without_known_offsets_are_gone_with_the_oldest_messages() -> None:
    job = replace(JOB, offsets=[])  # it is older than its log
    assert compare(stream(*range(10)), job)[0] == []
    found, _, log = compare([message(row, row) for row in range(4, 10)], job, low=4)
    assert (found, log.tally.no_longer_there) == ([], 4)


def test_the_date_of_rows_that_may_be_hidden_is_known() -> None:
    assert compare(stream(0, 1, 2, 4, 5), hidden=7)[2].tally.hidden_from is not None
    assert compare(stream(*range(10)), hidden=7)[2].tally.hidden_from is None
