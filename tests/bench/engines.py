"""Measures what each engine gives at several sizes, beside the engines alone, and prints one Markdown table.

    python tests/bench/engines.py [ROWS]... [--runs 3]      (5 and 50 million rows unless others are given)

The same events are in the service's own file and in a shared folder, which is read by the embedded engine, by Sail,
and by Apache Spark where that is installed, all on this machine. A figure of the service is the wall time of a whole
`svcctl query`, the median of the runs, and the peak memory of the service meanwhile; one of an engine alone is the time
of the statement in a process that runs already.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

import duckdb

sys.path[0] = str(Path(__file__).parents[1])
from bench.bench import FROM, SVCCTL, events, seconds  # noqa: E402
from peers.installed import DIRECTORY  # noqa: E402
from peers.processes import HOST, free_port  # noqa: E402
from support.spark import sail, spark  # noqa: E402

WHOLE = "all rows, csv"
QUERIES = {
    "errors of an hour": ("from bench where statusCode = 500", "2026-10-03 10:00", "2026-10-03 11:00"),
    "group by uri, all": ("from bench group by uri select count() as n, avg(timeTaken) as ms", FROM, "2026-11-01"),
    WHOLE: ("from bench", FROM, "2026-11-01"),
}
ALONE = {
    "errors of an hour": "SELECT * FROM bench WHERE statusCode = 500 AND eventdate >= TIMESTAMP '2026-10-03 10:00:00' "
    "AND eventdate < TIMESTAMP '2026-10-03 11:00:00' ORDER BY eventdate",
    "group by uri, all": "SELECT uri, count(*) AS n, avg(timeTaken) AS ms FROM bench GROUP BY uri",
    WHOLE: "SELECT * FROM bench",
}
MOST_HELD = 10_000_000
"""Spark alone returns an answer as a whole, so larger ones are not asked of it."""

Measure = Callable[[str], tuple[float, str] | None]
"""Runs a query by its name; its seconds and what else is to be told, or None where it is not run."""


def variables(home: Path, data: str, **settings: str) -> dict[str, str]:
    """The environment of a service with these settings."""
    own = {"HOME": str(home), "SVCCTL_DATA": str(home / data), "SVCCTL_DEMO_DAYS": "0", "SVCCTL_QUERY_SECONDS": "3600"}
    return own | {"PATH": os.environ["PATH"]} | settings


@contextmanager
def of_service(environment: dict[str, str]) -> Iterator[Measure]:
    subprocess.run([SVCCTL, "service", "start"], env=environment, check=True, capture_output=True)
    process = Path("/proc") / (Path(environment["SVCCTL_DATA"]) / "service.lock").read_text().strip()

    def measure(query: str) -> tuple[float, str]:
        text, start, end = QUERIES[query]
        (process / "clear_refs").write_text("5")  # the peak begins anew
        wall = seconds([SVCCTL, "query", text, "--from", start, "--to", end, "-f", "csv"], environment)
        [peak] = [line.split()[1] for line in (process / "status").read_text().splitlines() if line.startswith("VmHWM")]
        return wall, f", {int(peak) // 1024} MiB"

    try:
        yield measure
    finally:
        subprocess.run([SVCCTL, "service", "stop"], env=environment, check=False, capture_output=True)


@contextmanager
def of_duckdb(folder: Path) -> Iterator[Measure]:
    with closing(duckdb.connect()) as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"CREATE VIEW bench AS FROM read_parquet('{folder}/bench/**/*.parquet')")

        def measure(query: str) -> tuple[float, str]:
            started = time.perf_counter()
            connection.execute(f"COPY ({ALONE[query]}) TO '/dev/null' (FORMAT csv)")
            return time.perf_counter() - started, ""

        yield measure


@contextmanager
def of_spark(folder: Path, uri: str, rows: int) -> Iterator[Measure]:
    warnings.simplefilter("ignore", FutureWarning)  # of packages that nothing here uses
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(uri).create()
    session.read.parquet(f"file://{folder}/bench").createOrReplaceTempView("bench")

    def measure(query: str) -> tuple[float, str] | None:
        if query == WHOLE and rows > MOST_HELD:
            return None
        started = time.perf_counter()
        session.sql(ALONE[query]).toArrow()
        return time.perf_counter() - started, ""

    yield measure
    session.stop()


def figure(measure: Measure, query: str, runs: int) -> str:
    measured = [one for _ in range(runs + 1) if (one := measure(query)) is not None][1:]
    if not measured:
        return "–"
    return f"{statistics.median(wall for wall, _ in measured):.2f} s{measured[-1][1]}"


def lines(rows: int, runs: int) -> Iterator[str]:
    """The lines of the table for so many rows."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="svcctl-bench-")))
        folder, parquet = home / "tables", home / "bench.parquet"
        events(parquet, rows)
        folder.mkdir()
        load = [SVCCTL, "service", "load", str(parquet), "--table", "bench"]
        environment = variables(home, "file")
        loaded = {"own file": seconds(load, environment)}
        loaded["folder"] = seconds([*load, "--tables", str(folder)], environment)
        measures: dict[str, AbstractContextManager[Measure]] = {
            "own file": of_service(environment),
            "folder": of_service(variables(home, "folder", SVCCTL_TABLES=str(folder))),
            "DuckDB alone": of_duckdb(folder),
        }
        for name, make in {"Sail": sail, "Spark": spark}.items():
            if make is spark and not (DIRECTORY / "spark").is_dir():
                continue
            server = make(port := free_port(), home)
            server.start()
            stack.callback(server.stop)
            uri = f"sc://{HOST}:{port}"
            measures[name] = of_service(variables(home, name, SVCCTL_TABLES=str(folder), SVCCTL_ENGINE=uri))
            measures[f"{name} alone"] = of_spark(folder, uri, rows)
        for name, opened in measures.items():
            cells = [f"{loaded[name]:.1f} s" if name in loaded else ""]
            with opened as measure:
                cells += [figure(measure, query, runs) for query in QUERIES]
            yield f"| {rows / 1e6:g} M | {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", type=int, default=[5_000_000, 50_000_000])
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    print(f"| events | engine | load | {' | '.join(QUERIES)} |")
    print("|---" * (3 + len(QUERIES)) + "|", flush=True)
    for rows in given.rows:
        for line in lines(rows, given.runs):
            print(line, flush=True)


if __name__ == "__main__":
    main()
