"""Reading ahead: a thread receives the next block of a large answer while the one before it is checked and written.

Receiving releases Python's lock, so it takes place on another core. There are two boxes, which go back and forth; the
thread touches nothing else, and all of the protocol stays with the reader.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from queue import SimpleQueue

from svcctl.api.wire.errors import ReadError


class Ended(Exception):
    """Receiving is over, and nothing had come."""


class Ahead:
    """Calls `receive`, which fills a box and returns the number of bytes, on a thread of its own.

    `receive` waits with `poll`, which tells it of the descriptor `ending` when it has to raise Ended.
    """

    def __init__(self, receive: Callable[[bytearray], int], spare: bytearray, poll: select.poll) -> None:
        self._receive = receive
        self._poll = poll
        self._free: SimpleQueue[bytearray | None] = SimpleQueue()
        self._full: SimpleQueue[tuple[bytearray, int] | BaseException] = SimpleQueue()
        self._free.put(spare)
        self.ending, self._end = os.pipe()
        poll.register(self.ending, select.POLLIN)
        self._thread = threading.Thread(target=self._run, daemon=True, name="read-ahead")

    def start(self) -> None:
        self._thread.start()

    def swap(self, used: bytearray) -> tuple[bytearray, int]:
        """The next box and the number of bytes in it, in exchange for a used one; raises what `receive` raised."""
        self._free.put(used)
        filled = self._full.get()
        if isinstance(filled, Ended):
            raise ReadError("the connection was closed")
        if isinstance(filled, BaseException):
            raise filled
        return filled

    def stop(self) -> bool:
        """End the thread; whether nothing was received since the last swap."""
        os.write(self._end, b"\0")
        self._free.put(None)
        self._thread.join()
        self._poll.unregister(self.ending)
        os.close(self.ending)
        os.close(self._end)
        return not self._full.empty() and isinstance(self._full.get(), Ended)

    def _run(self) -> None:
        while (box := self._free.get()) is not None:
            try:
                self._full.put((box, self._receive(box)))
            except BaseException as error:
                self._full.put(error)
                return
