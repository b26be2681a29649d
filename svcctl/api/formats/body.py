"""The body of an answer: decompressed, and never larger in memory than a limit. Every body is read here.

svcctl asks for no compression, but proxies compress all the same. gzip and deflate mark their own end, so a cut is
noticed however the answer is framed; they are decompressed in small pieces, so that a small block cannot fill the
memory. Any other compression is refused: its bytes would be taken for data.

A body that cannot be read to its end raises an httpx.RequestError: a DecodingError if its compression is damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from svcctl.errors import Unavailable
from svcctl.io.compression import Damaged, gunzipped, inflated
from svcctl.words import size_text

if TYPE_CHECKING:
    import httpx

MAX_WHOLE = 64 * 1000 * 1000
"""The most bytes of an answer that is held whole. Streams of rows have no limit."""


def pieces(response: httpx.Response) -> Iterator[bytes]:
    """The body as it comes, decompressed. Unavailable for a compression that svcctl does not read."""
    if response.is_stream_consumed:  # a transport that reads the whole answer has decompressed it, too
        return iter((response.content,))
    body = response.iter_raw()
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


def whole(response: httpx.Response, most: int = MAX_WHOLE) -> bytes:
    """Read the whole body and close the answer. Unavailable when the body has more than `most` bytes."""
    body = beginning(response, most + 1)
    if len(body) <= most:
        return body
    announced = response.headers.get("content-length", "")
    exact = announced.isdecimal() and "content-encoding" not in response.headers
    size = size_text(int(announced)) if exact else f"more than {size_text(most)}"
    raise Unavailable(
        f"the service's answer has {size}, and at most {size_text(most)} are read as a whole",
        hint="'svcctl api' passes on an answer of any size: svcctl api GET /search/jobs -o jobs.json",
    )


def beginning(response: httpx.Response, size: int) -> bytes:
    """Read the first bytes of the body, at most `size`, and close the answer."""
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


def _explained(body: Iterator[bytes], name: str) -> Iterator[bytes]:
    """The same body; damaged compression raises a DecodingError."""
    try:
        yield from body
    except Damaged as error:
        import httpx  # the readers of formats, which import this module, need none of it

        raise httpx.DecodingError(f"its {name} compression {error}") from None


_DECODERS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    "gzip": gunzipped,
    "x-gzip": gunzipped,
    "deflate": inflated,
}
