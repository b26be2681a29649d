"""The size of the terminal, by which tables, charts, frames, pagers, progress and help pages are laid out."""

from __future__ import annotations

import os
import sys
from typing import TextIO

MAX_CELLS = 10_000
"""The most columns and lines of a terminal. Larger sizes are mistakes, or mean no limit, and each cell takes time."""


def terminal_size(stream: TextIO | None = None, default: tuple[int, int] = (80, 24)) -> os.terminal_size:
    """The columns and lines of the terminal of a stream, by default stdout; at most MAX_CELLS each.

    COLUMNS and LINES take precedence if they are whole numbers above 0.
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
    """A text as a whole number above 0; otherwise 0."""
    try:
        return max(0, int(text))
    except ValueError:
        return 0
