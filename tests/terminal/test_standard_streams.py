"""What reaches a terminal, a pipe, and a stream that is closed."""

import io
import os
import pty
import subprocess
import sys
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

from svcctl.errors import IncompleteResult, ReaderClosed
from svcctl.terminal.escapes import styled
from svcctl.terminal.standard_streams import Descriptor, Terminal, Text, has_glyphs, wants_color

# What the errors say, each once; the tests state their kind.
WORDS = {
    "closed": "cannot write to standard output: it is closed",
    "full": "cannot write to standard output: No space left on device",
}


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    """The two ends of a terminal: the one that is read, and the one that is written."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    yield master, slave
    os.close(master)
    os.close(slave)


def written(ends: tuple[int, int]) -> bytes:
    """What was written to the terminal so far."""
    os.write(ends[1], b"<end>")
    data = b""
    while not data.endswith(b"<end>"):
        data += os.read(ends[0], 1000)
    return data.removesuffix(b"<end>")


def test_text_on_a_terminal_is_shown_and_styles_are_obeyed(ends: tuple[int, int]) -> None:
    terminal = Terminal(Descriptor(ends[1]), "utf-8")
    terminal.write("a\x1b[2J\tb\n")
    terminal.write(styled(31, "c\x9b"))
    assert written(ends) == b"a\\x1b[2J\tb\n\x1b[31mc\\x9b\x1b[0m"


def test_bytes_on_a_terminal_may_end_within_a_character(ends: tuple[int, int]) -> None:
    terminal = Terminal(Descriptor(ends[1]), "utf-8")
    for data in (b"plain\n", b"\xc2", b"\x9b\xe6\xbc", b"\xa2\xff\r\n", b"\xe6\xbc"):
        assert terminal.buffer.write(data) == len(data)
    terminal.write("|")
    assert written(ends).decode() == "plain\n\\x9b漢\\xff\\r\n\\xe6\\xbc|"


def test_a_terminal_in_another_encoding_gets_likenesses_and_escapes(ends: tuple[int, int]) -> None:
    terminal = Terminal(Descriptor(ends[1]), "iso8859-1")
    terminal.write("é … — 漢\n")
    terminal.buffer.write("é\u202e…\n".encode())
    assert written(ends) == b"\xe9 ... - \\u6f22\n\xe9\\u202e...\n"


@pytest.mark.parametrize(
    ("codec", "environment", "glyphs"),
    [
        ("utf-8", {}, True),
        ("utf-8", {"LANG": "C.UTF-8", "TERM": "xterm"}, True),
        ("utf-8", {"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, False),
        ("utf-8", {"TERM": "dumb"}, False),
        ("iso8859-1", {}, False),
    ],
)
def test_dots_stand_for_an_ellipsis_where_the_terminal_may_have_none(
    ends: tuple[int, int], codec: str, environment: dict[str, str], glyphs: bool
) -> None:
    Terminal(Descriptor(ends[1]), codec, has_glyphs(codec, environment)).write("TABLE…\n")
    assert written(ends).decode() == ("TABLE…\n" if glyphs else "TABLE...\n")


def test_a_pipe_gets_bytes_as_they_are() -> None:
    reader, writer = os.pipe()
    pipe = Text(Descriptor(writer), "utf-8")
    pipe.write("a\x1b[2J\n")
    pipe.buffer.write(b"\xff\x9b\r")
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        assert stream.read() == b"a\x1b[2J\n\xff\x9b\r"


def test_a_pipe_that_takes_nothing_at_the_moment_is_waited_for() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    size = 1 << 20
    counter = subprocess.Popen(
        [sys.executable, "-c", "import sys; print(len(sys.stdin.buffer.read()))"], stdin=reader, stdout=subprocess.PIPE
    )
    os.close(reader)
    Descriptor(writer).write(b"x" * size)
    os.close(writer)
    assert counter.communicate()[0] == b"%d\n" % size


def test_writing_says_what_fails() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with pytest.raises(ReaderClosed):
        Descriptor(writer).write(b"x")
    os.close(writer)
    with pytest.raises(IncompleteResult) as caught:
        Descriptor(writer).write(b"x")
    assert caught.value.message == WORDS["closed"]
    with Path("/dev/full").open("wb") as full, pytest.raises(IncompleteResult) as caught:
        Descriptor(full.fileno()).write(b"x")
    assert caught.value.message == WORDS["full"]


class Attended(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("choice", "environment", "terminal", "colored"),
    [
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"CLICOLOR_FORCE": "1"}, True, False),
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, True, False),
        ("auto", {"CLICOLOR_FORCE": "1"}, False, True),
        ("auto", {"CLICOLOR_FORCE": "0"}, False, False),
        ("auto", {"CLICOLOR_FORCE": ""}, False, False),
        ("auto", {"CLICOLOR_FORCE": ""}, True, True),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"NO_COLOR": "", "CLICOLOR_FORCE": "1"}, False, True),
        ("auto", {"CLICOLOR": "0"}, True, False),
        ("auto", {"CLICOLOR": "0", "CLICOLOR_FORCE": "1"}, False, True),
        ("auto", {"CLICOLOR": ""}, True, True),
        ("auto", {"CLICOLOR": "1"}, False, False),
        ("auto", {"TERM": "dumb"}, True, False),
    ],
)
def test_colour_follows_the_option_then_the_environment_then_the_terminal(
    choice: str, environment: dict[str, str], terminal: bool, colored: bool
) -> None:
    assert wants_color(choice, Attended() if terminal else io.StringIO(), environment) is colored
