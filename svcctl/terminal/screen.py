"""A terminal's full screen: frames that replace each other, of which the last stays when they end."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from svcctl.terminal import tables
from svcctl.terminal.tables import Style, TableColumn

_ENTER = "\x1b[?1049h\x1b[?25l"
"""The terminal's other screen, without a cursor."""
_LEAVE = "\x1b[?25h\x1b[?1049l"
_CLEAR = "\x1b[H\x1b[2J"


def show(frames: Iterable[str], write: Callable[[bytes], None]) -> None:
    """Show each frame on the terminal's other screen, and leave the last one on the first."""
    frame = ""
    write(_ENTER.encode())
    try:
        for frame in frames:
            write(f"{_CLEAR}{frame}".encode())
    finally:
        write(f"{_LEAVE}{frame}".encode())


def frame(columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], footer: str, style: Style) -> str:
    """A table and a line below it, as wide and as high as the terminal is now."""
    size = shutil.get_terminal_size()
    style = replace(style, width=size.columns)
    lines = list(tables.table(columns, rows, style, tables.Cuts()))[: size.lines - 2]
    lines.append(footer)
    return "".join(f"{line[: size.columns] if not style.color else line}\n" for line in lines)


def change(sign: str, text: str, *, color: bool) -> str:
    """A line of a difference: `-` for the old value, in red, and `+` for the new one, in green."""
    line = f"{sign} {text}"
    return f"\x1b[{31 if sign == '-' else 32}m{line}\x1b[0m" if color else line
