"""Commands that are run for their output: when it is complete, and what is ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from support.shells import Shell
from support.terminal import Terminal, open_shell
from support.waiting import eventually

from svcctl.profiles.shell_command import CommandTimeout, Ended, TooLong, run


def has_ended(pid: int) -> bool:
    """Whether a process is not there any more, or only waits for its parent to notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def pids(path: Path) -> list[int]:
    return [int(word) for word in path.read_text().split()]


@pytest.mark.parametrize(
    ("command", "ended"),
    [
        ("printf 'a\\nb\\n'", Ended(0, b"a\nb\n")),
        ("echo out; exit 3", Ended(3, b"out\n")),
        ("echo out | cat; echo more >&2", Ended(0, b"out\n")),
        ("exec >&-; sleep 0.1; exit 4", Ended(4, b"")),
        ("kill -9 $$", Ended(-9, b"")),
        ("cat; echo done", Ended(0, b"done\n")),
        ("head -c 60000 /dev/zero | tr '\\0' x", Ended(0, b"x" * 60_000)),
    ],
)
def test_a_command_gives_its_output_and_its_code(command: str, ended: Ended) -> None:
    assert run(command, seconds=20, max_bytes=64_000) == ended


def test_a_child_that_holds_the_pipe_is_left_and_not_waited_for(tmp_path: Path) -> None:
    begun = time.monotonic()
    assert run(f"sleep 30 & echo $! > {tmp_path}/pid; echo hush", seconds=20, max_bytes=99) == Ended(0, b"hush\n")
    assert time.monotonic() - begun < 15
    (child,) = pids(tmp_path / "pid")
    assert not has_ended(child)
    os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize(
    "command",
    [
        "sleep 30 & echo $! > {pids}; sleep 30",
        "(sleep 30 & echo $! > {pids}); sleep 30",
        "(trap '' TERM; sleep 30 & echo $! > {pids}; wait)",
        "exec >&-; sleep 30 & echo $! > {pids}; wait",
        "sleep 30 & echo $! > {pids}; kill -STOP $!; wait",
    ],
)
def test_all_that_a_late_command_started_is_ended(tmp_path: Path, command: str) -> None:
    with pytest.raises(CommandTimeout):
        run(command.format(pids=tmp_path / "pids"), seconds=0.3, max_bytes=99)
    for pid in pids(tmp_path / "pids"):
        eventually(partial(has_ended, pid))


def test_a_command_that_prints_too_much_is_ended() -> None:
    with pytest.raises(TooLong):
        run("yes", seconds=20, max_bytes=99)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_with_svcctl(shell: Shell, tmp_path: Path, number: int, code: int) -> None:
    marks = tmp_path / "pids"
    command = f"(sleep 30 & echo $! > {marks}.new; mv {marks}.new {marks}; wait)"
    assert shell("profile", "set", "p", "base_url=https://a.example", f"token_command={command}").returncode == 0
    process = shell.start("-p", "p", "job", "list", stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    eventually(marks.exists)
    process.send_signal(number)
    assert process.wait(20) == code
    assert process.stderr is not None
    process.stderr.close()
    for pid in pids(marks):
        eventually(partial(has_ended, pid))


def test_standard_input_is_left_to_others(shell: Shell) -> None:
    assert shell("profile", "set", "p", "base_url=https://a.example", "token_command=cat; exit 3").returncode == 0
    script = f"{sys.executable} -m svcctl -p p job list 2> err; cat"
    done = subprocess.run(
        ["sh", "-c", script],
        input=b"first\nsecond\n",
        capture_output=True,
        env=shell.environment,
        cwd=shell.home,
        check=False,
    )
    assert (done.stdout, (shell.home / "err").read_text()) == (
        b"first\nsecond\n",
        "svcctl: error: secret command 'cat; exit 3' failed with exit code 3\n",
    )


ASK = "echo $$ >> pids; exec < /dev/tty; stty -echo; printf 'PIN: ' > /dev/tty; read pin; stty echo; echo pin $pin"
ONCE = """
import sys
from svcctl.profiles.shell_command import CommandTimeout, run
try:
    print(run(sys.argv[1], seconds=float(sys.argv[2]), max_bytes=99))
except CommandTimeout:
    print("late")
"""


@pytest.fixture
def bash(tmp_path: Path) -> Iterator[Terminal]:
    (tmp_path / "once.py").write_text(ONCE)
    environment = {**os.environ, "HOME": str(tmp_path), "ASK": ASK}
    terminal = open_shell("bash", tmp_path, environment, f'once() {{ {sys.executable} {tmp_path}/once.py "$@"; }}')
    yield terminal
    terminal.close()


MODES = "echo modes: $(stty -a | tr ' ;' '\\n' | grep -E '^-?echo$')"


def test_a_command_may_ask_the_person_at_the_terminal(bash: Terminal) -> None:
    bash.type('once "$ASK" 20', "Enter")
    bash.wait_for("PIN:")
    bash.type("42", "Enter")
    assert "42\n" not in bash.wait_for("output=b'pin 42\\n'").partition("Ended")[0].partition("PIN:")[2]
    bash.clear()
    bash.type("echo query | (once 'echo reads > /dev/tty; cat < /dev/tty' 20; cat)", "Enter")  # stdin is a pipe
    bash.wait_for("\nreads")
    bash.type("typed", "Enter", "C-d")
    bash.wait_for("output=b'typed\\n'", "query")


def test_a_pipe_is_left_to_others_at_a_terminal_too(bash: Terminal) -> None:
    bash.type("echo query | (once cat 20; cat)", "Enter")
    bash.wait_for("output=b''")


def test_the_terminal_is_as_before_when_a_prompt_is_given_up(bash: Terminal, tmp_path: Path) -> None:
    bash.type('once "$ASK" 0.4', "Enter")
    bash.wait_for("late")
    bash.type(MODES, "Enter")
    bash.wait_for("modes: echo")
    bash.clear()
    bash.type('once "$ASK" 20', "Enter")
    bash.wait_for("PIN:")
    bash.type("C-c")
    bash.wait_for("KeyboardInterrupt")
    bash.type(MODES, "Enter")
    bash.wait_for("modes: echo")
    for pid in pids(tmp_path / "pids"):
        eventually(partial(has_ended, pid))
