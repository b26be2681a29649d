"""`svcctl query` through a proxy that cuts, pads and delays the answers of the real service.

The right rows come out, or exit 7; never a wrong row, never a file that looks whole. The formats are cut and padded
without a service in tests/api/test_response.py, the framings in tests/api/test_client.py.
"""

from __future__ import annotations

import io
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import httpx
import pytest
from support.clients import client_of
from support.shells import Shell

from svcctl.api.client import Client
from svcctl.api.query import QueryRequest
from svcctl.cli.context import Context
from svcctl.cli.main import run
from svcctl.service.rendering import ENCODERS
from svcctl.terminal.diagnostics import Diagnostics
from svcctl.terminal.formats import FORMATS

TEXT = [mode for mode, encoder in ENCODERS.items() if encoder.streams]
LINES = {"csv", "tsv", "json/simple", "json/simple/compact"}
NEVER_EMPTY = {"json", "json/compact", "json/simple/compact", "msgpack"}
"""The formats in which an empty body is no cut result, but none at all."""
QUERY = "from sample select name, n offset 1"
WINDOW = (1_706_659_200, "1d")
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


def cut(body: bytes, at: int) -> Deliver:
    """Delivers an answer's head whole, and so many bytes of the body; then the connection closes."""
    return lambda head, _: [closing(head, body[:at])]


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
            answer = service.request(method, f"http://localhost{path}", content=body, headers=headers)
            names = ("content-type", "x-svc-cid")
            head = "".join(f"{name}: {answer.headers[name]}\r\n" for name in names if name in answer.headers)
            self.answers[body] = f"HTTP/1.1 {answer.status_code} OK\r\n{head}".encode(), answer.content
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


def unseen_cuts(mode: str, body: bytes) -> set[int]:
    """The places where a body that ends by closing may be cut unseen."""
    if mode == "xls":
        return set()
    if mode not in LINES:  # a document has an end; only the white space after it may be missing
        return set(range(len(body.rstrip()), len(body)))
    ends = set(accumulate(len(piece.encode()) for piece in ROW_ENDS[mode]))
    assert max(ends) == len(body)
    return ends - {len(body)}


@pytest.mark.parametrize("mode", [*TEXT, "msgpack", "xls"])
def test_a_file_of_an_answer_cut_anywhere_is_right_or_not_there(proxy: Proxy, tmp_path: Path, mode: str) -> None:
    body = proxy.body(mode)
    format = next(name for name, row in FORMATS.items() if row.mode == mode and row.raw)
    (target := tmp_path / "there" / "rows").parent.mkdir()
    ends = set()
    for at in range(0, len(body), 50 if mode == "xls" else 3):
        proxy.deliver = cut(body, at)
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
    assert ends == {at for at in unseen_cuts(mode, body) if at % 3 == 0}


def test_the_command_line_reads_through_a_bad_proxy(proxy: Proxy, service: Shell, tmp_path: Path) -> None:
    body = proxy.body("csv")
    credentials = json.loads((service.home / "data" / "credentials.json").read_text())["local"]
    shell = Shell(tmp_path, {"SVCCTL_PROFILE": "proxied"})
    fields = ["base_url=http://localhost", f"socket={proxy.path}", f"api_key={credentials['api_key']}", "api_secret=-"]
    assert shell("profile", "set", "proxied", *fields, stdin=credentials["api_secret"]).returncode == 0
    command = ("query", QUERY, "--from", str(WINDOW[0]), "--to", WINDOW[1])

    padded = b",\n" + b"".join(piece.encode() + b",\n" for piece in ROW_ENDS["csv"])
    proxy.deliver = lambda head, body: (b"%c" % byte for byte in chunked(head, padded, 1))
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
