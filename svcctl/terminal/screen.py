"""Frames on the alternate screen of a terminal: tables and charts that are updated in place.

The library rich draws the frames. Rich loads slowly, so this module is imported only to draw. All text for rich has
passed the function `visible`, and is never markup.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, TextIO, cast

from rich.console import Console, ConsoleDimensions
from rich.live import Live
from rich.text import Text

from svcctl.terminal import layout
from svcctl.terminal.escapes import Styled, joined
from svcctl.terminal.keyboard import Keyboard, is_in_foreground
from svcctl.terminal.layout import Style, TableColumn
from svcctl.terminal.size import terminal_size

Write = Callable[[str], object]

_LEAVES = "Ctrl-C leaves this screen"
"""The line below each frame. If keys are read, the line also mentions the key q."""


class _Drawn(io.TextIOBase):
    """A file object to which the library rich writes.

    Rich makes all escape sequences in this output, so they are passed on to the terminal.
    """

    encoding = ""

    def __init__(self, write: Write, stream: TextIO) -> None:
        self._write = write
        self.encoding = "utf-8" if getattr(stream, "glyphs", True) else "ascii"

    def write(self, text: str, /) -> int:
        self._write(Styled(text))
        return len(text)


class _Console(Console):
    """A console of rich on the terminal of a stream. The function `terminal_size` decides its size."""

    def __init__(self, stream: TextIO, **options: Any) -> None:
        self._stream = stream
        width, height = terminal_size(stream)  # otherwise rich reads COLUMNS and LINES, and fails on some values
        super().__init__(width=width, height=height, **options)

    @property  # type: ignore[misc]  # nobody sets it
    def size(self) -> ConsoleDimensions:
        return ConsoleDimensions(*terminal_size(self._stream))


def console_on(write: Write, stream: TextIO, *, color: bool) -> Console:
    """Return a console of rich that draws with `write` on the terminal `stream`."""
    drawn = cast(TextIO, _Drawn(write, stream))
    colors = "standard" if color else None
    return _Console(
        stream, file=drawn, force_terminal=True, color_system=colors, no_color=not color, legacy_windows=False
    )


def show(
    frames: Iterable[str], write: Write, stream: TextIO, *, stdin: TextIO | None = None, color: bool = False
) -> None:
    """Show each frame on the alternate screen of the terminal.

    At the end, the last frame is printed on the main screen. If `stdin` is a terminal, the key q ends the frames. After
    Ctrl-Z and the shell command `bg`, nothing is drawn until the shell command `fg`. Only the main thread may call this
    function.
    """
    frame, console, keyboard = "", console_on(write, stream, color=color), Keyboard(stdin)
    live = Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
    way_out = f"q or {_LEAVES}" if keyboard.is_read else _LEAVES

    drawn = True

    def aside() -> None:
        nonlocal drawn
        drawn = False
        console.set_alt_screen(False)
        console.show_cursor(True)

    def back() -> None:
        nonlocal drawn
        if not drawn and is_in_foreground(stream):
            drawn = True
            console.set_alt_screen(True)
            console.show_cursor(False)
            live.refresh()

    try:
        with keyboard.watched(aside, back), live:
            for frame in keyboard.until_left(frames):
                back()
                if drawn:
                    console.show_cursor(False)  # progress that was shown in the meantime has switched the cursor on
                live.update(Text.from_ansi(joined(frame, way_out), no_wrap=True, overflow="crop"), refresh=drawn)
    finally:
        write(frame)


def table_frame(columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], footer: str, style: Style) -> str:
    """Return a table and a footer that fit the present size of the terminal.

    The footer names the columns that do not fit.
    """
    width, cuts = terminal_size().columns, layout.Cuts()
    table = list(chain.from_iterable(layout.table(columns, rows, style._replace(width=width), cuts)))
    lines = [
        part for line in table for part in ([line] if isinstance(line, Styled) else layout.folded_lines(line, width))
    ]
    return frame_text(lines, f"{footer}, no room for {', '.join(cuts.columns)}" if cuts.columns else footer)


def frame_text(text: Iterable[str], footer: str) -> str:
    """Return lines and a footer, cut to the height of the terminal. The footer says how many lines do not fit."""
    size = terminal_size()
    lines, end = list(text), layout.folded_lines(footer, size.columns)
    if len(lines) + len(end) >= size.lines:
        longest = layout.folded_lines(f"… {len(lines)} more, {footer}", size.columns)
        line_count = max(0, size.lines - 1 - len(longest))
        end = layout.folded_lines(f"… {len(lines) - line_count} more, {footer}", size.columns)
        lines = lines[:line_count]
    lines += end
    return joined(*(joined(line if isinstance(line, Styled) else line[: size.columns], "\n") for line in lines))
