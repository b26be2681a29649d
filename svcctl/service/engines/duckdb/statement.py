"""A running DuckDB statement, read as Arrow batches, and DuckDB's errors as errors of svcctl."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import duckdb
import pyarrow as pa

from svcctl.errors import ServiceError, SvcctlError


@contextmanager
def explained() -> Iterator[None]:
    """Raise errors of DuckDB, and of Arrow where it passes them on, as a ServiceError of one line."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise ServiceError(
            "the query needs more memory than the service may use", code=500, hint="narrow the range or group by less"
        ) from None
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise ServiceError(first_line(error), code=500) from None


def first_line(error: BaseException) -> str:
    """The reason DuckDB gives, without the error's class and without the statement it quotes below."""
    line = str(error).partition("\n")[0]
    return re.sub(r"^(?:[A-Z][A-Za-z ]+ Error: )+", "", line) or type(error).__name__


class Statement:
    """A Stream of the rows of one SELECT; closing it closes its connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, sql: str, rows_per_batch: int) -> None:
        self._connection = connection
        self._rows_per_batch = rows_per_batch
        self._stopped: SvcctlError | None = None
        self._reader: pa.RecordBatchReader | None = None
        with explained():
            self._relation = connection.sql(sql)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        # The statement starts here, not in the constructor: a sort can take long before its first row, and by now
        # the caller has the object to interrupt.
        while True:
            try:
                if self._stopped is not None:
                    raise self._stopped
                with explained():
                    if self._reader is None:
                        self._reader = self._relation.to_arrow_reader(self._rows_per_batch)
                    batch = self._reader.read_next_batch()
            except StopIteration:
                return
            except ServiceError as error:
                raise (self._stopped or error) from None
            if batch.num_rows:
                yield batch

    def interrupt(self, reason: SvcctlError | None = None) -> None:
        self._stopped = self._stopped or reason or ServiceError("the query was interrupted", code=503)
        with suppress(duckdb.Error):  # it may have been closed at this very moment
            self._connection.interrupt()

    def close(self) -> None:
        """Stop the statement if it still runs."""
        if self._reader is not None:
            self._reader.close()
        self._connection.close()
