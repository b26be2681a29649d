"""Notes say what a result has lost, and nothing else."""

from __future__ import annotations

import pytest

from svcctl.io.losses import Losses
from svcctl.terminal.notes import loss_notes

NOTES = {
    1: [
        "1 number became null: NaN, infinite, or too large",
        "1 byte that is not UTF-8 became U+FFFD; csv and tsv keep such bytes",
        "1 half of a surrogate pair became U+FFFD",
        "1 text was cut to 32,767 characters, the most in a cell of a spreadsheet",
    ],
    2: [
        "2 numbers became null: NaN, infinite, or too large",
        "2 bytes that are not UTF-8 became U+FFFD; csv and tsv keep such bytes",
        "2 halves of surrogate pairs became U+FFFD",
        "2 texts were cut to 32,767 characters, the most in a cell of a spreadsheet",
    ],
}


@pytest.mark.parametrize("count", NOTES)
def test_the_notes_name_each_loss_with_its_number(count: int) -> None:
    assert loss_notes(Losses(bytes=count, halves=count, numbers=count, texts=count)) == NOTES[count]


def test_without_a_loss_there_is_no_note() -> None:
    assert loss_notes(Losses()) == []
