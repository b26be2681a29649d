"""Rows in batches: rows that arrive together are formatted and written together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

R = TypeVar("R")


class Batches(Iterator[R]):
    """Rows that can be read once, one by one or in batches; `batches` has the batches that are not read yet."""

    def __init__(self, batches: Iterable[Sequence[R]]) -> None:
        self.batches: Iterator[Sequence[R]] = filter(None, batches)
        self._rows = chain.from_iterable(self.batches)

    def __next__(self) -> R:
        return next(self._rows)


def batches_of(rows: Iterable[R]) -> Iterator[Sequence[R]]:
    """Return the rows in batches. If `rows` is not a Batches, each batch has one row."""
    if isinstance(rows, Batches):
        return rows.batches
    return filter(None, [rows]) if isinstance(rows, Sequence) else ([row] for row in rows)
