"""Print the answer of `svcctl query`, either once or with new rows as they arrive."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from svcctl.api.query import outline
from svcctl.cli.commands.query.request import Question
from svcctl.cli.context import Context
from svcctl.dates.epochs import from_ms
from svcctl.dates.lengths import length_text, rough_text
from svcctl.errors import IncompleteResult, ServiceError, SvcctlError, Terminated, Unavailable
from svcctl.io.time_limit import time_limit
from svcctl.profiles import BUILT_IN
from svcctl.terminal.diagnostics import Work
from svcctl.words import counted, size_text

if TYPE_CHECKING:
    from svcctl.api.loads import Loaded
    from svcctl.api.own_service import TableExtent
    from svcctl.api.query import QueryRequest
    from svcctl.api.response import QueryResponse
    from svcctl.cli.commands.query.first_rows import NeededAnswer
    from svcctl.cli.commands.query.options import QueryOptions
    from svcctl.terminal.output import OutputSink


def show(svc: Context, *requests: QueryRequest) -> None:
    """Print requests instead of sending them."""
    previews = [svc.connect().preview(request) for request in requests]
    svc.output.text("\n\n".join(preview.text for preview in previews))
    if previews[0].note:
        svc.diagnostics.note(previews[0].note)


def once(svc: Context, question: Question, options: QueryOptions) -> None:
    """Print the whole answer.

    On a terminal, a note says how many rows were written to a file, or that there are no rows. If there are no rows for
    a chart, the note is printed even in a pipe.
    """
    with svc.output.target(options.output, question.format, force=options.force) as sink:
        rows = _print(svc, question, sink, options)
    shown = rows if rows is None or question.selection.top is None else min(rows, question.selection.top)
    if rows == 0 and (svc.diagnostics.is_terminal or question.format.name == "chart"):
        svc.diagnostics.note(f"no rows from {question.dates.label}{_elsewhere(svc, question)}")
    if svc.diagnostics.is_terminal:
        _note_file(svc, options.output, shown)
    _note_limit(svc, question, options.output, rows)


def follow(svc: Context, question: Question, options: QueryOptions) -> None:
    """Print rows as they arrive, until --to, --max-time, the limit or an interruption.

    The output file is kept after an interruption. If --max-time is over while there is no connection, the file is also
    kept, but IncompleteResult is raised.
    """
    from svcctl.api.follow import Follow
    from svcctl.cli.commands.query.first_rows import NeededRows, no_rows

    interrupted: KeyboardInterrupt | Terminated | None = None
    started, begun = svc.clock(), False

    def late(seconds: float) -> SvcctlError | None:
        if begun:
            return None
        return svc.late(
            seconds, Unavailable(f"no answer within {length_text(seconds)}", hint="give it longer with --max-time")
        )

    request = replace(question.request, mode="json/simple/compact", date_format=None, time_zone=None)
    with svc.output.target(options.output, question.format, force=options.force) as sink:
        following = Follow(
            svc.client, request, reader=sink.reader, notify=svc.diagnostics.note, advice=svc.diagnostics.hint_of
        )
        with (
            time_limit(options.max_time, late),
            following,
            svc.diagnostics.working(lambda: Work(_followed(following.row_count, svc.clock() - started))),
        ):
            begun = True
            try:
                rows = NeededRows(following, question) if options.fail_on_empty else following
                svc.output.live(rows, question.format, sink, question.selection, question.style)
            except (KeyboardInterrupt, Terminated) as error:
                interrupted = error
        if options.fail_on_empty and not following.row_count and following.broken is None:
            raise no_rows(question)
    if svc.diagnostics.is_terminal:
        _note_file(svc, options.output, following.row_count)
    if interrupted is not None:
        raise interrupted
    if following.broken is not None:
        raise following.broken
    _note_limit(svc, question, options.output, following.row_count)


def _print(svc: Context, question: Question, sink: OutputSink, options: QueryOptions) -> int | None:
    """Print the answer, and return the number of its rows; None if the format does not show the number."""
    started = svc.clock()
    begun = False

    def late(seconds: float) -> SvcctlError:
        if begun:
            return IncompleteResult(f"the result is incomplete after {length_text(seconds)}", hint=_LATER)
        return svc.late(seconds, Unavailable(f"no answer within {length_text(seconds)}", hint=_LATER))

    with (
        time_limit(options.max_time, late),
        svc.client.query_spans(question.requests, reader=sink.reader) as answer,
        svc.diagnostics.working(lambda: _so_far(answer, svc.clock() - started)),
        _whole(answer),
    ):
        begun = True
        needed: QueryResponse | NeededAnswer = answer
        if options.fail_on_empty:
            from svcctl.cli.commands.query.first_rows import NeededAnswer

            needed = NeededAnswer(answer, question)
        if svc.output.is_terminal and sink is svc.output.sink:
            from svcctl.cli.commands.query.first_rows import ShownAnswer

            shown = ShownAnswer(needed, question)
            svc.output.query(shown, question.format, sink, question.selection, question.style)
            if shown.error is not None:
                raise shown.error
        else:
            svc.output.query(needed, question.format, sink, question.selection, question.style)
    rows = "- rows" if answer.row_count is None else counted(answer.row_count, "row")
    svc.diagnostics.detail(
        f"cid {answer.cid or '-'}, {rows}, {size_text(answer.bytes)}, {length_text(svc.clock() - started)}"
    )
    return answer.row_count


@contextmanager
def _whole(answer: QueryResponse) -> Iterator[None]:
    """Convert the error of a request to IncompleteResult if rows of earlier requests were printed."""
    try:
        yield
    except (ServiceError, Unavailable) as error:
        if not answer.row_count:
            raise
        raise IncompleteResult(
            f"the result is incomplete: {error.message}", rows=answer.row_count, hint=error.hint
        ) from error


_LATER = "give it longer with --max-time, or ask for less"


def _so_far(answer: QueryResponse, seconds: float) -> Work:
    if not answer.bytes:
        return Work(f"waiting for the service, {rough_text(seconds)}")
    of = "" if answer.length is None else f" of {size_text(answer.length)}"
    rate = f"{size_text(answer.bytes / max(seconds, 0.001))}/s"
    rows = [] if answer.row_count is None else [counted(answer.row_count, "row")]
    return Work(", ".join([f"{size_text(answer.bytes)}{of}", rate, *rows]), answer.bytes, answer.length)


def _followed(count: int, seconds: float) -> str:
    return f"following, {counted(count, 'row')} so far, {count / max(seconds, 0.001):,.1f} rows/s (Ctrl-C stops)"


def _note_file(svc: Context, output: Path | None, rows: int | None) -> None:
    """Print a note on the written file, with the number of rows if rows are counted."""
    from svcctl.terminal.output import is_kept

    if output is not None and is_kept(output):
        count = "" if rows is None else f"{counted(rows, 'row')}, "
        svc.diagnostics.note(f"wrote {output}: {count}{size_text(output.stat().st_size)}")


def _elsewhere(svc: Context, question: Question) -> str:
    """Return a note on the table of a query that returned no rows.

    The note has the dates of the first and the last event, or says that the table has no events. The note is empty if
    the range of the query overlaps these dates, or if the service is not the local service.
    """
    from svcctl.api import own_service

    name, dates = outline(question.request.query or "").table, question.dates.range
    if svc.profile.name not in BUILT_IN or not name:
        return ""
    stored: TableExtent | Loaded
    try:
        stored = question.loaded or own_service.table(svc.client, name)
    except SvcctlError:
        return ""
    if stored.oldest is None or stored.newest is None:
        return f"; {name} has no events"
    start, end = (from_ms(moment) for moment in (stored.oldest, stored.newest))
    if start < (dates.end or svc.now()) and end >= dates.start:
        return ""
    return f"; the events of {name} are from {start:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S}"


def _note_limit(svc: Context, question: Question, output: Path | None, rows: int | None) -> None:
    """Print a note that rows may be missing in a file or a pipe, because of a limit.

    On a terminal, no note is printed.
    """
    seen = svc.output.is_terminal and output in (None, Path("-"))
    if rows and rows == question.request.limit and not seen:
        svc.diagnostics.note(f"stopped at the limit of {counted(rows, 'row')}: there may be more")
