"""httpx's transports as a Wire: for SOCKS and https proxies, and for callers that bring a transport of their own."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from svcctl.api.wire import errors
from svcctl.api.wire.messages import Headers, Request, Response
from svcctl.errors import UsageError

_COMPRESSED = frozenset({"content-encoding", "content-length"})


class ThroughHttpx:
    """Sends requests by a transport of httpx; without one, httpx chooses it by the proxies of the environment."""

    def __init__(self, transport: httpx.BaseTransport | None, trust: ssl.SSLContext | None) -> None:
        try:
            self._client = httpx.Client(transport=transport, verify=trust or False, follow_redirects=False)
        except ImportError:
            raise UsageError(
                "the proxy of the environment is a SOCKS proxy, which needs a package that is not installed",
                hint="install it with: pip install 'httpx[socks]'",
            ) from None

    def send(self, request: Request) -> Response:
        """The answer, once its head is there. WireError when there is none."""
        with _translated():
            built = self._client.build_request(
                request.method,
                request.url,
                content=request.body,
                headers=list(request.fields),
                timeout=httpx.Timeout(request.timeout, read=None if request.first is None else request.silence),
            )
            answer = self._client.send(built, stream=True)
        # A transport that reads the whole answer has decompressed it, too.
        dropped = (
            _COMPRESSED if answer.is_stream_consumed and "content-encoding" in answer.headers else frozenset[str]()
        )
        fields = ((name, value) for name, value in answer.headers.items() if name not in dropped)
        return Response(request.method, answer.status_code, Headers(fields), _body(answer), answer.close)

    def close(self) -> None:
        self._client.close()


def _body(answer: httpx.Response) -> Iterator[bytes]:
    with _translated():
        if answer.is_stream_consumed:
            yield answer.content
        else:
            yield from answer.iter_raw()


@contextmanager
def _translated() -> Iterator[None]:
    """Turn an error of httpx into our error of the same name, or into LostError if there is none."""
    try:
        yield
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise getattr(errors, type(error).__name__, errors.LostError)(str(error)) from None
