"""The rows of a file of csv, compared with those that a job should have delivered in it.

Equal rows are compared many at once. Where they are not, the next rows of both sides are aligned, so that rows which
are missing, added or moved are distinguished from those with other values.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

from svcctl.errors import SvcctlError
from svcctl.service.rendering import arrow
from svcctl.service.verification import DeliveryFinding, ExpectedRows, FaultKind
from svcctl.service.verification.comparison import CSV_TOKENS, ExpectedCursor, comparable, same_values
from svcctl.service.verification.findings import FaultLog

if TYPE_CHECKING:
    from svcctl.service.jobs.step_log import FileEntry

MAX_ALIGNED = 1000
"""The most rows of each side that are aligned at once. Longer runs of added or missing rows count as altered."""
WINDOW_BYTES = 8 << 20
"""The bytes of a file that are read ahead to align rows. Longer records are cut."""
MAX_ADDED = 1_000_000
"""The most additional rows of a file that are counted."""


class Row(NamedTuple):
    """A row that a file should have; `value` is its text in the form of `comparable`."""

    number: int
    line: bytes
    date: int | None
    value: bytes


class FileText:
    """The text of a file that is read once, from pieces of bytes."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.fault: FaultKind | None = None
        """How the bytes end: TRUNCATED if they end too early for their packing, ALTERED if that is damaged."""
        self.is_over = False
        """Whether the last byte is in the window."""
        self._pieces = pieces
        self._window = b""

    def skip_equal(self, text: memoryview, bounds: Sequence[int]) -> int:
        """Pass the rows of a text that come next, and return how many; `bounds` are where they begin in it."""
        window, rows, first = self.window(len(text)), bytes(text), bounds[0]
        count = len(bounds) - 1
        if not window.startswith(rows):
            count = bisect_left(bounds, True, key=lambda bound: not window.startswith(rows[: bound - first])) - 1
        self.skip(bounds[count] - first)
        return count

    def window(self, size: int) -> bytes:
        """At least the next `size` bytes, or all that are left. They stay next until `skip`."""
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
        """The next records, which stay next; `rows` are those that are expected."""
        window = self.window(WINDOW_BYTES)
        return split_records(window, most, rows, is_over=self.is_over)

    def skip_records(self, most: int) -> list[bytes]:
        records = self.records(most)
        self.skip(sum(map(len, records)))
        return records


def split_records(text: bytes, most: int, rows: Sequence[bytes] = (), *, is_over: bool) -> list[bytes]:
    """The records at the beginning of a text, each with its line end; line ends within quotes belong to a record.

    Where quotes are not closed, or a line within them is followed by one of the expected `rows`, a line is a record by
    itself. Where the file ends with the beginning of such a row, that is left out. Without `is_over` the text goes on,
    and an incomplete record is left out unless it is the first.
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
    """Compares the records of one file with its rows, the next ones of `cursor`, and notes the faults in `log`."""

    def __init__(self, file: FileEntry, name: str, cursor: ExpectedCursor, log: FaultLog) -> None:
        self.not_reproducible = 0
        self.has_faults = False
        """Whether a fault was noted."""
        self._file = file
        self._name = name
        self._cursor = cursor
        self._log = log
        self._has_equal = self._has_altered = False
        self._recent: deque[ExpectedRows] = deque()
        """Rows that were passed last, to recognise those that come again."""

    def compare(self, text: FileText) -> Iterator[None]:
        """Compare all records after the header, which is the first one; yields from time to time."""
        header, rows = text.records(1), self._next()
        if rows is None or header != [line for _, line, _ in rows.part(rows.first, rows.first + 1).rows()]:
            text.skip(sum(map(len, header)))
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
            self._note(FaultKind.TRUNCATED, self._file.end - 1, self._file.end)
        elif not is_replaced:
            count = 0
            while (added := text.skip_records(MAX_ALIGNED)) and count < MAX_ADDED:
                self._note_added([comparable(record) for record in added])
                count += len(added)

    def _next(self) -> ExpectedRows | None:
        return self._cursor.next(self._file.end - self._cursor.row)

    def _pass(self, equal: ExpectedRows) -> None:
        """Note rows that the file has where they should be."""
        self._has_equal = True
        self._recent.append(equal.part(max(equal.first, equal.end - MAX_ALIGNED), equal.end))
        while self._recent[-1].end - self._recent[0].end >= MAX_ALIGNED:
            self._recent.popleft()

    def _align(self, text: FileText) -> bool:
        """Compare the next rows where they are not equal; False if the file has no more records."""
        rows = list(self._rows_to_align())
        records = text.records(MAX_ALIGNED, [row.line for row in rows])
        if not records:
            return False
        expected, values = [row.value for row in rows], [comparable(record) for record in records]
        size = min(len(expected), len(values))
        if same := next((at for at in range(size) if expected[at] != values[at]), size):
            blocks = [(0, 0, same)]
        else:
            blocks = list(SequenceMatcher(None, expected, values, autojunk=False).get_matching_blocks()[:-1])
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
        """The next rows, as far as they can be produced: at most MAX_ALIGNED with WINDOW_BYTES, and at least one."""
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
        """Name the faults of rows between blocks. A block is where both sides begin to have the same values, and how
        many rows have them.
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
        """Note rows that the file should not have: those of other rows near them are duplicates."""
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
    """Take one of a value from a counter; False if there is none."""
    counter[value] -= 1
    return counter[value] >= 0
