"""The size of the terminal is what COLUMNS and LINES say, within reason, else what the terminal says."""

import fcntl
import os
import pty
import struct
import termios
import time
from collections.abc import Iterator
from io import StringIO
from itertools import chain
from typing import TextIO

import pytest

from svcctl.terminal import layout
from svcctl.terminal.layout import Cuts, Style, TableColumn
from svcctl.terminal.screen import console_on
from svcctl.terminal.size import MAX_CELLS, terminal_size


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    """A terminal of 120 by 40 cells."""
    controller, number = pty.openpty()
    fcntl.ioctl(number, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    with os.fdopen(number, "w") as stream:
        yield stream
    os.close(controller)


@pytest.mark.parametrize(
    ("columns", "lines", "size"),
    [
        (None, None, (120, 40)),
        ("100", None, (100, 40)),
        ("1", "1", (1, 1)),
        ("10000000", "10000000", (MAX_CELLS, MAX_CELLS)),
        ("9" * 5000, "", (120, 40)),
        ("0", "0", (120, 40)),
        ("-5", "-1", (120, 40)),
        ("wide", "1e3", (120, 40)),
        ("²", " 30 ", (120, 30)),
    ],
)
def test_columns_and_lines_are_taken_if_they_are_whole_numbers_above_0(
    columns: str | None, lines: str | None, size: tuple[int, int], terminal: TextIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("COLUMNS", columns), ("LINES", lines)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert terminal_size(terminal) == size
    assert tuple(console_on(print, terminal, color=False).size) == size


def test_without_a_terminal_or_its_size_the_size_is_the_default(
    terminal: TextIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
    assert terminal_size(terminal) == (80, 24)
    assert (terminal_size(StringIO()), terminal_size(StringIO(), (100, 30))) == ((80, 24), (100, 30))


def test_a_wide_table_takes_no_longer_than_a_narrow_one() -> None:
    columns = [TableColumn(f"text{number}") for number in range(300)]
    started = time.monotonic()
    lines = layout.table(columns, [["x" * 100] * len(columns)] * 10, Style(width=10_000_000), Cuts())
    assert len(list(chain.from_iterable(lines))) == 12
    assert time.monotonic() - started < 1
