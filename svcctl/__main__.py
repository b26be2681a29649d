"""The process: `svcctl` and `python -m svcctl`. The version is printed without loading the command line."""

from __future__ import annotations

import gc
import os
import signal
import sys

from svcctl import __version__

ENDINGS = {signal.SIGINT: b"svcctl: interrupted\n", signal.SIGTERM: b"svcctl: ended by SIGTERM\n"}
"""What ends the process while it is loaded, in the words of the command line, which has its own handlers later."""
LOADED_OBJECTS = 50_000
"""How many objects are made before Python looks for garbage: what is loaded stays, and a search per 700 of its objects
would take an eighth of the start of the service."""


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
        except OSError:  # the command line reports it
            pass
        else:
            os._exit(0)
    from svcctl.cli.main import main

    main()


def _occupy_streams() -> None:
    """Open /dev/null in place of closed streams, so that no other file gets their numbers; using them still fails."""
    for number, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, mode), True)


def _end(number: int, _: object) -> None:
    """End at once: nothing has begun, and an exception would be the traceback of an import."""
    try:
        os.write(2, ENDINGS[signal.Signals(number)])
    finally:
        os._exit(128 + number)


if __name__ == "__main__":
    main()
