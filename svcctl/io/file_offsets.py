"""The positions up to which a process has read its files. Only Linux reports these positions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def read_so_far(process: int, files: Sequence[Path]) -> int | None:
    """Return the number of bytes that a process has read of several files.

    The process must read the files one after the other. Returns None if the process is reading none of the files. Also
    returns None for files that are memory-mapped or read at arbitrary positions, such as parquet files.
    """
    before = 0
    for file in files:
        if at := _position(process, file.resolve()):
            return before + at
        before += file.stat().st_size
    return None


def _position(process: int, file: Path) -> int:
    """Return the number of bytes up to which a process has read a file.

    If the process has several descriptors of the file, the largest position counts.
    """
    positions = [0]
    with suppress(OSError):
        for handle in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):  # the process has closed the file in the meantime
                if handle.readlink() == file:
                    _, at, *_ = Path(f"/proc/{process}/fdinfo/{handle.name}").read_text().split()
                    positions.append(int(at))
    return max(positions)
