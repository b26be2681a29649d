"""Measures the same queries on each engine of the service, next to the engine alone, and prints a Markdown table.

    python tests/tools/cluster.py [--rows 5000000] [--only file lake sail spark] [--alone] [--output FILE.md]

The rows come from several loads whose dates overlap, and nothing is compacted. Each figure is of one run in a process
of its own: seconds to the first byte and to the last, and the peak of memory of the process that answers and of the
server that it asks. Five million rows take some minutes and 1 GB of disk; 200 million, 40 times as much of both.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])
from peers.processes import HOST, Process, free_port, running  # noqa: E402
from support.shells import Shell, made  # noqa: E402
from support.spark import sail, spark  # noqa: E402
from tools.bench import FIRST_SECOND, ROWS, headers  # noqa: E402

from svcctl.service import process  # noqa: E402

DAYS = 23
ROWS_PER_LOAD = 500_000
LOADS_TOGETHER = 8
"""How many files a service loads in one request."""
MAKE = """
copy (select timestamp '2026-10-01' + to_microseconds(i * {step}) as eventdate,
  '10.0.' || (i % 250) || '.' || (hash(i) % 250) as ip, (hash(i + 1) % 65535)::int as port,
  ['GET', 'POST', 'PUT'][1 + (i % 3)::int] as method, '/a/b/' || (i % 1000) as uri,
  (200 + (hash(i + 2) % 4) * 100)::int as statusCode, (hash(i + 3) % 100000)::bigint as bytes,
  (hash(i) % 1000) / 7.0 as timeTaken, 'Browser/5.0 (X11; Linux, x86_64)' as userAgent,
  case when i % 5 = 0 then null else 'u' || (i % 77) end as userId
  from (select k * {loads} + {load} as i from range({rows}) q(k))) to '{file}'
"""
QUERIES = {
    "all rows": ("from bench", "select * from bench order by eventdate"),
    "groups": (
        "from bench group by uri select count() as n, avg(timeTaken) as t",
        "select uri, count(*) as n, avg(timeTaken) as t from bench group by uri order by uri",
    ),
}
"""The same question to a service, and to an engine alone."""
ALONE_DUCKDB = """
import duckdb, sys, time
files, query = sys.argv[1:]
started, first = time.perf_counter(), None
con = duckdb.connect()
con.execute("SET enable_progress_bar=false")
con.execute("create view bench as from read_parquet('" + files + "')")
for batch in con.sql(query).to_arrow_reader(8192):
    first = first or time.perf_counter() - started
print(first, time.perf_counter() - started)
"""
ALONE_SPARK = """
import sys, time
__file__ = ""  # without one, it takes a program for its own tests, and ends it
from pyspark.sql.connect.session import SparkSession
files, query, uri = sys.argv[1:]
session = SparkSession.builder.remote(uri).getOrCreate()
session.read.parquet(files).createOrReplaceTempView("bench")
session.sql("select 1").toArrow()
started = time.perf_counter()
session.sql(query).toArrow()
print(time.perf_counter() - started, time.perf_counter() - started)
"""
PEAK = "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds to the first byte and to the last, peaks of memory in MiB; `server` is of Sail or Spark."""

    first: float
    last: float
    peak: int
    server: int | None = None

    def __str__(self) -> str:
        return f"{self.first:.1f} | {self.last:.1f} | {self.peak} | {'' if self.server is None else self.server}"


def make(directory: Path, rows: int) -> list[Path]:
    """Parquet files of events, of which each holds some from the whole range."""
    import duckdb

    directory.mkdir()
    loads = max(2, rows // ROWS_PER_LOAD)
    files = [directory / f"{load:05}.parquet" for load in range(loads)]
    step = DAYS * 86_400_000_000 // rows
    with duckdb.connect() as connection:
        for load, file in enumerate(files):
            connection.execute(MAKE.format(step=step, loads=loads, load=load, rows=rows // loads, file=file))
    return files


def load(shell: Shell, files: list[Path], tables: Path | None) -> None:
    """Load files into a service's own file, some at a time, or one after the other into a shared folder."""
    together = LOADS_TOGETHER if tables is None else 1
    for start in range(0, len(files), together):
        named = [str(file) for file in files[start : start + together]]
        done = shell("service", "load", *named, "--table", "bench", *(["--tables", made(tables)] if tables else []))
        assert done.returncode == 0, done.stderr
    shell("service", "stop")


def asked(home: Path, variables: Mapping[str, str], query: str, server: Process | None) -> Figures:
    """Ask a service that has just started; the answer goes nowhere."""
    shell = Shell(home, {"SVCCTL_DEMO": "0", **variables}, timeout=36_000)
    assert shell("service", "start").returncode == 0
    try:
        data = Path(shell.environment["SVCCTL_DATA"])
        body = {"query": query, "from": FIRST_SECOND, "to": FIRST_SECOND + DAYS * 86_400, "mode": {"type": "csv"}}
        fields = [part for name, value in headers(data).items() for part in ("-H", f"{name}: {value}")]
        command = ["curl", "-sS", "--fail", *fields, "--unix-socket", str(data / "service.sock"), "-o", "/dev/null"]
        times = ["-w", "%{time_starttransfer} %{time_total}", "http://localhost/search/query"]
        done = subprocess.run([*command, *times, "--data-binary", json.dumps(body)], capture_output=True, check=True)
        first, last = map(float, done.stdout.split())
        pid = process.running_process(process.ServiceFiles(data))
        assert pid is not None
        return Figures(first, last, peak(pid), None if server is None else peak(server.pid))
    finally:
        shell("service", "stop")


def alone(script: str, *arguments: str, server: Process | None = None) -> Figures | str:
    """Ask an engine without a service; how it ended if it failed, as Spark does with an answer that it cannot hold."""
    done = subprocess.run(
        [sys.executable, "-c", script + PEAK, *arguments], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        return f"| failed with {done.returncode} | |"
    times, own = done.stdout.splitlines()
    first, last = map(float, times.split())
    return Figures(first, last, int(own), None if server is None else peak(server.pid))


def peak(pid: int) -> int:
    """The peak of memory of a process in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    [peak] = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(peak) // 1024


@contextmanager
def served(start: Callable[[int, Path], Process] | None) -> Iterator[tuple[str, Process | None]]:
    """A server of Spark Connect that has just started, and its URI."""
    if start is None:
        yield "duckdb", None
        return
    with tempfile.TemporaryDirectory(prefix="svcctl-bench-", ignore_cleanup_errors=True) as directory:
        port = free_port()
        server = start(port, Path(directory))
        with running(server):
            yield f"sc://{HOST}:{port}", server


SERVERS: Mapping[str, Callable[[int, Path], Process] | None] = {
    "lake": None,
    "sail": sail,
    "spark": partial(spark, memory="6g"),
}
NAMES = {"file": "DuckDB's file", "lake": "shared tables", "sail": "Sail", "spark": "Apache Spark"}


def lines(home: Path, rows: int, only: list[str], *, with_alone: bool) -> Iterator[str]:
    """The lines of the table, each when it is measured."""
    yield "| engine | query | first byte, s | last byte, s | memory of the service, MiB | of the server, MiB |"
    yield "|---|---|---:|---:|---:|---:|"
    files, tables = make(home / "parquet", rows), home / "tables"
    globbed = f"{home}/parquet/*.parquet"
    own = Shell(home / "own", {"SVCCTL_DEMO": "0"}, timeout=36_000)
    own.home.mkdir()
    if "file" in only:
        started = time.perf_counter()
        load(own, files, None)
        yield f"| {NAMES['file']} | load | | {time.perf_counter() - started:.1f} | | |"
        for name, (query, _) in QUERIES.items():
            yield f"| {NAMES['file']} | {name} | {asked(own.home, {}, query, None)} |"
    if with_alone:
        for name, (_, sql) in QUERIES.items():
            yield f"| DuckDB alone, same rows in Parquet | {name} | {alone(ALONE_DUCKDB, globbed, sql)} |"
    if set(only) & set(SERVERS):
        started = time.perf_counter()
        load(own, files, tables)
        yield f"| {NAMES['lake']} | load | | {time.perf_counter() - started:.1f} | | |"
    for engine in (engine for engine in SERVERS if engine in only):
        for name, (query, sql) in QUERIES.items():
            with served(SERVERS[engine]) as (uri, server):
                variables = {"SVCCTL_TABLES": str(tables), "SVCCTL_ENGINE": uri}
                (at := home / f"{engine}-{name}").mkdir()
                yield f"| {NAMES[engine]} | {name} | {asked(at, variables, query, server)} |"
            if with_alone and SERVERS[engine] is not None:
                with served(SERVERS[engine]) as (uri, server):
                    figures = alone(ALONE_SPARK, globbed, sql, uri, server=server)
                    yield f"| {NAMES[engine]} alone, same rows in Parquet | {name} | {figures} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=[*NAMES])
    parser.add_argument("--alone", action=argparse.BooleanOptionalAction, default=True, help="the engines alone, too")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="svcctl-bench-")))
        out = stack.enter_context(given.output.open("w", encoding="utf-8")) if given.output else None
        table = lines(home, given.rows, given.only, with_alone=given.alone)
        for line in chain((f"{given.rows:,} rows", ""), table):
            print(line, flush=True)
            if out is not None:
                print(line, flush=True, file=out)


if __name__ == "__main__":
    main()
