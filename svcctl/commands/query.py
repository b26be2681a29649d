"""`svcctl query`: one query, its answer on stdout or in a file."""

from __future__ import annotations

import csv
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svcctl.api.dates import DATE_FORMATS, depends_on_zone, parse_zone, resolve
from svcctl.api.destinations import TYPES
from svcctl.completion import words
from svcctl.completion.words import FILES, Completes
from svcctl.context import Context
from svcctl.errors import EmptyResult, SvcctlError, UsageError
from svcctl.inputs import destination, query_text
from svcctl.options import ForceOpt, FromOpt, OutputOpt, QueryFileOpt, QueryFormatOpt, QueryTextArg, TimeZoneOpt, ToOpt
from svcctl.terminal.formats import FORMATS, Format
from svcctl.terminal.output import Sink

if TYPE_CHECKING:
    from svcctl.api.events import QueryResponse
    from svcctl.api.query import QueryRequest


QueryIdOpt = Annotated[str | None, typer.Option("--query-id", metavar="ID", help="Run a saved query.")]
VarOpt = Annotated[
    list[str] | None, typer.Option("--var", metavar="K=V", help="Fill {{K}} in the query with V as a quoted literal.")
]
LimitOpt = Annotated[int | None, typer.Option("--limit", min=0, metavar="N", help="Stop after N rows.")]
SkipOpt = Annotated[int | None, typer.Option("--skip", min=0, metavar="N", help="Leave out the first N rows.")]
DateFormatOpt = Annotated[
    str | None,
    typer.Option("--date-format", metavar="NAME", help="How dates are printed: default, sql or iso."),
    Completes(words=DATE_FORMATS),
]
ColumnsOpt = Annotated[
    str | None,
    typer.Option("--columns", metavar="A,B", help="Only these columns, in this order, in a table, vertical or chart."),
]
ChartOpt = Annotated[bool, typer.Option("--chart", help="The same as --format chart: bars, or a line over time.")]
FailOnEmptyOpt = Annotated[bool, typer.Option("--fail-on-empty", help="Exit 8 when there are no rows.")]
FollowOpt = Annotated[bool, typer.Option("--follow", help="Go on without an end: print events as they are stored.")]
MaxTimeOpt = Annotated[
    float | None, typer.Option("--max-time", min=0, metavar="S", help="End --follow after S seconds.")
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
    typer.Option("--dest-json", metavar="FILE", help="The destination, or its parameters, in JSON."),
    Completes(FILES),
]
DryRunOpt = Annotated[bool, typer.Option("--dry-run", help="Print the request instead of sending it, secrets masked.")]


def register(app: typer.Typer) -> None:
    app.command("query")(query)


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
    """Run a query over the events of a range.

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
    if target is not None:
        _refuse_reading(output=output, fail_on_empty=fail_on_empty, columns=columns, chart=chart, max_time=max_time)
        _launch(
            svc,
            QueryRequest(
                from_=from_,
                to=_end(follow, to),
                query=_text(text, file, query_id, var or []),
                query_id=query_id,
                mode="csv" if date_format or time_zone else "json",
                destination=target,
                date_format=date_format,
                time_zone=time_zone,
                skip=skip,
                limit=limit,
            ),
            format,
            dry_run=dry_run,
        )
        return
    chosen = _format(svc, format, output, chart=chart)
    names = _names(chosen, columns)
    _check_follow(chosen, follow=follow, max_time=max_time)
    request = QueryRequest(
        from_=from_,
        to=_end(follow, to),
        query=_text(text, file, query_id, var or []),
        query_id=query_id,
        mode=chosen.mode,
        limit=limit,
        skip=skip,
    )
    request = _with_dates(svc, request, chosen, date_format, time_zone)
    svc.diagnostics.query_text = request.query
    if dry_run:
        svc.output.text(svc.connect().preview(request))
        return
    with svc.output.target(output, chosen, force=force) as sink:
        rows: int | None
        if follow:
            rows = _follow(svc, request, chosen, sink, names, max_time)
        else:
            rows = _print(svc, request, chosen, sink, names)
        if fail_on_empty and not rows:
            raise EmptyResult("the query has no rows", hint="without --fail-on-empty this is a success")
    if limit and rows == limit:
        count = "1 row" if rows == 1 else f"{rows} rows"
        svc.diagnostics.note(f"{count}, the limit: there may be more")


def _end(follow: bool, to: Any) -> Any:
    """The end of the range, by default now; none for a query that goes on."""
    if follow and to is not None:
        raise UsageError("--follow has no end: leave out --to", hint="end it with --max-time or --limit")
    return None if follow else "now" if to is None else to


def _print(svc: Context, request: QueryRequest, format: Format, sink: Sink, names: Sequence[str]) -> int | None:
    """Print the answer; returns its rows where the format shows them."""
    started = svc.clock()
    with svc.client.query(request) as answer:
        svc.activity = lambda: _so_far(answer, svc.clock() - started)
        svc.output.query(answer, format, sink, names)
    svc.diagnostics.detail(
        f"cid {answer.cid or '-'}, {'-' if answer.row_count is None else answer.row_count} rows, {answer.bytes} bytes, "
        f"{svc.clock() - started:.3f} s"
    )
    return answer.row_count


def _so_far(answer: QueryResponse, seconds: float) -> str:
    if not answer.bytes:
        return f"waiting for the service, {seconds:.0f} s"
    rows = "" if answer.row_count is None else f"{answer.row_count} rows, "
    return f"{rows}{answer.bytes / 1e6:.1f} MB in {seconds:.0f} s"


def _follow(
    svc: Context, request: QueryRequest, format: Format, sink: Sink, names: Sequence[str], max_time: float | None
) -> int:
    """Print rows as they arrive until the time is up, the limit is reached or somebody interrupts."""
    from svcctl.api.follow import Follow

    request = replace(request, mode="json/simple/compact", date_format=None, time_zone=None)
    with time_limit(max_time), Follow(svc.client, request, notify=svc.diagnostics.note) as following:
        svc.activity = lambda: f"{following.row_count} rows"
        svc.output.live(following.columns, following.rows(), format, sink, names)
    return following.row_count


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Leave the block after `seconds`, from wherever it is."""

    class TimeIsUp(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise TimeIsUp

    if seconds is None:
        yield
        return
    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except TimeIsUp:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _check_follow(format: Format, *, follow: bool, max_time: float | None) -> None:
    if max_time is not None and not follow:
        raise UsageError("--max-time goes with --follow")
    if follow and not format.lines:
        lines = ", ".join(row.name for row in FORMATS.values() if row.lines)
        raise UsageError(f"{format.name} has an end, and --follow has none", hint=f"follow in one of: {lines}")


def _format(svc: Context, name: str | None, output: Path | None, *, chart: bool) -> Format:
    """The format; a file is not a terminal, so `auto` is csv in one."""
    if chart and name not in (None, "chart"):
        raise UsageError(f"--chart is a format, and --format {name} is another", hint="leave out one of them")
    name = "chart" if chart else name
    chosen = svc.format(name)
    auto = name in (None, "auto") and svc.profile.format == "auto"
    return svc.format("csv") if auto and output is not None else chosen


def _names(format: Format, columns: str | None) -> Sequence[str]:
    """The columns to show, none for all; a name that holds a comma stands in double quotes, as in csv."""
    if columns is None:
        return ()
    if format.raw:
        laid_out = ", ".join(row.name for row in FORMATS.values() if not row.raw)
        raise UsageError(
            f"--columns does not apply to {format.name}: its columns are the query's",
            hint=f"select them in the query, or use one of: {laid_out}",
        )
    names = next(csv.reader([columns], skipinitialspace=True), [])
    if not all(names) or not names:
        raise UsageError(f"--columns '{columns}' lacks a name", hint="separate names by commas: --columns user,n")
    return names


def _text(text: str | None, file: Path | None, query_id: str | None, var: list[str]) -> str | None:
    """The query's text, None where a saved query is run instead."""
    if query_id is None:
        return query_text.fill(query_text.read(text, file), var)
    if text is not None or file is not None or var:
        raise UsageError("--query-id runs a saved query as it is", hint="leave out the text, --file and --var")
    return None


def _refuse_reading(**options: object) -> None:
    """Options of an answer that is read here make no sense for one that goes elsewhere."""
    for name, value in options.items():
        if value not in (None, False):
            raise UsageError(f"--{name.replace('_', '-')} does not go with --dest: no rows come back")


def _launch(svc: Context, request: QueryRequest, format: str | None, *, dry_run: bool) -> None:
    """Launch a job and print it; its ID at least, when it cannot be read back."""
    from svcctl.api.models import Job
    from svcctl.terminal.tables import TableColumn

    chosen = svc.format(format, lists=True)
    resolve(request.from_, request.to, now=svc.now(), zone=parse_zone(request.time_zone or "GMT"))
    svc.diagnostics.query_text = request.query
    if dry_run:
        svc.output.text(svc.connect().preview(request))
        return
    job_id = svc.client.launch(request)
    try:
        job = svc.client.job(job_id)
    except SvcctlError as error:
        svc.diagnostics.note(f"the job is launched, but {error.message}")
        job = Job(job_id, "")
    names = ("id", "status", "type", "friendlyName")
    fields = job.to_json()
    svc.output.records([TableColumn(name) for name in names], [[fields.get(name) for name in names]], chosen)


def _with_dates(
    svc: Context, request: QueryRequest, format: Format, date_format: str | None, time_zone: str | None
) -> QueryRequest:
    """The request with dates and zone as this format takes them, and the range checked before it is sent.

    Formats in which the service prints dates get both as they are. In the JSON formats the interface has neither:
    asked for explicitly they are refused, and where dates are printed here (tables, --follow) zone-dependent ends
    become epoch seconds.
    """
    if format.raw and not format.dates and (date_format or time_zone):
        option = "--date-format" if date_format else "--time-zone"
        raise UsageError(
            f"{option} does not apply to {format.name}: its timestamps are epoch milliseconds",
            hint="use it with csv, tsv, xml, xls, table or vertical",
        )
    date_format = date_format or svc.profile.date_format
    if date_format not in (None, *DATE_FORMATS):
        raise UsageError(f"date format '{date_format}' is not one of {', '.join(DATE_FORMATS)}")
    time_zone = time_zone or svc.profile.time_zone
    zone = parse_zone(time_zone or "GMT")
    now = svc.now()
    resolved = resolve(request.from_, request.to, now=now, zone=zone)
    until = "" if resolved.end is None else f" to {resolved.end:%Y-%m-%d %H:%M:%S}"
    svc.diagnostics.detail(f"range {resolved.start:%Y-%m-%d %H:%M:%S}{until} (UTC)")
    if resolved.end is not None and resolved.end > now:
        svc.diagnostics.note(f"the range ends in the future,{until[3:]} UTC: the answer ends then")
    if format.dates and request.to is not None:
        return replace(request, date_format=date_format, time_zone=time_zone)

    svc.output.style = replace(
        svc.output.style, zone=zone, zone_label=time_zone or "", date_format=date_format or "default"
    )
    # A query that goes on may be asked again, and must then mean the same; `to` counts from `from`.
    fixed = request.to is None or (time_zone and (depends_on_zone(request.from_) or depends_on_zone(request.to)))
    if not fixed:
        return request
    end = None if resolved.end is None else int(resolved.end.timestamp())
    return replace(request, from_=int(resolved.start.timestamp()), to=end)
