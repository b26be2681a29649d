"""Values that an output format cannot represent. Such values are replaced and counted, and a note reports the counts.

In a text, U+FFFD replaces every lone surrogate, because a lone surrogate is not a character. Python represents a byte
that is not UTF-8 as a lone surrogate from U+DC80 to U+DCFF. Formats that preserve such bytes keep these surrogates. All
other lone surrogates come from escapes in JSON.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from types import NoneType
from typing import Any

MAX_CELL_CHARS = 32_767
"""The maximum number of UTF-16 code units in a cell of a spreadsheet."""
MAX_SHEET_COLUMNS = 16_384
"""The maximum number of columns in a sheet of a spreadsheet."""

_BYTES = "[\udc80-\udcff]"
_HALVES = "[\ud800-\udc7f\udd00-\udfff]"
_REPLACEMENT = "\ufffd"
_INTEGER_TYPES = frozenset({int, bool, NoneType})
_PLAIN = _INTEGER_TYPES | {str, float}


@dataclass
class Losses:
    """Counters of the values that were replaced in a result. `keeps_bytes` and `finite` describe the output format."""

    keeps_bytes: bool = False
    """Whether the format preserves bytes that are not UTF-8."""
    finite: bool = False
    """Whether the format requires finite numbers.

    Numbers in lists and objects must always be finite, because lists and objects are written as JSON.
    """
    bytes: int = 0
    halves: int = 0
    numbers: int = 0
    texts: int = 0

    def text(self, text: str) -> str:
        """Return a text in which the characters that cannot be written are replaced."""
        if self._is_writable(text):
            return text
        text, count = re.subn(_HALVES, _REPLACEMENT, text)
        self.halves += count
        if not self.keeps_bytes:
            text, count = re.subn(_BYTES, _REPLACEMENT, text)
            self.bytes += count
        return text

    def rows(self, rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        """Return rows in which the values that cannot be written are replaced.

        If there are no such values, the result is the object `rows` itself.
        """
        if all(map(self._are_writable, zip(*rows, strict=True))):
            return rows
        return [[self._value(value) for value in row] for row in rows]

    def cut(self, text: str) -> str:
        """Shorten a text that is too long for a spreadsheet cell, so that it ends in `…`. Other texts are unchanged."""
        if len(text) <= MAX_CELL_CHARS // 2 or len(units := text.encode("utf-16-le")) <= 2 * MAX_CELL_CHARS:
            return text
        self.texts += 1
        return units[: 2 * (MAX_CELL_CHARS - 1)].decode("utf-16-le", "ignore") + "…"

    def add(self, other: Losses) -> None:
        """Add the counts of another result to these counts."""
        self.bytes += other.bytes
        self.halves += other.halves
        self.numbers += other.numbers
        self.texts += other.texts

    def _is_writable(self, text: str) -> bool:
        if text.isascii():
            return True
        try:
            text.encode("utf-8", "surrogateescape" if self.keeps_bytes else "strict")
        except UnicodeEncodeError:
            return False
        return True

    def _are_writable(self, values: Iterable[Any]) -> bool:
        """Return whether all values of a column can be written."""
        values = tuple(values)
        types = set(map(type, values))
        if types <= _INTEGER_TYPES:
            return True
        if not types <= _PLAIN:
            return False
        if self.finite and float in types and not all(map(math.isfinite, (v for v in values if type(v) is float))):
            return False
        return str not in types or self._is_writable("".join(value for value in values if type(value) is str))

    def _value(self, value: Any, *, inside: bool = False) -> Any:
        """Return a value in which everything that cannot be written is replaced.

        `inside` says that the value is in a list or an object.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, float):
            if math.isfinite(value) or not (self.finite or inside):
                return value
            self.numbers += 1
            return None
        if is_dataclass(value) and not isinstance(value, type):
            value = asdict(value)
        if isinstance(value, dict):
            return {self._value(name): self._value(member, inside=True) for name, member in value.items()}
        if isinstance(value, list | tuple):
            return [self._value(member, inside=True) for member in value]
        return value
