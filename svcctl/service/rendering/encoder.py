"""The base of every response format: what a response knows of its query, and the steps of writing it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from svcctl.errors import ServiceError
from svcctl.service.language.types import Column, Type
from svcctl.service.rendering import cells
from svcctl.service.rendering.keep_alive import NO_PADDING, KeepAlive, Shape
from svcctl.service.rendering.rows import Dates

SPOOL_BLOCK_BYTES = 1 << 18
"""The bytes that are sent at once of a temporary file."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """The parts of a response beside its rows: the request's ID, the time in epoch ms, and what the request chose.

    `dates` shape the timestamps of csv, tsv, xml and xls. `line_end` ends the lines of the formats that have lines.
    Addresses are text, or numbers if `ip_as_string` is False. Their type is ip4 if the request chose one of the two,
    and str if it did not. Without a `keep_alive` each format sends its own padding.
    """

    cid: str
    timestamp: int
    dates: Dates = field(default_factory=Dates)
    line_end: str = "\n"
    ip_as_string: bool | None = None
    keep_alive: KeepAlive | None = None

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
    chunk to keep the connection alive; ServiceError when the request chose padding that the format cannot have.

    Formats with `streams` False need every row before they send the first byte: their head and chunks are empty, `tail`
    sends everything, a failure must be reported before it, and they cannot answer a query without an end.
    """

    content_type: ClassVar[str]
    streams: ClassVar[bool] = True
    ends_connection: ClassVar[bool] = False
    """Whether the interface has the end of the connection as the end of the answer."""
    own_padding: ClassVar[KeepAlive] = NO_PADDING
    """The padding of this format for a request that chooses none."""

    def __init__(self, columns: Sequence[Column], rendering: Rendering) -> None:
        chosen = rendering.ip_as_string
        self.rendering = rendering
        self.columns = _with_addresses(columns, Type.STR if chosen is None else Type.IP4)
        """The columns with the types that the response names."""
        self.value_columns = _with_addresses(columns, Type.INT8 if chosen is False else Type.IP4)
        """The columns with the types by which values are written: int8 for an address that is sent as a number."""
        keep_alive = (rendering.keep_alive or self.own_padding) if self.streams else NO_PADDING
        self.padding = keep_alive.padding(self.shape())

    def shape(self) -> Shape:
        """What padding is made of in this format."""
        return Shape()

    def head(self) -> bytes:
        """The bytes before the rows."""
        return b""

    def expressions(self) -> list[str]:
        """The expressions whose batches `chunk` takes: DuckDB's SQL over the plan's columns, called c0, c1, …"""
        raise NotImplementedError

    def chunk(self, batch: pa.RecordBatch) -> bytes | memoryview:
        """A batch of rows as bytes; a view lives as long as its batch."""
        raise NotImplementedError

    def tail(self) -> Iterator[bytes]:
        """The bytes after the rows of a query that did not fail."""
        yield b""

    def headers(self) -> Mapping[str, str]:
        """More headers of the answer, in a format that sends none of it before all rows are there."""
        return {}

    def late(self, count: int, lag: float) -> bytes:
        """The bytes between two chunks that say how many events came more than `lag` seconds after the end of their
        period; empty in a format that has no place for it.
        """
        return b""

    def error(self, code: int, message: str) -> bytes:
        """The bytes that end a response that failed after its head was sent, instead of the tail."""
        raise NotImplementedError

    def close(self) -> None:
        """Remove the temporary files of a response."""

    def __enter__(self) -> Encoder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SpooledFormat(Encoder):
    """A format that needs every row before it sends the first byte; its rows are in a temporary file meanwhile."""

    streams = False

    def expressions(self) -> list[str]:
        return [self.value(f"c{index}", column.type) for index, column in enumerate(self.value_columns)]

    def value(self, value: str, type_: Type) -> str:
        """The SQL of a column as the encoder takes it."""
        match type_:
            case Type.FLOAT8:
                return cells.finite(value)
            case Type.IP4:
                return cells.ip_text(value)
            case _:
                return value

    def error(self, code: int, message: str) -> bytes:
        """Raise the failure: nothing has been sent yet, so the caller can still answer with it."""
        raise ServiceError(message, code=code, cid=self.rendering.cid)


def _with_addresses(columns: Sequence[Column], type_: Type) -> tuple[Column, ...]:
    """The columns, with `type_` as the type of addresses."""
    return tuple(Column(column.name, type_) if column.type is Type.IP4 else column for column in columns)
