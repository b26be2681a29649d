"""Questions to the person at the terminal: asked on stderr, answered on stdin."""

from __future__ import annotations

from typing import Protocol, TextIO

from svcctl.errors import Declined, UsageError
from svcctl.terminal.diagnostics import Diagnostics
from svcctl.terminal.visible import visible


class Prompt(Protocol):
    """A person to ask, if there is one."""

    @property
    def is_attended(self) -> bool:
        """Whether there is a person to ask."""
        ...

    def answer(self, question: str, ending: str, *, hidden: bool = False) -> str:
        """The line that answers a question, which is shown followed by `ending`.

        A `hidden` answer is not echoed. UsageError when nobody is there, Declined when the input ends.
        """
        ...


class TerminalPrompt:
    """The person at a terminal; nobody where stdin or stderr is something else."""

    def __init__(self, stdin: TextIO, diagnostics: Diagnostics) -> None:
        self._stdin = stdin
        self._diagnostics = diagnostics

    @property
    def is_attended(self) -> bool:
        return self._stdin.isatty() and self._diagnostics.is_terminal

    def answer(self, question: str, ending: str, *, hidden: bool = False) -> str:
        if hidden:
            import getpass

            try:
                return getpass.getpass(visible(question + ending))
            except EOFError:
                raise Declined from None
        if not self.is_attended:
            raise unattended(question)
        self._diagnostics.prompt(question + ending)
        if not (line := self._stdin.readline()):
            raise Declined
        return line


def unattended(question: str) -> UsageError:
    """The error for a question when there is no terminal to ask on."""
    return UsageError(f"this needs confirmation: {question}", hint="add --yes")
