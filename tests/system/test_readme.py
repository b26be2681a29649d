"""The README's console blocks, typed into a terminal of 100 columns one after another, in one home.

`…` in an expected line stands for any text, and a line that is only `…` for any number of lines.
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import ROOT
from support.shells import Shell

README = ROOT / "README.md"


def sessions() -> list[tuple[str, list[tuple[str, str]]]]:
    """The sections that have console blocks, each with its commands and what they print."""
    found = []
    for section in re.split(r"^## ", README.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        commands: list[tuple[str, str]] = []
        for block in re.findall(r"^```console\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, *printed = re.split(r"\n(?!> )", part, maxsplit=1)
                commands.append((command.replace("\n> ", "\n"), "".join(printed)))
        if commands:
            found.append((section.partition("\n")[0], commands))
    return found


def run_in_terminal(command: str, shell: Shell) -> str:
    """What a person would see on the screen."""
    main, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    process = subprocess.Popen(
        ["bash", "-c", command],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=shell.home,
        env=shell.environment | {"NO_COLOR": "1", "TERM": "xterm"},
        start_new_session=True,
    )
    os.close(terminal)
    seen = b"".join(_read(main))
    process.wait(30)
    os.close(main)
    # Progress writes over itself; what is left of such a line is what came last.
    text = seen.decode().replace("\r\n", "\n")
    return re.sub(r"[^\n]*\r\x1b\[K", "", text)


def _read(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            block = os.read(terminal, 65536)
        except OSError:  # how a terminal says that its last user has gone
            return
        if not block:
            return
        yield block


def matches(expected: str, printed: str) -> bool:
    pattern = "".join(
        r"(?:.*\n)*?" if line == "…\n" else ".*?".join(map(re.escape, line.split("…")))
        for line in expected.splitlines(keepends=True)
    )
    return re.fullmatch(pattern, printed) is not None


@pytest.mark.parametrize(("title", "commands"), sessions())
def test_a_session_of_the_readme_prints_what_it_says(
    title: str, commands: list[tuple[str, str]], service: Shell, tmp_path: Path
) -> None:
    binaries = tmp_path / "bin"
    binaries.mkdir()
    (binaries / "svcctl").write_text(f'#!/bin/sh\nexec {sys.executable} -m svcctl "$@"\n')
    (binaries / "svcctl").chmod(0o755)
    shell = Shell(
        tmp_path,
        {
            "PATH": f"{binaries}:/usr/bin:/bin",
            "SVCCTL_DATA": str(service.home / "data"),
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
        },
    )
    for command, expected in commands:
        printed = run_in_terminal(command, shell)
        assert matches(expected, printed), f"$ {command}\n{printed}"


def test_the_readme_has_a_tour() -> None:
    assert [title for title, _ in sessions()][:1] == ["A tour of five minutes"]


def test_the_matcher_is_strict_outside_the_dots() -> None:
    assert matches("a … c\n…\nz\n", "a b c\n1\n2\nz\n")
    assert matches("…\nz\n", "z\n")
    assert not matches("a\n", "a\nb\n")
    assert not matches("a … c\n", "a b d\n")
