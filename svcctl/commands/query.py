"""`svcctl query`: run a query; its rows go to stdout, to a file or, as a job, to a destination."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svcctl.api import jobs
from svcctl.api.destinations import TYPES
from svcctl.commands import page_of
from svcctl.completion import words
from svcctl.completion.words import FILES, Completes
from svcctl.context import Context
from svcctl.errors import EmptyResult, IncompleteResult, SvcctlError, Unavailable, UsageError
from svcctl.inputs import dates, destination, query_text
from svcctl.options import (
    DateFormatOpt,
    ForceOpt,
    FromOpt,
    OutputOpt,
    QueryFileOpt,
    QueryFormatOpt,
    QueryTextArg,
    TimeZoneOpt,
    ToOpt,
    VarOpt,
)
from svcctl.terminal.formats import FORMATS, Format
from svcctl.terminal.records import LAUNCHED
from svcctl.terminal.tables import Style
from svcctl.time_limit import time_limit

if TYPE_CHECKING:
    from svcctl.api.events import QueryResponse
    from svcctl.api.follow import Follow
    from svcctl.api.query import QueryRequest


QueryIdOpt = Annotated[str | None, typer.Option("--query-id", metavar="ID", help="Run a saved query.")]
LimitOpt = Annotated[int | None, typer.Option("--limit", min=0, metavar="N", help="Stop after N rows.")]
SkipOpt = Annotated[int | None, typer.Option("--skip", min=0, metavar="N", help="Skip the first N rows.")]
ColumnsOpt = Annotated[
    str | None,
    typer.Option("--columns", metavar="A,B", help="Show only these columns (table, vertical, chart)."),
]
ChartOpt = Annotated[bool, typer.Option("--chart", help="The same as --format chart: bars, or a line over time.")]
FailOnEmptyOpt = Annotated[bool, typer.Option("--fail-on-empty", help="Exit 8 when there are no rows.")]
FollowOpt = Annotated[
    bool,
    typer.Option(
        "--follow", help="Keep running and print new events as they arrive (like tail -f); see 'svcctl help formats'."
    ),
]
MaxTimeOpt = Annotated[
    float | None,
    typer.Option("--max-time", min=0, metavar="S", help="Fail after S seconds, retries included; --follow stops."),
]
DestOpt = Annotated[
    str | None,
    typer.Option(
        "--dest",
        metavar="TYPE",
        help=f"Send the rows to a destination: {', '.join(TYPES)} (see 'svcctl help destinations').",
    ),
    Completes(words=words.destinations),
]
DestParamOpt = Annotated[
    list[str] | None,
    typer.Option("--dest-param", metavar="K=V", help="Parameter of --dest; K=@FILE reads its value."),
    Completes(words=words.destination_parameters, by_destination=words.parameters_by_destination),
]
DestJsonOpt = Annotated[
    Path | None,
    typer.Option("--dest-json", metavar="FILE", help="Destination, or its parameters, as JSON."),
    Completes(FILES),
]
DryRunOpt = Annotated[bool, typer.Option("--dry-run", help="Print the request (secrets masked) instead of sending it.")]


def register(app: typer.Typer) -> None:
    app.command("query", help=page_of("query", query))(query)


def query(
    ctx: typer.Context,
    from_: FromOpt,
    text: QueryTextArg = None,
    to: ToOpt = None,
    follow: FollowOpt = False,
    max_time: MaxTimeOpt = None,
    file: QueryFileOpt = None,
    query_id: QueryIdOpt = None,
    var: VarOpt = None,
    limit: LimitOpt = None,
    skip: SkipOpt = None,
    format: QueryFormatOpt = None,
    columns: ColumnsOpt = None,
    chart: ChartOpt = False,
    date_format: DateFormatOpt = None,
    time_zone: TimeZoneOpt = None,
    output: OutputOpt = None,
    force: ForceOpt = False,
    fail_on_empty: FailOnEmptyOpt = False,
    dest: DestOpt = None,
    dest_param: DestParamOpt = None,
    dest_json: DestJsonOpt = None,
    dry_run: DryRunOpt = False,
) -> None:
    """Examples:

    \b
    svcctl query 'from demo.ecommerce.data where statusCode >= 500' --from 2h
    svcctl query 'from auth.all group every 10m select count()' --from 1d --chart
    svcctl query -F errors.q --from 7ad --to today -f csv -o errors.csv.gz
    echo 'from auth.all select user' | svcctl query - --from today -f ndjson
    svcctl query 'from auth.all' --from 1ad --to 1d -o yesterday.csv
    svcctl query 'from auth.all' --from 1h --dest donothing
    """
    from svcctl.api.query import QueryRequest

    svc: Context = ctx.obj
    target = destination.read(dest, dest_param or [], dest_json, svc.diagnostics.note)
    request = QueryRequest(
        from_=from_,
        to=_end(follow, to),
        query=query_text.given(text, file, query_id, var or []),
        query_id=query_id,
        skip=skip,
        limit=limit,
    )
    if target is not None:
        _refuse_reading(output=output, fail_on_empty=fail_on_empty, columns=columns, chart=chart, max_time=max_time)
        # A job's destination decides how rows are written. The interface takes a date format and a time zone only
        # with a mode that is not JSON, so they are sent with one.
        mode = "csv" if date_format or time_zone else "json"
        launched = replace(request, mode=mode, destination=target)
        _launch(svc, launched, format, date_format, time_zone, dry_run=dry_run)
        return
    chosen = _format(svc, format, output, chart=chart)
    names = _names(chosen, columns)
    _check_follow(chosen, follow=follow)
    request, style = _dated(svc, replace(request, mode=chosen.mode), chosen, date_format, time_zone)
    if dry_run:
        svc.output.text(svc.connect().preview(request))
        return
    with svc.output.target(output, chosen, force=force) as sink:
        if follow:
            live = partial(svc.output.live, format=chosen, sink=sink, names=names, style=style)
            rows = _follow(svc, request, live, max_time)
        else:
            show = partial(svc.output.query, format=chosen, sink=sink, names=names, style=style)
            rows = _print(svc, request, show, max_time)
        if fail_on_empty and not rows:
            raise EmptyResult("the query has no rows", hint="without --fail-on-empty this succeeds")
    if limit and rows == limit:
        count = "1 row" if rows == 1 else f"{rows} rows"
        svc.diagnostics.note(f"stopped at the limit of {count}: there may be more")


def _end(follow: bool, to: Any) -> Any:
    """The end of the range, by default now; None for a query that does not end."""
    if follow and to is not None:
        raise UsageError("--follow and --to exclude each other", hint="stop --follow with --max-time or --limit")
    return None if follow else "now" if to is None else to


def _print(
    svc: Context, request: QueryRequest, show: Callable[[QueryResponse], None], max_time: float | None
) -> int | None:
    """Print the answer; returns the number of its rows where the format shows them."""
    started = svc.clock()
    begun = False

    def late() -> SvcctlError:
        if begun:
            return IncompleteResult(f"the result is incomplete after {max_time:g} s", hint=_LATER)
        return Unavailable(f"no answer within {max_time:g} s", hint=_LATER)

    with (
        time_limit(max_time, late),
        svc.client.query(request) as answer,
        svc.diagnostics.working(lambda: _so_far(answer, svc.clock() - started)),
    ):
        begun = True
        show(answer)
    svc.diagnostics.detail(
        f"cid {answer.cid or '-'}, {'-' if answer.row_count is None else answer.row_count} rows, {answer.bytes} bytes, "
        f"{svc.clock() - started:.3f} s"
    )
    return answer.row_count


_LATER = "give it longer with --max-time, or ask for less"


def _so_far(answer: QueryResponse, seconds: float) -> str:
    if not answer.bytes:
        return f"waiting for the service, {seconds:.0f} s"
    rows = "" if answer.row_count is None else f"{answer.row_count} rows, "
    return f"{rows}{answer.bytes / 1e6:.1f} MB in {seconds:.0f} s"


def _follow(svc: Context, request: QueryRequest, show: Callable[[Follow], None], max_time: float | None) -> int | None:
    """Print rows until the time is up, the limit is reached or somebody interrupts; returns their number."""
    from svcctl.api.follow import Follow as Following

    request = replace(request, mode="json/simple/compact", date_format=None, time_zone=None)
    with (
        time_limit(max_time),
        Following(svc.client, request, notify=svc.diagnostics.note) as following,
        svc.diagnostics.working(lambda: f"{following.row_count} rows"),
    ):
        show(following)
    return following.row_count


def _check_follow(format: Format, *, follow: bool) -> None:
    if follow and not format.lines:
        lines = ", ".join(row.name for row in FORMATS.values() if row.lines)
        raise UsageError(
            f"--follow cannot be combined with format {format.name}, which needs the end of the result",
            hint=f"formats for --follow are: {lines}",
        )


def _format(svc: Context, name: str | None, output: Path | None, *, chart: bool) -> Format:
    """The format; a file is not a terminal, so `auto` is csv in one."""
    if chart and name not in (None, "chart"):
        raise UsageError(f"--chart and --format {name} exclude each other", hint="leave out one of them")
    name = "chart" if chart else name
    chosen = svc.format(name)
    auto = name in (None, "auto") and svc.profile.format == "auto"
    return svc.format("csv") if auto and output is not None else chosen


def _names(format: Format, columns: str | None) -> Sequence[str]:
    """The columns to show, none for all; a name that holds a comma is put in double quotes, as in csv."""
    if columns is None:
        return ()
    if format.raw:
        laid_out = ", ".join(row.name for row in FORMATS.values() if not row.raw)
        raise UsageError(
            f"--columns does not apply to {format.name}",
            hint=f"select the columns in the query, or use one of: {laid_out}",
        )
    names = next(csv.reader([columns], skipinitialspace=True), [])
    if not all(names) or not names:
        raise UsageError(f"--columns '{columns}' has an empty name", hint="separate names by commas: --columns user,n")
    return names


def _refuse_reading(**options: object) -> None:
    """Refuse options that only make sense when rows come back."""
    for name, value in options.items():
        if value not in (None, False):
            raise UsageError(f"--{name.replace('_', '-')} cannot be used with --dest: no rows come back")


def _launch(
    svc: Context,
    request: QueryRequest,
    format: str | None,
    date_format: str | None,
    time_zone: str | None,
    *,
    dry_run: bool,
) -> None:
    """Launch a job and print it."""
    chosen = svc.format(format, lists=True)
    ends = dates.choose(request.from_, request.to, date_format, time_zone, now=svc.now(), written=True)
    _say(svc, ends)
    request = replace(
        request, from_=ends.from_, to=ends.to, date_format=ends.date_format, time_zone=ends.time_zone or None
    )
    if dry_run:
        svc.output.text(svc.connect().preview(request))
        return
    svc.output.records(LAUNCHED, [jobs.launch(svc.client, request, svc.diagnostics.note)], chosen)


def _dated(
    svc: Context, request: QueryRequest, format: Format, date_format: str | None, time_zone: str | None
) -> tuple[QueryRequest, Style]:
    """The request with its dates as this format takes them, and how dates are shown where they are printed here."""
    if format.raw and not format.dates and (date_format or time_zone):
        option = "--date-format" if date_format else "--time-zone"
        raise UsageError(
            f"{option} does not apply to {format.name}: its timestamps are epoch milliseconds",
            hint="use it with csv, tsv, xml, xls, table or vertical",
        )
    written = format.dates and request.to is not None
    chosen = dates.choose(
        request.from_,
        request.to,
        date_format or svc.profile.date_format,
        time_zone or svc.profile.time_zone,
        now=svc.now(),
        written=written,
    )
    _say(svc, chosen)
    if chosen.range.end is not None and chosen.range.end > svc.now():
        end = f"{chosen.range.end:%Y-%m-%d %H:%M:%S} UTC"
        svc.diagnostics.note(f"--to is in the future: waiting for events until {end} (--to now ends at once)")
    request = replace(request, from_=chosen.from_, to=chosen.to)
    if written:
        return replace(request, date_format=chosen.date_format, time_zone=chosen.time_zone), Style()
    style = Style(zone=chosen.zone, zone_label=chosen.zone_name, date_format=chosen.date_format or "default")
    return request, style


def _say(svc: Context, chosen: dates.Dates) -> None:
    svc.diagnostics.detail(f"range {chosen.label}")
    for text in chosen.notes(terminal=svc.diagnostics.is_terminal):
        svc.diagnostics.note(text)
