"""The Dialect protocol: the SQL that differs between engines.

The compiler builds the SQL that all engines share from nodes of the library sqlglot. For all other SQL, the compiler
calls methods of the engine's Dialect. A method raises UnplacedError if the engine cannot express the arguments. `write`
raises UnplacedError if sqlglot cannot translate a node. So a query that an engine cannot run is refused when its plan
is made.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import Protocol

from sqlglot import ErrorLevel, exp
from sqlglot.errors import UnsupportedError

from svcctl.service.language.json_path import JsonStep
from svcctl.service.language.query_error import UnplacedError


class DatePart(Enum):
    """A part of a date pattern, such as `yyyy`. Every part has a fixed number of digits."""

    YEAR = "yyyy"
    MONTH = "MM"
    DAY = "dd"
    HOUR = "HH"
    MINUTE = "mm"
    SECOND = "ss"
    MILLISECOND = "SSS"


DatePattern = tuple[DatePart | str, ...]
"""A date pattern: its parts, and the texts between the parts, in order."""


class Dialect(Protocol):
    """One engine's SQL for the operations that engines write differently."""

    name: str
    """The name of the engine's SQL dialect in sqlglot."""
    ip4: exp.DType
    """The SQL type of an IPv4 address: an integer type with the values from 0 to 2^32 - 1."""

    @abstractmethod
    def attempt(self, sql: exp.Expr) -> exp.Expr:
        """Return SQL that gives the value of an expression, or null if the computation would fail or overflow.

        The outermost operation of `sql` is one of these:

        - `+`, `-`, `*` or `%` of two int8 operands; each operand may itself be one of these four operations
        - the negation or the absolute value of an int8
        - the conversion of epoch milliseconds to a timestamp

        A division by zero gives null.
        """

    @abstractmethod
    def wide_sum(self, sql: exp.Expr) -> exp.Expr:
        """Return SQL for the sum of whole numbers as a wide number. The SQL gives null if there are no values.

        A wide number holds at least 126 bits. Wide numbers are added, subtracted, multiplied and compared like other
        numbers.
        """

    @abstractmethod
    def float_of_wide(self, sql: exp.Expr) -> exp.Expr:
        """Return SQL that converts a wide number to the nearest float8."""

    @abstractmethod
    def try_cast(self, sql: exp.Expr, to: exp.DataType) -> exp.Expr:
        """Return SQL that converts a text or a number to another type. A value that does not fit becomes null."""

    @abstractmethod
    def first_match(self, texts: list[exp.Expr], pattern: str, group: int) -> exp.Expr:
        """Return SQL for the text of a group in the first match of a pattern. Group 0 is the whole match.

        The SQL gives null if there is no match, if the group takes no part in the match, or if the pattern has no such
        group. `texts` has two copies of the searched text.
        """

    @abstractmethod
    def float_text(self, sql: exp.Expr) -> exp.Expr:
        """Return SQL that converts a float8 to text, with the fewest digits that give the same number.

        Numbers from 0.0001 to below 10^16 are written without an exponent. All other numbers are written with an
        exponent, such as 1.5e-07. Values that are not finite become inf, -inf or nan.
        """

    @abstractmethod
    def format_date(self, value: exp.Expr, pattern: DatePattern) -> exp.Expr:
        """Return SQL that writes a timestamp as text in a date pattern."""

    @abstractmethod
    def parse_date(self, text: exp.Expr, pattern: DatePattern) -> exp.Expr:
        """Return SQL that reads a text in a date pattern as a timestamp. A text that does not fit becomes null."""

    @abstractmethod
    def repeat(self, value: exp.Expr, body: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        """Return the SQL that the function `body` builds from a value.

        Even if `body` uses the value many times, the query must stay fast.
        """

    @abstractmethod
    def position(self) -> exp.Expr | None:
        """Return SQL for the position of a row in a plan's table `t`. Rows are numbered in the order of storage.

        Returns None if the engine keeps every table in order of eventdate.
        """

    @abstractmethod
    def json_member(self, text: exp.Expr, path: tuple[JsonStep, ...]) -> exp.Expr:
        """Return SQL for the member of JSON text at a path.

        Every engine must return the same text, as described in json_member.py.
        """

    @abstractmethod
    def check_pattern(self, pattern: str) -> str | None:
        """Return the fault of a regular expression. Return None if the expression is valid."""


def write(select: exp.Select, dialect: Dialect) -> str:
    """Write a statement as text in a dialect. Raises UnplacedError if the dialect cannot express the statement."""
    try:
        return select.sql(dialect=dialect.name, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        raise UnplacedError(f"this engine cannot run the query: {str(error).partition(chr(10))[0]}") from None
