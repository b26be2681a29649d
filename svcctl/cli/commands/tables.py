"""`svcctl tables`: the tables of a service, and the columns of one table.

The HTTP interface has no standard operation that lists tables or columns. svcctl's own service has additional routes
for this. For other services, the columns of a table come from a query's answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter
from typing import Annotated, Any

import typer

from svcctl.cli.columns.tables import TABLES
from svcctl.cli.commands import page_of
from svcctl.cli.completion.words import Completes
from svcctl.cli.context import Context
from svcctl.cli.listing import ListOptions, print_list
from svcctl.cli.options import FromOpt, spread
from svcctl.dates.range import dates_of
from svcctl.errors import EmptyResult, NotFound, ServiceError
from svcctl.terminal.layout import Style, format_cell, iso_text
from svcctl.terminal.records import ListField, Listing

EXAMPLES = 20
"""The number of events to request. A column that is null in all these events has no example."""

NameArg = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="Show the columns of this table."), Completes("tables")
]

COLUMNS = Listing[Sequence[Any]](
    (
        ListField("column", itemgetter(0), "id"),
        ListField("type", itemgetter(1), "id"),
        ListField(
            "example",
            lambda row: iso_text(row[2]) if row[1] == "timestamp" and isinstance(row[2], int) else row[2],
            shown=lambda row: None if row[2] is None else format_cell(row[2], row[1], Style()),
        ),
    )
)
"""The columns of the list that `svcctl tables NAME` prints. Each row describes a column of the table."""


def register(app: typer.Typer) -> None:
    app.command("tables", help=page_of("tables", tables))(tables)


@spread
def tables(ctx: typer.Context, name: NameArg = None, from_: FromOpt = None, *, options: ListOptions) -> None:
    """Without NAME: each table with its number of events, the dates of the first and the last event, and its
    approximate size. Even a small table can take 256 KiB on the disk. Only the local service lists its tables. Dates in
    csv, tsv and JSON are ISO 8601 in UTC: 2026-01-31T10:00:00.000Z.

    With NAME: the columns of the table, their types, and a value of each column. Other services do not list columns. So
    the columns come from the answer to a query of the last day, or from --from until now.

    \b
    svcctl tables
    svcctl tables auth.all
    """
    svc: Context = ctx.obj
    if name is None:
        print_list(svc, TABLES, lambda: _listed(svc), options)
    else:
        print_list(svc, COLUMNS, lambda: _columns(svc, name, from_), options)


def _listed(svc: Context) -> Sequence[Any]:
    from svcctl.api import own_service

    try:
        return own_service.tables(svc.client)
    except NotFound:
        raise NotFound(
            "the service does not list its tables: the interface has no operation for it",
            hint="'svcctl tables NAME' shows the columns of a table; ask the operator of the service for the names",
        ) from None


def _columns(svc: Context, name: str, from_: Any) -> list[list[Any]]:
    """Return a row for each column of a table: the name of the column, its type and an example value."""
    from svcctl.api import own_service

    try:
        stored = own_service.table(svc.client, name)
    except ServiceError as error:  # another service may refuse the route in any way, or there is no such table
        if isinstance(error, NotFound):
            _check_known(svc, name)
        stored = None
    if stored is None or from_ is not None or stored.oldest is None or stored.newest is None:
        zone = svc.profile.time_zone
        dates = dates_of(from_ or "1d", "now", None, zone, now=svc.now(), written=False)
        for text in dates.notes(terminal=False):
            svc.diagnostics.note(text)
        start, end, said = dates.from_, dates.to, f"from {dates.label}"
    else:
        end, said = min(stored.newest // 1000 + 1, math.floor(svc.clock())), ""  # a service waits for a future end
        start = min(stored.oldest // 1000, end)
    columns, examples = _sample(svc, name, start, end)
    types = dict(column.rsplit(" ", 1) for column in stored.columns) if stored else {}
    if not columns and not types:
        raise EmptyResult(
            f"table '{name}' has no events {said}, so its columns are not known",
            hint="choose an earlier start, such as --from 30d",
        )
    if said:
        svc.diagnostics.note(f"the examples are {said}" if examples else f"there are no events {said}")
    return [[column, types.get(column, type_), examples.get(column)] for column, type_ in columns.items()]


def _check_known(svc: Context, name: str) -> None:
    """Raise NotFound if the service lists its tables and has no table with this name."""
    from svcctl.api import own_service
    from svcctl.words import among

    try:
        names = [table.name for table in own_service.tables(svc.client)]
    except ServiceError:
        return
    if names and name not in names:
        raise NotFound(f"no table '{name}'", hint=among(name, names, "tables"))


def _sample(svc: Context, name: str, start: Any, end: Any) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the columns of a table, with their types in the answer, and the first non-null value of each column."""
    from svcctl.api.query import QueryRequest

    request = QueryRequest(start, end, query=f"from {name}", mode="json/compact", limit=EXAMPLES)
    examples: dict[str, Any] = {}
    with svc.client.query(request) as answer:
        for row in answer.rows():
            for column, value in zip(answer.columns, row, strict=True):
                if value is not None:
                    examples.setdefault(column.name, value)
        return {column.name: column.type or "" for column in answer.columns}, examples
