"""Compression of files and HTTP answers. Data is read in pieces of limited size, and its end is always checked.

Files are written as `.gz` or `.zst`. Answers may be compressed with gzip or deflate. All these formats show where the
data ends, so data that was cut off is noticed. All formats except raw deflate contain a checksum, so damaged data is
noticed, too.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

PIECE_BYTES = 64 * 1024
"""The maximum number of bytes in a piece of decompressed data.

The zstd library accepts no limit, and its pieces have up to a few MiB.
"""

_GZIP, _ZLIB, _DEFLATE = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
"""The value of zlib's parameter `wbits` for each format."""
_ZSTD_PIECE = 512
"""The maximum number of compressed bytes that are decompressed at once, in zstd.

The number is low because four compressed bytes can represent a block of 128 KiB.
"""


_UNCOMPRESSED = re.compile(
    r'|identity|none|binary|[78]bit|(?:charset=)?"?(?:utf-?(?:8|16|32)|(?:us-)?ascii|latin-?1|iso-?8859-\d+|windows-\d+)"?'
    r"|[\w.+-]+/[\w.+-]+(?:;.*)?"
)
"""A regular expression for values of the header Content-Encoding that name no compression.

Many servers send a charset or a media type in this header.
"""


def compressions(header: str) -> list[str]:
    """Return the compressions that a Content-Encoding header names, in the order in which they were applied."""
    names = [name.strip() for name in header.lower().split(",")]
    return [name for name in names if not _UNCOMPRESSED.fullmatch(name)]


class DamagedCompression(Exception):
    """Compressed data that cannot be decompressed completely.

    The message is the end of a sentence, such as `is damaged`.
    """

    @classmethod
    def cut(cls) -> DamagedCompression:
        return cls("ends in the middle")

    @classmethod
    def broken(cls) -> DamagedCompression:
        return cls("is damaged")


class ByteSink(Protocol):
    """A destination for bytes. `write` accepts all bytes or raises an error."""

    def write(self, data: bytes | memoryview, /) -> object: ...


class Compressor(Protocol):
    """A compressor of bytes.

    `flush` returns the rest of the compressed bytes, and ends a member (a complete section) of the file.
    """

    def compress(self, data: bytes | memoryview, /) -> bytes: ...
    def flush(self) -> bytes: ...


def _zstd() -> Compressor:
    from svcctl.io import extras  # imported here because it loads importlib.util, which is rarely needed

    extras.need("zstd", "compression as .zst")
    import zstandard

    compressor: Compressor = zstandard.ZstdCompressor(level=3, write_checksum=True).compressobj()
    return compressor


COMPRESSIONS: dict[str, Callable[[], Compressor]] = {
    ".gz": lambda: zlib.compressobj(6, zlib.DEFLATED, _GZIP),
    ".zst": _zstd,
}
"""The compressors, by the ending of a file's name.

The compressors write no time into the file, so equal data gives equal files.
"""


class Compressed:
    """A sink that compresses bytes and writes them to another sink. `end` writes the compressed bytes that remain."""

    def __init__(self, sink: ByteSink, compressor: Compressor) -> None:
        self._sink = sink
        self._compressor = compressor

    def write(self, data: bytes | memoryview, /) -> int:
        if fewer := self._compressor.compress(data):
            self._sink.write(fewer)
        return len(data)

    def end(self) -> None:
        self._sink.write(self._compressor.flush())


def check(ending: str, data: Iterable[bytes]) -> None:
    """Check a compressed file by reading all of it. Raises DamagedCompression if the file is not complete and intact.

    `ending` is the ending of the file's name. If the ending is neither `.gz` nor `.zst`, nothing is read.
    """
    if reader := _READERS.get(ending):
        for _ in reader(data):
            pass


def gunzip(data: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the content of a gzip file of one or more members.

    The checksum and the length of each member are checked.
    """
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
        raise DamagedCompression.cut()


def inflate(data: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the content of a deflate stream, with or without zlib's header and checksum.

    HTTP requires the header and the checksum, but some servers send raw deflate.
    """
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
            raise DamagedCompression.broken()
        yield from _inflated(stream, pending)
        pending = b""
        if stream.unused_data:
            raise DamagedCompression.broken()
    if stream is None or not stream.eof:
        raise DamagedCompression.cut()


def _unzstd(data: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the content of a zstd file of one or more frames."""
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
        raise DamagedCompression.broken() from None
    if not (begun and frame.eof):
        raise DamagedCompression.cut()


_READERS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {".gz": gunzip, ".zst": _unzstd}


def _inflated(stream: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """Yield the decompressed bytes, in pieces of at most PIECE_BYTES."""
    text = b""
    try:
        # After a full piece, zlib may hold more output. After the end of the stream, zlib leaves input unconsumed.
        while (data or len(text) == PIECE_BYTES) and not stream.eof:
            if text := stream.decompress(data, PIECE_BYTES):
                yield text
            data = stream.unconsumed_tail
    except zlib.error:
        raise DamagedCompression.broken() from None


def _in_pieces(data: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yield the bytes of `data` in pieces of at most `size` bytes.

    If a larger piece were decompressed, the rest of the piece would be copied again and again.
    """
    return (piece[at : at + size] for piece in data for at in range(0, len(piece), size))
