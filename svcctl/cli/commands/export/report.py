"""The messages of an export run: progress, failed windows and a summary. The module also collects the run's metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from svcctl.cli.commands.export import metrics
from svcctl.cli.commands.export.verify import record_of
from svcctl.cli.context import Context
from svcctl.dates.zones import GMT
from svcctl.errors import IncompleteResult, Locked, SvcctlError, TooManyRows, Unavailable
from svcctl.exports.windows import moment
from svcctl.io import prometheus
from svcctl.io.losses import Losses
from svcctl.terminal.diagnostics import Work
from svcctl.terminal.notes import loss_notes
from svcctl.terminal.records import row_listing
from svcctl.words import counted, plural, size_text, some

if TYPE_CHECKING:
    from svcctl.exports.export import Export, Summary
    from svcctl.exports.open_record import OpenRecord
    from svcctl.exports.windows import Window
    from svcctl.exports.workers.dispatch import RunProgress, Workers
    from svcctl.exports.workers.fetch import Fetched

WINDOWS = row_listing("from", "to", "file")
RESUMES = "the same command again fetches only what is missing"


def tell_notes(svc: Context, export: Export) -> None:
    for note in export.notes:
        svc.diagnostics.note(note)


def print_windows(svc: Context, export: Export) -> None:
    tasks = export.tasks() if export.target.per_window else {}
    rows = (
        [moment(window.start), moment(window.end), tasks[window].path if tasks else export.path]
        for window in export.windows
    )
    svc.output.records(WINDOWS, rows, svc.format(None, lists=True))


def report(svc: Context, record: OpenRecord, workers: Workers, figures: dict[str, float], *, stops: bool) -> Summary:
    """Run an export and report its summary. The metrics of the run are added to the mapping `figures`."""
    from svcctl.exports.run import ExportRun
    from svcctl.exports.workers.dispatch import RunProgress

    if workers.scheduler is None:
        workers.connect()  # the local service starts here, before the progress line appears
    export, going, losses = record.export, RunProgress(), Losses()

    def take(finished: int, total: int, fetched: Fetched | None) -> None:
        if fetched is not None:
            rows, size = (sum(counts) for counts in zip(*((e.rows, e.bytes) for e in fetched.entries), strict=True))
            losses.add(fetched.losses)
            figures["rows"] += rows
            figures["bytes"] += size
            if workers.scheduler is not None:  # the workers of a cluster count in their own processes
                going.progress.add(rows=rows, bytes=size, retries=fetched.attempts - 1)
        going.take(finished, total)

    try:
        with (
            svc.diagnostics.working(lambda: Work(progress_line(going), going.done, going.total or None)),
            workers.working(export.storage, going.progress) as crew,
        ):
            summary = ExportRun(record, crew, take, stops=stops)()
    finally:
        for text in loss_notes(losses):
            svc.diagnostics.note(text)
        tell_left_out(svc, record.left_out)
        for before, now in record.column_changes:
            svc.diagnostics.warning(f"the columns differ from those of earlier files: {now} (before: {before})")
        svc.diagnostics.trouble = going.progress.trouble
        figures |= {
            "retries": going.progress.retries,
            "windows": len(export.windows),
            "windows_fetched": going.fetched,
            "windows_missing": len(export.windows) - going.done,
        }
    _tell_summary(svc, export, summary, going, figures)
    return summary


def tell_left_out(svc: Context, columns: Iterable[str]) -> None:
    """Print a note that names new columns that an export leaves out, and says how to include them."""
    if names := [*columns]:
        new = plural(len(names), "a new column", "new columns")
        svc.diagnostics.note(
            f"the table has {new}, which this export leaves out: {some(names)}; to include them, export to another "
            "path, or export the whole range again with --force"
        )


def progress_line(going: RunProgress) -> str:
    """Describe the progress of a run in one line."""
    if not going.total:
        return "looking for finished windows"
    progress, seconds = going.progress, max(going.seconds, 0.001)
    parts = [f"{going.done} of {going.total} windows", f"{size_text(progress.bytes / seconds)}/s"]
    if progress.retries:
        parts.append(counted(progress.retries, "retry"))
    return ", ".join(parts)


def _tell_summary(
    svc: Context, export: Export, summary: Summary, going: RunProgress, figures: dict[str, float]
) -> None:
    figures |= {
        "success": float(not summary.gaps),
        "until_seconds": summary.until,
        "rows": summary.rows,
        "bytes": summary.bytes,
        "windows_fetched": summary.fetched,
        "windows_missing": len(summary.gaps),
    }
    if summary.idle:
        first, *others = summary.files
        whole = f"{first} is already complete; --force fetches it again"
        if others:
            last = others[-1]
            whole = f"{len(summary.files)} files are already complete: {first} to {last}; --force fetches them again"
        svc.diagnostics.note(f"nothing to do: {whole}")
        return
    clocks = (export.order.zone or GMT).clocks
    counts = {"kept": summary.kept, "missing": len(summary.gaps), "retries": going.progress.retries}
    fields = {
        "rows": summary.rows,
        "bytes": summary.bytes,
        "windows": summary.windows,
        **{name: count for name, count in counts.items() if count},
        "seconds": f"{going.seconds:.2f}",
        "from": moment(export.whole.start, clocks),
        "to": moment(export.whole.end, clocks),
    }
    svc.diagnostics.note(" ".join(f"{name}={value}" for name, value in fields.items()))


def tell_replaced(svc: Context, summary: Summary) -> None:
    """Print a note on the finished files that were replaced."""
    if summary.replaced:
        more = len(summary.replaced) - 1
        others = f", and {counted(more, 'other file')}" if more else ""
        svc.diagnostics.note(f"replaced {summary.replaced[0]}{others}")


def refuse_gaps(svc: Context, summary: Summary) -> None:
    """If time windows of a run are missing, report them and raise an error.

    Adjacent windows with the same error are reported together.
    """
    ranges: list[tuple[Window, SvcctlError]] = []
    for window, error in summary.gaps:
        if ranges and ranges[-1][0].end == window.start and ranges[-1][1].message == error.message:
            ranges[-1] = replace(ranges[-1][0], end=window.end), error
        else:
            ranges.append((window, error))
    if not ranges:
        return
    first, error = ranges[0]
    message = f"{len(summary.gaps)} of {counted(summary.windows, 'window')} missing, from {first}: {error.message}"
    if len(ranges) > 1:
        for window, failure in ranges:
            kind = Unavailable if isinstance(failure, Unavailable) else IncompleteResult
            svc.diagnostics.report(kind(f"{window} is missing: {failure.message}").advised_by(failure))
    if not all(isinstance(failure, Unavailable) for _, failure in ranges):
        incomplete = IncompleteResult(message, hint=RESUMES)
        raise incomplete.advised_by(error) if isinstance(error, TooManyRows) else incomplete
    assert isinstance(error, Unavailable)
    raise error.saying(message)


@contextmanager
def measured(svc: Context, path: Path | None, name: str) -> Iterator[dict[str, float]]:
    """Yield a mapping for the metrics of a run, and write the metrics to a file when the run has ended.

    If another run holds the lock of the export, nothing is written.
    """
    if path is not None:
        prometheus.check_writable(path)
    figures = dict.fromkeys(metrics.METRICS, 0.0)  # an alert on a missing series would never fire
    if path is not None:
        with suppress(SvcctlError):  # the export is new, or the run fails for the same reason
            figures["verified_seconds"] = record_of(svc, name).still_verified()
    started = svc.clock()

    def write() -> None:
        if path is not None:
            ended = svc.clock()
            metrics.write(path, name, figures | {"timestamp_seconds": ended, "duration_seconds": ended - started})

    try:
        yield figures
    except Locked:
        raise  # the metrics file belongs to the run that holds the lock
    except BaseException:
        try:
            write()
        except SvcctlError as error:
            svc.diagnostics.report(error)  # the first failure is raised
        raise
    try:
        write()
    except IncompleteResult as error:
        error.add_note("the export itself is complete")
        raise
