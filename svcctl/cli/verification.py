"""The output of `job verify`: findings, a sentence about each job, and metrics for Prometheus."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from svcctl.api.query import one_line, outline
from svcctl.cli.context import Context
from svcctl.dates.epochs import from_ms
from svcctl.dates.operators import moment_text
from svcctl.errors import Advice, CommandLine, Differs, IncompleteResult, SvcctlError
from svcctl.io import prometheus
from svcctl.terminal.diagnostics import Work
from svcctl.terminal.records import row_listing
from svcctl.words import counted, json_text

FINDINGS_PER_KIND = 5
"""The maximum number of findings of each kind that are printed for a job. Further findings are only counted."""
WORST_FIRST = (3, 6, 7, 1, 5, 4, 2, 10, 0)
"""The exit codes of checked jobs, from the worst to the best. A command ends with the worst code of its jobs.

A destination that could not be read (6) is worse than missing rows (7). The code 10 means that a complete check found
only additional rows.
"""
OTHERS = {
    "foreign": "foreign",
    "noLongerThere": "no longer there",
    "notReproducible": "that cannot be produced again",
    "notYet": "not there yet",
}
"""Members of a result, each with the words that follow its number in the sentence about the result.

These numbers and words are the end of the sentence, such as `2 not there yet`.
"""
UNCOMPARED = ("missing", "noLongerThere", "notReproducible", "hidden")
"""The members of a result that count rows whose values were not compared."""
METRICS = {
    "success": "1 if the last check found exactly the rows that the job delivered, otherwise 0.",
    "timestamp_seconds": "End of the last check of the job, in epoch seconds.",
    "verified_seconds": "Date up to which all rows were verified without a gap, in epoch seconds; 0 if there is "
    "no such date.",
    "rows": "Rows that the job has delivered.",
    "missing": "Rows that are missing.",
    "duplicated": "Rows that are at the destination several times.",
    "out_of_order": "Rows that are not in order.",
    "altered": "Rows that differ from the delivered rows.",
    "truncated": "Rows that are missing because a file is truncated.",
    "foreign": "Rows that the job has not delivered.",
    "no_longer_there": "Rows that are no longer at the destination, for example after its retention.",
    "not_reproducible": "Rows that were not compared, because their events have changed since.",
}
"""The meaning of each metric of a check. The names of the metrics are without their prefix `svcctl_job_verify_`."""


@dataclass
class DeliveryChecks:
    """The checks of one `svcctl job verify`, which compare destinations with the rows that jobs delivered.

    `jobs` maps the ID of each job to the date up to which earlier checks have verified the job. The date is 0 if no
    check has verified the job. `names` maps the IDs of jobs to their names. With `several`, messages begin with the
    name of the job. With `programs`, findings and results are printed as ndjson instead of messages.
    """

    svc: Context
    jobs: Mapping[str, int]
    names: Mapping[str, str]
    several: bool
    programs: bool
    findings: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The number of findings by job and kind."""
    figures: dict[str, dict[str, float]] = field(init=False)
    """The values of the metrics, by the ID of the job."""

    def __post_init__(self) -> None:
        # Each job has all metrics from the beginning, because an alert on a missing series would never fire.
        zero = dict.fromkeys(METRICS, 0.0)
        self.figures = {job_id: zero | {"verified_seconds": date / 1000} for job_id, date in self.jobs.items()}

    def __call__(self, check: Callable[[str], Iterator[tuple[str, Mapping[str, Any]]]]) -> int:
        """Check the jobs one after the other, and report each job. Returns the worst exit code."""
        codes = [0]
        for number, job_id in enumerate(self.jobs, 1):
            place = f"job {number} of {len(self.jobs)}, " if self.several else ""
            codes += self._check(check(job_id), job_id, place)
        return min(codes, key=WORST_FIRST.index)

    def _check(self, stream: Iterator[tuple[str, Mapping[str, Any]]], job_id: str, place: str) -> Iterator[int]:
        """Report the findings of a job's check.

        Yields the exit code for each result. If the check fails, yields the exit code for the failure.
        """
        work = Work(f"{place}reading the destination")
        try:
            with self.svc.diagnostics.working(lambda: work):
                for kind, members in stream:
                    if kind == "progress":
                        rows, total = (int(members.get(name) or 0) for name in ("rows", "of"))
                        work = Work(f"{place}{rows:,} of {counted(total, 'row')}", rows, total or None)
                        continue
                    if self.programs:
                        self.svc.output.records(row_listing(kind), [[members]], self.svc.format("ndjson", lists=True))
                    if kind == "finding":
                        self._report_finding(members)
                    elif kind == "result":
                        yield self._conclude(members)
        except SvcctlError as error:
            self.figures[job_id]["success"] = 0.0
            yield self.svc.diagnostics.report(error)

    def _label(self, job_id: str) -> str:
        return f"{self.names.get(job_id) or job_id}: " if self.several or job_id not in self.jobs else ""

    def _report_finding(self, finding: Mapping[str, Any]) -> None:
        """Report a finding. If a command can query the affected rows, a hint contains the command.

        Without --verbose, only the first FINDINGS_PER_KIND findings of a kind are reported. Further findings are only
        counted.
        """
        job_id, kind = str(finding.get("job")), str(finding.get("kind"))
        self.findings[job_id, kind] += 1
        if self.programs or (self.findings[job_id, kind] > FINDINGS_PER_KIND and not self.svc.diagnostics.verbose):
            return
        command = query_command(finding, self.svc.flags.profile)
        hint = None if command is None else Advice("the rows of this time: ", command)
        self.svc.diagnostics.report(IncompleteResult(f"{self._label(job_id)}{finding_text(finding)}", hint=hint))

    def _report_others(self, job_id: str) -> None:
        """Report the number of findings of a job that were counted but not printed."""
        if self.programs or self.svc.diagnostics.verbose:
            return
        every = CommandLine(f"svcctl -v job verify {shlex.quote(self.names.get(job_id) or job_id)}")
        for (job, kind), count in self.findings.items():
            if job == job_id and count > FINDINGS_PER_KIND:
                more = f"{self._label(job_id)}{count - FINDINGS_PER_KIND:,} more findings are {kind}; to see all: "
                self.svc.diagnostics.report(IncompleteResult(Advice(more, every)))

    def _conclude(self, result: Mapping[str, Any]) -> int:
        """Report the result of a job, and return the exit code."""
        job_id = str(result.get("job"))
        label = self._label(job_id)
        self._report_others(job_id)
        for note in result.get("notes") or ():
            self.svc.diagnostics.note(f"{label}{json_text(note)}")
        text = f"{label}{result_text(result)}"
        error = fault(result, text)
        counts = {name: float(result.get(_member(name)) or 0) for name in METRICS}
        self.figures[job_id] = counts | {
            "success": float(error is None),
            "timestamp_seconds": self.svc.clock(),
            "verified_seconds": float(result.get("verified") or 0) / 1000,
        }
        if error is not None:
            return self.svc.diagnostics.report(error)
        self.svc.diagnostics.note(text)
        return 0

    @contextmanager
    def measured(self, path: Path | None) -> Iterator[None]:
        """Write the metrics to a file at the end of the block, even if the block fails."""
        if path is not None:
            prometheus.check_writable(path)
        try:
            yield
        finally:
            if path is not None:
                prometheus.write(path, self._metrics())

    def _metrics(self) -> Iterator[str]:
        for metric, meaning in METRICS.items():
            values = [
                ({"job": job_id, "name": self.names.get(job_id) or ""}, figures[metric])
                for job_id, figures in self.figures.items()
            ]
            yield from prometheus.gauge(f"svcctl_job_verify_{metric}", meaning, values)


def _member(metric: str) -> str:
    """Return the member of a result that has the value of a metric: outOfOrder for the metric out_of_order."""
    return re.sub("_(.)", lambda match: match[1].upper(), metric)


def fault(result: Mapping[str, Any], text: str) -> SvcctlError | None:
    """Return an error with the message `text` if a result counts missing, wrong or additional rows; otherwise None."""
    if any(result.get(name) for name in ("missing", "outOfOrder", "altered", "truncated")):
        return IncompleteResult(text)
    if any(result.get(name) for name in ("duplicated", "foreign")):
        return Differs(text)
    return None


def result_text(result: Mapping[str, Any]) -> str:
    """Describe a result in one sentence: `3 rows up to 2026-11-25 21:00 UTC: none missing, none duplicated, …`."""
    number = {name: f"{int(count):,}" for name, count in result.items() if count and isinstance(count, int | float)}
    rows = int(result.get("rows") or 0)
    uncompared = sum(int(result.get(name) or 0) for name in UNCOMPARED)
    # If no row was compared, the sentence says nothing about the order and the values of rows.
    order, equal = "in order", "the others equal" if uncompared else "all equal"
    if uncompared >= max(rows, 1):
        order = equal = ""
    unequal = [f"{number[name]} {name}" for name in ("altered", "truncated") if name in number]
    parts = [
        *(f"{number.get(name, 'none')} {name}" for name in ("missing", "duplicated")),
        f"{number['outOfOrder']} out of order" if "outOfOrder" in number else order,
        *(unequal or [equal]),
        *(f"{number[name]} {words}" for name, words in OTHERS.items() if name in number),
    ]
    until = f" up to {_moment(result['upTo'])} UTC" if result.get("upTo") else ""
    return f"{counted(rows, 'row')}{until}: {', '.join(filter(None, parts))}"


def finding_text(finding: Mapping[str, Any]) -> str:
    """Describe a finding in one line: how many rows are affected, which rows, and where they are."""
    first, last = finding.get("rows") or (None, None)
    rows = f"row {first}" if first == last else f"rows {first} to {last}"
    parts = [rows] * (first is not None)
    parts += [f"{name} {finding[name]}" for name in ("partition", "offset", "file") if finding.get(name) is not None]
    if finding.get("from") is not None and finding.get("to") is not None:
        start, end = _moment(finding["from"]), _moment(finding["to"])
        parts.append(f"dated {start} UTC" if start == end else f"dated {start} to {end} UTC")
    count = int(finding.get("count") or 0)
    kind = f"{counted(count, 'row')} {finding.get('kind')}" if count else finding.get("kind")
    return f"{kind}: {', '.join(parts)}"


def query_command(finding: Mapping[str, Any], profile: str | None) -> CommandLine | None:
    """Return the command that prints the rows of a finding; None if the finding has no query or no dates.

    The range of the command ends one millisecond after the date of the last row of the finding. If the query groups by
    period, the last row has the date at which its period begins, so the range ends one period after this date. If the
    query groups without a period, the command has the range of the job. The range is always within the range of the
    job.
    """
    query, start, end = (finding.get(name) for name in ("query", "from", "to"))
    first, last = finding.get("range") or (None, None)
    if not query:
        return None
    clauses = outline(str(query))
    if start is None and clauses.has("group") and clauses.every is None:
        start, end = first, last
    elif start is not None and end is not None:
        end += 1 if clauses.every is None else clauses.every * 1000
        start, end = max(start, first or start), min(end, last or end)
    if start is None or end is None:
        return None
    dates = [moment_text(from_ms(date)).replace(" ", "T") + "Z" for date in (start, end)]
    options = ["-p", profile] if profile else []
    words = ["svcctl", *options, "query", one_line(str(query)), "--from", dates[0], "--to", dates[1]]
    command = CommandLine(shlex.join(words))
    return command if command.isprintable() else None


def _moment(milliseconds: int) -> str:
    """Return the date of a row as text, in UTC. If the seconds are 0, they are left out."""
    return moment_text(from_ms(milliseconds)).removesuffix(":00")
