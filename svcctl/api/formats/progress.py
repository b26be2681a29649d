"""The progress of a stream, which all formats update while they read: rows, columns and cid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from svcctl.errors import IncompleteResult, MalformedAnswer
from svcctl.words import size_text

if TYPE_CHECKING:
    from svcctl.api.columns import Column
    from svcctl.api.refusals import Refusal

BLOCK = 64 * 1024
"""Bytes per delivered block, in formats that gather them."""

MAX_ROW = 64_000_000
"""Bytes of the longest row that is accepted; a body without an end of row would fill the memory."""

MAX_COLUMNS = 50_000
"""Columns of the widest result that is read: each takes some hundred bytes, however short its name is."""
MAX_HEADING = 8_000_000
"""Bytes of the longest heading that is read."""
NAMES_PER_COLUMN = 4
"""Names in JSON that describe one column: its own, type and index."""


Late = Callable[[int, float], None]
"""Takes a number of events that came too late for their group, and the seconds after the end of their period."""


@dataclass(slots=True)
class Delivered:
    """Rows delivered (None when the format's bytes do not show them), columns when known, the request's cid.

    `late` is called when the service says how many events came more than so many seconds after the end of their period.
    `marks_end`: the body marks its own end, so that it does not matter how the connection ended.
    `exact` says that the service states an error in its own form only, see `svcctl.api.refusals`.
    """

    rows: int | None = 0
    columns: tuple[Column, ...] | None = None
    cid: str | None = None
    late: Late | None = None
    marks_end: bool = False
    exact: bool = False

    def add(self, rows: int) -> None:
        self.rows = (self.rows or 0) + rows

    def incomplete(self, what: str) -> IncompleteResult:
        return IncompleteResult(f"the result is incomplete: {what}", rows=self.rows)

    def malformed(self, what: str) -> MalformedAnswer:
        """The error of a whole answer that is no result in the format that was asked for."""
        return MalformedAnswer(f"the service's answer is not a result: {what}")

    def ended_in(self, refusal: Refusal) -> IncompleteResult:
        refusal = refusal.of(self.cid)
        self.cid = refusal.cid
        return self.incomplete(f"it ended in an error of the service: {refusal.in_one_line()}")

    def cut(self) -> IncompleteResult:
        return self.incomplete("the connection closed in the middle")

    def check_width(self, columns: int, size: int = 0) -> None:
        """IncompleteResult for more than MAX_COLUMNS, or more than MAX_HEADING bytes that name them."""
        if columns > MAX_COLUMNS:
            raise self.incomplete(f"it has more than {MAX_COLUMNS} columns")
        if size > MAX_HEADING:
            raise self.incomplete(f"its heading is longer than {size_text(MAX_HEADING)}")

    def too_long(self) -> IncompleteResult:
        return self.incomplete(f"a row is longer than {size_text(MAX_ROW)}")
