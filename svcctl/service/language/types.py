"""Types of values, stored tables, and plans. The language, the engines and rendering share these classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlglot import exp


class Type(StrEnum):
    """The type of a value. The text of a type is its name in the compact response formats.

    A timestamp is in UTC, in whole milliseconds.
    """

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
    """A stored table: its dotted name, which is case-sensitive, and its columns in order, including `eventdate`.

    `ordered` is true if a plain scan already returns rows in the order of eventdate. A plan for such a table does not
    sort. `added` is the number of columns that loads added after the table was created.
    """

    name: str
    columns: tuple[Column, ...]
    ordered: bool = False
    added: int = 0


Catalog = Mapping[str, Table]
"""The stored tables by name."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A compiled query: one SELECT, and the columns that it returns, in order.

    `select` reads exactly one table node, which has the table's name in the query and the alias `t`. The engine that
    runs the plan replaces this node by its own source of the rows. With `dated`, the SELECT has an additional last
    column with the date of each row. This column is not among `columns`. `start` and `end` are the range of dates of
    the SELECT, in UTC and without a zone. An engine may use this range to skip files.
    """

    select: exp.Select
    columns: tuple[Column, ...]
    table: str
    dated: bool = False
    start: datetime | None = None
    end: datetime | None = None

    @property
    def width(self) -> int:
        """The number of columns that the SELECT returns."""
        return len(self.columns) + self.dated

    @property
    def by_event(self) -> bool:
        """Whether each event makes at most one row, and rows come in the order of events.

        If so, the rows of earlier events can be sent before later events are read.
        """
        return self.select.find(exp.AggFunc, exp.Group, exp.Limit, exp.Offset) is None

    @property
    def selective(self) -> bool:
        """Whether the plan has conditions in addition to its range of dates.

        Such a plan may leave out events in the range.
        """
        wheres = (where.this for where in self.select.find_all(exp.Where))
        conditions = sum(len(list(where.flatten())) if isinstance(where, exp.And) else 1 for where in wheres)
        return conditions > 1 + (self.end is not None)
