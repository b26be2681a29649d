"""The response as an Excel workbook. A workbook is a zip archive, which is first written to a temporary file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from svcctl.dates.epochs import EPOCH
from svcctl.errors import IncompleteResult, ServiceError
from svcctl.io import spreadsheet
from svcctl.io.losses import Losses
from svcctl.io.spreadsheet import Spreadsheet
from svcctl.service.language.types import Column, Type
from svcctl.service.rendering import cells
from svcctl.service.rendering.encoder import Rendering, SpooledFormat

CUT_TEXTS = "x-svc-cut-texts"
"""The name of the HTTP header with the number of texts that were cut to fit a cell.

The header is absent if no text was cut.
"""


class Xls(SpooledFormat):
    """The response format xls: a workbook of typed cells. If a sheet is full, the rows continue on another sheet.

    Each sheet begins with the header. Values that a spreadsheet cannot store are changed. An int8 number beyond 2^53
    becomes text. A date before 1900 becomes text. A date outside the years 1 to 9999 becomes its epoch milliseconds. A
    text that is too long for a cell is cut and ends in `…`.
    """

    content_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    rows_per_sheet = spreadsheet.MAX_ROWS

    def __init__(self, columns: Sequence[Column], rendering: Rendering) -> None:
        super().__init__(columns, rendering)
        self._losses = Losses()
        self._sheet = Spreadsheet(
            [(column.name, column.type) for column in self.value_columns],
            self._losses,
            date_format=rendering.dates.format,
            max_rows=self.rows_per_sheet,
        )

    def value(self, value: str, type_: Type) -> str:
        if type_ is Type.TIMESTAMP:
            return cells.local_time(value, self.rendering.dates.zone)
        return super().value(value, type_)

    def chunk(self, batch: pa.RecordBatch) -> bytes:
        with _as_refusals():
            self._sheet.add(zip(*map(_values, batch.columns), strict=True))
        return b""

    def tail(self) -> Iterator[bytes]:
        with _as_refusals():
            yield from self._sheet.end()

    def headers(self) -> Mapping[str, str]:
        return {CUT_TEXTS: str(self._losses.texts)} if self._losses.texts else {}

    def close(self) -> None:
        self._sheet.close()


@contextmanager
def _as_refusals() -> Iterator[None]:
    """If the block raises IncompleteResult, raise a ServiceError for the client instead."""
    try:
        yield
    except IncompleteResult as error:
        raise ServiceError(error.message, code=500) from None


def _values(column: pa.Array) -> list[Any]:
    """Return the values of a column.

    A date outside the years 1 to 9999 becomes its epoch milliseconds, because Python cannot represent such a date.
    """
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except (OverflowError, ValueError):
        return [None if value is None else _moment(value) for value in column.cast(pa.int64()).to_pylist()]


def _moment(microseconds: int) -> datetime | int:
    try:
        return (EPOCH + timedelta(microseconds=microseconds)).replace(tzinfo=None)
    except OverflowError:
        return microseconds // 1000
