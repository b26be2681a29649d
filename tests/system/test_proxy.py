"""What a proxy may do to an answer between the real service and the reader: cut it anywhere, pad it, let it trickle.

The right rows come out, or exit 7; never a wrong row, never a file that looks whole.
"""

from __future__ import annotations

import io
import json
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.clients import client_of
from support.shells import Shell

from svcctl.api.client import Client
from svcctl.api.query import QueryRequest
from svcctl.api.response import MODES
from svcctl.cli.context import Context
from svcctl.cli.main import run
from svcctl.errors import IncompleteResult, MalformedAnswer
from svcctl.service.rendering import ENCODERS
from svcctl.terminal.diagnostics import Diagnostics
from svcctl.terminal.formats import FORMATS

TEXT = [mode for mode, encoder in ENCODERS.items() if encoder.streams]
LINES = {"csv", "tsv", "json/simple", "json/simple/compact"}
NEVER_EMPTY = {"json", "json/compact", "json/simple/compact"}
"""The formats in which an empty body is no cut result, but none at all."""
QUERY = "from sample select name, n offset 1"
WINDOW = (1_706_659_200, "1d")
ROWS = [('comma, "quote"', 9007199254740993), ("[brackets] 漢字 😀", -3), ("two\nlines", None)]
ROW_ENDS = {
    "csv": ["name,n\n", '"comma, ""quote""",9007199254740993\n', "[brackets] 漢字 😀,-3\n", '"two\nlines",\n'],
    "tsv": ["name\tn\n", '"comma, ""quote"""\t9007199254740993\n', "[brackets] 漢字 😀\t-3\n", '"two\nlines"\t\n'],
    "json/simple": [
        "",
        '{"name":"comma, \\"quote\\"","n":9007199254740993}\n',
        '{"name":"[brackets] 漢字 😀","n":-3}\n',
        '{"name":"two\\nlines","n":null}\n',
    ],
    "json/simple/compact": [
        '{"m":{"name":{"type":"str","index":0},"n":{"type":"int8","index":1}},'
        '"metadata":[{"name":"name","type":"str"},{"name":"n","type":"int8"}]}\n',
        '{"d":["comma, \\"quote\\"",9007199254740993]}\n',
        '{"d":["[brackets] 漢字 😀",-3]}\n',
        '{"d":["two\\nlines",null]}\n',
    ],
}
"""The bytes that the service sends, in the pieces after which a cut cannot be seen."""

Deliver = Callable[[bytes, bytes], Iterable[bytes]]
"""From the lines of a head and a body to what goes over the wire, piece by piece."""


def closing(head: bytes, body: bytes) -> bytes:
    return head + b"Connection: close\r\n\r\n" + body


def chunked(head: bytes, body: bytes, size: int = 100) -> bytes:
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    return (
        head
        + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"".join(b"%x\r\n%b\r\n" % (len(c), c) for c in [*chunks, b""])
    )


FRAMINGS = {"close": closing, "chunked": chunked}


def begin(framing: str, body: bytes) -> int:
    """Bytes of a head's last line and what follows it, before the body begins."""
    return len(FRAMINGS[framing](b"", body).partition(b"\r\n\r\n")[0]) + 4


def cut(framing: str, at: int) -> Deliver:
    """Delivers an answer's head whole, and of the rest so many bytes."""
    return lambda head, body: [head + FRAMINGS[framing](b"", body)[:at]]


@dataclass
class Proxy:
    """Passes requests on to the service, and its answers back in the way of `deliver`; asks for each only once."""

    service: Shell
    path: Path
    deliver: Deliver = lambda head, body: [closing(head, body)]
    answers: dict[bytes, tuple[bytes, bytes]] = field(default_factory=dict)

    def serve(self, listener: socket.socket) -> None:
        upstream = httpx.HTTPTransport(verify=False, uds=str(self.service.home / "data" / "service.sock"))
        with httpx.Client(transport=upstream) as service:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    head, body = self._answer(service, connection)
                    try:
                        for piece in self.deliver(head, body):
                            connection.sendall(piece)
                    except OSError:
                        continue

    def _answer(self, service: httpx.Client, connection: socket.socket) -> tuple[bytes, bytes]:
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        start, _, body = data.partition(b"\r\n\r\n")
        line, *lines = start.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in lines)}
        while len(body) < int(headers.get("content-length", "0")):
            body += connection.recv(65536)
        if body not in self.answers:
            method, path, _ = line.split()
            told = service.request(method, f"http://localhost{path}", content=body, headers=headers)
            kept = ("content-type", "x-svc-cid")
            head = "".join(f"{name}: {told.headers[name]}\r\n" for name in kept if name in told.headers)
            self.answers[body] = f"HTTP/1.1 {told.status_code} OK\r\n{head}".encode(), told.content
        return self.answers[body]

    def body(self, mode: str) -> bytes:
        """The service's own answer to QUERY."""
        self.deliver = lambda head, body: [closing(head, body)]
        with client_of_proxy(self) as client, client.query(asked(mode)) as answer:
            list(answer.raw())
        return self.answers[asked(mode).body()][1]


@pytest.fixture(scope="module")
def proxy(service: Shell, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    proxy = Proxy(service, tmp_path_factory.mktemp("proxy") / "sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(proxy.path))
        listener.listen(16)
        thread = threading.Thread(target=proxy.serve, args=[listener])
        thread.start()
        yield proxy
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def client_of_proxy(proxy: Proxy) -> Client:
    return client_of(proxy.service, proxy.path, retries=0)


def asked(mode: str) -> QueryRequest:
    return QueryRequest(query=QUERY, from_=WINDOW[0], to=WINDOW[1], mode=mode)


def query(proxy: Proxy, home: Path, *arguments: str) -> tuple[int, str]:
    """The exit code and stderr of `svcctl query QUERY`, in this process."""
    stderr = io.StringIO()
    context = Context(
        diagnostics=Diagnostics(stderr),
        environment={"SVCCTL_CONFIG": str(home / "none.yaml"), "SVCCTL_BASE_URL": "http://localhost"},
        client_factory=lambda *_: client_of_proxy(proxy),
    )
    code = run(["query", QUERY, "--from", str(WINDOW[0]), "--to", WINDOW[1], *arguments], context)
    return code, stderr.getvalue()


def typed(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row of a text format with its number as one."""
    name, number = row
    return name, int(number) if number else None


def seemingly_whole(mode: str, body: bytes) -> dict[int, int]:
    """Where a body that ends by closing may be cut unseen, and how many rows it has then."""
    if mode not in LINES:  # a document has an end; only the white space behind it may be missing
        return {len(body.rstrip()) + extra: len(ROWS) for extra in range(len(body) - len(body.rstrip()) + 1)}
    pieces = [piece.encode() for piece in ROW_ENDS[mode]]
    assert b"".join(pieces) == body
    return {sum(map(len, pieces[: count + 1])): count for count in range(len(pieces))}


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("mode", [name for name, mode in MODES.items() if mode.counts])
def test_rows_of_an_answer_cut_anywhere_are_right_or_incomplete(proxy: Proxy, mode: str, framing: str) -> None:
    body = proxy.body(mode)
    wire = FRAMINGS[framing](b"", body)
    whole = seemingly_whole(mode, body) if framing == "close" else {}
    ends: dict[int, int] = {}
    with client_of_proxy(proxy) as client:
        start = begin(framing, body)
        for at in range(len(wire) - start):
            proxy.deliver = cut(framing, start + at)
            rows: list[tuple[Any, ...]] = []
            told: int | None = None
            try:
                with client.query(asked(mode)) as answer:
                    rows.extend(answer.rows())
                ends[at] = len(rows)
            except IncompleteResult as error:
                told = error.rows
            except MalformedAnswer:  # nothing came, so it is not known that something is missing
                assert (at, framing, mode in NEVER_EMPTY) == (0, "close", True)
                continue
            assert told == (None if at in ends else len(rows)), at
            if mode in ("csv", "tsv"):
                rows = [typed(row) for row in rows]
            assert rows == ROWS[: len(rows)], at
    assert ends == {at: count for at, count in whole.items() if at < len(body)}


@pytest.mark.parametrize("mode", [*TEXT, "msgpack", "xls"])
def test_a_file_of_an_answer_cut_anywhere_is_right_or_not_there(proxy: Proxy, tmp_path: Path, mode: str) -> None:
    body = proxy.body(mode)
    format = next(name for name, row in FORMATS.items() if row.mode == mode and row.raw)
    (target := tmp_path / "there" / "rows").parent.mkdir()
    whole = {} if mode == "xls" else seemingly_whole(mode, body)
    ends = set()
    for at in range(0, len(body), 50 if mode == "xls" else 3):
        proxy.deliver = cut("close", begin("close", body) + at)
        code, stderr = query(proxy, tmp_path, "-f", format, "-o", str(target))
        if code == 0:
            ends.add(at)
            assert target.read_bytes() == body[:at]
            target.unlink()
        else:
            what = (
                (7, "result is incomplete")
                if at or mode not in NEVER_EMPTY
                else (6, "service's answer is not a result")
            )
            assert (code, stderr.startswith(f"svcctl: error: the {what[1]}: ")) == (what[0], True), stderr
        assert list(target.parent.iterdir()) == [], at
    assert ends == {at for at in whole if at % 3 == 0 and at < len(body)}


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("mode", MODES)
def test_an_answer_that_trickles_byte_by_byte_is_whole(proxy: Proxy, mode: str, framing: str) -> None:
    body = proxy.body(mode)

    def trickle(head: bytes, body: bytes) -> Iterator[bytes]:
        sent = head + (closing(b"", body) if framing == "close" else chunked(b"", body, 1))
        yield from (sent[at : at + 1] for at in range(len(sent)))

    proxy.deliver = trickle
    with client_of_proxy(proxy) as client:
        with client.query(asked(mode)) as answer:
            assert b"".join(answer.raw()) == body
        if MODES[mode].counts:
            with client.query(asked(mode)) as answer:
                rows = list(answer.rows())
            assert ([typed(row) for row in rows] if mode in ("csv", "tsv") else rows) == ROWS


PADDING = {
    "csv": [b"\n", b",\n", b"\n\n,\n"],
    "tsv": [b"\n", b"\t\n", b"\n\n\t\n"],
    "json/simple": [b"    ", b"    \n", b"\n        "],
    "json/simple/compact": [b"    ", b"    \n", b"\n        "],
    "json": [b"    ", b"        "],
    "json/compact": [b"    ", b"        "],
}


def padded(mode: str, body: bytes, padding: bytes) -> bytes:
    """A body with padding wherever it may come: before and after every row."""
    if mode in LINES:
        return padding + b"".join(piece.encode() + padding for piece in ROW_ENDS[mode])
    return padding + re.sub(rb"(?<=[\[,])\n|\n(?=\])", lambda match: padding + match[0] + padding, body) + padding


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize(("mode", "padding"), [(mode, padding) for mode, all in PADDING.items() for padding in all])
def test_padding_is_dropped_and_rows_are_not(proxy: Proxy, mode: str, padding: bytes, framing: str) -> None:
    body = proxy.body(mode)
    longer = padded(mode, body, padding)
    assert longer.count(padding) >= 5
    proxy.deliver = lambda head, body: [FRAMINGS[framing](head, longer)]
    with client_of_proxy(proxy) as client:
        with client.query(asked(mode)) as answer:
            raw = b"".join(answer.raw())
        assert raw == body if mode in LINES else json.loads(raw) == json.loads(body)
        assert padding.strip(b"\n") not in raw or mode in ("csv", "tsv")
        with client.query(asked(mode)) as answer:
            rows = list(answer.rows())
    assert [typed(row) for row in rows] == ROWS


def test_the_command_line_behind_a_bad_proxy(proxy: Proxy, service: Shell, tmp_path: Path) -> None:
    body = proxy.body("csv")
    credentials = json.loads((service.home / "data" / "credentials.json").read_text())["local"]
    shell = Shell(tmp_path, {"SVCCTL_PROFILE": "proxied"})
    fields = ["base_url=http://localhost", f"socket={proxy.path}", f"api_key={credentials['api_key']}", "api_secret=-"]
    assert shell("profile", "set", "proxied", *fields, stdin=credentials["api_secret"]).returncode == 0
    command = ("query", QUERY, "--from", str(WINDOW[0]), "--to", WINDOW[1])

    proxy.deliver = lambda head, body: (b"%c" % byte for byte in chunked(head, padded("csv", body, b",\n"), 1))
    done = shell(*command)
    assert (done.returncode, done.stdout, done.stderr) == (0, body.decode(), "")

    proxy.deliver = lambda head, body: [chunked(head, body, 60)[:-10]]
    done = shell(*command)
    whole_rows = "".join(ROW_ENDS["csv"][:3])
    broken = "svcctl: error: the result is incomplete: the connection broke in the middle\n"
    assert (done.returncode, done.stdout, done.stderr) == (7, whole_rows, broken)
    done = shell(*command, "-o", "rows.csv.gz")
    assert (done.returncode, done.stdout, done.stderr) == (7, "", broken)
    assert list(tmp_path.glob("rows*")) == []
