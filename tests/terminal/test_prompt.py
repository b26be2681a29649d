"""Questions are asked of a person at a terminal, and of nobody else."""

import fcntl
import io
import os
import pty
import subprocess
import sys
import termios

import pytest

from svcctl.errors import Declined, UsageError
from svcctl.terminal.diagnostics import Diagnostics
from svcctl.terminal.prompt import TerminalPrompt


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_answer_is_the_line_that_is_typed_after_the_question() -> None:
    stderr = Terminal()
    prompt = TerminalPrompt(Terminal("yes\nno\n"), Diagnostics(stderr))
    assert prompt.is_attended
    assert prompt.answer("Remove it?", " [y/N]: ") == "yes\n"
    assert stderr.getvalue() == "Remove it? [y/N]: "


def test_where_stdin_is_a_pipe_the_terminal_of_the_process_is_asked() -> None:
    stdin, stderr = io.StringIO("3f2a\n"), Terminal()
    prompt = TerminalPrompt(stdin, Diagnostics(stderr), lambda: Terminal("yes\n"))
    assert prompt.is_attended
    assert prompt.answer("Jobs:\n  3f2a\x1b\nRemove it?", " [y/N]: ") == "yes\n"
    assert (stdin.read(), stderr.getvalue()) == ("3f2a\n", "Jobs:\n  3f2a\\x1b\nRemove it? [y/N]: ")


ASKING = """
from svcctl.terminal.prompt import terminal
stream = terminal()
print("nobody" if stream is None else stream.readline().strip())
"""


@pytest.mark.parametrize(("controlled", "answer"), [(True, "yes"), (False, "nobody")])
def test_a_process_has_the_terminal_that_controls_it_or_none(controlled: bool, answer: str) -> None:
    main, terminal = pty.openpty()
    os.write(main, b"yes\n")
    done = subprocess.run(
        [sys.executable, "-c", ASKING],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        preexec_fn=(lambda: fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)) if controlled else None,
        pass_fds=(terminal,),
        timeout=60,
        check=True,
    )
    os.close(terminal)
    os.close(main)
    assert done.stdout == f"{answer}\n"


class Interrupted(Terminal):
    def readline(self, *_: object) -> str:  # type: ignore[override]
        raise KeyboardInterrupt


@pytest.mark.parametrize(("stdin", "raised"), [(Terminal(""), Declined), (Interrupted(), KeyboardInterrupt)])
def test_ctrl_d_and_ctrl_c_decline_and_end_the_line_of_the_question(
    stdin: Terminal, raised: type[BaseException]
) -> None:
    stderr = Terminal()
    with pytest.raises(raised):
        TerminalPrompt(stdin, Diagnostics(stderr)).answer("Remove it?", ": ")
    assert stderr.getvalue() == "Remove it?: \n"


@pytest.mark.parametrize(("stdin", "stderr"), [(io.StringIO("yes\n"), Terminal()), (Terminal("yes\n"), io.StringIO())])
def test_without_a_terminal_on_both_sides_nobody_is_asked(stdin: io.StringIO, stderr: io.StringIO) -> None:
    prompt = TerminalPrompt(stdin, Diagnostics(stderr), lambda: None)
    assert not prompt.is_attended
    with pytest.raises(UsageError) as caught:
        prompt.answer("Remove it?", ": ")
    assert (caught.value.message, caught.value.hint) == ("this needs confirmation: Remove it?", "add --yes")
    assert stderr.getvalue() == ""
