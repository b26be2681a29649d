"""Text files of events, and for each the statement with which DuckDB loads it into a table fastest."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

_EVENTS = """
    SELECT strftime(make_timestamp(1790812800000000 + i * 400000 + n[1] % 400 * 1000), '{time}') AS eventdate,
           concat_ws('.', 10, n[2] % 4, n[3] % 256, n[4] % 256) AS ip, ['GET', 'POST', 'PUT'][1 + n[5] % 3] AS method,
           '/a/b/' || n[6] % 500 AS uri, [200, 304, 404, 500][1 + n[7] % 4] AS statusCode, n[8] % 99999 AS bytes,
           (n[9] % 10000) / 10 AS took, 'Browser/5.0 (X11; Linux) ' || n[10] % 200 AS userAgent
    FROM (SELECT i, [(hash(i, part) >> 8)::BIGINT FOR part IN range(10)] AS n FROM range({rows}) r(i))
"""
_ISO, _ACCESS = "%Y-%m-%dT%H:%M:%S.%gZ", "%d/%b/%Y:%H:%M:%S +0000"
_LINE = """concat(ip, ' - - [', eventdate, '] "', method, ' ', uri, ' HTTP/1.1" ', statusCode, ' ', bytes,
           ' "-" "', userAgent, '"')"""
_COLUMNS = """{eventdate: 'TIMESTAMP', ip: 'VARCHAR', method: 'VARCHAR', uri: 'VARCHAR', statusCode: 'BIGINT',
           bytes: 'BIGINT', took: 'DOUBLE', userAgent: 'VARCHAR'}"""
_CSV = "header=true, auto_detect=false, delim=',', quote='\"'"
_CELLS = """{host: 'VARCHAR', ident: 'VARCHAR', login: 'VARCHAR', day: 'VARCHAR', zone: 'VARCHAR', request: 'VARCHAR',
           status: 'INTEGER', size: 'VARCHAR', referrer: 'VARCHAR', agent: 'VARCHAR'}"""
_TABLE = (
    'eventdate TIMESTAMP, ip VARCHAR, method VARCHAR, uri VARCHAR, "statusCode" BIGINT, bytes BIGINT, took DOUBLE, '
)


@dataclass(frozen=True)
class TextLoad:
    """A kind of file: the COPY that writes it, and the peer's table and SELECT.

    `reach` is the ratio to reach with five million rows, `reach_million` with one million.
    """

    time: str
    columns: str
    options: str
    table: str
    select: str
    reach: float
    reach_million: float


TEXT_LOADS: Mapping[str, TextLoad] = {
    "ndjson": TextLoad(
        _ISO,
        "*",
        "FORMAT json",
        _TABLE + '"userAgent" VARCHAR',
        "SELECT * FROM read_json('{path}', format='newline_delimited', columns=" + _COLUMNS + ")",
        2,
        2,
    ),
    "csv": TextLoad(
        _ISO,
        "*",
        "FORMAT csv",
        _TABLE + '"userAgent" VARCHAR',
        "SELECT * FROM read_csv('{path}', " + f"{_CSV}, columns={_COLUMNS})",
        1.2,
        1.5,
    ),
    "access": TextLoad(
        _ACCESS,
        _LINE,
        "FORMAT csv, HEADER false, QUOTE '', DELIMITER '\x01'",
        'eventdate TIMESTAMP, "clientIp" VARCHAR, "user" VARCHAR, method VARCHAR, uri VARCHAR, protocol VARCHAR, '
        '"statusCode" INTEGER, bytes BIGINT, "referralUri" VARCHAR, "userAgent" VARCHAR',
        "SELECT strptime(day || zone, '[%d/%b/%Y:%H:%M:%S%z]')::TIMESTAMP AS eventdate, host, nullif(login, '-'), "
        "split_part(request, ' ', 1), split_part(request, ' ', 2), split_part(request, ' ', 3), status, "
        "TRY_CAST(size AS BIGINT), nullif(referrer, '-'), nullif(agent, '-') FROM read_csv('{path}', header=false, "
        f"auto_detect=false, delim=' ', quote='\"', columns={_CELLS})",
        2,
        2,
    ),
}
"""The kinds of files by the name of their format."""
PEER = """
import duckdb, pathlib, sys
path, table, select = sys.argv[1:]
pathlib.Path(path).unlink(missing_ok=True)
con = duckdb.connect(path)
con.execute("SET enable_progress_bar=false; SET memory_limit='1GB'; SET TimeZone='UTC'")
con.execute(f"CREATE TABLE bench ({table})")
con.execute(f"INSERT INTO bench {select} ORDER BY eventdate")
"""
"""A program that fills a table of a new file."""


def write(kind: str, path: Path, rows: int) -> None:
    """Write a file of a kind with so many events."""
    load = TEXT_LOADS[kind]
    events = _EVENTS.format(time=load.time, rows=rows)
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {load.columns} FROM ({events})) TO '{path}' ({load.options})")


def cpu_seconds(process: int) -> float:
    """The user and system seconds of a running process and its threads."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mib(process: int) -> int:
    """The most memory that a running process had, in MiB."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))
