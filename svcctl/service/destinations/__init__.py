"""The destinations to which jobs deliver rows. All destinations have the same protocol.

    kinds.py            the table of destination types
    params.py           the parameters of a request
    kafka.py            rows as messages, in transactions
    s3_and_hdfs.py      the storage and the file names of s3 and hdfs
    numbered_files.py   rows as csv in files, written with svcctl.storage
    gzip_and_zip.py     the packing of these files: plain, gzip or zip
    donothing.py        a destination that counts and drops the rows

A job opens a destination, writes batches of rows, and commits each batch:

    row = destination.open(sent, memo, head)
    while rows are left: write(lines, row, dates) as often as room() allows, then commit() and save its memo

A memo is the state of the destination as a JSON object. The job saves the memo after each commit.

A batch may be lost before `commit` returns, but not afterwards. If the service dies after a commit and before the memo
is saved, the next run of the job must not deliver the rows of this batch again. There are two ways to prevent this:

    `repeats`   the job commits the same rows again, and a destination with files finds the file that it already has
    `counts`    Kafka reports the number of rows that it already has

Only one thread uses a destination. Any method raises `Unavailable` if the destination does not answer or refuses the
request. The job then closes the destination. Later, the job makes a new destination object, and opens it with the last
saved memo.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from svcctl.service.rendering.rows import RowFormat

Memo = Mapping[str, Any]
"""The state of a destination as a JSON object. The job saves the memo, and passes it to the next `open`."""


class JobDestination(Protocol):
    """The destination of one job. The constructor checks the parameters and the hosts, but makes no connection."""

    rows: RowFormat
    """The format of a row."""
    patience: float = 10.0
    """The maximum number of seconds that rows may wait for their commit."""
    counts: ClassVar[bool] = False
    """Whether the method `open` counts the rows that the destination already has.

    A job runs its query in steps. If `counts` is true, a batch has rows of only one step, and the job saves each step
    before it delivers the first row of the step. So the job knows to which step the counted rows belong.
    """

    repeats: ClassVar[bool] = False
    """Whether the job must commit a batch again if the commit was interrupted.

    If so, the job calls `prepare` before each commit, and saves the returned memo and the number of the batch's last
    row. After an interruption, the job commits the same rows again. If the first commit has succeeded, the second
    commit changes nothing.
    """

    def open(self, sent: int, memo: Memo, head: bytes) -> int:
        """Connect, and return the number of rows that the destination already has.

        `sent` is the saved number of delivered rows, and `memo` is the last saved memo. `head` has the bytes with which
        each file begins. If the attribute `counts` is true, the result is the number of rows that were counted at the
        destination. Otherwise the result is `sent`.
        """
        return sent

    @property
    def memo(self) -> Memo:
        """The memo to save before the first commit. A memo is the state of the destination."""
        return {}

    @abstractmethod
    def room(self) -> int:
        """Return the number of bytes that still fit into the current batch.

        A row that is larger than a batch gets its own batch.
        """

    @abstractmethod
    def write(self, lines: pa.StringArray, row: int, dates: pa.Int64Array) -> None:
        """Add rows to the current batch.

        `row` is the number of the first row, counted from the start of the job. `dates` has the date of each row in
        epoch milliseconds, or None for a row without a date.
        """

    def prepare(self) -> Memo:
        """Prepare the commit of the current batch, and return the memo to save before the commit.

        A memo is the state of the destination. The job calls this method only if `repeats` is true.
        """
        return {}

    @abstractmethod
    def commit(self) -> Memo:
        """Deliver the current batch permanently, and return the memo to save.

        A memo is the state of the destination. The job calls this method only if it has written at least one row since
        the last commit.
        """

    def close(self) -> None:
        """Disconnect, and drop the rows that were written since the last commit."""
        return
