"""Frames on the other screen: they replace each other, and the last one stays when they end or fail."""

import io
import re
from collections.abc import Iterator

import pytest

from svcctl.terminal.escapes import Styled
from svcctl.terminal.layout import Style, TableColumn
from svcctl.terminal.screen import show, table_frame

MOVES = re.compile(r"\x1b\[(?:\?25[lh]|\?1049[hl]|H)")


@pytest.fixture(autouse=True)
def size(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("TERM", "xterm"), ("COLUMNS", "30"), ("LINES", "4")):
        monkeypatch.setenv(name, value)


def drawn(frames: list[str], *, color: bool = False) -> list[str]:
    """What is written, between the movements of the cursor, without the blanks that fill the screen."""
    written: list[str] = []
    show(frames, written.append, io.StringIO(), color=color)
    return [re.sub(r" +(?=\n|$)", "", part).rstrip("\n") for part in MOVES.split("".join(written)) if part]


def test_frames_are_shown_on_the_other_screen_and_the_last_stays() -> None:
    written: list[str] = []
    way_out = "Ctrl-C leaves this screen"
    show(["one\n", "two\n"], written.append, io.StringIO())
    assert [move for move in MOVES.findall("".join(written)) if "H" not in move] == [
        *("\x1b[?1049h", "\x1b[?25l", "\x1b[?25l", "\x1b[?25l"),
        *("\x1b[?25h", "\x1b[?1049l"),
    ]
    assert drawn(["one\n", "two\n"]) == [f"one\n{way_out}", f"two\n{way_out}", "two"]


def test_a_frame_keeps_its_colours_and_its_brackets_and_shows_escapes_of_others() -> None:
    frames = [Styled("[bold]x[/] \x1b[31mred\x1b[0m\n"), "\x1b[2J\n"]
    first, second, last = drawn(frames, color=True)
    assert first.startswith("[bold]x[/] \x1b[31mred\x1b[0m\n")
    assert second.startswith("\\x1b[2J\n")
    assert last == "\x1b[2J"  # which the stream makes visible


def test_ctrl_c_leaves_the_screen_and_the_last_frame_stays() -> None:
    written: list[str] = []

    def frames() -> Iterator[str]:
        yield "one\n"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        show(frames(), written.append, io.StringIO())
    assert "".join(written).endswith("\x1b[?25h\x1b[?1049lone\n")


@pytest.mark.parametrize(
    ("lines", "footer"),
    [("7", "3 jobs"), ("6", "… 1 more, 3 jobs"), ("5", "… 2 more, 3 jobs"), ("1", "… 5 more, 3 jobs")],
)
def test_a_frame_says_how_many_rows_the_screen_has_no_room_for(
    lines: str, footer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", lines)
    frame = table_frame([TableColumn("id")], [["a"], ["b"], ["c"]], "3 jobs", Style())
    shown = frame.split("\n")
    assert shown == [*["id", "--", "a", "b", "c"][: max(0, int(lines) - 2)], footer, ""]


def test_a_frame_folds_what_is_below_a_row_and_names_the_columns_that_do_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "12")
    columns = [TableColumn("id", "id"), TableColumn("error", below=True), TableColumn("lastDatetime", "timestamp")]
    rows = [("a", "no connection to 127.0.0.1:9092", 0), ("b", None, 0)]
    assert table_frame(columns, rows, "2 jobs", Style()).split("\n") == [
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
    assert table_frame(columns, rows, "2 jobs", Style()).split("\n") == [
        "id",
        "--",
        "a",
        "  error: no connecti",
        "… 2 more, 2 jobs, no",
        " room for lastDateti",
        "me",
        "",
    ]
