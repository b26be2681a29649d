"""The options of all commands that print a list, and the function that prints the list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from svcctl.cli.context import Context
from svcctl.cli.options import ColumnsOpt, FormatOpt, NoHeaderOpt, SortOpt, TopOpt
from svcctl.terminal.records import Listing
from svcctl.terminal.selection import Selection, selection_of

T = TypeVar("T")


@dataclass(frozen=True)
class ListOptions:
    """The options of a list."""

    format: FormatOpt = None
    columns: ColumnsOpt = None
    sort: SortOpt = None
    top: TopOpt = None
    no_header: NoHeaderOpt = False

    @cached_property
    def selection(self) -> Selection:
        return selection_of(self.columns, self.sort, self.top, self.no_header)


def print_list(
    svc: Context, listing: Listing[T], read: Callable[[], Sequence[T]], options: ListOptions, nothing: str | None = None
) -> None:
    """Check the options, then print the objects that `read` returns.

    `nothing` is a note for a terminal if there are no objects. In formats such as csv, the note is not printed.
    """
    chosen, selection = svc.format(options.format, lists=True), options.selection
    models = read()
    svc.output.records(listing, models, chosen, selection)
    if nothing is not None and not models and not chosen.raw:
        svc.diagnostics.done(nothing)
