"""Answers every request with ready bytes in chunks of one size, so that a client is measured and nothing else.

    python tests/tools/static_server.py MODE CHUNK_BYTES ROWS [CERTIFICATE]

It prints its port. MODE is a mode.type, or `jobs` for an empty list of jobs.
"""

from __future__ import annotations

import csv
import io
import json
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

NAMES = ["eventdate", "ip", "port", "method", "uri", "statusCode", "bytes", "timeTaken", "userAgent", "userId"]
TYPES = ["timestamp", "str", "int4", "str", "str", "int4", "int8", "float8", "str", "str"]
LINES = 20_000
"""Rows of the block that is sent again and again."""


@contextmanager
def serving(mode: str, chunk: int, rows: int, certificate: str = "") -> Iterator[str]:
    """A server of its own process; yields its base URL."""
    command = [sys.executable, __file__, mode, str(chunk), str(rows), certificate]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield f"{'https' if certificate else 'http'}://localhost:{server.stdout.readline().strip()}"
    finally:
        server.kill()
        server.wait()


def cells(count: int) -> list[list[Any]]:
    return [
        [
            1790812800000 + i * 400,
            f"10.0.{i % 250}.1",
            i * 7919 % 65535,
            ("GET", "POST")[i % 2],
            f"/a/b/{i % 1000}",
            200 + i % 4 * 100,
            i * 104729 % 100000,
            i % 1000 / 7,
            "Browser/5.0 (X11; Linux, x86_64)",
            f"u{i % 77}",
        ]
        for i in range(count)
    ]


def answer(mode: str, count: int, times: int) -> tuple[bytes, bytes, bytes]:
    """The bytes before a block of rows, the block, which is sent so many times, and the bytes behind the last one."""
    rows = cells(count)
    records = (dict(zip(NAMES, row, strict=True)) for row in rows)
    m = {name: {"type": kind, "index": at} for at, (name, kind) in enumerate(zip(NAMES, TYPES, strict=True))}
    envelope = '{"success":true,"msg":"","status":0,"cid":"c","timestamp":0,"object":'
    match mode:
        case "jobs":
            return b"", b'{"status":0,"object":[]}', b""
        case "csv" | "tsv":
            return separated([NAMES], mode), separated(rows, mode), b""
        case "json/simple":
            return b"", lines(records), b""
        case "json/simple/compact":
            return lines([{"m": m}]), lines({"d": row} for row in rows), b""
        case "json":
            first = f"{envelope}[{compact(dict(zip(NAMES, rows[0], strict=True)))}"
            return first.encode(), lines(records, ",\n"), b"]}"
        case "json/compact":
            first = f'{envelope}{{"m":{compact(m)},"d":[{compact(rows[0])}'
            return first.encode(), lines(rows, ",\n"), b"]}}"
        case "xml":
            fields = "".join(f'<field name="{name}">{{}}</field>' for name in NAMES)
            return (
                b"<events>\n",
                "".join(f"<event>{fields.format(*row)}</event>\n" for row in rows).encode(),
                b"</events>",
            )
        case "msgpack":
            import msgpack

            packer = msgpack.Packer()
            head = packer.pack_map_header(2) + packer.pack("status") + packer.pack(0) + packer.pack("object")
            return head + packer.pack_array_header(count * times), b"".join(map(packer.pack, records)), b""
    raise SystemExit(f"unknown mode {mode}")


def separated(rows: list[list[Any]], mode: str) -> bytes:
    file = io.StringIO()
    csv.writer(file, delimiter="," if mode == "csv" else "\t", lineterminator="\n").writerows(rows)
    return file.getvalue().encode()


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def lines(values: Any, before: str = "") -> bytes:
    return "".join(f"{before}{compact(value)}{'' if before else chr(10)}" for value in values).encode()


def framed(data: bytes, chunk: int) -> bytes:
    pieces = (data[at : at + chunk] for at in range(0, len(data), chunk))
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


def serve(connection: socket.socket, send: Callable[[socket.socket], None], tls: ssl.SSLContext | None) -> None:
    try:
        with tls.wrap_socket(connection, server_side=True) if tls else connection as accepted:
            data = b""
            while b"\r\n\r\n" not in data:
                data += accepted.recv(65536) or b"\r\n\r\n"
            send(accepted)
            accepted.shutdown(socket.SHUT_WR)
            while accepted.recv(65536):
                pass
    except OSError:
        pass


def main(mode: str, chunk: int, rows: int, certificate: str = "") -> None:
    count = min(rows, LINES)
    times = rows // count
    head, block, tail = answer(mode, count, times)
    first = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n" + framed(head, chunk)
    repeated, last = framed(block, chunk), framed(tail, chunk) + b"0\r\n\r\n"

    def send(connection: socket.socket) -> None:
        connection.sendall(first)
        for _ in range(times):
            connection.sendall(repeated)
        connection.sendall(last)

    tls = None
    if certificate:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    listener = socket.create_server(("127.0.0.1", 0), backlog=16)
    print(listener.getsockname()[1], flush=True)
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0], send, tls), daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
