"""Answers whose first rows matter: --fail-on-empty needs at least one row, and a terminal shows a limited number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from svcctl.api.formats.batches import Batches, batches_of
from svcctl.cli.commands.query.request import Question
from svcctl.errors import NoRows, TooManyRows

if TYPE_CHECKING:
    from svcctl.api.columns import ResultColumn
    from svcctl.api.follow import Follow
    from svcctl.api.response import QueryResponse


def no_rows(question: Question) -> NoRows:
    return NoRows(f"no rows from {question.dates.label}")


@dataclass(frozen=True)
class NeededRows:
    """An answer whose first row is read before anything is printed. NoRows if the answer has no rows."""

    answer: QueryResponse | Follow
    question: Question

    @property
    def columns(self) -> Sequence[ResultColumn]:
        return self.answer.columns

    def rows(self) -> Iterator[tuple[Any, ...]]:
        batches = batches_of(self.answer.rows())
        if (first := next(batches, None)) is None:
            raise no_rows(self.question)
        return Batches(chain([first], batches))


@dataclass(frozen=True)
class NeededAnswer(NeededRows):
    """An answer whose rows or bytes are read up to the first row before anything is printed."""

    answer: QueryResponse

    @property
    def cut_texts(self) -> int:
        return self.answer.cut_texts

    def raw(self) -> Iterator[bytes]:
        blocks, before = self.answer.raw(), []
        for block in blocks:
            before.append(block)
            if self.answer.row_count:
                return chain(before, blocks)
        raise no_rows(self.question)


@dataclass
class ShownAnswer:
    """An answer for a terminal.

    Its rows end when the profile's max_rows is reached; `error` is then set instead of raised.

    If the error were raised, a layout that measures rows before it writes them would lose these rows. Sorted rows and
    charts are meaningless if rows are missing, so for them the error is raised.
    """

    answer: QueryResponse | NeededAnswer
    question: Question
    error: TooManyRows | None = None

    @property
    def columns(self) -> Sequence[ResultColumn]:
        return self.answer.columns

    @property
    def cut_texts(self) -> int:
        return self.answer.cut_texts

    def raw(self) -> Iterator[bytes]:
        return self.answer.raw()

    def rows(self) -> Iterator[tuple[Any, ...]]:
        rows = self.answer.rows()
        whole = self.question.selection.sort or self.question.format.name == "chart"
        return rows if whole else Batches(self._first(batches_of(rows)))

    def _first(self, batches: Iterator[Sequence[tuple[Any, ...]]]) -> Iterator[Sequence[tuple[Any, ...]]]:
        try:
            yield from batches
        except TooManyRows as error:
            self.error = error
