"""The options of `svcctl query`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any

import typer

from svcctl.cli.completion import words
from svcctl.cli.completion.words import FILES, Completes
from svcctl.cli.inputs.load_options import ReadingOptions, zone_name
from svcctl.cli.options import (
    ColumnsOpt,
    DateFormatOpt,
    ForceOpt,
    NoHeaderOpt,
    OptionHeading,
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
    start_option,
)
from svcctl.dates.lengths import UNITS, parse_length
from svcctl.terminal.selection import Selection, selection_of
from svcctl.words import DESTINATION_TYPES

MAX_REFRESH_SECONDS = 366 * UNITS["d"]


QueryIdOpt = Annotated[
    str | None,
    typer.Option(
        "--query-id",
        metavar="ID",
        rich_help_panel=OptionHeading.QUERY,
        help="Run a saved query, such as one of 'svcctl service queries'.",
    ),
    Completes("queries"),
]
StartOpt = Annotated[
    Any, start_option(start="Start of the range, needed without --load"), Completes(words=words.start_dates)
]
LoadOpt = Annotated[
    list[Path] | None,
    typer.Option(
        "--load",
        metavar="FILE",
        rich_help_panel=OptionHeading.FILES,
        help="Query FILE as the table 'file', which exists for this query only; - reads standard input. Repeat for "
        "more files. --from and --to may be left out.",
    ),
    Completes(FILES),
]
LoadFormatOpt = Annotated[
    str | None,
    typer.Option(
        "--load-format",
        metavar="FORMAT",
        rich_help_panel=OptionHeading.FILES,
        help="Format of the files (detected if not given); see 'svcctl help loading'.",
    ),
    Completes("file-formats"),
]
LoadZoneOpt = Annotated[
    str | None,
    typer.Option(
        "--load-time-zone",
        parser=zone_name,
        metavar="ZONE",
        rich_help_panel=OptionHeading.FILES,
        help="Time zone of dates in the files that have none (default: that of --time-zone, or UTC).",
    ),
    Completes("zones", words=words.time_zones),
]
LimitOpt = Annotated[
    int | None,
    typer.Option(
        "--limit",
        min=0,
        metavar="N",
        rich_help_panel=OptionHeading.ROWS,
        help="Stop after N rows; with --sort, after the first N sorted rows.",
    ),
]
SkipOpt = Annotated[
    int | None,
    typer.Option("--skip", min=0, metavar="N", rich_help_panel=OptionHeading.ROWS, help="Skip the first N rows."),
]
ChartOpt = Annotated[
    bool,
    typer.Option(
        "--chart", rich_help_panel=OptionHeading.OUTPUT, help="The same as --format chart: bars, or a line over time."
    ),
]
FailOnEmptyOpt = Annotated[
    bool,
    typer.Option(
        "--fail-on-empty",
        rich_help_panel=OptionHeading.ROWS,
        help="Exit 8, and print no result, when there are no rows.",
    ),
]
FollowOpt = Annotated[
    bool,
    typer.Option(
        "--follow",
        rich_help_panel=OptionHeading.RUN,
        help="Keep running and print new events as they arrive (like tail -f); see 'svcctl help formats'.",
    ),
]
MaxTimeOpt = Annotated[
    float | None, length_option("--max-time", "Fail after 30s, 5m, … (retries included); with --follow, stop then.")
]
EveryOpt = Annotated[
    float | None,
    length_option(
        "--every",
        "Run the query again every 10s, 5m, … until Ctrl-C.",
        read=partial(parse_length, least=0.1, most=MAX_REFRESH_SECONDS),
    ),
]
DestOpt = Annotated[
    str | None,
    typer.Option(
        "--dest",
        metavar="TYPE",
        rich_help_panel=OptionHeading.JOB,
        help=f"Send the rows to a destination: {', '.join(DESTINATION_TYPES)} (see 'svcctl help destinations').",
    ),
    Completes(words=DESTINATION_TYPES),
]
DestParamOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--dest-param",
        metavar="K=V",
        rich_help_panel=OptionHeading.JOB,
        help="Parameter of --dest; K=@FILE reads its value.",
    ),
    Completes(words=words.destination_parameters, by_destination=words.parameters_by_destination),
]
DestJsonOpt = Annotated[
    Path | None,
    typer.Option(
        "--dest-json",
        metavar="FILE",
        rich_help_panel=OptionHeading.JOB,
        help="Destination, or its parameters, as JSON.",
    ),
    Completes(FILES),
]
DryRunOpt = Annotated[bool, typer.Option("--dry-run", help="Print the request (secrets masked) instead of sending it.")]


@dataclass(frozen=True, kw_only=True)
class QueryOptions:
    """The options and the argument of a query, as they were typed."""

    from_: StartOpt = None
    text: QueryTextArg = None
    to: ToOpt = None
    time_zone: TimeZoneOpt = None
    format: QueryFormatOpt = None
    output: OutputOpt = None
    force: ForceOpt = False
    chart: ChartOpt = False
    no_header: NoHeaderOpt = False
    date_format: DateFormatOpt = None
    limit: LimitOpt = None
    skip: SkipOpt = None
    columns: ColumnsOpt = None
    sort: SortOpt = None
    top: TopOpt = None
    fail_on_empty: FailOnEmptyOpt = False
    file: QueryFileOpt = None
    query_id: QueryIdOpt = None
    var: VarOpt = None
    load: LoadOpt = None
    load_format: LoadFormatOpt = None
    load_time_zone: LoadZoneOpt = None
    reading: ReadingOptions
    follow: FollowOpt = False
    every: EveryOpt = None
    max_time: MaxTimeOpt = None
    dest: DestOpt = None
    dest_param: DestParamOpt = None
    dest_json: DestJsonOpt = None
    dry_run: DryRunOpt = False

    @cached_property
    def selection(self) -> Selection:
        return selection_of(self.columns, self.sort, self.top, self.no_header)

    def end(self) -> Any:
        """Return the value of --to. The default is `now`, or None for a query with --follow."""
        if self.to is not None:
            return self.to
        return None if self.follow else "now"

    def given(self, *names: str) -> str | None:
        """Return the first of the options `names` that was typed, such as `--every`; None if none of them was typed."""
        name = next((name for name in names if getattr(self, name) not in (None, False)), None)
        return None if name is None else f"--{name.replace('_', '-')}"
