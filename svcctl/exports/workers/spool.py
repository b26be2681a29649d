"""Temporary data on this machine, such as an answer of the service that has not completely arrived yet."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO

from svcctl.errors import IncompleteResult, reason

MEMORY_BYTES = 1 << 20
"""The maximum number of bytes that a spool holds in memory. More bytes are held in a temporary file."""
PIECE_BYTES = 1 << 18


class Unstored(IncompleteResult):
    """Raised if the storage or this machine cannot store data. A retry would not help."""


class Spool:
    """Temporary data that is written once and then read once. Use it in `with`."""

    def __init__(self) -> None:
        self.file: IO[bytes] = tempfile.SpooledTemporaryFile(MEMORY_BYTES)  # noqa: SIM115  `with` closes it

    def write(self, data: bytes | memoryview, /) -> None:
        try:
            self.file.write(data)
        except OSError as error:
            raise Unstored(
                f"cannot write to the temporary directory {tempfile.gettempdir()}: {reason(error)}",
                hint="make room there, or set TMPDIR to another directory",
            ) from None

    def pieces(self) -> Iterator[bytes]:
        """Yield the content in pieces, and close the spool."""
        with self:
            self.file.seek(0)
            while piece := self.file.read(PIECE_BYTES):
                yield piece

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
