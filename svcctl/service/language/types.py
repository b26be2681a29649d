"""The value types of events and the plan that a query becomes: what the language, engines and encoders agree on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sqlglot import exp


class Type(StrEnum):
    """A type as `m` of the compact formats names it.

    Stored as, in DuckDB: TIMESTAMP (UTC, whole milliseconds), VARCHAR, INTEGER, BIGINT, DOUBLE, BOOLEAN, UINTEGER. The
    mapping is one to one, so a table's own column types say what its events hold.
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
    """A stored table: its dotted name, case-sensitive, and its columns in order; `eventdate` is always one of them.

    `relation` is how the engine calls it in SQL, as (schema, table). `ordered` says that a plain scan already comes in
    eventdate order, so that a plan need not sort.
    """

    name: str
    columns: tuple[Column, ...]
    relation: tuple[str, str]
    ordered: bool = False


Catalog = Mapping[str, Table]
"""The stored tables by name."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A compiled query: one SELECT in no dialect's own words, and the columns it returns, in order."""

    select: exp.Select
    columns: tuple[Column, ...]
    table: str

    def sql(self, dialect: str) -> str:
        """The statement in a dialect that sqlglot writes, `duckdb` for example."""
        return self.select.sql(dialect=dialect)
