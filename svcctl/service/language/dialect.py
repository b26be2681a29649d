"""The Dialect protocol: the SQL that differs between engines.

The compiler writes everything that means the same in every SQL, as nodes of sqlglot, and asks the engine's Dialect for
the rest. A method that cannot express its arguments raises UnplacedError, and `write` refuses whatever sqlglot cannot
translate. So a query that an engine cannot run is an error when its plan is made, and never a wrong statement.
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
    """A part of a date pattern; all have a fixed number of digits."""

    YEAR = "yyyy"
    MONTH = "MM"
    DAY = "dd"
    HOUR = "HH"
    MINUTE = "mm"
    SECOND = "ss"
    MILLISECOND = "SSS"


DatePattern = tuple[DatePart | str, ...]
"""The parts of a date pattern and the texts between them, in order."""


class Dialect(Protocol):
    """The SQL of one engine where engines differ."""

    name: str
    """sqlglot's name of the dialect that the engine reads."""
    ip4: exp.DType
    """The type of an address: a whole number that holds 0 to 2^32 - 1."""

    @abstractmethod
    def attempt(self, sql: exp.Expr) -> exp.Expr:
        """The value of an expression, or null where the engine would raise an error or wrap around.

        The outermost operation of `sql` is +, -, * or % of two int8 (which may be results of these operations), the
        negation or absolute value of an int8, or a timestamp made of epoch milliseconds. A zero divisor gives null.
        """

    @abstractmethod
    def wide_sum(self, sql: exp.Expr) -> exp.Expr:
        """The sum of whole numbers as a wide number, which holds at least 126 bits; null when there are no values.

        Wide numbers are added, subtracted, multiplied and compared like other numbers.
        """

    @abstractmethod
    def float_of_wide(self, sql: exp.Expr) -> exp.Expr:
        """The float8 that is nearest to a wide number."""

    @abstractmethod
    def try_cast(self, sql: exp.Expr, to: exp.DataType) -> exp.Expr:
        """A text or number as another type, or null where its value does not fit."""

    @abstractmethod
    def first_match(self, texts: list[exp.Expr], pattern: str, group: int) -> exp.Expr:
        """The text of a group in the first match of a pattern; group 0 is all of the match.

        Null if there is no match, if the group takes no part in it, or if the pattern has no such group. `texts` are
        two copies of the searched text.
        """

    @abstractmethod
    def float_text(self, sql: exp.Expr) -> exp.Expr:
        """A float8 as text: the fewest digits that give the same number, or inf, -inf and nan.

        Numbers from 0.0001 to below 10^16 are written without an exponent, all others as in 1.5e-07.
        """

    @abstractmethod
    def format_date(self, value: exp.Expr, pattern: DatePattern) -> exp.Expr:
        """A timestamp as text in a date pattern."""

    @abstractmethod
    def parse_date(self, text: exp.Expr, pattern: DatePattern) -> exp.Expr:
        """The timestamp of a text in a date pattern, or null when the text does not fit the pattern."""

    @abstractmethod
    def repeat(self, value: exp.Expr, body: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        """The expression that `body` makes of a value. It has many copies of it, and computes few of them."""

    @abstractmethod
    def position(self) -> exp.Expr | None:
        """A number that grows in the order in which the rows of a plan's table `t` were stored.

        None when every table of the engine is ordered by eventdate.
        """

    @abstractmethod
    def json_member(self, text: exp.Expr, path: tuple[JsonStep, ...]) -> exp.Expr:
        """The member of JSON text at a path, as in json_member.py: the same text on every engine."""

    @abstractmethod
    def check_pattern(self, pattern: str) -> str | None:
        """What is wrong with a regular expression, or None if it is valid."""


def write(select: exp.Select, dialect: Dialect) -> str:
    """A statement as text. Raises UnplacedError when the dialect cannot express a part of it."""
    try:
        return select.sql(dialect=dialect.name, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        raise UnplacedError(f"this engine cannot run the query: {str(error).partition(chr(10))[0]}") from None
