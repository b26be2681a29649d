"""Operations of svcctl's own service that the interface does not have: listing its tables, and loading events."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from svcctl.api.client import Client
from svcctl.api.payloads import record, records


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table of events; `columns` are names and types, as `statusCode int4`."""

    name: str
    columns: tuple[str, ...]

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.rpartition(" ")[0] for column in self.columns)


@dataclass(frozen=True, slots=True)
class Status:
    """`address` is host and port, when the service listens on TCP too."""

    version: str
    address: str | None
    tables: tuple[StoredTable, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of a load; lines that are not events are skipped; `first_skipped` is the place of the first."""

    table: str
    rows: int
    skipped: int
    first_skipped: str | None


def status(client: Client) -> Status:
    """The version of the service, and its tables."""
    answer = record(client.call("GET", "/service/status"))
    tables = tuple(StoredTable(str(row["name"]), tuple(row["columns"])) for row in records(answer, "tables"))
    return Status(str(answer.get("version")), answer.get("address"), tables)


def load(client: Client, path: str, table: str, *, time_field: str | None, format: str | None) -> Loaded:
    """Load a file of the service's machine into a table."""
    body: dict[str, Any] = {"path": path, "table": table, "timeField": time_field, "format": format}
    answer = record(client.call("POST", "/service/load", json.dumps(body).encode()))
    return Loaded(str(answer["table"]), int(answer["rows"]), int(answer["skipped"]), answer.get("first_skipped"))
