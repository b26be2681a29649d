"""`svcctl query --every`: run a query again and again, like the program `watch`.

On a terminal, a table or a chart is updated in place. Otherwise, the answers are printed one after the other. The
command ends if the service refuses a request, or if the first run fails. After any other failure, the next refresh
follows as usual.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from svcctl.cli.commands.query.request import Question
from svcctl.cli.context import Context
from svcctl.dates.lengths import length_text
from svcctl.errors import IncompleteResult, Unavailable, UsageError
from svcctl.io.time_limit import time_limit
from svcctl.terminal.layout import TableColumn
from svcctl.terminal.size import terminal_size
from svcctl.words import counted

TURN = 0.1
"""The number of seconds between two checks of the terminal's size."""

Ask = Callable[[bool], Question]
"""A function that makes a new request, so that relative dates follow the clock.

The argument of the function says whether this is the first request. Notes are printed for the first request only.
"""


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer to one run of the query: the rows that the screen can show, and the number of all rows."""

    question: Question
    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[Any]]
    size: int | None
    failure: str = ""


def repeat(svc: Context, ask: Ask, interval: float, max_time: float | None) -> None:
    """Run a query again and again, until somebody ends the command or `max_time` seconds have passed."""
    question = ask(True)
    in_place = svc.output.is_terminal and not question.format.raw
    if question.format.raw and not question.format.lines:
        raise UsageError(
            f"--every cannot be combined with format {question.format.name}: a file can have only one such document",
            hint="use table, vertical, chart, csv, tsv or ndjson",
        )
    if question.format.packing is not None:
        raise UsageError(f"--every cannot be combined with format {question.format.name}", hint="use csv or ndjson")
    with time_limit(max_time):
        if in_place:
            with svc.diagnostics.hold_notes() as notes:
                svc.output.in_place(_frames(svc, ask, question, interval))
            notes.clear()
        else:
            for _ in svc.output.until_left(_printed(svc, ask, question, interval)):
                pass


def _frames(svc: Context, ask: Ask, question: Question, interval: float) -> Iterator[str]:
    """Yield a frame for each refresh, and for each change of the terminal's size."""
    answer = _asked(svc, question)
    while True:
        begun = time.monotonic()
        size = None
        while True:
            if size != terminal_size():
                size = terminal_size()
                yield _frame(svc, answer, interval)
            if time.monotonic() - begun >= interval:
                break
            time.sleep(min(TURN, interval))
        try:
            answer = _asked(svc, ask(False))
        except (Unavailable, IncompleteResult) as error:
            answer = replace(answer, failure=error.message)


def _asked(svc: Context, question: Question) -> _Answer:
    with svc.client.query_spans(question.requests) as answer:
        columns, rows = svc.output.first_rows(answer, question.format, question.selection)
        return _Answer(question, columns, rows, answer.row_count)


def _frame(svc: Context, answer: _Answer, interval: float) -> str:
    question = answer.question
    size, top = answer.size or 0, question.selection.top
    shown = f"{top:,} of " if top is not None and top < size else ""
    summary = f"every {length_text(interval)}: {shown}{counted(size, 'row')}, {question.dates.label}"
    style = question.style._replace(header=question.selection.header)
    footer = f"cannot refresh: {answer.failure}; {summary}" if answer.failure else summary
    return svc.output.frame(answer.columns, answer.rows, question.format, style, footer)


def _printed(svc: Context, ask: Ask, question: Question, interval: float) -> Iterator[None]:
    """Print the answers one after the other. Each step of the returned iterator prints one answer."""
    for turn in count():
        begun = time.monotonic()
        selection = question.selection._replace(header=question.selection.header and not turn)
        if not question.format.raw:
            selection = question.selection
        try:
            with svc.client.query_spans(question.requests) as answer:
                svc.output.query(answer, question.format, svc.output.sink, selection, question.style, paged=False)
            if not answer.row_count and question.format.name == "chart":
                svc.diagnostics.note(f"no rows from {question.dates.label}")
            elif not question.format.raw:
                svc.output.text("")
        except (Unavailable, IncompleteResult) as error:
            if not turn:
                raise
            svc.diagnostics.note(f"cannot refresh: {error.message}")
        yield
        time.sleep(max(0, interval - (time.monotonic() - begun)))
        question = ask(False)
