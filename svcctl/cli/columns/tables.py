"""The columns of tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from svcctl.terminal.layout import iso_text, second_text
from svcctl.terminal.records import Field, Listing
from svcctl.words import size_text

if TYPE_CHECKING:
    from svcctl.api.own_service import Extent


def _date(name: str, milliseconds: Callable[[Extent], int | None]) -> Field[Extent]:
    return Field(
        name,
        lambda table: iso_text(milliseconds(table)),
        shown=lambda table: second_text(milliseconds(table)),
        shown_type="id",
    )


TABLES: Listing[Extent] = Listing(
    (
        Field("name", lambda table: table.name, "id"),
        Field("events", lambda table: table.events, "int8"),
        _date("from", lambda table: table.oldest),
        _date("to", lambda table: table.newest),
        Field(
            "size",
            lambda table: table.bytes,
            "int8",
            shown=lambda table: None if table.bytes is None else size_text(table.bytes),
            shown_type="id",
        ),
    )
)
