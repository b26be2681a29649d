"""A probe of an HDFS NameNode: a request with a time limit.

If a NameNode accepts a connection and never answers, the HDFS library waits without limit. So the request is made in a
separate thread. If there is no answer in time, that thread is left waiting.

The library also has an asynchronous client, which could cancel a request. This client is not used, because a process
could hang forever when it exits or deletes this client.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait

from hdfs_native import Client, FileStatus

from svcctl.io.request_threads import in_thread

ANSWER_SECONDS = 10.0
_ONE_ATTEMPT = {"dfs.client.failover.max.attempts": "0"}


class Probe:
    """A probe of the NameNode at a URL with a port. Several threads may use a probe at the same time."""

    def __init__(self, url: str) -> None:
        self._client = Client(url, dict(_ONE_ATTEMPT))
        self._lock = threading.Lock()
        self._asked: Future[FileStatus] | None = None

    def check(self) -> None:
        """Wait until the NameNode answers, for at most ANSWER_SECONDS.

        Raises TimeoutError if there is no answer in time. Raises OSError or RuntimeError if the request fails.
        """
        with self._lock:
            asked = self._asked
            if asked is None or asked.done():  # otherwise wait for the answer to another thread's request
                asked = self._asked = in_thread(lambda: self._client.get_file_info("/"), "hdfs probe")
        if not wait([asked], ANSWER_SECONDS).done:
            raise TimeoutError(f"no answer within {ANSWER_SECONDS:g} s")
        asked.result()
