"""Rows in order, however many there are: what does not fit in memory is sorted in runs that a temporary file holds."""

from __future__ import annotations

import heapq
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import IO, Any

from svcctl.errors import IncompleteResult, reason

RUN_BYTES = 1 << 24
"""Bytes of rows that are sorted in memory; more go to the temporary directory, a run of so many at a time."""
MOST_KEPT = 10_000
"""The first rows of the order are kept without sorting the others, up to so many."""
_ROWS_AT_ONCE = 64

Row = Sequence[Any]
Key = Callable[[Row], Any]


def in_order(rows: Iterable[Row], key: Key, top: int | None = None, *, run_bytes: int = RUN_BYTES) -> Iterator[Row]:
    """The rows by their keys, the first `top` of them; rows with equal keys stay in the order in which they came.

    IncompleteResult when the temporary directory cannot hold them.
    """
    if top is not None and top <= MOST_KEPT:
        yield from heapq.nsmallest(top, rows, key=key)
        return
    try:
        with tempfile.TemporaryFile() as file:
            yield from islice(_merged(rows, key, file, run_bytes), top)
    except OSError as error:
        raise IncompleteResult(
            f"cannot sort in the temporary directory {tempfile.gettempdir()}: {reason(error)}",
            hint="make room there, set TMPDIR to another directory, or print fewer rows with --top",
        ) from None


def _merged(rows: Iterable[Row], key: Key, file: IO[bytes], run_bytes: int) -> Iterator[Row]:
    runs = []
    held, size = list[Row](), 0
    for row in rows:
        held.append(row)
        size += 100 + sum(map(sys.getsizeof, row))
        if size > run_bytes:
            runs.append(_stored(sorted(held, key=key), file))
            held, size = [], 0
    held.sort(key=key)
    if not runs:
        return iter(held)
    return heapq.merge(*(_read(file, start, count) for start, count in runs), held, key=key)


def _stored(rows: list[Row], file: IO[bytes]) -> tuple[int, int]:
    """Append a run to the file; returns where it begins and the number of its batches."""
    start = file.seek(0, 2)
    places = range(0, len(rows), _ROWS_AT_ONCE)
    for at in places:
        pickle.dump(rows[at : at + _ROWS_AT_ONCE], file, pickle.HIGHEST_PROTOCOL)
    return start, len(places)


def _read(file: IO[bytes], at: int, batches: int) -> Iterator[Row]:
    for _ in range(batches):
        file.seek(at)
        batch = pickle.load(file)
        at = file.tell()
        yield from batch
