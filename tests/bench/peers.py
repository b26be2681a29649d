"""Compares the command line with public tools, and prints one Markdown table.

    python tests/bench/peers.py [--rows 5000000] [--runs 5] [--only TEXT] [--output FILE.md]

Answers come from a process of their own that sends ready bytes in chunks of one size, plain or over TLS. Each figure is
the median, minimum and maximum of runs that alternate with the peer's. CPU time (user and system) is what to compare on
a busy machine; wall times say more on an idle one. Peers that are not installed are left out.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SVCCTL = [sys.executable, "-m", "svcctl"]
SERVER = """
import socket, ssl, sys, threading
mode, chunk, rows, certificate = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
LINES = 20_000
CELLS = [(1790812800000 + i * 400, f"10.0.{i % 250}.1", i * 7919 % 65535, ("GET", "POST")[i % 2], f"/a/b/{i % 1000}",
          200 + i % 4 * 100, i * 104729 % 100000, i % 1000 / 7, "Browser/5.0 (X11; Linux, x86_64)", f"u{i % 77}")
         for i in range(LINES)]
NAMES = ["eventdate", "ip", "port", "method", "uri", "statusCode", "bytes", "timeTaken", "userAgent", "userId"]
if mode == "csv":
    import csv, io
    texts = []
    for lines in ([NAMES], CELLS):
        file = io.StringIO()
        csv.writer(file, lineterminator="\\n").writerows(lines)
        texts.append(file.getvalue())
    head, block = texts
elif mode == "jobs":
    head, block = "", '{"status":0,"object":[]}'
else:
    import json
    compact = lambda value: json.dumps(value, separators=(",", ":")) + "\\n"
    named = mode == "json/simple"
    kinds = ["timestamp", "str", "int4", "str", "str", "int4", "int8", "float8", "str", "str"]
    m = {name: {"type": kind, "index": at} for at, (name, kind) in enumerate(zip(NAMES, kinds))}
    head = "" if named else compact({"m": m})
    block = "".join(compact(dict(zip(NAMES, row)) if named else {"d": row}) for row in CELLS)
def framed(data):
    pieces = (data[at : at + chunk] for at in range(0, len(data), chunk))
    return b"".join(b"%x\\r\\n%b\\r\\n" % (len(piece), piece) for piece in pieces)
start = b"HTTP/1.1 200 OK\\r\\ntransfer-encoding: chunked\\r\\nconnection: close\\r\\n\\r\\n" + framed(head.encode())
repeated = framed(block.encode())
tls = None
if certificate:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
listener = socket.create_server(("127.0.0.1", 0), backlog=16)
print(listener.getsockname()[1], flush=True)
def serve(connection):
    try:
        with tls.wrap_socket(connection, server_side=True) if tls else connection as connection:
            data = b""
            while b"\\r\\n\\r\\n" not in data:
                data += connection.recv(65536) or b"\\r\\n\\r\\n"
            connection.sendall(start)
            for _ in range(max(1, rows // LINES)):
                connection.sendall(repeated)
            connection.sendall(b"0\\r\\n\\r\\n")
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
    except OSError:
        pass
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""
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


@dataclass(frozen=True)
class Run:
    """CPU and wall time in seconds, and the peak of memory in MiB."""

    cpu: float
    wall: float
    peak: int


def run(command: Sequence[str], environment: dict[str, str]) -> Run:
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[:4]} failed with {process.returncode}")
    return Run(used.ru_utime + used.ru_stime, time.perf_counter() - started, used.ru_maxrss // 1024)


def spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.3f} ({min(values):.3f}-{max(values):.3f})"


def row(
    what: str, peer: str, ours: Sequence[str], theirs: Sequence[str], environment: dict[str, str], runs: int
) -> str:
    """A row of the table: `ours` against `theirs`, in turns, after one run of each that is not counted."""
    run(theirs, environment), run(ours, environment)
    pairs = [(run(ours, environment), run(theirs, environment)) for _ in range(runs)]
    mine, others = zip(*pairs, strict=True)
    cpu = statistics.median(one.cpu for one in mine) / statistics.median(one.cpu for one in others)
    wall = statistics.median(one.wall for one in mine) / statistics.median(one.wall for one in others)
    times = f"{spread([one.cpu for one in mine])} | {spread([one.cpu for one in others])}"
    return f"| {what} | {peer} | {times} | {cpu:.2f} | {wall:.2f} | {max(one.peak for one in mine)} |"


@contextmanager
def serving(mode: str, chunk: int, rows: int, certificate: str = "") -> Iterator[str]:
    """A static server; yields its base URL."""
    command = [sys.executable, "-c", SERVER, mode, str(chunk), str(rows), certificate]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield f"{'https' if certificate else 'http'}://localhost:{server.stdout.readline().strip()}"
    finally:
        server.kill()
        server.wait()


def table(rows: int, runs: int, only: str, home: Path) -> Iterator[str]:
    """The lines of the table."""
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "SVCCTL_API_KEY": "k", "SVCCTL_API_SECRET": "s"}
    python = [sys.executable, "-c"]
    yield f"{rows} rows, {runs} paired runs. Times in seconds: median (minimum-maximum)."
    yield ""
    yield "| what | peer | CPU | CPU of the peer | CPU ratio | wall ratio | peak MiB |"
    yield "|---|---|---|---|---|---|---|"
    for arguments, code in (
        (["--version"], "import typer"),
        (["--version"], "pass"),
        (["--help"], "import typer"),
        (["help", "dates"], "import typer"),
        (["range", "--from", "2h"], "import typer, httpx"),
        (["profile", "list"], "import typer, httpx"),
    ):
        what = " ".join(arguments)
        if only in what:
            yield row(what, f"python -c '{code}'", [*SVCCTL, *arguments], [*python, code], environment, runs)
    with serving("jobs", 1024, 1) as url:
        if only in "job list":
            served = environment | {"SVCCTL_BASE_URL": url}
            ours = [*SVCCTL, "job", "list"]
            yield row(
                "job list", "python -c 'import typer, httpx'", ours, [*python, "import typer, httpx"], served, runs
            )
    certificate = home / "localhost.pem"
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        *name,
        "-keyout",
        str(certificate),
    ]
    subprocess.run([*made, "-out", str(home / "crt")], check=True, capture_output=True)
    certificate.write_text(certificate.read_text() + (home / "crt").read_text())
    environment["SSL_CERT_FILE"] = str(certificate)
    for format_, mode in (("csv", "csv"), ("ndjson", "json/simple")):
        for kib, tls in ((64, ""), (8, ""), (1, ""), (16, str(certificate))):
            what = f"query -f {format_}, chunks of {kib} KiB{' over TLS' if tls else ''}"
            if only not in what:
                continue
            with serving(mode, kib * 1024, rows, tls) as url:
                ours = [*SVCCTL, "query", "from t", "--from", "1h", "-f", format_]
                curl = ["curl", "-sS", "--cacert", str(certificate), "-d", "x", f"{url}/search/query"]
                yield row(what, "curl", ours, curl, environment | {"SVCCTL_BASE_URL": url}, runs)
    few = max(1, rows // 10)
    with serving("json/simple/compact", 64 * 1024, few) as url:
        peers = {"httpx, iter_lines and json.loads": [*python, PLAIN_CLIENT, url]}
        if shutil.which("jq"):
            peers["curl and jq -c .d"] = ["sh", "-c", f"curl -sS -d x {url}/search/query | jq -c .d"]
        read = "read_csv('/dev/stdin', delim='\\x01', quote='', header=false, columns={'line': 'varchar'})"
        script = f"import duckdb; duckdb.sql(\"select count(line->'d') from {read}\").fetchall()"
        peers["curl and DuckDB"] = ["sh", "-c", f'curl -sS -d x {url}/search/query | {sys.executable} -c "$0"', script]
        for peer, command in peers.items():
            if only in "rows decoded":
                what = f"rows decoded ({few} rows)"
                yield row(what, peer, [*python, OUR_ROWS, url], command, environment, runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000, help="rows of each answer, up to 50 million and more")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="only the figures whose name has this text")
    parser.add_argument("--output", type=Path, help="write the table to this file, too")
    given = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory(prefix="svcctl-bench-") as home:
        for line in table(given.rows, given.runs, given.only, Path(home)):
            print(line, flush=True)
            lines.append(line)
    if given.output:
        given.output.write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
