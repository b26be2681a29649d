"""A transport of httpx as a transport of the client, for answers that tests write as those of httpx."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx

from svcctl.api.wire import failures
from svcctl.api.wire.messages import Headers, Request, Response


class OverHttpx:
    """Sends requests over a transport of httpx, or to a function."""

    def __init__(self, inner: httpx.BaseTransport | Callable[[httpx.Request], httpx.Response]) -> None:
        self._inner = inner if isinstance(inner, httpx.BaseTransport) else httpx.MockTransport(inner)

    def send(self, request: Request) -> Response:
        extensions = {"timeout": httpx.Timeout(request.timeout, read=request.first).as_dict()}
        headers = request.headers.fields
        with _failing_alike():
            answer = self._inner.handle_request(
                httpx.Request(request.method, request.url, headers=headers, content=request.body, extensions=extensions)
            )
        fields = [(name.decode(), value.decode()) for name, value in answer.headers.raw]
        return Response(request, answer.status_code, Headers(fields), _blocks(answer), answer.close)

    def close(self) -> None:
        self._inner.close()


def _blocks(answer: httpx.Response) -> Iterator[bytes]:
    assert isinstance(answer.stream, httpx.SyncByteStream)
    with _failing_alike():
        yield from answer.stream


@contextmanager
def _failing_alike() -> Iterator[None]:
    """Turn failures of httpx into those of the client with the same names."""
    try:
        yield
    except httpx.RequestError as error:
        raise getattr(failures, type(error).__name__, failures.RequestError)(str(error)) from error
