"""Rows as typed columns of Apache Arrow, for parquet files and for programs that use Arrow.

The service's type names, such as int8 and timestamp, become types of Arrow. Timestamps are `timestamp[ms, UTC]`. Types
that Arrow does not have, and unknown types, become text. The package pyarrow must be installed, and is imported only
when a function needs it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address
from itertools import islice
from typing import TYPE_CHECKING, Any

from svcctl.errors import IncompleteResult

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 1024
"""The number of rows that are packed into one batch of columns."""

Columns = Sequence[Sequence[str]]
"""The columns of a result: the name and the type of each column."""


def schema_of(columns: Columns) -> pa.Schema:
    """Return the Arrow schema of rows that have these columns."""
    import pyarrow as pa

    types = {
        "timestamp": pa.timestamp("ms", "UTC"),
        "int4": pa.int32(),
        "int8": pa.int64(),
        "float8": pa.float64(),
        "bool": pa.bool_(),
    }
    return pa.schema([(name, types.get(kind, pa.string())) for name, kind in columns])


def batches(rows: Iterable[Sequence[Any]], columns: Columns) -> Iterator[pa.RecordBatch]:
    """Pack rows into batches of typed columns.

    Raises IncompleteResult if a value does not have the type of its column.
    """
    import pyarrow as pa

    schema = schema_of(columns)
    remaining = iter(rows)
    while some := list(islice(remaining, ROWS_AT_ONCE)):
        arrays = []
        for field, (name, kind), values in zip(schema, columns, zip(*some, strict=True), strict=True):
            convert = TEXT_OF.get(kind, _text) if pa.types.is_string(field.type) else None
            try:
                if kind in _WHOLE_NUMBERS and not _INTEGERS.issuperset(map(type, values)):
                    raise ValueError("Arrow would cut a fraction off")
                converted = (
                    values if convert is None else [None if value is None else convert(value) for value in values]
                )
                arrays.append(pa.array(converted, field.type))
            except (pa.ArrowException, ValueError, TypeError, OverflowError):
                raise IncompleteResult(f"column {name} contains a value that is not of its type {kind}") from None
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def batch_of_values(values: bytes, columns: Columns) -> pa.RecordBatch | None:
    """Pack rows into a batch. Each row is a line of JSON values with commas between them: `1706695200000,"a",null`.

    Arrow's csv reader can read most of these lines, because texts are in quotes, and nulls and numbers are not. Returns
    None if csv might read a value differently from JSON, or if a value does not have the type of its column. In this
    case, the caller must read the rows as JSON.
    """
    import pyarrow as pa
    from pyarrow import csv

    escaped = b"\\" in values
    # csv and JSON read these escapes in the same way. Without escaped backslashes (`single`), each backslash belongs to
    # the character after it. Without any escapes (`plain`), each quote begins or ends a text.
    single = values.replace(b"\\\\", b"") if escaped else values
    plain = single.replace(b'\\"', b"").replace(b"\\/", b"") if escaped else values
    blank = b"\t" in values or b"\r" in values or b'" ' in values or (escaped and b' "' in values)
    if not columns or blank or (escaped and b"\\" in plain):
        return None
    schema = schema_of(columns)
    types = [pa.int64() if pa.types.is_timestamp(field.type) else field.type for field in schema]
    names = list(map(str, range(len(types))))
    try:
        table = csv.read_csv(
            pa.py_buffer(values),
            csv.ReadOptions(use_threads=False, column_names=names, block_size=len(values)),
            csv.ParseOptions(escape_char="\\" if escaped else False, double_quote=False),
            csv.ConvertOptions(
                column_types=dict(zip(names, types, strict=True)),
                null_values=["null"],
                true_values=["true"],
                false_values=["false"],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowException:
        return None
    arrays = [column.combine_chunks().cast(field.type) for column, field in zip(table.columns, schema, strict=True)]
    texts = [array for array in arrays if pa.types.is_string(array.type)]
    if plain.count(b'"') != 2 * sum(len(array) - array.null_count for array in texts):
        return None  # a text without quotes, or a number in quotes
    inner_quotes = sum(array.buffers()[2].to_pybytes().count(b'"') for array in texts if array.buffers()[2])
    if inner_quotes != single.count(b'\\"'):
        return None  # an object, or a blank or another character before the quotes of a text
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


TEXT_OF: dict[str, Callable[[Any], str]] = {
    "ip4": lambda value: value if isinstance(value, str) else str(IPv4Address(value)),
    "ip6": lambda value: value if isinstance(value, str) else str(IPv6Address(value)),
}
"""Functions that convert values to text, for types that Arrow does not have.

Depending on the service, IP addresses arrive as text or as integers.
"""

_WHOLE_NUMBERS = frozenset({"timestamp", "int4", "int8"})
_INTEGERS = frozenset({int, type(None)})
