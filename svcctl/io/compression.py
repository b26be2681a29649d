"""Compression: bytes are compressed, decompressed in bounded pieces and checked to their end here and nowhere else.

Files are written as `.gz` or `.zst`; answers may come as gzip or deflate. Each of these formats marks its own end, and
all but a bare deflate hold a checksum, so cut or damaged data is noticed.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

PIECE_BYTES = 64 * 1024
"""The most bytes of a piece of decompressed data; zstd, which takes no such limit, gives up to a few MiB."""

_GZIP, _ZLIB, _DEFLATE = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
"""The number of window bits by which zlib knows each format."""
_ZSTD_PIECE = 512
"""Bytes of zstd that are decompressed at once: every four may hold a block, which is 128 KiB at most."""


_UNCOMPRESSED = re.compile(
    r'|identity|none|binary|[78]bit|(?:charset=)?"?(?:utf-?(?:8|16|32)|(?:us-)?ascii|latin-?1|iso-?8859-\d+|windows-\d+)"?'
)
"""Names in Content-Encoding that change no byte; many senders put the charset of a text there."""


def compressions(header: str) -> list[str]:
    """The compressions that a Content-Encoding header names, in the order in which they were made."""
    names = [name.strip() for name in header.lower().split(",")]
    return [name for name in names if not _UNCOMPRESSED.fullmatch(name)]


class Damaged(Exception):
    """Compressed data that cannot be decompressed to its end; the message ends a sentence about it: `is damaged`."""

    @classmethod
    def cut(cls) -> Damaged:
        return cls("ends in the middle")

    @classmethod
    def broken(cls) -> Damaged:
        return cls("is damaged")


class Sink(Protocol):
    """Where bytes go: `write` takes all of them or fails."""

    def write(self, data: bytes | memoryview, /) -> object: ...


class Compressor(Protocol):
    """Turns bytes into fewer bytes; `flush` ends a member of the file."""

    def compress(self, data: bytes | memoryview, /) -> bytes: ...
    def flush(self) -> bytes: ...


def _zstd() -> Compressor:
    from svcctl.io import extras  # it loads what looks for packages, which is rarely needed

    extras.need("zstd", "compression as .zst")
    import zstandard

    compressor: Compressor = zstandard.ZstdCompressor(level=3, write_checksum=True).compressobj()
    return compressor


COMPRESSIONS: dict[str, Callable[[], Compressor]] = {
    ".gz": lambda: zlib.compressobj(6, zlib.DEFLATED, _GZIP),
    ".zst": _zstd,
}
"""The compressions by the ending of a file's name. Neither writes a time into the file, so reruns are identical."""


class Compressed:
    """A sink that compresses what it passes on to another; `end` writes what is left."""

    def __init__(self, sink: Sink, compressor: Compressor) -> None:
        self._sink = sink
        self._compressor = compressor

    def write(self, data: bytes | memoryview, /) -> int:
        if fewer := self._compressor.compress(data):
            self._sink.write(fewer)
        return len(data)

    def end(self) -> None:
        self._sink.write(self._compressor.flush())


def check(ending: str, data: Iterable[bytes]) -> None:
    """Read a file with this ending through. Damaged unless all of it is whole; other endings need no check."""
    if reader := _READERS.get(ending):
        for _ in reader(data):
            pass


def gunzipped(data: Iterable[bytes]) -> Iterator[bytes]:
    """The content of a gzip file of one or more members; zlib checks the sum and the length of each member."""
    member = zlib.decompressobj(_GZIP)
    begun = False
    for piece in _in_pieces(data, PIECE_BYTES):
        rest = piece
        while rest:
            if member.eof:
                member = zlib.decompressobj(_GZIP)
            begun = True
            yield from _inflated(member, rest)
            rest = member.unused_data
    if not (begun and member.eof):
        raise Damaged.cut()


def inflated(data: Iterable[bytes]) -> Iterator[bytes]:
    """The content of a deflate stream, with zlib's head and sum as HTTP has it, or without, as some servers send it."""
    stream = None
    pending = b""
    for piece in _in_pieces(data, PIECE_BYTES):
        pending += piece
        if stream is None:
            if len(pending) < 2:
                continue
            stream = zlib.decompressobj(
                _ZLIB if pending[0] & 15 == 8 and int.from_bytes(pending[:2]) % 31 == 0 else _DEFLATE
            )
        elif stream.eof:
            raise Damaged.broken()
        yield from _inflated(stream, pending)
        pending = b""
        if stream.unused_data:
            raise Damaged.broken()
    if stream is None or not stream.eof:
        raise Damaged.cut()


def _unzstd(data: Iterable[bytes]) -> Iterator[bytes]:
    """The content of a zstd file of one or more frames."""
    import zstandard

    decompressor = zstandard.ZstdDecompressor()
    frame = decompressor.decompressobj()
    begun = False
    try:
        for piece in _in_pieces(data, _ZSTD_PIECE):
            rest = piece
            while rest:
                if frame.eof:
                    frame = decompressor.decompressobj()
                begun = True
                yield frame.decompress(rest)
                rest = frame.unused_data
    except zstandard.ZstdError:
        raise Damaged.broken() from None
    if not (begun and frame.eof):
        raise Damaged.cut()


_READERS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {".gz": gunzipped, ".zst": _unzstd}


def _inflated(stream: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """The decompressed bytes, in pieces of at most PIECE_BYTES."""
    text = b""
    try:
        # After a full piece, zlib may hold more output of the bytes it was given. After the end, it keeps those bytes.
        while (data or len(text) == PIECE_BYTES) and not stream.eof:
            if text := stream.decompress(data, PIECE_BYTES):
                yield text
            data = stream.unconsumed_tail
    except zlib.error:
        raise Damaged.broken() from None


def _in_pieces(data: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The same bytes in pieces small enough to be copied cheaply again and again during decompression."""
    return (piece[at : at + size] for piece in data for at in range(0, len(piece), size))
