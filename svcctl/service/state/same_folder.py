"""Which shared folder a state belongs to: its jobs read the tables in it.

A service that has another folder, or none, would take the jobs and end them, since it does not find their tables. The
state remembers the identity of the folder, which is an object in it, so the same folder may have several addresses. A
state that services share keeps its folder. That of one service may get another one, at another address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Row, delete, insert, select

from svcctl.errors import Unavailable, UsageError
from svcctl.service.state import schema
from svcctl.service.state.store import Store

if TYPE_CHECKING:  # its packages are an extra
    from svcctl.service.engines.lake.folder import Folder

NONE = "none"


def join(store: Store, folder: Folder | None, *, create: bool = False) -> str | None:
    """Look whether the folder is that of the state; a state that has none yet gets it, and `create` makes it.

    Where the state of one service had another address before, or none ("none"), that is returned. Unavailable when the
    folder is not there or is another one; UsageError when there should be one.
    """
    known = _known(store)
    if known is not None and known.identity and (store.shared or (folder is not None and known.uri == folder.uri)):
        _require(folder, known)
    elif folder is not None:
        check(None, folder, create=create)
    elif store.shared:
        return None
    now = ("", NONE) if folder is None else (folder.identity() or "", folder.uri)
    if known != now:
        with store.transaction() as connection:
            if connection.execute(select(schema.folder)).first() == known:  # or another service was first
                connection.execute(delete(schema.folder))
                connection.execute(insert(schema.folder).values(identity=now[0], uri=now[1]))
    if store.shared and (chosen := _known(store)) is not None:
        _require(folder, chosen)
    return None if store.shared or known is None or known.uri == now[1] else str(known.uri)


def check(store: Store | None, folder: Folder, *, create: bool = False) -> bool:
    """Look whether a folder is there, and is the one that the state knows at its address, if there is a state.

    `create` makes it where the state knows none; whether that was done. Unavailable otherwise.
    """
    known = None if store is None else _known(store)
    identity = known.identity if known is not None and known.uri == folder.uri else None
    made = create and not identity and folder.create()
    folder.require(identity)
    return made


def _require(folder: Folder | None, known: Row[tuple[str, str]]) -> None:
    belongs = f"the state is that of services with the shared folder {known.uri}"
    if folder is None:
        raise UsageError(f"{belongs}, and this one has none", hint=f"start it with --tables {known.uri}")
    if folder.identity() not in (None, known.identity):
        raise Unavailable(
            f"{belongs}, and {folder.uri} is another one",
            hint=f"start it with --tables {known.uri}; for {folder.uri} to take its place, its file {folder.IDENTITY}"
            f" must hold {known.identity}",
        )
    folder.require(known.identity)


def _known(store: Store) -> Row[tuple[str, str]] | None:
    with store.reading() as connection:
        return connection.execute(select(schema.folder)).first()
