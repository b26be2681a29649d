"""Asks a NameNode for a sign of life, with a limit on the time.

The HDFS library waits without limit for a NameNode that accepts a connection and never answers. Its asynchronous client
can be cancelled; but it fails where the library sleeps before it tries again, so everything else is left to the
synchronous one.
"""

from __future__ import annotations

import asyncio
import threading
from functools import cache

from hdfs_native import AsyncClient

ANSWER_SECONDS = 10.0
_ONE_ATTEMPT = {"dfs.client.failover.max.attempts": "0"}


class Probe:
    """A connection to the NameNode of a URL that has a port."""

    def __init__(self, url: str) -> None:
        self._client = AsyncClient(url, dict(_ONE_ATTEMPT))

    def check(self) -> None:
        """Return when the NameNode answers. TimeoutError when it does not, OSError or RuntimeError when it fails."""
        asyncio.run_coroutine_threadsafe(self._ask(), _loop()).result()

    async def _ask(self) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._client.get_file_info("/")
        except TimeoutError:
            raise TimeoutError(f"no answer within {ANSWER_SECONDS:g} s") from None


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of all probes, in a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="hdfs probe", daemon=True).start()
    return loop
