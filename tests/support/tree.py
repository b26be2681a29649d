"""The command tree with every noun; a command line builds only the one that it names."""

from __future__ import annotations

from typing import Any

import typer.main

from svcctl.cli.commands import NOUNS
from svcctl.cli.main import app_with

TREE: Any = typer.main.get_command(app_with(NOUNS))
