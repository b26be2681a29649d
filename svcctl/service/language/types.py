"""Types of values, stored tables, and plans, which the language, the engines and rendering share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlglot import exp


class Type(StrEnum):
    """A type, by its name in the `m` object of the compact formats. A timestamp is in UTC, in whole milliseconds."""

    TIMESTAMP = "timestamp"
    STR = "str"
    INT4 = "int4"
    INT8 = "int8"
    FLOAT8 = "float8"
    BOOL = "bool"
    IP4 = "ip4"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Table:
    """A stored table: its dotted name, case-sensitive, and its columns in order; `eventdate` is always one of them.

    `ordered` is true if a plain scan already returns rows in the order of eventdate, so that a plan need not sort.
    `added` is how many of its columns were added by loads after it was made.
    """

    name: str
    columns: tuple[Column, ...]
    ordered: bool = False
    added: int = 0


Catalog = Mapping[str, Table]
"""The stored tables by name."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A compiled query: one SELECT, and the columns it returns, in order.

    `select` reads exactly one table node, which has the table's name in the query and the alias `t`. The engine that
    runs the plan replaces the node with whatever holds the rows. With `dated` the SELECT returns each row's date as a
    last column that is not among `columns`. `start` and `end` (UTC, without a zone) repeat the range in the SELECT, for
    engines that choose files by it.
    """

    select: exp.Select
    columns: tuple[Column, ...]
    table: str
    dated: bool = False
    start: datetime | None = None
    end: datetime | None = None

    @property
    def width(self) -> int:
        """How many columns the SELECT returns."""
        return len(self.columns) + self.dated

    @property
    def by_event(self) -> bool:
        """Whether each event makes at most one row, in the order of events.

        Then an earlier part of the events can be answered before a later part is read.
        """
        return self.select.find(exp.AggFunc, exp.Group, exp.Limit, exp.Offset) is None

    @property
    def selective(self) -> bool:
        """Whether the plan may leave out events of its range: it has more conditions than those of the range."""
        wheres = (where.this for where in self.select.find_all(exp.Where))
        conditions = sum(len(list(where.flatten())) if isinstance(where, exp.And) else 1 for where in wheres)
        return conditions > 1 + (self.end is not None)
