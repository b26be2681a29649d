"""Values that a format cannot hold are replaced, and counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from svcctl.io.losses import MAX_CELL_CHARS, Losses


@dataclass(frozen=True)
class Model:
    name: str


INFINITE = float("inf")


@pytest.mark.parametrize(
    ("value", "text", "as_json", "counts"),
    [
        ("é \U0001f600 \0", "é \U0001f600 \0", "é \U0001f600 \0", (0, 0, 0)),
        ("caf\udce9", "caf\udce9", "caf\ufffd", (1, 0, 0)),
        ("\ud800\udce9", "\ufffd\udce9", "\ufffd\ufffd", (1, 1, 0)),
        ("\ud83d\udc00", "\ufffd\ufffd", "\ufffd\ufffd", (0, 2, 0)),
        (INFINITE, INFINITE, None, (0, 0, 1)),
        (-INFINITE, -INFINITE, None, (0, 0, 1)),
        (1e308, 1e308, 1e308, (0, 0, 0)),
        (10**30, 10**30, 10**30, (0, 0, 0)),
        ([INFINITE, ["\udcff"]], [None, ["\udcff"]], [None, ["\ufffd"]], (1, 0, 1)),
        ({"\udcff": {"a": INFINITE}}, {"\udcff": {"a": None}}, {"\ufffd": {"a": None}}, (1, 0, 1)),
        ((Model("\udcff"),), [{"name": "\udcff"}], [{"name": "\ufffd"}], (1, 0, 0)),
    ],
)
def test_what_a_format_cannot_hold_is_replaced_and_counted(
    value: Any, text: Any, as_json: Any, counts: tuple[int, int, int]
) -> None:
    separated, json = Losses(keeps_bytes=True), Losses(finite=True)
    rows: list[list[Any]] = [["plain", 1, value], ["", None, None]]
    assert separated.rows(rows) == [["plain", 1, text], ["", None, None]]
    assert json.rows(rows) == [["plain", 1, as_json], ["", None, None]]
    assert (json.bytes, json.halves, json.numbers) == counts


def test_rows_that_can_be_written_are_the_same_rows() -> None:
    rows: list[list[Any]] = [["a", 1, 1.5, None, True], ["é", None, None, "\0", False]]
    assert Losses(finite=True).rows(rows) is rows
    assert Losses().rows([]) == []


def test_nan_is_a_number_that_json_does_not_have() -> None:
    losses = Losses(finite=True)
    assert (losses.rows([[float("nan")]]), losses.numbers) == ([[None]], 1)


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("x" * MAX_CELL_CHARS, None),
        ("x" * (MAX_CELL_CHARS + 1), "x" * (MAX_CELL_CHARS - 1) + "…"),
        ("\U0001f600" * (MAX_CELL_CHARS // 2), None),
        ("x\U0001f600" + "\U0001f600" * (MAX_CELL_CHARS // 2 - 1), None),
        ("\U0001f600" * (MAX_CELL_CHARS // 2 + 1), "\U0001f600" * (MAX_CELL_CHARS // 2) + "…"),
        ("xx" + "\U0001f600" * (MAX_CELL_CHARS // 2), "xx" + "\U0001f600" * (MAX_CELL_CHARS // 2 - 1) + "…"),
    ],
)
def test_a_text_is_cut_where_utf_16_has_too_many_units(text: str, cut: str | None) -> None:
    losses = Losses()
    shown = losses.cut(text)
    assert (shown, losses.texts) == (text if cut is None else cut, int(cut is not None))
    assert len(shown.encode("utf-16-le")) <= 2 * MAX_CELL_CHARS


def test_losses_are_added_up() -> None:
    losses = Losses(bytes=1, texts=1)
    losses.add(Losses(bytes=1, halves=2, numbers=3, texts=4))
    assert (losses.bytes, losses.halves, losses.numbers, losses.texts) == (2, 2, 3, 5)
