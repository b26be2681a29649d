"""Changes of a table by a load. A load can add missing columns, and can widen a column to a type that the user names.

Loads can add a limited number of columns to a table. When the limit is reached, all further members of JSON are stored
as JSON text in one column, REST. Files of other kinds are refused if they have further columns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from svcctl.api.loads import LoadOptions
from svcctl.errors import UsageError
from svcctl.service.engines.duckdb.syntax import literal, quote
from svcctl.service.engines.table_rules import WIDER, ColumnChange
from svcctl.service.language.types import Column, Table, Type
from svcctl.service.loading.limits import MAX_FIELDS
from svcctl.service.loading.recognition import Layout
from svcctl.service.loading.skips import NOTHING_CHANGED
from svcctl.service.loading.values import field as value_field
from svcctl.service.settings import LOAD_COLUMNS
from svcctl.words import counted

REST = "rest"
"""The name of the column for JSON members that would exceed the maximum number of columns."""
_ANEW = "load into another table, or replace it"
DIFFERS = "columns-differ"
"""The `reason` of errors about files whose columns differ from those of the table."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The changes that a table needs before files are loaded. `types` has the types of the columns in the files.

    `left` has the members of JSON that are stored in the column REST, because they would be too many columns.
    `change` is None if the table's columns stay the same.
    """

    layouts: Sequence[Layout]
    types: Mapping[str, Type]
    change: ColumnChange | None = None
    left: tuple[str, ...] = ()

    @property
    def added(self) -> tuple[str, ...]:
        """The new columns, each with its type."""
        return tuple(f"{column.name} {column.type}" for column in self.change.added) if self.change else ()

    @property
    def widened(self) -> tuple[str, ...]:
        """The widened columns, each with its types before and after the load."""
        pairs = self.change.widened if self.change else ()
        return tuple(f"{old.name} from {old.type} to {new.type}" for old, new in pairs)


def growth(
    table: Table, layouts: Sequence[Layout], types: Mapping[str, Type], options: LoadOptions, most: int
) -> Growth:
    """Find the changes that a table needs before files are loaded. `types` has the columns of the files.

    All loads together add at most `most` columns to a table. A new column without a value in any file is left out,
    because the type of this column is not known yet. Raises UsageError if the files do not fit the table. Also raises
    UsageError if the table needs new columns, but the option `fixed_columns` forbids new columns.
    """
    table_types = {column.name: column.type for column in table.columns}
    wider = _wider(table, table_types, options)
    new = [name for name in types if name not in table_types]
    if new and options.fixed_columns:
        raise UsageError(
            f"table '{table.name}' has no column {', '.join(map(repr, new))}",
            hint=f"it has {', '.join(table_types)}",
            reason="columns-fixed",
        )
    new = [name for name in new if name in options.types or _has_value(layouts, name)]
    _check_case(table, new)
    room = max(0, min(most - table.added, MAX_FIELDS - len(table_types)))
    left = new[room:]
    file_types = {name: type_ for name, type_ in types.items() if name in table_types or name in new[:room]}
    if left:
        _check_rest(table, layouts, left, table_types, len(new), most)
        layouts = [_with_rest(layout, left) if _is_json(layout) else layout for layout in layouts]
        file_types[REST] = Type.STR
    after = table_types | wider | {name: type_ for name, type_ in file_types.items() if name not in table_types}
    check_number(table.name, len(after))
    file_types = {name: after[name] for name in file_types}
    change = ColumnChange(table.columns, tuple(Column(name, type_) for name, type_ in after.items()))
    return Growth(layouts, file_types, None if change.after == change.before else change, tuple(left))


def check_number(table: str, count: int) -> None:
    """Raise UsageError if a table would have too many columns."""
    if count > MAX_FIELDS:
        raise UsageError(
            f"table '{table}' would have {count:,} columns, more than the {MAX_FIELDS:,} that a table can have",
            hint=NOTHING_CHANGED,
        )


def wider_type(type_: Type, value: str) -> Type | None:
    """Return the narrowest type that is wider than `type_` and can hold `value`.

    Returns None if there is no such type.
    """
    for wider in WIDER[type_]:
        try:
            if wider is Type.STR or (wider is Type.FLOAT8 and float(value) is not None):
                return wider
            if wider is Type.INT8 and -(1 << 63) <= int(value) < 1 << 63:
                return wider
        except ValueError:
            continue
    return None


def _wider(table: Table, table_types: Mapping[str, Type], options: LoadOptions) -> dict[str, Type]:
    """Return the columns that the user widens in a table, with their new types.

    Raises UsageError for a type that is not wider.
    """
    wider = {
        name: Type(word) for name, word in options.types.items() if name in table_types and table_types[name] != word
    }
    for name, type_ in wider.items():
        if options.fixed_columns or type_ not in WIDER[table_types[name]] or name == "eventdate":
            raise UsageError(
                f"column '{name}' of table '{table.name}' is already {table_types[name]}, not {type_}",
                hint=_ANEW,
                reason=DIFFERS,
            )
    return wider


def _has_value(layouts: Sequence[Layout], name: str) -> bool:
    return any(name in layout.types and name not in layout.columns.blank for layout in layouts)


def _check_case(table: Table, new: Collection[str]) -> None:
    """Raise UsageError if the name of a new column differs from an existing name only in case.

    Engines treat such names as equal.
    """
    names = {column.name.casefold(): column.name for column in table.columns}
    for name in new:
        if other := names.get(name.casefold()):
            raise UsageError(
                f"column '{name}' differs from column '{other}' of table '{table.name}' only in case",
                hint=f"name it '{other}' in the file, or {_ANEW}",
                reason=DIFFERS,
            )


def _check_rest(
    table: Table,
    layouts: Sequence[Layout],
    left: Collection[str],
    table_types: Mapping[str, Type],
    count: int,
    most: int,
) -> None:
    """Raise UsageError if the columns `left`, which exceed the limit, cannot be stored in the column REST."""
    others = [layout for layout in layouts if not _is_json(layout) and not layout.types.keys().isdisjoint(left)]
    has_own = any(REST in layout.types for layout in layouts) or table_types.get(REST, Type.STR) is not Type.STR
    if others or has_own:
        raise UsageError(
            f"the load would add {counted(count, 'column')} to table '{table.name}', but loads may add at most "
            f"{most} in all, and have already added {table.added}",
            hint=f"{NOTHING_CHANGED}; set {LOAD_COLUMNS.name} for the service, or {_ANEW}",
            reason=DIFFERS,
        )


def _is_json(layout: Layout) -> bool:
    return layout.file.kind.name in ("ndjson", "json")


def _with_rest(layout: Layout, names: Collection[str]) -> Layout:
    """Return the layout of a JSON file with the additional column REST.

    `names` has the columns whose values REST contains, as JSON text. In each row, columns without a value are left out.
    If all of these columns are null in a row, then REST is null.
    """
    columns = layout.columns
    members = []
    for name in names:
        if name in layout.types:
            value = f"({columns.sql[name]})"
            is_nested = f"json_valid({value}) AND json_type({value}) IN ('OBJECT', 'ARRAY')"
            text = f"to_json({value})::VARCHAR"
            if columns.types[name] == "VARCHAR":
                text = f"CASE WHEN {is_nested} THEN {value} ELSE {text} END"
            key = f"to_json({literal(name)})::VARCHAR"
            members.append(f"CASE WHEN {value} IS NOT NULL THEN {key} || ':' || {text} END")
    sql = f"nullif('{{' || concat_ws(',', {', '.join(members)}) || '}}', '{{}}')" if members else "NULL::VARCHAR"
    changed = replace(columns, sql={**columns.sql, REST: sql}, types={**columns.types, REST: "VARCHAR"})
    fields = {**layout.fields, REST: value_field(quote(REST), "VARCHAR", "UTC")}
    return replace(layout, columns=changed, fields=fields)
