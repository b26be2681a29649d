"""The columns of a query's answer, and the functions that read the columns from a result in a compact format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from svcctl.words import json_text


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result. `type` is the service's name for the type; None in a format without types."""

    name: str
    type: str | None = None


def columns_of(m: object) -> tuple[ResultColumn, ...]:
    """Return the columns in the member `m` of a result in a compact format, in the order of their `index`.

    Raises ValueError if `m` is not an object of columns, or if the indexes are not 0, 1, 2 and so on.
    """
    if not isinstance(m, Mapping):
        raise ValueError("m is not an object")
    entries: list[tuple[int, ResultColumn]] = []
    for name, entry in m.items():
        index = entry.get("index") if isinstance(entry, Mapping) else None
        if not isinstance(index, int) or isinstance(index, bool):
            raise ValueError(f"column '{name}' has no index")
        entries.append((index, ResultColumn(str(name), _type(entry))))
    entries.sort(key=lambda entry: entry[0])
    if [index for index, _ in entries] != list(range(len(entries))):
        raise ValueError("the column indexes are not 0, 1, 2 and so on")
    return tuple(column for _, column in entries)


def columns_listed(metadata: object) -> tuple[ResultColumn, ...]:
    """Return the columns in the member `metadata` of a result in a compact format, in the order of the list.

    Raises ValueError if `metadata` is not a list of columns.
    """
    if not isinstance(metadata, list) or not all(isinstance(entry, Mapping) and "name" in entry for entry in metadata):
        raise ValueError("metadata is not a list of names and types")
    return tuple(ResultColumn(str(entry["name"]), _type(entry)) for entry in metadata)


METADATA = {"m": columns_of, "metadata": columns_listed}
"""The two members that can describe the columns in a compact format, each with the function that reads the member.

Some services send one of the two members, others send both.
"""


def _type(described: Mapping[str, Any]) -> str | None:
    name = described.get("type")
    return None if name is None else json_text(name)
