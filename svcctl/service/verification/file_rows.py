"""The rows of a file of csv, compared with those that a job should have delivered in it.

Rows that are equal are compared many at once. Where they are not, the next rows of both sides are aligned, so that rows
which are missing, added or moved are told from those whose values differ.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from enum import Enum

from svcctl.errors import SvcctlError
from svcctl.service.rendering import arrow
from svcctl.service.verification import DeliveryFinding, FaultKind, LoggedFile
from svcctl.service.verification.comparison import CSV_TOKENS, ExpectedCursor, Stretch, comparable, same_values
from svcctl.service.verification.findings import FaultLog

MAX_ALIGNED = 1000
"""How many rows of each side are aligned at once: longer runs of added or missing rows count as altered."""
PIECE_BYTES = 1 << 20
"""How much of a file is read at once where it differs."""
ALIGNED_BYTES = 4 << 20
"""About how many bytes of each side are aligned at once."""
MAX_RECORD_BYTES = 32 << 20
"""The longest line that is read as one record."""
MAX_ADDED = 1_000_000
"""After so many rows that a file should not have, the rest of it is not looked at."""


class Ending(Enum):
    """How the bytes of a file end: whole, too early for their packing, or damaged."""

    WHOLE = "whole"
    CUT = "cut"
    DAMAGED = "damaged"


class FileText:
    """The text of a file that is read once, from pieces of bytes."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.ending = Ending.WHOLE
        self.is_over = False
        """Whether the last byte is in the window."""
        self._pieces = pieces
        self._data = b""
        self._at = 0

    def skip_equal(self, text: memoryview, bounds: Sequence[int]) -> int:
        """Pass the rows of a text that come next, and return how many; `bounds` are where they begin in it."""
        self._fill(len(text))
        with memoryview(self._data)[self._at : self._at + len(text)] as data:
            if data == text:
                self._at += len(text)
                return len(bounds) - 1
            low, high = 0, len(bounds) - 1
            while high - low > 1:
                middle = (low + high) // 2
                size = bounds[middle] - bounds[0]
                low, high = (middle, high) if data[:size] == text[:size] else (low, middle)
        self._at += bounds[low] - bounds[0]
        return low

    def window(self, size: int) -> bytes:
        """At least the next `size` bytes, or all that are left. They stay next until `skip`."""
        self._fill(size)
        return self._data[self._at :]

    def skip(self, size: int) -> None:
        self._at += size

    def _fill(self, size: int) -> None:
        loaded = [self._data[self._at :]]
        count = len(loaded[0])
        if count >= size:
            return
        while count < size and not self.is_over:
            try:
                piece = next(self._pieces, None)
            except EOFError:
                self.ending, piece = Ending.CUT, None
            except SvcctlError:
                raise
            except Exception:  # the libraries have errors of many kinds for an archive that is none
                self.ending, piece = Ending.DAMAGED, None
            self.is_over = piece is None
            loaded.append(piece or b"")
            count += len(loaded[-1])
        self._data, self._at = b"".join(loaded), 0


def split_records(text: bytes, most: int, rows: Sequence[bytes] = (), *, is_over: bool) -> list[bytes]:
    """The records at the beginning of a text, each with its line end; line ends within quotes belong to a record.

    Where quotes are not closed, or a line within them is followed by one of the expected `rows`, a line is a record by
    itself. Where the file ends with the beginning of such a row, that is left out. Without `is_over` the text goes on,
    and an incomplete record is left out unless it is the first.
    """
    known = frozenset(rows)
    records: list[bytes] = []
    at = 0
    while at < len(text) and len(records) < most:
        end = _end_of_record(text, at)
        if end is None:
            if any(row.startswith(text[at:]) for row in rows) if is_over else records:
                break
            end = text.find(b"\n", at) + 1 or len(text)
        line_end = text.find(b"\n", at) + 1
        while known and 0 < line_end < end:
            if text[line_end : _end_of_record(text, line_end)] in known:
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


@dataclass(frozen=True, slots=True)
class ExpectedRecord:
    """A row that a file should have."""

    row: int
    line: bytes
    date: int | None
    values: bytes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", comparable(self.line, CSV_TOKENS))


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
        self._pass_header(text)
        while (stretch := self._next()) is not None:
            if stretch.lines is None:
                equal = len(self._records(text, min(stretch.end - stretch.first, MAX_ALIGNED)))
                self.not_reproducible += equal
            else:
                equal = text.skip_equal(arrow.text(stretch.lines), arrow.offsets(stretch.lines))
                self._pass(stretch.part(stretch.first, stretch.first + equal))
            self._cursor.advance(equal)
            if not equal and not self._align(text):
                break
            yield self._cursor.row
        is_replaced = self._has_altered and not self._has_equal
        if self._next() is not None:
            damaged = is_replaced or text.ending is Ending.DAMAGED
            self._note_rest(FaultKind.ALTERED if damaged else FaultKind.TRUNCATED)
        elif text.ending is Ending.CUT:
            self._note(FaultKind.TRUNCATED, self._file.end - 1, self._file.end)
        elif not is_replaced:
            count = 0
            while (added := self._records(text, MAX_ALIGNED)) and count < MAX_ADDED:
                self._note_added([comparable(record, CSV_TOKENS) for record in added])
                count += len(added)

    def _records(self, text: FileText, most: int) -> list[bytes]:
        """The next records, which are passed."""
        window = text.window(ALIGNED_BYTES)
        records = split_records(window, most, is_over=text.is_over)
        text.skip(sum(map(len, records)))
        return records

    def _note_rest(self, kind: FaultKind) -> None:
        """Note a fault of all rows that were not compared yet."""
        while (stretch := self._next()) is not None:
            self._note(kind, stretch.first, stretch.end, stretch.range_of_dates())
            self._cursor.advance(stretch.end - stretch.first)

    def _pass(self, equal: Stretch) -> None:
        """Note rows that the file has where they should be."""
        if equal.end > equal.first:
            self._has_equal = True
            self._recent.append(equal.part(max(equal.first, equal.end - MAX_ALIGNED), equal.end))
            while self._recent[-1].end - self._recent[0].end >= MAX_ALIGNED:
                self._recent.popleft()

    def _next(self) -> Stretch | None:
        row = self._cursor.row
        return self._cursor.next(self._file.end - row) if row < self._file.end else None

    def _pass_header(self, text: FileText) -> None:
        header = text.window(1)[: _end_of_record(text.window(PIECE_BYTES), 0)]
        first = self._next()
        if first is None or first.lines is None or first.part(first.first, first.first + 1).texts() != [header]:
            text.skip(len(header))

    def _align(self, text: FileText) -> bool:
        """Compare the next rows where they are not equal; False if the file has no more records."""
        stretches = list(self._cursor.following(MAX_ALIGNED, self._file.end))
        wanted: list[ExpectedRecord] = []
        size = 0
        for stretch in stretches:
            for row, (line, date) in enumerate(stretch.rows(), stretch.first):
                if size < ALIGNED_BYTES:
                    wanted.append(ExpectedRecord(row, line, date))
                    size += len(line)
        window = text.window(max(2 * size, PIECE_BYTES))
        while not text.is_over and b"\n" not in window and len(window) < MAX_RECORD_BYTES:
            window = text.window(2 * len(window))
        found = split_records(window, MAX_ALIGNED, [one.line for one in wanted], is_over=text.is_over)
        if not found:
            return False
        values = [comparable(record, CSV_TOKENS) for record in found]
        matcher = SequenceMatcher(None, [one.values for one in wanted], values, autojunk=False)
        blocks = [(i, i + size, j, j + size) for i, j, size in matcher.get_matching_blocks() if size]
        i_end = j_end = min(len(wanted), len(found))
        if blocks:
            _, i_end, _, j_end = blocks[-1]
            for stretch in stretches:
                self._pass(stretch)
        self._compare_aligned(wanted[:i_end], found[:j_end], values[:j_end], blocks)
        text.skip(sum(map(len, found[:j_end])))
        self._cursor.advance(i_end)
        return True

    def _compare_aligned(
        self,
        wanted: Sequence[ExpectedRecord],
        found: Sequence[bytes],
        values: Sequence[bytes],
        blocks: Sequence[tuple[int, int, int, int]],
    ) -> None:
        """Name the faults of rows; `blocks` are the ranges of both sides with the same values."""
        i = j = 0
        gaps: list[tuple[Sequence[ExpectedRecord], Sequence[bytes]]] = []
        for i_next, i_end, j_next, j_end in [*blocks, (len(wanted), 0, len(found), 0)]:
            gaps.append((wanted[i:i_next], values[j:j_next]))
            for one, record in zip(wanted[i_next:i_end], found[j_next:j_end], strict=False):
                if not same_values(one.line, record, CSV_TOKENS):
                    self._note_rows(FaultKind.ALTERED, [one])
            i, j = i_end, j_end
        moved = Counter(one.values for lost, _ in gaps for one in lost) & Counter(
            value for _, added in gaps for value in added
        )
        left, gone = moved.copy(), moved.copy()
        for lost, added in gaps:
            missing = [one for one in lost if not _taken(left, one.values)]
            self._note_rows(FaultKind.OUT_OF_ORDER, [one for one in lost if one not in missing])
            more = [value for value in added if not _taken(gone, value)]
            pairs = min(len(missing), len(more))
            self._note_rows(FaultKind.ALTERED, missing[:pairs])
            self._note_rows(FaultKind.MISSING, missing[pairs:])
            self._note_added(more[pairs:])

    def _note_added(self, values: Sequence[bytes]) -> None:
        """Note rows that the file should not have: those of other rows near them are duplicates."""
        if values:
            rows = {
                comparable(line, CSV_TOKENS): row
                for stretch in self._recent
                for row, (line, _) in enumerate(stretch.rows(), stretch.first)
            }
            for row in (rows[value] for value in values if value in rows):
                self._note(FaultKind.DUPLICATED, row, row + 1)
            if foreign := sum(1 for value in values if value not in rows):
                self._note(FaultKind.FOREIGN, self._cursor.row, self._cursor.row, count=foreign)

    def _note_rows(self, kind: FaultKind, rows: Sequence[ExpectedRecord]) -> None:
        self._has_altered = self._has_altered or (kind is FaultKind.ALTERED and bool(rows))
        for one in rows:
            self._note(kind, one.row, one.row + 1, (one.date, one.date))

    def _note(
        self,
        kind: FaultKind,
        first: int,
        end: int,
        dates: tuple[int | None, int | None] = (None, None),
        count: int | None = None,
    ) -> None:
        self.faults += 1
        finding = DeliveryFinding(kind, first, end, file=self._name, from_ms=dates[0], to_ms=dates[1])
        self._log.add(finding, self._cursor.last_date, count)


def _taken(counter: Counter[bytes], value: bytes) -> bool:
    """Take one of a value from a counter; False if there is none."""
    counter[value] -= 1
    return counter[value] >= 0
