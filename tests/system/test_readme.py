"""The README's blocks, pasted into a terminal of 100 columns one after another, in one home.

A block of `bash` is followed by a block of `text` with all that it prints; without one it prints nothing. The blocks of
`sh` are the set-up line, of which the part behind the installation runs here, and the test line. In expected lines `…`
stands for any text, and a line that is only `…` for any number of lines. Above blocks where `numbers vary` no number,
bar or width of a column counts. The picture is drawn by `support/picture.py`.
"""

import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from support import ROOT, picture
from support.pseudo_terminal import run_on_terminal
from support.shells import Shell, add_command

README = ROOT / "README.md"


BLOCKS = re.compile(
    r"(?P<left><!-- (?:not run|test command) -->\n)?^```(?:bash|sh)\n(?P<command>.*?)^```\n"
    r"(?:\n*(?P<vary><!-- numbers vary -->\n)?```text\n(?P<printed>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)


def sessions() -> list[tuple[str, list[tuple[str, str, bool]]]]:
    """The sections with blocks that run, each with its commands, what they print, and whether numbers vary in it."""
    found = []
    for section in re.split(r"^## ", README.read_text(encoding="utf-8"), flags=re.MULTILINE):
        commands = [
            (block["command"].rpartition(".venv/bin/")[2].rstrip("\n"), block["printed"] or "", bool(block["vary"]))
            for block in BLOCKS.finditer(section)
            if not block["left"]
        ]
        if commands:
            found.append((section.partition("\n")[0], commands))
    return found


def matches(expected: str, printed: str) -> bool:
    pattern = "".join(
        r"(?:.*\n)*?" if line == "…\n" else ".*?".join(map(re.escape, line.split("…")))
        for line in expected.splitlines(keepends=True)
    )
    return re.fullmatch(pattern, printed) is not None


def masked(text: str) -> str:
    """The text with a sign for each ID, number, bar, rule and space of any length."""
    for pattern, sign in (
        (r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID"),
        (r"[#▏▎▍▌▋▊▉█]+", "#"),
        (r"\d[\d.,]*", "0"),
        (r"-{2,}", "--"),
        (r" +", " "),
    ):
        text = re.sub(pattern, sign, text)
    return text


@pytest.mark.parametrize(("title", "commands"), sessions())
def test_a_session_of_the_readme_prints_what_it_says(
    title: str, commands: list[tuple[str, str, bool]], service: Shell, tmp_path: Path
) -> None:
    shell = Shell(
        tmp_path,
        {
            "PATH": f"{add_command(tmp_path).parent}:{Path(sys.executable).parent}:/usr/bin:/bin",
            "SVCCTL_DATA": str(service.home / "data"),
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
        },
    )
    for command, expected, vary in commands:
        printed = run_on_terminal(100, shell, ["bash", "-c", command], NO_COLOR="1").screen
        if vary:
            assert matches(masked(expected), masked(printed)), f"{command}\n{printed}"
        else:
            assert matches(expected, printed), f"{command}\n{printed}"


def test_the_readme_begins_with_a_result_and_has_a_tour() -> None:
    assert [title for title, _ in sessions()][:2] == ["# svcctl", "A tour of five minutes"]
    assert [len(commands) for _, commands in sessions()][:1] == [1]


def test_the_picture_has_what_its_commands_print_now(service: Shell) -> None:
    drawn, now = (
        picture.lines(svg)
        for svg in (picture.PICTURE.read_text(encoding="utf-8"), picture.drawing(picture.runs(service)))
    )
    assert [command for command, _ in outline(drawn)] == [f"$ {command}" for command in picture.COMMANDS]
    assert outline(drawn) == outline(now)


def outline(screen: list[str]) -> list[tuple[str, str]]:
    """The commands on a screen, each with the heading of its answer."""
    return [(line, masked(below).strip()) for line, below in pairwise(screen) if line.startswith("$ ")]


def test_the_picture_follows_the_first_sentence_and_needs_no_other_file() -> None:
    title, sentence, image = README.read_text(encoding="utf-8").split("\n\n")[:3]
    assert (title, sentence.count(".")) == ("# svcctl", 1)
    assert re.fullmatch(r"!\[A terminal: .+\]\(\.assets/terminal\.svg\)", image)
    svg = picture.PICTURE.read_text(encoding="utf-8")
    assert re.findall(r"\w+://[^\"]*|@\w+|/(?:home|tmp|work|Users)/", svg) == ["http://www.w3.org/2000/svg"]


def test_the_lines_for_a_bare_machine_are_the_only_blocks_of_sh() -> None:
    text = README.read_text(encoding="utf-8")
    found = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert [line.count("\n") for line in found] == [1, 1]
    assert found[0].startswith(
        "python3 -m venv .venv && .venv/bin/pip install -q '.[service]' && .venv/bin/svcctl query"
    )
    assert f"<!-- test command -->\n```sh\n{found[1]}```\n" in text
    assert len(text.split("\n")) < 220


def test_the_matcher_is_strict_outside_the_dots() -> None:
    assert matches("a … c\n…\nz\n", "a b c\n1\n2\nz\n")
    assert matches("…\nz\n", "z\n")
    assert not matches("a\n", "a\nb\n")
    assert not matches("a … c\n", "a b d\n")
    assert masked("GET  12.5  ███▌\n") == masked("GET 3,000  #\n")
    assert masked("GET 1") != masked("PUT 1")
