"""The options of `svcctl export`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from svcctl.cli.completion import words
from svcctl.cli.completion.words import FILES, Completes
from svcctl.cli.options import (
    DateFormatOpt,
    OptionHeading,
    QueryFileOpt,
    QueryTextArg,
    TimeZoneOpt,
    VarOpt,
    end_option,
    length_option,
    start_option,
)
from svcctl.dates.lengths import length_text, parse_length
from svcctl.dates.shorthand import parse_second

LAG_SECONDS = 600.0
"""The default of --lag in seconds, if --state is given."""
ON_ERROR = ("continue", "stop")

_range, _windows, _output, _run = (
    partial(typer.Option, rich_help_panel=panel)
    for panel in (OptionHeading.RANGE, OptionHeading.WINDOWS, OptionHeading.OUTPUT, OptionHeading.RUN)
)

WindowOpt = Annotated[
    Any,
    length_option(
        "--window",
        "Length of a window, as 30s, 5m, 1h or 1d.",
        OptionHeading.WINDOWS,
        partial(parse_length, least=1, whole=True),
    ),
]
WorkersOpt = Annotated[
    int | None, _windows("--workers", metavar="N", min=1, max=64, help="Windows fetched at the same time.  [4]")
]
TargetOpt = Annotated[
    str,
    _output(
        "--output",
        "-o",
        metavar="PATH",
        help="One file, or a pattern such as out/{start:%Y/%m/%d/%H}.csv.gz for one file per window; also s3:// and "
        "hdfs://. Names ending in .gz or .zst are compressed.",
    ),
    Completes(FILES),
]
ExportFormatOpt = Annotated[
    str | None,
    _output("--format", "-f", metavar="FORMAT", help="csv, tsv, ndjson or parquet; by default, PATH's ending."),
    Completes(words=words.export_formats),
]
StateOpt = Annotated[
    str | None,
    _range("--state", metavar="NAME", help="Start where the last run of NAME ended; only the first run uses --from."),
    Completes("states"),
]
StartOpt = Annotated[Any, start_option(parse_second), Completes(words=words.start_dates)]
EndOpt = Annotated[
    Any, end_option("in the future only with --lag or --state", parse_second), Completes(words=words.end_dates)
]
LagOpt = Annotated[
    float | None,
    length_option(
        "--lag",
        f"Skip windows that ended less than this length ago.  [{length_text(LAG_SECONDS)} with --state]",
        OptionHeading.RANGE,
        partial(parse_length, least=0),
    ),
]
ForceOpt = Annotated[bool, _output("--force", help="Fetch the whole range again, and overwrite existing files.")]
OnErrorOpt = Annotated[
    str,
    _run("--on-error", metavar="WHAT", help="When a window fails: continue and list the gaps, or stop."),
    Completes(words=ON_ERROR),
]
PaceOpt = Annotated[
    float | None,
    _windows("--max-requests-per-second", metavar="N", min=0.001, help="Maximum for all workers together."),
]
MetricsOpt = Annotated[
    Path | None,
    _run("--metrics", metavar="FILE", help="Write metrics of the run, for the textfile collector of Prometheus."),
    Completes(FILES),
]
SchedulerOpt = Annotated[
    str | None, _windows("--scheduler", metavar="URL", help="Fetch in the workers of a Dask cluster: tcp://HOST:8786.")
]
MaxTimeOpt = Annotated[float | None, length_option("--max-time", "Stop after 30s, 5m, …; the next run resumes.")]
DryRunOpt = Annotated[
    bool, typer.Option("--dry-run", help="Check the query and the files, print the windows, export nothing.")
]


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """The options and the argument of an export, before they are checked."""

    target: TargetOpt
    text: QueryTextArg = None
    from_: StartOpt = None
    to: EndOpt = "now"
    time_zone: TimeZoneOpt = None
    state: StateOpt = None
    lag: LagOpt = None
    format: ExportFormatOpt = None
    force: ForceOpt = False
    date_format: DateFormatOpt = None
    file: QueryFileOpt = None
    var: VarOpt = None
    window: WindowOpt = "1h"
    workers: WorkersOpt = None
    max_requests_per_second: PaceOpt = None
    scheduler: SchedulerOpt = None
    on_error: OnErrorOpt = "continue"
    max_time: MaxTimeOpt = None
    metrics: MetricsOpt = None
    dry_run: DryRunOpt = False

    @property
    def path(self) -> str:
        """The target of the export. Backslashes before percent signs, which a crontab needs, are removed."""
        return self.target.replace("\\%", "%")
