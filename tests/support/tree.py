"""The command tree with every noun; a command line builds only the one that it names."""

from __future__ import annotations

from typing import Any

from svcctl.cli.commands import NOUNS
from svcctl.cli.main import tree

TREE: Any = tree()
TREE.load(*NOUNS)
