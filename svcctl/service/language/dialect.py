"""The Dialect protocol: the SQL that differs between engines.

The compiler builds the SQL that all engines share from nodes of sqlglot, and asks the engine's Dialect for the rest. A
method raises UnplacedError if it cannot express its arguments, and so does `write` if sqlglot cannot translate a node.
So a query that an engine cannot run fails when its plan is made, and never becomes a wrong statement.
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
    """A part of a date pattern, such as `yyyy`; every part has a fixed number of digits."""

    YEAR = "yyyy"
    MONTH = "MM"
    DAY = "dd"
    HOUR = "HH"
    MINUTE = "mm"
    SECOND = "ss"
    MILLISECOND = "SSS"


DatePattern = tuple[DatePart | str, ...]
"""A date pattern: its parts and the texts between them, in order."""


class Dialect(Protocol):
    """One engine's SQL for the operations that engines write differently."""

    name: str
    """The name that sqlglot has for the SQL dialect of the engine."""
    ip4: exp.DType
    """The SQL type of an IPv4 address: a whole number that holds 0 to 2^32 - 1."""

    @abstractmethod
    def attempt(self, sql: exp.Expr) -> exp.Expr:
        """SQL for the value of an expression, or null where the engine would fail or wrap around.

        The outermost operation of `sql` is +, -, * or % of two int8 (which may be results of these operations), the
        negation or absolute value of an int8, or a timestamp made of epoch milliseconds. A zero divisor gives null.
        """

    @abstractmethod
    def wide_sum(self, sql: exp.Expr) -> exp.Expr:
        """SQL for the sum of whole numbers as a wide number; null if there are no values.

        A wide number holds at least 126 bits. Wide numbers are added, subtracted, multiplied and compared like other
        numbers.
        """

    @abstractmethod
    def float_of_wide(self, sql: exp.Expr) -> exp.Expr:
        """SQL for the float8 that is nearest to a wide number."""

    @abstractmethod
    def try_cast(self, sql: exp.Expr, to: exp.DataType) -> exp.Expr:
        """SQL for a text or number as another type, or null where its value does not fit."""

    @abstractmethod
    def first_match(self, texts: list[exp.Expr], pattern: str, group: int) -> exp.Expr:
        """SQL for the text of a group in the first match of a pattern; group 0 is the whole match.

        It is null if there is no match, if the group takes no part in it, or if the pattern has no such group. `texts`
        are two copies of the searched text.
        """

    @abstractmethod
    def float_text(self, sql: exp.Expr) -> exp.Expr:
        """SQL for a float8 as text: the fewest digits that give the same number, or inf, -inf and nan.

        Numbers from 0.0001 to below 10^16 are written without an exponent, all others as in 1.5e-07.
        """

    @abstractmethod
    def format_date(self, value: exp.Expr, pattern: DatePattern) -> exp.Expr:
        """SQL for a timestamp as text in a date pattern."""

    @abstractmethod
    def parse_date(self, text: exp.Expr, pattern: DatePattern) -> exp.Expr:
        """SQL for the timestamp of a text in a date pattern, or null if the text does not fit the pattern."""

    @abstractmethod
    def repeat(self, value: exp.Expr, body: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        """SQL for the expression that `body` builds from a value: it has many copies of it, but computes only a few."""

    @abstractmethod
    def position(self) -> exp.Expr | None:
        """SQL for a number that grows in the order in which the rows of a plan's table `t` were stored.

        None if every table of the engine is ordered by eventdate.
        """

    @abstractmethod
    def json_member(self, text: exp.Expr, path: tuple[JsonStep, ...]) -> exp.Expr:
        """SQL for the member of JSON text at a path: the same text on every engine, as in json_member.py."""

    @abstractmethod
    def check_pattern(self, pattern: str) -> str | None:
        """Return the fault of a regular expression, or None if it is valid."""


def write(select: exp.Select, dialect: Dialect) -> str:
    """Write a statement as text in a dialect. Raises UnplacedError if the dialect cannot express a part of it."""
    try:
        return select.sql(dialect=dialect.name, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        raise UnplacedError(f"this engine cannot run the query: {str(error).partition(chr(10))[0]}") from None
