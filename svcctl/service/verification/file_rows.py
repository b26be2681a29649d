"""The rows of a file of csv, compared with those that a job should have delivered in it.

Equal rows are compared many at once. Where they are not, the next rows of both sides are aligned, so that rows which
are missing, added or moved are distinguished from those with other values.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from svcctl.errors import SvcctlError
from svcctl.service.rendering import arrow
from svcctl.service.verification import DeliveryFinding, FaultKind, LoggedFile
from svcctl.service.verification.comparison import CSV_TOKENS, ExpectedCursor, Stretch, comparable, same_values
from svcctl.service.verification.findings import FaultLog

MAX_ALIGNED = 1000
"""How many rows of each side are aligned at once: longer runs of added or missing rows count as altered."""
WINDOW_BYTES = 8 << 20
"""How much of a file is read ahead to align rows, and so the longest record."""
MAX_ADDED = 1_000_000
"""After so many rows that a file should not have, the rest of it is not looked at."""

Row = tuple[int, bytes, int | None, bytes]
"""The number, the text and the date of a row that a file should have, and its text in the form of `comparable`."""


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

    def __init__(self, file: LoggedFile, name: str, cursor: ExpectedCursor, log: FaultLog) -> None:
        self.not_reproducible = 0
        self.faults = 0
        """How many faults were noted."""
        self._file = file
        self._name = name
        self._cursor = cursor
        self._log = log
        self._has_equal = self._has_altered = False
        self._recent: deque[Stretch] = deque()
        """Rows that were passed last, to recognise those that come again."""

    def compare(self, text: FileText) -> Iterator[int]:
        """Compare all records after the header, which is the first one; yields the number of the next row from time to
        time.
        """
        header, first = text.records(1), self._next()
        if first is None or first.lines is None or header != first.part(first.first, first.first + 1).texts():
            text.skip(sum(map(len, header)))
        while (stretch := self._next()) is not None:
            if stretch.lines is None:
                equal = len(text.skip_records(min(stretch.end - stretch.first, MAX_ALIGNED)))
                self.not_reproducible += equal
            elif equal := text.skip_equal(arrow.text(stretch.lines), arrow.offsets(stretch.lines)):
                self._pass(stretch.part(stretch.first, stretch.first + equal))
            self._cursor.advance(equal)
            if not equal and not self._align(text):
                break
            yield self._cursor.row
        is_replaced = self._has_altered and not self._has_equal
        if self._next() is not None:
            self._note_rest(FaultKind.ALTERED if is_replaced else text.fault or FaultKind.TRUNCATED)
        elif text.fault is FaultKind.TRUNCATED:
            self._note(FaultKind.TRUNCATED, self._file.end - 1, self._file.end)
        elif not is_replaced:
            count = 0
            while (added := text.skip_records(MAX_ALIGNED)) and count < MAX_ADDED:
                self._note_added([comparable(record, CSV_TOKENS) for record in added])
                count += len(added)

    def _next(self) -> Stretch | None:
        row = self._cursor.row
        return self._cursor.next(self._file.end - row) if row < self._file.end else None

    def _pass(self, equal: Stretch) -> None:
        """Note rows that the file has where they should be."""
        self._has_equal = True
        self._recent.append(equal.part(max(equal.first, equal.end - MAX_ALIGNED), equal.end))
        while self._recent[-1].end - self._recent[0].end >= MAX_ALIGNED:
            self._recent.popleft()

    def _align(self, text: FileText) -> bool:
        """Compare the next rows where they are not equal; False if the file has no more records."""
        wanted: list[Row] = []
        size = 0
        stretches = list(self._cursor.following(MAX_ALIGNED, self._file.end))
        for stretch in stretches:
            for row, (line, date) in enumerate(stretch.rows(), stretch.first):
                if (size := size + len(line)) < WINDOW_BYTES or not wanted:
                    wanted.append((row, line, date, comparable(line, CSV_TOKENS)))
        records = text.records(MAX_ALIGNED, [line for _, line, *_ in wanted])
        if not records:
            return False
        expected, values = [row[-1] for row in wanted], [comparable(record, CSV_TOKENS) for record in records]
        i = j = end = min(len(expected), len(values))
        if same := next((at for at in range(end) if expected[at] != values[at]), end):
            blocks = [(0, 0, same)]
        else:
            blocks = list(SequenceMatcher(None, expected, values, autojunk=False).get_matching_blocks()[:-1])
        if blocks:
            i, j = blocks[-1][0] + blocks[-1][2], blocks[-1][1] + blocks[-1][2]
            for stretch in stretches:
                self._pass(stretch)
        self._name_faults(wanted[:i], values[:j], [*blocks, (i, j, 0)])
        for first, at, size in blocks:
            pairs = zip(wanted[first : first + size], records[at : at + size], strict=True)
            exact = self._cursor.exact
            altered = [row for row, record in pairs if not same_values(row[1], record, CSV_TOKENS, exact=exact)]
            self._note_rows(FaultKind.ALTERED, altered)
        text.skip(sum(map(len, records[:j])))
        self._cursor.advance(i)
        return True

    def _name_faults(self, wanted: list[Row], values: list[bytes], blocks: list[tuple[int, int, int]]) -> None:
        """Name the faults of rows between blocks. A block is where both sides begin to have the same values, and how
        many rows have them.
        """
        gone, extra = Counter(row[-1] for row in wanted), Counter(values)
        gone, extra = gone - extra, extra - gone
        i = j = 0
        for i_next, j_next, size in blocks:
            moved, missing = list[Row](), list[Row]()
            for row in wanted[i:i_next]:
                (missing if _taken(gone, row[-1]) else moved).append(row)
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
        for stretch in self._recent if values else ():
            recent |= {comparable(line, CSV_TOKENS): row for row, line in enumerate(stretch.texts(), stretch.first)}
        for row in (recent[value] for value in values if value in recent):
            self._note(FaultKind.DUPLICATED, row, row + 1)
        if foreign := sum(value not in recent for value in values):
            self._note(FaultKind.FOREIGN, self._cursor.row, self._cursor.row, count=foreign)

    def _note_rows(self, kind: FaultKind, rows: Sequence[Row]) -> None:
        self._has_altered = self._has_altered or (kind is FaultKind.ALTERED and bool(rows))
        for row, _, date, _ in rows:
            self._note(kind, row, row + 1, date, date)

    def _note_rest(self, kind: FaultKind) -> None:
        """Note a fault of all rows that were not compared yet."""
        for stretch in self._cursor.take(self._file.end):
            self._note(kind, stretch.first, stretch.end, *stretch.range_of_dates())

    def _note(self, kind: FaultKind, first: int, end: int, *dates: int | None, count: int | None = None) -> None:
        self.faults += 1
        finding = DeliveryFinding(kind, first, end, None, None, self._name, *dates)
        self._log.add(finding, self._cursor.last_date, count)


def _taken(counter: Counter[bytes], value: bytes) -> bool:
    """Take one of a value from a counter; False if there is none."""
    counter[value] -= 1
    return counter[value] >= 0
