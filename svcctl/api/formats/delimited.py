"""Readers of csv and tsv. The first row is a header, and all rows have as many cells as the header.

Each row ends with a newline outside quotes. The number of cells is checked for whole blocks of rows at once. For this
check, all characters except quotes, separators and newlines are removed from a block. The code calls the remaining
characters the `marks`. If all rows of a block have the same marks, the block is checked in one comparison.

In other blocks, the quotes and all marks inside quotes are removed, too. The code calls the remaining marks the
`skeleton`. The skeleton of a block must consist of copies of the header's skeleton.

An empty row, or a row that contains only separators, is keep-alive padding and is dropped. A row in which every cell is
null looks the same and is dropped, too.

If the header ends in CRLF, all rows end in CRLF. Otherwise, all rows end in LF, and a CR before the LF is part of the
last cell. Padding may end in LF or CRLF.

The last row of an answer may be an error, such as `svc.error,500,out of memory`. The first cell of an error ends
with `.error`, and its second cell is an integer. A last row with these cells is an error if it has more or fewer cells
than the header. It is also an error if it has three cells like the header, and its third cell is not a number. A row
that may be an error is held back until the next row arrives. All other rows are delivered at once.

An answer of svcctl's own service is exact. In an exact answer, a row is an error only if it begins with `svc.api.error`
without quotes. In rows of data, svcctl's own service puts every text in quotes.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from svcctl.api.columns import ResultColumn
from svcctl.api.formats.progress import MAX_ROW, Delivered
from svcctl.api.refusals import Refusal

_QUOTED = re.compile(rb'"[^"]*"')
_ROW = re.compile(rb'(?>(?:[^"\n]++|"[^"]*+")*)\n')
_NUMBER_TEXT = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_ERROR_CELLS = 3


class DelimitedDialect:
    """A reader of rows with a separator. `CSV` and `TSV` are its two instances."""

    def __init__(self, separator: bytes) -> None:
        mark, text_mark = re.escape(separator), re.escape(separator.decode())
        self._padding = separator + b"\r\n"
        self._noise = bytes(set(range(256)) - set(b'"\n' + separator))
        name, code = rb'(?:"[^"\n%b]*\.error"|[^"\n%b]*\.error)' % (mark, mark), rb'(?:"[+-]?\d+"|[+-]?\d+)'
        self._error = re.compile(rb"%b%b%b(?:%b|\r?\n)" % (name, mark, code, mark))
        self._own_error = re.compile(rb"svc\.api\.error%b[+-]?\d+%b" % (mark, mark))
        self._cell = re.compile(rf'(?:"([^"]*(?:""[^"]*)*)"([^"\n{text_mark}]*)|([^\n{text_mark}]*))({text_mark}|\n)')
        self._separator = separator.decode()

    def raw(self, chunks: Iterable[bytes], delivered: Delivered) -> Iterator[bytes]:
        """Yield the checked bytes without keep-alive padding, in blocks of whole rows.

        The first block contains only the header.
        """
        shape = usual = pending = b""
        for block, marks, whole in self._whole_rows(chunks, delivered):
            if not shape:
                header, block = self._header(block)  # noqa: PLW2901
                if not header:
                    continue
                shape = self._skeleton(self._marks(header))
                delivered.check_width(len(shape), len(header))
                delivered.columns = tuple(
                    ResultColumn(name, "str") for name in self._decode(header, _ends_in_crlf(header))[0]
                )
                yield header
                marks = self._marks(block)  # noqa: PLW2901
            elif pending:
                block = pending + block  # noqa: PLW2901
                marks = self._marks(block)  # noqa: PLW2901
            good, count, pending, wrong = self._check(block, marks, shape, usual, exact=delivered.exact)
            if not (whole or pending or wrong):
                raise delivered.cut()
            if count and not usual:
                usual = self._usual(marks, shape)
            if good:
                delivered.add(count)
                yield good
            if wrong:
                cells = len(self._skeleton(self._marks(wrong)))
                raise delivered.incomplete(
                    f"row {(delivered.rows or 0) + 1} has {cells} cells where the header has {len(shape)}"
                )
        if pending:
            raise delivered.ended_in(self._refusal(pending))
        if not shape:
            raise delivered.incomplete("it has no header")

    def rows(self, chunks: Iterable[bytes], delivered: Delivered) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows as tuples of texts. An empty cell becomes an empty text, even if it means null."""
        blocks = self.raw(chunks, delivered)
        crlf = _ends_in_crlf(next(blocks))
        yield []
        for block in blocks:
            yield self._decode(block, crlf)

    @staticmethod
    def first_rows(block: bytes, count: int) -> bytes:
        """Return the first `count` rows of a block that contains no header."""
        return b"".join(row[0] for row in islice(_ROW.finditer(block), count))

    def _whole_rows(self, chunks: Iterable[bytes], delivered: Delivered) -> Iterator[tuple[bytes, bytes, bool]]:
        """Yield the body in blocks of whole rows.

        Each result is a tuple: the block, its marks (quotes, separators and newlines), and whether its last row ended
        with a newline. A last row without a newline is yielded as a separate block if it may be an error. Otherwise,
        such a row raises IncompleteResult.
        """
        pending: list[bytes] = []
        pending_marks: list[bytes] = []
        size = 0
        inside = False
        for chunk in chunks:
            marks = self._marks(chunk)
            inside ^= bool(marks.count(b'"') & 1)
            end = _last_row_end(chunk, inside)
            if end:
                marks_end = _last_row_end(marks, inside)
                yield b"".join((*pending, memoryview(chunk)[:end])), b"".join((*pending_marks, marks[:marks_end])), True
                pending, pending_marks, size = [chunk[end:]], [marks[marks_end:]], len(chunk) - end
                continue
            pending.append(chunk)
            pending_marks.append(marks)
            size += len(chunk)
            if delivered.columns is None:
                delivered.check_width(sum(part.count(self._separator.encode()) for part in pending_marks), size)
            if size > MAX_ROW:
                raise delivered.too_long()
        rest = b"".join(pending) + (b'"\n' if inside else b"\n")
        if self._states_error(rest, delivered.exact):
            yield rest, self._marks(rest), False
        elif rest.strip(self._padding):
            raise delivered.cut()

    def _header(self, block: bytes) -> tuple[bytes, bytes]:
        """Return the first row that is not keep-alive padding, and the rest of the block."""
        for row in _ROW.finditer(block):
            if row[0].strip(self._padding):
                return row[0], block[row.end() :]
        return b"", b""

    def _usual(self, marks: bytes, shape: bytes) -> bytes:
        """Return the marks (quotes, separators and newlines) of the last row of a block.

        If the row has more or fewer cells than the header, the result is empty.
        """
        row = marks[marks.rfind(b"\n", 0, -1) + 1 :]
        return row if self._skeleton(row) == shape else b""

    def _check(
        self, block: bytes, marks: bytes, shape: bytes, usual: bytes, *, exact: bool
    ) -> tuple[bytes, int, bytes, bytes]:
        """Check the rows of a block.

        Returns four values: the correct rows, their number, a last row that may be an error, and the first wrong row. A
        wrong row has more or fewer cells than the header.
        """
        if usual and marks == usual * (len(marks) // len(usual)):
            count, right_shape, quoted = len(marks) // len(usual), True, b'"' in usual
        else:
            skeleton = self._skeleton(marks)
            count = len(skeleton) // len(shape)
            right_shape, quoted = skeleton == shape * count, False
        padded = not quoted and (_has_row(block, shape) or (b"\r" in block and _has_row(block, shape[:-1] + b"\r\n")))
        perhaps_error = len(shape) == _ERROR_CELLS and b".error" in block
        if right_shape and not padded and not perhaps_error:
            return block, count, b"", b""
        rows = [row for row in _ROW.findall(block) if row.strip(self._padding)]
        right = next((at for at, row in enumerate(rows) if self._skeleton(self._marks(row)) != shape), len(rows))
        good, wrong = rows[:right], rows[right:]
        if len(wrong) == 1 and self._states_error(wrong[0], exact):
            return b"".join(good), len(good), wrong[0], b""
        if perhaps_error and good and not wrong and self._is_error_of_three(good[-1], exact):
            return b"".join(good[:-1]), len(good) - 1, good[-1], b""
        return b"".join(good), len(good), b"", wrong[0] if wrong else b""

    def _marks(self, block: bytes) -> bytes:
        """Return the quotes, separators and newlines of a block, in their order."""
        return block.translate(None, self._noise)

    def _skeleton(self, marks: bytes) -> bytes:
        """Return the separators and newlines outside quotes. `marks` are quotes, separators and newlines."""
        if b'"' in marks:
            marks = marks.replace(b'""', b"")
            if b'"' in marks:
                marks = _QUOTED.sub(b"", marks)
        return marks

    def _states_error(self, row: bytes, exact: bool) -> bool:
        return (self._own_error if exact else self._error).match(row) is not None

    def _is_error_of_three(self, row: bytes, exact: bool) -> bool:
        return self._states_error(row, exact) and (exact or not _NUMBER_TEXT.fullmatch(self._decode(row)[0][2].strip()))

    def _refusal(self, row: bytes) -> Refusal:
        _name, code, *words = self._decode(row)[0]
        message = " ".join(" ".join(words).split())
        return Refusal(message or "the service gave no message", int(code))

    def _decode(self, block: bytes, crlf: bool = False) -> list[tuple[str, ...]]:
        text = block.decode("utf-8", "surrogateescape")
        if text.count("\r") == (text.count("\r\n") if crlf else 0):  # at any other CR, the csv module would end a row
            try:
                return [tuple(row) for row in csv.reader(io.StringIO(text, newline=""), delimiter=self._separator)]
            except csv.Error:  # a cell is longer than the csv module's limit, which applies to the whole process
                pass
        rows: list[tuple[str, ...]] = []
        row: list[str] = []
        for quoted, after, bare, end in self._cell.findall(text):
            if crlf and end == "\n":
                after, bare = after.removesuffix("\r"), bare.removesuffix("\r")  # noqa: PLW2901
            row.append(bare or quoted.replace('""', '"') + after)
            if end == "\n":
                rows.append(tuple(row))
                row = []
        return rows


def _has_row(block: bytes, row: bytes) -> bool:
    return block.startswith(row) or block.rfind(b"\n" + row) >= 0  # Python's rfind is faster than its find


def _ends_in_crlf(header: bytes) -> bool:
    return header.endswith(b"\r\n")


def _last_row_end(chunk: bytes, inside: bool) -> int:
    """Return the index after the last whole row in a chunk; 0 if the chunk contains no row end.

    `inside` says that the end of the chunk is inside quotes.
    """
    end = len(chunk)
    while (newline := chunk.rfind(b"\n", 0, end)) >= 0:
        inside ^= bool(chunk.count(b'"', newline, end) & 1)
        if not inside:
            return newline + 1
        end = newline
    return 0


CSV = DelimitedDialect(b",")
TSV = DelimitedDialect(b"\t")
