"""The process: `svcctl` and `python -m svcctl`. What is known without a command line is printed without loading one."""

from __future__ import annotations

import os
import signal
import sys

from svcctl import __version__
from svcctl.cli import help

ENDINGS = {signal.SIGINT: b"svcctl: interrupted\n", signal.SIGTERM: b"svcctl: ended by SIGTERM\n"}
"""What ends the process while it is loaded, in the words of the command line, which has its own handlers later."""


def main() -> None:
    """Run the command line of this process and exit."""
    for number in ENDINGS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
    text = known(sys.argv[1:])
    if text is not None and text.isascii() and sys.stdout is not None and _fits(text):
        try:
            print(text, flush=True)
        except OSError:  # the command line reports it
            pass
        else:
            os._exit(0)
    from svcctl.cli.main import main

    main()


def _end(number: int, _: object) -> None:
    """End at once: nothing has begun, and an exception would be the traceback of an import."""
    try:
        os.write(2, ENDINGS[signal.Signals(number)])
    finally:
        os._exit(128 + number)


def known(arguments: list[str]) -> str | None:
    """The version or a page of help, when nothing else is asked for."""
    match arguments:
        case ["--version"] | ["-V"] | ["version"]:
            return f"svcctl {__version__}"
        case ["help", topic] if topic in help.TOPICS or topic in help.PARTS:
            return help.read(topic)
        case [*words, "--help" | "-h"] | ["help", *words] if words != [] or arguments[0] != "help":
            return help.of_command(words) if _is_wide() else None
        case _:
            return None


def _fits(text: str) -> bool:
    """Whether a text needs no pager."""
    try:
        return text.count("\n") < os.get_terminal_size(1).lines - 1
    except OSError:  # it is no terminal
        return True


def _is_wide() -> bool:
    """Whether standard output has room for the pages as they are kept; a narrow terminal gets them wrapped anew."""
    try:
        return int(os.environ.get("COLUMNS") or os.get_terminal_size(1).columns) >= help.WIDTH
    except (OSError, ValueError):  # it is no terminal
        return True


if __name__ == "__main__":
    main()
