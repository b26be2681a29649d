"""Value types of events, stored tables, and plans: what the language, engines and rendering share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlglot import exp


class Type(StrEnum):
    """A type as `m` of the compact formats names it. A timestamp is in UTC, in whole milliseconds."""

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

    `ordered` says that a plain scan already comes in eventdate order, so that a plan need not sort.
    """

    name: str
    columns: tuple[Column, ...]
    ordered: bool = False


Catalog = Mapping[str, Table]
"""The stored tables by name."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A compiled query: one SELECT, and the columns it returns, in order.

    `select` reads the rows of exactly one table node, which is named as the query names the table and has the alias
    `t`. The engine that runs the plan puts in its place whatever holds those rows. With `dated` the SELECT returns
    each row's date as a last column that is not among `columns`. `start` and `end` (UTC, without a zone) repeat
    what the SELECT says, for engines that choose files by them.
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
        """Whether each row is made of one event and in its place, so that an earlier part of the events can be answered
        before a later one is read."""
        return self.select.find(exp.AggFunc, exp.Group, exp.Limit, exp.Offset) is None
