"""Checks parquet files before they are loaded: the sizes in the footer, the values, and the pages.

A repeated value is stored only once, so a small file can have very many large values.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from svcctl.service.engines.duckdb.syntax import quote
from svcctl.service.loading.decompression import Source, damaged
from svcctl.service.loading.limits import LoadWatch

ROW_NUMBER = "file_row_number"
"""The column with row numbers, which DuckDB adds to parquet."""
_BUFFER_BYTES = 1 << 20
_VALUE_BYTES = 8
"""The minimum size of a value in memory, in bytes."""
_MAX_ROWS = 1 << 16
_SIZES = {"VARCHAR": "strlen", "BLOB": "octet_length"}
"""DuckDB's function for the size of a value in bytes, by the type of the value."""


def check_footer(source: Source, contents: Path, watch: LoadWatch) -> int:
    """Check the sizes in the footer of a parquet file, and return the size of a row in bytes.

    The size of a row is the average in the row group with the largest rows, and at least 1. Raises ServiceError if the
    sizes in the footer exceed a limit. If Arrow cannot read the footer, the result is 1, and DuckDB reports the fault
    later.
    """
    import pyarrow.parquet as pq  # also imports Arrow's file systems, which an idle service would hold in memory

    try:
        described = pq.read_metadata(contents)
        groups = [described.row_group(at) for at in range(described.num_row_groups)]
        nested = [at for at in range(described.num_columns) if described.schema.column(at).max_repetition_level]
        values = max((group.column(at).num_values for group in groups for at in nested), default=0)
    except (OSError, ValueError, OverflowError, MemoryError, pa.ArrowException):
        return 1
    watch.unpacked(source.path, source.name, sum(max(0, group.total_byte_size) for group in groups))
    # A single row may have all values of its group.
    if values * _VALUE_BYTES > watch.limits.memory_bytes:
        raise watch.out_of_memory(source.name, "parquet")
    return max((group.total_byte_size // (group.num_rows or 1) for group in groups), default=1) or 1


def size_query(table: str, described: Sequence[tuple[Any, ...]]) -> str:
    """Return SQL for the number of rows in a table, and for the sizes of its texts in bytes.

    The first size is that of all rows together. The second size is that of the row with the most text.
    """
    sizes = [f"coalesce({_SIZES[type_]}({quote(str(name))}), 0)" for name, type_, *_ in described if type_ in _SIZES]
    sized = f"SELECT {' + '.join(sizes) or '0'} AS size FROM {table}"
    return f"SELECT count(*), coalesce(sum(size), 0)::HUGEINT, coalesce(max(size), 0) FROM ({sized})"


def check_pages(source: Source, contents: Path, rows: int, watch: LoadWatch) -> None:
    """Read all pages of a parquet file, `rows` rows at once.

    Raises UsageError when the check sum of a page is wrong.
    """
    import pyarrow.parquet as pq

    try:
        # Without pre-buffering, Arrow does not read whole row groups at once.
        with pq.ParquetFile(
            contents, page_checksum_verification=True, pre_buffer=False, buffer_size=_BUFFER_BYTES
        ) as file:
            for _ in file.iter_batches(min(rows, _MAX_ROWS)):
                watch.check()
    except MemoryError:
        raise watch.out_of_memory(source.name, "parquet") from None
    except pa.ArrowException:
        return  # Arrow does not know a type in the file. DuckDB reports a type that it cannot read
    except (OSError, ValueError, OverflowError) as error:
        raise damaged(source, str(error)) from None
