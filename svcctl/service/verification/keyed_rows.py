"""The messages of a partition, compared with the rows that a job should have delivered there.

A message has the key `<job>/<row>`, and other keys are of other writers. Messages that are exactly the next rows are
compared many at once; where they are not, one by one. A row that is not the next one shows a gap, which later messages
may fill, or came too early; the message after it tells which.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import pyarrow as pa
from confluent_kafka import Message

from svcctl.service.verification import DeliveredJob, DeliveryFinding, FaultKind
from svcctl.service.verification.comparison import JSON_TOKENS, ExpectedCursor, same_values
from svcctl.service.verification.findings import FaultLog

MAX_AHEAD = 100
"""How many messages after one that is not next are looked at to find the next row."""
MAX_STRIDE = 4096
"""The most messages that are compared at once."""
MAX_HELD_BYTES = 16 << 20
"""How much of the values of rows that are out of order is held to compare them."""
HELD_ROW_BYTES = 300
"""What a held row takes in memory besides its value, as measured with CPython."""
MAX_SKIPS = 50_000
"""How many gaps are held with their dates; more are merged."""


@dataclass(slots=True)
class SkippedRow:
    """Rows that were not next where they should have been: between the messages at `before` and at `offset`.

    `known` is the latest date before them.
    """

    first: int
    end: int
    old: bool
    from_ms: int | None
    to_ms: int | None
    before: int
    offset: int | None
    known: int


class RowSet:
    """A set of row numbers from `first` on, of one bit each."""

    def __init__(self, first: int, end: int) -> None:
        self._first = first
        self._bits = bytearray((end - first) // 8 + 1)

    def __contains__(self, row: int) -> bool:
        at = row - self._first
        return bool(self._bits[at >> 3] & 1 << (at & 7))

    def add(self, first: int, end: int) -> None:
        first, end = first - self._first, end - self._first
        while first < end:
            if first & 7 == 0 and end - first >= 8:
                self._bits[first >> 3 : end >> 3] = b"\xff" * ((end >> 3) - (first >> 3))
                first = end & ~7
            else:
                self._bits[first >> 3] |= 1 << (first & 7)
                first += 1

    def remove(self, row: int) -> None:
        at = row - self._first
        self._bits[at >> 3] &= ~(1 << (at & 7))

    def runs(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """The rows of the set between two numbers, as ranges; a long range may come in pieces."""
        for start in range(first, end, 1 << 16):
            stop = min(end, start + (1 << 16))
            low, high = (start - self._first) >> 3, (stop - self._first + 7) >> 3
            bits = format(int.from_bytes(self._bits[low:high], "little"), "b")[::-1]
            origin = self._first + 8 * low
            for match in re.finditer("1+", bits):
                run = max(start, origin + match.start()), min(stop, origin + match.end())
                if run[0] < run[1]:
                    yield run


class PartitionComparison:
    """Compares messages with a job's rows, and notes the faults in `log`.

    Rows that arrived twice are noted in `duplicates`.
    """

    def __init__(self, job: DeliveredJob, cursor: ExpectedCursor, log: FaultLog, duplicates: FaultLog) -> None:
        self.not_yet = 0
        """Messages of a running job after the rows that are in its log."""
        self.hidden_from: int | None = None
        """The earliest date of rows that an open transaction may hide, in epoch milliseconds."""
        self.not_reproducible = 0
        self.no_longer_there = 0
        self.not_compared = 0
        """Rows out of order whose values were not compared, because too many were held."""
        self._job = job
        self._prefix = f"{job.job_id}/".encode()
        self._cursor = cursor
        self._log = log
        self._duplicates = duplicates
        self._missing = RowSet(job.first, job.sent)
        self._skips: list[SkippedRow] = []
        self._early: dict[int, tuple[bytes | None, int]] = {}
        """The values and offsets of rows that came before they were next."""
        self._early_rows: list[int] = []
        """Their numbers, as a heap."""
        self._late: dict[int, tuple[bytes, int | None]] = {}
        """The expected text and date of missing rows."""
        self._held_bytes = 0
        self._stride = MAX_STRIDE
        self._offset = -1
        """The offset of the last message that was next."""
        self._swapped: int | None = None
        self._waiting: list[Message] = []

    def add(self, messages: Sequence[Message]) -> None:
        """Compare the next messages of the partition, in the order of their offsets."""
        self._compare([*self._waiting, *messages], last=False)

    def _compare(self, messages: Sequence[Message], *, last: bool) -> None:
        keys = [message.key() or b"" for message in messages]
        if not all(map(self._is_own, keys)):
            messages = [message for message, key in zip(messages, keys, strict=True) if self._is_own(key)]
            keys = [key for key in keys if self._is_own(key)]
        self._waiting = []
        at = 0
        while at < len(messages):
            if count := self._equal(messages, keys, at):
                at += count
            elif self._one(messages[at], keys, at, last):
                at += 1
            else:
                self._waiting = list(messages[at:])
                return

    def _is_own(self, key: bytes) -> bool:
        return key.startswith(self._prefix)

    def _equal(self, messages: Sequence[Message], keys: Sequence[bytes], at: int) -> int:
        """How many messages from `at` on are exactly the next rows, if several are; these rows are passed."""
        stretch = self._cursor.next(MAX_STRIDE) if self._cursor.row < self._job.sent else None
        if stretch is None or self._swapped is not None:
            return 0
        early = self._early_rows[0] if self._early_rows else stretch.end
        most = min(len(messages) - at, min(stretch.end, early) - stretch.first)
        while (count := min(self._stride, most)) > 1:
            part = stretch.part(stretch.first, stretch.first + count)
            wanted = f"\n{self._job.job_id}/".join(map(str, range(part.first, part.end)))
            equal = b"\n".join(keys[at : at + count]) == b"%s%s" % (self._prefix, wanted.encode())
            if equal and part.lines is not None:
                kind = pa.large_binary() if pa.types.is_large_string(part.lines.type) else pa.binary()
                values = pa.array(map(Message.value, messages[at : at + count]), kind)
                equal = values.equals(part.lines.cast(kind))
            if equal:
                self._stride = min(MAX_STRIDE, 2 * self._stride)
                self._pass(part.first, part.end, messages[at + count - 1].offset() or 0, known=part.lines is not None)
                return count
            self._stride = count // 2
        self._stride = max(2, self._stride)
        return 0

    def _pass(self, first: int, end: int, offset: int, *, known: bool) -> None:
        """Pass rows that were found where they should be."""
        self._offset = offset
        self._cursor.advance(end - first)
        if not known:
            self.not_reproducible += end - first

    def _one(self, message: Message, keys: Sequence[bytes], at: int, last: bool) -> bool:
        """Compare one message. False if the messages after it have to be known first."""
        row, offset, value = self._number(keys[at]), message.offset() or 0, message.value()
        if row is None or row >= self._job.sent:
            if row is not None and self._job.running and offset >= (self._job.offset or 0):
                self.not_yet += 1
            else:
                first, end = (self._cursor.row, self._cursor.row) if row is None else (row, row + 1)
                self._fault(FaultKind.FOREIGN, first, end, offset)
        elif row < self._job.first:
            pass  # of the time before the log
        elif row in self._early or (row < self._cursor.row and row not in self._missing):
            self._fault(FaultKind.DUPLICATED, row, row + 1, offset)
        elif row < self._cursor.row:
            self._fill(row, value, offset)
        else:
            following = self._following(row, keys, at) if row > self._cursor.row else None
            if following is None and row > self._cursor.row and not last and len(keys) - at <= MAX_AHEAD:
                return False
            is_early = following is not None and following < row and row + 1 not in self._early
            if is_early and self._hold(value):
                self._early[row] = value, offset
                heappush(self._early_rows, row)
                self._swapped = following if following == self._cursor.row == row - 1 else None
            else:
                self._skip_to(row, offset)
                self._take(value, offset)
                self._take_early()
        return True

    def _number(self, key: bytes) -> int | None:
        """The row number of a key of the job; None if it has none."""
        text = key[len(self._prefix) :]
        return int(text) if text.isdigit() and len(text) < 20 and (text == b"0" or text[:1] != b"0") else None

    def _following(self, row: int, keys: Sequence[bytes], at: int) -> int | None:
        """The row of the next message that could be next or later."""
        for other in map(self._number, keys[at + 1 : at + 1 + MAX_AHEAD]):
            if other not in (None, row) and self._cursor.row <= other < self._job.sent and other not in self._early:
                return other
        return None

    def _hold(self, value: bytes | None) -> bool:
        """Whether there is room to hold another value."""
        size = HELD_ROW_BYTES + len(value or b"")
        if self._held_bytes + size > MAX_HELD_BYTES:
            return False
        self._held_bytes += size
        return True

    def _take(self, value: bytes | None, offset: int) -> None:
        """Compare the next row with its message."""
        stretch = self._cursor.next(1)
        assert stretch is not None
        row, dates, known = self._cursor.row, stretch.range_of_dates(), stretch.lines is not None
        self._pass(row, row + 1, offset, known=known)
        if known and not _has(stretch.texts()[0], value):
            self._fault(FaultKind.ALTERED, row, row + 1, offset, *dates)
        elif row == self._swapped:
            self._fault(FaultKind.OUT_OF_ORDER, row, row + 1, offset, *dates)
        self._swapped = None

    def _take_early(self) -> None:
        """Pass the next rows as long as they came before."""
        while (held := self._early.pop(self._cursor.row, None)) is not None:
            value, offset = held
            heappop(self._early_rows)
            self._held_bytes -= HELD_ROW_BYTES + len(value or b"")
            stretch = self._cursor.next(1)
            assert stretch is not None
            row, equal = self._cursor.row, stretch.lines is None or _has(stretch.texts()[0], value)
            self._pass(row, row + 1, self._offset, known=stretch.lines is not None)
            kind = FaultKind.OUT_OF_ORDER if equal else FaultKind.ALTERED
            self._fault(kind, row, row + 1, offset, *stretch.range_of_dates())

    def _skip_to(self, row: int, offset: int | None) -> None:
        """Note the rows before this one as missing, except those that came before."""
        while self._cursor.row < row:
            if self._cursor.row in self._early:
                self._take_early()
                continue
            end = min([row, *self._early_rows[:1]])
            stretch = self._cursor.next(end - self._cursor.row)
            assert stretch is not None
            for part, old in self._cursor.by_age(stretch):
                skip = SkippedRow(
                    part.first, part.end, old, *part.range_of_dates(), self._offset, offset, self._cursor.last_date
                )
                self._skip(skip)
            self._missing.add(stretch.first, stretch.end)
            if stretch.lines is not None and self._held_bytes < MAX_HELD_BYTES:
                for number, (line, date) in enumerate(stretch.rows(), stretch.first):
                    if not self._hold(line):
                        break
                    self._late[number] = line, date
            self._cursor.advance(stretch.end - stretch.first)

    def _skip(self, skip: SkippedRow) -> None:
        last = self._skips[-1] if self._skips else None
        adjacent = last is not None and last.end == skip.first and last.before == skip.before
        if last is None or last.old != skip.old or not (adjacent or len(self._skips) >= MAX_SKIPS):
            self._skips.append(skip)
            return
        last.end = skip.end
        last.from_ms = min((ms for ms in (last.from_ms, skip.from_ms) if ms is not None), default=None)
        last.to_ms = max((ms for ms in (last.to_ms, skip.to_ms) if ms is not None), default=None)

    def _fill(self, row: int, value: bytes | None, offset: int) -> None:
        """Note a missing row as found, after rows that should be after it."""
        self._missing.remove(row)
        skip = self._skips[bisect_right(self._skips, row, key=lambda one: one.first) - 1]
        line, date = self._late.pop(row, (None, skip.from_ms))
        kind = FaultKind.OUT_OF_ORDER
        if line is None:
            self.not_compared += 1
        else:
            self._held_bytes -= HELD_ROW_BYTES + len(line)
            kind = kind if _has(line, value) else FaultKind.ALTERED
        self._fault(kind, row, row + 1, offset, date, date, known=skip.known)

    def _fault(
        self,
        kind: FaultKind,
        first: int,
        end: int,
        offset: int | None,
        from_ms: int | None = None,
        to_ms: int | None = None,
        known: int | None = None,
    ) -> None:
        finding = DeliveryFinding(
            kind, first, end, partition=self._job.partition, offset=offset, from_ms=from_ms, to_ms=to_ms
        )
        log = self._duplicates if kind is FaultKind.DUPLICATED else self._log
        log.add(finding, self._cursor.last_date if known is None else known)

    def finish(self, low: int, hidden: int | None) -> None:
        """Decide which rows are missing, after the last message. `low` is the first offset that the partition still
        has. Rows at the offset `hidden` or later cannot be seen yet.
        """
        self._compare(self._waiting, last=True)
        self._skip_to(self._job.sent, None)
        written = self._written_before(low)
        for skip in self._skips:
            for first, end in self._missing.runs(skip.first, skip.end):
                gone = end if skip.old else max(first, min(end, written, skip.first + low - skip.before - 1))
                self.no_longer_there += gone - first
                seen = max(gone, min(end, self._hidden_from(skip, hidden)))
                self.not_yet += end - seen
                if seen < end:
                    self.hidden_from = min(self.hidden_from or sys.maxsize, skip.from_ms or 1)
                if gone < seen:
                    dates = skip.from_ms, skip.to_ms
                    self._fault(FaultKind.MISSING, gone, seen, skip.offset, *dates, known=skip.known)

    def _written_before(self, low: int) -> int:
        """The row before which all rows may have been written before the offset `low`: each row takes an offset after
        the one where its step began. All rows, if no such offset is known."""
        if not self._job.offsets:
            return self._job.sent
        firsts = [first for first, _ in self._job.offsets]
        for (first, offset), end in zip(self._job.offsets, [*firsts[1:], self._job.sent], strict=True):
            if first + low - offset < end:
                return first + max(0, low - offset)
        return self._job.sent

    def _hidden_from(self, skip: SkippedRow, hidden: int | None) -> int:
        """The row from which on missing rows may be at the offset `hidden` or later: up to the saved offset, each row
        takes an offset, and none is after a message that was seen."""
        if skip.offset is not None or self._job.offset is None or hidden is None:
            return self._job.sent
        return self._job.sent - (self._job.offset - hidden)


def _has(line: bytes, value: bytes | None) -> bool:
    return value is not None and same_values(line, value, JSON_TOKENS)
