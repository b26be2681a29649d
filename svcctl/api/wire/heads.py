"""The heads of HTTP messages: write a request's head, read an answer's head, and find the framing of its body.

An ambiguous head is refused. Otherwise, part of a body could be mistaken for the next answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from svcctl.api.wire.bodies import Chunked, Framing, Length, UntilClose
from svcctl.api.wire.failures import LocalProtocolError, RemoteProtocolError
from svcctl.api.wire.messages import Headers

MAX_HEAD = 100 * 1024
"""The maximum number of bytes of a head, and of the trailers after a body."""

_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_NAME = re.compile(_TOKEN.encode())
_VALUE = re.compile(rb"[\t\x20-\x7e]*")
_STATUS = re.compile(r"HTTP/1\.([0-9]) ([1-9][0-9]{2})(?: .*)?")
_FIELD = re.compile(rf"({_TOKEN}):([^\x00\r]*)")
_LINE_END = re.compile(r"\r?\n")
_CONTENT_LENGTH = re.compile(r"([0-9]{1,18})(?:[ \t]*,[ \t]*\1)*")
_EMPTY = frozenset({204, 304})


class Head(NamedTuple):
    """The head of an answer: its HTTP status and its headers."""

    status: int
    headers: Headers
    lasting: bool
    """Whether the connection may be used again after the body."""


def is_header_name(text: str) -> bool:
    return re.fullmatch(_TOKEN, text) is not None


def check_header(name: str, value: str) -> None:
    """Raise LocalProtocolError for a header that cannot be sent. The message does not contain the value."""
    if not is_header_name(name):
        raise LocalProtocolError("the name of a header is not one word of ASCII")
    if not value.isascii() or not _VALUE.fullmatch(value.encode()):
        raise LocalProtocolError(f"the header {name} is not one line of printable ASCII")


def request_head(method: bytes, target: bytes, fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the head of a request as bytes. Raises LocalProtocolError for a part that contains a line break."""
    if not _NAME.fullmatch(method) or not target or not _VALUE.fullmatch(target) or b" " in target:
        raise LocalProtocolError("the request line is not valid")
    lines = [b"%b %b HTTP/1.1" % (method, target)]
    for name, value in fields:
        check_header(name.decode("latin-1"), value.decode("latin-1"))
        lines.append(b"%b: %b" % (name, value))
    return b"\r\n".join([*lines, b"", b""])


def read_head(data: bytes) -> Head:
    """Parse the head of an answer, from its first byte to the empty line.

    Raises RemoteProtocolError if the head is invalid.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    first, *lines = _LINE_END.split(text.rstrip("\r\n"))
    status = _STATUS.fullmatch(first)
    if status is None:
        raise RemoteProtocolError(f"it does not speak HTTP/1.1, its answer begins with {first[:40]!r}")
    headers = Headers(_fields(lines))
    tokens = {token.strip().lower() for token in headers.get("connection", "").split(",")}
    return Head(int(status[2]), headers, status[1] != "0" and "close" not in tokens)


def framing(head: Head, method: str) -> Framing:
    """Return the framing of the body that follows a head. `method` is the method of the request.

    Raises RemoteProtocolError if the headers about the framing are invalid or contradict each other.
    """
    coding, length = head.headers.get("transfer-encoding"), head.headers.get("content-length")
    if coding is not None and length is not None:
        raise RemoteProtocolError("its answer has both a transfer-encoding and a content-length")
    if coding is not None and coding.lower() != "chunked":
        raise RemoteProtocolError(f"its answer has the transfer-encoding {coding[:40]!r}")
    if length is not None and not _CONTENT_LENGTH.fullmatch(length):
        raise RemoteProtocolError(f"its answer has the content-length {length[:40]!r}")
    if method == "HEAD" or head.status in _EMPTY:
        return Length(0)
    if coding is not None:
        return Chunked(MAX_HEAD)
    return UntilClose() if length is None else Length(int(length.partition(",")[0]))


def _fields(lines: Sequence[str]) -> list[tuple[str, str]]:
    fields: list[tuple[str, str]] = []
    for line in lines:
        if line[:1] in (" ", "\t") and fields:  # a long value may continue in the next line
            name, value = fields[-1]
            fields[-1] = name, f"{value} {line.strip()}"
            continue
        field = _FIELD.fullmatch(line)
        if field is None:
            raise RemoteProtocolError(f"its answer has the header line {line[:40]!r}")
        fields.append((field[1], field[2].strip(" \t")))
    return fields
