"""What a listing prints."""

from collections.abc import Sequence
from typing import Any, TypeVar

from svcctl.terminal.layout import TableColumn
from svcctl.terminal.records import Listing

T = TypeVar("T")


def laid_out(listing: Listing[T], models: Sequence[T], *, shown: bool) -> tuple[list[TableColumn], list[list[Any]]]:
    """The columns of a listing and the values of all models, for people (`shown`) or for programs."""
    columns, rows = listing.laid_out(models, shown=shown)
    return columns, list(rows)
