"""`svcctl completion` prints the script of a shell, or installs it, with the manual, where shell and man look."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support import ROOT
from support.shells import Shell
from support.tree import TREE

from svcctl.cli.completion import installed_files
from svcctl.cli.completion.shells import SHELLS
from svcctl.cli.help.manual import pages


def script(name: str) -> str:
    return (ROOT / "completions" / SHELLS[name].file_name).read_text(encoding="utf-8")


PLACES = {
    "bash": ".local/share/bash-completion/completions/svcctl",
    "zsh": ".local/share/zsh/site-functions/_svcctl",
    "fish": ".config/fish/completions/svcctl.fish",
}


@pytest.mark.parametrize("name", SHELLS)
def test_the_command_prints_the_script(name: str, shell: Shell) -> None:
    assert shell("completion", name).stdout == script(name)


@pytest.mark.parametrize(("name", "place"), PLACES.items())
def test_a_script_is_installed_where_the_shell_looks(shell: Shell, name: str, place: str) -> None:
    done = shell("completion", name, "--install")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.split("\n")[0] == f"svcctl: installed {shell.home / place}"
    text, seal, _ = (shell.home / place).read_text(encoding="utf-8").rpartition("# installed by")
    assert (text, seal) == (script(name), "# installed by")


def test_the_manual_is_installed_with_a_script(shell: Shell) -> None:
    done = shell("completion", "bash", "--install", XDG_DATA_HOME=str(shell.home / "data"))
    manual = shell.home / "data" / "man"
    assert done.stderr.split("\n")[2] == (
        f"svcctl: installed the manual pages in {manual}/man1; "
        f"if 'man svcctl' does not find them: man -M '{manual}' svcctl"
    )
    assert {path.name for path in (manual / "man1").iterdir()} == set(pages(TREE))


def files(shell: Shell) -> dict[str, bytes]:
    """The contents of all files in a home directory, by their paths in it."""
    return {str(path.relative_to(shell.home)): path.read_bytes() for path in shell.home.rglob("*") if path.is_file()}


def test_uninstall_removes_only_the_files_of_install(shell: Shell) -> None:
    for path, text in ((".bashrc", "alias l=ls\n"), (".local/share/man/man1/svcctl-mine.1", "mine"), ("bin/x", "")):
        (shell.home / path).parent.mkdir(parents=True, exist_ok=True)
        (shell.home / path).write_text(text)
    before = files(shell)
    assert shell("completion", "--uninstall").stderr == "svcctl: nothing is installed\n"
    for name in SHELLS:
        shell("completion", name, "--install")
    assert files(shell).keys() > before.keys()
    done = shell("completion", "--uninstall")
    assert (done.returncode, done.stdout, files(shell)) == (0, "", before)
    removed = [f"svcctl: removed {shell.home / place}" for place in PLACES.values()]
    pages_removed = f"svcctl: removed {len(pages(TREE))} manual pages in {shell.home}/.local/share/man/man1"
    assert done.stderr.splitlines() == [*removed, pages_removed]


def test_uninstall_finds_the_files_of_another_version(shell: Shell) -> None:
    path = shell.home / ".local/share/man/man1/svcctl-gone.1"
    installed_files.write(path, "an old page\n", comment='.\\"')
    assert shell("completion", "--uninstall").returncode == 0
    assert not path.exists()


@pytest.mark.parametrize("change", [lambda text: f"{text}# mine\n", lambda text: text.replace("svcctl", "s", 1)])
def test_uninstall_keeps_and_names_a_changed_file(shell: Shell, change: Callable[[str], str]) -> None:
    shell("completion", "bash", "--install")
    changed = [shell.home / PLACES["bash"], shell.home / ".local/share/man/man1/svcctl-job.1"]
    for path in changed:
        path.write_text(change(path.read_text()))
    texts = [path.read_text() for path in changed]
    done = shell("completion", "--uninstall", "--quiet")
    assert (done.returncode, [path.read_text() for path in changed]) == (0, texts)
    assert [line.split(": ")[1] for line in done.stderr.splitlines()] == [f"kept {path}" for path in changed]


def test_uninstall_keeps_links(shell: Shell) -> None:
    shell("completion", "fish", "--install")
    path = shell.home / PLACES["fish"]
    target = path.rename(shell.home / "dotfiles")
    path.symlink_to(target)
    assert f"kept {path}: " in shell("completion", "--uninstall").stderr
    assert path.is_symlink()
    assert target.exists()


@pytest.mark.parametrize("installed", [True, False])
def test_uninstall_names_lines_that_load_a_missing_script(shell: Shell, installed: bool) -> None:
    if installed:
        shell("completion", "bash", "--install")
    start = shell.home / ".bashrc"
    start.write_text(f"# source ~/{PLACES['bash']}\n\nsource ~/{PLACES['bash']}\nsource <(kubectl completion bash)\n")
    lines = [line for line in shell("completion", "--uninstall").stderr.splitlines() if " line " in line]
    assert lines == [f"svcctl: remove line 3 of {start}, too: it loads a script that no longer exists"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bash", "--uninstall"), "--uninstall is for all shells"),
        (("--install", "--uninstall"), "--uninstall is for all shells"),
        (("--install",), "missing SHELL"),
        ((), "missing SHELL"),
    ],
)
def test_a_shell_is_named_to_install_and_not_to_uninstall(
    shell: Shell, arguments: tuple[str, ...], message: str
) -> None:
    done = shell("completion", *arguments)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, f"svcctl: error: {message}")
    assert files(shell) == {}


def test_the_manual_is_written_into_a_directory_for_packages(shell: Shell) -> None:
    done = shell("manual-pages", "package/man1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    written = {path.name: path.read_text(encoding="utf-8") for path in (shell.home / "package" / "man1").iterdir()}
    assert written == pages(TREE)


def test_a_directory_that_cannot_be_written_is_refused(shell: Shell) -> None:
    (shell.home / "file").write_text("")
    done = shell("manual-pages", "file/man1")
    assert (done.returncode, done.stderr) == (2, "svcctl: error: cannot write file/man1/svcctl.1: Not a directory\n")


def test_an_unknown_shell_is_refused(shell: Shell) -> None:
    done = shell("completion", "tcsh")
    assert (done.returncode, done.stderr) == (
        2,
        "svcctl: error: unknown shell 'tcsh'\nhint: shells are: bash, zsh, fish\n",
    )
