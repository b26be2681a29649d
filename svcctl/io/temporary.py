"""Temporary directories for loads, for queries of files, and for spreadsheets.

A directory in use is locked. So a directory without a lock was left by a process that was killed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

_USES = ("load", "query", "xls")


@contextmanager
def temporary(use: str, folder: Path | None = None) -> Iterator[Path]:
    """Create a temporary directory, and remove it at the end of the `with` block.

    `use` is the purpose of the directory: load, query or xls. The directory is created in `folder`. The default is the
    system's folder for temporary files.
    """
    path, handle = _locked(f"svcctl-{use}-", folder)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(handle)


def remove_left_over(folder: Path | None = None) -> None:
    """Remove the temporary directories of processes that were killed."""
    import tempfile

    folder = folder or Path(tempfile.gettempdir())
    for path in chain.from_iterable(folder.glob(f"svcctl-{use}-*") for use in _USES):
        with suppress(OSError):  # the directory is in use, or belongs to another user
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(handle)


def _locked(prefix: str, folder: Path | None) -> tuple[Path, int]:
    """Create a temporary directory and lock it. Returns its path, and the descriptor that holds the lock."""
    import tempfile

    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=folder))
        with suppress(FileNotFoundError):  # another process removed the directory before it was locked
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(handle, fcntl.LOCK_EX)
            if path.exists():
                return path, handle
            os.close(handle)
