"""What engines say differently: the Dialect that an engine brings along.

The compiler writes everything that means the same in every SQL itself, as nodes of sqlglot, and asks the engine's
Dialect for the rest. A method that cannot express what it is asked for raises Refused, and `write` refuses whatever
sqlglot cannot translate. So a query that an engine cannot run is an error when its plan is made, and never a wrong
statement.
"""

from __future__ import annotations

from abc import abstractmethod
from enum import Enum
from typing import Protocol

from sqlglot import ErrorLevel, exp
from sqlglot.errors import UnsupportedError

from svcctl.service.language.errors import Refused


class DatePart(Enum):
    """A part of a date pattern; all have a fixed number of digits."""

    YEAR = "yyyy"
    MONTH = "MM"
    DAY = "dd"
    HOUR = "HH"
    MINUTE = "mm"
    SECOND = "ss"
    MILLISECOND = "SSS"


DatePattern = tuple[DatePart | str, ...]
"""The parts and the texts between them, in order."""


class Dialect(Protocol):
    """How one engine says what SQL leaves to each."""

    name: str
    """sqlglot's name of the dialect that the engine reads."""
    ip4: exp.DType
    """The type of an address: a whole number that holds 0 to 2^32 - 1."""

    @abstractmethod
    def attempt(self, sql: exp.Expr) -> exp.Expr:
        """The value of an expression, or null where the engine would raise an error or wrap around.

        The outermost operation of `sql` is +, -, * or % of two int8 (and so may be their operands), the negation or
        absolute value of an int8, or a timestamp made of epoch milliseconds. A zero divisor gives null.
        """

    @abstractmethod
    def wide_sum(self, sql: exp.Expr) -> exp.Expr:
        """The sum of whole numbers as a wide one, which holds at least 126 bits; null of no values.

        Wide numbers are added, subtracted, multiplied and compared as others are.
        """

    @abstractmethod
    def float_of_wide(self, sql: exp.Expr) -> exp.Expr:
        """The float8 that is nearest to a wide number."""

    @abstractmethod
    def try_cast(self, sql: exp.Expr, to: exp.DataType) -> exp.Expr:
        """A text or number as another type, or null where its value does not fit."""

    @abstractmethod
    def float_text(self, sql: exp.Expr) -> exp.Expr:
        """A float8 as text: the fewest digits that make it, plain from 0.0001 to below 10^16, else as in 1.5e-07.

        The others are inf, -inf and nan.
        """

    @abstractmethod
    def format_date(self, value: exp.Expr, pattern: DatePattern) -> exp.Expr:
        """A timestamp as text."""

    @abstractmethod
    def parse_date(self, text: exp.Expr, pattern: DatePattern) -> exp.Expr:
        """The timestamp that a text is by a pattern, or null when the text does not fit."""

    @abstractmethod
    def position(self) -> exp.Expr | None:
        """A number that grows in the order in which the rows of a plan's table `t` were stored.

        None when every table of the engine is ordered by eventdate.
        """

    @abstractmethod
    def check_pattern(self, pattern: str) -> str | None:
        """What is wrong with a regular expression, or None."""


def write(select: exp.Select, dialect: Dialect) -> str:
    """A statement as text. Refused when the dialect cannot express a part of it."""
    try:
        return select.sql(dialect=dialect.name, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        raise Refused(f"this engine cannot run the query: {str(error).partition(chr(10))[0]}") from None
