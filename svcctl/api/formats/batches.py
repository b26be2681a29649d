"""Rows in the batches in which they arrive: what arrives together is sorted, laid out and written together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

R = TypeVar("R")


class Batches(Iterator[R]):
    """Rows to be read once: one by one, or in the batches that remain."""

    def __init__(self, batches: Iterable[Sequence[R]]) -> None:
        self.batches: Iterator[Sequence[R]] = filter(None, batches)
        self._rows = chain.from_iterable(self.batches)

    def __next__(self) -> R:
        return next(self._rows)


def batches_of(rows: Iterable[R]) -> Iterator[Sequence[R]]:
    """The batches of rows; rows that come one by one are batches of one row."""
    if isinstance(rows, Batches):
        return rows.batches
    return filter(None, [rows]) if isinstance(rows, Sequence) else ([row] for row in rows)
