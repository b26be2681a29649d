"""Rules for tables on every engine: names and columns of new tables, changes of columns, and errors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from svcctl.api.loads import check_table_name
from svcctl.errors import NotFound, ServiceError, UsageError
from svcctl.service.language import tree
from svcctl.service.language.types import Column, Type
from svcctl.words import among, counted


class UnknownTable(NotFound):
    """There is no table with this name. `names` are the names of the existing tables."""

    reason = "unknown-table"

    def __init__(self, name: str, names: Iterable[str]) -> None:
        super().__init__(f"no table '{name}'", hint=among(name, names, "tables"), data={"table": name})


class TableExists(UsageError):
    """A new table cannot be made, because a table with its name already exists."""

    reason = "table-exists"

    def __init__(self, name: str) -> None:
        super().__init__(f"table '{name}' already exists", data={"table": name})


class AlreadyLoaded(UsageError):
    """The table already has a load with this ID."""

    reason = "already-loaded"

    def __init__(self, name: str, load_id: str) -> None:
        super().__init__(f"table '{name}' already has the load {load_id}")


class ColumnsChanged(ServiceError):
    """A load failed because another load changed the columns of its table at the same time."""

    def __init__(self, name: str) -> None:
        super().__init__(f"another load changed the columns of table '{name}'; nothing was changed", code=503)


WIDER: Mapping[Type, tuple[Type, ...]] = {
    Type.INT4: (Type.INT8, Type.FLOAT8, Type.STR),
    Type.INT8: (Type.FLOAT8, Type.STR),
    Type.FLOAT8: (Type.STR,),
    Type.BOOL: (Type.STR,),
    Type.IP4: (Type.STR,),
    Type.TIMESTAMP: (Type.STR,),
    Type.STR: (),
}
"""The types to which a column of each type can be widened.

A column of type int8 cannot become float8 if it has a number that float8 cannot hold exactly.
"""


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """A change of the columns of a table by a load. `before` are the old columns, and `after` are the new columns.

    Added columns are at the end. Other columns may get a wider type.
    """

    before: tuple[Column, ...]
    after: tuple[Column, ...]

    @property
    def added(self) -> tuple[Column, ...]:
        return self.after[len(self.before) :]

    @property
    def widened(self) -> tuple[tuple[Column, Column], ...]:
        """The columns with a new type, as pairs of the old column and the new column."""
        pairs = zip(self.before, self.after, strict=False)
        return tuple((old, new) for old, new in pairs if old != new)

    def check(self, name: str, columns: Sequence[Column]) -> None:
        """Raise ColumnsChanged if the present columns of the table, `columns`, differ from the old columns.

        Raises UsageError if two columns would have the same name, or if a column cannot get its new type.
        """
        if tuple(columns) != self.before:
            raise ColumnsChanged(name)
        if len({column.name.casefold() for column in self.after}) < len(self.after):
            raise UsageError(f"table '{name}' would have two columns of the same name")
        for old, new in self.widened:
            if old.name != new.name or new.type not in WIDER[old.type] or old.name == "eventdate":
                raise UsageError(f"column '{old.name}' of table '{name}' cannot become {new.name} {new.type}")


def unwidened(name: str, column: Column, values: int) -> UsageError:
    """Return the error for a column that cannot be widened. `values` is the number of values that would change."""
    return UsageError(
        f"column '{column.name}' of table '{name}' has {counted(values, 'value')} that float8 cannot hold exactly",
        hint=f"nothing was changed; widen it to {Type.STR}, which keeps all digits",
    )


def check_table(name: str, columns: Sequence[Column], existing: Collection[str], *, replace: bool = False) -> None:
    """Raise UsageError if the name or a column of a new table is not allowed. Raise TableExists if the table exists."""
    check_table_name(name)
    if name in tree.RESERVED:
        raise UsageError(f"'{name}' cannot be the name of a table: queries would need back quotes around it")
    if Column("eventdate", Type.TIMESTAMP) not in columns:
        raise UsageError(f"table '{name}' needs a column eventdate of type timestamp")
    if len({column.name.casefold() for column in columns}) < len(columns):
        raise UsageError(f"table '{name}' would have two columns of the same name")
    if name in existing and not replace:
        raise TableExists(name)
    check_case(name, existing)


def check_case(name: str, existing: Iterable[str]) -> None:
    """Raise UsageError if the name differs from the name of an existing table only in case.

    Some engines treat such names as the same name.
    """
    for other in existing:
        if other != name and other.casefold() == name.casefold():
            raise UsageError(f"table '{name}' differs from table '{other}' only in case", hint=f"use '{other}'")


def replaced(name: str) -> ServiceError:
    """Return the error for a query that continues after its table was dropped or replaced."""
    return ServiceError(
        f"table '{name}' was dropped or replaced, so the query cannot continue; a new query or job reads its new events"
    )


def widened(name: str) -> ServiceError:
    """Return the error for a query that continues after one of its columns got a wider type."""
    return ServiceError(
        f"a column of table '{name}' has a wider type now, so the answer cannot continue; a new query has this type"
    )


def lost(name: str) -> ServiceError:
    """Return the error for a query that continues after its table has lost events that the query needs."""
    return ServiceError(
        f"table '{name}' has lost events, so the query cannot continue; a new query or job reads those that are left"
    )


def moved(name: str) -> ServiceError:
    """Return the error for a query that continues after its table was moved to another engine."""
    return ServiceError(
        f"table '{name}' was moved, so the query cannot continue; a new query or job reads its events where it is now"
    )
