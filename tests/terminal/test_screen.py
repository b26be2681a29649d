"""The full screen: frames replace each other, and the last one stays when they end or fail."""

import os
import pty
import termios
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from svcctl.terminal import screen
from svcctl.terminal.layout import Style, TableColumn


def test_frames_are_shown_on_the_other_screen_and_the_last_stays() -> None:
    written: list[str] = []
    screen.show(["one\n", "two\n"], written.append, moving=True)
    assert "".join(written) == (
        "\x1b[?1049h\x1b[?25l"
        "\x1b[H\x1b[2Jone\nCtrl-C leaves this screen\x1b[H\x1b[2Jtwo\nCtrl-C leaves this screen"
        "\x1b[?25h\x1b[?1049ltwo\n"
    )


@pytest.mark.parametrize("end", ["q", "Ctrl-C"])
def test_q_leaves_a_screen_at_once_and_the_modes_of_the_terminal_are_restored(end: str) -> None:
    person, keyboard = pty.openpty()
    before = termios.tcgetattr(keyboard)
    written: list[str] = []

    def frames() -> Iterator[str]:
        yield "one\n"
        assert not termios.tcgetattr(keyboard)[3] & (termios.ICANON | termios.ECHO)
        if end == "Ctrl-C":
            raise KeyboardInterrupt
        os.write(person, b"xq")
        threading.Event().wait(30)
        yield "two\n"

    with suppress(KeyboardInterrupt):
        screen.show(frames(), written.append, moving=True, keyboard=keyboard)
    assert termios.tcgetattr(keyboard) == before
    assert "".join(written) == ("\x1b[?1049h\x1b[?25l\x1b[H\x1b[2Jone\nq leaves this screen\x1b[?25h\x1b[?1049lone\n")
    os.close(person)
    os.close(keyboard)


def test_the_terminal_is_restored_when_a_frame_fails() -> None:
    written: list[str] = []

    def frames() -> Iterator[str]:
        yield "one\n"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        screen.show(frames(), written.append, moving=True)
    assert "".join(written).endswith("\x1b[?25h\x1b[?1049lone\n")


def test_a_difference_is_coloured_where_colours_are_wanted() -> None:
    assert screen.change("-", "a: 1", color=False) == "- a: 1"
    assert screen.change("-", "a: 1", color=True) == "\x1b[31m- a: 1\x1b[0m"
    assert screen.change("+", "a: 2", color=True) == "\x1b[32m+ a: 2\x1b[0m"


@pytest.mark.parametrize(
    ("lines", "footer"),
    [("7", "3 jobs"), ("6", "… 1 more, 3 jobs"), ("5", "… 2 more, 3 jobs"), ("1", "… 5 more, 3 jobs")],
)
def test_a_frame_says_how_many_rows_the_screen_has_no_room_for(
    lines: str, footer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", lines)
    frame = screen.frame([TableColumn("id")], [["a"], ["b"], ["c"]], "3 jobs", Style())
    shown = frame.split("\n")
    assert shown == [*["id", "--", "a", "b", "c"][: max(0, int(lines) - 2)], footer, ""]


def test_a_frame_folds_what_is_below_a_row_and_names_the_columns_that_do_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "12")
    columns = [TableColumn("id", "id"), TableColumn("error", below=True), TableColumn("lastDatetime", "timestamp")]
    rows = [("a", "no connection to 127.0.0.1:9092", 0), ("b", None, 0)]
    assert screen.frame(columns, rows, "2 jobs", Style()).split("\n") == [
        "id",
        "--",
        "a",
        "  error: no connecti",
        "on to 127.0.0.1:9092",
        "b",
        "2 jobs, no room for ",
        "lastDatetime",
        "",
    ]
    monkeypatch.setenv("LINES", "8")
    assert screen.frame(columns, rows, "2 jobs", Style()).split("\n") == [
        "id",
        "--",
        "a",
        "  error: no connecti",
        "… 2 more, 2 jobs, no",
        " room for lastDateti",
        "me",
        "",
    ]
