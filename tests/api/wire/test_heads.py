"""Heads: what is read, what is refused, and which body follows."""

import pytest

from svcctl.api.wire.bodies import Chunked, Length, UntilClose
from svcctl.api.wire.failures import LocalProtocolError, RemoteProtocolError
from svcctl.api.wire.heads import framing, read_head, request_head


def head(*lines: str, status: str = "HTTP/1.1 200 OK", end: str = "\r\n") -> bytes:
    return end.join([status, *lines, "", ""]).encode("latin-1")


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_a_head_is_read(end: str) -> None:
    read = read_head(head("Content-Type: text/csv ", "X-A:1", "x-a:\t2", "Long: a", "  b", end=end))
    assert (read.status, read.lasting) == (200, True)
    assert dict(read.headers) == {"content-type": "text/csv", "x-a": "1, 2", "long": "a b"}
    assert (read.headers["CONTENT-type"], read.headers.get("none")) == ("text/csv", None)


@pytest.mark.parametrize(("value", "shown"), [("café", "café"), ("caf\u00c3\u00a9", "café")])
def test_a_header_may_hold_latin_1_or_utf_8(value: str, shown: str) -> None:
    assert read_head(head(f"X: {value}")).headers["x"] == shown


@pytest.mark.parametrize(
    ("status", "line", "lasting"),
    [
        ("HTTP/1.1 200 OK", "Connection: keep-alive", True),
        ("HTTP/1.1 204", "Connection: Close", False),
        ("HTTP/1.1 200 ", "Connection: x, close", False),
        ("HTTP/1.0 200 OK", "Connection: keep-alive", False),
    ],
)
def test_whether_a_connection_lasts(status: str, line: str, lasting: bool) -> None:
    assert read_head(head(line, status=status)).lasting is lasting


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"SSH-2.0-x\r\n\r\n", "it does not speak HTTP/1.1, its answer begins with 'SSH-2.0-x'"),
        (b"HTTP/2 200\r\n\r\n", "it does not speak HTTP/1.1, its answer begins with 'HTTP/2 200'"),
        (b"HTTP/1.1 20x\r\n\r\n", "it does not speak HTTP/1.1, its answer begins with 'HTTP/1.1 20x'"),
        (head("no colon"), "its answer has the header line 'no colon'"),
        (head("Content-Length : 5"), "its answer has the header line 'Content-Length : 5'"),
        (head(" folded: first"), "its answer has the header line ' folded: first'"),
        (head(": x"), "its answer has the header line ': x'"),
        (head("a: x\x00"), "its answer has the header line 'a: x\\x00'"),
        (head("a: x\rb: y"), "its answer has the header line 'a: x\\rb: y'"),
    ],
)
def test_an_invalid_head_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        read_head(data)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("method", "status", "lines", "kind"),
    [
        ("GET", 200, ["Content-Length: 5"], Length),
        ("GET", 200, ["Content-Length: 5", "content-length: 5"], Length),
        ("GET", 200, ["Transfer-Encoding: Chunked"], Chunked),
        ("GET", 200, [], UntilClose),
        ("HEAD", 200, ["Content-Length: 5"], Length),
        ("HEAD", 200, ["Transfer-Encoding: chunked"], Length),
        ("GET", 204, [], Length),
        ("GET", 304, ["Content-Length: 5"], Length),
    ],
)
def test_how_a_body_is_framed(method: str, status: int, lines: list[str], kind: type) -> None:
    found = framing(read_head(head(*lines, status=f"HTTP/1.1 {status} x")), method)
    assert type(found) is kind
    assert found.ended is (method == "HEAD" or status != 200)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["Content-Length: 5", "Content-Length: 6"], "its answer has the content-length '5, 6'"),
        (["Content-Length: +5"], "its answer has the content-length '+5'"),
        (["Content-Length: 5x"], "its answer has the content-length '5x'"),
        (["Content-Length: -1"], "its answer has the content-length '-1'"),
        (["Content-Length: ٥"], "its answer has the content-length '٥'"),
        (["Content-Length:"], "its answer has the content-length ''"),
        (["Transfer-Encoding: gzip, chunked"], "its answer has the transfer-encoding 'gzip, chunked'"),
        (["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], "transfer-encoding 'chunked, chunked'"),
        (["Transfer-Encoding: xchunked"], "its answer has the transfer-encoding 'xchunked'"),
        (
            ["Transfer-Encoding: chunked", "Content-Length: 5"],
            "its answer has both a transfer-encoding and a content-length",
        ),
    ],
)
def test_headers_that_say_different_things_are_refused(lines: list[str], message: str) -> None:
    data = "\r\n".join(["HTTP/1.1 200 OK", *lines, "", ""]).encode()
    for method in ("GET", "HEAD"):
        with pytest.raises(RemoteProtocolError) as caught:
            framing(read_head(data), method)
        assert str(caught.value).endswith(message)


def test_a_request_is_a_line_and_its_headers() -> None:
    data = request_head(b"GET", b"/a?b", [(b"Host", b"x"), (b"X-Empty", b"")])
    assert data == b"GET /a?b HTTP/1.1\r\nHost: x\r\nX-Empty: \r\n\r\n"


@pytest.mark.parametrize(
    ("method", "target", "name", "value"),
    [
        ("GET /x", "/", "a", "b"),
        ("GET", "/ HTTP/1.1\r\nx: y", "a", "b"),
        ("GET", "", "a", "b"),
        ("GET", "/", "a b", "c"),
        ("GET", "/", "", "c"),
        ("GET", "/", "a", "b\r\nc: d"),
        ("GET", "/", "a", "b\nc"),
        ("GET", "/", "a", "ü"),
    ],
)
def test_a_request_that_would_break_out_of_its_line_is_not_made(
    method: str, target: str, name: str, value: str
) -> None:
    with pytest.raises(LocalProtocolError):
        request_head(method.encode(), target.encode(), [(name.encode(), value.encode())])
