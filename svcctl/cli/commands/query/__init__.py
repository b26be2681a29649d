"""`svcctl query`: run a query; its rows go to stdout, to a file or, as a job, to a destination.

`request` makes the request, `result` prints one answer or follows it, `every` asks again and again.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from svcctl.api.destinations import NAMES
from svcctl.cli.commands import page_of
from svcctl.cli.completion import words
from svcctl.cli.completion.words import FILES, Completes
from svcctl.cli.context import Context
from svcctl.cli.inputs import destination, query_text
from svcctl.cli.options import (
    ColumnsOpt,
    DateFormatOpt,
    ForceOpt,
    FromOpt,
    Heading,
    NoHeaderOpt,
    OutputOpt,
    QueryFileOpt,
    QueryFormatOpt,
    QueryTextArg,
    SortOpt,
    TimeZoneOpt,
    ToOpt,
    TopOpt,
    VarOpt,
    length_option,
)
from svcctl.dates.lengths import UNITS, parse_length
from svcctl.errors import UsageError
from svcctl.terminal.selection import selected

LONGEST = 366 * UNITS["d"]
"""Seconds between two refreshes."""


QueryIdOpt = Annotated[
    str | None,
    typer.Option(
        "--query-id",
        metavar="ID",
        rich_help_panel=Heading.QUERY,
        help="Run a saved query, such as one of 'svcctl service queries'.",
    ),
    Completes("queries"),
]
LimitOpt = Annotated[
    int | None,
    typer.Option(
        "--limit",
        min=0,
        metavar="N",
        rich_help_panel=Heading.ROWS,
        help="Stop after N rows; with --sort, after the first N of it.",
    ),
]
SkipOpt = Annotated[
    int | None, typer.Option("--skip", min=0, metavar="N", rich_help_panel=Heading.ROWS, help="Skip the first N rows.")
]
ChartOpt = Annotated[
    bool,
    typer.Option(
        "--chart", rich_help_panel=Heading.OUTPUT, help="The same as --format chart: bars, or a line over time."
    ),
]
FailOnEmptyOpt = Annotated[
    bool,
    typer.Option(
        "--fail-on-empty", rich_help_panel=Heading.ROWS, help="Exit 8, and print no result, when there are no rows."
    ),
]
FollowOpt = Annotated[
    bool,
    typer.Option(
        "--follow",
        rich_help_panel=Heading.RUN,
        help="Keep running and print new events as they arrive (like tail -f); see 'svcctl help formats'.",
    ),
]
MaxTimeOpt = Annotated[
    float | None, length_option("--max-time", "Fail after 30s, 5m, …, retries included; --follow stops then.")
]
EveryOpt = Annotated[
    float | None,
    length_option(
        "--every",
        "Run the query again every 10s, 5m, … until Ctrl-C.",
        read=partial(parse_length, least=0.1, most=LONGEST),
    ),
]
DestOpt = Annotated[
    str | None,
    typer.Option(
        "--dest",
        metavar="TYPE",
        rich_help_panel=Heading.JOB,
        help=f"Send the rows to a destination: {', '.join(NAMES)} (see 'svcctl help destinations').",
    ),
    Completes(words=words.destinations),
]
DestParamOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--dest-param", metavar="K=V", rich_help_panel=Heading.JOB, help="Parameter of --dest; K=@FILE reads its value."
    ),
    Completes(words=words.destination_parameters, by_destination=words.parameters_by_destination),
]
DestJsonOpt = Annotated[
    Path | None,
    typer.Option(
        "--dest-json", metavar="FILE", rich_help_panel=Heading.JOB, help="Destination, or its parameters, as JSON."
    ),
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
    time_zone: TimeZoneOpt = None,
    format: QueryFormatOpt = None,
    output: OutputOpt = None,
    force: ForceOpt = False,
    chart: ChartOpt = False,
    no_header: NoHeaderOpt = False,
    date_format: DateFormatOpt = None,
    limit: LimitOpt = None,
    skip: SkipOpt = None,
    columns: ColumnsOpt = None,
    sort: SortOpt = None,
    top: TopOpt = None,
    fail_on_empty: FailOnEmptyOpt = False,
    file: QueryFileOpt = None,
    query_id: QueryIdOpt = None,
    var: VarOpt = None,
    follow: FollowOpt = False,
    every: EveryOpt = None,
    max_time: MaxTimeOpt = None,
    dest: DestOpt = None,
    dest_param: DestParamOpt = None,
    dest_json: DestJsonOpt = None,
    dry_run: DryRunOpt = False,
) -> None:
    """Examples:

    \b
    svcctl query 'from demo.ecommerce.data where statusCode >= 500' --from 2h
    svcctl query 'from auth.all group every 10m select count()' --from 1d --chart
    svcctl query 'from auth.all group by user' --from 1h --sort user:desc --top 5
    svcctl query -F errors.q --from 7ad --to today -o errors.csv.gz
    echo 'from auth.all select user' | svcctl query --from today -f ndjson
    svcctl query 'from auth.all' --from 1ad --to 1d -o yesterday.parquet
    svcctl query 'from auth.all' --from 1h --dest donothing
    """
    from svcctl.api.query import QueryRequest
    from svcctl.cli.commands.query import request, result
    from svcctl.cli.commands.query.every import repeat

    svc: Context = ctx.obj
    end = request.end(follow, to)
    target = destination.read(dest, dest_param or [], dest_json, svc.diagnostics.note, endless=end is None)
    asked = QueryRequest(
        from_=from_,
        to=end,
        query=query_text.given(text, file, query_id, var or []),
        query_id=query_id,
        skip=skip,
        limit=limit,
    )
    dates = request.DateOptions(date_format, time_zone)
    if target is not None:
        _refuse_reading(
            output=output,
            fail_on_empty=fail_on_empty,
            columns=columns,
            sort=sort,
            top=top,
            chart=chart,
            every=every,
            max_time=max_time,
        )
        job = request.job(svc, replace(asked, destination=target), dates)
        result.launch(svc, job, format, selected(None, None, None, no_header), dry_run=dry_run)
        return
    if every is not None:
        _refuse_with("--every", output=output, follow=follow, fail_on_empty=fail_on_empty)
    chosen = request.format_for(svc, format, output, chart=chart)
    asked, selection = request.cut_where_sorted(asked, selected(columns, sort, top, no_header))
    request.check(asked, chosen, selection, follow=follow, fail_on_empty=fail_on_empty)
    question = request.question(svc, asked, chosen, selection, dates)
    if dry_run:
        result.show(svc, question.request)
        return
    if every is not None:
        repeat(
            svc,
            lambda first: question if first else request.question(svc, asked, chosen, selection, dates, says=False),
            every,
            max_time,
        )
    elif follow:
        result.follow(svc, question, output, force=force, max_time=max_time, fail_on_empty=fail_on_empty)
    else:
        result.once(svc, question, output, force=force, max_time=max_time, fail_on_empty=fail_on_empty)


def _refuse_with(option: str, **others: object) -> None:
    for name, value in others.items():
        if value not in (None, False):
            raise UsageError(f"{option} and --{name.replace('_', '-')} exclude each other")


def _refuse_reading(**options: object) -> None:
    """Refuse options that only make sense when rows come back."""
    for name, value in options.items():
        if value not in (None, False):
            raise UsageError(f"--{name.replace('_', '-')} cannot be used with --dest: no rows come back")
