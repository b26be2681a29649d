"""Streams the answer to a query: the engine works in a thread, and padding is sent while there are no rows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from typing import Any

import anyio
import pyarrow as pa
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from svcctl.errors import ServiceError
from svcctl.service import rendering
from svcctl.service.engines import Stream
from svcctl.service.http.envelope import cut, http_status, refusal
from svcctl.service.queries.asked import AskedQuery
from svcctl.service.queries.continuous import Step, Steps
from svcctl.service.rendering import ENCODERS, Dates, Encoder, Rendering
from svcctl.service.service import Service

POLL_SECONDS = 0.2
"""How often a continuous query looks for new events."""
INTERRUPT_SECONDS = 0.1
"""How often an interrupt is repeated: an engine may miss one that is sent while it starts."""


class StreamedAnswer:
    """The rows of one query as they are sent; the engine reads one batch ahead of the connection.

    Nothing is sent before the first batch is there, or the padding time has passed. So an early failure is answered by
    an error envelope; a later one ends the stream in the way of its format.
    """

    def __init__(self, service: Service, asked: AskedQuery, cid: str, steps: Steps) -> None:
        self._service = service
        self._asked = asked
        self._cid = cid
        self._steps = steps
        self._step: Step | None = None
        self._rows = 0
        self._left = service.query_seconds
        self._closing = ExitStack()
        self._stream: Stream | None = None
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._next: asyncio.Future[bytes | memoryview | None] | None = None
        self._encoder: Encoder

    async def begin(self) -> None:
        """Start the first step, and wait for its first batch, but no longer than the padding time."""
        step = await self._service.run(self._steps.next, None, 0)
        encoder = ENCODERS[self._asked.mode]
        if not encoder.streams and self._asked.range.end is None:
            raise ServiceError(f"mode.type {self._asked.mode} cannot be streamed, so the query needs a to")
        shape = self._steps.shape
        dates = Dates(self._asked.date_format, self._asked.zone)
        response = Rendering(self._cid, int(self._service.clock() * 1000), shape.table, dates)
        self._encoder = self._closing.enter_context(encoder(shape.columns, response))
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
        """The response's body."""
        try:
            if head := self._encoder.head():
                yield head
            while self._next is not None or not self._over:
                async for chunk in self._step_chunks():
                    yield chunk
                async for padding in self._idle():
                    yield padding
            tail = self._encoder.tail()
            while chunk := await asyncio.to_thread(next, tail, b""):  # packing a workbook takes long
                yield chunk
        except Exception as error:
            if not self._encoder.streams:
                raise  # nothing was sent, so the answer is an envelope
            told = refusal(error, self._cid)
            yield self._encoder.error(http_status(told), cut(told.message))

    @property
    def streams(self) -> bool:
        return self._encoder.streams

    @property
    def _over(self) -> bool:
        return self._steps.over(self._step, self._rows)

    async def _step_chunks(self) -> AsyncIterator[bytes | memoryview]:
        """The chunks of the running step, and padding while the next one takes long."""
        while self._next is not None:
            while not self._next.done():
                await self._wait()
                if not self._next.done() and self._encoder.padding:
                    yield self._encoder.padding
            chunk = self._next.result()
            self._next = None if chunk is None else self._service.run(self._encode_next)
            if chunk:
                yield chunk
        self._end_stream()

    async def _idle(self) -> AsyncIterator[bytes]:
        """Start the next step as soon as there is one, and send padding until then."""
        quiet_since = time.monotonic()
        while not self._over:
            step = await self._service.run(self._steps.next, self._step, self._rows)
            if step is not None:
                self._left = self._service.query_seconds
                self._start(step)
                return
            await asyncio.sleep(POLL_SECONDS)
            if time.monotonic() - quiet_since > self._service.padding_seconds and self._encoder.padding:
                quiet_since = time.monotonic()
                yield self._encoder.padding

    def _start(self, step: Step) -> None:
        self._step = step
        self._stream_closing = ExitStack()
        self._next = self._service.run(self._encode_first, step)

    def _encode_first(self, step: Step) -> bytes | memoryview | None:
        # The engine plans the query here, which takes seconds for the largest ones.
        plan = self._steps.plan(step)
        expressions = self._encoder.expressions()
        rows = rendering.stream(self._service.engine, plan, expressions, since=step.since, until=step.until)
        self._stream = self._stream_closing.enter_context(rows)
        self._batches = iter(self._stream)
        return self._encode_next()

    def _encode_next(self) -> bytes | memoryview | None:
        batch = next(self._batches, None)
        if batch is None:
            return None
        self._rows += batch.num_rows
        return self._encoder.chunk(batch)

    async def _wait(self) -> None:
        """Wait for the next batch, but no longer than the padding time. Past its time limit the query is stopped."""
        assert self._next is not None
        before, left = time.monotonic(), self._left
        await asyncio.wait({self._next}, timeout=max(0.0, min(self._service.padding_seconds, left)))
        self._left -= time.monotonic() - before
        if left <= self._service.padding_seconds:
            limit = f"{self._service.query_seconds:g} s"
            await self._stop(ServiceError(f"the query ran for more than {limit}; narrow its range"))

    async def _stop(self, reason: ServiceError | None = None) -> None:
        """Interrupt the engine, and wait until its thread is free."""
        while self._next is not None and not self._next.done():
            if self._stream is not None:
                self._stream.interrupt(reason)
            await asyncio.wait({self._next}, timeout=INTERRUPT_SECONDS)

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._stream_closing.close()
            self._stream = None

    async def close(self) -> None:
        """Stop what still runs for this answer, and release what it holds."""
        with anyio.CancelScope(shield=True):
            await self._stop()
        if self._next is not None and not self._next.cancelled():
            self._next.exception()
        self._end_stream()
        self._closing.close()


class AnswerResponse(StreamingResponse):
    """Sends an answer and always closes it, even when the client leaves before the first byte.

    A format that cannot be streamed has nothing to send before all of its rows are there, nor has its head: so whatever
    fails until then is still answered by an error envelope.
    """

    def __init__(self, answer: StreamedAnswer, content_type: str) -> None:
        self._chunks = answer.chunks()
        super().__init__(self._chunks, media_type=content_type)
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._answer.close()

    async def stream_response(self, send: Send) -> None:
        if not self._answer.streams:
            first = await anext(self._chunks)
            self.body_iterator = _with_first(first, self._chunks)
        await super().stream_response(send)


async def _with_first(first: bytes | memoryview, rest: AsyncIterator[bytes | memoryview]) -> AsyncIterator[Any]:
    yield first
    async for chunk in rest:
        yield chunk
