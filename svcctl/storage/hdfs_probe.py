"""A probe of an HDFS NameNode, with a time limit.

The HDFS library waits without limit for a NameNode that accepts a connection and never answers. So a thread makes the
request, and is left waiting if no answer comes. The library's asynchronous client could cancel a request, but its own
threads call Python. The process hung for ever if it ended, or deleted the client, during such a call.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait

from hdfs_native import Client, FileStatus

from svcctl.io.request_threads import in_thread

ANSWER_SECONDS = 10.0
_ONE_ATTEMPT = {"dfs.client.failover.max.attempts": "0"}


class Probe:
    """A connection to the NameNode of a URL with a port. Any number of threads may use it at the same time."""

    def __init__(self, url: str) -> None:
        self._client = Client(url, dict(_ONE_ATTEMPT))
        self._lock = threading.Lock()
        self._asked: Future[FileStatus] | None = None

    def check(self) -> None:
        """Return when the NameNode answers. TimeoutError if it does not, OSError or RuntimeError if it fails."""
        with self._lock:
            asked = self._asked
            if asked is None or asked.done():  # otherwise wait for the answer that another thread asked for
                asked = self._asked = in_thread(lambda: self._client.get_file_info("/"), "hdfs probe")
        if not wait([asked], ANSWER_SECONDS).done:
            raise TimeoutError(f"no answer within {ANSWER_SECONDS:g} s")
        asked.result()
