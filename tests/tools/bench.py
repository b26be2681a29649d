"""Measures speed and memory as ratios to a peer in the same run.

    python tests/tools/bench.py [startup|stream|arranged|copy|limited|export|memory]... [--rows N]

Machines are noisy, so every figure is a median of several runs that alternate with the peer's; nothing here fails a
build. All but `startup` and `limited` first load events into a fresh service, five million unless `--rows` says so,
which takes half a minute. On a busy machine the CPU times are worth more than the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

ROWS = 5_000_000
SVCCTL = str(Path(sys.executable).parent / "svcctl")
FROM = "2026-10-01"
FIRST_SECOND = 1_790_812_800
"""The same in epoch seconds."""
DAYS = "24d"
"""The length of the time in which the events are."""


def seconds(command: Sequence[str], environment: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def cpu_seconds(command: Sequence[str], environment: dict[str, str]) -> float:
    """The CPU time of a process, of the user and of the system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(what: str, peer: Callable[[], float], subject: Callable[[], float], runs: int, reach: float) -> None:
    """Time peer and subject alternately and print the ratio of their medians."""
    peer(), subject()
    pairs = [(peer(), subject()) for _ in range(runs)]
    theirs, ours = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = ours / theirs
    print(f"{what:<52} {ours * 1000:9.0f} ms {theirs * 1000:9.0f} ms {ratio:6.2f}x  (to reach: {reach}x)", flush=True)


def startup(environment: dict[str, str]) -> None:
    """Compare the CPU time of whole processes with that of imports."""
    typer = [sys.executable, "-c", "import typer"]
    # Without its command line, which loads rich and click.
    both = [sys.executable, "-c", "import sys; sys.modules['httpx._main'] = None; import typer, httpx"]
    few_rows = ["query", "from auth.all select eventdate limit 3", "--from", "1h"]
    subprocess.run([SVCCTL, "service", "start"], env=environment, check=True, capture_output=True)
    for arguments, peer, imported, reach in (
        (["--version"], typer, "typer", 1.25),
        (["--help"], typer, "typer", 1.9),
        (["job", "list"], both, "typer, httpx", 1.15),
        (few_rows, both, "typer, httpx", 1.15),
    ):
        name = f"svcctl {' '.join(arguments[:2])[:24]} / import {imported}, CPU"
        command = [SVCCTL, *arguments]
        compare(name, partial(cpu_seconds, peer, environment), partial(cpu_seconds, command, environment), 40, reach)


def headers(data: Path) -> dict[str, str]:
    """The headers of a request to a service with this data."""
    token = json.loads((data / "credentials.json").read_text())["local"]["token"]
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}


def curl(data: Path, mode: str) -> list[str]:
    """The command for all rows of a service."""
    body = json.dumps({"query": "from bench", "from": FIRST_SECOND, "to": "now", "mode": {"type": mode}})
    fields = [part for name, value in headers(data).items() for part in ("-H", f"{name}: {value}")]
    request = ["--unix-socket", str(data / "service.sock"), "http://localhost/search/query", "--data-binary", body]
    return ["curl", "-sS", "--fail", *fields, *request]


def stream(environment: dict[str, str], data: Path) -> None:
    """Compare a gigabyte through the client with curl on the same request and socket."""
    for mode, format_ in (("csv", "csv"), ("json/simple", "ndjson")):
        ours = [SVCCTL, "query", "from bench", "--from", FROM, "-f", format_]
        compare(
            f"query -f {format_} / curl, {ROWS} rows",
            partial(seconds, curl(data, mode), environment),
            partial(seconds, ours, environment),
            5,
            1.5,
        )
    measure = "import resource, subprocess, sys; subprocess.check_call(sys.argv[1:], stdout=subprocess.DEVNULL); "
    measure += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)"
    for format_ in ("csv", "ndjson", "json", "json/compact", "json/simple/compact", "xml", "msgpack"):
        command = [sys.executable, "-c", measure, SVCCTL, "query", "from bench", "--from", FROM, "-f", format_]
        peak = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()
        print(f"query -f {format_}: peak {peak} MiB  (to reach: 64 MiB)", flush=True)


def arranged(environment: dict[str, str], rows: int) -> None:
    """Compare a sorted query, and a table, with the csv that the service sends."""
    plain = [SVCCTL, "query", "from bench", "--from", FROM, "-f", "csv"]
    for name, options in (("-f csv --sort", ["-f", "csv", "--sort", "bytes:desc"]), ("-f table", ["-f", "table"])):
        ours = [*plain[:-2], *options]
        what = f"query {name} / -f csv, {rows} rows"
        compare(what, partial(seconds, plain, environment), partial(seconds, ours, environment), 5, 8)
        print(f"  peak {measured(ours, environment)[2]:.0f} MiB  (to reach: 80 MiB)", flush=True)


def copy(environment: dict[str, str], parquet: Path) -> None:
    """Compare csv from the service with DuckDB's COPY of the same rows, both to a pipe."""
    script = f"""
import duckdb, subprocess, sys, time
con = duckdb.connect()
con.execute("create table bench as from '{parquet}'")
for _ in range(6):
    sink = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    started = time.perf_counter()
    out = f"/dev/fd/{{sink.stdin.fileno()}}"
    con.execute(f"copy (select * from bench where eventdate >= '{FROM}') to '{{out}}' (format csv)")
    sink.stdin.close()
    sink.wait()
    print(time.perf_counter() - started, flush=True)
"""
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    times = iter([float(line) for line in printed.split()])
    ours = [SVCCTL, "query", "from bench", "--from", FROM, "-f", "csv"]
    compare(f"query -f csv / COPY, {ROWS} rows", lambda: next(times), lambda: seconds(ours, environment), 5, 1.5)


PER_CONNECTION = 5_000_000
"""Bytes a second that the limited service sends on one connection."""
LIMITED_WINDOWS = 64
LIMITED_BYTES = 3_750_000
"""Of the answer to each window: three quarters of a second."""
LIMITED = f"""
import asyncio, time
row = b"2026-10-01 00:00:00.000,10.0.1.7,GET,/a/b/1,200,u7,\\"Browser/5.0 (X11; Linux, x86_64)\\"\\n"
body = b"eventdate,ip,method,uri,statusCode,userId,userAgent\\n" + row * ({LIMITED_BYTES} // len(row))
head = b"HTTP/1.1 200 OK\\r\\ncontent-type: text/csv\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(body)

async def serve(reader, writer):
    try:
        while request := await reader.readuntil(b"\\r\\n\\r\\n"):
            fields = dict(line.lower().split(b": ", 1) for line in request.split(b"\\r\\n")[1:-2])
            await reader.readexactly(int(fields.get(b"content-length", 0)))
            begun, answer = time.monotonic(), memoryview(head + body)
            for at in range(0, len(answer), 125_000):
                await asyncio.sleep(begun + at / {PER_CONNECTION} - time.monotonic())
                writer.write(answer[at:at + 125_000])
                await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=64)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""
MEASURED = """
import resource, subprocess, sys, time
started = time.perf_counter()
subprocess.check_call(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(time.perf_counter() - started, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


def measured(command: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float, float]:
    """Run a command; return its wall seconds, the CPU seconds of its processes, and their largest peak in MiB."""
    code = [sys.executable, "-c", MEASURED, *command]
    printed = subprocess.run(code, env=environment, capture_output=True, text=True, check=True).stdout
    wall, cpu, peak = map(float, printed.split())
    return wall, cpu, peak


def limited(environment: dict[str, str], out: Path) -> None:
    """Compare eight workers with one where a service sends so many bytes a second on each connection."""
    server = subprocess.Popen([sys.executable, "-c", LIMITED], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        keys = {"SVCCTL_API_KEY": "key", "SVCCTL_API_SECRET": "secret"}
        asked = environment | keys | {"SVCCTL_BASE_URL": f"http://127.0.0.1:{server.stdout.readline().strip()}"}
        command = [SVCCTL, "export", "from bench", "--from", FROM, "--to", f"{LIMITED_WINDOWS}h", "--window", "1h"]
        (one, _, _), (eight, cpu, _) = (
            measured([*command, "-o", f"{out}/limited-{workers}.csv", "--workers", workers], asked)
            for workers in ("1", "8")
        )
        size = (out / "limited-8.csv").stat().st_size
        print(f"export of {size / 1e6:.0f} MB at {PER_CONNECTION / 1e6:.0f} MB/s a connection: one worker {one:.1f} s,")
        print(
            f"8 workers {eight:.1f} s, {one / eight:.2f}x  (to reach: 7x); {cpu:.1f} s of CPU, "
            f"{cpu / (size / 40e6):.2f} cores at 40 MB/s",
            flush=True,
        )
    finally:
        server.kill()
        server.wait()


def curl_windows(data: Path, out: Path) -> list[str]:
    """curl, fetching the same windows as an export, four at a time, each to a file."""
    token = json.loads((data / "credentials.json").read_text())["local"]["token"]
    blocks = []
    for start in range(1790812800, 1790812800 + int(DAYS[:-1]) * 86_400, 3600):
        body = json.dumps({"query": "from bench", "from": start, "to": start + 3600, "mode": {"type": "csv"}})
        blocks.append(
            f'url = "http://localhost/search/query"\nunix-socket = "{data}/service.sock"\n'
            f'header = "Content-Type: application/json"\nheader = "Authorization: Bearer {token}"\n'
            f'data-binary = {json.dumps(body)}\noutput = "{out}/curl/{start}.csv"\nfail\n'
        )
    config = out / "curl.config"
    config.write_text("next\n".join(blocks))
    (out / "curl").mkdir(exist_ok=True)
    return ["curl", "-sS", "--parallel", "--parallel-max", "4", "-K", str(config)]


def export(environment: dict[str, str], data: Path, out: Path, rows: int) -> None:
    """Compare an export with a query of the same range, and with curl on the same windows."""
    query = [
        SVCCTL,
        "query",
        "from bench",
        "--from",
        FROM,
        "--to",
        DAYS,
        "-f",
        "csv",
        "--force",
        "-o",
        f"{out}/query.csv",
    ]
    ours = [SVCCTL, "export", "from bench", "--from", FROM, "--to", DAYS, "--force", "-o", f"{out}/export.csv"]
    curl = curl_windows(data, out)
    measured(query, environment), measured(curl, environment)
    runs = [[measured(command, environment) for command in (query, ours, curl)] for _ in range(3)]
    (theirs, their_cpu), (wall, cpu), (of_curl, _) = (
        [statistics.median(one[at] for one in side) for at in range(2)] for side in zip(*runs, strict=True)
    )
    print(f"export / query -o, {rows} rows, csv: {wall:.1f} s / {theirs:.1f} s, {wall / theirs:.2f}x  (to reach: 1.3x)")
    print(f"  CPU of the client: {cpu:.1f} s / {their_cpu:.1f} s, {cpu / their_cpu:.2f}x", flush=True)
    print(f"export / curl --parallel, 4 at a time, {rows} rows, csv: {wall:.1f} s / {of_curl:.1f} s, ", end="")
    print(f"{wall / of_curl:.2f}x  (to reach: 1.2x)", flush=True)


def memory(environment: dict[str, str], out: Path) -> None:
    """Print the largest peak of an export with eight workers, in each format."""
    for name in ("all.csv", "all.csv.gz", "all.ndjson", "all.ndjson.zst", "all.parquet", "{start:%Y%m%d}.parquet"):
        command = [SVCCTL, "export", "from bench", "--from", FROM, "--to", DAYS, "--force"]
        _, _, peak = measured([*command, "--window", "1d", "--workers", "8", "-o", f"{out}/{name}"], environment)
        print(f"export to {name}, 8 workers: peak {peak:.0f} MiB  (to reach: 160 MiB)", flush=True)


def events(parquet: Path, rows: int) -> None:
    """Write a Parquet file of so many events, in a process of its own."""
    step = 23 * 86_400_000_000 // rows
    make = f"""
import duckdb
duckdb.connect().execute('''copy (select timestamp '2026-10-01' + to_microseconds(i * {step}) as eventdate,
  '10.0.' || (i % 250) || '.' || (hash(i) % 250) as ip, (hash(i + 1) % 65535)::int as port,
  ['GET', 'POST', 'PUT'][1 + (i % 3)::int] as method, '/a/b/' || (i % 1000) as uri,
  (200 + (hash(i + 2) % 4) * 100)::int as statusCode, (hash(i + 3) % 100000)::bigint as bytes,
  (hash(i) % 1000) / 7.0 as timeTaken, 'Browser/5.0 (X11; Linux, x86_64)' as userAgent,
  case when i % 5 = 0 then null else 'u' || (i % 77) end as userId from range({rows}) r(i)) to '{parquet}' ''')
"""
    subprocess.run([sys.executable, "-c", make], check=True)


@contextmanager
def service(rows: int) -> Iterator[tuple[dict[str, str], Path, Path]]:
    """Run a service with so many events; yield its environment, its data directory and a parquet file of the events."""
    with tempfile.TemporaryDirectory(prefix="svcctl-bench-") as home:
        data, parquet = Path(home) / "data", Path(home) / "bench.parquet"
        environment = {"HOME": home, "PATH": os.environ["PATH"], "SVCCTL_DATA": str(data)}
        if rows:
            events(parquet, rows)
            load = [SVCCTL, "service", "load", str(parquet), "--table", "bench"]
            subprocess.run(load, env=environment, check=True, capture_output=True)
        try:
            yield environment, data, parquet
        finally:
            subprocess.run([SVCCTL, "service", "stop"], env=environment, check=False, capture_output=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "what", nargs="*", default=["startup", "stream", "arranged", "copy", "limited", "export", "memory"]
    )
    parser.add_argument("--rows", type=int, default=ROWS)
    given = parser.parse_args()
    chosen = set(given.what)
    with service(0 if chosen <= {"startup", "limited"} else given.rows) as (environment, data, parquet):
        if "startup" in chosen:
            startup(environment)
        if "stream" in chosen:
            stream(environment, data)
        if "arranged" in chosen:
            arranged(environment, given.rows)
        if "copy" in chosen:
            copy(environment, parquet)
        if "limited" in chosen:
            limited(environment, data.parent)
        if "export" in chosen:
            export(environment, data, data.parent, given.rows)
        if "memory" in chosen:
            memory(environment, data.parent)


if __name__ == "__main__":
    main()
