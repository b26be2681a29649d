"""Opens the tables of a shared folder, loads files into them and compacts them, without a running service.

The packages of Delta Lake are an optional extra, so they are imported only when needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from svcctl.api.loads import Loaded, LoadOptions
from svcctl.errors import NotFound
from svcctl.io import extras
from svcctl.service.loading.decompression import Source
from svcctl.service.loading.limits import LoadLimits
from svcctl.service.loading.load import load
from svcctl.service.settings import TABLES_LOCK
from svcctl.service.state import folder_identity
from svcctl.service.state.store import Store

if TYPE_CHECKING:
    from svcctl.service.engines.lake.shared_tables import LakeTables


@dataclass(frozen=True, slots=True)
class Compacted:
    """The result of compacting a table: the numbers of files that were merged, made and removed."""

    table: str
    small: int
    made: int
    removed: int


def opened(uri: str, environment: Mapping[str, str]) -> LakeTables:
    """Return the tables of the shared folder with this URI.

    Raises UsageError for an invalid URI, and MissingExtra if packages are not installed.
    """
    extras.need("lake", "a shared folder of tables")
    from svcctl.service.engines.lake.shared_tables import LakeTables

    lock_file = TABLES_LOCK.read(environment)
    return LakeTables(uri, environment, lock_file=Path(lock_file) if lock_file else None)


def load_into(
    uri: str,
    environment: Mapping[str, str],
    sources: Sequence[Source],
    table: str,
    options: LoadOptions,
    load_id: str | None,
    go_on: Callable[[], None],
    notify: Callable[[str], None],
    *,
    create: bool = False,
    state: Store | None = None,
) -> Loaded | None:
    """Load files into a table of a shared folder, as the function `load` does.

    Returns None if the table already has a load with this ID. Raises Unavailable if the folder does not exist. Also
    raises the errors of `folder_identity.check`. With `create`, this check may create a missing folder. `notify` then
    receives a message.
    """
    with opened(uri, environment) as lake:
        folder = lake.folder
        if folder_identity.check(state, folder, create=create):  # before files are read, because reading may take long
            notify(f"made the shared folder {folder.uri}")
        limits = LoadLimits.read(environment)
        return load(lake, sources, table, options, go_on, load_id=load_id, limits=limits)


def compact(
    uri: str, environment: Mapping[str, str], table: str | None, keep: timedelta, state: Store | None = None
) -> Iterator[Compacted]:
    """Merge small files of a table, or of all tables if `table` is None. Also remove files that are no longer needed.

    A file is kept for the time `keep` after it was last needed.
    """
    with opened(uri, environment) as lake:
        from svcctl.service.engines.lake.upkeep import vacuum

        folder_identity.check(state, lake.folder)
        names = lake.folder.names() if table is None else [lake.table(table).name]
        if not names:
            raise NotFound(f"no tables in {uri}")
        for name in names:
            small, made = lake.compact(name) if lake.current(name) else (0, 0)
            yield Compacted(name, small, made, vacuum(lake, name, keep))
