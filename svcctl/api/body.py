"""The body of an answer: decompressed, and never larger in memory than a limit. Whoever reads a body reads it here.

svcctl asks for no compression, but proxies compress all the same. gzip and deflate say themselves where they end, so a
cut is noticed however the answer is framed; they are decompressed in small pieces, whatever a piece of the wire would
grow to. Any other compression is refused: its bytes would pass for data.

A body that cannot be read to its end raises WireError: the connection broke, or DecodingError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from svcctl.api.wire.errors import DecodingError
from svcctl.api.wire.messages import Response
from svcctl.errors import Unavailable
from svcctl.io.compression import Damaged, gunzipped, inflated

MAX_WHOLE = 64 * 1000 * 1000
"""Bytes of an answer that is held whole at most. Streams of rows have no limit."""


def pieces(response: Response) -> Iterator[bytes]:
    """The body as it comes, decompressed. Unavailable for a compression that svcctl does not read."""
    body: Iterator[bytes] = iter(response)
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
        body = _explained(_DECODERS[name](body), name)
    return body


def whole(response: Response, most: int = MAX_WHOLE) -> bytes:
    """The whole body, and closes it. Unavailable when it has more than `most` bytes."""
    body = beginning(response, most + 1)
    if len(body) <= most:
        return body
    announced = response.headers.get("content-length", "")
    exact = announced.isdecimal() and "content-encoding" not in response.headers
    size = f"{int(announced) / 1e6:.0f}" if exact else f"more than {most / 1e6:.0f}"
    raise Unavailable(
        f"the service's answer has {size} MB, and at most {most / 1e6:.0f} MB are read as a whole",
        hint="'svcctl api' passes on an answer of any size: svcctl api GET /search/jobs -o jobs.json",
    )


def beginning(response: Response, size: int) -> bytes:
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


def _has_no_body(response: Response) -> bool:
    """Whether the answer has headers only, whatever its content-encoding is."""
    head = response.method == "HEAD" or response.status in (204, 304)
    return head or response.headers.get("content-length") == "0"


def _explained(body: Iterator[bytes], name: str) -> Iterator[bytes]:
    """The same body; what is wrong with its compression becomes a DecodingError."""
    try:
        yield from body
    except Damaged as error:
        raise DecodingError(f"its {name} compression {error}") from None


_DECODERS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    "gzip": gunzipped,
    "x-gzip": gunzipped,
    "deflate": inflated,
}
