"""The entry point of the process, for `svcctl` and `python -m svcctl`.

The version is printed without loading the command line.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

from svcctl import __version__

ENDINGS = {signal.SIGINT: b"svcctl: interrupted\n", signal.SIGTERM: b"svcctl: ended by SIGTERM\n"}
"""The signals that end the process while it is being loaded, with the message for each signal.

The command line prints the same messages after it has installed its own signal handlers.
"""
LOADED_OBJECTS = 50_000
"""The number of new objects after which Python searches for garbage.

Loaded modules do not become garbage. By default, Python would search after every 700 new objects, which would take an
eighth of the start time of the service.
"""


def main() -> None:
    """Run the command line of this process and exit."""
    _occupy_streams()
    gc.set_threshold(LOADED_OBJECTS)
    for number in ENDINGS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
    if sys.argv[1:] in (["--version"], ["-V"], ["version"]):
        try:
            os.write(1, f"svcctl {__version__}\n".encode())
        except OSError:  # the command line reports the error
            pass
        else:
            os._exit(0)
    from svcctl.cli.main import main

    main()


def _occupy_streams() -> None:
    """Open /dev/null in place of closed standard streams, so that no other file gets their descriptors.

    Using a closed stream still fails: /dev/null is opened only for writing in place of stdin, and only for reading in
    place of stdout or stderr.
    """
    for number, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, mode), True)


def _end(number: int, _: object) -> None:
    """Print the message for a signal, and end the process at once.

    No exception is raised, because the user would see the traceback of an import. The process has not begun any work
    yet.
    """
    try:
        os.write(2, ENDINGS[signal.Signals(number)])
    finally:
        os._exit(128 + number)


if __name__ == "__main__":
    main()
