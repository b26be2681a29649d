"""What changes in place on a terminal, drawn by rich: the progress of work, and frames on a screen of their own.

This module loads rich, so it is imported when something is shown. Rich gets text that is `visible`, and never markup.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TextIO, cast

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress import Progress
from rich.progress_bar import ProgressBar
from rich.segment import Segment, Segments
from rich.spinner import Spinner
from rich.table import Column, Table
from rich.text import Text

from svcctl.dates.lengths import rough_text
from svcctl.terminal import layout
from svcctl.terminal.escapes import Styled, joined, visible
from svcctl.terminal.layout import Style, TableColumn

Write = Callable[[str], object]

SPEED_SECONDS = 300.0
"""The time left follows from the speed over the last so many seconds."""
_WAY_OUT = "Ctrl-C leaves this screen"
"""The line below each frame."""


class _Drawn(io.TextIOBase):
    """Where rich writes: all that it draws is svcctl's own, so its escape sequences are passed on."""

    encoding = ""

    def __init__(self, write: Write, stream: TextIO) -> None:
        self._write = write
        self.encoding = "utf-8" if getattr(stream, "glyphs", True) else "ascii"

    def write(self, text: str, /) -> int:
        self._write(Styled(text))
        return len(text)


def _console(write: Write, stream: TextIO, *, color: bool) -> Console:
    drawn = _Drawn(write, stream)
    colors: Any = "standard" if color else None
    return Console(
        file=cast(TextIO, drawn), force_terminal=True, color_system=colors, no_color=not color, legacy_windows=False
    )


class Display(Progress):
    """The progress of work on a line that disappears when it stops: a bar, or a spinner without a total.

    `tell` returns a text, how much is done, and the total. `write` writes to `stream`, which is a terminal.
    """

    def __init__(
        self, write: Write, stream: TextIO, tell: Callable[[], tuple[str, float, float | None]], *, color: bool
    ) -> None:
        self._tell = tell
        self._spinner = Spinner("line")
        super().__init__(
            console=_console(write, stream, color=color),
            speed_estimate_period=SPEED_SECONDS,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self.add_task("", total=None)
        self.start()

    def get_renderables(self) -> Iterable[RenderableType]:
        for task in self.tasks:
            (said, done, total), width = self._tell(), self.console.width // 4
            self.update(task.id, completed=done, total=total)
            left = f"{rough_text(task.time_remaining)} left, " if task.time_remaining else ""
            bar = ProgressBar(task.total, task.completed, width, complete_style="green", finished_style="green")
            line = Table.grid(Column(no_wrap=True), Column(no_wrap=True), Column(), padding=(0, 1, 0, 0))
            text = Text(visible(f"{left}{said}"), no_wrap=True, overflow="crop")
            line.add_row("svcctl:", self._spinner if total is None else bar, text)
            yield line

    def above(self, text: Styled) -> None:
        """Write lines above the progress, which stays."""
        self.console.print(Segments([Segment(text)]), crop=False, end="")


def show(frames: Iterable[str], write: Write, stream: TextIO, *, color: bool = False) -> None:
    """Show each frame on the terminal's other screen, and the last one on the main screen."""
    frame, console = "", _console(write, stream, color=color)
    live = Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
    try:
        with live:
            for frame in frames:
                console.show_cursor(False)  # progress that was shown meanwhile has brought it back
                live.update(Text.from_ansi(joined(frame, _WAY_OUT), no_wrap=True, overflow="crop"), refresh=True)
    finally:
        write(frame)


def table_frame(columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], footer: str, style: Style) -> str:
    """A table and a line below it, as wide and as high as the terminal is now; the line says what does not fit."""
    width, cuts = shutil.get_terminal_size().columns, layout.Cuts()
    table = list(chain.from_iterable(layout.table(columns, rows, replace(style, width=width), cuts)))
    lines = [part for line in table for part in ([line] if isinstance(line, Styled) else layout.folded(line, width))]
    return framed(lines, f"{footer}, no room for {', '.join(cuts.columns)}" if cuts.columns else footer)


def framed(text: Iterable[str], footer: str) -> str:
    """Lines and a footer below them, cut to the terminal's height; the footer says how many lines do not fit."""
    size = shutil.get_terminal_size()
    lines, end = list(text), layout.folded(footer, size.columns)
    if len(lines) + len(end) >= size.lines:
        longest = layout.folded(f"… {len(lines)} more, {footer}", size.columns)
        shown = max(0, size.lines - 1 - len(longest))
        end = layout.folded(f"… {len(lines) - shown} more, {footer}", size.columns)
        lines = lines[:shown]
    lines += end
    return joined(*(joined(line if isinstance(line, Styled) else line[: size.columns], "\n") for line in lines))
