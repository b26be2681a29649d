"""The body of an answer: decompressed, and never larger in memory than a limit. Whoever reads a body reads it here.

svcctl asks for no compression, but proxies compress all the same. gzip and deflate say themselves where they end, so a
cut is noticed however the answer is framed; they are decompressed in pieces of at most PIECE bytes, whatever a piece of
the wire would grow to. Any other compression is refused: its bytes would pass for data.

A body that cannot be read to its end raises httpx's own errors: those of the network, or DecodingError.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator

import httpx

from svcctl.errors import Unavailable

PIECE = 64 * 1024
"""Bytes of one piece of a decompressed body at most."""
MAX_WHOLE = 64 * 1000 * 1000
"""Bytes of an answer that is held whole at most. Streams of rows have no limit."""

_GZIP, _ZLIB, _DEFLATE = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
"""What zlib takes for each format as its number of bits."""


def pieces(response: httpx.Response) -> Iterator[bytes]:
    """The body as it comes, decompressed. Unavailable for a compression that svcctl does not read."""
    if response.is_stream_consumed:  # a transport that reads the whole answer has decompressed it, too
        return iter((response.content,))
    body: Iterator[bytes] = response.iter_raw()
    names = response.headers.get("content-encoding", "").lower().split(",")
    codings = [name.strip() for name in names if name.strip() not in ("", "identity")]
    if not codings or _has_no_body(response):
        return body
    for name in reversed(codings):
        if name not in _DECODERS:
            response.close()
            raise Unavailable(
                f"the service compressed its answer with {name}, although svcctl asks for no compression",
                hint="turn compression off in the service, or in the proxy in front of it",
            )
        body = _explained(_DECODERS[name](body), name, response)
    return body


def whole(response: httpx.Response) -> bytes:
    """The whole body, and closes it. Unavailable when it has more than MAX_WHOLE bytes."""
    body = beginning(response, MAX_WHOLE + 1)
    if len(body) <= MAX_WHOLE:
        return body
    announced = response.headers.get("content-length", "")
    exact = announced.isdecimal() and "content-encoding" not in response.headers
    size = f"{int(announced) / 1e6:.0f}" if exact else f"more than {MAX_WHOLE / 1e6:.0f}"
    raise Unavailable(
        f"the service's answer has {size} MB, and at most {MAX_WHOLE / 1e6:.0f} MB are read as a whole",
        hint="'svcctl api' passes on an answer of any size: svcctl api GET /search/jobs -o jobs.json",
    )


def beginning(response: httpx.Response, size: int) -> bytes:
    """The first bytes of the body, at most `size`; closes it."""
    body = bytearray()
    try:
        for piece in pieces(response):
            body += piece[: size - len(body)]
            if len(body) == size:
                break
    finally:
        response.close()
    return bytes(body)


def _has_no_body(response: httpx.Response) -> bool:
    """Whether the answer has headers only, whatever its content-encoding is."""
    head = response.request.method == "HEAD" or response.status_code in (204, 304)
    return head or response.headers.get("content-length") == "0"


def _explained(body: Iterator[bytes], name: str, response: httpx.Response) -> Iterator[bytes]:
    """The same body; an error of zlib becomes one of httpx."""
    try:
        yield from body
    except EOFError:
        raise httpx.DecodingError(f"its {name} compression ends in the middle", request=response.request) from None
    except zlib.error:
        raise httpx.DecodingError(f"its {name} compression is damaged", request=response.request) from None


def _gunzipped(body: Iterable[bytes]) -> Iterator[bytes]:
    """The text of a gzip file, which may have several members; zlib checks the sum and the length of each."""
    member = zlib.decompressobj(_GZIP)
    begun = False
    for data in _in_pieces(body):
        rest = data
        while rest:
            if member.eof:
                member = zlib.decompressobj(_GZIP)
            begun = True
            yield from _inflated(member, rest)
            rest = member.unused_data
    if not (begun and member.eof):
        raise EOFError


def _inflated_body(body: Iterable[bytes]) -> Iterator[bytes]:
    """The text of a deflate body: with zlib's head and sum as the standard has it, or without, as some servers do."""
    stream = None
    held = b""
    for data in _in_pieces(body):
        held += data
        if stream is None:
            if len(held) < 2:
                continue
            stream = zlib.decompressobj(_ZLIB if held[0] & 15 == 8 and int.from_bytes(held[:2]) % 31 == 0 else _DEFLATE)
        elif stream.eof:
            raise zlib.error("something follows")
        yield from _inflated(stream, held)
        held = b""
        if stream.unused_data:
            raise zlib.error("something follows")
    if stream is None or not stream.eof:
        raise EOFError


def _inflated(stream: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """What some bytes decompress to, in pieces of at most PIECE bytes."""
    text = b""
    while data or len(text) == PIECE:  # a full piece may not have been all that the bytes before it hold
        if text := stream.decompress(data, PIECE):
            yield text
        data = stream.unconsumed_tail


def _in_pieces(body: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces that are cheap to copy while they are decompressed bit by bit."""
    return (data[at : at + PIECE] for data in body for at in range(0, len(data), PIECE))


_DECODERS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    "gzip": _gunzipped,
    "x-gzip": _gunzipped,
    "deflate": _inflated_body,
}
