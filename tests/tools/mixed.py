"""Measures how long small queries take beside large ones, as a ratio to the same small queries alone.

    python tests/tools/mixed.py [ROWS]

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
from dataclasses import dataclass
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])
from tools.bench import FIRST_SECOND, ROWS, headers, service  # noqa: E402

SMALL_CLIENTS, LARGE_CLIENTS = 28, 4
PAUSE = 3.0
"""Seconds between two queries of a small client, so that the small ones alone leave the machine half idle."""
MEASURED_SECONDS = 20.0


@dataclass(frozen=True)
class Mixed:
    """Seconds that small queries took at the 99th percentile and at the median, beside large ones and alone."""

    beside: float
    alone: float
    beside_median: float
    alone_median: float
    large: float
    """The median of the large ones."""


class _OverSocket(http.client.HTTPConnection):
    """A connection to the service's socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=600)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


def mixed(data: Path) -> Mixed:
    """Compare small queries beside large ones with the same small queries alone."""
    fields = headers(data)

    def ask(client: _OverSocket, query: str, start: int, end: int) -> float:
        body = {"query": query, "from": start, "to": end, "mode": {"type": "csv"}}
        started = time.perf_counter()
        client.request("POST", "/search/query", json.dumps(body).encode(), fields)
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
    at_99, at_99_alone = (times[int(len(times) * 0.99)] for times in (beside, alone))
    return Mixed(at_99, at_99_alone, statistics.median(beside), statistics.median(alone), lasted)


def main(rows: int) -> None:
    with service(rows) as (_environment, data, _parquet):
        found = mixed(data)
    name = f"{SMALL_CLIENTS} small clients, p99: beside {LARGE_CLIENTS} large / alone"
    ms = [seconds * 1000 for seconds in (found.beside, found.alone, found.beside_median, found.alone_median)]
    print(f"{name:<52} {ms[0]:9.0f} ms {ms[1]:9.0f} ms {ms[0] / ms[1]:6.2f}x  (to reach: 5x)")
    print(f"  their medians: {ms[2]:.0f} ms and {ms[3]:.0f} ms; a large query took {found.large:.1f} s", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else ROWS)
