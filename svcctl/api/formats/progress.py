"""The progress of reading an answer, which the readers of all formats update: rows, columns and the request's ID."""

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
"""The number of bytes per delivered block, in formats whose readers collect bytes into blocks."""

MAX_ROW = 64_000_000
"""The maximum number of bytes of a row. Without this limit, a body without line ends would fill the memory."""

MAX_COLUMNS = 50_000
"""The maximum number of columns of a result: a column takes some hundred bytes of memory even if its name is short."""
MAX_HEADING = 8_000_000
"""The maximum number of bytes of the names of a result's columns together."""
NAMES_PER_COLUMN = 4
"""How many names in JSON count as one column. A column has three: its own name, `type` and `index`."""


Late = Callable[[int, float], None]
"""Called with the number of events that came too late for their group, and the delay in seconds that is allowed."""


@dataclass(slots=True)
class Delivered:
    """The progress of reading one answer, and the facts about the answer that its reader needs.

    `rows` is the number of delivered rows, or None in a format whose rows are not counted. `columns` is None until the
    columns are known. `cid` is the ID of the request. `late` is called when the service reports late events.
    `marks_end` says that the body marks its own end, so that it does not matter how the connection ended. `exact` says
    that the service states errors only in a form that no row has, see `svcctl.api.refusals`.
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
        """Raise IncompleteResult for more than MAX_COLUMNS columns, or more than MAX_HEADING bytes of their names."""
        if columns > MAX_COLUMNS:
            raise self.incomplete(f"it has more than {MAX_COLUMNS} columns")
        if size > MAX_HEADING:
            raise self.incomplete(f"its heading is longer than {size_text(MAX_HEADING)}")

    def too_long(self) -> IncompleteResult:
        return self.incomplete(f"a row is longer than {size_text(MAX_ROW)}")
