"""The scripts of the whole app, as they are kept in the directory `completions`. Write them again with

    python -m svcctl.cli.completion.scripts completions

This module is above the commands: they import the rest of the package, and none imports this.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer.main

from svcctl.cli.commands import NOUNS
from svcctl.cli.completion.shells import SHELLS, script
from svcctl.cli.main import app_with


def whole_tree() -> Any:
    """The command tree with every noun; a command line builds only the one that it names."""
    return typer.main.get_command(app_with(NOUNS))


def write(directory: Path) -> None:
    """Write the script of each shell into the directory."""
    for shell in SHELLS.values():
        (directory / shell.file_name).write_text(script(shell, whole_tree()), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
