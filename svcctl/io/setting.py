"""Settings: what a profile, or the environment of a process, can set by a text; a row of a table for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from svcctl.errors import UsageError


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that can be set. `parse` turns text into the value or raises ValueError with the reason."""

    name: str
    meaning: str
    parse: Callable[[str], Any] = str
    environment: str | None = None
    default: str | None = None
    """The text of the default."""
    choices: tuple[str, ...] = ()
    """The values, if there are only a few; case does not count."""
    refusal: ClassVar[type[UsageError]] = UsageError

    @property
    def explanation(self) -> str:
        """The meaning, the choices and the default."""
        choices = f": {', '.join(self.choices[:-1])} or {self.choices[-1]}" if self.choices else ""
        return f"{self.meaning}{choices}" + (f" (default {self.default})" if self.default else "")

    def value_of(self, text: str, source: str | None = None) -> Any:
        """Parse a text. UsageError when it cannot be used, naming the text's source if one is given."""
        try:
            return self._chosen(text) if self.choices else self.parse(text)
        except ValueError as error:
            where = f" ({source})" if source else ""
            raise self.refusal(f"{self.name} '{self.shown(text)}'{where} cannot be used: {error}") from None

    def _chosen(self, text: str) -> str:
        if text.lower() not in self.choices:
            raise ValueError(f"it must be one of {', '.join(self.choices)}")
        return text.lower()

    def shown(self, text: str) -> str:
        """A text as messages may show it."""
        return text

    @property
    def default_value(self) -> Any:
        """The value of the default; None without one."""
        return None if self.default is None else self.value_of(self.default)

    def read(self, environment: Mapping[str, str]) -> Any:
        """The value of the variable, or of the default when it is unset or empty; None without a default."""
        text = environment.get(self.environment or "")
        return self.value_of(text) if text else self.default_value


def parse_count(text: str, *, least: int = 0) -> int:
    """A whole number; ValueError for other texts and smaller numbers."""
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise ValueError(f"it is not a whole number from {least} on")
    return int(text)


_SIZE_PATTERN = r"(?ai)(\d{1,15})\s*([KMGT]?)B?"


def parse_size(text: str) -> int:
    """Bytes, such as 500MB or 2GB in steps of 1000, at least 1; ValueError for other texts."""
    match = re.fullmatch(_SIZE_PATTERN, text.strip())
    size = int(match[1]) * 1000 ** " KMGT".index(match[2].upper() or " ") if match else 0
    if size < 1:
        raise ValueError("it is not a size, such as 500MB or 20GB")
    return size
