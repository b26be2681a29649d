"""The file formats of an export. `FORMATS` has a row for each format.

A merged file is made from parts. A part is a file with the rows of one time window. In csv, tsv and ndjson, a part has
the unchanged bytes from the service, without the heading. The merged file is the heading, followed by the bytes of all
parts. Each part can be compressed separately, because gzip and zstd allow compressed files to be concatenated. A
parquet file has the same column types as the answer of the service.
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
"""A function that reads a part, which is a file with the rows of one window. Compressed bytes stay compressed."""


Look = Callable[[tuple[str, ...]], None]
"""A function that is called with the column names before the first row is written. It may raise an error."""


class WritePart(Protocol):
    """A function that writes the rows of an answer to `sink`, see `ExportFormat`.

    `look` is called with the names of the columns. For ndjson, these names come from the first row.
    """

    def __call__(
        self, answer: QueryResponse, sink: ByteSink, whole: bool, losses: Losses, look: Look | None = None, /
    ) -> str: ...


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A file format: the response format to request from the service, and the functions that write files.

    `mode` is the response format. `part(answer, sink, whole, losses)` writes the rows of one time window. It returns
    the head, which is the heading of csv and tsv, or the columns of parquet. All windows of a file must have the same
    head. If `whole` is true, `part` writes a complete file, including the heading. `part` counts in `losses` the values
    that the format cannot hold.

    `merged(parts, head, sink)` writes the parts of all windows, in order, as one file. A part is the file of one
    window. In formats with a `heading`, the caller must write the head before this call.
    """

    name: str
    mode: str
    part: WritePart
    merged: Callable[[Iterable[Part], str, ByteSink], None]
    heading: bool = False
    joins: bool = True
    """Whether a merged file is the heading, followed by the unchanged bytes of each window's file."""
    compressible: bool = True
    """Whether file names may have .gz or .zst after the ending of the format. Parquet compresses its data itself."""

    def columns(self, head: str) -> str:
        """Return the columns as one line of text. For parquet, the line includes the types of the columns.

        `head` is the heading of csv and tsv, or the columns of parquet.
        """
        return head.strip() if self.heading or not head else ", ".join(" ".join(column) for column in json.loads(head))


def _lines(*, heading: bool) -> WritePart:
    """Return a function that writes the bytes of an answer unchanged.

    If `heading` is true, the first block of an answer is the heading.
    """

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
    """Return the names of the members in the first object of an ndjson text.

    If the text is not ndjson, return no names.
    """
    try:
        row = json.loads(lines.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return ()
    return tuple(row) if isinstance(row, dict) else ()


def _joined(parts: Iterable[Part], head: str, sink: ByteSink) -> None:
    """Write the bytes of all parts. The caller has already written the heading."""
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

    # A parquet file is read from its end, so a part on another machine is copied first.
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
    """Return the file format for a path, and the ending of the compression, such as ".gz".

    Without compression, the second value is "". `name` is the name of the format. If `name` is None, the ending of the
    path decides the format.

    Raises UsageError in these cases:
    - `name` is unknown.
    - `name` is None, and the ending of the path is unknown.
    - The path has the ending of another format than `name`.
    - The path has the ending of a compression, but the format cannot be compressed.
    """
    compression = next((ending for ending in COMPRESSIONS if path.endswith(ending)), "")
    ending = path.removesuffix(compression).rpartition(".")[2].lower()
    by_ending = format_name(ending)
    by_name = None if name is None else format_name(name)
    if by_name is not None and by_name not in FORMATS:
        raise UsageError(f"unknown export format '{name}'", hint=f"formats are: {', '.join(FORMATS)}")
    if by_name is not None and by_ending in FORMATS and by_ending != by_name:
        raise UsageError(
            f"{path} would contain {by_name}, not {by_ending}", hint="leave out --format, or change the ending"
        )
    format = FORMATS.get(by_name or by_ending)
    if format is None:
        packed, plain = (
            [f".{row.name}" for row in FORMATS.values() if row.compressible is compressible]
            for compressible in (True, False)
        )
        raise UsageError(
            f"the ending of '{path}' does not name an export format",
            hint=f"endings are {', '.join(packed)} or .jsonl, each with {' or '.join(COMPRESSIONS)}, "
            f"and {', '.join(plain)}; other endings need --format",
        )
    if compression and not format.compressible:
        raise UsageError(f"{format.name} compresses by itself", hint=f"leave out {compression}")
    return format, compression
