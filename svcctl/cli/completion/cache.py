"""Where the names that a service has sent are kept for the next press of Tab, and what makes them old.

`names` fills it. Whoever changes something at a service makes all of it old: a name that was removed is not offered.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from svcctl.errors import SvcctlError
from svcctl.io import home


def directory() -> Path:
    """The folder of the cached names, which may not be there. UsageError when nobody knows it."""
    return home.directory("cache") / "completion"


def expire() -> None:
    """Have the service asked again; what is cached stays for when it does not answer."""
    with suppress(OSError, SvcctlError):  # no command fails for its completion
        for path in directory().iterdir():
            os.utime(path, (0, 0))
