"""Destinations of the rows of jobs. All have one protocol.

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

Written rows may be lost until `commit` returns; after that they stay. The service may die between `commit` and saving
its memo, so each destination avoids delivering that batch twice. A file is recognised by its saved hash, or written
again with the same rows (`repeats`). Kafka reports how many rows it has (`counts`).

Only one thread uses a destination. `Unavailable` from any method means that the destination does not answer or refuses;
the job then closes the destination, and later opens a new one with the last saved memo.
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
    """A destination as one job uses it. The constructor checks parameters and hosts, and connects to nothing."""

    rows: RowFormat
    """The format of a row."""
    patience: float = 10.0
    """Seconds that rows may wait for their commit."""
    counts: ClassVar[bool] = False
    """Whether `open` counts the rows at the destination. A batch then has rows of one step only, and the step is saved
    before its first row is delivered, so that the job knows which step the counted rows are of."""

    repeats: ClassVar[bool] = False
    """Whether a commit may come late, or twice, from a process that no longer runs the job. The rows of a batch and the
    memo of `prepare` are then saved before its commit. Each commit of a batch has the same rows, so that a second
    commit changes nothing.
    """

    def open(self, sent: int, memo: Memo, head: bytes) -> int:
        """Connect, and return how many rows the destination has: `sent`, unless it `counts` them.

        `head` is the beginning of each file.
        """
        return sent

    @property
    def memo(self) -> Memo:
        """The memo to save before the first commit."""
        return {}

    @abstractmethod
    def room(self) -> int:
        """How many more bytes the batch takes. A row larger than a whole batch is a batch by itself."""

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
        """Deliver the batch for good. Called with at least one row written since the last commit."""

    def close(self) -> None:
        """Disconnect, and drop the rows written since the last commit."""
        return
