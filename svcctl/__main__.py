"""The process: `svcctl` and `python -m svcctl`. What is known without a command line is printed without loading one."""

from __future__ import annotations

import os
import sys

from svcctl import __version__, pages


def main() -> None:
    """Run the command line of this process and exit."""
    text = known(sys.argv[1:])
    if text is not None and text.isascii() and sys.stdout is not None:
        try:
            print(text, flush=True)
        except OSError:  # the command line reports it
            pass
        else:
            os._exit(0)
    from svcctl.cli import main

    main()


def known(arguments: list[str]) -> str | None:
    """The version or a help topic, when nothing else is asked for."""
    match arguments:
        case ["--version"]:
            return f"svcctl {__version__}"
        case ["help", topic] if topic in pages.TOPICS:
            return pages.read(topic)
        case _:
            return None


if __name__ == "__main__":
    main()
