"""Runs svcctl and lets one of its calls that bring files to the disk or give them a name kill it, or fail.

    python stepped.py LOG STEP arguments…

STEP counts these calls from 1; with 0 nothing is killed. If STEP is an absolute path, the calls for this path fail
instead. LOG gets a line for each call that was made: `fsync PATH` for
a file or a directory, `replace PATH` for a new name.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from svcctl.__main__ import main

CALLS = ("fsync", "replace")
ONE_CALL = threading.Lock()
"""Held during each call, so that the log has all that were made."""


def stepped(name: str, call: Callable[..., Any], log: int, steps: count[int], last: str) -> Callable[..., Any]:
    """The call, logged after it was made; instead of call number `last` the process is killed."""

    def made(*arguments: Any) -> None:
        target = arguments[-1]
        path = Path(f"/proc/self/fd/{target}").readlink() if isinstance(target, int) else Path(target).absolute()
        with ONE_CALL:
            if str(next(steps)) == last:
                os.kill(os.getpid(), signal.SIGKILL)
            if str(path) == last:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            call(*arguments)
            os.write(log, f"{name} {path}\n".encode())

    return made


if __name__ == "__main__":
    journal = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
    steps = count(1)
    for name in CALLS:
        setattr(os, name, stepped(name, getattr(os, name), journal, steps, sys.argv[2]))
    sys.argv = ["svcctl", *sys.argv[3:]]
    main()
