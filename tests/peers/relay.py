"""A TCP relay: it cuts the connection to a peer that would lose its data if its process were stopped."""

from __future__ import annotations

import asyncio
import socket
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Coroutine
from contextlib import closing, suppress
from dataclasses import dataclass

from peers.processes import HOST


@dataclass(slots=True)
class Relay:
    """Listens on `port` and passes every connection on to `target`, both on 127.0.0.1.

    While it is stopped, it refuses connections, and existing ones are closed, as with a dead server.
    """

    port: int
    target: int
    _running: tuple[threading.Thread, asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def start(self) -> None:
        if self._running is not None:
            return
        listener = socket.create_server((HOST, self.port))
        loop, cut = asyncio.new_event_loop(), asyncio.Event()
        thread = threading.Thread(target=self._run, args=(loop, cut, listener), daemon=True)
        self._running = thread, loop, cut
        thread.start()

    def stop(self) -> None:
        if self._running is None:
            return
        thread, loop, cut = self._running
        loop.call_soon_threadsafe(cut.set)
        thread.join()
        self._running = None

    def _run(self, loop: asyncio.AbstractEventLoop, cut: asyncio.Event, listener: socket.socket) -> None:
        # Leaving the runner cancels all open connections.
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(self._listen(cut, listener))

    async def _listen(self, cut: asyncio.Event, listener: socket.socket) -> None:
        server = await asyncio.start_server(self._connect, sock=listener)
        await cut.wait()
        server.close()

    async def _connect(self, reader: StreamReader, writer: StreamWriter) -> None:
        # The error of a connection that `stop` cancels is dropped: asyncio would print a traceback.
        with closing(writer), suppress(OSError, asyncio.CancelledError):
            far_reader, far_writer = await asyncio.open_connection(HOST, self.target)
            with closing(far_writer):
                ways = [asyncio.ensure_future(way) for way in self.ways((reader, writer), (far_reader, far_writer))]
                try:
                    ended, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                    ended.pop().result()  # raises errors of the relay itself
                finally:
                    for way in ways:
                        way.cancel()

    def ways(
        self, near: tuple[StreamReader, StreamWriter], far: tuple[StreamReader, StreamWriter]
    ) -> list[Coroutine[None, None, None]]:
        """The coroutines that copy from the client to the target and back; the connection ends with the first one."""
        return [_copy(near[0], far[1]), _copy(far[0], near[1])]


async def _copy(source: StreamReader, sink: StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(1 << 18):
            sink.write(data)
            await sink.drain()
