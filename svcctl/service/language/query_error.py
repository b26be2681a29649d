"""The error of the query language, with the place of the mistake in the query's text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from svcctl.errors import QueryPosition, SvcctlError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


NOWHERE = QueryPosition(1, 1)
MAX_MESSAGE_CHARS = 200
"""The maximum length of a query error's message, in characters. A longer message is cut in the middle."""


class QueryError(SvcctlError):
    """The error for a query that cannot be run, with the place of the mistake in the query's text.

    `message` does not include the place. `line` and `column` count from 1. `expected` has the words and signs that are
    possible at this place. `str(error)` joins all parts in one line: `line 1, column 8: unexpected 'every', expected
    'where' or …`.
    """

    reason = "query-refused"

    def __init__(
        self,
        message: str,
        at: tuple[int, int],
        *,
        expected: tuple[str, ...] = (),
        hint: str | None = None,
        reason: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        middle = message[: MAX_MESSAGE_CHARS // 2] + "…" + message[-MAX_MESSAGE_CHARS // 2 :]
        super().__init__(message if len(message) <= MAX_MESSAGE_CHARS else middle, hint=hint, reason=reason, data=data)
        self.line, self.column = at
        self.expected = expected

    def __str__(self) -> str:
        expected = f", expected {one_of(self.expected)}" if self.expected else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"line {self.line}, column {self.column}: {self.message}{expected}{hint}"


def one_of(names: Iterable[str]) -> str:
    """Join names as a choice: `a`, `a or b`, `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


class UnplacedError(Exception):
    """An error in a query, without the place in the query's text. The compiler turns the error into a QueryError.

    `argument` is the index of a function's wrong argument. It is None if no single argument is wrong.
    """

    def __init__(self, message: str, *, argument: int | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.argument, self.hint = message, argument, hint
