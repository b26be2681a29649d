"""What an export keeps for a moment on this machine: an answer until it is known to be whole, a part to be read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO

from svcctl.errors import IncompleteResult, reason

MEMORY_BYTES = 1 << 22
"""Bytes that are held in memory; more go to a file."""
PIECE_BYTES = 1 << 18


class Unstored(IncompleteResult):
    """This machine cannot store any more, so another attempt would fail too."""


class Spool:
    """A temporary file that is written, read once and then gone. Close it, or use it in `with`."""

    def __init__(self) -> None:
        self.file: IO[bytes] = tempfile.SpooledTemporaryFile(MEMORY_BYTES)  # noqa: SIM115  `close` closes it

    def write(self, data: bytes | memoryview, /) -> None:
        try:
            self.file.write(data)
        except OSError as error:
            raise Unstored(
                f"cannot write to the temporary directory {tempfile.gettempdir()}: {reason(error)}",
                hint="make room there, or set TMPDIR to another directory",
            ) from None

    def pieces(self) -> Iterator[bytes]:
        """What was written, from the beginning; closes the spool."""
        with self:
            self.file.seek(0)
            while piece := self.file.read(PIECE_BYTES):
                yield piece

    def close(self) -> None:
        self.file.close()

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
