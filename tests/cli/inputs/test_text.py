"""Text from files and standard input, and what is said when it cannot be read."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.limits import files_of_at_most
from support.typed import type_in

from svcctl.cli.inputs import text
from svcctl.errors import IncompleteResult, UsageError

# What the errors say, each once; the tests state their kind.
WORDS = {
    "a file that is not there": "the query cannot be read from {tmp_path}/none: No such file or directory",
    "a variable in quotes": "${NO_NAME}/q has ${NO_NAME} in it, which the shell does not replace within single quotes",
    "not UTF-8": "roles cannot be read from standard input: byte 1 is not UTF-8",
    "a directory without space": "cannot copy standard input to {tmp_path}: File too large",
    "an empty secret": "standard input contains no api_secret",
}


def test_a_file_is_read_without_its_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "q").write_bytes(b"\xef\xbb\xbffrom a\n")
    assert text.read(tmp_path / "q", "the query") == "from a\n"
    assert text.read_bytes(tmp_path / "q", "the body") == b"\xef\xbb\xbffrom a\n"


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, b"from a\n")
    assert text.read("-", "the query") == "from a\n"
    type_in(monkeypatch, b"\xff")
    assert text.read_bytes("-", "the body") == b"\xff"


def test_an_unreadable_input_is_named_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError) as caught:
        text.read(tmp_path / "none", "the query")
    assert caught.value.message == WORDS["a file that is not there"].format(tmp_path=tmp_path)
    with pytest.raises(UsageError) as caught:
        text.read(Path("${NO_NAME}/q"), "the query")
    assert (caught.value.message, caught.value.hint) == (
        WORDS["a variable in quotes"],
        'write "${NO_NAME}/q"',
    )
    type_in(monkeypatch, b"\xff")
    with pytest.raises(UsageError) as caught:
        text.read("-", "roles")
    assert caught.value.message == WORDS["not UTF-8"]


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe: where standard input is read, and where a test writes it."""
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)


def test_lines_that_are_not_blank_are_read_before_the_pipe_ends(pipe: tuple[int, int]) -> None:
    stdin, writer = pipe
    lines = text.InputLines(stdin)
    os.write(writer, b" \nsecret\r\n\nmore\n")
    assert (lines.next("api_secret"), lines.is_over("api_secret")) == (b"secret\r", False)
    assert (lines.next("token"), lines.is_over("token")) == (b"more", True)
    os.write(writer, b"\n \nlast")
    os.close(writer)
    assert (lines.next("token"), lines.is_over("token")) == (b"last", True)


@pytest.mark.parametrize("blank", [b"", b"\n", b" \r\n\t"])
def test_a_line_of_standard_input_may_not_be_empty(pipe: tuple[int, int], blank: bytes) -> None:
    stdin, writer = pipe
    os.write(writer, blank)
    os.close(writer)
    with pytest.raises(UsageError) as caught:
        text.InputLines(stdin).next("api_secret")
    assert caught.value.message == WORDS["an empty secret"]


def test_standard_input_becomes_a_file_for_as_long_as_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, b"a,b\n1,2\n")
    with text.as_file(Path("-"), lambda: tmp_path) as path:
        assert path.read_bytes() == b"a,b\n1,2\n"
        # It has no name where files can be opened by a descriptor, so nothing is left when the process is killed.
        assert list(tmp_path.iterdir()) == [] or not path.is_relative_to("/proc")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "rows.csv").touch()
    with text.as_file(tmp_path / "rows.csv", lambda: tmp_path) as path:
        assert path == tmp_path / "rows.csv"
    with pytest.raises(UsageError) as caught, text.as_file(tmp_path / "none.csv", lambda: tmp_path):
        pass
    assert caught.value.message == f"no file {tmp_path}/none.csv"


def test_a_directory_with_too_little_space_for_standard_input_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, b"a,b\n" * 1000)
    with files_of_at_most(100), pytest.raises(IncompleteResult) as caught, text.as_file(Path("-"), lambda: tmp_path):
        pass
    assert caught.value.message == WORDS["a directory without space"].format(tmp_path=tmp_path)


def test_a_file_that_this_process_has_opened_is_one_that_other_processes_can_open(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,b\n1,2\n")
    with path.open("rb") as stream:
        opened = Path(f"/dev/fd/{stream.fileno()}")
        with text.as_file(opened, lambda: tmp_path) as file:
            assert file == path
        os.utime(path, (0, 1_680_000_000))
        path.unlink()
        with text.as_file(opened, lambda: tmp_path) as file:
            assert file.read_bytes() == b"a,b\n1,2\n"
            assert file.stat().st_mtime == 1_680_000_000  # a load finds years with it


def test_a_file_with_a_name_that_is_not_utf8_has_a_path_and_a_name_that_are(tmp_path: Path) -> None:
    path = Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9.csv"))
    path.write_bytes(b"a,b\n1,2\n")
    with text.as_file(path, lambda: tmp_path) as file:
        assert str(file).encode()
        assert file.read_bytes() == b"a,b\n1,2\n"
    assert text.name(path) == f"{tmp_path}/caf\\xe9.csv"


@pytest.mark.parametrize(
    ("source", "expected"),
    [("-", True), ("/dev/stdin", True), ("/dev/fd/0", True), ("/dev/fd/1", False), ("rows.csv", False)],
)
def test_standard_input_has_several_names(source: str, expected: bool) -> None:
    assert text.is_stdin(Path(source)) is expected


def test_a_terminal_shows_which_text_is_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    type_in(monkeypatch, b"from a\n", terminal=True)
    assert text.read("-", "the query") == "from a\n"
    assert capsys.readouterr().err == "svcctl: reading the query from the terminal; Ctrl-D ends it\n"
