"""Columns of a table as Delta and its files have them.

The type that the language has for a column is in the metadata of the field, because Delta has no type of addresses. The
hidden columns come last: the day of the event (UTC), by which files lie in folders, the number of the load that stored
the row, and the number of the row in it. When events have a column of such a name, it is prefixed by another `_`.
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
"""In the commit of a load, its number."""
DROPPED_KEY = "svcctl.dropped"
"""In the configuration of a table that was dropped."""

DELTA: Mapping[Type, str] = {
    Type.TIMESTAMP: "timestamp_ntz",
    Type.STR: "string",
    Type.INT4: "integer",
    Type.INT8: "long",
    Type.FLOAT8: "double",
    Type.BOOL: "boolean",
    Type.IP4: "long",
}
"""Types of Delta. Addresses are whole numbers of 64 bits: readers of other make have none of 32 without a sign."""

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
    """The type that files have for a column."""
    return pa.int64() if type_ is Type.IP4 else ARROW[type_]


def file_schema(columns: Sequence[Column]) -> pa.Schema:
    """The columns of a file. The day is not among them: it is in the log."""
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
    """The columns of a table's schema, without the hidden ones. A table of other make has none."""
    fields = json.loads(schema)["fields"]
    return tuple(
        Column(field["name"], Type(field["metadata"][TYPE_KEY])) for field in fields if TYPE_KEY in field["metadata"]
    )


def _field(name: str, type_: str, metadata: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": True, "metadata": metadata or {}}
