"""`svcctl service load`, `drop` and `trim`: the events in the tables of the local service."""

from __future__ import annotations

import dataclasses
import os
import uuid
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svcctl.cli.commands.service import shared_folder
from svcctl.cli.completion import words
from svcctl.cli.completion.words import FILES, Completes
from svcctl.cli.context import Context
from svcctl.cli.inputs.load_options import ReadingOptions, zone_name
from svcctl.cli.loads import as_files, load_progress, note_empty_files, note_findings, range_text, refused_as_usage
from svcctl.cli.options import OptionHeading, YesOpt, spread
from svcctl.dates.epochs import from_ms, to_ms
from svcctl.dates.operators import moment_text
from svcctl.dates.range import read_in, start_of
from svcctl.dates.shorthand import parse_moment
from svcctl.dates.zones import named_zone
from svcctl.errors import Advice, CommandLine, SvcctlError, Terminated, UsageError
from svcctl.profiles import LOCAL
from svcctl.service.loading.kinds import FILE_KINDS
from svcctl.terminal.diagnostics import Reported
from svcctl.words import counted, plural, some

if TYPE_CHECKING:
    from svcctl.api.loads import Loaded, LoadOptions
    from svcctl.api.own_service import TableExtent

FilesArg = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Files to load; - reads standard input."), Completes(FILES)
]
TableOpt = Annotated[
    str,
    typer.Option(
        "--table", "-t", metavar="NAME", rich_help_panel=OptionHeading.TABLE, help="Table to load into, such as a.b.c."
    ),
    Completes("loaded"),
]


LoadZoneOpt = Annotated[
    str | None,
    typer.Option(
        "--time-zone",
        parser=zone_name,
        metavar="ZONE",
        rich_help_panel=OptionHeading.FILES,
        help="Time zone of dates that have none, such as GMT+2 or Europe/Berlin (default: UTC).",
    ),
    Completes("zones", words=words.time_zones),
]
LoadFormatOpt = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        rich_help_panel=OptionHeading.FILES,
        help=f"{', '.join(FILE_KINDS)}; detected if not given.",
    ),
    Completes(words=FILE_KINDS),
]
ReplaceOpt = Annotated[
    bool,
    typer.Option(
        "--replace", rich_help_panel=OptionHeading.TABLE, help="Drop the events and columns that the table has."
    ),
]
FixedOpt = Annotated[
    bool,
    typer.Option(
        "--fixed-columns",
        rich_help_panel=OptionHeading.TABLE,
        help="Load nothing if a file has a column that the table lacks.",
    ),
]
IntoOpt = Annotated[
    str | None,
    typer.Option(
        "--tables",
        metavar="URI",
        rich_help_panel=OptionHeading.TABLE,
        help="Shared folder to load into, without a service (help cluster).",
    ),
]
CreateOpt = Annotated[
    bool,
    typer.Option(
        "--create", rich_help_panel=OptionHeading.TABLE, help="With --tables: make the folder if it is not there."
    ),
]
IdOpt = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="ID",
        rich_help_panel=OptionHeading.TABLE,
        help="Load nothing if the table has a load of this ID.",
    ),
]
TrimmedArg = Annotated[str, typer.Argument(metavar="TABLE", help="Table to trim."), Completes("loaded")]
BeforeOpt = Annotated[
    Any,
    typer.Option(
        "--before",
        parser=parse_moment,
        metavar="DATE",
        help="Date before which events are removed, such as 90d (help dates).",
    ),
    Completes(words=words.start_dates),
]
TrimZoneOpt = Annotated[
    Any,
    typer.Option(
        "--time-zone", parser=named_zone, metavar="ZONE", help="Time zone of --before: GMT+2, Europe/Berlin or local."
    ),
    Completes("zones", words=words.time_zones),
]
TablesArg = Annotated[list[str], typer.Argument(metavar="TABLE…", help="Tables to drop."), Completes("loaded")]


@spread
def load(
    ctx: typer.Context,
    files: FilesArg,
    table: TableOpt,
    how: ReadingOptions,
    time_zone: LoadZoneOpt = None,
    format: LoadFormatOpt = None,
    replace: ReplaceOpt = False,
    fixed_columns: FixedOpt = False,
    tables: IntoOpt = None,
    create: CreateOpt = False,
    load_id: IdOpt = None,
) -> None:
    """Load files of events into a table of the local service

    Reads csv, tsv, ndjson, JSON arrays, parquet, access logs (common and combined), W3C logs, syslog (RFC 3164 and
    5424), lines of key=value, and other logs with a date in each entry. Files may be compressed with gzip or zstd. If
    one file is damaged or cut off, no file is loaded. 'svcctl help loading' has the details.

    \b
    svcctl service load /var/log/dpkg.log* --table debian.dpkg
    svcctl service load orders.csv -t shop.orders --types srcIp=ip4 --replace
    zcat old.csv.gz | svcctl service load - -t shop.old --time-field created
    svcctl service load orders.csv -t shop.orders --id 2026-01-31
    """
    from svcctl.api.loads import check_table_name

    svc: Context = ctx.obj
    check_table_name(table)
    if load_id is not None and not load_id.strip():
        raise UsageError("--id is empty", hint="name the load, or leave out --id")
    if create and tables is None:
        raise UsageError("--create makes a shared folder", hint="name it with --tables")
    options = how.read(format, time_zone, replace=replace, fixed_columns=fixed_columns)
    with as_files(svc, files) as paths, refused_as_usage():
        if tables is None:
            loaded = _load(svc, paths, table, options, load_id)
        else:
            given_up = partial(_tell_given_up, svc, replace=replace)
            with svc.diagnostics.working(load_progress(paths, os.getpid(), svc.clock)):
                loaded = shared_folder.load(svc, tables, paths, table, options, load_id, given_up, create=create)
            if replace and loaded is not None and loaded.before:
                loaded = dataclasses.replace(loaded, jobs=shared_folder.readers(svc, tables, table))
    if loaded is None:
        svc.diagnostics.note(f"{table} already has the load {load_id}: nothing was loaded")
        return
    _tell(svc, loaded, replace=replace)


def _load(
    svc: Context, files: Sequence[tuple[str, str]], table: str, options: LoadOptions, load_id: str | None
) -> Loaded | None:
    """Let the service load files.

    After an interruption, the service is asked whether events were stored. An answer within a second is printed.
    """
    from svcctl.api import own_service
    from svcctl.service import process

    client, attempt = svc.with_flags(profile=LOCAL).client, uuid.uuid4().hex
    try:
        with svc.diagnostics.working(load_progress(files, process.running_process(svc.files) or 0, svc.clock)):
            return own_service.load(client, files, table, options, load_id, attempt)
    except (KeyboardInterrupt, Terminated):
        with suppress(SvcctlError):
            soon = svc.with_flags(profile=LOCAL, timeout=1.0, retries=0).connect()
            ended, stored = own_service.load_ended(soon, attempt)
            if ended:
                _tell_given_up(svc, stored, replace=options.replace)
        raise


def _tell_given_up(svc: Context, stored: Loaded | None, *, replace: bool) -> None:
    if stored is None:
        svc.diagnostics.note("nothing was loaded")
    else:
        _tell(svc, stored, replace=replace)


def _tell(svc: Context, loaded: Loaded, *, replace: bool) -> None:
    note = svc.diagnostics.note
    note_empty_files(svc, loaded)
    if loaded.oldest is None or loaded.newest is None:
        note(f"nothing was loaded into {loaded.table}")
        return
    if loaded.before and replace:
        read = f", read by {_named('job', loaded.jobs)}: jobs on it stop with an error" if loaded.jobs else ""
        note(f"replaced the {counted(loaded.before, 'event')} of {loaded.table}{read}")
    note(f"loaded {counted(loaded.rows, 'event')} into {loaded.table}, {range_text(loaded.oldest, loaded.newest)}")
    if loaded.before and not replace:
        note(f"{loaded.table} already had {counted(loaded.before, 'event')}; --replace would have replaced them")
    _tell_columns(svc, loaded)
    note_findings(svc, loaded)
    if svc.diagnostics.is_terminal:
        since = from_ms(loaded.oldest)
        query = CommandLine(f"svcctl -p {LOCAL} query 'from {loaded.table}' --from {since:%Y-%m-%d}")
        note(Advice("query them with: ", query))


def _tell_columns(svc: Context, loaded: Loaded) -> None:
    """Print notes on the columns of the table that the load has added or changed."""
    note, table = svc.diagnostics.note, loaded.table
    if loaded.added:
        new = plural(len(loaded.added), "a new column", "new columns")
        note(f"{table} has {new}, null in earlier events: {some(loaded.added)}")
    if loaded.widened:
        note(f"{table} has {plural(len(loaded.widened), 'a wider column', 'wider columns')}: {some(loaded.widened)}")
    if loaded.left:
        note(f"loads can add no more columns to {table}: {some(loaded.left)} became JSON text in its column rest")


def drop(ctx: typer.Context, tables: TablesArg, yes: YesOpt = False) -> None:
    """Drop tables of the local service and their events

    Jobs on a dropped table stop with an error; other jobs and queries are not affected.
    """
    from svcctl.api import own_service

    svc: Context = ctx.obj
    client = svc.with_flags(profile=LOCAL).client
    names = list(dict.fromkeys(tables))
    if not yes:
        try:
            extents = list(svc.diagnostics.for_each(names, partial(own_service.table, client)))
        except Reported:
            svc.diagnostics.done("nothing was dropped")
            raise
        if lost := [_described(table) for table in extents if not table.live]:  # the service drops no live tables
            svc.ask(f"Drop {'; '.join(lost)}?")
    for extent in svc.diagnostics.for_each(names, partial(own_service.drop, client)):
        svc.diagnostics.note(f"dropped {_described(extent)}")


def trim(
    ctx: typer.Context, table: TrimmedArg, before: BeforeOpt, time_zone: TrimZoneOpt = None, yes: YesOpt = False
) -> None:
    """Remove events that are older than a date from a table of the local service

    Queries and jobs continue. The command is refused if a job has not read the events yet. In a shared folder, 'svcctl
    service compact' frees the disk space after --keep-for (a week by default). In the service's own file, the table is
    rewritten, which takes as long as a load. Later events reuse the space.

    \b
    svcctl service trim shop.o --before 90d --yes
    svcctl service trim shop.o --before 2024-01-31 --yes
    """
    from svcctl.api import own_service

    svc: Context = ctx.obj
    zone = time_zone or svc.profile.time_zone
    date = start_of(before, zone, now=svc.now())
    if (text := read_in(zone, svc.now(), {"--before": before})) is not None:
        svc.diagnostics.note(text)
    client = svc.with_flags(profile=LOCAL).client
    if not yes:
        extent = own_service.table(client, table)
        content = f", which has events {range_text(extent.oldest, extent.newest)}" if extent.events else ""
        svc.ask(f"Remove the events before {moment_text(date)} (UTC) from {table}{content}?")
    removed, left = own_service.trim(client, table, to_ms(date))
    rest = f", {range_text(left.oldest, left.newest)}" if left.events else ""
    svc.diagnostics.note(
        f"removed {counted(removed, 'event')} from {table}; {counted(left.events, 'is', 'are')} left{rest}"
    )


def _described(table: TableExtent) -> str:
    """Describe a table: its events, and the jobs and saved queries that read the table."""
    facts = [counted(table.events, "event")]
    if table.oldest is not None:
        facts.append(range_text(table.oldest, table.newest))
    if table.jobs:
        facts.append(f"read by {_named('job', [job.friendly_name for job in table.jobs])}")
    if table.queries:
        facts.append(f"in {_named('saved query', table.queries)}")
    return f"{table.name}: {', '.join(facts)}"


def _named(noun: str, names: Sequence[str]) -> str:
    return f"{counted(len(names), noun)} ({some(names)})"
