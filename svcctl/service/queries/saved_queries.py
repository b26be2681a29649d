"""Saved queries. A request can run a saved query by its `queryId`.

The HTTP interface has no operations to save queries, so `svcctl service queries` saves them. A query is parsed when it
is saved. But the table and the columns of the query are looked up only when the query runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlalchemy import delete, select

from svcctl.errors import NotFound, QueryPosition, ServiceError, UsageError
from svcctl.service.state.schema import queries
from svcctl.service.state.store import Store, replace
from svcctl.words import did_you_mean

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class SavedQuery:
    id: str
    text: str


def list_queries(store: Store) -> list[SavedQuery]:
    """List all saved queries, ordered by ID."""
    with store.reading() as connection:
        return [SavedQuery(**row) for row in connection.execute(select(queries).order_by(queries.c.id)).mappings()]


def get(store: Store, id: str) -> SavedQuery:
    """Return the saved query with this ID. Raises NotFound if there is no such query."""
    with store.reading() as connection:
        row = connection.execute(select(queries).where(queries.c.id == id)).mappings().one_or_none()
        ids = [] if row else connection.execute(select(queries.c.id)).scalars().all()
    if row is None:
        near = did_you_mean(id, ids)
        raise NotFound(
            f"no saved query '{id}'", hint=near, reason="unknown-query", data={"query": id, "similar": near is not None}
        )
    return SavedQuery(**row)


def check(query: SavedQuery) -> None:
    """Check that a query can be saved. Raises ServiceError with the position of a syntax error.

    Raises UsageError if the query's ID is invalid, or if the query has a variable. Only `svcctl query` and `svcctl
    export` replace variables.
    """
    # Imported here because the import of the parser takes longer than listing or deleting a query.
    from svcctl.service.language import QueryError, parse

    if not _ID.fullmatch(query.id):
        raise UsageError(
            f"invalid query ID '{query.id}'",
            hint="use 1 to 100 letters, digits, '.', '_' or '-', and start with a letter or digit",
        )
    try:
        parse(query.text)
    except QueryError as error:
        if variable := _VARIABLE.match(query.text.split("\n")[error.line - 1], error.column - 1):
            raise UsageError(
                f"a saved query has no variables such as {variable[0]}",
                reason="saved-query-variable",
                data={"variable": variable[1]},
            ) from None
        raise ServiceError(
            str(error),
            place=QueryPosition(error.line, error.column),
            query=query.text,
            reason=error.reason,
            data=error.data,
        ) from None


def put(store: Store, query: SavedQuery) -> None:
    """Save a query. An existing query with the same ID is replaced. Raises the errors of `check`."""
    check(query)
    with store.transaction() as connection:
        replace(connection, queries, id=query.id, text=query.text)


def remove(store: Store, id: str) -> None:
    """Delete a saved query. Raises NotFound if there is no query with this ID."""
    with store.transaction() as connection:
        if not connection.execute(delete(queries).where(queries.c.id == id)).rowcount:
            raise NotFound(f"no saved query '{id}'")
