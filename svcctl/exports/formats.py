"""The formats of an export: how a window's rows become a part, and how the parts of all windows become one file.

A format is a row of `FORMATS`. In csv, tsv and ndjson the rows are the service's own bytes, checked as they pass.
Their parts hold rows only, each compressed by itself, so that the merged file is the heading and then one part behind
the other: a gzip or zstd file may have several members. Parquet is typed by the columns of the answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from svcctl.api.formats.batches import batches_of
from svcctl.errors import UsageError
from svcctl.exports.workers.spool import Spool
from svcctl.io import arrow, parquet
from svcctl.io.compression import COMPRESSIONS, ByteSink
from svcctl.io.losses import Losses
from svcctl.words import format_name

if TYPE_CHECKING:
    import pyarrow as pa

    from svcctl.api.response import QueryResponse

Part = Callable[[], Iterator[bytes]]
"""Reads the stored part of a window, compressed as it is stored."""


Look = Callable[[tuple[str, ...]], None]
"""Gets the names of an answer's columns before a row is written; it may raise an error."""


class WritePart(Protocol):
    """Writes the rows of an answer, see `ExportFormat`. An answer in ndjson names its columns with its first row."""

    def __call__(
        self, answer: QueryResponse, sink: ByteSink, whole: bool, losses: Losses, look: Look | None = None, /
    ) -> str: ...


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """One format: the mode.type that is asked for, and its two ways to write.

    `part(answer, sink, whole, losses)` writes the rows of one window and returns their head, which all windows must
    share: the heading of csv and tsv, the columns of parquet. With `whole` the part is a file of its own, heading
    included. What the format cannot hold is counted in `losses`.
    `merged(parts, head, sink)` writes the parts of all windows, in order, as one file; in formats with a `heading`,
    behind the head.
    """

    name: str
    mode: str
    part: WritePart
    merged: Callable[[Iterable[Part], str, ByteSink], None]
    heading: bool = False
    joins: bool = True
    """Whether the merged file is the parts as they are, one behind the other."""
    compressible: bool = True
    """Whether .gz and .zst may follow the format's own ending; parquet compresses inside."""

    def columns(self, head: str) -> str:
        """The columns of a head on one line, with their types where it has them."""
        return head.strip() if self.heading or not head else ", ".join(" ".join(column) for column in json.loads(head))


def _lines(*, heading: bool) -> WritePart:
    """Parts of the service's own bytes, the first block of which is the heading in csv and tsv."""

    def part(answer: QueryResponse, sink: ByteSink, whole: bool, losses: Losses, look: Look | None = None, /) -> str:
        blocks = answer.raw()
        first = next(blocks, b"")
        if look is not None and first:
            look(tuple(column.name for column in answer.columns) if heading else members(first))
        if first and (whole or not heading):
            sink.write(first)
        for block in blocks:
            sink.write(block)
        return first.decode("utf-8", "surrogateescape") if heading else ""

    return part


def members(lines: bytes) -> tuple[str, ...]:
    """The names in the object of the first line; none if it is not one, which the reader of the answer refuses."""
    try:
        row = json.loads(lines.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return ()
    return tuple(row) if isinstance(row, dict) else ()


def _joined(parts: Iterable[Part], head: str, sink: ByteSink) -> None:
    """The parts as they are, one behind the other; the heading has been written before them."""
    for part in parts:
        for piece in part():
            sink.write(piece)


# Parquet


def _parquet_part(
    answer: QueryResponse, sink: ByteSink, whole: bool, losses: Losses, look: Look | None = None, /
) -> str:
    batches = map(losses.rows, batches_of(answer.rows()))
    if look is not None:
        look(tuple(column.name for column in answer.columns))
    columns = [(losses.text(column.name), column.type or "str") for column in answer.columns]
    head = json.dumps(columns, ensure_ascii=False)
    parquet.write(parquet.batches(chain.from_iterable(batches), columns), columns, sink)
    return head


def _merged_parquet(parts: Iterable[Part], head: str, sink: ByteSink) -> None:
    parquet.write((batch for part in parts for batch in _stored_batches(part)), json.loads(head), sink)


def _stored_batches(part: Part) -> Iterator[pa.RecordBatch]:
    from pyarrow.parquet import ParquetFile

    # A parquet file is read from its end, and a part may be on another machine.
    with Spool() as local:
        for piece in part():
            local.write(piece)
        with ParquetFile(local.file) as file:
            yield from file.iter_batches(arrow.ROWS_AT_ONCE, use_threads=False)


FORMATS = {
    row.name: row
    for row in (
        ExportFormat("csv", "csv", _lines(heading=True), _joined, heading=True),
        ExportFormat("tsv", "tsv", _lines(heading=True), _joined, heading=True),
        ExportFormat("ndjson", "json/simple", _lines(heading=False), _joined),
        ExportFormat("parquet", "json/simple/compact", _parquet_part, _merged_parquet, joins=False, compressible=False),
    )
}


def format_of(path: str, name: str | None) -> tuple[ExportFormat, str]:
    """The format of a path, named or by its ending, and the ending that compresses it ("" for none).

    UsageError when the name is unknown, when the ending means another format than the name, or when neither says one.
    """
    compression = next((ending for ending in COMPRESSIONS if path.endswith(ending)), "")
    ending = path.removesuffix(compression).rpartition(".")[2].lower()
    by_ending = format_name(ending)
    by_name = None if name is None else format_name(name)
    if by_name is not None and by_name not in FORMATS:
        raise UsageError(f"unknown export format '{name}'", hint=f"formats are: {', '.join(FORMATS)}")
    if by_name is not None and by_ending in FORMATS and by_ending != by_name:
        raise UsageError(
            f"{path} would hold {by_name}, not {by_ending}", hint="leave out --format, or change the ending"
        )
    format = FORMATS.get(by_name or by_ending)
    if format is None:
        packed, plain = (
            [f".{row.name}" for row in FORMATS.values() if row.compressible is compressible]
            for compressible in (True, False)
        )
        raise UsageError(
            f"the ending of '{path}' is not that of an export format",
            hint=f"endings are {', '.join(packed)} or .jsonl, each with {' or '.join(COMPRESSIONS)}, "
            f"and {', '.join(plain)}; another one needs --format",
        )
    if compression and not format.compressible:
        raise UsageError(f"{format.name} compresses by itself", hint=f"leave out {compression}")
    return format, compression
