"""Destinations: where the rows of a job go, each behind one protocol.

    kinds.py            the table of destination types
    params.py           the parameters that a request gives
    kafka.py            rows as messages, in transactions
    s3_and_hdfs.py      which storage, and the names of the files
    numbered_files.py   rows as csv in files, over svcctl.storage
    gzip_and_zip.py     how these files are packed
    donothing.py        rows counted and dropped

A job opens a destination, writes batches of rows, and commits each batch:

    there = destination.open(sent, memo, head)
    while rows are left: write(lines, row, dates) as often as room() allows, then commit() and save its memo

Rows that were written may be lost until `commit` returns; afterwards they stay. The service may die between `commit`
and saving its memo, so every destination has a way to not deliver that batch twice: a file is recognised by its saved
hash, or written again with the same rows (`repeats`), and Kafka is asked how many rows it has (`counts`).

One thread uses a destination. `Unavailable` from any method means that the destination does not answer or refuses; the
job then closes it, and later opens another with the memo that was last saved.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from svcctl.service.rendering.rows import RowFormat

Memo = Mapping[str, Any]
"""The JSON object that a destination wants back when it is opened the next time."""


class JobDestination(Protocol):
    """A destination as one job uses it. The constructor checks parameters and hosts, and connects to nothing."""

    rows: RowFormat
    """How a row is written."""
    patience: float = 10.0
    """Seconds that rows may wait for their commit."""
    counts: ClassVar[bool] = False
    """Whether `open` finds out how many rows the destination has. A batch then has rows of one step only, and the step
    is saved before its first row is delivered, so that the job knows which rows `open` has found."""

    repeats: ClassVar[bool] = False
    """Whether a commit may come late, or twice, from a process that no longer runs the job. Which rows a batch has,
    and the memo of `prepare`, are then saved before its commit. Each commit of the batch has the same rows, so that a
    second one changes nothing.
    """

    def open(self, sent: int, memo: Memo, head: bytes) -> int:
        """Connect, and return how many rows the destination has: `sent`, unless it `counts` them.

        `head` is what each file begins with.
        """
        return sent

    @property
    def memo(self) -> Memo:
        """What to save before the first commit."""
        return {}

    @abstractmethod
    def room(self) -> int:
        """How many more bytes the batch takes. A row larger than a whole batch is a batch by itself."""

    @abstractmethod
    def write(self, lines: pa.StringArray, row: int, dates: pa.Int64Array) -> None:
        """Add rows to the batch; `row` is the number of the first, counted from the start of the job. The `dates` are
        those of the rows in epoch milliseconds, None for a row without a date.
        """

    def prepare(self) -> Memo:
        """Prepare the batch of a destination that `repeats` for its commit; return the memo to save before that."""
        return {}

    @abstractmethod
    def commit(self) -> Memo:
        """Deliver the batch for good. Called with at least one row written since the last commit."""

    def close(self) -> None:
        """Disconnect, and drop what was written since the last commit."""
        return
