"""Spreadsheets hold typed cells, and texts that are neither formulas nor markup."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support.limits import files_of_at_most

from svcctl.errors import IncompleteResult
from svcctl.io.losses import MAX_CELL_CHARS, Losses
from svcctl.io.spreadsheet import Spreadsheet

SPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
NOON = 1706702400000
"""2024-01-31 12:00:00 UTC in milliseconds."""


def written(columns: dict[str, str | None], rows: Sequence[Sequence[Any]], losses: Losses, **options: Any) -> bytes:
    with Spreadsheet(list(columns.items()), losses, **options) as sheet:
        sheet.add(rows)
        return b"".join(sheet.end())


def cells(book: bytes, sheet: int = 1) -> dict[str, tuple[str | None, str]]:
    """The type and the text of each cell, by its place; a date is a number with a style."""
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        root = ElementTree.fromstring(archive.read(f"xl/worksheets/sheet{sheet}.xml"))
    return {
        str(cell.get("r")): (cell.get("t") or ("n" if cell.get("s") is None else "date"), "".join(cell.itertext()))
        for cell in root.iter(f"{SPACE}c")
    }


@pytest.mark.parametrize(
    ("kind", "value", "cell"),
    [
        ("str", "=1+1", ("inlineStr", "=1+1")),
        ("str", '=HYPERLINK("http://x")', ("inlineStr", '=HYPERLINK("http://x")')),
        ("str", "<r>a & <b></r>", ("inlineStr", "<r>a & <b></r>")),
        ("str", "<r><t>bold</t></r>", ("inlineStr", "<r><t>bold</t></r>")),
        ("str", "http://example.org", ("inlineStr", "http://example.org")),
        ("str", "007", ("inlineStr", "007")),
        ("str", "", ("inlineStr", "")),
        ("str", " a\tb\n", ("inlineStr", " a\tb\n")),
        ("str", "\0\x1f\r\uffff _x0041_", ("inlineStr", "_x0000__x001F__x000D__xFFFF_ _x005F_x0041_")),
        ("int8", 2**53, ("n", "9007199254740992")),
        ("int8", 2**53 + 1, ("inlineStr", "9007199254740993")),
        ("int8", -(10**30), ("inlineStr", f"-1{'0' * 30}")),
        ("int8", "7", ("inlineStr", "7")),
        ("float8", 0.1, ("n", "0.1")),
        ("float8", -1e300, ("n", "-1E+300")),
        ("bool", True, ("b", "1")),
        ("timestamp", NOON, ("date", "45322.5")),
        ("timestamp", "yesterday", ("inlineStr", "yesterday")),
        ("timestamp", -2208988800001, ("inlineStr", "1899-12-31 23:59:59.999")),
        ("timestamp", 253402300800000, ("inlineStr", "253402300800000")),
        ("timestamp", -(10**17), ("inlineStr", f"-1{'0' * 17}")),
        ("ip4", 16909060, ("inlineStr", "1.2.3.4")),
        ("ip4", "1.2.3.4", ("inlineStr", "1.2.3.4")),
        ("ip4", 2**32, ("n", "4294967296")),
        ("ip6", 1, ("inlineStr", "::1")),
        (None, {"a": [1, None, "é"]}, ("inlineStr", '{"a":[1,null,"é"]}')),
        ("str", None, None),
    ],
)
def test_a_value_decides_the_type_of_its_cell(kind: str | None, value: Any, cell: tuple[str, str] | None) -> None:
    found = cells(written({"a": kind, "b": "int4"}, [[value, 7]], Losses()))
    assert (found.get("A2"), found["B2"]) == (cell, ("n", "7"))


@pytest.mark.parametrize(
    ("date_format", "hours", "shown", "early"),
    [
        ("default", 0, 45322.5, "1800-01-01 00:00:00.000"),
        ("iso", 2, 45322.5 + 2 / 24, "1800-01-01T02:00:00.000"),
        ("sql", -9.5, 45322.5 - 9.5 / 24, "1799-12-31 14:30:00.000"),
    ],
)
def test_dates_are_in_the_zone_of_the_answer(date_format: str, hours: float, shown: float, early: str) -> None:
    zone = timezone(timedelta(hours=hours))
    first = round(datetime(1800, 1, 1, tzinfo=UTC).timestamp() * 1000)
    found = cells(written({"at": "timestamp"}, [[NOON], [first]], Losses(), date_format=date_format, zone=zone))
    assert float(found["A2"][1]) == pytest.approx(shown)
    assert found["A3"][1] == early


def test_long_texts_are_cut_and_counted_in_cells_and_in_the_heading() -> None:
    losses = Losses()
    long = "x" * (MAX_CELL_CHARS + 1)
    found = cells(written({long: None}, [[long], ["y" * MAX_CELL_CHARS], [[long]]], losses))
    assert [(len(text), text[-1]) for _, text in found.values()] == [
        *[(MAX_CELL_CHARS, "…")] * 2,
        (MAX_CELL_CHARS, "y"),
        (MAX_CELL_CHARS, "…"),
    ]
    assert losses.texts == 3


def test_rows_go_on_in_the_next_sheet_below_the_same_heading() -> None:
    book = written({"n": "int4"}, [[n] for n in range(5)], Losses(), max_rows=3)
    assert [[text for _, text in cells(book, sheet).values()] for sheet in (1, 2, 3)] == [
        ["n", "0", "1"],
        ["n", "2", "3"],
        ["n", "4"],
    ]
    book = written({"n": "int4"}, [[n] for n in range(5)], Losses(), max_rows=3, heading=False)
    assert [[text for _, text in cells(book, sheet).values()] for sheet in (1, 2)] == [["0", "1", "2"], ["3", "4"]]


def test_a_row_of_nulls_stays_a_row() -> None:
    found = cells(written({"a": "str", "b": "str"}, [["x", None], [None, None], [None, "y"]], Losses()))
    assert sorted(found) == ["A1", "A2", "A3", "B1", "B4"]


def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    with files_of_at_most(100_000), pytest.raises(IncompleteResult) as caught:
        written({"a": "str"}, [["x" * 1000]] * 1000, Losses(), folder=tmp_path)
    assert (str(tmp_path) in caught.value.message, "TMPDIR" in (caught.value.hint or "")) == (True, True)
    assert list(tmp_path.iterdir()) == []
