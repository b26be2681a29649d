"""Checks that a service uses the shared folder that belongs to its state. The jobs in the state read this folder.

A service with another folder, or without a folder, would not find the tables of the jobs, and would end the jobs. So
the folder has an identity, which is stored in the state and in the folder. The address of the folder is not enough,
because the same folder may have several addresses.

If several services share a state, the folder of the state cannot be changed. A service that does not share its state
may change to a folder at another address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Row, delete, insert, select

from svcctl.errors import Unavailable, UsageError
from svcctl.service.state import schema
from svcctl.service.state.store import Store

if TYPE_CHECKING:  # the packages of the lake engine are an extra
    from svcctl.service.engines.lake.folder import Folder

NO_FOLDER = "none"


def join(store: Store, folder: Folder | None, *, create: bool = False) -> str | None:
    """Check that a folder belongs to the state. If the state has no folder yet, the folder becomes the state's folder.

    With `create`, a missing folder is created. `folder` is None if the service has no shared folder.

    If the service has changed its folder, return the address of the former folder, or "none" if there was no former
    folder. Return None if nothing has changed, or if the state is new. If several services share the state, the folder
    cannot be changed, and the result is always None.

    Raises Unavailable if the folder does not exist or has another identity. Also raises UsageError if a shared state
    has a folder and the service has no folder.
    """
    row = _stored_folder(store)
    if row is not None and row.identity and (store.shared or (folder is not None and row.uri == folder.uri)):
        _require(folder, row)
    elif folder is not None:
        check(None, folder, create=create)
    elif store.shared:
        return None
    now = ("", NO_FOLDER) if folder is None else (folder.identity() or "", folder.uri)
    if row != now:
        with store.transaction() as connection:
            if connection.execute(select(schema.folder)).first() == row:  # no other service has changed the row
                connection.execute(delete(schema.folder))
                connection.execute(insert(schema.folder).values(identity=now[0], uri=now[1]))
    if store.shared and (chosen := _stored_folder(store)) is not None:
        _require(folder, chosen)
    return None if store.shared or row is None or row.uri == now[1] else str(row.uri)


def check(store: Store | None, folder: Folder, *, create: bool = False) -> bool:
    """Check that a folder exists. If the state has an identity for the folder's address, also check this identity.

    With `create`, a missing folder is created, except if the state has an identity for its address. Return whether the
    folder was created. Raises Unavailable if the check fails.
    """
    row = None if store is None else _stored_folder(store)
    identity = row.identity if row is not None and row.uri == folder.uri else None
    made = create and not identity and folder.create()
    folder.require(identity)
    return made


def _require(folder: Folder | None, row: Row[tuple[str, str]]) -> None:
    belongs = f"the state belongs to services with the shared folder {row.uri}"
    if folder is None:
        raise UsageError(f"{belongs}, but this service has no shared folder", hint=f"start it with --tables {row.uri}")
    if folder.identity() not in (None, row.identity):
        raise Unavailable(
            f"{belongs}, but {folder.uri} is another folder",
            hint=f"start it with --tables {row.uri}; to use {folder.uri} in its place, write {row.identity} "
            f"into its file {folder.IDENTITY}",
        )
    folder.require(row.identity)


def _stored_folder(store: Store) -> Row[tuple[str, str]] | None:
    with store.reading() as connection:
        return connection.execute(select(schema.folder)).first()
