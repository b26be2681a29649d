"""The destination `donothing`, which drops all rows. People use this destination to try out a job."""

from __future__ import annotations

import pyarrow as pa

from svcctl.service.destinations import JobDestination, Memo
from svcctl.service.rendering import arrow
from svcctl.service.rendering.rows import OBJECT_LINE

BATCH_BYTES = 1_000_000


class DoNothing(JobDestination):
    """Drops the rows. The size of a batch is calculated as if the rows were sent as JSON."""

    rows = OBJECT_LINE
    patience = 1.0

    def __init__(self) -> None:
        self._pending = 0

    def room(self) -> int:
        return BATCH_BYTES - self._pending

    def write(self, lines: pa.StringArray, row: int, dates: pa.Int64Array) -> None:
        self._pending += len(arrow.text(lines))

    def commit(self) -> Memo:
        self._pending = 0
        return {}
