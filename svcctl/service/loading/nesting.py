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
"""Matches either a whole string or a single bracket. A string may have brackets inside."""

_OTHER_BYTES = bytes(set(range(256)) - set(b"[{\n"))
_MANY_BRACKETS = re.compile(rb"[\[{]{%d}" % (MAX_DEPTH + 1))


def may_be_deep(data: bytes) -> bool:
    """Return whether a line of a block may be nested too deep: it has more than MAX_DEPTH opening brackets."""
    return _MANY_BRACKETS.search(data.translate(None, _OTHER_BYTES)) is not None


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
