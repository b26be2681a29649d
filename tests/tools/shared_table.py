"""Compares few rows of a shared table with DuckDB on the same parquet files, and prints a Markdown table.

    python tests/tools/shared_table.py [--millions 5 20 60] [--runs 5] [--only TEXT] [--directory DIR] [--output FILE]

Both sides are whole processes: `svcctl query` with the service that answers it, and `python -c` with the best statement
for DuckDB. Runs alternate, and figures are medians. On a busy machine the CPU times are worth more than the wall times.
The loads of a table overlap and nothing is compacted. With `--directory`, tables are kept and used again; 60 million
events take 5 minutes and 2 GB of disk.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])
from support.shells import Shell  # noqa: E402
from tools.cluster import DAYS, MAKE  # noqa: E402
from tools.peers import PYTHON, SVCCTL, Run, run  # noqa: E402

from svcctl.service import process  # noqa: E402
from svcctl.service.engines.lake.shared_tables import LakeTables  # noqa: E402
from svcctl.service.language.types import Column, Type  # noqa: E402

ROWS_PER_LOAD = 1_000_000
TICKS = os.sysconf("SC_CLK_TCK")
COLUMNS = (
    *(Column("eventdate", Type.TIMESTAMP), Column("ip", Type.STR), Column("port", Type.INT4)),
    *(Column("method", Type.STR), Column("uri", Type.STR), Column("statusCode", Type.INT4)),
    *(Column("bytes", Type.INT8), Column("timeTaken", Type.FLOAT8), Column("userAgent", Type.STR)),
    Column("userId", Type.STR),
)
EVENTS = ", ".join(column.name for column in COLUMNS)
ALONE = """
import duckdb
con = duckdb.connect()
con.execute("SET enable_progress_bar=false")
print(con.execute({statement!r}).fetchall())
"""
DAY = ("2026-10-11", "2026-10-12")
HOUR = ("2026-10-11T08:00:00", "2026-10-11T09:00:00")
PART_OF_DAY = ("2026-10-11T06:30:00", "2026-10-12T06:30:00")
ALL = ("2026-10-01", "2026-10-24")


@dataclass(frozen=True, slots=True)
class Question:
    """The same question as arguments of `svcctl query`, and as SQL over the files below `glob` in a table's folder."""

    name: str
    query: str
    dates: tuple[str, str]
    sql: str
    glob: str = "day=*/*.parquet"
    options: Sequence[str] = ()


def between(dates: tuple[str, str]) -> str:
    return f"eventdate >= '{dates[0]}' AND eventdate < '{dates[1]}'"


ROWS = f"SELECT {EVENTS} FROM {{}} WHERE"
ONE_DAY, TWO_DAYS = "day=2026-10-11/*.parquet", "day=2026-10-1[12]/*.parquet"
QUESTIONS = (
    Question("first 10 of 1 h", " limit 10", HOUR, f"{ROWS} {between(HOUR)} ORDER BY eventdate LIMIT 10", ONE_DAY),
    Question(
        *("last 10 of 1 h", "", HOUR, f"{ROWS} {between(HOUR)} ORDER BY eventdate DESC LIMIT 10", ONE_DAY),
        options=("--sort", "eventdate:desc", "--top", "10"),
    ),
    Question("10 by a filter", " where bytes = 77 limit 10", ALL, f"{ROWS} bytes = 77 ORDER BY eventdate LIMIT 10"),
    Question("all by a filter", " where bytes = 77", ALL, f"{ROWS} bytes = 77 ORDER BY eventdate"),
    Question("count()", " group select count()", ALL, "SELECT count(*) FROM {}"),
    Question("count() of a day", " group select count()", DAY, "SELECT count(*) FROM {}", ONE_DAY),
    Question(
        *("count() of 24 h", " group select count()", PART_OF_DAY),
        *(f"SELECT count(*) FROM {{}} WHERE {between(PART_OF_DAY)}", TWO_DAYS),
    ),
    Question(
        *("group by", " group by method select count() as n, avg(timeTaken) as t", ALL),
        "SELECT method, count(*) AS n, avg(timeTaken) AS t FROM {} GROUP BY method ORDER BY method",
    ),
    Question(
        *("group by of a day", " group by method select count() as n, avg(timeTaken) as t", DAY),
        *("SELECT method, count(*) AS n, avg(timeTaken) AS t FROM {} GROUP BY method ORDER BY method", ONE_DAY),
    ),
)


def make(folder: Path, name: str, loads: int) -> None:
    """A table of loads that each have events from the whole range."""
    import duckdb

    step = DAYS * 86_400_000_000 // (loads * ROWS_PER_LOAD)
    with LakeTables(str(folder), {}) as lake:
        lake.folder.create()
        for load in range(loads):
            file = folder.with_name(f"{name}.parquet")
            with duckdb.connect() as connection:
                rows = MAKE.format(step=step, loads=loads, load=load, rows=ROWS_PER_LOAD, file=file)
                connection.execute(rows)
                events = connection.execute(f"FROM '{file}'").to_arrow_reader()
                lake.append(name, events, create=None if load else COLUMNS)
            file.unlink()


def used(pid: int) -> float:
    """The CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def asked(command: Sequence[str], environment: Mapping[str, str], pid: int) -> Run:
    """A run of a command with the CPU time that the service spent on it."""
    before = used(pid)
    client = run(command, environment)
    time.sleep(0.05)  # until the service has closed the statement
    return Run(client.cpu + used(pid) - before, client.wall)


def compared(ours: Callable[[], Run], theirs: Callable[[], Run], runs: int) -> str:
    """The medians of both, in turns, after one run of each that is not counted."""
    theirs(), ours()
    mine, others = zip(*((ours(), theirs()) for _ in range(runs)), strict=True)
    cells = []
    for times in (
        ([r.cpu for r in side] for side in (mine, others)),
        ([r.wall for r in side] for side in (mine, others)),
    ):
        own, peer = map(statistics.median, times)
        cells.append(f"{own:.2f} | {peer:.2f} | {own / peer:.2f}")
    return " | ".join(cells)


def lines(directory: Path, given: argparse.Namespace) -> Iterator[str]:
    yield "| events | question | CPU, s | of DuckDB, s | ratio | wall, s | of DuckDB, s | ratio |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    folder = directory / "tables"
    for millions in given.millions:
        if not (folder / f"bench{millions}").exists():
            make(folder, f"bench{millions}", millions * 1_000_000 // ROWS_PER_LOAD)
    (home := directory / "home").mkdir(exist_ok=True)
    shell = Shell(home, {"SVCCTL_DEMO": "0", "SVCCTL_TABLES": str(folder)}, timeout=600)
    started = shell("service", "start")
    assert started.returncode == 0, started.stderr
    try:
        pid = process.running_process(process.ServiceFiles(Path(shell.environment["SVCCTL_DATA"])))
        assert pid is not None
        for question in (question for question in QUESTIONS if given.only in question.name):
            for millions in given.millions:
                start, end = question.dates
                text = f"from tools{millions}{question.query}"
                ours = [*SVCCTL, "query", text, "--from", start, "--to", end, *question.options]
                files = f"read_parquet('{folder}/bench{millions}/{question.glob}', hive_partitioning=false)"
                theirs = [*PYTHON, ALONE.format(statement=question.sql.format(files))]
                mine, alone = partial(asked, ours, shell.environment, pid), partial(run, theirs, shell.environment)
                figures = compared(mine, alone, given.runs)
                yield f"| {millions} M | {question.name} | {figures} |"
    finally:
        shell("service", "stop")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=int, nargs="+", default=[5, 20, 60], help="sizes of tables")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="only the questions whose name has this text")
    parser.add_argument("--directory", type=Path, help="where tables are made and kept")
    parser.add_argument("--output", type=Path, help="write the table to this file, too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="svcctl-bench-") as temporary:
        table = []
        for line in lines(given.directory or Path(temporary), given):
            print(line, flush=True)
            table.append(line)
    if given.output:
        given.output.write_text("\n".join([*table, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
