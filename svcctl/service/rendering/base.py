"""The base of every response format: what a response is told about its query, and the steps of writing it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from svcctl.service.language.types import Column
from svcctl.service.rendering.rows import Dates


@dataclass(frozen=True, slots=True)
class Rendering:
    """The parts of a response beside its rows: the request's ID, the time in epoch ms, the name of the table.

    `dates` shape the timestamps of csv, tsv, xml and xls.
    """

    cid: str
    timestamp: int
    table: str
    dates: Dates = field(default_factory=Dates)

    def envelope(self) -> dict[str, object]:
        """The members of a successful answer before its `object`."""
        return {"success": True, "msg": "", "status": 0, "cid": self.cid, "timestamp": self.timestamp}


class Encoder:
    """One response in one format.

        with ENCODERS[mode](columns, rendering) as encoder:
            send encoder.head()
            for each plan, for each batch of stream(engine, plan, encoder.expressions()): send encoder.chunk(batch)
            send encoder.tail(), or encoder.error(…) when a plan failed

    A response may run several plans of the same columns, as a continuous query does. `padding` may be sent after any
    chunk to keep the connection alive. Formats with `streams` False need every row before they send the first byte:
    their head and chunks are empty, `tail` sends everything, a failure must be reported before it, and they cannot
    answer a query without an end.
    """

    content_type: ClassVar[str]
    padding: ClassVar[bytes] = b""
    streams: ClassVar[bool] = True

    def __init__(self, columns: Sequence[Column], rendering: Rendering) -> None:
        self.columns = tuple(columns)
        self.rendering = rendering

    def head(self) -> bytes:
        """The bytes before the rows."""
        return b""

    def expressions(self) -> list[str]:
        """The expressions of which `chunk` takes batches: DuckDB's SQL over the plan's columns, called c0, c1, …"""
        raise NotImplementedError

    def chunk(self, batch: pa.RecordBatch) -> bytes | memoryview:
        """A batch of rows as bytes; a view lives as long as its batch."""
        raise NotImplementedError

    def tail(self) -> Iterator[bytes]:
        """The bytes after the rows of a query that did not fail."""
        yield b""

    def error(self, code: int, message: str) -> bytes:
        """The bytes that end a response that failed after its head was sent, instead of the tail."""
        raise NotImplementedError

    def close(self) -> None:
        """Remove the temporary files of a response."""

    def __enter__(self) -> Encoder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
