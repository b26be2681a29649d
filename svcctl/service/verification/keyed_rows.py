"""The comparison of the messages of a Kafka partition with the rows that a job should have delivered.

A message of a job has the key `<job ID>/<row number>`. Messages with other keys come from other writers.

As long as the messages are equal to the expected rows, many messages are compared at once. At a difference, messages
are compared one by one. If the row number of a message is higher than the next expected number, there are two cases:
- The message came too early. Then the next message has a lower number.
- The expected rows with lower numbers are missing so far. They may still come, but not in the next message.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from confluent_kafka import Message

from svcctl.service.verification import DeliveredJob, DeliveryFinding, ExpectedRows, FaultKind, earliest, latest
from svcctl.service.verification.comparison import JSON_TOKENS, ExpectedCursor, same_values
from svcctl.service.verification.findings import FaultLog

MAX_AHEAD = 100
"""The maximum number of messages that are read ahead to find out whether a row came too early."""
MAX_STRIDE = 4096
"""The maximum number of messages that are compared at once."""
MAX_HELD_BYTES = 16 << 20
"""The maximum memory, in bytes, for held rows.

A held row is a row that came too early or is missing so far. It is held so that its values can be compared later.
"""
HELD_ROW_BYTES = 300
"""The memory, in bytes, that a held row needs in addition to its value. This number was measured with CPython."""
MAX_SKIPS = 50_000
"""The maximum number of gaps that are kept with their own dates. Further gaps are merged with the last gap."""
_MISSING, _EARLY = 1, 2


@dataclass(slots=True)
class SkippedRows:
    """A gap: consecutive rows that are missing in the partition, or that come later than they should.

    The rows should be between the messages with the offsets `before` and `offset`. `offset` is None if the gap is after
    the last message. `old` is true if the rows are so old that the destination may have deleted them. `from_ms` and
    `to_ms` are the earliest and the latest date of the rows. `date_before` is the latest date before the gap. Dates are
    in epoch milliseconds.
    """

    first: int
    end: int
    old: bool
    from_ms: int | None
    to_ms: int | None
    before: int
    offset: int | None
    date_before: int


class PartitionComparison:
    """Compares the messages of a Kafka partition with the expected rows of a job, and adds the faults to `log`.

    `max_held_bytes` limits the memory for held rows, see MAX_HELD_BYTES. `max_skips` limits the number of gaps, see
    MAX_SKIPS.
    """

    def __init__(
        self,
        job: DeliveredJob,
        cursor: ExpectedCursor,
        log: FaultLog,
        *,
        max_held_bytes: int = MAX_HELD_BYTES,
        max_skips: int = MAX_SKIPS,
    ) -> None:
        self._max_held_bytes, self._max_skips = max_held_bytes, max_skips
        self.not_compared = 0
        """The number of rows out of order that could not be compared, because the memory for held rows was full."""
        self._job = job
        self._prefix = f"{job.job_id}/".encode()
        self._cursor = cursor
        self._log = log
        self._states = bytearray(job.sent - job.first)
        """The state of each row: _MISSING if the row is missing so far, _EARLY if it came too early, otherwise 0."""
        self._skips: list[SkippedRows] = []
        self._held: dict[int, tuple[bytes | None, int | None]] = {}
        """The held rows by their numbers.

        A row that came too early is held with the value and the offset of its message. A missing row is held with its
        expected text and its date.
        """
        self._held_bytes = 0
        self._stride = MAX_STRIDE
        self._offset = -1
        """The highest offset among the messages of the rows that the cursor has passed."""
        self._swapped: int | None = None
        self._waiting: list[Message] = []

    def add(self, messages: Sequence[Message]) -> None:
        """Compare the next messages of the partition, in the order of their offsets."""
        self._compare([*self._waiting, *messages], last=False)

    def _compare(self, messages: list[Message], *, last: bool) -> None:
        messages = [message for message in messages if (message.key() or b"").startswith(self._prefix)]
        keys = [message.key() or b"" for message in messages]
        self._waiting = []
        at = 0
        while at < len(messages):
            if count := self._equal(messages, keys, at):
                at += count
            elif self._compare_one(messages[at], keys, at, last):
                at += 1
            else:
                self._waiting = messages[at:]
                return

    def _equal(self, messages: Sequence[Message], keys: Sequence[bytes], at: int) -> int:
        """Compare several messages, from position `at` on, with the next expected rows in a single comparison.

        If all of these messages are equal to their rows, move past the rows and return their number. Otherwise return
        0.
        """
        rows = self._cursor.next(MAX_STRIDE)
        if rows is None or self._swapped is not None:
            return 0
        count = min(self._stride, len(messages) - at, self._before_early(rows.end) - rows.first)
        if count > 1:
            rows = rows.part(rows.first, rows.first + count)
            expected = f"\n{self._job.job_id}/".join(map(str, range(rows.first, rows.end)))
            equal = b"\n".join(keys[at : at + count]) == b"%s%s" % (self._prefix, expected.encode())
            if equal and rows.lines is not None:
                kind = pa.large_binary() if pa.types.is_large_string(rows.lines.type) else pa.binary()
                values = pa.array(map(Message.value, messages[at : at + count]), kind)
                equal = values.equals(rows.lines.cast(kind))
            if equal:
                self._stride = min(MAX_STRIDE, 2 * self._stride)
                self._pass(rows, messages[at + count - 1].offset() or 0)
                return count
        self._stride = 2
        return 0

    def _before_early(self, end: int) -> int:
        """Return the number of the first row before `end` that came too early. Return `end` if there is no such row."""
        first = self._job.first
        early = self._states.find(_EARLY, self._cursor.row - first, end - first)
        return end if early < 0 else first + early

    def _pass(self, rows: ExpectedRows, offset: int) -> None:
        """Move the cursor past expected rows that have arrived. `offset` is the offset of their last message."""
        count = rows.end - rows.first
        self._offset = max(self._offset, offset)
        self._cursor.advance(count)
        if rows.lines is None:
            self._log.tally.not_reproducible += count

    def _compare_one(self, message: Message, keys: Sequence[bytes], at: int, last: bool) -> bool:
        """Compare the message at the position `at`. Return False if later messages must be read first.

        `last` is true if there are no later messages.
        """
        row, offset, value = self._number(keys[at]), message.offset() or 0, message.value()
        if row is None or row >= self._job.sent:
            if row is not None and offset >= (self._job.offset or 0) and self._job.running():
                self._log.tally.not_yet += 1
            else:
                first, end = (self._cursor.row, self._cursor.row) if row is None else (row, row + 1)
                self._fault(FaultKind.FOREIGN, first, end, offset)
        elif row < self._job.first:
            pass  # the log of the job begins later
        elif self._state(row) == _EARLY or (row < self._cursor.row and self._state(row) != _MISSING):
            self._fault(FaultKind.DUPLICATED, row, row + 1, offset)
        elif row < self._cursor.row:
            self._fill(row, value, offset)
        else:
            following = self._following(row, keys, at) if row > self._cursor.row else None
            if following is None and row > self._cursor.row and not last and len(keys) - at <= MAX_AHEAD:
                return False
            is_early = following is not None and following < row and self._state(row + 1) != _EARLY
            if is_early and self._hold(row, value, offset):
                self._states[row - self._job.first] = _EARLY
                self._swapped = following if following == self._cursor.row == row - 1 else None
            else:
                self._skip_to(row, offset)
                self._take(value, offset, moved=row == self._swapped)
                self._take_early()
        return True

    def _number(self, key: bytes) -> int | None:
        """Return the row number in a key of the job. Return None if the key has no valid row number."""
        text = key[len(self._prefix) :]
        return int(text) if text.isdigit() and len(text) < 20 and (text == b"0" or text[:1] != b"0") else None

    def _following(self, row: int, keys: Sequence[bytes], at: int) -> int | None:
        """Return the row number of the next relevant message after the message with the number `row`.

        `at` is the position of the message with `row`. If the result is lower than `row`, the row came too early. Only
        the next MAX_AHEAD messages are read. Return None if none of them is relevant. Three kinds of messages are
        not relevant:
        - messages without a row number, or with a row number that this check does not cover
        - messages with `row` again, or with a row before the next expected row
        - messages with a row that is already known to have come too early
        """
        first, end = self._cursor.row, self._job.sent
        for number in map(self._number, keys[at + 1 : at + 1 + MAX_AHEAD]):
            if number not in (None, row) and first <= number < end and self._state(number) != _EARLY:
                return number
        return None

    def _state(self, row: int) -> int:
        return self._states[row - self._job.first] if row < self._job.sent else 0

    def _hold(self, row: int, text: bytes | None, detail: int | None) -> bool:
        """Hold a row for a later comparison. Return False if the memory for held rows is full."""
        size = HELD_ROW_BYTES + len(text or b"")
        if self._held_bytes + size > self._max_held_bytes:
            return False
        self._held_bytes += size
        self._held[row] = text, detail
        return True

    def _release(self, row: int) -> tuple[bytes | None, int | None]:
        """Stop holding a row. Return the two values that were held. Both are None if the row was not held."""
        self._states[row - self._job.first] = 0
        if (held := self._held.pop(row, None)) is None:
            return None, None
        self._held_bytes -= HELD_ROW_BYTES + len(held[0] or b"")
        return held

    def _take(self, value: bytes | None, offset: int, *, moved: bool) -> None:
        """Compare the next expected row with its message. `moved` is true if the message is out of order."""
        rows = self._cursor.next(1)
        assert rows is not None
        self._pass(rows, offset)
        is_altered = not all(self._has(line, value) for _, line, _ in rows.rows())
        if is_altered or moved:
            kind = FaultKind.ALTERED if is_altered else FaultKind.OUT_OF_ORDER
            self._fault(kind, rows.first, rows.end, offset, *rows.range_of_dates())
        self._swapped = None

    def _take_early(self) -> None:
        """Compare the next expected rows whose messages came too early. Stop before the first other row."""
        while self._state(self._cursor.row) == _EARLY:
            value, offset = self._release(self._cursor.row)
            self._take(value, offset or 0, moved=True)

    def _skip_to(self, row: int, offset: int | None) -> None:
        """Mark all expected rows before `row` as missing so far, except rows that have already arrived.

        `offset` is the offset of the message with `row`. It is None after the last message.
        """
        while self._cursor.row < row:
            self._take_early()
            if self._cursor.row >= row:
                return
            rows = self._cursor.next(self._before_early(row) - self._cursor.row)
            assert rows is not None
            for part, is_old in self._cursor.by_age(rows):
                dates = part.range_of_dates()
                last_date = self._cursor.last_date
                self._skip(SkippedRows(part.first, part.end, is_old, *dates, self._offset, offset, last_date))
            count = rows.end - rows.first
            self._states[rows.first - self._job.first : rows.end - self._job.first] = bytes([_MISSING]) * count
            if self._held_bytes < self._max_held_bytes:
                for number, line, date in rows.rows():
                    if not self._hold(number, line, date):
                        break
            self._cursor.advance(count)

    def _skip(self, skip: SkippedRows) -> None:
        last = self._skips[-1] if self._skips else None
        adjacent = last is not None and last.end == skip.first and last.before == skip.before
        if last is None or last.old != skip.old or not (adjacent or len(self._skips) >= self._max_skips):
            self._skips.append(skip)
            return
        last.end = skip.end
        last.from_ms, last.to_ms = earliest(last.from_ms, skip.from_ms), latest(last.to_ms, skip.to_ms)

    def _fill(self, row: int, value: bytes | None, offset: int) -> None:
        """Record the arrival of a row that was missing so far. The row is now out of order instead of missing."""
        skip = self._skips[bisect_right(self._skips, row, key=lambda skip: skip.first) - 1]
        line, date = self._release(row)
        self.not_compared += line is None
        kind = FaultKind.OUT_OF_ORDER if line is None or self._has(line, value) else FaultKind.ALTERED
        date = skip.from_ms if line is None else date
        self._fault(kind, row, row + 1, offset, date, date, before=skip.date_before)

    def _fault(
        self, kind: FaultKind, first: int, end: int, offset: int | None, *dates: int | None, before: int | None = None
    ) -> None:
        self._log.add(DeliveryFinding(kind, first, end, self._job.partition, offset, None, *dates), date=before)

    def finish(self, low: int, hidden: int | None) -> None:
        """Decide, after the last message, which rows are missing.

        `low` is the first offset that the partition still has. `hidden` is the first offset whose message cannot be
        read yet because of an open transaction. If `hidden` is None, all messages were read.
        """
        self._compare(self._waiting, last=True)
        self._skip_to(self._job.sent, None)
        written = self._written_before(low)
        for skip in self._skips:
            states = self._states[skip.first - self._job.first : skip.end - self._job.first]
            for match in re.finditer(b"%c+" % _MISSING, states):
                first, end = skip.first + match.start(), skip.first + match.end()
                gone = end if skip.old else max(first, min(end, written, skip.first + low - skip.before - 1))
                self._log.tally.no_longer_there += gone - first
                seen = max(gone, min(end, self._hidden_from(skip, hidden)))
                self._log.tally.not_yet += end - seen
                self._log.tally.hidden += end - seen
                if seen < end:
                    self._log.tally.hidden_from = earliest(self._log.tally.hidden_from, skip.from_ms or 1)
                if gone < seen:
                    dates = skip.from_ms, skip.to_ms
                    self._fault(FaultKind.MISSING, gone, seen, skip.offset, *dates, before=skip.date_before)

    def _written_before(self, low: int) -> int:
        """Return the number of the first row that must have the offset `low` or a higher offset.

        The partition no longer has offsets below `low`, so earlier rows may have been deleted. Each row of a query step
        takes at least one offset, beginning with the offset of the step. If the log has no offsets, return the number
        after the last delivered row.
        """
        if not self._job.offsets:
            return self._job.sent
        firsts = [first for first, _ in self._job.offsets]
        for (first, offset), end in zip(self._job.offsets, [*firsts[1:], self._job.sent], strict=True):
            if first + low - offset < end:
                return first + max(0, low - offset)
        return self._job.sent

    def _hidden_from(self, skip: SkippedRows, hidden: int | None) -> int:
        """Return the number of the first row that an open transaction may hide in the gap `skip`.

        All messages from the offset `hidden` on are hidden. If no row of the gap is hidden, the result is a number
        after the gap. If all rows are hidden, the result may be a number before the gap.
        """
        if skip.offset is not None or self._job.offset is None or hidden is None:
            return self._job.sent
        return self._job.sent - (self._job.offset - hidden)

    def _has(self, line: bytes, value: bytes | None) -> bool:
        """Whether a message has the values of an expected row."""
        return value is not None and same_values(line, value, JSON_TOKENS, exact=self._cursor.exact)
