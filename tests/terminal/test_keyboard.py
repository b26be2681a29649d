"""Keys on a screen that changes in its place: q leaves it, others do nothing, and the terminal is restored."""

from __future__ import annotations

import os
import signal
import socket
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.pseudo_terminal import Session, session
from support.scripted import Script, Serve, ok
from support.shells import SVCCTL, Shell
from support.terminal import Terminal, open_shell

QUERY = ("query", "from t select n", "--from", "1h", "--every", "0.2")
WATCH = ("job", "watch", "--interval", "0.2")
NUMBER = ok('{"m":{"n":{"type":"int4","index":0}}}\n{"d":[7]}\n')
REFUSAL = ok('{"msg":"no more","code":624,"timestamp":1,"cid":"c","context":{}}')
NO_JOBS = ok('{"msg":"","status":0,"cid":"c","timestamp":1,"object":[]}')
WAY_OUT = "q or Ctrl-C leaves this screen"
LEFT = "\x1b[?25h\x1b[?1049l"
"""The cursor is shown again, and the main screen."""


def modes(seen: Session) -> list[object]:
    return termios.tcgetattr(seen.slave)


@pytest.mark.parametrize(("command", "answer"), [(QUERY, NUMBER), (WATCH, NO_JOBS)], ids=["query", "job"])
@pytest.mark.parametrize("key", [b"q", b"Q"])
def test_q_leaves_the_screen_and_other_keys_do_nothing(
    serve: Serve, shell: Shell, command: tuple[str, ...], answer: bytes, key: bytes
) -> None:
    with session(shell, *command, variables=serve(answer).access) as seen:
        before = modes(seen)
        seen.wait_for(WAY_OUT)
        seen.type(b"xyz\r\x1b[A")
        seen.seen.clear()
        seen.wait_for(WAY_OUT)  # the next frame
        assert (seen.process.poll(), seen.is_quiet, b"xyz" in seen.seen) == (None, True, False)
        seen.type(key)
        code, rest = seen.end()
        assert (code, LEFT in rest, "svcctl:" in rest) == (0, True, False)
        assert modes(seen) == before


@pytest.mark.parametrize(
    ("command", "answer", "printed"),
    [
        ((*QUERY, "-f", "ndjson"), ok('{"n":7}\n'), '{"n":7}'),
        ((*QUERY, "-f", "csv", "--columns", "n"), NUMBER, "7"),
        ((*WATCH, "-f", "csv"), NO_JOBS, "time,id"),
        (WATCH, NO_JOBS, "0 jobs"),
    ],
    ids=["bytes", "rows", "looks", "dumb"],
)
def test_q_leaves_a_command_that_shows_no_screen(
    serve: Serve, shell: Shell, command: tuple[str, ...], answer: bytes, printed: str
) -> None:
    variables = serve(answer).access | ({"TERM": "dumb"} if "-f" not in command else {})
    with session(shell, *command, variables=variables) as seen:
        before = modes(seen)
        seen.wait_for(printed)
        seen.type(b"xq")
        code, rest = seen.end()
        assert (code, "xq" in rest, modes(seen)) == (0, False, before)


def test_q_leaves_while_the_service_does_not_answer(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with session(shell, *QUERY, variables=Script([], url).access) as seen:
            before = modes(seen)
            seen.wait_for("\x1b[?1049h")
            seen.type(b"q")
            code, rest = seen.end()
            assert (code, LEFT in rest, modes(seen)) == (0, True, before)


@pytest.fixture
def heard() -> Iterator[None]:
    """The signals as a shell with jobs leaves them: commands that a script starts with `&` ignore two of them."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGQUIT)}
    ignored = [number for number, handler in before.items() if handler == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGQUIT, -signal.SIGQUIT)],
    ids=str,
)
def test_a_signal_restores_the_terminal(serve: Serve, shell: Shell, number: int, code: int) -> None:
    with session(shell, *QUERY, variables=serve(NUMBER).access) as seen:
        before = modes(seen)
        seen.wait_for(WAY_OUT)
        seen.process.send_signal(number)
        ended, rest = seen.end()
        assert (ended, "\x1b[?1049l" in rest, "\x1b[?25h" in rest, modes(seen)) == (code, True, True, before)


def test_an_error_restores_the_terminal(serve: Serve, shell: Shell) -> None:
    with session(shell, *QUERY, variables=serve(NUMBER, REFUSAL).access) as seen:
        before = modes(seen)
        code, rest = seen.end()
        assert (code, "no more" in rest, modes(seen)) == (1, True, before)


def test_where_stdin_is_no_terminal_it_is_not_read_and_the_terminal_stays_unchanged(serve: Serve, shell: Shell) -> None:
    pipe, writer = os.pipe()
    os.write(writer, b"q")
    with session(shell, *QUERY, stdin=pipe, variables=serve(NUMBER).access) as seen:
        before = modes(seen)
        seen.wait_for("Ctrl-C leaves this screen")
        seen.seen.clear()
        seen.wait_for("Ctrl-C leaves this screen")
        assert (modes(seen), b"q or" in seen.seen, os.read(pipe, 9)) == (before, False, b"q")
        seen.process.send_signal(signal.SIGINT)
        assert seen.end()[0] == 130
    os.close(pipe)
    os.close(writer)


@pytest.fixture
def bash(serve: Serve, shell: Shell, tmp_path: Path) -> Iterator[Terminal]:
    variables = {**serve(NUMBER).access, "SVCCTL": " ".join(SVCCTL)}
    terminal = open_shell("bash", tmp_path, {**shell.environment, **variables})
    yield terminal
    terminal.close()


@pytest.fixture
def started(bash: Terminal) -> Callable[[str], None]:
    def start(after: str) -> None:
        bash.type(f"$SVCCTL query 'from t select n' --from 1h --every 0.2 {after}", "Enter")

    return start


def test_ctrl_z_restores_the_terminal_and_fg_continues(bash: Terminal, started: Callable[[str], None]) -> None:
    started("; echo code $?")
    bash.wait_for(WAY_OUT)
    bash.type("C-z")
    bash.wait_for("Stopped")
    bash.type("stty -a | tr ' ;' '\\n' | grep -E '^-?(icanon|echo)$' | xargs", "Enter")
    bash.wait_for("\nicanon echo\n")
    bash.type("fg", "Enter")
    bash.wait_for(WAY_OUT)
    bash.type("q")
    bash.wait_for("Stopped", "\nicanon echo\n")  # the main screen


def test_after_bg_nothing_is_drawn_until_fg(bash: Terminal, started: Callable[[str], None]) -> None:
    started("")
    bash.wait_for(WAY_OUT)
    bash.type("C-z")
    bash.wait_for("Stopped")
    bash.type("bg", "Enter")
    bash.type("sleep 0.5; jobs", "Enter")
    assert WAY_OUT not in bash.wait_for("Running")
    bash.type("fg", "Enter")
    bash.wait_for(WAY_OUT)
    bash.type("q")
    bash.wait_for("Running")


def test_a_command_in_the_background_is_not_stopped(bash: Terminal, started: Callable[[str], None]) -> None:
    started("&")
    bash.wait_for(WAY_OUT)
    bash.type("jobs", "Enter")
    bash.wait_for("Running")
    bash.type("kill %1", "Enter")
    bash.wait_for("ended by SIGTERM")
