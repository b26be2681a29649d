"""Opens connections to DuckDB: to the events file, to other files for reading, or to an empty database in memory.

A connection can access only the files for which it was opened. The version of an events file is a number in its table
`main.version`. If the file has a newer version or belongs to another program, the file is refused and not changed.
"""

from __future__ import annotations

import os
import re
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import duckdb

from svcctl import __version__
from svcctl.errors import Locked, UsageError
from svcctl.io.files import sync_directory
from svcctl.service.engines.duckdb import positions
from svcctl.service.engines.duckdb.statement import Cause, StatementFailed
from svcctl.service.engines.duckdb.syntax import DEFINED, literal
from svcctl.service.engines.paths import check_path

SCHEMA = "events"
VERSION = 1

MISREAD = re.compile(r"[?\\]")
"""A pattern for characters in a path that DuckDB misreads.

DuckDB reads `?` as the beginning of parameters, and a backslash as a separator.
"""

MEMORY_LIMIT, SCRATCH_LIMIT = "1GB", "500MB"
"""The maximum memory of DuckDB. MEMORY_LIMIT applies to connections for events, and SCRATCH_LIMIT to other work.

Queries and loads that need more memory for sorting or grouping use temporary files.
"""
ROW_GROUP_SIZE = 61_440
"""The number of rows in a row group of DuckDB. A load holds these rows in memory until the row group is written."""
MAX_GROUP_VALUES = 512 * ROW_GROUP_SIZE
"""The maximum number of values (rows times columns) that a load may hold in memory.

More values would not fit into MEMORY_LIMIT.
"""

_DATABASE_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "preserve_insertion_order": "true",
    # This optimizer replaces an IN with five or more values by a join. A join returns rows in any order.
    "disabled_optimizers": "in_clause",
    # By default, DuckDB collects five row groups before it writes them.
    "write_buffer_row_group_count": 1,
}
# The file is attached as `store`. Otherwise, a file with the name events.db would become a catalog `events`, and the
# name of the schema would be ambiguous. The compression zstd is off, because it compresses 2048 texts together, so that
# a single text cannot be read. At the end, access to files is closed. Only the settings that each connection needs stay
# unlocked.
_TABLES = f"""
    ATTACH {{path}} AS store (ROW_GROUP_SIZE {ROW_GROUP_SIZE});
    USE store;
    CREATE SCHEMA IF NOT EXISTS {SCHEMA};
    CREATE TABLE IF NOT EXISTS main.stored (name VARCHAR PRIMARY KEY, ordered BOOLEAN NOT NULL);
    CREATE TABLE IF NOT EXISTS main.loaded (name VARCHAR NOT NULL, id VARCHAR NOT NULL);
    CREATE TABLE IF NOT EXISTS main.grown (name VARCHAR PRIMARY KEY, added INTEGER NOT NULL);
    {positions.TABLES};
    CREATE TABLE IF NOT EXISTS main.identity AS SELECT uuid()::VARCHAR AS identity;
    CREATE TABLE IF NOT EXISTS main.version AS SELECT {VERSION} AS version
"""
_OPEN = f"""
    {DEFINED}
    {_TABLES};
    SET GLOBAL TimeZone='UTC';
    SET GLOBAL disabled_compression_methods='zstd';
    SET enable_external_access=false;
    SET allowed_configs=['enable_progress_bar', 'schema', 'search_path'];
    SET lock_configuration=true
"""
_MAKE = f"{_TABLES}; USE memory; DETACH store"

_READ = f"""
    {DEFINED}
    SET GLOBAL TimeZone='UTC';
    SET allowed_directories={{folders}};
    SET enable_external_access=false;
    SET allowed_configs=['enable_progress_bar'];
    SET lock_configuration=true
"""


def open_file(path: Path | None, *, memory_limit: str, spill: Path | None) -> duckdb.DuckDBPyConnection:
    """Connect to an events file. If `path` is None, connect to a database in memory.

    A missing file is created. Raises UsageError if a newer svcctl or another program has written the file. Also raises
    the errors of DuckDB, which a `readable` block turns into errors of svcctl.
    """
    if path is not None:
        check_path(str(path), MISREAD, f"the events file {path}", "set SVCCTL_DATA to another directory: ")
        path.parent.mkdir(parents=True, exist_ok=True)
    spill_folder = Path(f"{path}.tmp") if path else Path(tempfile.gettempdir()) / f"svcctl-{os.getpid()}.tmp"
    settings = _DATABASE_SETTINGS | {"memory_limit": memory_limit, "temp_directory": str(spill or spill_folder)}
    connection = duckdb.connect(":memory:", config=settings)
    try:
        if path is not None:
            if not path.exists():
                _make(connection, path)
            _check_version(connection, path)
        connection.execute(_OPEN.format(path=literal(str(path or ":memory:"))))
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(folder: Path | None, *, memory_limit: str, spill: Path | None) -> duckdb.DuckDBPyConnection:
    """Return a connection that has no tables and can only read files below `folder`.

    Temporary files for large sorts are written to `spill`.
    """
    spill_folder = spill or Path(tempfile.gettempdir()) / f"svcctl-{uuid.uuid4().hex}.tmp"
    settings = _DATABASE_SETTINGS | {"memory_limit": memory_limit, "temp_directory": str(spill_folder)}
    connection = duckdb.connect(":memory:", config=settings)
    allowed = "[]" if folder is None else f"[{literal(f'{folder}/')}]"
    connection.execute(_READ.format(folders=allowed))
    return connection


@contextmanager
def readable(path: Path | None) -> Iterator[None]:
    """Turn errors of DuckDB in the `with` block into errors of svcctl.

    Raises Locked if another process has the file open, and UsageError for any other error.
    """
    try:
        yield
    except duckdb.Error as error:
        failed = StatementFailed(error)
        if failed.cause is Cause.LOCKED:
            raise Locked(
                f"{path} is in use by another process", hint="stop it, or wait for it", reason="events-in-use"
            ) from None
        hint = "it may be damaged, or from a newer DuckDB: restore it from a backup, or move it away to do without it"
        if failed.cause is Cause.LOG:
            hint = f"restore both from a backup, or move {_log_of(path)} away to lose only the latest changes"
        raise UsageError(f"cannot open {path}: {failed.message}", hint=hint) from None


def _log_of(path: Path | None) -> Path:
    """Return the path of a file's write-ahead log, which has the latest changes to the file."""
    return Path(f"{path}.wal")


def _make(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Create an events file without tables.

    The file is written under another name and renamed when it is complete, because DuckDB cannot open an incomplete
    file.
    """
    new = path.with_name(f"{path.name}.new")
    if (log := _log_of(path)).exists():
        raise UsageError(
            f"events file {path} is missing, but its log {log} is there",
            hint="restore the file from a backup, or move the log away to do without the events",
        )
    for left in (new, _log_of(new)):
        if left.exists():
            left.unlink()
    connection.execute(_MAKE.format(path=literal(str(new))))
    new.replace(path)
    sync_directory(path.parent)


def _check_version(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Raise UsageError for an events file that this svcctl cannot read. The file is not changed by this check."""
    connection.execute(f"ATTACH {literal(str(path))} AS found (READ_ONLY)")
    try:
        [(version,)] = connection.execute("SELECT version FROM found.main.version").fetchall()
    except duckdb.CatalogException:
        raise UsageError(
            f"{path} is not a file of svcctl's events", hint="move it away to start with an empty one"
        ) from None
    connection.execute("DETACH found")
    if version > VERSION:
        raise UsageError(
            f"events file {path} has version {version}, and svcctl {__version__} reads versions up to {VERSION}",
            reason="newer-version",
        )


@contextmanager
def scratch() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a connection to an empty database in memory for the `with` block. Any thread may call this function."""
    with _database().cursor() as connection:
        connection.execute("SET enable_progress_bar=false")
        yield connection


@cache
def _database() -> duckdb.DuckDBPyConnection:
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": SCRATCH_LIMIT,
        "temp_directory": "",
        "python_enable_replacements": "false",
    }
    database = duckdb.connect(":memory:", config=settings)
    database.execute("SET GLOBAL TimeZone='UTC'; SET enable_external_access=false")
    database.execute("SET allowed_configs=['enable_progress_bar']; SET lock_configuration=true")
    return database
