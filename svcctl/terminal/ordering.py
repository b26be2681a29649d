"""Rows in order, however many there are: what does not fit in memory is sorted in runs that a temporary file holds."""

from __future__ import annotations

import pickle
import sys
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import IO, Any

from svcctl.api.batches import Batches, batches_of
from svcctl.errors import IncompleteResult, reason

RUN_BYTES = 1 << 24
"""Bytes of rows that are sorted in memory; more go to the temporary directory, a run of so many at a time."""
_ROWS_AT_ONCE = 256
_BYTES_AT_ONCE = 1 << 18
_MEASURED = 64
"""Rows that are read of each run together, and of which the sizes are measured."""

Row = Sequence[Any]
Keys = Callable[[Sequence[Row]], list[Any]]
"""What rows are compared by."""


def in_order(rows: Iterable[Row], keys: Keys, top: int | None = None, *, run_bytes: int = RUN_BYTES) -> Iterator[Row]:
    """The rows by their keys, the first `top` of them; rows with equal keys stay in the order in which they came.

    So many bytes of rows are sorted in memory. IncompleteResult when the temporary directory cannot hold them.
    """
    return Batches(_in_order(rows, keys, top, run_bytes))


def _in_order(rows: Iterable[Row], keys: Keys, top: int | None, run_bytes: int) -> Iterator[Sequence[Row]]:
    left = sys.maxsize if top is None else top
    try:
        with tempfile.TemporaryFile() as file:
            for batch in _merged([_Run(batches, keys) for batches in _runs(rows, keys, top, run_bytes, file)]):
                yield batch[:left]
                left -= len(batch)
                if left <= 0:
                    return
    except OSError as error:
        raise IncompleteResult(
            f"cannot sort in the temporary directory {tempfile.gettempdir()}: {reason(error)}",
            hint="make room there, set TMPDIR to another directory, or print fewer rows with --top",
        ) from None


def _runs(
    rows: Iterable[Row], keys: Keys, top: int | None, run_bytes: int, file: IO[bytes]
) -> list[Iterator[list[Row]]]:
    """The rows as runs, each in order and in batches; of each no more than the first `top` rows."""
    runs: list[Iterator[list[Row]]] = []
    held, size = list[Row](), 0
    for batch in batches_of(rows):
        held += batch
        size += _size(batch)
        if size > run_bytes:
            held = _sorted(held, keys(held))[:top]
            size = _size(held)
            if size > run_bytes // 2:  # otherwise the first rows are kept, and the others were not among them
                runs.append(_read(file, *_stored(held, size, file)))
                held, size = [], 0
    return [*runs, iter([_sorted(held, keys(held))[:top]])]


def _size(rows: Sequence[Row]) -> int:
    """About how many bytes of memory rows take: of many, some tell."""
    some = rows[:: max(1, len(rows) // _MEASURED)]
    return len(rows) * (100 + sum(map(sys.getsizeof, chain.from_iterable(some))) // max(1, len(some)))


def _sorted(rows: Sequence[Row], keys: Sequence[Any]) -> list[Row]:
    return [rows[at] for at in sorted(range(len(rows)), key=keys.__getitem__)]


def _stored(rows: list[Row], size: int, file: IO[bytes]) -> tuple[int, int]:
    """Append a run to the file; returns where it begins and the number of its batches."""
    start = file.seek(0, 2)
    at_once = max(1, min(_ROWS_AT_ONCE, len(rows) * _BYTES_AT_ONCE // size))
    places = range(0, len(rows), at_once)
    for at in places:
        pickle.dump(rows[at : at + at_once], file, pickle.HIGHEST_PROTOCOL)
    return start, len(places)


def _read(file: IO[bytes], at: int, batches: int) -> Iterator[list[Row]]:
    for _ in range(batches):
        file.seek(at)
        batch = pickle.load(file)
        at = file.tell()
        yield batch


class _Run:
    """Rows in order, of which the next are in memory, with their keys."""

    def __init__(self, batches: Iterator[list[Row]], keys: Keys) -> None:
        self._batches = batches
        self._keys_of = keys
        self.rows: list[Row] = []
        self.keys: list[Any] = []

    def fill(self) -> bool:
        """Whether there are more rows."""
        if not self.rows:
            self.rows = next(self._batches, [])
            self.keys = self._keys_of(self.rows)
        return bool(self.rows)

    def take(self, count: int) -> tuple[list[Row], list[Any]]:
        taken = self.rows[:count], self.keys[:count]
        del self.rows[:count], self.keys[:count]
        return taken


def _merged(runs: Sequence[_Run]) -> Iterator[list[Row]]:
    """The rows of all runs in order: each time those that come before whatever is not in memory yet.

    These are the rows up to the least last one in memory. Of rows that equal it, those of later runs wait, because the
    run that it is from may have more of them.
    """
    while runs := [run for run in runs if run.fill()]:
        first = min(range(len(runs)), key=lambda at: runs[at].keys[-1])
        bound = runs[first].keys[-1]
        rows, keys = list[Row](), list[Any]()
        for at, run in enumerate(runs):
            taken, theirs = run.take((bisect_right if at <= first else bisect_left)(run.keys, bound))
            rows += taken
            keys += theirs
        yield _sorted(rows, keys)
