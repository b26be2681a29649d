"""The base classes of response formats, and the values that formats need in addition to the rows of a response."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from svcctl.errors import ServiceError
from svcctl.service.language.types import Column, Type
from svcctl.service.rendering import cells
from svcctl.service.rendering.keep_alive import NO_PADDING, KeepAlive, PaddingForms
from svcctl.service.rendering.rows import DateStyle

SPOOL_BLOCK_BYTES = 1 << 18
"""The size of the blocks, in bytes, in which a temporary file is sent."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """The values that formats need in addition to the rows of a response.

    `cid` is the ID of the request. `timestamp` is the time of the response in epoch milliseconds. `dates` is the form
    of timestamps in csv, tsv, xml and xls. `line_end` ends each line in json/simple, json/simple/compact, csv and tsv.

    `ip_as_string` decides how IP addresses are written, and which type the response states for them:
    - None: addresses are text, and their type is `str`
    - True: addresses are text, and their type is `ip4`
    - False: addresses are numbers, and their type is `ip4`

    If `keep_alive` is None, each format sends its default padding.
    """

    cid: str
    timestamp: int
    dates: DateStyle = field(default_factory=DateStyle)
    line_end: str = "\n"
    ip_as_string: bool | None = None
    keep_alive: KeepAlive | None = None

    def envelope(self) -> dict[str, object]:
        """Return the members of a successful JSON response that come before the member `object`."""
        return {"success": True, "msg": "", "status": 0, "cid": self.cid, "timestamp": self.timestamp}


class Encoder:
    """The base class of response formats. An encoder writes one response:

        with ENCODERS[mode](columns, rendering) as encoder:
            send encoder.head()
            for each plan, for each batch of stream(engine, plan, encoder.expressions()): send encoder.chunk(batch)
            send encoder.tail(), or encoder.error(…) when a plan failed

    A response may run several plans with the same columns, for example for a continuous query. `padding` may be sent
    after any chunk to keep the connection alive. The constructor raises ServiceError if the format does not allow the
    padding that the request has chosen.

    If `streams` is False, the format needs all rows before the response can begin. The head and the chunks are then
    empty, and `tail` returns the whole response. A failure must be reported before `tail` is called. A query without an
    end cannot have such a format.
    """

    content_type: ClassVar[str]
    streams: ClassVar[bool] = True
    ends_connection: ClassVar[bool] = False
    """Whether the server must close the connection at the end of the response."""
    own_padding: ClassVar[KeepAlive] = NO_PADDING
    """The padding that the format sends if the request does not choose a padding."""

    def __init__(self, columns: Sequence[Column], rendering: Rendering) -> None:
        chosen = rendering.ip_as_string
        self.rendering = rendering
        self.columns = _with_addresses(columns, Type.STR if chosen is None else Type.IP4)
        """The columns of the response, with the types that the response states."""
        self.value_columns = _with_addresses(columns, Type.INT8 if chosen is False else Type.IP4)
        """The columns of the response, with the types in which the values are written.

        Addresses that are written as numbers have the type int8.
        """
        keep_alive = (rendering.keep_alive or self.own_padding) if self.streams else NO_PADDING
        self.padding = keep_alive.padding(self.shape())

    def shape(self) -> PaddingForms:
        """Return the rules for padding in the format."""
        return PaddingForms()

    def head(self) -> bytes:
        """Return the bytes of the response before its rows."""
        return b""

    def expressions(self) -> list[str]:
        """Return DuckDB expressions over the plan's columns. In them, the columns have the names c0, c1 and so on.

        The batches that `chunk` encodes have the values of these expressions.
        """
        raise NotImplementedError

    def chunk(self, batch: pa.RecordBatch) -> bytes | memoryview:
        """Encode a batch of rows as bytes. A returned view is valid only while the batch exists."""
        raise NotImplementedError

    def tail(self) -> Iterator[bytes]:
        """Yield the bytes that follow the rows. This method is called only if the query did not fail."""
        yield b""

    def headers(self) -> Mapping[str, str]:
        """Return additional HTTP headers. A format can have additional headers only if `streams` is False."""
        return {}

    def late(self, count: int, lag: float) -> bytes:
        """Return bytes that report late events. These bytes are sent between two chunks.

        `count` events came more than `lag` seconds after the end of their period. Formats that cannot report late
        events return no bytes.
        """
        return b""

    def error(self, code: int, message: str) -> bytes:
        """Return the bytes that end a failed response in place of the tail. The head was already sent."""
        raise NotImplementedError

    def close(self) -> None:
        """Remove the temporary files of the response."""

    def __enter__(self) -> Encoder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SpooledFormat(Encoder):
    """The base class of formats that keep all rows in a temporary file before the response begins."""

    streams = False

    def expressions(self) -> list[str]:
        return [self.value(f"c{index}", column.type) for index, column in enumerate(self.value_columns)]

    def value(self, value: str, type_: Type) -> str:
        """Return SQL for the value of a column, in the form that the encoder needs."""
        match type_:
            case Type.FLOAT8:
                return cells.finite(value)
            case Type.IP4:
                return cells.ip_text(value)
            case _:
                return value

    def error(self, code: int, message: str) -> bytes:
        """Raise the error instead of returning bytes.

        Nothing was sent yet, so the caller can still send an error response.
        """
        raise ServiceError(message, code=code, cid=self.rendering.cid)


def _with_addresses(columns: Sequence[Column], type_: Type) -> tuple[Column, ...]:
    """Return the columns, with the type `type_` for all columns of IP addresses."""
    return tuple(Column(column.name, type_) if column.type is Type.IP4 else column for column in columns)
