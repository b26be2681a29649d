"""Questions to the person at the terminal.

A question is printed to stderr. The answer is read from the terminal, even if stdin is a pipe.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Protocol, TextIO

from svcctl.errors import Declined, UsageError
from svcctl.io import encoding
from svcctl.terminal.diagnostics import Diagnostics
from svcctl.terminal.escapes import visible


class Prompt(Protocol):
    """A way to ask a person a question."""

    @property
    def is_attended(self) -> bool:
        """Whether there is a person to ask."""
        ...

    def answer(self, question: str, ending: str, *, hidden: bool = False) -> str:
        """Ask a question, followed by the text `ending`. Returns the line that the person types.

        A `hidden` answer is not echoed. Raises UsageError if nobody can be asked, and Declined if the input ends.
        """
        ...


def terminal() -> TextIO | None:
    """Open the terminal of this process for reading. Returns None if there is no terminal.

    Also returns None if the process is in the background, because the shell would suspend a background process that
    reads from the terminal.
    """
    try:
        stream = Path("/dev/tty").open(encoding=encoding.of_locale(), errors="surrogateescape")  # noqa: SIM115
    except OSError:
        return None
    if os.tcgetpgrp(stream.fileno()) != os.getpgrp():
        stream.close()
        return None
    return stream


class TerminalPrompt:
    """A prompt for the person at the terminal. If stdin is a pipe or a file, the terminal of the process is opened.

    If stderr is not a terminal, nobody can be asked, because nobody would see the question.
    """

    def __init__(
        self, stdin: TextIO, diagnostics: Diagnostics, terminal: Callable[[], TextIO | None] = terminal
    ) -> None:
        self._stdin = stdin
        self._diagnostics = diagnostics
        self._terminal = terminal

    @cached_property
    def _source(self) -> TextIO | None:
        if not self._diagnostics.is_terminal:
            return None
        return self._stdin if self._stdin.isatty() else self._terminal()

    @property
    def is_attended(self) -> bool:
        return self._source is not None

    def answer(self, question: str, ending: str, *, hidden: bool = False) -> str:
        if hidden:
            import getpass

            try:
                return getpass.getpass(visible(question + ending))
            except EOFError:
                raise Declined from None
        if self._source is None:
            raise no_person_error(question)
        self._diagnostics.prompt(question + ending)
        line = ""
        try:
            line = self._source.readline()
        finally:
            if not line:  # after Ctrl-D or Ctrl-C, the cursor is still on the line of the question
                self._diagnostics.prompt("\n")
        if not line:
            raise Declined
        return line


def confirm(prompt: Prompt, question: str) -> None:
    """Ask a question. Returns only if the answer is yes.

    Raises Declined for any other answer, and UsageError if nobody can be asked.
    """
    if prompt.answer(question, " [y/N]: ").strip().lower() not in ("y", "yes"):
        raise Declined


def no_person_error(question: str) -> UsageError:
    """Return the error for a question that cannot be asked because there is no terminal."""
    return UsageError(f"this needs confirmation: {question}", hint="add --yes")
