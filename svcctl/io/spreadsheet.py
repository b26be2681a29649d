"""Spreadsheets (.xlsx) with typed cells, for answers of the service and for the output of queries.

Rows are written one by one. The workbook is a zip archive that is built in a temporary directory. Text is never
interpreted as a formula or as markup.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta, tzinfo
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any, Self

from svcctl.errors import IncompleteResult, reason
from svcctl.io.losses import Losses
from svcctl.io.temporary import temporary

MAX_ROWS = 1_048_576
"""The maximum number of rows of a sheet, including its heading."""
MAX_EXACT = 1 << 53
"""Whole numbers up to this size are exact in a cell.

Larger whole numbers may be inexact, because cells store floating-point numbers.
"""
FIRST_YEAR = 1900
"""The first year of the dates that a cell can represent."""
BLOCK_BYTES = 1 << 18
"""The number of bytes of the finished workbook that are read at once."""

DATES: Mapping[str, str] = {
    "default": "yyyy-mm-dd hh:mm:ss.000",
    "sql": "yyyy-mm-dd hh:mm:ss.000",
    "iso": 'yyyy-mm-dd"T"hh:mm:ss.000',
}
"""The cell formats for dates, by the value of the request parameter dateFormat.

The formats show no time zone, because some programs cannot show text after a fraction of a second.
"""
_DATE_WIDTH, _WIDTH = 23, 14
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ADDRESSES: Mapping[str | None, type[IPv4Address | IPv6Address]] = {"ip4": IPv4Address, "ip6": IPv6Address}
Write = Callable[[int, int, Any], object]
"""A function that writes a value into a cell. Its arguments are the row, the column and the value."""


class Spreadsheet:
    """A workbook to which rows are added. Leaving the `with` block removes its temporary files.

    The type of a value decides the type of its cell: number, boolean, date or text. None is an empty cell. Any other
    value becomes JSON text. In a column of type timestamp, a whole number is a date in epoch milliseconds. The date is
    shown in `zone`; None means the zone of this computer. In a column of type ip4 or ip6, a whole number is an address.
    In other columns, a whole number beyond MAX_EXACT becomes text. A date that a spreadsheet cannot represent becomes
    text, too. A text that is too long is cut and counted in `losses`.

    When a sheet is full, rows continue on the next sheet, below the same heading.
    """

    def __init__(
        self,
        columns: Sequence[tuple[str, str | None]],
        losses: Losses,
        *,
        date_format: str = "default",
        zone: tzinfo | None = UTC,
        heading: bool = True,
        max_rows: int = MAX_ROWS,
        folder: Path | None = None,
    ) -> None:
        """Create the workbook. `columns` contains the name and the type of each column, such as ("status", "int4").

        `folder` is the folder for temporary files. The default is the system's folder for temporary files.
        """
        import xlsxwriter  # imported here because few processes write a spreadsheet

        self._columns = columns
        self._losses = losses
        self._between = "T" if date_format == "iso" else " "
        self._zone = zone
        self._heading = heading
        self._max_rows = max_rows
        self._closing = ExitStack()
        directory = self._closing.enter_context(temporary("xls", folder))
        self._path = directory / "events.xlsx"
        self._book = xlsxwriter.Workbook(
            self._path, {"constant_memory": True, "use_zip64": True, "tmpdir": str(directory)}
        )
        self._worksheet = _worksheet_class()
        self._plain = self._book.add_format()
        self._bold = self._book.add_format({"bold": True})
        self._date = self._book.add_format({"num_format": DATES[date_format]})
        self._add_sheet()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, rows: Iterable[Sequence[Any]]) -> None:
        """Write rows. Raises IncompleteResult if the temporary directory is full or fails."""
        for row in rows:
            has_cells = False
            try:
                if self._row == self._max_rows:
                    self._add_sheet()
                for index, value in enumerate(row):
                    if value is not None:
                        writers = self._writers[index]
                        writers.get(type(value), self._write_other)(self._row, index, value)
                        has_cells = True
                if not has_cells:  # without a blank cell, the spreadsheet would lose an empty row
                    self._sheet.write_blank(self._row, 0, None, self._plain)
            except OSError as error:
                raise self._unwritten(error) from None
            self._row += 1

    def end(self) -> Iterator[bytes]:
        """Finish the workbook and return its bytes. Raises IncompleteResult if the workbook cannot be written."""
        from xlsxwriter.exceptions import XlsxWriterException

        try:
            self._book.close()
        except (XlsxWriterException, OSError) as error:
            raise self._unwritten(error) from None
        with self._path.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                yield block

    def close(self) -> None:
        """Remove the temporary files."""
        # A workbook that `end` has not finished is not packed into an archive, because that would be wasted work.
        for sheet in self._book.worksheets():
            with suppress(OSError):  # an earlier error has already reported the full disk
                sheet.row_data_fh.close()
        self._closing.close()

    def _add_sheet(self) -> None:
        count = len(self._book.worksheets())
        name = f"events {count + 1}" if count else "events"
        self._sheet = self._book.add_worksheet(name, self._worksheet)
        for index, (_, type_) in enumerate(self._columns):
            self._sheet.set_column(index, index, _DATE_WIDTH if type_ == "timestamp" else _WIDTH)
        self._row = 0
        writers: dict[type, Write] = {
            str: self._write_text,
            int: self._write_whole,
            float: self._sheet.write_number,
            bool: self._sheet.write_boolean,
            datetime: self._write_date,
        }
        whole: dict[str | None, Write] = {
            "timestamp": self._write_epoch,
            "ip4": self._write_address,
            "ip6": self._write_address,
        }
        self._writers = [writers | {int: whole.get(type_, self._write_whole)} for _, type_ in self._columns]
        if self._heading:
            self._sheet.freeze_panes(1, 0)
            for index, (column, _) in enumerate(self._columns):
                self._sheet.write_string(0, index, self._losses.cut(column), self._bold)
            self._row = 1

    def _write_text(self, row: int, column: int, value: str) -> None:
        self._sheet.write_string(row, column, self._losses.cut(value))

    def _write_whole(self, row: int, column: int, value: int) -> None:
        if abs(value) <= MAX_EXACT:
            self._sheet.write_number(row, column, value)
        else:
            self._sheet.write_string(row, column, str(value))

    def _write_date(self, row: int, column: int, value: datetime) -> None:
        if value.year >= FIRST_YEAR:
            self._sheet.write_datetime(row, column, value, self._date)
        else:
            self._sheet.write_string(row, column, value.isoformat(self._between, "milliseconds"))

    def _write_epoch(self, row: int, column: int, milliseconds: int) -> None:
        try:
            date = (_EPOCH + timedelta(milliseconds=milliseconds)).astimezone(self._zone)
        except (OverflowError, ValueError):  # outside the years 1 to 9999
            self._sheet.write_string(row, column, str(milliseconds))
        else:
            self._write_date(row, column, date.replace(tzinfo=None))

    def _write_address(self, row: int, column: int, number: int) -> None:
        try:
            self._sheet.write_string(row, column, str(_ADDRESSES[self._columns[column][1]](number)))
        except ValueError:
            self._write_whole(row, column, number)

    def _write_other(self, row: int, column: int, value: Any) -> None:
        self._write_text(row, column, json.dumps(value, ensure_ascii=False, separators=(",", ":")))

    def _unwritten(self, error: Exception) -> IncompleteResult:
        return IncompleteResult(
            f"cannot write the spreadsheet in the temporary directory {self._path.parent.parent}: {reason(error)}",
            hint="make room there, set TMPDIR to another directory, or write csv",
        )


def _worksheet_class() -> Any:
    """Return the class of worksheets. Its base class is imported only when a spreadsheet is written."""
    from xlsxwriter.worksheet import Worksheet

    class PlainWorksheet(Worksheet):  # type: ignore[misc]  # the package has no types
        """A worksheet without rich text, because xlsxwriter would treat a text such as `<r>…</r>` as markup."""

        def _xml_rich_inline_string(self, string: str, attributes: Sequence[tuple[str, Any]] = ()) -> None:
            self._xml_inline_string(string, True, attributes)

    return PlainWorksheet
