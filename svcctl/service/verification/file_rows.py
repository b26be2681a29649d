"""The comparison of a csv file with the rows that a job should have delivered in the file.

As long as the rows of the file are equal to the expected rows, many rows are compared at once. At a difference, the
next rows of the file are aligned with the next expected rows. The alignment distinguishes missing, added and moved rows
from rows with wrong values.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice, takewhile
from typing import TYPE_CHECKING, NamedTuple

from svcctl.errors import SvcctlError
from svcctl.service.rendering import arrow
from svcctl.service.verification import DeliveryFinding, ExpectedRows, FaultKind
from svcctl.service.verification.comparison import CSV_TOKENS, ExpectedCursor, comparable, same_values
from svcctl.service.verification.findings import FaultLog

if TYPE_CHECKING:
    from svcctl.service.jobs.step_log import FileEntry

MAX_ALIGNED = 1000
"""The maximum number of rows of the file, and of expected rows, that are aligned at once.

If more than this number of consecutive rows are added or missing, they count as altered rows.
"""
MAX_PAIRS = 4 * MAX_ALIGNED
"""The maximum number of pairs of equal rows for an exact alignment.

With more pairs, the alignment uses only the first run of at least MIN_RUN equal rows.
"""
MIN_RUN = 32
"""The minimum length of a run of equal rows, if there are more than MAX_PAIRS pairs of equal rows.

A shorter run may be a coincidence.
"""
WINDOW_BYTES = 8 << 20
"""The number of bytes of a file that are read ahead to align rows. A csv record with more bytes is cut."""
MAX_ADDED = 1_000_000
"""The approximate maximum of additional rows that are counted at the end of a file. Further rows are ignored."""


class Row(NamedTuple):
    """A row that a file should have.

    `line` is the text of the row. `value` is the result of `comparable` for this text.
    """

    number: int
    line: bytes
    date: int | None
    value: bytes


def equal_blocks(expected: Sequence[bytes], values: Sequence[bytes]) -> list[tuple[int, int, int]]:
    """Return runs of equal rows: the positions of each run in `expected` and in `values`, and its length."""
    size = min(len(expected), len(values))
    if same := next((at for at in range(size) if expected[at] != values[at]), size):
        return [(0, 0, same)]
    count = Counter(values)
    if sum(count[value] for value in expected) <= MAX_PAIRS:
        return list(SequenceMatcher(None, expected, values, autojunk=False).get_matching_blocks()[:-1])
    # The rows have few different values, for which SequenceMatcher may need minutes.
    for at in range(1, size):
        for i, j in ((at, at), (at, 0), (0, at)):
            pairs = zip(islice(expected, i, None), islice(values, j, None), strict=False)
            run = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            if run >= MIN_RUN:
                return [(i, j, run)]
    return []


class FileText:
    """The text of a file. The file is read only once, in pieces.

    The bytes that were read, but not yet skipped, are called the window.
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.fault: FaultKind | None = None
        """The fault of the file's compression. It is None if there is no fault.

        It is TRUNCATED if the compressed bytes end too early, and ALTERED if they are damaged.
        """
        self.is_over = False
        """Whether all bytes of the file were read."""
        self._pieces = pieces
        self._window = b""

    def skip_equal(self, text: memoryview, bounds: Sequence[int]) -> int:
        """Skip the next rows of the file while they are equal to the rows of `text`. Return the number of skipped rows.

        `bounds` has the position of each row in `text`, and the end of the last row.
        """
        window, rows, first = self.window(len(text)), bytes(text), bounds[0]
        count = len(bounds) - 1
        if not window.startswith(rows):
            count = bisect_left(bounds, True, key=lambda bound: not window.startswith(rows[: bound - first])) - 1
        self.skip(bounds[count] - first)
        return count

    def window(self, size: int) -> bytes:
        """Return at least the next `size` bytes, or all remaining bytes. The position in the file stays the same."""
        loaded, count = [self._window], len(self._window)
        while count < size and not self.is_over:
            try:
                piece = next(self._pieces, None)
            except EOFError:
                self.fault, piece = FaultKind.TRUNCATED, None
            except SvcctlError:
                raise
            except Exception:  # the libraries raise many kinds of errors for an invalid archive
                self.fault, piece = FaultKind.ALTERED, None
            self.is_over = piece is None
            loaded.append(piece or b"")
            count += len(loaded[-1])
        self._window = b"".join(loaded)
        return self._window

    def skip(self, size: int) -> None:
        self._window = self._window[size:]

    def records(self, most: int, rows: Sequence[bytes] = ()) -> list[bytes]:
        """Return at most `most` of the next records. `rows` are the expected rows.

        The position in the file stays the same.
        """
        window = self.window(WINDOW_BYTES)
        return split_records(window, most, rows, is_over=self.is_over)

    def skip_records(self, most: int) -> list[bytes]:
        records = self.records(most)
        self.skip(sum(map(len, records)))
        return records


def split_records(text: bytes, most: int, rows: Sequence[bytes] = (), *, is_over: bool) -> list[bytes]:
    """Return at most `most` records from the beginning of a text, each with its line end.

    A line end within quotes belongs to the record. In two cases, the record ends at such a line end nevertheless:
    - The quotes are never closed.
    - The next line is one of the expected `rows`.

    The last record of the text may be incomplete. `is_over` decides whether such a record is left out:
    - If `is_over` is true, the file ends here. The record is left out if an expected row begins with the
      text of this record.
    - If `is_over` is false, the file goes on. The record is left out if there are other records.
    """
    lines = frozenset(rows)
    records: list[bytes] = []
    at = 0
    while at < len(text) and len(records) < most:
        end = _end_of_record(text, at)
        if end is None:
            if any(row.startswith(text[at:]) for row in rows) if is_over else records:
                break
            end = text.find(b"\n", at) + 1 or len(text)
        line_end = text.find(b"\n", at) + 1
        while lines and 0 < line_end < end:
            if text[line_end : _end_of_record(text, line_end)] in lines:
                end = line_end
            line_end = text.find(b"\n", line_end) + 1
        records.append(text[at:end])
        at = end
    return records


def _end_of_record(text: bytes, at: int) -> int | None:
    quotes = 0
    while (end := text.find(b"\n", at) + 1) > 0:
        quotes += text.count(b'"', at, end)
        if quotes % 2 == 0:
            return end
        at = end
    return None


class FileComparison:
    """Compares the records of a file with the expected rows, and adds the faults to `log`.

    The expected rows are the next rows of `cursor`. `header` is the line of column names with which the file should
    begin, or None if this line is not known.
    """

    def __init__(
        self, file: FileEntry, name: str, cursor: ExpectedCursor, log: FaultLog, header: bytes | None = None
    ) -> None:
        self.not_reproducible = 0
        self.has_faults = False
        """Whether a fault was found."""
        self._file = file
        self._name = name
        self._cursor = cursor
        self._log = log
        self._header = header
        self._has_equal = self._has_altered = False
        self._recent: deque[ExpectedRows] = deque()
        """The most recent correct rows. If such a row appears in the file again, it is recognised as a duplicate."""

    def compare(self, text: FileText) -> Iterator[None]:
        """Compare all records of the file.

        The first record is skipped as the header, except if it equals the first expected row. Yields from time to time,
        so that the caller can report progress or stop.
        """
        header, rows = text.records(1), self._next()
        if rows is None or header != [line for _, line, _ in rows.part(rows.first, rows.first + 1).rows()]:
            text.skip(sum(map(len, header)))
        if self._header is not None and not self._header.startswith(b"".join(header)):
            self._has_altered = True
        while (rows := self._next()) is not None:
            if rows.lines is None:
                equal = len(text.skip_records(min(rows.end - rows.first, MAX_ALIGNED)))
                self.not_reproducible += equal
            elif equal := text.skip_equal(arrow.text(rows.lines), arrow.offsets(rows.lines)):
                self._pass(rows.part(rows.first, rows.first + equal))
            self._cursor.advance(equal)
            if not equal and not self._align(text):
                break
            yield
        is_replaced = self._has_altered and not self._has_equal
        if self._next() is not None:
            kind = FaultKind.ALTERED if is_replaced else text.fault or FaultKind.TRUNCATED
            for rows in self._cursor.take(self._file.end):
                self._note(kind, rows.first, rows.end, *rows.range_of_dates())
        elif text.fault is FaultKind.TRUNCATED:
            last, end = self._recent[-1] if self._recent else None, self._file.end
            dates = last.part(end - 1, end).range_of_dates() if last is not None and last.end == end else ()
            self._note(FaultKind.TRUNCATED, end - 1, end, *dates)
        elif not is_replaced:
            count = 0
            while (added := text.skip_records(MAX_ALIGNED)) and count < MAX_ADDED:
                self._note_added([comparable(record) for record in added])
                count += len(added)

    def _next(self) -> ExpectedRows | None:
        return self._cursor.next(self._file.end - self._cursor.row)

    def _pass(self, equal: ExpectedRows) -> None:
        """Remember rows that are at the right position in the file."""
        self._has_equal = True
        self._recent.append(equal.part(max(equal.first, equal.end - MAX_ALIGNED), equal.end))
        while self._recent[-1].end - self._recent[0].end >= MAX_ALIGNED:
            self._recent.popleft()

    def _align(self, text: FileText) -> bool:
        """Align the next expected rows with the next records of the file, and add the faults.

        The first expected row differs from the first record. Return False if the file has no more records.
        """
        rows = list(self._rows_to_align())
        records = text.records(MAX_ALIGNED, [row.line for row in rows])
        if not records:
            return False
        expected, values = [row.value for row in rows], [comparable(record) for record in records]
        size = min(len(expected), len(values))
        blocks = equal_blocks(expected, values)
        i, j = (blocks[-1][0] + blocks[-1][2], blocks[-1][1] + blocks[-1][2]) if blocks else (size, size)
        if blocks:
            for part in self._cursor.following(len(rows)):
                self._pass(part)
        self._name_faults(rows[:i], values[:j], [*blocks, (i, j, 0)])
        exact = self._cursor.exact
        for first, at, size in blocks:
            pairs = zip(rows[first : first + size], records[at : at + size], strict=True)
            altered = [row for row, record in pairs if not same_values(row.line, record, CSV_TOKENS, exact=exact)]
            self._note_rows(FaultKind.ALTERED, altered)
        text.skip(sum(map(len, records[:j])))
        self._cursor.advance(i)
        return True

    def _rows_to_align(self) -> Iterator[Row]:
        """Yield the next expected rows, up to the first row that cannot be produced again.

        Yields at most MAX_ALIGNED rows, with at most WINDOW_BYTES bytes together. If the first row alone has more
        bytes, only this row is yielded.
        """
        size = 0
        for part in self._cursor.following(min(MAX_ALIGNED, self._file.end - self._cursor.row)):
            if part.lines is None:
                return
            for number, line, date in part.rows():
                if size and size + len(line) >= WINDOW_BYTES:
                    return
                size += len(line)
                yield Row(number, line, date, comparable(line))

    def _name_faults(self, rows: list[Row], values: list[bytes], blocks: list[tuple[int, int, int]]) -> None:
        """Add the faults between blocks of equal rows.

        `rows` are the expected rows, and `values` are the rows of the file. Each block is given by its position in
        `rows`, its position in `values`, and the number of its rows.
        """
        gone, extra = Counter(row.value for row in rows), Counter(values)
        gone, extra = gone - extra, extra - gone
        i = j = 0
        for i_next, j_next, size in blocks:
            moved, missing = list[Row](), list[Row]()
            for row in rows[i:i_next]:
                (missing if _taken(gone, row.value) else moved).append(row)
            added = [value for value in values[j:j_next] if _taken(extra, value)]
            pairs = min(len(missing), len(added))
            self._note_rows(FaultKind.OUT_OF_ORDER, moved)
            self._note_rows(FaultKind.ALTERED, missing[:pairs])
            self._note_rows(FaultKind.MISSING, missing[pairs:])
            self._note_added(added[pairs:])
            i, j = i_next + size, j_next + size

    def _note_added(self, values: Sequence[bytes]) -> None:
        """Add the faults of rows that the file should not have.

        A row with the values of a recent correct row is DUPLICATED. Any other row is FOREIGN.
        """
        recent: dict[bytes, int] = {}
        for part in self._recent if values else ():
            recent |= {comparable(line): number for number, line, _ in part.rows()}
        for number in (recent[value] for value in values if value in recent):
            self._note(FaultKind.DUPLICATED, number, number + 1)
        if foreign := sum(value not in recent for value in values):
            self._note(FaultKind.FOREIGN, self._cursor.row, self._cursor.row, count=foreign)

    def _note_rows(self, kind: FaultKind, rows: Sequence[Row]) -> None:
        self._has_altered = self._has_altered or (kind is FaultKind.ALTERED and bool(rows))
        for row in rows:
            self._note(kind, row.number, row.number + 1, row.date, row.date)

    def _note(self, kind: FaultKind, first: int, end: int, *dates: int | None, count: int = 1) -> None:
        self.has_faults = True
        self._log.add(DeliveryFinding(kind, first, end, None, None, self._name, *dates), count=count)


def _taken(counter: Counter[bytes], value: bytes) -> bool:
    """Decrease the count of a value by 1. Return False if the count was 0."""
    counter[value] -= 1
    return counter[value] >= 0
