"""Measures how long small queries take beside large ones, as a ratio to the same small queries alone.

    cd tests && python -m bench.mixed [ROWS]

Reach: at the 99th percentile 5 times their time alone, with 28 small clients and 4 large ones.
"""

from __future__ import annotations

import http.client
import json
import socket
import statistics
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.bench import ROWS, service

FIRST_SECOND = 1_790_812_800
"""2026-10-01, when the events begin, in epoch seconds."""
SMALL_CLIENTS, LARGE_CLIENTS = 28, 4
PAUSE = 3.0
"""Seconds between two queries of a small client, so that the small ones alone leave the machine half idle."""
MEASURED_SECONDS = 20.0


class _OverSocket(http.client.HTTPConnection):
    """A connection to the service's socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=600)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


def mixed(data: Path) -> None:
    """Compare small queries beside large ones with the same small queries alone."""
    token = json.loads((data / "credentials.json").read_text())["local"]["token"]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(client: _OverSocket, query: str, start: int, end: int) -> float:
        body = {"query": query, "from": start, "to": end, "mode": {"type": "csv"}}
        started = time.perf_counter()
        client.request("POST", "/search/query", json.dumps(body).encode(), headers)
        answer = client.getresponse()
        assert answer.read()
        assert answer.status == 200
        return time.perf_counter() - started

    def small(number: int) -> list[float]:
        client, end = _OverSocket(data / "service.sock"), time.perf_counter() + MEASURED_SECONDS
        times = []
        time.sleep(PAUSE * number / SMALL_CLIENTS)
        while time.perf_counter() < end:
            start = FIRST_SECOND + number * 600
            times.append(ask(client, "from bench group by method select count() as n", start, start + 600))
            time.sleep(PAUSE)
        return times

    def small_ones() -> list[float]:
        with ThreadPoolExecutor(SMALL_CLIENTS) as clients:
            return sorted(took for times in clients.map(small, range(SMALL_CLIENTS)) for took in times)

    over = threading.Event()

    def large(_: int) -> list[float]:
        client, times = _OverSocket(data / "service.sock"), []
        query = "from bench group by ip, uri, bytes select count() as n where n > 9 group select count() as groups"
        while not over.is_set():
            times.append(ask(client, query, FIRST_SECOND, int(time.time())))
        return times

    small_ones()
    alone = small_ones()
    with ThreadPoolExecutor(LARGE_CLIENTS) as clients:
        working = [clients.submit(large, number) for number in range(LARGE_CLIENTS)]
        beside = small_ones()
        over.set()
    lasted = statistics.median(took for work in working for took in work.result())
    theirs, ours = (times[int(len(times) * 0.99)] for times in (alone, beside))
    name = f"{SMALL_CLIENTS} small clients, p99: beside {LARGE_CLIENTS} large / alone"
    print(f"{name:<52} {ours * 1000:9.0f} ms {theirs * 1000:9.0f} ms {ours / theirs:6.2f}x  (to reach: 5x)")
    theirs, ours = (statistics.median(times) for times in (alone, beside))
    print(
        f"  their medians: {ours * 1000:.0f} ms and {theirs * 1000:.0f} ms; a large query took {lasted:.1f} s",
        flush=True,
    )


if __name__ == "__main__":
    with service(int(sys.argv[1]) if sys.argv[1:] else ROWS) as (_environment, data, _parquet):
        mixed(data)
