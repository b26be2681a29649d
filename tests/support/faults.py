"""A proxy that breaks answers: it passes requests on to the service and damages the answers.

The whole answer of the service is read first, and then sent as a fault says. So a test knows the right answer to each
request, and only faults about time depend on time.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import httpx

from svcctl.api.refusals import ERRORS

Fault = Callable[["Answer", Random], Iterator[bytes | float]]
"""Makes the pieces to send; a number means to wait that many seconds, and a negative one to reset the connection."""


@dataclass(frozen=True)
class Answer:
    """The service's answer to one request."""

    status: int
    headers: dict[str, str]
    body: bytes
    exact: bool = False
    """Whether it is sent as one of svcctl's own service, which states errors in one form."""

    @property
    def mode(self) -> str:
        kind = self.headers.get("content-type", "").partition(";")[0]
        return {"text/csv": "csv", "text/tab-separated-values": "tsv"}.get(kind, kind)

    def head(self, framing: str, status: int | None = None) -> bytes:
        lines = [f"HTTP/1.1 {status or self.status} OK", f"content-type: {self.headers.get('content-type', '')}"]
        exact = [f"{ERRORS}: {self.headers[ERRORS]}"] if self.exact else []
        return "\r\n".join([*lines, *exact, framing, "connection: close", "", ""]).encode()


def chunks(body: bytes, size: int = 4096) -> Iterator[bytes]:
    for at in range(0, len(body), size):
        piece = body[at : at + size]
        yield b"%x\r\n%b\r\n" % (len(piece), piece)


CHUNKED = "transfer-encoding: chunked"
END = b"0\r\n\r\n"


def whole(answer: Answer, random: Random) -> Iterator[bytes | float]:
    yield answer.head(CHUNKED)
    yield from chunks(answer.body)
    yield END


def refused(answer: Answer, random: Random) -> Iterator[bytes | float]:
    yield -1.0


def reset(answer: Answer, random: Random) -> Iterator[bytes | float]:
    yield answer.head(CHUNKED)
    yield from chunks(answer.body[: random.randrange(len(answer.body) + 1)])
    yield -1.0


def stall(answer: Answer, random: Random) -> Iterator[bytes | float]:
    yield answer.head(CHUNKED)
    yield from chunks(answer.body[: random.randrange(len(answer.body) + 1)])
    yield 60.0


def cut(answer: Answer, random: Random) -> Iterator[bytes | float]:
    """End the body at a random byte, without the end of the chunked encoding."""
    yield answer.head(CHUNKED)
    yield from chunks(answer.body[: random.randrange(len(answer.body) + 1)])


def cut_behind_a_row(answer: Answer, random: Random) -> Iterator[bytes | float]:
    """End the body after a row, before the stated content length."""
    ends = [at + 1 for at, byte in enumerate(answer.body) if byte == 0x0A]
    yield answer.head(f"content-length: {len(answer.body) + 1}")
    yield answer.body[: random.choice(ends)] if ends else b""


def truncated_chunk(answer: Answer, random: Random) -> Iterator[bytes | float]:
    yield answer.head(CHUNKED)
    yield from chunks(answer.body)
    yield b"ff\r\nonly the beginning"


def too_many_requests(answer: Answer, random: Random) -> Iterator[bytes | float]:
    yield b"HTTP/1.1 429 Slow\r\nretry-after: 0\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


def failed(status: int) -> Fault:
    def fault(answer: Answer, random: Random) -> Iterator[bytes | float]:
        body = b'{"msg":"not now","status":1}'
        yield answer.head(f"content-length: {len(body)}", status) + body

    return fault


def page(answer: Answer, random: Random) -> Iterator[bytes | float]:
    body = b"<html><body>Bad gateway</body></html>"
    yield b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
    yield body


def error_in_stream(answer: Answer, random: Random) -> Iterator[bytes | float]:
    """Send some rows and then the row by which the service reports an error."""
    ends = [0, *(at + 1 for at, byte in enumerate(answer.body) if byte == 0x0A)]
    error = {
        "csv": b"svc.api.error,500,out of memory\n" if answer.exact else b"sample.error,500,out of memory\n",
        "tsv": b"svc.api.error\t500\tout of memory\n" if answer.exact else b"sample.error\t500\tout of memory\n",
    }.get(answer.mode, b'["error",500,"out of memory"]\n')
    if answer.body.startswith(b'{"m"'):
        error = b'{"e":[500,"out of memory"]}\n'
    at = random.choice(ends[1:] or ends)
    yield answer.head(CHUNKED)
    yield from chunks(answer.body[:at] + error)
    yield END


def slow(answer: Answer, random: Random) -> Iterator[bytes | float]:
    yield answer.head(CHUNKED)
    for piece in chunks(answer.body, max(1, len(answer.body) // 5)):
        yield 0.005
        yield piece
    yield END


FAULTS: dict[str, Fault] = {
    "refused": refused,
    "reset": reset,
    "stall": stall,
    "cut": cut,
    "cut behind a row": cut_behind_a_row,
    "truncated chunk": truncated_chunk,
    "429": too_many_requests,
    "500": failed(500),
    "503": failed(503),
    "page": page,
    "error in stream": error_in_stream,
    "slow": slow,
}
"""The faults by name. An export must survive `slow` and `429`, with one more attempt."""


@dataclass
class FaultyProxy:
    """Listens on a port of this machine. `choose` returns the name of the fault for a request's body, or None."""

    upstream: Path
    choose: Callable[[bytes], str | None] = lambda body: None
    seed: int = 0
    exact: bool = False
    """Whether answers say that they are of svcctl's own service."""
    asked: Counter[bytes] = field(default_factory=Counter)
    """How often each request body was received."""
    _answers: dict[bytes, Answer] = field(default_factory=dict)
    _received: threading.Condition = field(default_factory=threading.Condition)
    _over: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    @contextmanager
    def serving(self) -> Iterator[FaultyProxy]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            thread = threading.Thread(target=self._accept, args=(listener,), daemon=True)
            thread.start()
            try:
                yield self
            finally:
                self._over.set()
                listener.shutdown(socket.SHUT_RDWR)
                thread.join()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                request = _request(connection)
                if request is not None:
                    self._deliver(connection, *request)
            except OSError:
                return

    def _deliver(self, connection: socket.socket, line: str, headers: dict[str, str], body: bytes) -> None:
        with self._received:
            self.asked[body] += 1
            count = self.asked[body]
            self._received.notify_all()
        answer = replace(self._answer(line, headers, body), exact=self.exact)
        name = self.choose(body)
        random = Random(f"{self.seed} {body!r} {count}")
        for piece in (whole if name is None else FAULTS[name])(answer, random):
            if isinstance(piece, bytes):
                connection.sendall(piece)
            elif piece < 0:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            elif self._over.wait(piece):
                return

    def await_requests(self, count: int) -> None:
        """Wait until so many requests were received."""
        with self._received:
            assert self._received.wait_for(lambda: self.asked.total() >= count, timeout=60)

    def forget(self) -> None:
        """Ask the service again for answers that it gave before."""
        self._answers.clear()

    def _answer(self, line: str, headers: dict[str, str], body: bytes) -> Answer:
        if body not in self._answers or not body:
            method, path, _ = line.split()
            with httpx.Client(transport=httpx.HTTPTransport(verify=False, uds=str(self.upstream))) as service:
                told = service.request(method, f"http://localhost{path}", content=body, headers=headers)
            self._answers[body] = Answer(told.status_code, dict(told.headers), told.content)
        return self._answers[body]


def _request(connection: socket.socket) -> tuple[str, dict[str, str], bytes] | None:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (piece := connection.recv(65536)):
            return None
        data += piece
    start, _, body = data.partition(b"\r\n\r\n")
    line, *lines = start.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65536)
    return line, headers, body
