"""Rows in order, however many there are: what does not fit in memory is sorted in runs that a temporary file holds."""

from __future__ import annotations

import marshal
import sys
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any

from svcctl.api.formats.batches import Batches, batches_of
from svcctl.errors import IncompleteResult, reason

RUN_BYTES = 1 << 24
"""Bytes of rows that are sorted in memory; more go to the temporary directory, a run of so many at a time."""
_PARTS = 128
"""Parts in which a full run is read; the next one of each run is in memory."""
_MEASURED = 16
"""Rows of a batch of which the sizes are measured."""
_KEY_BYTES = 160
"""About the memory of a row's key and of what holds the row."""
_OF_ONE_COLUMN = 3
"""Members of the tuple of one column; the key of several columns has as many of each."""
_NO_REFERENCES = 2
"""The version of marshal that writes an object as often as it is there, which is faster."""

Row = Sequence[Any]
"""A line, or values as JSON has them."""
Keys = Callable[[Sequence[Row]], list[Any]]
"""What rows are compared by, asked for once for each batch: numbers, or tuples, beside which n is (False, 0, n)."""
Run = tuple[list[Any], list[Row]]
"""Rows in order, behind their keys."""


def in_order(rows: Iterable[Row], keys: Keys, top: int | None = None, *, run_bytes: int = RUN_BYTES) -> Iterator[Row]:
    """The rows by their keys, the first `top` of them; rows with equal keys stay in the order in which they came.

    So many bytes of rows are sorted in memory. IncompleteResult when the temporary directory cannot hold them.
    """
    return Batches(_in_order(rows, keys, top, run_bytes))


def _in_order(rows: Iterable[Row], keys: Keys, top: int | None, run_bytes: int) -> Iterator[Sequence[Row]]:
    left = sys.maxsize if top is None else top
    try:
        with tempfile.TemporaryFile() as file:
            for batch in _merged(_runs(rows, keys, top, run_bytes, file)):
                yield batch[:left]
                left -= len(batch)
                if left <= 0:
                    return
    except OSError as error:
        raise IncompleteResult(
            f"cannot sort in the temporary directory {tempfile.gettempdir()}: {reason(error)}",
            hint="make room there, set TMPDIR to another directory, or print fewer rows with --top",
        ) from None


def _runs(rows: Iterable[Row], keys: Keys, top: int | None, run_bytes: int, file: IO[bytes]) -> list[Iterator[Run]]:
    """The rows as runs, each in batches; of each no more than the first `top` rows."""
    runs: list[Iterator[Run]] = []
    compared, held, size, tuples = list[Any](), list[Row](), 0, False
    for batch in batches_of(rows):
        some = keys(batch)
        tuples = tuples or isinstance(some[0], tuple)
        compared += some
        held += batch
        size += _size(batch)
        if size > run_bytes:
            compared, held = _sorted(_alike(compared, tuples), held, top)
            size = _size(held)
            if size > run_bytes // 2:  # otherwise the first rows are kept, and the others were not among them
                runs.append(_read(file, *_stored(compared, held, len(held) * run_bytes // size // _PARTS, file)))
                compared, held, size = [], [], 0
    runs.append(iter([_sorted(_alike(compared, tuples), held, top)]))
    return [((_alike(compared, tuples), held) for compared, held in run) for run in runs]


def _size(rows: Sequence[Row]) -> int:
    """About how many bytes of memory rows take: of many, some tell."""
    some = rows[:: max(1, len(rows) // _MEASURED)]
    size = sum(sys.getsizeof(row) + (0 if isinstance(row, str) else sum(map(sys.getsizeof, row))) for row in some)
    return len(rows) * (_KEY_BYTES + size // max(1, len(some)))


def _alike(keys: list[Any], tuples: bool) -> list[Any]:
    """Keys that can be compared with others, of which some are tuples."""
    return [key if isinstance(key, tuple) else (False, 0, key) for key in keys] if tuples else keys


def _sorted(keys: list[Any], rows: list[Row], top: int | None = None) -> Run:
    compared = keys
    if keys and isinstance(keys[0], tuple) and len(keys[0]) > _OF_ONE_COLUMN:  # slow to compare, and often equal
        places = {key: at for at, key in enumerate(sorted(set(keys)))}
        compared = [places[key] for key in keys]
    order = sorted(range(len(keys)), key=compared.__getitem__)[:top]
    return [keys[at] for at in order], [rows[at] for at in order]


def _stored(keys: list[Any], rows: list[Row], at_once: int, file: IO[bytes]) -> tuple[int, list[int]]:
    """Append a run to the file; returns where it begins and the sizes of its batches."""
    start, step = file.seek(0, 2), max(1, at_once)
    batches = ((keys[at : at + step], rows[at : at + step]) for at in range(0, len(rows), step))
    return start, [file.write(marshal.dumps(batch, _NO_REFERENCES)) for batch in batches]


def _read(file: IO[bytes], at: int, sizes: Sequence[int]) -> Iterator[Run]:
    for size in sizes:
        file.seek(at)
        yield marshal.loads(file.read(size))
        at += size


def _merged(runs: Sequence[Iterator[Run]]) -> Iterator[list[Row]]:
    """The rows of all runs in order: each time those that come before whatever is not in memory yet.

    These are the rows up to the least last one in memory. Of rows that equal it, those of later runs wait, because the
    run that it is from may have more of them.
    """
    ended: Run = [], []
    heads = [(*next(run), run) for run in runs]
    while heads := [head for head in heads if head[0]]:
        first = min(range(len(heads)), key=lambda at: heads[at][0][-1])
        bound = heads[first][0][-1]
        taken: Run = [], []
        for at, (keys, rows, run) in enumerate(heads):
            count = (bisect_right if at <= first else bisect_left)(keys, bound)
            taken[0].extend(keys[:count])
            taken[1].extend(rows[:count])
            heads[at] = (keys[count:], rows[count:], run) if count < len(keys) else (*next(run, ended), run)
        yield _sorted(*taken)[1]
