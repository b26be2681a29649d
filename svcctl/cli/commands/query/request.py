"""The request of `svcctl query`, with its dates and the format in which its answer is printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from svcctl.api.query import QueryRequest, keys, outline
from svcctl.cli.context import Context
from svcctl.cli.inputs import destination, query_text
from svcctl.dates.epochs import to_ms
from svcctl.dates.range import Range, RequestDates, dates_of, period_note
from svcctl.errors import UsageError
from svcctl.terminal.formats import AUTO, FORMATS, OutputFormat, check_file, find_format, of_file
from svcctl.terminal.layout import Span, Style
from svcctl.terminal.selection import Selection

if TYPE_CHECKING:
    from svcctl.api.loads import Loaded
    from svcctl.cli.commands.query.options import QueryOptions


class Question(NamedTuple):
    """One or more requests that together answer a query, and the way to print the answer.

    If there are several requests, they differ only in their ranges, which follow each other.
    """

    requests: Sequence[QueryRequest]
    format: OutputFormat
    selection: Selection
    style: Style
    dates: RequestDates
    loaded: Loaded | None = None
    """The result of loading files for these requests; None if no files were loaded."""

    @property
    def request(self) -> QueryRequest:
        """The first of the requests. Often, it is the only request."""
        return self.requests[0]


def asked(svc: Context, options: QueryOptions) -> QueryRequest:
    """Return the request as it was typed. Its dates are not resolved, and its format is not set."""
    end = options.end()
    return QueryRequest(
        from_=options.from_,
        to=end,
        destination=destination.read(
            options.dest, options.dest_param or [], options.dest_json, svc.diagnostics.note, endless=end is None
        ),
        query=query_text.given(options.text, options.file, options.query_id, options.var or []),
        query_id=options.query_id,
        skip=options.skip,
        limit=options.limit,
    )


def format_for(svc: Context, options: QueryOptions) -> OutputFormat:
    """Return the format of the output. --format comes first, then the ending of the file, then the profile.

    If the output goes to a file, the format `auto` means csv.
    """
    name, output = options.format, options.output
    if options.chart and name not in (None, "chart"):
        raise UsageError(f"--chart and --format {name} exclude each other", hint="leave out one of them")
    name = "chart" if options.chart else name
    if output is None or str(output) == "-":
        return svc.format(name)
    by_name = of_file(output) if name in (None, AUTO) else None
    chosen = by_name or find_format(name or svc.profile.format, is_terminal=False)
    check_file(output, chosen, svc.diagnostics.note, by_user=name not in (None, AUTO))
    return chosen


def cut_where_sorted(request: QueryRequest, selection: Selection) -> tuple[QueryRequest, Selection]:
    """Convert --limit to --top if --sort is given.

    The service does not sort, so its limit would leave out rows before they are sorted. Raises UsageError if --sort is
    given together with --skip, or with both --limit and --top.
    """
    if not selection.sort:
        return request, selection
    if request.skip is not None:
        raise UsageError(
            "--skip and --sort exclude each other: rows would be skipped before they are sorted",
            hint="leave out --skip; --top N prints the first N rows of --sort",
        )
    if request.limit is None:
        return request, selection
    if selection.top is not None:
        raise UsageError(
            "--limit and --top exclude each other", hint=f"the first rows of --sort: --top {selection.top}"
        )
    return replace(request, limit=None), selection._replace(top=request.limit)


def check(request: QueryRequest, format: OutputFormat, selection: Selection, options: QueryOptions) -> None:
    """Raise UsageError for options that cannot be used together. This check happens before anything is sent."""
    if options.follow and not format.lines:
        lines = ", ".join(row.name for row in FORMATS.values() if row.lines)
        raise UsageError(
            f"--follow cannot be combined with format {format.name}, which needs the end of the result",
            hint=f"formats for --follow are: {lines}",
        )
    format.check(selection, follow=options.follow)
    if options.fail_on_empty and not format.counts(selection):
        counted = ", ".join(row.name for row in FORMATS.values() if row.counted)
        raise UsageError(
            f"--fail-on-empty cannot be used with format {format.name}, whose rows are not counted",
            hint=f"use one of: {counted}",
        )
    clauses = outline(request.query or "")
    whole = not (clauses.has("group") or clauses.has("select") or selection.columns)
    if format.name == "chart" and request.query and whole:
        raise UsageError(
            "a chart of whole events has nothing to measure",
            hint="group them: group every 10m select count() as n; or choose: --columns eventdate,COLUMN",
        )


def job(svc: Context, request: QueryRequest, options: QueryOptions) -> QueryRequest:
    """Return the request that launches a job.

    The mode of the request does not matter for the rows, because the destination decides how rows are written. But the
    HTTP interface does not allow a date format or a time zone in the mode json. So a request with one of them has the
    mode csv.
    """
    by_option = options.time_zone is not None
    zone = options.time_zone or svc.profile.time_zone
    ends = dates_of(request.from_, request.to, options.date_format, zone, now=svc.now(), written=by_option)
    _say(svc, ends)
    if (note := ends.offset_note()) is not None:
        svc.diagnostics.note(note)
    if ends.range.end is not None and ends.range.end > svc.now():
        until = f"{ends.range.end:%Y-%m-%d %H:%M:%S} UTC"
        svc.diagnostics.note(f"--to is in the future: the job waits for events until {until} (--to now ends at once)")
    return replace(
        request,
        mode="csv" if options.date_format or by_option else "json",
        from_=ends.from_,
        to=ends.to,
        date_format=ends.date_format,
        time_zone=ends.time_zone if by_option else None,
    )


def question(
    svc: Context,
    request: QueryRequest,
    format: OutputFormat,
    selection: Selection,
    options: QueryOptions,
    *,
    says: bool = True,
    loaded: Loaded | None = None,
) -> Question:
    """Return a request with its dates and its format, and the style in which svcctl prints dates.

    If `says` is true, notes on dates are printed. `loaded` is the result of loading the files that the request reads;
    None if the request reads no files.
    """
    if format.raw and not format.dates and options.date_format:
        raise UsageError(
            f"--date-format does not apply to {format.name}: its timestamps are epoch milliseconds",
            hint="use it with csv, tsv, xml, xls, table or vertical; in jq: (.eventdate/1000|todate)",
        )
    if format.name == "parquet" and options.date_format:
        raise UsageError("--date-format does not apply to parquet: it stores dates as timestamps, not as text")
    written = format.dates and not format.writes(selection) and not options.follow
    chosen = dates_of(
        request.from_,
        request.to,
        options.date_format or svc.profile.date_format,
        options.time_zone or svc.profile.time_zone,
        now=svc.now(),
        written=written,
        waits=options.follow or loaded is not None,
        resent=options.follow,
    )
    if loaded is not None:
        chosen = _without_notes(chosen, options)
    if says:
        _say(svc, chosen)
    shape = outline(request.query or "")
    clauses, every = shape.clauses, shape.every
    if says and selection.sort and clauses and clauses[-1].keyword in ("limit", "offset"):
        svc.diagnostics.note(f"the query's {clauses[-1].keyword} cuts rows before --sort; --top N cuts them after it")
    if says and every and (text := period_note(chosen, every, formula=True)):
        svc.diagnostics.note(text)
    request = replace(request, mode=format.mode_of(selection), from_=chosen.from_, to=chosen.to)
    if written:
        request = replace(request, date_format=chosen.date_format, time_zone=chosen.time_zone)
    iso = format.dates and format.lines and chosen.date_format == "iso"
    requests = _by_offset(request, chosen) if written and iso else [request]
    one_offset = format.dates and (len(requests) == 1 if written else not iso)
    if says and one_offset and (note := chosen.offset_note(text=not format.binary)) is not None:
        svc.diagnostics.note(note)
    style = Style(
        zone=chosen.zone.fixed(chosen.range.start.timestamp()).clocks if one_offset and chosen.zone else chosen.clocks,
        offsets=bool(chosen.changes) and not format.raw,
        zone_label="UTC" if chosen.zone is None else chosen.zone.name,
        date_format=chosen.date_format or "default",
        span=_span(chosen.range, every, svc.now()),
        keys=keys(request.query or ""),
    )
    return Question(requests, format, selection, style, chosen, loaded)


def _without_notes(chosen: RequestDates, options: QueryOptions) -> RequestDates:
    """Return the dates of a query of files. Notes on a start or an end that the user has not typed are removed."""
    if options.from_ is None:
        chosen = chosen._replace(plain=options.to is None, slip=None)
    return chosen._replace(short=None) if options.to is None else chosen


def _by_offset(request: QueryRequest, chosen: RequestDates) -> list[QueryRequest]:
    """Split the range of a request at the clock changes of the zone. Returns one request for each part.

    The request is not split if the rows of the parts could differ from the rows of the whole request.
    """
    if not outline(request.query or "").is_plain or (request.query_id, request.limit, request.skip) != (None,) * 3:
        return [request]
    return [replace(request, from_=start, to=end, time_zone=zone) for start, end, zone in chosen.spans]


def _span(dates: Range, every: int | None, now: datetime) -> Span | None:
    if dates.end is None:
        return None
    start, end, present = map(to_ms, (dates.start, dates.end, now))
    return Span(start, end, every and every * 1000, present)


def _say(svc: Context, chosen: RequestDates) -> None:
    svc.diagnostics.detail(f"range {chosen.label}")
    for text in chosen.notes(terminal=svc.diagnostics.is_terminal):
        svc.diagnostics.note(text)
