"""Notes on values that a result has lost because its output format cannot hold them."""

from __future__ import annotations

from svcctl.io.losses import MAX_CELL_CHARS, Losses
from svcctl.words import counted, plural


def loss_notes(losses: Losses) -> list[str]:
    """Return a note for each kind of loss. If nothing was lost, the result is empty."""
    notes = []
    if losses.numbers:
        notes.append(f"{counted(losses.numbers, 'number')} became null: NaN, infinite, or too large")
    if losses.bytes:
        bytes = counted(losses.bytes, "byte that is", "bytes that are")
        notes.append(f"{bytes} not UTF-8 became U+FFFD; csv and tsv keep such bytes")
    if losses.halves:
        pairs = plural(losses.halves, "a surrogate pair", "surrogate pairs")
        notes.append(f"{counted(losses.halves, 'half', 'halves')} of {pairs} became U+FFFD")
    if losses.texts:
        texts = counted(losses.texts, "text was", "texts were")
        notes.append(f"{texts} cut to {MAX_CELL_CHARS:,} characters, the most in a cell of a spreadsheet")
    return notes
