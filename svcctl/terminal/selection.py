"""The options --columns, --sort, --top and --no-header, which select the columns and rows of a result.

The query language of the service cannot sort, so rows are sorted here. Numbers are sorted by value, dates by time, and
texts by their characters. In a column of texts, IPv4 addresses are sorted by number, and come before other texts. Nulls
come last, even in descending order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from types import NoneType
from typing import Any, NamedTuple

from svcctl.api.formats.batches import Batches, batches_of
from svcctl.errors import UsageError
from svcctl.terminal.layout import TableColumn
from svcctl.words import choices, did_you_mean

Row = Sequence[Any]

_DIRECTIONS = {"asc": False, "desc": True}
_DOTTED = r"\d{1,3}(?:\.\d{1,3}){3}"


class SortKey(NamedTuple):
    """A column to sort by."""

    column: str
    descending: bool = False


class Selection(NamedTuple):
    """The part of a result that is printed, and the order of its rows.

    By default, everything is printed in the order of arrival.
    """

    columns: tuple[str, ...] = ()
    """The names of the columns to print, in order; empty for all columns."""
    sort: tuple[SortKey, ...] = ()
    top: int | None = None
    header: bool = True

    @property
    def option_names(self) -> tuple[str, ...]:
        """The names of the selection options that the user gave."""
        options = {"--columns": self.columns, "--sort": self.sort, "--top": self.top, "--no-header": not self.header}
        return tuple(name for name, value in options.items() if value not in ((), None, False))

    @property
    def of_rows(self) -> bool:
        """Whether rows must be decoded for the selection.

        If only the heading is omitted, the rows need not be decoded.
        """
        return bool(self.columns or self.sort)

    def order(self, columns: Sequence[TableColumn], rows: Iterable[Row]) -> Iterable[Row]:
        """Return the rows in the order of the selection. Sorting uses a limited amount of memory."""
        if not self.sort:
            return rows
        from svcctl.terminal import external_sort

        return external_sort.in_order(rows, self.keys(columns), self.top)

    def pick(self, columns: Sequence[TableColumn], rows: Iterable[Row]) -> tuple[Sequence[TableColumn], Iterable[Row]]:
        """Return the columns to print, and the rows with the values of these columns."""
        if not self.columns:
            return columns, rows
        places = [_place(columns, name) for name in self.columns]
        picked = (list(zip(*([row[at] for row in batch] for at in places), strict=True)) for batch in batches_of(rows))
        return [columns[at] for at in places], Batches(picked)

    def keys(self, columns: Sequence[TableColumn]) -> Callable[[Sequence[Row]], list[Any]]:
        """Return a function that computes the sort keys of rows."""
        places = [(_place(columns, key.column), key.descending) for key in self.sort]

        def keys(rows: Sequence[Row]) -> list[Any]:
            sort_columns = [([row[at] for row in rows], columns[at].type, falling) for at, falling in places]
            if len(sort_columns) > 1:
                by_column = (ranks(values, kind, falling=falling) for values, kind, falling in sort_columns)
                return list(map(tuple, map(chain.from_iterable, zip(*by_column, strict=True))))
            values, kind, falling = sort_columns[0]
            return numbers(values, falling=falling) or ranks(values, kind, falling=falling)

        return keys


NO_SELECTION = Selection()


def selection_of(columns: str | None, sort: str | None, top: int | None, no_header: bool) -> Selection:
    """Return the selection for the values of the options --columns, --sort, --top and --no-header.

    Names of columns are separated by commas. A name that contains a comma is in quotes, as in csv.
    """
    keys = tuple(_sort_key(name) for name in _names("--sort", sort, "n:desc,user"))
    if top is not None and not keys:
        raise UsageError(
            "--top needs --sort",
            hint=f"for the largest n: --sort n:desc --top {top}; for the first rows of a query: --limit {top}",
        )
    return Selection(_names("--columns", columns, "user,n"), keys, top, not no_header)


def _names(option: str, text: str | None, example: str) -> tuple[str, ...]:
    if text is None:
        return ()
    import csv

    names = next(csv.reader([text], skipinitialspace=True), [])
    if not all(names) or not names:
        raise UsageError(f"{option} '{text}' has an empty name", hint=f"separate names by commas: {option} {example}")
    return tuple(names)


def _sort_key(text: str) -> SortKey:
    name, colon, direction = text.rpartition(":")
    falling = _DIRECTIONS.get(direction.lower()) if colon and name else None
    return SortKey(text) if falling is None else SortKey(name, falling)


def _place(columns: Sequence[TableColumn], name: str) -> int:
    names = [column.name for column in columns]
    if name in names:
        return names.index(name)
    hint = " ".join(filter(None, (did_you_mean(name, names), f"columns are: {choices(names)}")))
    raise UsageError(f"no column '{name}'", hint=hint)


_INVERSE = bytes(range(254, -1, -1)) + b"\0"
"""A translation of bytes that reverses the order of texts in UTF-8.

No byte becomes 255, because 255 marks the end of a text.
"""


def ranks(values: Sequence[Any], kind: str | None, *, falling: bool) -> list[tuple[bool, int, Any]]:
    """Return the sort keys of the values of a column, as `rank` computes them."""
    if alone := numbers(values, falling=falling):
        return [(False, 0, number) for number in alone]
    if set(map(type, values)) <= {str, NoneType}:  # texts often repeat
        rank_of = {value: rank(value, kind, falling=falling) for value in set(values)}
        return [rank_of[value] for value in values]
    return [rank(value, kind, falling=falling) for value in values]


def numbers(values: Sequence[Any], *, falling: bool) -> list[Any] | None:
    """Return the sort keys of values that are all numbers; None if any value is not a number."""
    types = set(map(type, values))
    if types <= {int, bool} or (types == {float} and not any(map(math.isnan, values))):
        return [-value for value in values] if falling else list(values)
    return None


def rank(value: Any, kind: str | None, *, falling: bool = False) -> tuple[bool, int, Any]:
    """Return the sort key of a value. Numbers come before texts, and nulls come last."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True, 0, 0
    comparable: tuple[int, Any]
    if isinstance(value, int | float):
        comparable = (0, value)
    elif not isinstance(value, str):
        comparable = (4, str(value))
    elif kind == "ip6" or (value[:1].isdecimal() and re.fullmatch(_DOTTED, value)):
        comparable = _address(value)
    else:
        comparable = (3, value)
    return False, *(_inverse(*comparable) if falling else comparable)


def _inverse(place: int, value: Any) -> tuple[int, Any]:
    """Return the sort key of a value for descending order."""
    if isinstance(value, str):
        return -place, value.encode("utf-8", "surrogatepass").translate(_INVERSE) + b"\xff"
    return -place, -value


@lru_cache(1 << 16)
def _address(text: str) -> tuple[int, Any]:
    from ipaddress import ip_address

    try:
        address = ip_address(text)
    except ValueError:
        return 3, text
    return address.version // 4, int(address)
