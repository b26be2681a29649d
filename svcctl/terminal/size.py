"""The size of the terminal, to which tables, charts, frames, pagers, progress and help pages are fitted."""

from __future__ import annotations

import os
import sys
from typing import TextIO

MAX_CELLS = 10_000
"""The maximum number of columns and of lines of a terminal. A larger number is reduced to this maximum."""


def terminal_size(stream: TextIO | None = None, default: tuple[int, int] = (80, 24)) -> os.terminal_size:
    """Return the number of columns and of lines of a stream's terminal. The default stream is stdout.

    Both numbers are at most MAX_CELLS. The variables COLUMNS and LINES take precedence if they are whole numbers above
    0. Without a terminal, returns `default`.
    """
    try:
        measured = tuple(os.get_terminal_size((stream or sys.stdout).fileno()))
    except (AttributeError, ValueError, OSError):  # no terminal
        measured = (0, 0)
    variables = (_cells(os.environ.get(name, "")) for name in ("COLUMNS", "LINES"))
    sizes = zip(variables, measured, default, strict=True)
    columns, lines = (min(MAX_CELLS, next(filter(None, cells))) for cells in sizes)
    return os.terminal_size((columns, lines))


def _cells(text: str) -> int:
    """Parse a text as a positive whole number. Return 0 for any other text."""
    try:
        return max(0, int(text))
    except ValueError:
        return 0
