"""The route that verifies a job. This route is an addition to the interface.

The answer is a stream of JSON objects, one on each line:

    {"progress": …}   the number of rows compared so far, about twice a second
    {"finding": …}    consecutive rows with the same fault
    {"result": …}     the figures of a job, such as the number of missing rows
    {"error": …}      the reason why the check has ended early

If the job continues older jobs, these jobs are checked too. Their results come first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import anyio
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from svcctl.errors import ServiceError
from svcctl.service.http.auth import signed
from svcctl.service.http.envelope import encoded
from svcctl.service.http.tables import LAST_MS
from svcctl.service.queries.concurrency import INTERRUPT_SECONDS
from svcctl.service.verification.verify import Checks, JobCheck

PROGRESS_SECONDS = 0.5


async def _verify(request: Request) -> Response:
    checks: Checks = request.app.state.checks
    since, keep = _options(request)
    check = await asyncio.to_thread(checks.begin, request.state.account, request.path_params["id"], since, keep=keep)
    return _VerificationResponse(checks, check)


def _options(request: Request) -> tuple[int | None, bool]:
    """Return the options `from` and `keep` of a request.

    `from` is a date in epoch milliseconds. Rows before this date may be missing at the destination. If the request has
    no `from`, the first value is None. If `keep` is true, later checks use the same date. Raises ServiceError for an
    invalid option.
    """
    text, keep = request.query_params.get("from"), request.query_params.get("keep", "false")
    if text is not None and not (text.isascii() and text.isdigit() and int(text) <= LAST_MS):
        raise ServiceError("from is not a date in epoch milliseconds")
    if keep not in ("true", "false"):
        raise ServiceError("keep is not true or false")
    if keep == "true" and text is None:
        raise ServiceError("keep needs from")
    return None if text is None else int(text), keep == "true"


class _VerificationResponse(StreamingResponse):
    """The response that sends the results of a check. If the client disconnects, the check is ended."""

    def __init__(self, checks: Checks, check: JobCheck) -> None:
        super().__init__(self._chunks(), media_type="application/x-ndjson")
        self._checks = checks
        self._check = check
        self._next: asyncio.Future[bytes | None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True):
                await self._close()

    async def _chunks(self) -> AsyncIterator[bytes]:
        shown = 0.0
        self._next = self._run()
        while True:
            await asyncio.wait({self._next}, timeout=PROGRESS_SECONDS)
            if not self._next.done() or time.monotonic() - shown >= PROGRESS_SECONDS:
                shown = time.monotonic()
                yield encoded({"progress": self._check.progress}) + b"\n"
            if self._next.done():
                if (line := self._next.result()) is None:
                    return
                self._next = self._run()
                yield line

    def _run(self) -> asyncio.Future[bytes | None]:
        return asyncio.get_running_loop().run_in_executor(self._checks.executor, self._line)

    def _line(self) -> bytes | None:
        line = next(self._check.lines, None)
        return None if line is None else encoded(line) + b"\n"

    async def _close(self) -> None:
        while self._next is not None and not self._next.done():
            self._check.stop()
            await asyncio.wait({self._next}, timeout=INTERRUPT_SECONDS)
        self._check.stop()
        await asyncio.get_running_loop().run_in_executor(self._checks.executor, self._check.lines.close)
        self._checks.end(self._check)


ROUTES = [signed("GET", "/service/jobs/{id}/verify", _verify)]
