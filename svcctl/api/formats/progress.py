"""The progress of reading an answer: rows, columns and the request's ID.

The readers of all formats update the progress.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from svcctl.errors import IncompleteResult, MalformedAnswer
from svcctl.words import size_text

if TYPE_CHECKING:
    from svcctl.api.columns import ResultColumn
    from svcctl.api.refusals import Refusal

BLOCK_BYTES = 64 * 1024
"""The number of bytes in a block, for readers that collect small pieces of an answer into blocks."""

MAX_ROW = 64_000_000
"""The maximum number of bytes of a row. Without this limit, a body without line ends would fill the memory."""

MAX_COLUMNS = 50_000
"""The maximum number of columns of a result. Even a column with a short name takes some hundred bytes of memory."""
MAX_HEADING = 8_000_000
"""The maximum total number of bytes of the names of a result's columns."""
NAMES_PER_COLUMN = 4
"""The number of JSON keys that are assumed to describe one column.

While a text has not arrived completely, the readers count its keys to estimate the number of columns.
"""


Late = Callable[[int, float], None]
"""A function that is called when the service reports late events.

The first argument is the number of events that arrived too late to be counted in a group of the query. The second
argument is the allowed delay in seconds.
"""


@dataclass(slots=True)
class Delivered:
    """The progress of reading one answer, and the facts about the answer that the reader of its format needs.

    `rows` is the number of delivered rows; None in a format in which rows are not counted. `columns` is None until the
    columns are known. `cid` is the ID of the request. `late` is called when the service reports late events.
    `marks_end` says that the format shows where the body ends. `exact` says that the service states errors only in a
    form that no row can have (see `svcctl.api.refusals`).
    """

    rows: int | None = 0
    columns: tuple[ResultColumn, ...] | None = None
    cid: str | None = None
    late: Late | None = None
    marks_end: bool = False
    exact: bool = False

    def add(self, rows: int) -> None:
        self.rows = (self.rows or 0) + rows

    def incomplete(self, what: str) -> IncompleteResult:
        return IncompleteResult(f"the result is incomplete: {what}", rows=self.rows)

    def malformed(self, what: str) -> MalformedAnswer:
        """Return the error for a complete answer that is not a result in the requested format."""
        return MalformedAnswer(f"the service's answer is not a result: {what}")

    def ended_in(self, refusal: Refusal) -> IncompleteResult:
        refusal = refusal.of(self.cid)
        self.cid = refusal.cid
        return self.incomplete(f"it ended in an error of the service: {refusal.in_one_line()}")

    def cut(self) -> IncompleteResult:
        return self.incomplete("the connection closed in the middle")

    def check_width(self, columns: int, size: int = 0) -> None:
        """Raise IncompleteResult if a result has more than MAX_COLUMNS columns, or if their names are too long.

        `size` is the total number of bytes of the names. The maximum is MAX_HEADING.
        """
        if columns > MAX_COLUMNS:
            raise self.incomplete(f"it has more than {MAX_COLUMNS} columns")
        if size > MAX_HEADING:
            raise self.incomplete(f"its heading is longer than {size_text(MAX_HEADING)}")

    def too_long(self) -> IncompleteResult:
        return self.incomplete(f"a row is longer than {size_text(MAX_ROW)}")
