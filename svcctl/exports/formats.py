"""The formats of an export: how a window's rows become a part, and how the parts of all windows become one file.

A row of `FORMATS` holds all of it. In csv, tsv and ndjson the rows are the service's own bytes, checked as they pass.
Their parts hold rows only, each compressed by itself, so that the merged file is the heading and then one part behind
the other: a gzip or zstd file may have several members. Parquet is typed by the columns of the answer; the ends of
its row groups depend on the rows alone, so that the same events make the same file however their bytes arrive.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from itertools import islice
from typing import TYPE_CHECKING, Any

from svcctl import extras
from svcctl.compression import COMPRESSIONS, Sink
from svcctl.errors import IncompleteResult, UsageError
from svcctl.exports.spool import Spool

if TYPE_CHECKING:
    import pyarrow as pa

    from svcctl.api.events import QueryResponse

ROWS_PER_GROUP = 32_768
BYTES_PER_GROUP = 1 << 20
"""A row group of parquet has so many rows, or fewer where they take so many bytes: it is what a worker holds."""
ROWS_AT_ONCE = 1024
"""Rows that are decoded before they are packed into columns."""


Part = Callable[[], Iterator[bytes]]
"""Reads the stored part of a window, compressed as it is stored."""


@dataclass(frozen=True, slots=True)
class Format:
    """One format: the mode.type that is asked for, and its two ways to write.

    `part(answer, sink, whole)` writes the rows of one window and returns their head, which all windows must share: the
    heading of csv and tsv, the columns of parquet. With `whole` the part is a file of its own, heading included.
    `merged(parts, head, sink)` writes the parts of all windows, in order, as one file; in formats with a `heading`,
    behind the head.
    """

    name: str
    mode: str
    part: Callable[[QueryResponse, Sink, bool], str]
    merged: Callable[[Iterable[Part], str, Sink], None]
    heading: bool = False
    joins: bool = True
    """Whether the merged file is the parts as they are, one behind the other."""
    compressible: bool = True
    """Whether .gz and .zst may follow the format's own ending; parquet compresses inside."""


def _lines(*, heading: bool) -> Callable[[QueryResponse, Sink, bool], str]:
    """Parts of the service's own bytes, the first block of which is the heading in csv and tsv."""

    def part(answer: QueryResponse, sink: Sink, whole: bool) -> str:
        blocks = answer.raw()
        head = next(blocks) if heading else b""
        if head and whole:
            sink.write(head)
        for block in blocks:
            sink.write(block)
        return head.decode("utf-8", "surrogateescape")

    return part


def _joined(parts: Iterable[Part], head: str, sink: Sink) -> None:
    """The parts as they are, one behind the other; the heading has been written before them."""
    for part in parts:
        for piece in part():
            sink.write(piece)


# Parquet


def _parquet_part(answer: QueryResponse, sink: Sink, whole: bool) -> str:
    rows = answer.rows()
    columns = [(column.name, column.type or "str") for column in answer.columns]
    head = json.dumps(columns, ensure_ascii=False)
    _write_groups(_batches(rows, columns), head, sink)
    return head


def _batches(rows: Iterator[tuple[Any, ...]], columns: list[tuple[str, str]]) -> Iterator[pa.RecordBatch]:
    """The rows as typed columns. IncompleteResult for a value that does not have the type its column names."""
    arrow = _pyarrow()
    schema = _schema(columns)
    while some := list(islice(rows, ROWS_AT_ONCE)):
        arrays = []
        for field, (name, kind), values in zip(schema, columns, zip(*some, strict=True), strict=True):
            convert = _TEXT_OF.get(kind, _text) if arrow.types.is_string(field.type) else None
            try:
                if kind in _WHOLE_NUMBERS and not _INTEGERS.issuperset(map(type, values)):
                    raise ValueError("Arrow would cut a fraction off")
                given = values if convert is None else [None if value is None else convert(value) for value in values]
                arrays.append(arrow.array(given, field.type))
            except (arrow.ArrowException, ValueError, TypeError, OverflowError):
                raise IncompleteResult(f"column {name} holds a value that is not of its type {kind}") from None
        yield arrow.RecordBatch.from_arrays(arrays, schema=schema)


def _merged_parquet(parts: Iterable[Part], head: str, sink: Sink) -> None:
    _write_groups((batch for part in parts for batch in _stored_batches(part)), head, sink)


def _stored_batches(part: Part) -> Iterator[pa.RecordBatch]:
    from pyarrow import parquet

    # A parquet file is read from its end, and a part may be far away.
    with Spool() as local:
        for piece in part():
            local.write(piece)
        with parquet.ParquetFile(local.file) as file:
            yield from file.iter_batches(ROWS_AT_ONCE, use_threads=False)


def _write_groups(batches: Iterable[pa.RecordBatch], head: str, sink: Sink) -> None:
    """A parquet file; a row group ends with the batch that makes it large enough."""
    arrow = _pyarrow()
    from pyarrow import parquet

    schema = _schema(json.loads(head))
    with parquet.ParquetWriter(arrow.PythonFile(_Appended(sink), "w"), schema, compression="zstd") as writer:
        for group in _grouped(batches):
            with _packing:
                writer.write_table(arrow.Table.from_batches(group, schema), ROWS_PER_GROUP + ROWS_AT_ONCE)


def _grouped(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        group.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= ROWS_PER_GROUP or size >= BYTES_PER_GROUP:
            yield group
            group, rows, size = [], 0, 0
    if group:
        yield group


_packing = threading.Lock()
"""One row group is encoded and compressed at a time, since that takes several times its size."""


class _Appended:
    """A sink as the file that Arrow writes to: it asks where it is, and never goes back."""

    closed = False

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._at = 0

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._sink.write(view)
        self._at += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        return self._at

    def flush(self) -> None: ...

    def close(self) -> None: ...


def _schema(columns: list[tuple[str, str]]) -> pa.Schema:
    arrow = _pyarrow()
    types = {
        "timestamp": arrow.timestamp("ms", "UTC"),
        "int4": arrow.int32(),
        "int8": arrow.int64(),
        "float8": arrow.float64(),
        "bool": arrow.bool_(),
    }
    return arrow.schema([(name, types.get(kind, arrow.string())) for name, kind in columns])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_TEXT_OF: dict[str, Callable[[Any], str]] = {
    "ip4": lambda value: value if isinstance(value, str) else str(IPv4Address(value)),
    "ip6": lambda value: value if isinstance(value, str) else str(IPv6Address(value)),
}
"""How the values of types that parquet does not have become text; a service writes addresses as text or as integers."""


_WHOLE_NUMBERS = frozenset({"timestamp", "int4", "int8"})
_INTEGERS = frozenset({int, type(None)})


def _pyarrow() -> Any:
    extras.need("parquet", "the format parquet")
    if sys.platform == "linux":  # elsewhere it is not built in
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")  # keeps least of what is freed
    import pyarrow

    return pyarrow


FORMATS = {
    row.name: row
    for row in (
        Format("csv", "csv", _lines(heading=True), _joined, heading=True),
        Format("tsv", "tsv", _lines(heading=True), _joined, heading=True),
        Format("ndjson", "json/simple", _lines(heading=False), _joined),
        Format("parquet", "json/simple/compact", _parquet_part, _merged_parquet, joins=False, compressible=False),
    )
}


def format_of(path: str, name: str | None) -> tuple[Format, str]:
    """The format of a path, named or by its ending, and the ending that compresses it ("" for none).

    UsageError when the name is unknown, when the ending means another format than the name, or when neither says one.
    """
    compression = next((ending for ending in COMPRESSIONS if path.endswith(ending)), "")
    ending = path.removesuffix(compression).rpartition(".")[2].lower()
    by_ending = {"jsonl": "ndjson"}.get(ending, ending)
    if name is not None and name not in FORMATS:
        raise UsageError(f"unknown export format '{name}'", hint=f"formats are: {', '.join(FORMATS)}")
    if name is not None and by_ending in FORMATS and by_ending != name:
        raise UsageError(f"{path} would hold {name}, not {by_ending}", hint="leave out --format, or change the ending")
    chosen = FORMATS.get(name or by_ending)
    if chosen is None:
        raise UsageError(f"the ending of {path} names no format", hint=f"name it with --format: {', '.join(FORMATS)}")
    if compression and not chosen.compressible:
        raise UsageError(f"{chosen.name} compresses by itself", hint=f"leave out {compression}")
    return chosen, compression
