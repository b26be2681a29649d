"""Which shared folder the services of a shared state have their tables in: jobs of the state read those.

A service that has another folder, or none, would take the jobs and end them, since it does not find their tables. The
state remembers the identity of the folder, which is an object in it, so the same folder may have several addresses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Row, delete, insert, select

from svcctl.errors import UsageError
from svcctl.service import schema
from svcctl.service.store import Store

if TYPE_CHECKING:  # its packages are an extra
    from svcctl.service.engines.lake.folder import Folder


def require_same(store: Store, folder: Folder | None) -> None:
    """UsageError when the folder is not that of the state. The state gets that of the first service that has one."""
    if not store.shared:
        return
    if (known := _known(store)) is None:
        if folder is None:
            return
        folder.make()
        identity = folder.identify()
        with store.transaction() as connection:
            if connection.execute(select(schema.folder)).first() is None:
                connection.execute(insert(schema.folder).values(identity=identity, uri=folder.uri))
        known = _known(store)
    assert known is not None
    if folder is None:
        raise UsageError(
            f"the state is that of services with the shared folder {known.uri}, and this one has none",
            hint=f"start it with --tables {known.uri}",
        )
    folder.require_there()
    if folder.identity() != known.identity:
        raise UsageError(
            f"the state is that of services with the shared folder {known.uri}, and {folder.uri} is another one",
            hint=f"start it with --tables {known.uri}; for {folder.uri} to take its place, its file {folder.IDENTITY}"
            f" must hold {known.identity}",
        )
    if folder.uri != known.uri:
        with store.transaction() as connection:
            connection.execute(delete(schema.folder))
            connection.execute(insert(schema.folder).values(identity=known.identity, uri=folder.uri))


def changed(store: Store, uri: str | None) -> str | None:
    """What the folder of a service with a state of its own was before, if that was another or none ("none")."""
    if store.shared:
        return None
    known = _known(store)
    if known is None or known.uri != (uri or "none"):
        with store.transaction() as connection:
            connection.execute(delete(schema.folder))
            connection.execute(insert(schema.folder).values(identity="", uri=uri or "none"))
    return None if known is None or known.uri == (uri or "none") else str(known.uri)


def _known(store: Store) -> Row[tuple[str, str]] | None:
    with store.reading() as connection:
        return connection.execute(select(schema.folder)).first()
