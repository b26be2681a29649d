"""The transport over the network. It keeps connections open for later requests."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Iterator

from svcctl.api.wire.connection import Connection
from svcctl.api.wire.heads import framing, request_head
from svcctl.api.wire.messages import Closing, Request, Response
from svcctl.api.wire.sockets import Origin, Route, origin

IDLE = 5.0
"""The seconds after which an idle connection is not used again, because the service may be about to close it."""

CLOSE_SECONDS = 3.0
"""The seconds to wait for the end of a connection that the service was asked to close."""


class Pool:
    """Sends requests. A connection is used again if it was idle for less than `idle_seconds`.

    Several threads may use a pool at the same time. After a fork, the child process opens new connections, because the
    answers on the parent's connections belong to the parent.
    """

    def __init__(self, route: Route, *, idle_seconds: float = IDLE) -> None:
        self._route = route
        self._idle_seconds = idle_seconds
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        """Start without connections, and with a new lock.

        After a fork, a thread of the parent could hold the old lock.
        """
        self._process = os.getpid()
        self._idle: defaultdict[Origin, list[Connection]] = defaultdict(list)
        self._lock = threading.Lock()

    def send(self, request: Request) -> Response:
        """Send a request, and return the answer as soon as its head has arrived.

        Raises RequestError if there is no answer, and RuntimeError after `close`.
        """
        if self._closed:
            raise RuntimeError("the connections are closed")
        if self._process != os.getpid():
            parents = [connection for connections in self._idle.values() for connection in connections]
            self._begin()
            for connection in parents:
                connection.close()
        where = origin(request.url)
        fields = [(name.encode(), value.encode()) for name, value in request.headers.fields]
        data = request_head(request.method.encode(), request.target, fields) + request.body
        connection = self._take(where) or Connection(self._route.dial(where, request.timeout), self._idle_seconds)
        try:
            connection.send(data, request.timeout, request.reader)
            head = connection.head(request.first)
            blocks = connection.body(framing(head, request.method), request.silence, request.first)
        except BaseException:
            connection.close()
            raise
        if request.closing:
            blocks = _to_the_end(blocks, connection, request.closing)
        body = _Body(self._kept(where, connection, blocks, head.lasting), connection)
        return Response(request, head.status, head.headers, iter(body), body.close)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for connections in self._idle.values():
                for connection in connections:
                    connection.close()
            self._idle.clear()

    def _kept(self, where: Origin, connection: Connection, blocks: Iterator[bytes], lasting: bool) -> Iterator[bytes]:
        """Yield the blocks of a body.

        After the end of the body, keep the connection for another request, or close it.
        """
        yield from blocks
        lasting = connection.leave(lasting)
        with self._lock:
            if lasting and not self._closed:
                self._idle[where].append(connection)
            else:
                connection.close()

    def _take(self, where: Origin) -> Connection | None:
        """Take an idle connection that can still be used; None if there is no such connection."""
        while True:
            with self._lock:
                connection = self._idle[where].pop() if self._idle[where] else None
            if connection is None or connection.is_usable:
                return connection
            connection.close()


def _to_the_end(blocks: Iterator[bytes], connection: Connection, closing: Closing) -> Iterator[bytes]:
    yield from blocks
    connection.wait_for_end(closing.seconds)
    closing.seen = True


class _Body:
    """The body of an answer, in blocks as they arrive.

    If the body is closed before its end, its connection is closed, too.
    """

    def __init__(self, blocks: Iterator[bytes], connection: Connection) -> None:
        self._blocks = blocks
        self._connection: Connection | None = connection

    def __iter__(self) -> Iterator[bytes]:
        yield from self._blocks
        self._connection = None  # the connection may already carry another answer

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
