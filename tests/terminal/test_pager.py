"""Results that are longer than the screen go to a pager; those that are not never see one."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path

import pytest
from support.pseudo_terminal import on_terminal
from support.shells import Shell

from svcctl.errors import PagerLeft
from svcctl.terminal.pager import Paged, command

SCREEN = int(os.environ.get("LINES", "24"))


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TERM": "xterm", "SVCCTL_PAGER": "more -d", "PAGER": "less"}, "more -d"),
        ({"TERM": "xterm", "PAGER": "most"}, "most"),
        ({"TERM": "xterm", "SVCCTL_PAGER": "", "PAGER": "less"}, None),
        ({"TERM": "xterm", "PAGER": "cat"}, None),
        ({"TERM": "xterm", "PATH": "/nowhere"}, None),
        ({"TERM": "dumb", "PAGER": "less"}, None),
        ({"PAGER": "less"}, None),
    ],
)
def test_the_pager_is_the_one_that_the_environment_names(environment: dict[str, str], expected: str | None) -> None:
    assert command(environment) == expected


def shown(pager: str, lines: int) -> list[str]:
    """The lines that are printed on the terminal itself."""
    terminal = io.BytesIO()
    paged = Paged(terminal, pager)  # type: ignore[arg-type]
    for number in range(lines):
        paged.write(f"line {number}\n".encode())
    paged.finish()
    return terminal.getvalue().decode().splitlines()


def is_paged(*blocks: str) -> bool:
    """Whether blocks are given to a pager at the end."""
    terminal = io.BytesIO()
    paged = Paged(terminal, "cat > /dev/null")  # type: ignore[arg-type]
    for block in blocks:
        paged.write(block.encode())
    paged.finish()
    return not terminal.getvalue()


def test_the_lines_that_fit_the_screen_are_counted_as_the_terminal_breaks_them() -> None:
    width = shutil.get_terminal_size().columns
    whole = "é" * width + "\n"
    assert not is_paged("", "", *[whole] * (SCREEN - 1))
    assert is_paged("", "", *[whole] * SCREEN)
    assert is_paged(*["é" * (width + 1) + "\n"] * (SCREEN - 1))
    assert is_paged("x" * width * SCREEN, "x")
    assert not is_paged(*[f"\x1b[31m{'x' * width}\x1b[0m\n"] * (SCREEN - 1))


def test_a_short_text_is_printed_and_a_long_one_is_the_pagers(tmp_path: Path) -> None:
    pager = f"cat > {tmp_path}/seen"
    assert shown(pager, SCREEN - 2) == [f"line {number}" for number in range(SCREEN - 2)]
    assert not (tmp_path / "seen").exists()
    assert shown(pager, 2000) == []
    assert (tmp_path / "seen").read_text().splitlines() == [f"line {number}" for number in range(2000)]


@pytest.mark.parametrize("pager", ["/no/such/program", "exit 2", "read -r line; exit 1"])
def test_a_pager_that_does_not_work_is_no_failure(pager: str) -> None:
    assert shown(pager, 3000) == [f"line {number}" for number in range(3000)]


def test_a_pager_that_is_left_closes_the_pipe() -> None:
    with pytest.raises(PagerLeft):
        shown("head -n 1 > /dev/null", 100_000)


def test_leaving_the_pager_on_purpose_is_no_failure(service: Shell) -> None:
    long = ("-q", "query", "from auth.all", "--from", "30d", "-f", "csv")
    left = on_terminal(service, *long, SVCCTL_PAGER="head -n 1", LINES="10")
    assert (left.code, left.text) == (0, "eventdate,user,srcIp,method,result,reason\n")


def test_a_pager_shows_the_columns_that_are_left_out_above_the_table(service: Shell, tmp_path: Path) -> None:
    rows = ("query", "from auth.all", "--from", "30d", "--limit", "50", "-f", "table")
    paged = on_terminal(service, *rows, SVCCTL_PAGER=f"cat > {tmp_path}/seen", LINES="10", COLUMNS="40")
    above, heading, *_ = (tmp_path / "seen").read_text().splitlines()
    assert above.startswith("svcctl: left out columns that do not fit: srcIp, ")
    assert (heading.split()[0], "left out" in paged.text) == ("\x1b[1meventdate", False)


@pytest.mark.parametrize("command", [["help", "functions"], ["-v", "query", "--help"]])
def test_a_page_that_is_longer_than_the_screen_goes_to_the_pager(tmp_path: Path, command: list[str]) -> None:
    shell = Shell(tmp_path)
    page = shell(*command).stdout
    paged = on_terminal(shell, *command, SVCCTL_PAGER=f"cat > {tmp_path}/seen", LINES="10")
    assert (paged.code, paged.text) == (0, "")
    assert (tmp_path / "seen").read_text() == page
    unpaged = on_terminal(shell, *command, SVCCTL_PAGER="exit 3", LINES="10")
    note = "svcctl: the pager 'exit 3' failed (exit code 3); this is printed without it\n"
    assert (unpaged.code, unpaged.text) == (0, page + note)
