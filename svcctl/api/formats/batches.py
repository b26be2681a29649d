"""Rows in batches. The rows of a batch arrived together, so they can be formatted and written together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

R = TypeVar("R")


class Batches(Iterator[R]):
    """An iterator of rows. Its attribute `batches` yields the same rows in batches.

    Each row is delivered only once, alone or in a batch.
    """

    def __init__(self, batches: Iterable[Sequence[R]]) -> None:
        self.batches: Iterator[Sequence[R]] = filter(None, batches)
        self._rows = chain.from_iterable(self.batches)

    def __next__(self) -> R:
        return next(self._rows)


def batches_of(rows: Iterable[R]) -> Iterator[Sequence[R]]:
    """Return the rows in batches.

    A list of rows is one batch. If an iterator yields single rows, each row is a batch.
    """
    if isinstance(rows, Batches):
        return rows.batches
    return filter(None, [rows]) if isinstance(rows, Sequence) else ([row] for row in rows)
