"""Unpacks files (gzip, zstd), and checks that a file is complete and not damaged.

DuckDB reads a file that is cut off or damaged as far as it can, without an error. So before a packed file is loaded,
all of it is read once, up to the check sum at its end.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from svcctl.errors import UsageError

CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
"""The codec of a packed file, as Arrow and DuckDB name it, by the first bytes of the file."""
ENDINGS = (".gz", ".zst")
BLOCK = 1 << 20
_UNREAD = (
    (0, b"BZh", "packed with bzip2", "unpack it: bzcat FILE | svcctl service load - -t …"),
    (0, b"\xfd7zXZ\x00", "packed with xz", "unpack it: xzcat FILE | svcctl service load - -t …"),
    (0, b"PK\x03\x04", "a spreadsheet or another zip archive", "save it as csv, or unpack it"),
    (257, b"ustar", "a tar archive", "unpack it with 'tar -xf FILE', and load the files in it"),
)
"""Files that cannot be loaded as they are: an offset and the bytes there, the kind of file, and the remedy."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file to load, and how messages name it."""

    path: Path
    name: str


def codec(source: Source) -> str | None:
    """The codec of a file, or None if it is not packed. Raises UsageError when the file cannot be read."""
    try:
        if not stat.S_ISREG(source.path.stat().st_mode):
            raise UsageError(f"cannot read {source.name}: it is not a regular file")
        with source.path.open("rb") as file:
            head = file.read(4)
    except OSError as error:
        raise UsageError(f"cannot read {source.name}: {error.strerror}") from None
    return next((name for magic, name in CODECS.items() if head.startswith(magic)), None)


@contextmanager
def opened(source: Source) -> Iterator[IO[bytes]]:
    """The file's bytes, unpacked. Raises UsageError when they end early or fail a check sum."""
    name = codec(source)
    with source.path.open("rb") as file:
        if name is None:
            yield file
            return
        try:
            with pa.CompressedInputStream(file, name) as unpacked:
                yield unpacked
        except OSError as error:
            if error.errno is not None:
                raise UsageError(f"cannot read {source.name}: {error.strerror}") from None
            raise _damaged(source, str(error)) from None


def require_read(source: Source, head: bytes) -> None:
    """Raise UsageError if a file's first bytes, `head`, are those of _UNREAD."""
    for place, magic, what, remedy in _UNREAD:
        if head.startswith(magic, place):
            raise UsageError(f"{source.name} is {what}, which is not read as it is", hint=remedy)


def require_end(source: Source, contents: Path, bracket: bytes) -> None:
    """Raise UsageError unless the last byte of a file that is not blank is a bracket. DuckDB reads `[{},` as whole."""
    with contents.open("rb") as file:
        file.seek(max(0, contents.stat().st_size - BLOCK))
        if not file.read().rstrip().endswith(bracket):
            raise _damaged(source, f"it does not end with {bracket.decode()}")


def require_whole_pages(source: Source, contents: Path, rows: int) -> None:
    """Read all pages of a parquet file, so many rows at once. Raises UsageError when a check sum of a page fails."""
    try:
        for _ in pq.ParquetFile(contents, page_checksum_verification=True).iter_batches(min(rows, 1 << 16)):
            pass
    except pa.ArrowException:
        return  # Arrow does not know a type; DuckDB reports what it cannot read itself
    except OSError as error:
        raise _damaged(source, str(error)) from None


def widest_rows(contents: Path) -> int:
    """The bytes of a row of a parquet file: the average of the row group with the largest rows, at least 1."""
    try:
        described = pq.read_metadata(contents)
    except (OSError, pa.ArrowException):
        return 1
    groups = [described.row_group(at) for at in range(described.num_row_groups)]
    return max((group.total_byte_size // (group.num_rows or 1) for group in groups), default=1) or 1


def _damaged(source: Source, why: str) -> UsageError:
    return UsageError(
        f"{source.name} is damaged or cut off: {why}", hint="nothing of it was loaded; copy or download the file again"
    )
