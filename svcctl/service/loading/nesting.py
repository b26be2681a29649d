"""Leaves out JSON with values that are nested too deep.

Deeper nesting would exceed the recursion limit of the code that reads the JSON later.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from svcctl.service.loading.limits import MAX_DEPTH
from svcctl.service.loading.skips import Skip, Tally

_TOKEN = re.compile(r'"(?>(?:[^"\\]++|\\.)*)"?|[\[\]{}]', re.DOTALL)
"""Matches a string, which may contain brackets, or a single bracket."""

_OTHER_BYTES = bytes(set(range(256)) - set(b'"\\[{\n'))
_FLAT_LINE = re.compile(rb'\{("*)\n')
_MANY_BRACKETS = re.compile(rb"[\[{]{%d}" % (MAX_DEPTH + 1))


def quotes_per_line(data: bytes) -> tuple[int | None, bool]:
    """Return the number of quotes that every line of a block has. Also return whether a line may be nested too deep.

    The number is None if the lines have different numbers of quotes, or if a line has a `[`, a backslash, or more or
    less than one `{`. A line may be nested too deep if it has more than MAX_DEPTH opening brackets.
    """
    marks = data.translate(None, _OTHER_BYTES)
    line = _FLAT_LINE.match(marks)
    if line is not None and marks == line[0] * (len(marks) // len(line[0])):
        return len(line[1]), False
    return None, _MANY_BRACKETS.search(marks.translate(None, b'"\\')) is not None


def without_deep(batch: pa.RecordBatch, tally: Tally, most: int = MAX_DEPTH) -> pa.RecordBatch:
    """Return the entries of a batch that are nested at most `most` levels deep. `tally` counts the other entries."""
    lines = batch.column("line")
    if (pc.max(pc.binary_length(lines)).as_py() or 0) <= most:
        return batch
    brackets = pc.add(pc.count_substring(lines, "["), pc.count_substring(lines, "{"))
    deep = {
        at for at in pc.indices_nonzero(pc.greater(brackets, most)).to_pylist() if _is_deep(lines[at].as_py(), most)
    }
    if not deep:
        return batch
    for at in sorted(deep):
        tally.add(Skip.DEEP, batch.column("number")[at].as_py())
    return batch.filter(pa.array([at not in deep for at in range(batch.num_rows)]))


def _is_deep(text: str, most: int) -> bool:
    depth = 0
    for part in _TOKEN.finditer(text):
        bracket = part[0]
        depth += 1 if bracket in "[{" else -1 if bracket in "]}" else 0
        if depth > most:
            return True
    return False
