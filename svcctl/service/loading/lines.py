"""Reads the entries of a text file in batches. Each entry has the number of its first line.

An entry is a line together with the lines that continue it. For example, a stack trace continues the line before it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from svcctl.service.loading.decompression import Source, opened
from svcctl.service.loading.limits import LoadWatch
from svcctl.service.loading.nesting import may_be_deep, without_deep
from svcctl.service.loading.skips import LONGEST_LINE, Aside, Change, Skip, Tally

BLOCK_BYTES = 1 << 21
"""The number of bytes that are read from a file at once.

Each block needs several times as much memory.
"""
BOM = b"\xef\xbb\xbf"
LINE_ENDS = re.compile(rb"[\r\n]*")
CONTINUES = re.compile(r"[ \t]|Caused by|at\b|---|[\])}]|#\d+ ")
"""Matches the beginning of a line that continues an entry, such as a line of a stack trace."""
MAX_ENTRY_BYTES = 1 << 20
"""The maximum size, in bytes, of an entry of several lines. If an entry would become larger, a new entry begins."""
SCHEMA = pa.schema([("number", pa.int64()), ("line", pa.string())])
"""The columns of entries: the number of the first line, and the text."""


class Readable(Protocol):
    """A file, or its unpacked bytes."""

    def read(self, size: int, /) -> bytes: ...


def batches(
    source: Source,
    continuation: str,
    tally: Tally,
    watch: LoadWatch,
    block_size: int = BLOCK_BYTES,
    longest: int = LONGEST_LINE,
    *,
    comment: str = "",
    is_json: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the entries of a file, each with the number of its first line.

    `continuation` matches the beginning of a line that continues the previous line. Without `continuation`, every line
    is an entry. Blank entries, and entries that `comment` matches, are left out. `tally` counts blank lines, comments,
    lines that continue another line, and lines that are too long. With `is_json`, entries with values that are nested
    too deep are also left out and counted.
    """
    continues = re.compile(continuation) if continuation else None
    inside = re.compile(rb"\n(?:" + continuation.encode() + rb")") if continuation else None
    number, rest = 1, b""

    def next_line() -> int:
        return number + rest.count(b"\n")

    with opened(source, watch) as file:
        first = file.read(len(BOM)).removeprefix(BOM)
        for block in chain(blocks(file, tally, block_size, longest, next_line, first), (None,)):
            whole, rest = _cut(rest + block, inside) if block is not None else (rest, b"")
            if LINE_ENDS.fullmatch(whole):
                tally.add(Aside.BLANK, number, count=whole.count(b"\n"))
                number += whole.count(b"\n")
                continue
            lines = _lines(whole, number, tally)
            first_number, number = number, number + len(lines)
            # The last line end is not searched, because a pattern can match the empty text after it.
            if continues and inside and inside.search(whole, 0, len(whole) - whole.endswith(b"\n")):
                entries, numbers = _joined(lines.to_pylist(), range(first_number, number), continues, tally)
                yield _batch(pa.array(entries, pa.string()), pa.array(numbers, pa.int64()), tally, comment)
            else:
                batch = _batch(lines, pa.arange(first_number, number), tally, comment)
                yield without_deep(batch, tally) if is_json and may_be_deep(whole) else batch


def blocks(
    file: Readable, tally: Tally, block_size: int, longest: int, next_line: Callable[[], int], first: bytes = b""
) -> Iterator[bytes]:
    """Yield the rest of a file in blocks of whole lines. A line that is too long is counted, and becomes an empty line.

    `longest` is the maximum size of a line in bytes. `next_line` returns the number of the line that follows the last
    block. `first` has the beginning of the first line, if the caller has already read it from the file.
    """
    rest, is_inside = first, False
    while data := file.read(block_size):
        if is_inside:
            data = data[data.find(b"\n") :] if b"\n" in data else b""
            is_inside = not data
        end = data.rfind(b"\n") + 1
        # A join copies the bytes only once.
        whole, rest = b"".join((rest, memoryview(data)[:end])) if end else b"", data[end:] if end else rest + data
        if len(whole) > longest:
            lines = whole.split(b"\n")
            for at, line in enumerate(lines):
                if len(line) > longest:
                    tally.add(Skip.LONG, next_line() + at)
                    tally.emptied += 1
                    lines[at] = b""
            whole = b"\n".join(lines)
        yield whole
        if len(rest) > longest:
            tally.add(Skip.LONG, next_line())
            tally.emptied += 1
            rest, is_inside = b"", True
    if rest:
        tally.unfinished = None if b"\r" in rest else next_line()  # lines of csv may end with \r
        yield rest + b"\n"


def is_text(data: bytes) -> bool:
    """Return whether bytes are UTF-8."""
    if data.isascii():  # faster than decoding
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _cut(data: bytes, inside: re.Pattern[bytes] | None) -> tuple[bytes, bytes]:
    """Split data into whole entries, and a rest that the next block may continue."""
    end = data.rfind(b"\n") + 1
    if inside is None or end == 0:
        return data[:end], data[end:]
    start = end
    while start and end - start < MAX_ENTRY_BYTES:
        start = data.rfind(b"\n", 0, start - 1) + 1
        if start == 0 or not inside.match(data, start - 1):
            break
    return (data[:start], data[start:]) if end - start < MAX_ENTRY_BYTES else (data[:end], data[end:])


def _joined(lines: list[str], numbers: range, continues: re.Pattern[str], tally: Tally) -> tuple[list[str], list[int]]:
    """Join lines with the lines that continue them. Blank lines after an entry are left out.

    Returns the entries, and the number of the first line of each entry.
    """
    entries: list[list[str]] = []
    firsts: list[int] = []
    size = MAX_ENTRY_BYTES
    for number, line in zip(numbers, lines, strict=True):
        size += len(line)
        if size < MAX_ENTRY_BYTES and continues.match(line):
            entries[-1].append(line)
        else:
            entries.append([line])
            firsts.append(number)
            size = len(line)
    _trim(entries, firsts, tally)
    return ["\n".join(entry) for entry in entries], firsts


def _trim(entries: list[list[str]], firsts: list[int], tally: Tally) -> None:
    """Remove the blank lines after entries. Count the removed lines, the joined lines, and the strays among them."""
    joined, blank = (Aside.JOINED, 0, 0), (Aside.BLANK, 0, 0)
    for number, entry in zip(firsts, entries, strict=True):
        if len(entry) > 1:
            had = len(entry)
            while len(entry) > 1 and not entry[-1]:
                entry.pop()
            if len(entry) > 1:
                joined = joined[0], joined[1] or number + 1, joined[2] + len(entry) - 1
                tally.add_strays(number + 1, strays(entry[1:]))
            if len(entry) < had:
                blank = blank[0], blank[1] or number + len(entry), blank[2] + had - len(entry)
    for what, line, count in (joined, blank):
        tally.add(what, line, count=count)


def strays(lines: Sequence[str]) -> Sequence[str]:
    """Return the first lines after an entry that do not look like a part of the entry.

    A line that looks like a part, and the line before it, end the strays. So an error message before a stack trace is a
    part of the entry.
    """
    parts = (at for at, line in enumerate(lines) if CONTINUES.match(line))
    return lines[: max(0, next(parts, len(lines) + 1) - 1)]


def _lines(data: bytes, number: int, tally: Tally) -> pa.StringArray:
    """Return the lines of a block. `number` is the number of the first line.

    A byte order mark at the beginning of a line is left out, because files that were joined have such marks. Bytes that
    are not UTF-8 are replaced. `tally` counts the lines with such bytes.
    """
    if b"\r" in data:
        data = re.sub(rb"\r+\n", b"\n", data) if b"\r\r\n" in data else data.replace(b"\r\n", b"\n")
    if not data.isascii() and BOM in data:
        data = data.removeprefix(BOM).replace(b"\n" + BOM, b"\n")
    if not is_text(data):
        lines = data.removesuffix(b"\n").split(b"\n")
        decoded = [line.decode(errors="replace").encode() for line in lines]
        changed = [at for at, (old, new) in enumerate(zip(lines, decoded, strict=True)) if old != new]
        tally.add(Change.ENCODING, number + changed[0], count=len(changed))
        data = b"\n".join(decoded)
    offsets = pa.py_buffer(struct.pack("=2i", 0, len(data) - data.endswith(b"\n")))
    return pc.split_pattern(pa.StringArray.from_buffers(1, offsets, pa.py_buffer(data)), "\n").flatten()


def _batch(lines: pa.StringArray, numbers: pa.Int64Array, tally: Tally, comment: str) -> pa.RecordBatch:
    batch = pa.RecordBatch.from_arrays([numbers, lines], schema=SCHEMA)
    is_blank = pc.equal(lines, "")
    _count(Aside.BLANK, is_blank, numbers, tally)
    is_left_out = is_blank
    if comment:
        is_comment = pc.match_substring_regex(lines, f"^(?:{comment})")
        _count(Aside.COMMENT, is_comment, numbers, tally)
        is_left_out = pc.or_(is_blank, is_comment)
    return batch.filter(pc.invert(is_left_out)) if is_left_out.true_count else batch


def _count(what: Aside, is_one: pa.BooleanArray, numbers: pa.Int64Array, tally: Tally) -> None:
    if count := is_one.true_count:
        tally.add(what, numbers[pc.index(is_one, True).as_py()].as_py(), count=count)
