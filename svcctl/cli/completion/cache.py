"""The cache of names for completion, which is read without loading a client."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from svcctl.errors import SvcctlError
from svcctl.io import home


def cache_directory() -> Path:
    """Return the folder of the cached names, which may not exist. Raises UsageError if there is no home directory."""
    return home.directory("cache") / "completion"


def expire_names() -> None:
    """Make the next completion ask the service again. If the service does not answer, the cached names are used."""
    with suppress(OSError, SvcctlError):  # a command must not fail because of completion
        for path in cache_directory().iterdir():
            os.utime(path, (0, 0))
