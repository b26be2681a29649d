"""Requests and their answers, over connections that are kept for the next request."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from urllib.parse import quote, urlsplit

from svcctl.api.wire.bodies import Framing
from svcctl.api.wire.connection import IDLE, Connection
from svcctl.api.wire.dialling import Origin, Route, origin
from svcctl.api.wire.errors import InvalidURL
from svcctl.api.wire.heads import framing, request_head
from svcctl.api.wire.messages import Request, Response

_SAFE = "!$%&'()*+,-./:;=?@[]_~"
"""The characters of a path or a query that are sent as they are; `%` begins what is quoted already."""


class Pool:
    """Sends requests, from several threads at once if need be, over connections that were idle for less than
    `idle_seconds`.
    """

    def __init__(self, route: Route, *, idle_seconds: float = IDLE) -> None:
        self._route = route
        self._idle_seconds = idle_seconds
        self._idle: defaultdict[Origin, list[Connection]] = defaultdict(list)
        self._lock = threading.Lock()
        self._closed = False

    def send(self, request: Request) -> Response:
        """The answer, once its head is there. WireError when there is none."""
        if self._closed:
            raise RuntimeError("the client is closed")
        try:
            url = urlsplit(request.url)
            where = origin(url)
        except ValueError as error:
            raise InvalidURL(str(error)) from None
        path = quote(url.path or "/", safe=_SAFE)
        target = f"{path}?{quote(url.query, safe=_SAFE)}" if url.query else path
        data = request_head(request.method, target, request.fields) + request.body
        connection = self._take(where) or Connection(self._route.dial(where, request.timeout), self._idle_seconds)
        try:
            connection.send(data, request.timeout, request.reader)
            head = connection.head(request.first)
            body = self._body(where, connection, framing(head, request.method), request, head.lasting)
        except BaseException:
            connection.close()
            raise
        return Response(request.method, head.status, head.headers, body, connection.close)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for connections in self._idle.values():
                for connection in connections:
                    connection.close()
            self._idle.clear()

    def _body(
        self, where: Origin, connection: Connection, framing: Framing, request: Request, lasting: bool
    ) -> Iterator[bytes]:
        """The body of an answer; after its end, the connection is kept or closed."""
        yield from connection.body(framing, request.silence, request.first)
        lasting = connection.leave(lasting)
        with self._lock:
            if lasting and not self._closed:
                self._idle[where].append(connection)
            else:
                connection.close()

    def _take(self, where: Origin) -> Connection | None:
        """An idle connection that can still be used."""
        while True:
            with self._lock:
                connection = self._idle[where].pop() if self._idle[where] else None
            if connection is None or connection.is_usable:
                return connection
            connection.close()
