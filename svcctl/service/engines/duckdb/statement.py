"""A running DuckDB statement, read as Arrow batches. Errors of DuckDB become errors of svcctl.

Only this module determines the cause of a DuckDB error. The cause follows from the class and the text of the error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from itertools import islice

import duckdb
import pyarrow as pa

from svcctl.errors import ServiceError, SvcctlError
from svcctl.service.engines import BYTES_PER_BATCH, by_bytes

_CLASSES: Mapping[str, type[duckdb.Error]] = {
    "Connection": duckdb.ConnectionException,
    "FATAL": duckdb.FatalException,
    "HTTP": duckdb.HTTPException,
    "INTERNAL": duckdb.InternalException,
    "IO": duckdb.IOException,
    "Internal": duckdb.InternalException,
    "Out of Memory": duckdb.OutOfMemoryException,
    "TransactionContext": duckdb.TransactionException,
}
"""The DuckDB classes of errors that Arrow passes on as text. The keys are the words before `Error:` in the text.

If other words come before `Error:`, DuckDB has refused the statement.
"""
_OWN_FAILURES = (
    *(duckdb.InternalException, duckdb.FatalException, duckdb.IOException),
    *(duckdb.ConnectionException, duckdb.TransactionException),
)
"""The classes of errors that report a failure of DuckDB or of the machine."""
_ERROR = re.compile(r"^(?:([A-Z][A-Za-z ]+) Error: )+")


class Cause(Enum):
    """The cause of a DuckDB error."""

    REFUSED = "the statement, or a value in it"
    FAILED = "DuckDB or the machine failed"
    MEMORY = "too little memory"
    LOCKED = "another process has the file open"
    DAMAGED = "a file is not whole"
    LOG = "a write-ahead log is damaged, or of another file"
    FULL = "no space is left on the disk"
    MISSING = "a file is not there"
    UNREAD = "a registered stream failed"


_TEXTS = (
    (Cause.MEMORY, re.compile(r"^Failed to commit: (?:could not allocate|failed to allocate|failed to pin) ")),
    (Cause.LOG, re.compile(r"^Failure while replaying WAL file ")),
    (Cause.FULL, re.compile(r"No space left on device|Disk quota exceeded|File too large")),
    (Cause.LOCKED, re.compile(r"^Could not set lock on file ")),
    (Cause.DAMAGED, re.compile(r"^No magic bytes found at end of file '(?P<file>.*)'$")),
    (Cause.DAMAGED, re.compile(r"^File '(?P<file>.*)' too small to be a Parquet file")),
    (Cause.MISSING, re.compile(r'^No files found that match the pattern "(?P<file>.*)"')),
)
_STREAM = re.compile(r"^reading the stream registered as '\w+' failed: ")


class StatementFailed(ServiceError):
    """An error of DuckDB with its cause.

    `file` is the file that the error names, or None if the error names no file.
    """

    def __init__(self, error: BaseException, work: str = "query") -> None:
        kind, message = _kind(error), first_line(error)
        text = _STREAM.sub("", message)
        failed = kind is None or issubclass(kind, _OWN_FAILURES)
        self.file: str | None = None
        self.cause = Cause.FAILED if failed else Cause.REFUSED if text == message else Cause.UNREAD
        if kind is duckdb.OutOfMemoryException:
            self.cause = Cause.MEMORY
        for cause, pattern in _TEXTS:
            if match := pattern.search(text):
                self.cause, self.file = cause, match.groupdict().get("file")
        if self.cause is Cause.MEMORY:
            super().__init__(f"the {work} needs more memory than the service may use", hint=_TOO_LARGE[work])
        elif self.cause is Cause.FULL:
            super().__init__(f"no space left for the {work}", hint="make room on the disk of the service", code=507)
        else:
            super().__init__(text, code=500 if failed else None)


def _kind(error: BaseException) -> type[duckdb.Error] | None:
    """Return the DuckDB class of an error. The error may come from DuckDB directly, or be passed on by Arrow.

    Return None for an error that is not from DuckDB.
    """
    if isinstance(error, duckdb.Error):
        return type(error)
    match = _ERROR.match(str(error))
    return _CLASSES.get(match[1], duckdb.ProgrammingError) if match else None


_TOO_LARGE = {"query": "narrow the range or group by less", "load": "nothing was changed; load fewer events at a time"}
"""Hints for the user if there is too little memory. The keys are the two kinds of work, a query and a load."""


@contextmanager
def translated(work: str = "query") -> Iterator[None]:
    """Turn errors of DuckDB in the `with` block into StatementFailed with a message of one line.

    This includes errors of DuckDB that Arrow passes on. `work` is `query` or `load`, and selects the hint of the
    error if there was too little memory. The error has the code 507 if the disk is full, and the code 500 for other
    failures of DuckDB or of the machine. The error has no code if there was too little memory, or if DuckDB refused the
    statement or a value in the statement.
    """
    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise StatementFailed(error, work) from None


def first_line(error: BaseException) -> str:
    """Return the first line of DuckDB's message, without the class of the error at its beginning."""
    return _ERROR.sub("", str(error).partition("\n")[0]) or type(error).__name__


VECTOR_ROWS = 2048
"""The number of rows in a vector. DuckDB processes this number of rows at once, even if the rows are large."""


class Statement:
    """A Stream of the rows of several SELECTs, one after the other.

    The rows of all SELECTs together are numbered from 0. The rows from `skip` up to, but not including, `stop` are
    returned. A batch has at most `rows_per_batch` rows, and at most about BYTES_PER_BATCH bytes. The first batch has at
    most VECTOR_ROWS rows, so that it is returned early.

    The constructor checks the first SELECT. A later SELECT is taken from `selects` only when its rows are needed.
    Making a SELECT may need further queries, which an interrupt also stops. Closing the stream closes its connection.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        selects: Iterable[str],
        rows_per_batch: int,
        skip: int = 0,
        stop: int | None = None,
    ) -> None:
        self._connection = connection
        self._selects = iter(selects)
        self._rows_per_batch = rows_per_batch
        self._skip = skip
        self._stop = stop
        self._stopped: SvcctlError | None = None
        self._reader: pa.RecordBatchReader | None = None
        with translated():
            self._relation = connection.sql(next(self._selects))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        batches: list[pa.RecordBatch] = []
        rows = size = 0
        vectors = self._vectors()
        yield from islice(vectors, 1)
        for batch in vectors:
            if batches and (rows + batch.num_rows > self._rows_per_batch or size + batch.nbytes > BYTES_PER_BATCH):
                yield _joined(batches)
                batches, rows, size = [], 0, 0
            batches.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
        if batches:
            yield _joined(batches)

    def _vectors(self) -> Iterator[pa.RecordBatch]:
        # The statement starts here and not in the constructor, because a sort may take long before its first row. Here,
        # the caller already has the object and can interrupt the statement.
        at = 0
        while (self._stop is None or at < self._stop) and (batch := self._next()) is not None:
            begin, end = at, at + batch.num_rows
            at = end
            first, last = max(begin, self._skip), end if self._stop is None else min(end, self._stop)
            if first < last:
                yield from by_bytes(batch.slice(first - begin, last - first))

    def _next(self) -> pa.RecordBatch | None:
        try:
            with translated():
                while self._stopped is None:
                    if self._reader is None:
                        self._reader = self._relation.to_arrow_reader(min(VECTOR_ROWS, self._rows_per_batch))
                    if (batch := next(self._reader, None)) is not None:
                        return batch
                    self._reader = None
                    if (select := next(self._selects, None)) is None:
                        return None
                    self._relation = self._connection.sql(select)
        except ServiceError as error:
            raise (self._stopped or error) from None
        raise self._stopped

    def interrupt(self, reason: SvcctlError | None = None) -> None:
        self._stopped = self._stopped or reason or ServiceError("the query was interrupted", code=503)
        with suppress(duckdb.Error):  # the connection may have been closed at the same moment
            self._connection.interrupt()

    def close(self) -> None:
        """Stop the statement if it still runs."""
        if self._reader is not None:
            self._reader.close()
        self._connection.close()


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
