"""Compares svcctl with public tools, and prints one Markdown table.

    python tests/tools/peers.py [--rows 10000000] [--runs 5] [--only TEXT] [--skip TEXT] [--output FILE.md]

Each figure is the median, minimum and maximum of runs that alternate with the peer's, so that both meet the same noise.
Wall times say most on an idle machine, CPU times (user and system) on a busy one. Answers come from a process that
sends ready bytes (`static_server.py`), and where the table says so from a local service. Peers that are not installed
are left out. On an idle machine with two cores the whole table takes about a quarter of an hour.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from http.client import HTTPConnection
from itertools import count, repeat
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])
from tools import bench, mixed, text_loads  # noqa: E402
from tools.static_server import serving  # noqa: E402

from svcctl.service import process as service_process  # noqa: E402

SVCCTL = [sys.executable, "-m", "svcctl"]
PYTHON = [sys.executable, "-c"]
STARTS = (
    (["--version"], "import typer", 0.5),
    (["--help"], "import typer", 1.9),
    (["query", "--help"], "import typer", 1.9),
    (["help", "dates"], "import typer", 1.9),
    (["range", "--from", "2h"], "import typer, httpx", 0.85),
    (["profile", "list"], "import typer, httpx", 0.85),
    (["job", "list"], "import typer, httpx", 0.85),
)
CHUNKS = ((64, False, "5 (wall)"), (8, False, "5 (wall)"), (1, False, "5 (wall)"), (16, True, ""))
"""The chunks of an answer in KiB, whether it comes over TLS, and the ratio to reach."""
STREAMED = ("csv", "tsv", "json/simple", "json/simple/compact", "json", "json/compact", "xml", "msgpack")
PLAIN_CLIENT = """
import json, sys, httpx
with httpx.stream("POST", sys.argv[1] + "/search/query", timeout=60) as answer:
    print(sum(1 for line in answer.iter_lines() if json.loads(line)))
"""
OUR_ROWS = """
import sys
from svcctl.api.auth import Bearer
from svcctl.api.client import Client
from svcctl.api.query import QueryRequest
request = QueryRequest(query="from t", from_="1h", to="now", mode="json/simple/compact")
with Client(sys.argv[1], Bearer("t")) as client, client.query(request) as answer:
    print(sum(1 for _ in answer.rows()))
"""
DUCKDB_LINES = """
import duckdb
duckdb.sql("select count(json->'d') from read_ndjson_objects('/dev/stdin')").fetchall()
"""
COPY = """
import duckdb, subprocess, sys, time
con = duckdb.connect(sys.argv[1], read_only=True)
con.execute("SET enable_progress_bar=false")
for line in sys.stdin:
    sink = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    used, started = time.process_time(), time.perf_counter()
    out = f"/dev/fd/{sink.stdin.fileno()}"
    con.execute(f"copy (select * from bench where eventdate >= '2026-10-01') to '{out}' (format {line.strip()})")
    sink.stdin.close()
    sink.wait()
    print(time.process_time() - used, time.perf_counter() - started, flush=True)
"""
FIRST_ROW = """
import duckdb, sys, time
con = duckdb.connect(sys.argv[1], read_only=True)
con.execute("SET enable_progress_bar=false")
for _ in sys.stdin:
    used, started = time.process_time(), time.perf_counter()
    rows = con.cursor().sql("select * from bench where eventdate >= '2026-10-01'").to_arrow_reader(8192)
    rows.read_next_batch()
    print(time.process_time() - used, time.perf_counter() - started, flush=True)
    rows.close()
"""
OUR_SMALL = """
import json, sys, time, svcctl
from pathlib import Path
token = json.loads((Path(sys.argv[1]) / "credentials.json").read_text())["local"]["token"]
where = {"base_url": "http://localhost", "socket": sys.argv[1] + "/service.sock", "token": token}
for _ in sys.stdin:
    used, started = time.process_time(), time.perf_counter()
    with svcctl.connect(**where) as client:
        for _ in range(10):
            assert len(list(client.query("from bench", from_="2026-10-01", limit=10))) == 10
    print(time.process_time() - used, time.perf_counter() - started, flush=True)
"""
PLAIN_SMALL = """
import json, sys, time, httpx, msgpack
from datetime import UTC, datetime
from pathlib import Path
token = json.loads((Path(sys.argv[1]) / "credentials.json").read_text())["local"]["token"]
fields = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
body = {"query": "from bench", "from": 1790812800, "to": "now", "limit": 10, "mode": {"type": MODE}}
def rows(content):
    answer = msgpack.unpackb(content) if MODE == "msgpack" else json.loads(content)
    assert answer["status"] == 0
    rows = answer["object"]["d"] if "compact" in MODE else [tuple(row.values()) for row in answer["object"]]
    return [(datetime.fromtimestamp(row[0] / 1000, UTC), *row[1:]) for row in rows]
for _ in sys.stdin:
    used, started = time.process_time(), time.perf_counter()
    transport = httpx.HTTPTransport(uds=sys.argv[1] + "/service.sock")
    with httpx.Client(transport=transport, base_url="http://localhost", headers=fields) as client:
        for _ in range(10):
            assert len(rows(client.post("/search/query", json=body).raise_for_status().content)) == 10
    print(time.process_time() - used, time.perf_counter() - started, flush=True)
"""
OUR_ARROW = """
import sys, svcctl
with svcctl.connect() as client:
    table = client.query("from bench", from_="2026-10-01").arrow()
assert table.num_rows == int(sys.argv[1]), table.num_rows
"""
PLAIN_ARROW = """
import sys
from pyarrow import csv
assert csv.read_csv(sys.stdin.buffer).num_rows == int(sys.argv[1])
"""
SORTED = """
import duckdb, sys
con = duckdb.connect(sys.argv[2])
con.execute("SET enable_progress_bar=false; SET memory_limit='1GB'")
con.execute(f"create or replace table bench as from '{sys.argv[1]}' order by eventdate")
"""


@dataclass(frozen=True)
class Run:
    """CPU and wall time in seconds, and the peak of memory in MiB."""

    cpu: float
    wall: float
    peak: int = 0


Measure = Callable[[], Run]


def run(command: Sequence[str], environment: Mapping[str, str]) -> Run:
    wall, cpu, peak = bench.measured(command, environment)
    return Run(cpu, wall, round(peak))


def spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.3f} ({min(values):.3f}-{max(values):.3f})"


@dataclass(frozen=True)
class Table:
    """Which rows are measured, how often, and where; each method below gives lines of the table."""

    rows: int
    service_rows: int
    runs: int
    only: str
    skip: str
    home: Path
    environment: Mapping[str, str]

    def wanted(self, what: str) -> bool:
        return self.only in what and not (self.skip and self.skip in what)

    def row(self, what: str, peer: str, ours: Measure, theirs: Measure, reach: str, runs: int | None = None) -> str:
        """A row: `ours` against `theirs`, in turns, after one run of each that is not counted."""
        theirs(), ours()
        pairs = [(ours(), theirs()) for _ in range(runs or self.runs)]
        mine, others = zip(*pairs, strict=True)
        sides = []
        for times in (
            [[one.cpu for one in side] for side in (mine, others)],
            [[o.wall for o in s] for s in (mine, others)],
        ):
            ratio = statistics.median(times[0]) / max(statistics.median(times[1]), 1e-6)
            sides.append(f"{spread(times[0])} | {spread(times[1])} | {ratio:.2f}")
        peak = max(one.peak for one in mine)
        return f"| {what} | {peer} | {' | '.join(sides)} | {reach} | {peak or '-'} |"

    def command(
        self, what: str, peer: str, ours: Sequence[str], theirs: Sequence[str], reach: str, url: str = ""
    ) -> str:
        served = {**self.environment, **({"SVCCTL_BASE_URL": url} if url else {})}
        return self.row(what, peer, lambda: run(ours, served), lambda: run(theirs, served), reach)

    def starts(self) -> Iterator[str]:
        """Small commands against the imports that a program of their kind has."""
        with serving("jobs", 1024, 1) as url:
            for arguments, code, reach in STARTS:
                what = f"svcctl {' '.join(arguments)}"
                if self.wanted(what):
                    theirs = [*PYTHON, code]
                    yield self.command(what, f"python -c '{code}'", [*SVCCTL, *arguments], theirs, f"{reach}", url)

    def streams(self, certificate: Path) -> Iterator[str]:
        """Answers of a gigabyte in chunks of several sizes, then csv of other sizes."""
        for format_, mode in (("csv", "csv"), ("ndjson", "json/simple")):
            size = self.rows if format_ == "csv" else self.rows * 4 // 7  # a line of ndjson is longer
            for kib, secure, reach in CHUNKS:
                yield from self._stream(format_, mode, kib, size, certificate if secure else None, reach)
        for size in (1_000, 100_000, 1_000_000, 50_000_000):
            if size <= self.rows * 5:
                yield from self._stream("csv", "csv", 64, size, None, "")

    def _stream(self, format_: str, mode: str, kib: int, rows: int, trust: Path | None, reach: str) -> Iterator[str]:
        what = f"query -f {format_}, {rows} rows, chunks of {kib} KiB{' over TLS' if trust else ''}"
        if self.wanted(what):
            with serving(mode, kib * 1024, rows, str(trust or "")) as url:
                ours = [*SVCCTL, "query", "from t", "--from", "1h", "-f", format_]
                curl = ["curl", "-sS", "-d", "x", f"{url}/search/query"] + (["--cacert", str(trust)] if trust else [])
                yield self.command(what, "curl", ours, curl, reach, url)

    def decoding(self) -> Iterator[str]:
        """Rows as Python's values, for tables, charts and parquet."""
        few = max(1, self.rows // 10)
        what = f"{few} rows decoded"
        if not self.wanted(what):
            return
        with serving("json/simple/compact", 64 * 1024, few) as url:
            yield self.command(
                what, "httpx, iter_lines and json.loads", [*PYTHON, OUR_ROWS, url], [*PYTHON, PLAIN_CLIENT, url], "0.2"
            )
            pipe = f"curl -sS -d x {url}/search/query"
            if shutil.which("jq"):
                yield self.command(
                    what, "curl and jq -c .d", [*PYTHON, OUR_ROWS, url], ["sh", "-c", f"{pipe} | jq -c .d"], ""
                )
            theirs = ["sh", "-c", f'{pipe} | {sys.executable} -c "$0"', DUCKDB_LINES]
            yield self.command(what, "curl and DuckDB", [*PYTHON, OUR_ROWS, url], theirs, "")

    def memory(self) -> Iterator[str]:
        """The peak of memory in each format that streams; one run each, there is no peer."""
        for mode in STREAMED:
            size = self.rows * 5 if mode in ("csv", "tsv", "json/simple") else self.rows
            name = "ndjson" if mode == "json/simple" else mode
            what = f"memory of query -f {name}, {size} rows"
            if self.wanted(what):
                with serving(mode, 64 * 1024, size) as url:
                    ours = [*SVCCTL, "query", "from t", "--from", "1h", "-f", name]
                    one = run(ours, {**self.environment, "SVCCTL_BASE_URL": url})
                yield f"| {what} | - | {one.cpu:.3f} | - | - | {one.wall:.3f} | - | - | <= 64 MiB | {one.peak} |"

    def service(self) -> Iterator[str]:
        """Queries of a local service against the same request by curl, and against DuckDB alone."""
        names = [
            f"service, {self.service_rows} rows: {what}" for what in ("csv", "ndjson", "first row", "load", "mixed")
        ]
        if not any(map(self.wanted, names)):
            return
        csv, ndjson, first, load, together = names
        with bench.service(self.service_rows) as (given, data, parquet):
            environment = {**self.environment, **given}
            alone = self.home / "alone.duckdb"
            subprocess.run([*PYTHON, SORTED, str(parquet), str(alone)], check=True)
            yield from self._queries(csv, "csv", "csv", "csv", data, alone, environment)
            yield from self._queries(ndjson, "json/simple", "ndjson", "json", data, alone, environment)
            if self.wanted(first):
                with asking(FIRST_ROW, str(alone)) as ask:
                    yield self.row(first, "DuckDB", lambda: first_row(data), lambda: ask(""), "2", self.runs * 4)
            if self.wanted(load):
                numbers = iter(range(1000))
                yield self.row(
                    load,
                    "CREATE TABLE AS … ORDER BY",
                    lambda: run(
                        [*SVCCTL, "service", "load", str(parquet), "--table", f"t{next(numbers)}"], environment
                    ),
                    lambda: run([*PYTHON, SORTED, str(parquet), str(self.home / "load.duckdb")], environment),
                    "1.2",
                    min(self.runs, 3),
                )
            if self.wanted(together):
                found = mixed.mixed(data)
                ratio = found.beside / found.alone
                what = f"{together}: p99 of {mixed.SMALL_CLIENTS} small beside {mixed.LARGE_CLIENTS} large"
                times = f"{found.beside:.3f} | {found.alone:.3f} | {ratio:.2f}"
                yield f"| {what} | the small alone | - | - | - | {times} | 5 | - |"

    def library(self) -> Iterator[str]:
        """The library in one process against what a script does by itself."""
        names = [f"library: {what}" for what in ("ten small queries", f"{self.service_rows} rows to Arrow")]
        if not any(map(self.wanted, names)):
            return
        small, arrow = names
        with bench.service(self.service_rows) as (given, data, _):
            environment = {**self.environment, **given}
            for mode in ("msgpack", "json", "json/compact"):
                if self.wanted(small):
                    plain = f"MODE = {mode!r}\n{PLAIN_SMALL}"
                    with asking(OUR_SMALL, str(data)) as ours, asking(plain, str(data)) as theirs:
                        peer = f"httpx and {mode}"
                        yield self.row(small, peer, lambda: ours(""), lambda: theirs(""), "1", self.runs * 4)
            if self.wanted(arrow):
                count = str(self.service_rows)
                pipe = f"{shlex.join(bench.curl(data, 'csv'))} | {shlex.join([*PYTHON, PLAIN_ARROW, count])}"
                table = replace(self, environment=environment)
                yield table.command(arrow, "curl and pyarrow.csv", [*PYTHON, OUR_ARROW, count], ["sh", "-c", pipe], "3")

    def text_loads(self) -> Iterator[str]:
        """Loads of text files by client and service together, against the best statement of DuckDB."""
        for kind, load in text_loads.TEXT_LOADS.items():
            what = f"service, {self.service_rows} rows: load of {kind}"
            if not self.wanted(what):
                continue
            text, alone = self.home / f"events.{kind}", self.home / "text.duckdb"
            text_loads.write(kind, text, self.service_rows)
            theirs = [*PYTHON, text_loads.PEER, str(alone), load.table, load.select.replace("{path}", str(text))]
            reach = load.reach if self.service_rows >= 5_000_000 else load.reach_million
            with bench.service(0) as (given, data, _):
                environment = {**self.environment, **given}
                subprocess.run([*SVCCTL, "service", "start"], env=environment, check=True, capture_output=True)
                process = service_process.running_process(service_process.ServiceFiles(data))
                assert process is not None
                tables = map("{}{}".format, repeat(kind), count())
                load_text = partial(self._load_text, process, text, tables, environment)
                insert = partial(run, theirs, environment)
                yield self.row(what, "INSERT … ORDER BY", load_text, insert, f"{reach}")
            text.unlink()

    def _load_text(self, process: int, text: Path, tables: Iterator[str], environment: Mapping[str, str]) -> Run:
        """Load a file into the next table. The CPU time is that of the client and of the service."""
        before = text_loads.cpu_seconds(process)
        took = run([*SVCCTL, "service", "load", str(text), "--table", next(tables)], environment)
        return Run(took.cpu + text_loads.cpu_seconds(process) - before, took.wall, text_loads.peak_mib(process))

    def _queries(
        self, what: str, mode: str, format_: str, kind: str, data: Path, alone: Path, environment: Mapping[str, str]
    ) -> Iterator[str]:
        """All rows in one format, against curl and against DuckDB's COPY, whose CPU time is all of its work."""
        if not self.wanted(what):
            return
        ours = [*SVCCTL, "query", "from bench", "--from", bench.FROM, "-f", format_]
        curl = bench.curl(data, mode)
        yield self.row(what, "curl", lambda: run(ours, environment), lambda: run(curl, environment), "1.2")
        with asking(COPY, str(alone)) as ask:
            peer = f"COPY TO a pipe (format {kind})"
            yield self.row(what, peer, lambda: run(ours, environment), lambda: ask(kind), "1.25")


@contextmanager
def asking(script: str, path: str) -> Iterator[Callable[[str], Run]]:
    """A process that does something for each line it is sent, and answers with its CPU and wall seconds."""
    process = subprocess.Popen([*PYTHON, script, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    told, answers = process.stdin, process.stdout

    def ask(line: str) -> Run:
        told.write(f"{line}\n")
        told.flush()
        cpu, wall = map(float, answers.readline().split())
        return Run(cpu, wall)

    try:
        yield ask
    finally:
        told.close()
        process.wait()


def first_row(data: Path) -> Run:
    """How long the first row of all rows takes, to a client that is connected already and then leaves."""
    client = HTTPConnection("localhost", timeout=60)
    client.sock = socket.socket(socket.AF_UNIX)
    client.sock.connect(str(data / "service.sock"))
    body = {"query": "from bench", "from": bench.FIRST_SECOND, "to": "now", "mode": {"type": "json/simple"}}
    used, started = time.process_time(), time.perf_counter()
    client.request("POST", "/search/query", json.dumps(body).encode(), bench.headers(data))
    answer = client.getresponse()
    assert answer.status == 200
    assert answer.read(1)
    took = Run(time.process_time() - used, time.perf_counter() - started)
    client.close()
    time.sleep(0.2)  # until the service has noticed
    return took


def certified(home: Path) -> Path:
    """A certificate for localhost and its key, in one file."""
    path = home / "localhost.pem"
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *name, "-keyout", str(path)]
    subprocess.run([*made, "-out", str(home / "crt")], check=True, capture_output=True)
    path.write_text(path.read_text() + (home / "crt").read_text())
    return path


def lines(given: argparse.Namespace, home: Path) -> Iterator[str]:
    """The lines of the table."""
    certificate = certified(home)
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "SSL_CERT_FILE": str(certificate)}
    keys = {"SVCCTL_API_KEY": "k", "SVCCTL_API_SECRET": "s"}
    table = Table(given.rows, given.service_rows, given.runs, given.only, given.skip, home, environment | keys)
    yield f"{given.runs} paired runs on {os.cpu_count()} cores. Seconds: median (minimum-maximum)."
    yield ""
    yield "| what | peer | CPU | CPU of the peer | ratio | wall | wall of the peer | ratio | reach | peak MiB |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    yield from table.starts()
    yield from table.streams(certificate)
    yield from table.decoding()
    own = Table(given.rows, given.service_rows, given.runs, given.only, given.skip, home, environment)
    yield from own.service()
    yield from own.library()
    yield from own.text_loads()
    yield from table.memory()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rows", type=int, default=10_000_000, help="rows of an answer; memory is measured up to 5 times"
    )
    parser.add_argument("--service-rows", type=int, default=5_000_000, help="rows of the local service's table")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="only the figures whose name has this text")
    parser.add_argument("--skip", default="", help="not the figures whose name has this text")
    parser.add_argument("--output", type=Path, help="write the table to this file, too")
    given = parser.parse_args()
    printed = []
    with tempfile.TemporaryDirectory(prefix="svcctl-bench-") as home:
        for line in lines(given, Path(home)):
            print(line, flush=True)
            printed.append(line)
    if given.output:
        given.output.write_text("\n".join([*printed, ""]))


if __name__ == "__main__":
    main()
