"""A running statement on a server of Spark Connect, read as Arrow batches."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from svcctl.errors import ServiceError, SvcctlError, Unavailable
from svcctl.service.engines import by_bytes
from svcctl.service.engines.spark.session import Session, SessionLost, SparkConnection

KEEP_SECONDS = 60.0
"""The interval, in seconds, between requests that keep the session alive while a result is read.

The server Sail ends an idle session, even while a result is read.
"""


class SparkStream:
    """A Stream of the rows of a plan that runs on Spark Connect. Closing the stream stops the work on the server.

    A result is complete if the server ends the result without an error, and if each batch has the number of rows that
    the server has stated.
    """

    def __init__(
        self,
        connection: SparkConnection,
        session: Session,
        plan: Any,
        types: Sequence[pa.DataType],
        rows: int,
        written: Callable[[], Iterator[pa.RecordBatch]] | None = None,
    ) -> None:
        """Make a stream that has not started. If the plan writes its rows to files, `written` reads these files."""
        self._written = written
        self._connection = connection
        self._session = session
        self._plan = plan
        self._types = types
        self._rows = rows
        self._tag = f"svcctl-{uuid.uuid4().hex}"
        self._call: Any = None
        self._answered = False
        self._over = False
        self._stopped: SvcctlError | None = None
        self._starting = threading.Lock()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            try:
                yield from self._executed()
            except SessionLost:
                if self._answered:
                    raise
                self._session = self._connection.session(answers=True)
                yield from self._executed()
            self._check()
            if self._written is not None:
                with self._connection.translated(self._session):
                    for batch in self._written():
                        yield from self._typed(batch)
            self._over = True
        except SvcctlError as error:
            raise (self._stopped or error) from None

    def _executed(self) -> Iterator[pa.RecordBatch]:
        """Start the plan in the current session, and read the result from the server."""
        with self._connection.translated(self._session):
            with self._starting:
                self._check()
                self._call = self._session.start(self._plan, self._tag)
            checked = time.monotonic()
            for response in self._responses():
                self._check()
                if time.monotonic() - checked > KEEP_SECONDS:
                    self._session.check()
                    checked = time.monotonic()
                self._answered = True
                if not self._session.is_of(response):
                    raise self._connection.ended(self._session)
                if response.HasField("arrow_batch"):
                    yield from self._batches(response.arrow_batch)
            # When Sail ends a session, it also ends the result, as if the result were complete.
            self._answered = True
            self._session.check()

    def _responses(self) -> Iterator[Any]:
        import grpc

        try:
            yield from self._call
        except grpc.RpcError:
            self._check()  # the call was cancelled here, not by the server
            raise

    def _batches(self, message: Any) -> Iterator[pa.RecordBatch]:
        with pa.ipc.open_stream(message.data) as reader:
            batches = list(reader)
        if sum(batch.num_rows for batch in batches) != message.row_count:
            raise Unavailable("Spark sent an incomplete batch")
        for batch in batches:
            yield from self._typed(batch)

    def _typed(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        arrays = [column.cast(type_) for column, type_ in zip(batch.columns, self._types, strict=True)]
        typed = pa.RecordBatch.from_arrays(arrays, [str(index) for index in range(len(arrays))])
        for start in range(0, batch.num_rows, self._rows):
            self._check()
            yield from by_bytes(typed.slice(start, self._rows))

    def _check(self) -> None:
        if self._stopped is not None:
            raise self._stopped

    def interrupt(self, reason: SvcctlError | None = None) -> None:
        if self._over:
            return
        self._stopped = self._stopped or reason or ServiceError("the query was interrupted", code=503)
        self._stop()

    def _stop(self) -> None:
        """Cancel the call, so that the reading thread stops waiting. Then interrupt the work on the server."""
        with self._starting:
            call = self._call
        if call is not None:
            with suppress(Exception):
                call.cancel()
            threading.Thread(target=self._session.interrupt, args=[self._tag], daemon=True).start()

    def close(self) -> None:
        """Stop the statement if it still runs."""
        if not self._over:
            self._over = True
            self._stopped = self._stopped or ServiceError("the query was interrupted", code=503)
            self._stop()
