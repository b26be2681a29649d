"""`svcctl completion` prints the script of a shell, or installs it where the shell looks."""

from __future__ import annotations

import pytest
from support import ROOT
from support.shells import Shell

from svcctl.cli.completion.shells import SHELLS


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


def test_a_shell_that_is_none_is_refused(shell: Shell) -> None:
    done = shell("completion", "tcsh")
    assert (done.returncode, done.stderr) == (
        2,
        "svcctl: error: unknown shell 'tcsh'\nhint: shells are: bash, zsh, fish\n",
    )
