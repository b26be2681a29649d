"""`svcctl query --load`: a query of files.

The local service loads the files as the table `file`, for this query only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from svcctl.api.loads import FILE_TABLE
from svcctl.api.query import ALL_COLUMNS, QueryRequest, answer
from svcctl.cli.commands.query import request, result
from svcctl.cli.context import Context
from svcctl.cli.inputs.text import STDIN, is_stdin
from svcctl.dates.epochs import from_ms, to_seconds
from svcctl.dates.lengths import length_text
from svcctl.dates.operators import MAX_EPOCH_SECONDS
from svcctl.errors import NoRows, SvcctlError, Unavailable, UsageError
from svcctl.io.time_limit import time_limit
from svcctl.profiles import LOCAL
from svcctl.terminal.layout import second_text
from svcctl.terminal.selection import Selection
from svcctl.words import counted

if TYPE_CHECKING:
    from svcctl.api.loads import Loaded, LoadOptions
    from svcctl.cli.commands.query.options import QueryOptions

_EXCLUDED = {
    "follow": "the files get no more events",
    "every": "the files are read once",
    "dry_run": "the request has the dates of the files",
    "query_id": "saved queries read stored tables",
    **dict.fromkeys(("dest", "dest_param", "dest_json"), "jobs read stored tables"),
}
"""The options that cannot be used with --load, and the reasons."""
_LAST_END_MS = MAX_EPOCH_SECONDS * 1000
"""The latest possible end of the range of a query, in epoch milliseconds."""
_READ_AGAIN = "svcctl query --load - …"
"""A command that reads events from a pipe. Hints contain this command."""


def query(svc: Context, options: QueryOptions) -> None:
    """Load the files, print the answer to the query, and remove the table.

    By default, the range of the query covers all events of the files.
    """
    if (name := options.given(*_EXCLUDED)) is not None:
        raise UsageError(f"--load and {name} exclude each other: {_EXCLUDED[name[2:].replace('-', '_')]}")
    if svc.flags.profile not in (None, LOCAL):
        raise UsageError(
            f"--load asks the local service, not that of --profile {svc.flags.profile}", hint="leave out --profile"
        )
    _check_standard_input(options)
    zone = options.load_time_zone or (options.time_zone and options.time_zone.shared_name)
    reading = options.reading.read(options.load_format, zone)
    svc = svc.with_flags(profile=LOCAL)
    draft = request.asked(svc, options)
    _check_table(draft.query or "", options)
    chosen = request.format_for(svc, options)
    draft, selection = request.cut_where_sorted(draft, options.selection)
    request.check(draft, chosen, selection, options)
    begun = time.monotonic()
    with _loaded(svc, options, draft, reading, selection) as (table, loaded):
        _tell(svc, loaded)
        start, end = _range(svc, options, loaded)
        draft = replace(draft, from_=start, to=end, temporary_table=table)
        if loaded.newest is None and options.fail_on_empty:
            raise NoRows("the files have no events")
        if loaded.newest is None and chosen.name == "chart":
            return  # the columns of the answer have no types, and without rows nothing is printed
        if loaded.newest is None:
            draft = replace(draft, query=_without_rows(_columns(draft, selection)))
        question = request.question(svc, draft, chosen, selection, options, loaded=loaded)
        if options.max_time is not None:
            left = round(options.max_time - (time.monotonic() - begun), 1)
            options = replace(options, max_time=max(left, 0.1))
        result.once(svc, question, options)


def _check_standard_input(options: QueryOptions) -> None:
    """Raise UsageError if both the files and the query would come from standard input."""
    name = next((str(file) for file in options.load or () if is_stdin(file)), None)
    no_text = options.text is None and options.file is None
    if name and (no_text or options.text == STDIN or (options.file is not None and is_stdin(options.file))):
        raise UsageError(
            f"--load {name} reads the events from standard input, so the query cannot come from there",
            hint="give the query as an argument, or with -F FILE",
        )


def _check_table(text: str, options: QueryOptions) -> None:
    """Raise UsageError if a query names one of the files as its table."""
    begin, named, *_ = (*text.split(maxsplit=2), "", "")
    name = named.strip("`'\"")
    if begin == "from" and name != FILE_TABLE and name in {str(file) for file in options.load or ()}:
        raise UsageError(
            f"the files of --load are the table {FILE_TABLE}",
            hint=f"write 'from {FILE_TABLE}' in place of 'from {named}'",
        )


@contextmanager
def _loaded(
    svc: Context, options: QueryOptions, draft: QueryRequest, reading: LoadOptions, selection: Selection
) -> Iterator[tuple[str, Loaded]]:
    """Load the files into a table that exists during the `with` block. The load may take at most --max-time.

    Yields the ID of the table, and the result of the load.
    """
    from contextlib import ExitStack

    from svcctl.api import own_service
    from svcctl.cli import loads
    from svcctl.service import process

    def late(seconds: float) -> SvcctlError:
        error = Unavailable(
            f"the files were not loaded within {length_text(seconds)}", hint="give it longer with --max-time"
        )
        return svc.late(seconds, error)

    with ExitStack() as holding:
        with time_limit(options.max_time, late):
            files = holding.enter_context(loads.as_files(svc, options.load or ()))
            client = svc.client
            with (
                loads.refused_as_usage(load=_READ_AGAIN, format_option="--load-format"),
                svc.diagnostics.working(loads.load_progress(files, process.running_process(svc.files) or 0, svc.clock)),
            ):
                columns = _columns(draft, selection)
                table = own_service.temporary_table(client, files, reading, draft.query or "", columns)
                loaded = holding.enter_context(table)
        yield loaded


def _tell(svc: Context, loaded: Loaded) -> None:
    """Print notes on files without events, and on the lines that a load has skipped or changed.

    On a terminal, also print the number of loaded events.
    """
    from svcctl.cli import loads

    loads.note_empty_files(svc, loaded)
    if loaded.oldest is not None and loaded.newest is not None:
        dates = loads.range_text(loaded.oldest, loaded.newest)
        svc.diagnostics.done(f"loaded {counted(loaded.rows, 'event')}, {dates}")
    loads.note_findings(svc, loaded)


def _range(svc: Context, options: QueryOptions, loaded: Loaded) -> tuple[Any, Any]:
    """Return the start and the end of the range.

    By default, the range begins at the first event and ends after the last event. If --from is given and the last event
    is in the past, the range ends now. The default end is at most _LAST_END_MS.
    """
    oldest, newest = (
        svc.now() if date is None else from_ms(min(date, last))
        for date, last in ((loaded.oldest, _LAST_END_MS - 1), (loaded.end, _LAST_END_MS))
    )
    if options.to is None and loaded.end is not None and loaded.end > _LAST_END_MS:
        svc.diagnostics.note(f"the range ends at {second_text(_LAST_END_MS)} (UTC), and the files have later events")
    start = to_seconds(oldest) if options.from_ is None else options.from_
    end = "now" if options.from_ is not None and newest <= svc.now() else to_seconds(newest)
    return start, end if options.to is None else options.to


def _columns(draft: QueryRequest, selection: Selection) -> list[str]:
    """Return the columns that are named in the query and in the options. An answer without rows has these columns."""
    names = (*answer(draft.query or ""), *selection.columns, *(key.column for key in selection.sort))
    return list({name.casefold(): name for name in names if name != ALL_COLUMNS}.values())


def _without_rows(columns: list[str]) -> str:
    """Return a query that selects the given columns of the empty table `file`."""
    names = ", ".join(f"`{name.replace('`', '``')}`" for name in columns)
    return f"from {FILE_TABLE} select {names}" if names else f"from {FILE_TABLE}"
