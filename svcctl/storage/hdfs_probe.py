"""Asks a NameNode for a sign of life, with a limit on the time.

The HDFS library waits without limit for a NameNode that accepts a connection and never answers, so a thread asks, which
may be left waiting. The library's asynchronous client could be cancelled, but its own threads call Python: the process
hung for ever when such a client was deleted, or the process ended, during such a call.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait

from hdfs_native import Client

from svcctl.io.time_limit import without_signals

ANSWER_SECONDS = 10.0
_ONE_ATTEMPT = {"dfs.client.failover.max.attempts": "0"}


class Probe:
    """A connection to the NameNode of a URL that has a port. Any number of threads may check it at a time."""

    def __init__(self, url: str) -> None:
        self._client = Client(url, dict(_ONE_ATTEMPT))
        self._lock = threading.Lock()
        self._asked: Future[None] | None = None

    def check(self) -> None:
        """Return when the NameNode answers. TimeoutError when it does not, OSError or RuntimeError when it fails."""
        with self._lock:
            asked = self._asked
            if asked is None or asked.done():  # otherwise another thread waits for the same answer
                asked = self._asked = Future()
                threading.Thread(target=self._ask, args=(asked,), name="hdfs probe", daemon=True).start()
        if not wait([asked], ANSWER_SECONDS).done:
            raise TimeoutError(f"no answer within {ANSWER_SECONDS:g} s")
        asked.result()

    def _ask(self, asked: Future[None]) -> None:
        without_signals()
        try:
            self._client.get_file_info("/")
        except Exception as error:
            asked.set_exception(error)
        else:
            asked.set_result(None)
