"""The columns of a table in Delta's metadata and in the files of the table.

Delta has no type for IP addresses. So the metadata of each field states the type of the column in the query language.

Three hidden columns come last. `_load` is the number of the load that stored the row. `_row` is the number of the row
in the load. `day` is the day of the event (UTC), which is also in the path of a file. If the events have a column with
one of these names, another `_` is put before the name of the hidden column.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from svcctl.errors import UsageError
from svcctl.service.engines import ARROW
from svcctl.service.language.types import Column, Type

TYPE_KEY = "svcctl.type"
LOADED_KEY = "svcctl.load"
"""A key in commits that store a load. Its value is the number of the load."""
REMOVED_KEY = "svcctl.removed"
"""A key in commits that remove events. Its value is a date. All removed events are earlier than this date."""
ADDED_KEY = "svcctl.added"
"""A key in the configuration of a table. Its value is the number of columns that loads have added to the table."""
DROPPED_KEY = "svcctl.dropped"
"""A key in the configuration of a table. It marks the table as dropped."""

DELTA: Mapping[Type, str] = {
    Type.TIMESTAMP: "timestamp_ntz",
    Type.STR: "string",
    Type.INT4: "integer",
    Type.INT8: "long",
    Type.FLOAT8: "double",
    Type.BOOL: "boolean",
    Type.IP4: "long",
}
"""The Delta type for each type of the query language.

IP addresses are 64-bit integers, because other readers have no unsigned 32-bit integers.
"""

PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["timestampNtz"],
    "writerFeatures": ["timestampNtz"],
}


@dataclass(frozen=True, slots=True)
class Hidden:
    """The names of the hidden columns of a table."""

    day: str
    load: str
    row: str


def hidden(columns: Iterable[Column]) -> Hidden:
    taken = {column.name.casefold() for column in columns}

    def free(name: str) -> str:
        return free(f"_{name}") if name in taken else name

    return Hidden(free("day"), free("_load"), free("_row"))


def stored(type_: Type) -> pa.DataType:
    """Return the Arrow type in which files store values of a type of the query language."""
    return pa.int64() if type_ is Type.IP4 else ARROW[type_]


def file_schema(columns: Sequence[Column]) -> pa.Schema:
    """Return the Arrow schema of a table's files. The log has the day of each file, so the column `day` is left out."""
    names = hidden(columns)
    fields = [pa.field(column.name, stored(column.type)) for column in columns]
    return pa.schema([*fields, pa.field(names.load, pa.int64()), pa.field(names.row, pa.int64())])


def metadata(columns: Sequence[Column], id_: str, created: int, *, dropped: bool = False) -> dict[str, Any]:
    """Return the metadata of a new table. `created` is in epoch milliseconds."""
    return {
        "id": id_,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": _fields(columns)}),
        "partitionColumns": [hidden(columns).day],
        "configuration": {
            _STATISTICS_KEY: _statistics(columns),
            "delta.logRetentionDuration": "interval 90 days",
            **({DROPPED_KEY: "true"} if dropped else {}),
        },
        "createdTime": created,
    }


def changed_metadata(table: str, before: Mapping[str, Any], columns: Sequence[Column], added: int) -> dict[str, Any]:
    """Return the metadata of a table after its columns were changed.

    Fields and settings that other tools have added are kept. Raises UsageError if another tool has added a field with
    the name of a new column.
    """
    fields = json.loads(before["schemaString"])["fields"]
    own = {column.name for column in columns_of(before["schemaString"])}
    names = hidden(columns_of(before["schemaString"]))
    others = [field for field in fields if field["name"] not in {*own, names.load, names.row, names.day}]
    for column in columns:
        if column.name.casefold() in {field["name"].casefold() for field in others}:
            raise UsageError(f"another tool has added a column '{column.name}' to table '{table}'")
    configuration = before["configuration"] | {ADDED_KEY: str(added), _STATISTICS_KEY: _statistics(columns)}
    return {
        **before,
        "schemaString": json.dumps({"type": "struct", "fields": [*_fields(columns), *others]}),
        "partitionColumns": [hidden(columns).day],
        "configuration": configuration,
    }


_STATISTICS_KEY = "delta.dataSkippingStatsColumns"


def _statistics(columns: Sequence[Column]) -> str:
    return f"eventdate,{hidden(columns).load}"


def _fields(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Return the fields of a table's schema, including the hidden columns."""
    names = hidden(columns)
    fields = [_field(column.name, DELTA[column.type], {TYPE_KEY: str(column.type)}) for column in columns]
    return [*fields, _field(names.load, "long"), _field(names.row, "long"), _field(names.day, "date")]


def columns_of(schema: str) -> tuple[Column, ...]:
    """Return the columns of a table from its schema in Delta, without the hidden columns.

    If another tool has made the table, the result is empty.
    """
    fields = json.loads(schema)["fields"]
    return tuple(
        Column(field["name"], Type(field["metadata"][TYPE_KEY])) for field in fields if TYPE_KEY in field["metadata"]
    )


def _field(name: str, type_: str, metadata: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": True, "metadata": metadata or {}}
