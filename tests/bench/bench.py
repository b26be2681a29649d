"""Measures speed and memory as ratios to a peer in the same run.

    python tests/bench/bench.py [startup|stream|copy|export]

Machines are noisy, so every figure is a median of several runs that alternate with the peer's; nothing here fails a
build. All but `startup` first load five million events into a fresh service, which takes half a minute.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

ROWS = 5_000_000
SVCCTL = str(Path(sys.executable).parent / "svcctl")
FROM = "2026-10-01"


def seconds(command: Sequence[str], environment: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def compare(what: str, peer: Callable[[], float], subject: Callable[[], float], runs: int, reach: float) -> None:
    """Time peer and subject alternately and print the ratio of their medians."""
    peer(), subject()
    pairs = [(peer(), subject()) for _ in range(runs)]
    theirs, ours = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = ours / theirs
    print(f"{what:<52} {ours * 1000:9.0f} ms {theirs * 1000:9.0f} ms {ratio:6.2f}x  (to reach: {reach}x)", flush=True)


def startup(environment: dict[str, str]) -> None:
    """Compare whole processes with the imports that they need."""
    typer = [sys.executable, "-c", "import typer"]
    both = [sys.executable, "-c", "import typer, httpx"]
    subprocess.run([SVCCTL, "service", "start"], env=environment, check=True, capture_output=True)
    for arguments, peer, reach in (
        (["--version"], typer, 1.25),
        (["--help"], typer, 1.25),
        (["job", "list"], both, 1.35),
    ):
        command = [SVCCTL, *arguments]
        name = f"svcctl {' '.join(arguments)} / python -c '{peer[-1]}'"
        compare(name, partial(seconds, peer, environment), partial(seconds, command, environment), 20, reach)


def stream(environment: dict[str, str], data: Path) -> None:
    """Compare a gigabyte through the client with curl on the same request and socket."""
    for mode, format_ in (("csv", "csv"), ("json/simple", "ndjson")):
        body = json.dumps({"query": "from bench", "from": 1790812800, "to": "now", "mode": {"type": mode}})
        token = json.loads((data / "credentials.json").read_text())["local"]["token"]
        curl = ["curl", "-sS", "--fail", "--unix-socket", str(data / "service.sock"), "http://localhost/search/query"]
        curl += ["-H", "Content-Type: application/json", "-H", f"Authorization: Bearer {token}", "--data-binary", body]
        ours = [SVCCTL, "query", "from bench", "--from", FROM, "-f", format_]
        compare(
            f"query -f {format_} / curl, {ROWS} rows",
            partial(seconds, curl, environment),
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
LIMITER = f"""
import socket, sys, threading, time
listener = socket.create_server(("127.0.0.1", 0), backlog=64)
print(listener.getsockname()[1], flush=True)

def copy(source, sink, rate):
    begun, sent = None, 0
    while data := source.recv(1 << 16):
        now = time.monotonic()
        if begun is None or sent / rate < now - begun - 0.05:
            begun, sent = now, 0
        sink.sendall(data)
        sent += len(data)
        time.sleep(max(0, begun + sent / rate - time.monotonic()))
    sink.shutdown(socket.SHUT_WR)

def serve(client):
    service = socket.socket(socket.AF_UNIX)
    service.connect(sys.argv[1])
    threading.Thread(target=copy, args=(client, service, 1e12), daemon=True).start()
    with client, service:
        copy(service, client, {PER_CONNECTION})

while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""
PEAK = "import resource, subprocess, sys; subprocess.check_call(sys.argv[1:], stdout=subprocess.DEVNULL); "
PEAK += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)"


def export(environment: dict[str, str], data: Path) -> None:
    """Compare workers with one worker where connections are slow, and an export with a query of the same range."""
    out = data.parent / "out"
    ours = [SVCCTL, "export", "from bench", "--from", FROM, "--force"]
    limiter = subprocess.Popen(
        [sys.executable, "-c", LIMITER, str(data / "service.sock")], stdout=subprocess.PIPE, text=True
    )
    try:
        assert limiter.stdout is not None
        secrets = json.loads((data / "credentials.json").read_text())["local"]
        limited = environment | {
            "SVCCTL_BASE_URL": f"http://127.0.0.1:{limiter.stdout.readline().strip()}",
            "SVCCTL_API_KEY": secrets["api_key"],
            "SVCCTL_API_SECRET": secrets["api_secret"],
        }
        week = [*ours, "--to", "7d", "--window", "1h", "-o", f"{out}/week.csv"]
        one, eight = (seconds([*week, "--workers", str(count)], limited) for count in (1, 8))
        size = (out / "week.csv").stat().st_size
        print(
            f"export of {size / 1e6:.0f} MB at {PER_CONNECTION / 1e6:.0f} MB/s a connection: one worker {one:.1f} s, "
        )
        print(f"8 workers {eight:.1f} s, {one / eight:.2f}x  (to reach: 7x)", flush=True)
    finally:
        limiter.kill()
        limiter.wait()
    query = [SVCCTL, "query", "from bench", "--from", FROM, "-f", "csv", "--force", "-o", f"{out}/query.csv"]
    compare(
        f"export / query -o, {ROWS} rows, csv",
        partial(seconds, query, environment),
        partial(seconds, [*ours, "--window", "1d", "-o", f"{out}/export.csv"], environment),
        3,
        1.3,
    )
    for name in ("all.csv", "all.csv.gz", "all.ndjson.zst", "all.parquet"):
        command = [*ours, "--window", "6h", "--workers", "8", "-o", f"{out}/{name}"]
        measured = subprocess.run(
            [sys.executable, "-c", PEAK, *command], env=environment, capture_output=True, text=True, check=True
        )
        print(f"export to {name}, 8 workers: peak {measured.stdout.strip()} MiB  (to reach: 160 MiB)", flush=True)


@contextmanager
def service(events: bool) -> Iterator[tuple[dict[str, str], Path, Path]]:
    """Run a service; yield its environment, its data directory and a parquet file of events."""
    with tempfile.TemporaryDirectory(prefix="svcctl-bench-") as home:
        data, parquet = Path(home) / "data", Path(home) / "bench.parquet"
        environment = {"HOME": home, "PATH": os.environ["PATH"], "SVCCTL_DATA": str(data)}
        if events:
            make = f"""
import duckdb
duckdb.connect().execute('''copy (select timestamp '2026-10-01' + to_microseconds(i * 400000) as eventdate,
  '10.0.' || (i % 250) || '.' || (hash(i) % 250) as ip, (hash(i + 1) % 65535)::int as port,
  ['GET', 'POST', 'PUT'][1 + (i % 3)::int] as method, '/a/b/' || (i % 1000) as uri,
  (200 + (hash(i + 2) % 4) * 100)::int as statusCode, (hash(i + 3) % 100000)::bigint as bytes,
  (hash(i) % 1000) / 7.0 as timeTaken, 'Browser/5.0 (X11; Linux, x86_64)' as userAgent,
  case when i % 5 = 0 then null else 'u' || (i % 77) end as userId from range({ROWS}) r(i)) to '{parquet}' ''')
"""
            subprocess.run([sys.executable, "-c", make], check=True)
            load = [SVCCTL, "service", "load", str(parquet), "--table", "bench"]
            subprocess.run(load, env=environment, check=True, capture_output=True)
        try:
            yield environment, data, parquet
        finally:
            subprocess.run([SVCCTL, "service", "stop"], env=environment, check=False, capture_output=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["startup", "stream", "copy", "export"])
    chosen = parser.parse_args().what
    with service(chosen != ["startup"]) as (environment, data, parquet):
        if "startup" in chosen:
            startup(environment)
        if "stream" in chosen:
            stream(environment, data)
        if "copy" in chosen:
            copy(environment, parquet)
        if "export" in chosen:
            export(environment, data)


if __name__ == "__main__":
    main()
