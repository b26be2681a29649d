"""`svcctl service compact` and `copy`: tables in a shared folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svcctl.cli.commands.service.control import known_state
from svcctl.cli.completion.words import Completes
from svcctl.cli.context import Context
from svcctl.cli.options import YesOpt, length_option
from svcctl.dates.lengths import parse_length
from svcctl.errors import ServiceError, SvcctlError, Terminated, UsageError
from svcctl.io import extras
from svcctl.io.time_limit import without_signals
from svcctl.profiles import LOCAL
from svcctl.service.settings import TABLES, absolute
from svcctl.words import counted

if TYPE_CHECKING:
    from svcctl.api.loads import Loaded, LoadOptions

PLACES = ("folder", "file")

TablesOpt = Annotated[
    str | None,
    typer.Option("--tables", metavar="URI", help="Shared folder of tables: a path, hdfs://… or s3://…."),
]
TableArg = Annotated[
    str | None, typer.Argument(metavar="[TABLE]", help="Table to compact (default: all tables)."), Completes("tables")
]
MovedArg = Annotated[str, typer.Argument(metavar="TABLE", help="Table to move."), Completes("tables")]


KeepOpt = Annotated[
    Any,
    length_option(
        "--keep-for", "How long to keep old files that running queries may need.", None, partial(parse_length, least=0)
    ),
]
ToOpt = Annotated[
    str,
    typer.Option("--to", metavar="PLACE", help="folder (the shared folder) or file (the local service's own file)."),
    Completes(words=PLACES),
]


def folder_of(svc: Context, uri: str | None) -> str:
    """Return the shared folder of tables. It comes from --tables, the environment or the running service.

    Raises UsageError if there is no shared folder.
    """
    from svcctl.api import own_service
    from svcctl.service import process

    if folder := uri or TABLES.read(svc.environment):
        return folder
    places = process.listens(svc.files) and own_service.status(svc.with_flags(profile=LOCAL).client).uses
    if places and "folder" in places:
        return places["folder"]
    raise UsageError("no shared folder of tables was named", hint=f"name it with --tables or {TABLES.environment}")


def load(
    svc: Context,
    uri: str,
    files: Sequence[tuple[str, str]],
    table: str,
    options: LoadOptions,
    load_id: str | None,
    given_up: Callable[[Loaded | None], None],
    *,
    create: bool,
) -> Loaded | None:
    """Load files into a table of a shared folder. Each file is a pair of a path and a name for messages.

    Returns None if the table already has a load with this `load_id`. With `create`, the folder is made if it does not
    exist. If the load is interrupted, the function `given_up` is called with the result of the load, or with None if no
    events were stored. The load runs in its own thread, so that Ctrl-C does not interrupt DuckDB.
    """
    extras.need("service", "the local service")
    from svcctl.service.loading import shared_folder
    from svcctl.service.loading.decompression import Source

    sources = [Source(Path(path), name) for path, name in files]
    gone, state = Event(), known_state(svc)

    def go_on() -> None:
        if gone.is_set():
            raise ServiceError("the load was interrupted")

    with ThreadPoolExecutor(1, initializer=without_signals) as thread:
        arguments = (uri, os.environ, sources, table, options, load_id, go_on, svc.diagnostics.note)
        loads = thread.submit(shared_folder.load_into, *arguments, create=create, state=state)
        try:
            return loads.result()
        except (KeyboardInterrupt, Terminated):
            gone.set()
            given_up(None if loads.exception() else loads.result())
            raise


def readers(svc: Context, uri: str, table: str) -> tuple[str, ...]:
    """Return the jobs that read a table of a shared folder.

    The local service knows these jobs only if it runs with this folder. If the service does not answer, the result is
    empty.
    """
    from svcctl.api import own_service
    from svcctl.service import process

    with suppress(SvcctlError):
        client = svc.with_flags(profile=LOCAL).client
        runs = process.listens(svc.files) and own_service.status(client).uses
        if runs and runs.get("folder") == absolute(uri).rstrip("/"):
            return tuple(job.friendly_name for job in own_service.table(client, table).jobs)
    return ()


def compact(
    ctx: typer.Context,
    table: TableArg = None,
    tables: TablesOpt = None,
    keep: KeepOpt = "7d",
) -> None:
    """Join the small files of loads in a shared folder into large files

    Queries and loads continue during the command. Files that are no longer part of a table are removed after
    --keep-for. If --keep-for is a day or more, files of killed loads are removed, too. So no load may take longer than
    --keep-for.

    \b
    svcctl service compact
    svcctl service compact shop.o --tables tables --keep-for 2d
    """
    svc: Context = ctx.obj
    extras.need("service", "the local service")
    from svcctl.service.loading import shared_folder

    uri, state = folder_of(svc, tables), known_state(svc)
    for done in shared_folder.compact(uri, os.environ, table, timedelta(seconds=keep), state):
        made = f"{counted(done.small, 'small file')} made into {done.made}, " if done.small else ""
        svc.diagnostics.note(f"{done.table}: {made}{counted(done.removed, 'old file')} removed")


def copy(ctx: typer.Context, table: MovedArg, to: ToOpt = "folder", yes: YesOpt = False) -> None:
    """Move a table of the local service to the shared folder, or back

    The service must run with --tables. Later queries read the table in its new place. Jobs on the table stop with an
    error. If there are such jobs, the command asks first.
    """
    from svcctl.api import own_service

    svc: Context = ctx.obj
    if to not in PLACES:
        raise UsageError(f"unknown place '{to}'", hint=f"places are: {', '.join(PLACES)}")
    client = svc.with_flags(profile=LOCAL).client
    jobs = own_service.table(client, table).jobs
    if jobs and not yes:
        names = ", ".join(job.friendly_name for job in jobs)
        svc.ask(f"Move {table}, and stop {counted(len(jobs), 'job')} on it with an error ({names})?")
    events = own_service.copy(client, table, to)
    place = "shared folder" if to == "folder" else to
    svc.diagnostics.note(f"moved {table} to the {place}: {counted(events, 'event')}")
