"""The output to stderr: errors, hints, notes and progress. Long lines are broken."""

from __future__ import annotations

import os
import re
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import length_hint
from typing import TYPE_CHECKING, NamedTuple, TextIO, TypeVar

from svcctl import errors
from svcctl.terminal.escapes import joined, styled, visible
from svcctl.terminal.layout import cell_width
from svcctl.words import mask_urls

if TYPE_CHECKING:
    from svcctl.terminal.progress import Display

S = TypeVar("S")
T = TypeVar("T")

MAX_MESSAGE_CHARS = 4000
"""The maximum number of characters of a message. Longer messages are cut."""
PROGRESS_DELAY_SECONDS = 0.3
"""The number of seconds for which a task must run before its progress is shown on a terminal."""
_LOSS = (
    "the local service has lost events: 'svcctl service status' shows which, and 'svcctl service confirm-loss' ends "
    "this note"
)
_REPEAT = "run the same command again, which is safe"


_ENDINGS: Mapping[type[BaseException], str] = {
    KeyboardInterrupt: "interrupted",
    errors.Interrupted: "interrupted",
    errors.Terminated: "ended by SIGTERM",
    errors.Declined: "nothing was done",
}
"""The words that replace the error message when a person or the system ends the process."""


class Work(NamedTuple):
    """The progress of a task: a text, the amount that is done, and the total amount if it is known.

    With a `total`, a terminal shows a bar and the remaining time.
    """

    text: str
    done: float = 0
    total: float | None = None


class Reported(Exception):
    """The error that a command raises at its end if some items failed. Each failure has already been reported.

    `code` is the exit code.
    """

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Diagnostics:
    """The printer of errors, hints, notes and progress on stderr.

    `moving` says whether the cursor of the terminal can be moved. If not, no progress is shown. `width` is the width of
    the terminal in cells. If `width` is None, the terminal is asked for its width.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        quiet: bool = False,
        verbose: bool = False,
        color: bool = False,
        moving: bool = True,
        width: int | None = None,
    ) -> None:
        self.stream = stream
        self.width = width
        self.quiet = quiet
        self.verbose = verbose
        self.color = color
        self.moving = moving
        self.hints: Callable[[errors.SvcctlError], str | None] | None = None
        """A function that returns the hint for an error, from the reason and the data of the error."""
        self.advice: Callable[[errors.SvcctlError], str | None] | None = None
        """A function that returns advice for an error without a hint.

        The advice depends on the kind of the error and the profile in use.
        """
        self.trouble: errors.SvcctlError | None = None
        """The error of the last attempt to send a request; None if that attempt succeeded."""
        self._loss_reported = False
        self._held_notes: list[str] | None = None
        self._lock = threading.RLock()
        self._timer: threading.Timer | None = None
        self._display: Display | None = None

    def configure(self, *, quiet: bool, verbose: bool, color: bool) -> None:
        """Apply the global options --quiet, --verbose and --color."""
        self.quiet = quiet
        self.verbose = verbose
        self.color = color

    @property
    def is_terminal(self) -> bool:
        return self.stream.isatty()

    @property
    def _shows_progress(self) -> bool:
        return self.is_terminal and self.moving and not self.quiet

    @contextmanager
    def hold_notes(self) -> Iterator[list[str]]:
        """Hold back notes during the block, and print them at the end of the block.

        Yields the list to which the notes are added.
        """
        notes: list[str] = []
        self._held_notes = notes
        try:
            yield notes
        finally:
            self._held_notes = None
            for text in notes:
                self.note(text)

    def note(self, text: str) -> None:
        """Print a note, which is not an error. With --quiet, notes are not printed."""
        if self._held_notes is not None:
            self._held_notes.append(text)
            return
        if not self.quiet:
            self._tell("svcctl:", text)

    def warning(self, text: str) -> None:
        """Print a note on data that is missing in the output. The note is printed even with --quiet."""
        if self.quiet:
            self._tell("svcctl:", text)
        else:
            self.note(text)

    def report_loss(self) -> None:
        """Print that the local service has lost events, with the command that lists the lost events.

        Only the first call prints.
        """
        if not self._loss_reported:
            self._loss_reported = True
            self.warning(_LOSS)

    def done(self, text: str) -> None:
        """On a terminal, print a message that a command has succeeded.

        In pipes and logs, or with --quiet, nothing is printed.
        """
        if self.is_terminal:
            self.note(text)

    def detail(self, text: str) -> None:
        """Print a detail. Without --verbose, nothing is printed."""
        if self.verbose:
            self._tell("svcctl:", text)

    def page(self, text: str) -> None:
        """Print a help page to stderr, instead of an error."""
        self._print(text)

    def prompt(self, question: str) -> None:
        """Print a question of one or more lines, without a newline at the end."""
        self.clear_progress()
        self._write("\n".join(self.laid_out(line, 0) for line in question.split("\n")))

    @contextmanager
    def working(self, tell: Callable[[], Work]) -> Iterator[None]:
        """Show the progress of the block if the block is slow and stderr is a terminal.

        `tell` returns the progress. The progress appears after PROGRESS_DELAY_SECONDS. It is erased at the end of the
        block, and before data or a question is printed on the same terminal.
        """
        if not self._shows_progress:
            yield
            return
        self.clear_progress()
        self._timer = threading.Timer(PROGRESS_DELAY_SECONDS, self._show, [tell])
        self._timer.daemon = True
        self._timer.start()
        try:
            yield
        finally:
            self.clear_progress()

    def _show(self, tell: Callable[[], Work]) -> None:
        from svcctl.terminal.progress import Display

        with self._lock:
            if self._timer is threading.current_thread():  # otherwise the task has ended
                self._display = Display(self._write, self.stream, tell, color=self.color)

    def clear_progress(self) -> None:
        """End the progress and erase its line."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._display is not None:
                self._display.stop()
                self._display = None

    def _width(self) -> int:
        if self.width is not None:
            return self.width
        try:
            return os.get_terminal_size(self.stream.fileno()).columns or 80
        except (OSError, ValueError):
            return 80

    def report(self, error: BaseException) -> int:
        """Print an error and its hint. Returns the exit code."""
        error = errors.as_svcctl_error(error)
        code = errors.exit_code(error)
        if isinstance(error, errors.ReaderClosed):
            return code
        if isinstance(error, Reported):
            return error.code
        if isinstance(error, errors.NoRows) and self.quiet:
            return code
        ending = _ENDINGS.get(type(error))
        if ending is not None:
            self._print(f"svcctl: {ending}")
            if (hint := self.hint_of(error)) is not None:
                self._tell("hint:", hint)
            return code
        if isinstance(error, errors.SvcctlError):
            self._tell("svcctl: error:", _message(error))
            self._show_place(error)
            hint = self.hint_of(error)
        else:
            hint = None if self.verbose else "this is a defect in svcctl; --verbose shows where"
            if self.verbose:
                self._write(mask_urls("".join(traceback.format_exception(error))))
            self._tell("svcctl: error:", f"{type(error).__name__}: {error}")
        if hint:
            self._tell("hint:", _cut(hint))
        return code

    def hint_of(self, error: BaseException) -> str | None:
        """Return the hint for an error; None if there is no hint.

        The hint joins the error's own hint, the hint for the error's reason, and the notes attached to the error.
        If the first two are missing, general advice takes their place. If the service did not answer a request that can
        safely be repeated, the advice to repeat the command replaces the error's own hint.
        """
        hint, typed = getattr(error, "hint", None), None
        if isinstance(error, errors.SvcctlError):
            typed = self.hints(error) if self.hints is not None else None
            if isinstance(error, errors.Unavailable) and error.subject is not None and error.subject.repeats:
                hint = _REPEAT
            elif hint is None and typed is None and self.advice is not None:
                hint = self.advice(error)
        return errors.advice_of(hint, typed, *getattr(error, "__notes__", ()))

    def for_each(
        self, items: Iterable[S], act: Callable[[S], T], failures: type[errors.SvcctlError] = errors.SvcctlError
    ) -> Iterator[T]:
        """Yield the result of `act` for each item. A failure is reported at once, and the next item follows.

        Raises Reported at the end if an item failed.
        """
        codes = []
        for item in items:
            try:
                result = act(item)
            except failures as error:
                codes.append(self.report(error))
            else:
                yield result
        if codes:
            raise Reported(max(codes))

    @contextmanager
    def count_before_failure(self, items: Sequence[T], participle: str) -> Iterator[Iterator[T]]:
        """Yield an iterator over the items. If the block fails, print how many items were done before the failure.

        The number is printed even with --quiet. `participle` says what was done, such as `created`.
        """
        rest = iter(items)
        try:
            yield rest
        except BaseException:
            if before := len(items) - length_hint(rest) - 1:
                self.warning(f"{before} of {len(items)} {participle}")
            raise

    def _tell(self, label: str, text: str) -> None:
        """Print a label and a message.

        On a terminal, the message is broken into lines that fit the width of the terminal.
        """
        prefix = joined("svcctl: ", styled(31, "error:")) if self.color and label.endswith("error:") else label
        self._print(joined(prefix, " ", self.laid_out(text, len(label) + 1)))

    def laid_out(self, text: str, used_cells: int) -> str:
        """Return a message in a form that is safe to print. On a terminal, the message is broken into lines.

        `used_cells` is the number of cells that are already used on the first line.
        """
        safe_text = mask_urls(visible(text))
        if not self.is_terminal:
            return safe_text
        plain = getattr(self.stream, "plain", str)
        commands = [plain(mask_urls(visible(command))) for command in errors.commands_in(text)]
        return line_broken(plain(safe_text), self._width(), used_cells, commands)

    def _show_place(self, error: errors.SvcctlError) -> None:
        if not isinstance(error, errors.ServiceError) or error.place is None or error.query is None:
            return
        place, lines = error.place, error.query.split("\n")
        if 1 <= place.line <= len(lines):
            line, column = lines[place.line - 1].replace("\t", " "), place.column - 1
            start = max(0, column - 60)
            self._print(f"  {visible(line[start : start + 100])}")
            self._print("  " + " " * (column - start) + "^")

    def _print(self, text: str) -> None:
        with self._lock:
            line = joined(text, "\n")
            self._write(line) if self._display is None else self._display.above(line)

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except OSError:
            pass  # stderr itself failed, so this cannot be reported


def _cut(text: str) -> str:
    text = mask_urls(text)  # before the text is cut, because the cut may be within a password
    return text if len(text) <= MAX_MESSAGE_CHARS else f"{text[:MAX_MESSAGE_CHARS]}…"


def _message(error: errors.SvcctlError) -> str:
    """Return an error as one line: its subject, its message, and the code and the ID from the service."""
    about = []
    if isinstance(error, errors.ServiceError):
        if error.code is not None:
            about.append(f"code {error.code}")
        if error.cid:
            about.append(f"cid {error.cid}")
    text = _cut(error.message)
    if (of := error.subject) is not None:
        text = f"{of.kind} '{of.name}'{f' ({of.place})' if of.place else ''}: {text}"
    return f"{text} ({', '.join(about)})" if about else text


_INDENT = "  "
_WORD = r"""(?<![^\s(])'[^']*'\S*|(?<![^\s(])"[^"]*"\S*|\S+"""
"""A pattern for a quoted text or a word."""
_QUOTED_COMMAND = r"(?<![^\s(])'svcctl [^']*'\S*"


def line_broken(text: str, width: int, used_cells: int, commands: Sequence[str] = ()) -> str:
    """Break a message into lines of at most `width` cells.

    `used_cells` is the number of cells that are already used on the first line. `commands` are command lines in the
    message. A line is never broken within one of `commands`, or within a command of svcctl in single quotes. Any other
    quoted text is broken only if it is longer than a line.
    """
    if used_cells + cell_width(text) <= width:
        return text
    lines: list[list[str]] = [[]]
    room = width - used_cells
    for part in _parts(text, width - len(_INDENT), commands):
        part_cells = cell_width(part) + bool(lines[-1])
        if part_cells > room:
            lines.append([])
            part_cells, room = cell_width(part), width - len(_INDENT)
        lines[-1].append(part)
        room -= part_cells
    return f"\n{_INDENT}".join(map(" ".join, lines)) + " " * text.endswith(" ")


def _parts(text: str, width: int, commands: Sequence[str]) -> Iterator[str]:
    """Yield the parts of a text. Lines may be broken between these parts."""
    whole = "|".join([_QUOTED_COMMAND, *(rf"\S*{re.escape(command)}\S*" for command in commands)])
    for match in re.finditer(rf"(?P<command>{whole})|{_WORD}", text):
        if match["command"] or cell_width(match[0]) <= width:
            yield match[0]
        else:
            yield from match[0].split(" ")
