"""A full screen: frames that replace each other, of which the last one stays; the key q ends them."""

from __future__ import annotations

import os
import select
import shutil
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain
from types import FrameType
from typing import Any

from svcctl.io.time_limit import without_signals
from svcctl.terminal import layout
from svcctl.terminal.escapes import Styled, joined, styled
from svcctl.terminal.layout import Style, TableColumn

_ENTER = Styled("\x1b[?1049h\x1b[?25l")
"""Switches to the terminal's alternate screen, without a cursor."""
_LEAVE = Styled("\x1b[?25h\x1b[?1049l")
_CLEAR = Styled("\x1b[H\x1b[2J")
_WAY_OUT = {True: "q leaves this screen", False: "Ctrl-C leaves this screen"}
"""The line below each frame, if the keyboard can be read and if it cannot."""


def show(frames: Iterable[str], write: Callable[[str], object], *, moving: bool, keyboard: int = 0) -> None:
    """Show each frame on the terminal's alternate screen until q is typed, and the last one on the main screen.

    A terminal whose cursor cannot move gets one frame after the other.
    """
    if not moving:
        for frame in frames:
            write(joined(frame, "\n"))
        return
    frame = ""
    write(_ENTER)
    try:
        with left_by_q(keyboard) as listening:
            for frame in frames:
                write(joined(_CLEAR, frame, _WAY_OUT[listening]))
    finally:
        write(joined(_LEAVE, frame))


def frame(columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], footer: str, style: Style) -> str:
    """A table and a line below it, as wide and as high as the terminal is now; the line says what does not fit."""
    width, cuts = shutil.get_terminal_size().columns, layout.Cuts()
    table = list(chain.from_iterable(layout.table(columns, rows, replace(style, width=width), cuts)))
    lines = [part for line in table for part in ([line] if isinstance(line, Styled) else layout.folded(line, width))]
    return filled(lines, f"{footer}, no room for {', '.join(cuts.columns)}" if cuts.columns else footer)


def filled(text: Iterable[str], footer: str) -> str:
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


def change(sign: str, text: str, *, color: bool) -> str:
    """A line of a difference: `-` for the old value, in red, and `+` for the new one, in green."""
    line = f"{sign} {text}"
    return styled(31 if sign == "-" else 32, line) if color else line


_AGAIN = 0.05
"""Seconds between signals. They are repeated, since one that arrives while the block is entered has no effect."""


class _Left(BaseException):
    """Interrupts a block; no `except Exception` on its way takes it for a failure."""


@contextmanager
def left_by_q(keyboard: int) -> Iterator[bool]:
    """End the block when q is typed. The block gets True if the file `keyboard` is a terminal that may be read."""
    if not _readable(keyboard):
        yield False
        return
    import termios
    import tty

    done = threading.Event()
    inside = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        if inside and (frame is None or frame.f_code.co_filename != __file__):
            raise _Left

    def listen() -> None:
        without_signals()
        while not done.is_set():
            if select.select([keyboard], [], [], _AGAIN)[0] and os.read(keyboard, 1) in b"q":  # or nobody is there
                while not done.wait(_AGAIN):
                    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    listener = threading.Thread(target=listen, daemon=True)
    modes = termios.tcgetattr(keyboard)
    previous = signal.signal(signal.SIGUSR1, interrupt)
    try:
        tty.setcbreak(keyboard, termios.TCSADRAIN)
        listener.start()
        inside = True
        yield True
    except _Left:
        pass
    finally:
        inside = False
        termios.tcsetattr(keyboard, termios.TCSADRAIN, modes)
        done.set()
        listener.join()
        signal.signal(signal.SIGUSR1, previous)


def _readable(keyboard: int) -> bool:
    if not os.isatty(keyboard):
        return False
    with suppress(OSError):  # a terminal without job control
        return os.tcgetpgrp(keyboard) == os.getpgrp()  # the shell would suspend a command in the background
    return True
