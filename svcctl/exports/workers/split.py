"""Split one answer for several windows into their files. All rows are held until the last one has arrived.

A row goes to a file only if its date is in the file's window, so each file has the bytes of a request for its window
alone. The date is the first column. In ndjson it is a number of milliseconds; in csv and tsv it is a text whose
meaning is certain only for svcctl's own service. Dates with the same number of digits are compared as bytes.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from svcctl.api.query import EVENTDATE
from svcctl.dates.epochs import seconds_to_ms
from svcctl.errors import IncompleteResult
from svcctl.exports.windows import Window
from svcctl.exports.workers.spool import PIECE_BYTES, Spool

if TYPE_CHECKING:
    from svcctl.api.response import QueryResponse
    from svcctl.dates.zones import Zone

SPLIT_RANGE = Window(10**9, 10**10 - 1)
"""From 2001 to 2286: all dates have the same number of digits, as numbers and as text."""

_ROW = re.compile(rb'(?:[^"\n]++|"[^"]*+")*+\n')
"""A row of csv or tsv, with newlines in quotes."""
_OBJECT = b'{"%b":' % EVENTDATE.encode()


class Unsplittable(IncompleteResult):
    """The rows of an answer cannot be assigned to windows for sure. A retry would not help."""

    def __init__(self) -> None:
        super().__init__("the rows of the answer cannot be assigned to windows by their dates")


def text_edges(windows: Sequence[Window], zone: Zone | None, date_format: str | None) -> list[bytes]:
    """The start of the first window and the ends of all windows, in the format of dates in csv and tsv.

    All dates have the offset of `zone` at the start of the first window.
    """
    clocks = UTC if zone is None else zone.fixed(windows[0].start).clocks
    between = "T" if date_format == "iso" else " "
    dates = (datetime.fromtimestamp(moment, clocks).replace(tzinfo=None) for moment in _moments(windows))
    return [date.isoformat(between, "seconds").encode() for date in dates]


def object_edges(windows: Sequence[Window]) -> list[bytes]:
    """The start of the first window and the ends of all windows, each as the beginning of a row of ndjson."""
    return [b"%b%d" % (_OBJECT, seconds_to_ms(moment)) for moment in _moments(windows)]


def _moments(windows: Sequence[Window]) -> list[int]:
    return [windows[0].start, *(window.end for window in windows)]


class Split:
    """A sink that holds the rows of an answer, and counts the rows of each window. For `with`.

    `edges` are the edges of the windows, texts of one length. `check` is called before each block.
    """

    def __init__(self, edges: Sequence[bytes], check: Callable[[], None]) -> None:
        self._edges = edges
        self._check = check
        self._spool = Spool()

    def __enter__(self) -> Split:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.__exit__()

    def begin(self, answer: QueryResponse, look: Callable[[bytes], None] | None) -> Split:
        """Forget all rows and begin with a new answer. `look` is called with the first row of each window."""
        self._answer = answer
        self._look = look
        self._spool.file.seek(0)
        self._spool.file.truncate()
        self._counted = self._place = 0
        self.rows = [0] * (len(self._edges) - 1)
        """The number of rows of each window."""
        self._sizes = [0] * len(self.rows)
        return self

    def write(self, block: bytes | memoryview, /) -> None:
        """Take whole rows. Unsplittable when a row is in no window, or in a window before that of an earlier row."""
        self._check()
        rows = self._lines(bytes(block))
        at = 0
        while at < len(rows):
            place = bisect_right(self._edges, rows[at]) - 1
            if not self._place <= place < len(self.rows):
                raise Unsplittable
            start, end = self._edges[place : place + 2]
            after = bisect_left(rows, end, at)
            inside = rows[at:after]
            if min(inside) < start or max(inside) >= end:
                raise Unsplittable
            if self._look is not None and not self.rows[place]:
                self._look(rows[at])
            self.rows[place] += len(inside)
            self._sizes[place] += sum(map(len, inside)) + len(inside)
            self._place, at = place, after
        self._spool.write(block)

    def _lines(self, block: bytes) -> list[bytes]:
        """The rows of a block without their last newlines. Unsplittable when a row does not begin with its date."""
        answer = self._answer
        count = (answer.row_count or 0) - self._counted
        self._counted += count
        rows = block.split(b"\n")[:-1]
        if self._edges[0].startswith(_OBJECT):
            digits = len(self._edges[0])
            if not {row[digits : digits + 1] for row in rows} <= {b",", b"}"}:
                raise Unsplittable
        elif not answer.exact or answer.columns[0].name != EVENTDATE:
            raise Unsplittable
        elif len(rows) != count:  # some newlines are in quotes
            rows = [row[:-1] for row in _ROW.findall(block)]
        if len(rows) != count:
            raise Unsplittable
        return rows

    def files(self) -> Iterator[tuple[int, Iterator[bytes]]]:
        """The number of rows and the bytes of each window; read the bytes in this order."""
        self._spool.file.seek(0)
        for rows, size in zip(self.rows, self._sizes, strict=True):
            yield rows, self._pieces(size)

    def _pieces(self, size: int) -> Iterator[bytes]:
        while size:
            piece = self._spool.file.read(min(size, PIECE_BYTES))
            if not piece:
                raise IncompleteResult("a temporary file has lost rows")
            yield piece
            size -= len(piece)
