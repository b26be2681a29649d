"""`svcctl completion` prints the script of a shell, or installs it, with the manual, where shell and man look."""

from __future__ import annotations

import pytest
from support import ROOT
from support.shells import Shell
from support.tree import TREE

from svcctl.cli.completion.shells import SHELLS
from svcctl.cli.help.manual import pages


def script(name: str) -> str:
    return (ROOT / "completions" / SHELLS[name].file_name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SHELLS)
def test_the_command_prints_the_script(name: str, shell: Shell) -> None:
    assert shell("completion", name).stdout == script(name)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("bash", ".local/share/bash-completion/completions/svcctl"),
        ("zsh", ".local/share/zsh/site-functions/_svcctl"),
        ("fish", ".config/fish/completions/svcctl.fish"),
    ],
)
def test_a_script_is_installed_where_the_shell_looks(shell: Shell, name: str, place: str) -> None:
    done = shell("completion", name, "--install")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.split("\n")[0] == f"svcctl: installed {shell.home / place}"
    assert (shell.home / place).read_text(encoding="utf-8") == script(name)


def test_the_manual_is_installed_with_a_script(shell: Shell) -> None:
    done = shell("completion", "bash", "--install", XDG_DATA_HOME=str(shell.home / "data"))
    manual = shell.home / "data" / "man"
    assert done.stderr.split("\n")[2] == (
        f"svcctl: installed the manual pages in {manual}/man1; "
        f"if 'man svcctl' does not find them: man -M '{manual}' svcctl"
    )
    assert {path.name for path in (manual / "man1").iterdir()} == set(pages(TREE))


def test_the_manual_is_written_into_a_directory_for_packages(shell: Shell) -> None:
    done = shell("manual-pages", "package/man1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    written = {path.name: path.read_text(encoding="utf-8") for path in (shell.home / "package" / "man1").iterdir()}
    assert written == pages(TREE)


def test_a_directory_that_cannot_be_written_is_refused(shell: Shell) -> None:
    (shell.home / "file").write_text("")
    done = shell("manual-pages", "file/man1")
    assert (done.returncode, done.stderr) == (2, "svcctl: error: cannot write file/man1/svcctl.1: Not a directory\n")


def test_a_shell_that_is_none_is_refused(shell: Shell) -> None:
    done = shell("completion", "tcsh")
    assert (done.returncode, done.stderr) == (
        2,
        "svcctl: error: unknown shell 'tcsh'\nhint: shells are: bash, zsh, fish\n",
    )
