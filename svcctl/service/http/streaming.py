"""The streamed answer to a query.

The engines work in threads, and the open queries take turns. While a query has no rows to send, the service sends
padding, so that the client does not give up. Padding is a few bytes without a meaning.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack
from itertools import chain, islice
from typing import Any

import anyio
import pyarrow as pa
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from svcctl.dates.epochs import seconds_to_ms
from svcctl.dates.lengths import length_text
from svcctl.errors import ServiceError, SvcctlError
from svcctl.service import rendering
from svcctl.service.engines import Stream
from svcctl.service.http.context import Service
from svcctl.service.http.envelope import cut, http_status, refusal
from svcctl.service.queries.concurrency import INTERRUPT_SECONDS, OpenQuery
from svcctl.service.queries.continuous import Steps
from svcctl.service.queries.request import AskedQuery
from svcctl.service.queries.schedule import LateEvents, Step
from svcctl.service.rendering import ENCODERS, LINE_ENDS, DateStyle, Encoder, Rendering

POLL_SECONDS = 0.2
"""The number of seconds between two checks of a continuous query for new events."""
LATE_HEADER = "x-svc-late"
"""The name of a request header. With this header, a client asks for the number of late events.

A late event is an event that arrived too late for the groups of a query. Only answers in the format json/simple/compact
can report the number of late events.
"""
LEAST_WAIT = 0.01
"""The minimum number of seconds between two checks of a query's time limit."""


class StreamedAnswer:
    """The answer to a query as a stream. While a batch of rows is sent, the engine already reads the next batch.

    The answer begins when the first batch is ready, or after `padding_seconds` without a batch. If the query fails
    before that, the answer is an error envelope. If the query fails later, the stream ends with an error in the format
    of the answer. If `notes` is true, the answer reports the number of events that arrived too late for the groups of
    the query.
    """

    def __init__(
        self, service: Service, query: OpenQuery, asked: AskedQuery, cid: str, steps: Steps, *, notes: bool = False
    ) -> None:
        self._service = service
        self._query = query
        self._asked = asked
        self._cid = cid
        self._steps = steps
        self._notes = notes
        self._late: LateEvents | None = None
        self._step: Step | None = None
        self._rows = 0
        self._most = query.seconds + service.query_seconds
        self._closing = ExitStack()
        self._stream_closing = ExitStack()
        self._stream: Stream | None = None
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._more = False
        self._next: asyncio.Future[bytes | memoryview | None] | None = None
        self._encoder: Encoder

    async def begin(self, step: Step | None) -> None:
        """Start the first query step, and wait for its first batch of rows for at most `padding_seconds`.

        `step` is the first query step. It is None if the first step cannot run yet. Then nothing is started.
        """
        encoder = ENCODERS[self._asked.mode]
        if not encoder.streams and self._asked.range.end is None:
            raise ServiceError(f"mode.type {self._asked.mode} cannot be streamed, so the query needs an end (to)")
        response = Rendering(
            self._cid,
            seconds_to_ms(self._service.clock()),
            DateStyle(self._asked.date_format, self._asked.zone),
            LINE_ENDS[self._service.line_end],
            self._asked.ip_as_string,
            self._asked.keep_alive,
        )
        self._encoder = self._closing.enter_context(encoder(self._steps.shape.columns, response))
        if step is None:
            return
        try:
            self._start(step)
            await self._wait()
            if self._next is not None and self._next.done():
                self._next.result()
        except BaseException:
            await self.close()
            raise

    async def chunks(self) -> AsyncIterator[bytes | memoryview]:
        """Yield the body of the answer: the head, the rows of all query steps, and the tail.

        While there are no rows to send, padding is yielded.
        """
        try:
            if head := self._encoder.head():
                yield head
            while self._next is not None or not self._over:
                async for chunk in self._step_chunks():
                    yield chunk
                async for padding in self._idle():
                    yield padding
            tail = self._encoder.tail()
            # Packing a workbook takes long, so it needs a turn. The tail of a streamed format has only a few bytes.
            while chunk := next(tail, b"") if self._encoder.streams else await self._query.run(next, tail, b""):
                yield chunk
        except Exception as error:
            if not self._encoder.streams:
                raise  # nothing was sent, so the answer is an envelope
            client_error = refusal(error, self._cid)
            yield self._encoder.error(http_status(client_error), cut(client_error.message))

    @property
    def streams(self) -> bool:
        return self._encoder.streams

    def headers(self) -> Mapping[str, str]:
        """Return the HTTP headers that depend on the rows. There are no such headers if the format can be streamed."""
        return self._encoder.headers()

    @property
    def _over(self) -> bool:
        return self._steps.over(self._step, self._rows)

    async def _step_chunks(self) -> AsyncIterator[bytes | memoryview]:
        """Yield the chunks of the running query step. Yield padding while the next chunk is not ready."""
        while self._next is not None:
            while not self._next.done():
                await self._wait()
                if not self._next.done() and self._encoder.padding:
                    yield self._encoder.padding
            chunk = self._next.result()
            more = chunk is not None and self._more
            self._next = asyncio.ensure_future(self._query.run(self._encode_next)) if more else None
            if chunk:
                yield chunk
        self._end_stream()

    async def _idle(self) -> AsyncIterator[bytes]:
        """Wait for the next query step, and start this step. Meanwhile, yield padding and notes about late events."""
        quiet_since = time.monotonic()
        while not self._over:
            step, late = await self._query.run(self._look)
            if note := self._note_late(late):
                yield note
            if step is not None:
                self._most = self._query.seconds + self._service.query_seconds
                self._start(step)
                return
            await asyncio.wait({self._query.ended}, timeout=POLL_SECONDS)
            if time.monotonic() - quiet_since > self._service.padding_seconds and self._encoder.padding:
                quiet_since = time.monotonic()
                yield self._encoder.padding

    def _look(self) -> tuple[Step | None, LateEvents | None]:
        """Return the next step of the query, and the number of late events so far.

        The next step is None if it cannot run yet.
        """
        step = self._steps.next(self._step, self._rows)
        return step, self._steps.late_after(self._step, step, self._rows, self._late)

    def _note_late(self, late: LateEvents | None) -> bytes:
        """Count new late events, and return the bytes that report their number to the client.

        The result is empty if there are no new late events, or if the client did not ask for their number.
        """
        before, after = (0 if counted is None else counted.count for counted in (self._late, late))
        self._late = late
        self._service.counts.late += after - before
        return self._encoder.late(after, self._service.lag_seconds) if self._notes and after > before else b""

    def _start(self, step: Step) -> None:
        self._step = step
        self._next = asyncio.ensure_future(self._first_chunk(step))

    async def _first_chunk(self, step: Step) -> bytes | memoryview | None:
        await self._query.run(self._read_first, step, interrupt=self._interrupt)
        return await self._query.run(self._encode_next)

    def _read_first(self, step: Step) -> None:
        """Start the engine on a query step, and wait for the first batch.

        This method may be called again for the same step.
        """
        self._end_stream()
        # The engine plans the query here, which takes seconds for the largest queries.
        plan = self._steps.plan(step)
        expressions = self._encoder.expressions()
        rows = rendering.stream(self._steps.reader, plan, expressions, since=step.since, until=step.until)
        self._stream = self._stream_closing.enter_context(rows)
        batches = iter(self._stream)
        # The engine returns all groups at once. If there is no second batch, the query needs no further turn.
        ahead = 1 if plan.by_event else 2
        read = list(islice(batches, ahead))
        self._batches, self._more = chain(read, batches), len(read) == ahead

    def _encode_next(self) -> bytes | memoryview | None:
        batch = next(self._batches, None)
        if batch is None:
            return None
        self._rows += batch.num_rows
        return self._encoder.chunk(batch)

    async def _wait(self) -> None:
        """Wait for the next batch of rows for at most `padding_seconds`.

        The query is stopped if the engine has worked on the query for longer than the time limit. The query is also
        stopped when its future `ended` is done, for example because the API key has expired.
        """
        assert self._next is not None
        until = time.monotonic() + self._service.padding_seconds
        while not self._next.done() and (remaining := until - time.monotonic()) > 0:
            left = self._most - self._query.seconds
            if left <= 0:
                limit = length_text(self._service.query_seconds)
                await self._stop(ServiceError(f"the query ran for more than {limit}; narrow its range"))
                return
            wait = min(remaining, max(left, LEAST_WAIT))
            either: set[asyncio.Future[Any]] = {self._next, self._query.ended}
            await asyncio.wait(either, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
            if self._query.ended.done():
                await self._stop(self._query.ended.result())
                raise self._query.ended.result()

    async def _stop(self, reason: SvcctlError | None = None) -> None:
        """Interrupt the engine, and wait until the engine has stopped working on this query."""
        while self._next is not None and not self._next.done():
            if self._query.waiting:
                self._next.cancel()
            self._interrupt(reason)
            await asyncio.wait({self._next}, timeout=INTERRUPT_SECONDS)

    def _interrupt(self, reason: SvcctlError | None = None) -> None:
        if (stream := self._stream) is not None:
            stream.interrupt(reason)

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._stream_closing.close()
            self._stream = None

    async def close(self) -> None:
        """Stop the work on this answer, and release its resources."""
        with anyio.CancelScope(shield=True):
            await self._stop()
        if self._next is not None and not self._next.cancelled():
            self._next.exception()
        self._end_stream()
        self._closing.close()
        self._query.close()


class AnswerResponse(StreamingResponse):
    """The HTTP response that sends a streamed answer. The answer is always closed, even after a disconnect.

    If the format cannot be streamed, the response begins when all rows are ready. If the query fails before that, the
    response is an error envelope.
    """

    def __init__(self, answer: StreamedAnswer, encoder: type[Encoder], connection: str) -> None:
        """Make the response. `connection` is the value of the request's header Connection.

        Some formats end the connection after the answer. If the header Connection contains keep-alive, the connection
        stays open in these formats too.
        """
        self._chunks = answer.chunks()
        keeps = "keep-alive" in (option.strip().lower() for option in connection.split(","))
        headers = {"connection": "close"} if encoder.ends_connection and not keeps else None
        super().__init__(self._chunks, headers=headers, media_type=encoder.content_type)
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._answer.close()

    async def stream_response(self, send: Send) -> None:
        if not self._answer.streams:
            first = await anext(self._chunks)
            self.headers.update(self._answer.headers())
            self.body_iterator = _with_first(first, self._chunks)
        await super().stream_response(send)


async def _with_first(first: bytes | memoryview, rest: AsyncIterator[bytes | memoryview]) -> AsyncIterator[Any]:
    yield first
    async for chunk in rest:
        yield chunk
