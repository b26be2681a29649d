"""Unpacks files (gzip, zstd), and checks that a file is complete and not damaged.

If a packed file is damaged, DuckDB may read the part before the damage without an error. So this module unpacks the
file, and compares the check sum at the end of the file.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import pyarrow as pa

from svcctl.errors import UsageError
from svcctl.service.loading.limits import LoadWatch

CODECS = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    **{bytes((first, 0x2A, 0x4D, 0x18)): "zstd" for first in range(0x50, 0x60)},
}
"""The codecs of packed files, by the first bytes of the file. The names of the codecs are those of Arrow.

A zstd file may begin with a frame that has no data (RFC 8878).
"""
ENDINGS = (".gz", ".zst")
BLOCK_BYTES = 1 << 20


class _Unpacker(str):
    """The name of a program that unpacks a file to standard output."""


_UNREAD = (
    (0, b"BZh", "packed with bzip2", _Unpacker("bzcat")),
    (0, b"\xfd7zXZ\x00", "packed with xz", _Unpacker("xzcat")),
    *(
        (0, magic, "a spreadsheet or another zip archive", "save it as csv, or unpack it")
        for magic in (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
    ),
    (
        0,
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "a spreadsheet or another document of an office program",
        "save it as csv",
    ),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it"),
    (0, b"Rar!\x1a\x07", "a rar archive", "unpack it"),
    (0, b"\x04\x22\x4d\x18", "packed with lz4", _Unpacker("lz4cat")),
    (0, b"\x1f\x9d", "packed with compress", _Unpacker("zcat")),
    (0, b"LZIP", "packed with lzip", _Unpacker("lzip -dc")),
    (0, b"\x1f\x8b", "packed twice", _Unpacker("zcat")),
    (0, b"\x28\xb5\x2f\xfd", "packed twice", _Unpacker("zstdcat")),
    (0, b"ORC", "an ORC file", "convert it to parquet"),
    (0, b"Obj\x01", "an Avro file", "convert it to parquet"),
    (0, b"ARROW1", "an Arrow file", "convert it to parquet"),
    (0, b"SQLite format 3\0", "a database of SQLite", "export its table as csv"),
    (257, b"ustar", "a tar archive", "unpack it with 'tar -xf FILE', and load the files in it"),
)
"""The kinds of file that cannot be loaded directly.

Each row has an offset, the bytes that such a file has at this offset, and the name of the kind. The last item of a row
is either a hint for the user or the name of a program that unpacks the file.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """A file to load. `name` is the file's name in messages."""

    path: Path
    name: str


def codec(source: Source) -> str | None:
    """Return the codec of a packed file, or None for any other file. Raises UsageError if the file cannot be read."""
    try:
        if not stat.S_ISREG(source.path.stat().st_mode):
            raise UsageError(f"cannot read {source.name}: it is not a regular file")
        with source.path.open("rb") as file:
            head = file.read(4)
    except OSError as error:
        raise UsageError(f"cannot read {source.name}: {error.strerror}") from None
    return next((name for magic, name in CODECS.items() if head.startswith(magic)), None)


class Contents(io.RawIOBase):
    """The bytes of a file, unpacked or as stored. Each read checks whether the load may continue.

    After each read, `note` is called with the total number of bytes that were read.
    """

    def __init__(self, file: IO[bytes], watch: LoadWatch, note: Callable[[int], None] | None = None) -> None:
        super().__init__()
        self._file = file
        self._watch = watch
        self._note = note
        self._size = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        self._watch.check()
        data = self._file.read(size)
        self._size += len(data)
        if self._note:
            self._note(self._size)
        return data


@contextmanager
def opened(source: Source, watch: LoadWatch) -> Iterator[Contents]:
    """Open a file, and yield its unpacked bytes.

    Raises UsageError when the file is cut off or its check sum is wrong, and at the end of the block if another program
    has made the file shorter. `watch` raises an error when the load reaches a limit or loses its client.
    """
    name = codec(source)
    with source.path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        stored = Contents(file, watch)  # packed bytes are watched, too, because they may unpack to no bytes
        if name is None:
            yield stored
            if os.fstat(file.fileno()).st_size < size:
                raise UsageError(
                    f"{source.name} became shorter while it was read",
                    hint="nothing of it was loaded; load it again, or load a copy of it",
                )
            return
        try:
            with pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), name) as unpacked:
                yield Contents(unpacked, watch, partial(watch.unpacked, source.path, source.name))
        except OSError as error:
            if error.errno is not None:
                raise UsageError(f"cannot read {source.name}: {error.strerror}") from None
            raise damaged(source, str(error)) from None


def require_read(source: Source, head: bytes) -> None:
    """Raise UsageError if a file has a kind that cannot be loaded, such as zip. `head` has the file's first bytes."""
    for place, magic, what, remedy in _UNREAD:
        if head.startswith(magic, place):
            unread = f"{source.name} is {what}, which cannot be loaded directly"
            if isinstance(remedy, _Unpacker):
                raise UsageError(unread, reason="packed-file", data={"unpacker": str(remedy)})
            raise UsageError(unread, hint=remedy)


def require_end(source: Source, contents: Path, bracket: bytes) -> None:
    """Raise UsageError if a file does not end with `bracket`. Blanks may follow the bracket.

    DuckDB would accept a file that is cut off, such as `[{},`.
    """
    with contents.open("rb") as file:
        file.seek(max(0, contents.stat().st_size - BLOCK_BYTES))
        if not file.read().rstrip().endswith(bracket):
            raise damaged(source, f"it does not end with {bracket.decode()}")


def damaged(source: Source, why: str) -> UsageError:
    """Return the error for a file that is damaged or not complete."""
    return UsageError(
        f"{source.name} is damaged or cut off: {why}", hint="nothing of it was loaded; copy or download the file again"
    )
