"""Checks of the number of rows of an answer, for --fail-on-empty and for the `max_rows` of a profile."""

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
    """The rows of an answer, with the check of --fail-on-empty.

    The first row is read before anything is printed. Raises NoRows if there are no rows.
    """

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
    """An answer with the check of --fail-on-empty.

    The answer is read up to its first row before anything is printed. Raises NoRows if there are no rows.
    """

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
    """An answer for a terminal. When the profile's max_rows is reached, the rows end and `error` is set.

    The error is not raised, so that a table can still print the rows that it has read. For sorted rows and charts, the
    error is raised, because missing rows would make them wrong.
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
