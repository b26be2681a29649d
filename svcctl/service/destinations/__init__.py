"""The destinations to which jobs deliver rows. All destinations have the same protocol.

    kinds.py            the table of destination types
    params.py           the parameters of a request
    kafka.py            rows as messages, in transactions
    s3_and_hdfs.py      the storage, and the names of its files
    numbered_files.py   rows as csv in files, over svcctl.storage
    gzip_and_zip.py     the packing of these files
    donothing.py        rows counted and dropped

A job opens a destination, writes batches of rows, and commits each batch:

    row = destination.open(sent, memo, head)
    while rows are left: write(lines, row, dates) as often as room() allows, then commit() and save its memo

Written rows may be lost until `commit` returns; after that they stay. The service may die after a `commit` and before
the memo is saved, so each destination avoids delivering this batch twice. A file is recognised by its saved hash, or
written again with the same rows (`repeats`). Kafka reports how many rows it has (`counts`).

Only one thread uses a destination. `Unavailable` from any method means that the destination does not answer, or refuses
the request. The job then closes the destination, and later opens a new destination with the last saved memo.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from svcctl.service.rendering.rows import RowFormat

Memo = Mapping[str, Any]
"""The JSON object that a job saves for a destination, and passes to the next `open`."""


class JobDestination(Protocol):
    """The destination of one job. The constructor checks parameters and hosts, and connects to nothing."""

    rows: RowFormat
    """The format of a row."""
    patience: float = 10.0
    """The maximum number of seconds that rows may wait for their commit."""
    counts: ClassVar[bool] = False
    """Whether `open` counts the rows at the destination. If so, a batch has rows of one step only, and this step is
    saved before its first row is delivered. So the job knows to which step the counted rows belong."""

    repeats: ClassVar[bool] = False
    """Whether a commit may come late, or twice, from a process that no longer runs the job. If so, the job saves which
    rows a batch has, and the memo of `prepare`, before it commits the batch. Each commit of the batch then has the same
    rows, so that a second commit changes nothing.
    """

    def open(self, sent: int, memo: Memo, head: bytes) -> int:
        """Connect, and return the number of rows that the destination has.

        This is `sent`, unless the destination `counts` its rows. `head` has the bytes at the beginning of each file.
        """
        return sent

    @property
    def memo(self) -> Memo:
        """The memo to save before the first commit."""
        return {}

    @abstractmethod
    def room(self) -> int:
        """Return how many more bytes fit into the batch. A row that is larger than a batch is a batch by itself."""

    @abstractmethod
    def write(self, lines: pa.StringArray, row: int, dates: pa.Int64Array) -> None:
        """Add rows to the batch. `row` is the number of the first row, counted from the start of the job. `dates` has
        the date of each row in epoch milliseconds, None for a row without a date.
        """

    def prepare(self) -> Memo:
        """Prepare the commit of the batch if the destination `repeats`; return the memo to save before the commit."""
        return {}

    @abstractmethod
    def commit(self) -> Memo:
        """Deliver the batch for good, and return the memo to save.

        Called only if at least one row was written since the last commit.
        """

    def close(self) -> None:
        """Disconnect, and drop the rows written since the last commit."""
        return
