"""The split of an answer for several time windows into the files of these windows.

All rows are held until the last row has arrived. A row goes into the file of the window that contains its date. Each
file then has the same bytes as the answer to a request for its window alone.

The date is the first column. In ndjson, the date is a number of milliseconds. In csv and tsv, the date is a text. The
form of this text is known only for svcctl's own service. So csv and tsv answers of other services are not split. All
dates have the same number of digits, so dates are compared as bytes.
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
"""The range of dates that can be compared as bytes, from 2001 to 2286. These dates have the same number of digits."""

_ROW = re.compile(rb'(?>(?:[^"\n]++|"[^"]*+")*)\n')
"""A pattern for a row of csv or tsv. A row may contain newlines in quotes."""
_OBJECT = b'{"%b":' % EVENTDATE.encode()


class Unsplittable(IncompleteResult):
    """Raised if it is not certain to which windows the rows of an answer belong. A retry would not help."""

    def __init__(self) -> None:
        super().__init__("the rows of the answer cannot be assigned to windows by their dates")


def text_edges(windows: Sequence[Window], zone: Zone | None, date_format: str | None) -> list[bytes]:
    """Return the start of the first window and the ends of all windows, in the form of dates in csv and tsv.

    All dates have the UTC offset of `zone` at the start of the first window.
    """
    clocks = UTC if zone is None else zone.fixed(windows[0].start).clocks
    between = "T" if date_format == "iso" else " "
    dates = (datetime.fromtimestamp(moment, clocks).replace(tzinfo=None) for moment in _moments(windows))
    return [date.isoformat(between, "seconds").encode() for date in dates]


def object_edges(windows: Sequence[Window]) -> list[bytes]:
    """Return the start of the first window and the ends of all windows.

    Each of these dates is returned as the text with which an ndjson row begins: `{"eventdate":1706695200000`.
    """
    return [b"%b%d" % (_OBJECT, seconds_to_ms(moment)) for moment in _moments(windows)]


def _moments(windows: Sequence[Window]) -> list[int]:
    return [windows[0].start, *(window.end for window in windows)]


class Split:
    """A sink that holds the rows of an answer until they are written to files. Use it in `with`.

    `edges` are the start of the first window and the ends of all windows, as texts of the same length. `check` is
    called before each block is written, and may raise an error to stop the work.
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
        """Delete all rows, and begin with a new answer. `look` is called with the first row of each window."""
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
        """Add a block of complete rows.

        Raises Unsplittable if a row belongs to no window, or to an earlier window than the previous row.
        """
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
        """Return the rows of a block, without the newlines at their ends.

        Raises Unsplittable if the rows cannot be separated, or do not begin with a date.
        """
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
        """Yield the number of rows and the bytes of each window, in order.

        The caller must read all bytes of a window before it continues the iteration.
        """
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
