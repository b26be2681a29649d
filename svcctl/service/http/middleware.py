"""ASGI middleware around the application: request IDs, answers to failed requests, and access for web pages."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from starlette.datastructures import MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svcctl.service.http.context import Service
from svcctl.service.http.envelope import CID, ERRORS, common_headers, failed

LOST_TABLES = "x-svc-lost-tables"
"""The name of a response header. The value of the header is the number of tables that have lost events."""


class Answered:
    """Middleware that gives each request an ID, adds the common headers to each answer, and counts the answers.

    The ID is in `request.state.cid`. This is the outermost middleware, so it also answers requests that failed in
    another middleware. If a request fails after the head of its answer was sent, the middleware raises the error again,
    and the server closes the connection.

    A client that sends the header `Expect` waits for permission before it sends the body. If the service answers
    without this permission, it closes the connection after the answer. On an open connection, the service could not
    know whether the next bytes are the body or another request.

    After a loss of events, answers on the Unix socket have the header LOST_TABLES until the loss is confirmed. Only the
    owner of the service can use the Unix socket.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service
        self._counts = service.counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        cid = secrets.token_hex(6)
        scope.setdefault("state", {})["cid"] = cid
        begun = ended = False
        waits_with_body = any(name == b"expect" for name, _ in scope["headers"])

        async def reading() -> Message:
            nonlocal waits_with_body
            waits_with_body = False
            return await receive()

        async def named(message: Message) -> None:
            nonlocal begun, ended
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                headers.update(common_headers(cid))
                if (loss := self._service.loss) is not None and scope.get("client") is None:
                    headers[LOST_TABLES] = str(len(loss.tables))
                if waits_with_body:
                    headers["connection"] = "close"
                self._counts.answer(scope["method"], message["status"])
            else:
                self._counts.bytes += len(message.get("body", b""))
                ended = not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, reading, named)
        except Exception as error:
            if not begun:
                await failed(scope["path"], cid, self._service.clock(), error)(scope, receive, named)
            elif not ended:
                raise


def without_trailing_slashes(app: ASGIApp) -> ASGIApp:
    """Return an application that ignores slashes at the end of a path.

    An encoded slash (%2F) is kept, because it belongs to a name.
    """

    async def shortened(scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("raw_path") or scope["path"].encode()
        surplus = len(raw) - len(raw.rstrip(b"/"))
        path = scope["path"][:-surplus] if surplus else scope["path"]
        await app({**scope, "path": path or "/"}, receive, send)

    return shortened


def for_pages(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """Return an application that web pages from `origins` can use (CORS). Without origins, return `app` unchanged.

    Before most requests of a page, the browser sends a preflight request, which has no signature. The returned
    application answers the preflight requests.
    """
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=("GET", "POST", "PUT", "DELETE"),
        allow_headers=("Authorization", "Content-Type", *(f"x-svc-{name}" for name in ("apikey", "timestamp", "sign"))),
        expose_headers=(CID, ERRORS),
    )
