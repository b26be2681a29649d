"""The columns of a table in Delta's metadata and in its files.

The language's type of a column is in the metadata of the field, because Delta has no type for addresses. The hidden
columns come last: the day of the event (UTC), by which files are in folders, the number of the load that stored the
row, and the number of the row in the load. If events have a column of such a name, the hidden one gets another `_`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from svcctl.service.engines import ARROW
from svcctl.service.language.types import Column, Type

TYPE_KEY = "svcctl.type"
LOADED_KEY = "svcctl.load"
"""The key for the number of a load, in the load's commit."""
DROPPED_KEY = "svcctl.dropped"
"""The key that marks a dropped table, in the table's configuration."""

DELTA: Mapping[Type, str] = {
    Type.TIMESTAMP: "timestamp_ntz",
    Type.STR: "string",
    Type.INT4: "integer",
    Type.INT8: "long",
    Type.FLOAT8: "double",
    Type.BOOL: "boolean",
    Type.IP4: "long",
}
"""Types of Delta. Addresses are 64-bit integers, because other readers have no unsigned 32-bit integers."""

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
    """The Arrow type of a column in files."""
    return pa.int64() if type_ is Type.IP4 else ARROW[type_]


def file_schema(columns: Sequence[Column]) -> pa.Schema:
    """The columns of a file. The day is not among them, because it is in the log."""
    names = hidden(columns)
    fields = [pa.field(column.name, stored(column.type)) for column in columns]
    return pa.schema([*fields, pa.field(names.load, pa.int64()), pa.field(names.row, pa.int64())])


def metadata(columns: Sequence[Column], id_: str, created: int, *, dropped: bool = False) -> dict[str, Any]:
    """The metadata of a new table; `created` is in epoch milliseconds."""
    names = hidden(columns)
    fields = [_field(column.name, DELTA[column.type], {TYPE_KEY: str(column.type)}) for column in columns]
    fields += [_field(names.load, "long"), _field(names.row, "long"), _field(names.day, "date")]
    return {
        "id": id_,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [names.day],
        "configuration": {
            "delta.dataSkippingStatsColumns": f"eventdate,{names.load}",
            "delta.logRetentionDuration": "interval 90 days",
            **({DROPPED_KEY: "true"} if dropped else {}),
        },
        "createdTime": created,
    }


def columns_of(schema: str) -> tuple[Column, ...]:
    """The columns of a table's schema, without the hidden ones. Empty for a table that another tool has made."""
    fields = json.loads(schema)["fields"]
    return tuple(
        Column(field["name"], Type(field["metadata"][TYPE_KEY])) for field in fields if TYPE_KEY in field["metadata"]
    )


def _field(name: str, type_: str, metadata: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": True, "metadata": metadata or {}}
