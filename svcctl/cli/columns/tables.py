"""The columns of tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from svcctl.terminal.layout import iso_text, second_text
from svcctl.terminal.records import ListField, Listing
from svcctl.words import size_text

if TYPE_CHECKING:
    from svcctl.api.own_service import TableExtent


def _date(name: str, milliseconds: Callable[[TableExtent], int | None]) -> ListField[TableExtent]:
    return ListField(
        name,
        lambda table: iso_text(milliseconds(table)),
        shown=lambda table: second_text(milliseconds(table)),
        shown_type="id",
    )


TABLES: Listing[TableExtent] = Listing(
    (
        ListField("name", lambda table: table.name, "id"),
        ListField("events", lambda table: table.events, "int8"),
        _date("from", lambda table: table.oldest),
        _date("to", lambda table: table.newest),
        ListField(
            "size",
            lambda table: table.bytes,
            "int8",
            shown=lambda table: None if table.bytes is None else size_text(table.bytes),
            shown_type="id",
        ),
    )
)
