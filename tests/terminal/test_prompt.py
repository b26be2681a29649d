"""Questions are asked of a person at a terminal, and of nobody else."""

import io

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


def test_the_end_of_the_input_declines() -> None:
    with pytest.raises(Declined):
        TerminalPrompt(Terminal(""), Diagnostics(Terminal())).answer("Remove it?", ": ")


@pytest.mark.parametrize(("stdin", "stderr"), [(io.StringIO("yes\n"), Terminal()), (Terminal("yes\n"), io.StringIO())])
def test_without_a_terminal_on_both_sides_nobody_is_asked(stdin: io.StringIO, stderr: io.StringIO) -> None:
    prompt = TerminalPrompt(stdin, Diagnostics(stderr))
    assert not prompt.is_attended
    with pytest.raises(UsageError) as caught:
        prompt.answer("Remove it?", ": ")
    assert (caught.value.message, caught.value.hint) == ("this needs confirmation: Remove it?", "add --yes")
    assert stderr.getvalue() == ""
