"""Read the body of an answer: decompress it, limit its size in memory, and check that it ended properly.

svcctl asks for no compression, but some proxies compress nevertheless. Bodies in gzip and deflate are decompressed in
small pieces, so that a small block cannot fill the memory. Any other compression is refused.

Reading raises a RequestError if a body cannot be read to its end. The RequestError is a DecodingError if the
compression is damaged. A body without a length and without chunks ends when its connection ends. If such a connection
did not end properly, UnprovenEnd is raised after the last byte. A TLS connection ends properly only with the message
close_notify (RFC 9112, section 8).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from svcctl.api.addresses import is_closed_without_notify
from svcctl.api.wire.failures import DecodingError, ReadError
from svcctl.errors import Unavailable, UnprovenEnd
from svcctl.io.compression import DamagedCompression, compressions, gunzip, inflate
from svcctl.words import size_text

if TYPE_CHECKING:
    from svcctl.api.wire.messages import Response

BROKEN = "the result is incomplete: the connection broke in the middle"
MAX_WHOLE = 64 * 1000 * 1000
"""The maximum size, in bytes, of an answer that is read into memory as a whole. Streams of rows have no limit."""


def pieces(response: Response) -> Iterator[bytes]:
    """Yield the decompressed body, in pieces as they arrive.

    Raises Unavailable for a compression that svcctl cannot read.
    """
    body = _received(response)
    codings = compressions(response.headers.get("content-encoding", ""))
    if not codings or _has_no_body(response):
        return body
    for name in reversed(codings):
        if name not in _DECODERS:
            response.close()
            raise Unavailable(
                f"the service compressed its answer with {name}, although svcctl asks for no compression",
                hint="turn compression off in the service, or in the proxy in front of it",
            )
        body = _explained(_DECODERS[name](body), name)
    return body


def is_json(body: bytes) -> bool:
    """Return whether a body is a complete JSON object or array.

    A number that was cut off may still be valid JSON, so the result is False for numbers.
    """
    try:
        return isinstance(json.loads(body), (dict, list))
    except (ValueError, RecursionError):
        return False


def whole(response: Response, most: int = MAX_WHOLE, *, marks_end: Callable[[bytes], bool] = is_json) -> bytes:
    """Read the whole body, and close the answer. Raises Unavailable if the body has more than `most` bytes.

    If the connection did not end properly, the body may be cut off. Such a body counts as complete if its content
    shows that nothing is missing (`marks_end(body)`), or if the request's function `accepts` returns True.
    """
    body = bytearray()
    cause = None
    try:
        read_into(body, response, most + 1)
    except UnprovenEnd as error:
        if not marks_end(bytes(body)) and not response.request.accepts(error):
            cause = error.__cause__
    if cause is not None:
        raise cause
    if len(body) <= most:
        return bytes(body)
    size = f"more than {size_text(most)}" if (length := length_of(response)) is None else size_text(length)
    raise Unavailable(
        f"the service's answer has {size}, but at most {size_text(most)} can be read into memory",
        reason="answer-too-large",
    )


def read_into(body: bytearray, response: Response, size: int) -> None:
    """Read at most `size` bytes of an answer into `body`, and close the answer.

    If an error is raised, `body` contains the bytes that arrived before the error.
    """
    try:
        for piece in pieces(response):
            body += piece[: size - len(body)]
            if len(body) == size:
                break
    finally:
        response.close()


def _received(response: Response) -> Iterator[bytes]:
    """Yield the bytes of an answer's body as they arrive, still compressed.

    Raises UnprovenEnd if the body may have been cut off at the end of the connection.
    """
    try:
        yield from response.blocks
    except ReadError as error:
        if "content-length" in response.headers or "transfer-encoding" in response.headers:
            raise
        raise _unproven(error) from error


def _unproven(error: Exception) -> UnprovenEnd:
    if not is_closed_without_notify(error):
        return UnprovenEnd(BROKEN)
    unproven = UnprovenEnd(
        "the result may be incomplete: the service closed the connection without TLS close_notify",
        hint="if it never sends that, set tls_close to any in the profile, or ask for json in queries",
    )
    unproven.closed = True
    return unproven


def length_of(response: Response) -> int | None:
    """Return the number of bytes of the body.

    Returns None if the head of the answer does not state the number, or if the body is compressed.
    """
    length = response.headers.get("content-length", "")
    return (
        int(length) if length.isdecimal() and not compressions(response.headers.get("content-encoding", "")) else None
    )


def _has_no_body(response: Response) -> bool:
    """Return whether the answer has no body. Its header content-encoding then has no meaning."""
    head = response.request.method == "HEAD" or response.status_code in (204, 304)
    return head or response.headers.get("content-length") == "0"


def _explained(body: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Yield a decompressed body. Raises DecodingError if the compression is damaged.

    `name` is the compression's name.
    """
    try:
        yield from body
    except DamagedCompression as error:
        raise DecodingError(f"its {name} compression {error}") from None


_DECODERS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    "gzip": gunzip,
    "x-gzip": gunzip,
    "deflate": inflate,
}
