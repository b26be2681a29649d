"""Sorting any number of rows.

If the rows do not fit in memory, sorted runs are written to a temporary file and merged.
"""

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
"""The maximum size, in bytes, of the rows that are sorted in memory.

More rows are written to a temporary file, in sorted runs of about this size.
"""
_PARTS = 128
"""A run of RUN_BYTES bytes is read from the file in this number of batches. Only one batch of each run is in memory."""
_MEASURED = 16
"""The approximate number of rows that are measured to estimate the size of a batch."""
_KEY_BYTES = 160
"""The estimated memory, in bytes, that a row needs in addition to its values, mostly for its sort key."""
_OF_ONE_COLUMN = 3
"""The length of the sort key of a single column."""
_NO_REFERENCES = 2
"""The version of the marshal format that writes repeated objects in full, which is faster."""

Row = Sequence[Any]
"""A row: a line of text, or a list of JSON values."""
Keys = Callable[[Sequence[Row]], list[Any]]
"""A function that returns the sort keys of a batch of rows. A sort key is a number or a tuple.

If some keys are tuples, a number n is compared as the tuple (False, 0, n).
"""
Run = tuple[list[Any], list[Row]]
"""A run of sorted rows: the sort keys and the rows."""


def in_order(rows: Iterable[Row], keys: Keys, top: int | None = None, *, run_bytes: int = RUN_BYTES) -> Iterator[Row]:
    """Return the first `top` rows in the order of their keys; all rows if `top` is None.

    Rows with equal keys keep their order. The rows in memory take about `run_bytes` bytes at most. More rows are
    written to a temporary file. Raises IncompleteResult if the temporary directory has too little room.
    """
    return Batches(_in_order(rows, keys, top, run_bytes))


def _in_order(rows: Iterable[Row], keys: Keys, top: int | None, run_bytes: int) -> Iterator[Sequence[Row]]:
    rows_left = sys.maxsize if top is None else top
    try:
        with tempfile.TemporaryFile() as file:
            for batch in _merged(_runs(rows, keys, top, run_bytes, file)):
                yield batch[:rows_left]
                rows_left -= len(batch)
                if rows_left <= 0:
                    return
    except OSError as error:
        raise IncompleteResult(
            f"cannot sort in the temporary directory {tempfile.gettempdir()}: {reason(error)}",
            hint="make room there, set TMPDIR to another directory, or print fewer rows with --top",
        ) from None


def _runs(rows: Iterable[Row], keys: Keys, top: int | None, run_bytes: int, file: IO[bytes]) -> list[Iterator[Run]]:
    """Return the rows as sorted runs. Each run is read in batches, and is cut to its first `top` rows."""
    runs: list[Iterator[Run]] = []
    run_keys, run_rows, size, tuples = list[Any](), list[Row](), 0, False
    for batch in batches_of(rows):
        some = keys(batch)
        tuples = tuples or isinstance(some[0], tuple)
        run_keys += some
        run_rows += batch
        size += _size(batch)
        if size > run_bytes:
            run_keys, run_rows = _sorted(_alike(run_keys, tuples), run_rows, top)
            size = _size(run_rows)
            if size > run_bytes // 2:  # otherwise `top` has dropped enough rows to continue in memory
                runs.append(
                    _read(file, *_stored(run_keys, run_rows, len(run_rows) * run_bytes // size // _PARTS, file))
                )
                run_keys, run_rows, size = [], [], 0
    runs.append(iter([_sorted(_alike(run_keys, tuples), run_rows, top)]))
    return [((_alike(run_keys, tuples), run_rows) for run_keys, run_rows in run) for run in runs]


def _size(rows: Sequence[Row]) -> int:
    """Return the estimated memory of rows in bytes. The estimate is based on a sample of the rows."""
    some = rows[:: max(1, len(rows) // _MEASURED)]
    size = sum(sys.getsizeof(row) + (0 if isinstance(row, str) else sum(map(sys.getsizeof, row))) for row in some)
    return len(rows) * (_KEY_BYTES + size // max(1, len(some)))


def _alike(keys: list[Any], tuples: bool) -> list[Any]:
    """Return sort keys that can be compared with each other. With `tuples`, all numbers become tuples."""
    return [key if isinstance(key, tuple) else (False, 0, key) for key in keys] if tuples else keys


def _sorted(keys: list[Any], rows: list[Row], top: int | None = None) -> Run:
    compared = keys
    if (
        keys and isinstance(keys[0], tuple) and len(keys[0]) > _OF_ONE_COLUMN
    ):  # such keys are slow to compare and often equal
        places = {key: at for at, key in enumerate(sorted(set(keys)))}
        compared = [places[key] for key in keys]
    order = sorted(range(len(keys)), key=compared.__getitem__)[:top]
    return [keys[at] for at in order], [rows[at] for at in order]


def _stored(keys: list[Any], rows: list[Row], at_once: int, file: IO[bytes]) -> tuple[int, list[int]]:
    """Append a run to the file. Returns the position of the run and the sizes of its batches, in bytes."""
    start, step = file.seek(0, 2), max(1, at_once)
    batches = ((keys[at : at + step], rows[at : at + step]) for at in range(0, len(rows), step))
    return start, [file.write(marshal.dumps(batch, _NO_REFERENCES)) for batch in batches]


def _read(file: IO[bytes], at: int, sizes: Sequence[int]) -> Iterator[Run]:
    for size in sizes:
        file.seek(at)
        yield marshal.loads(file.read(size))
        at += size


def _merged(runs: Sequence[Iterator[Run]]) -> Iterator[list[Row]]:
    """Yield the rows of all sorted runs, in order and in batches.

    One batch of each run is in memory. Each batch has a last key, and the smallest of these keys is the bound. No row
    that is still in the file comes before the bound, so the rows up to the bound can be sorted and yielded. Rows with
    equal keys keep their order.
    """
    ended: Run = [], []
    heads = [(*next(run), run) for run in runs]
    while heads := [head for head in heads if head[0]]:
        first = min(range(len(heads)), key=lambda at: heads[at][0][-1])
        bound = heads[first][0][-1]
        merged: Run = [], []
        for at, (keys, rows, run) in enumerate(heads):
            count = (bisect_right if at <= first else bisect_left)(keys, bound)
            merged[0].extend(keys[:count])
            merged[1].extend(rows[:count])
            heads[at] = (keys[count:], rows[count:], run) if count < len(keys) else (*next(run, ended), run)
        yield _sorted(*merged)[1]
