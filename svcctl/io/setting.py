"""Settings of a profile or of a process's environment: a name, and a function that parses its text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from svcctl.errors import UsageError


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting. `parse` turns a text into the value, or raises ValueError with the reason."""

    name: str
    meaning: str
    parse: Callable[[str], Any] = str
    environment: str | None = None
    default: str | None = None
    """The text of the default value."""
    choices: tuple[str, ...] = ()
    """The allowed values, if there are only a few; case is ignored."""
    refusal: ClassVar[type[UsageError]] = UsageError

    @property
    def explanation(self) -> str:
        """The meaning of the setting, its choices and its default, for help pages."""
        choices = f": {', '.join(self.choices[:-1])} or {self.choices[-1]}" if self.choices else ""
        return f"{self.meaning}{choices}" + (f" (default {self.default})" if self.default else "")

    def value_of(self, text: str, source: str | None = None) -> Any:
        """The value of a text. UsageError if it cannot be parsed; the message names the source of the text if given."""
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
        """The text of a value in messages, where subclasses mask secrets."""
        return text

    @property
    def default_value(self) -> Any:
        """The value of the default; None without a default."""
        return None if self.default is None else self.value_of(self.default)

    def read(self, environment: Mapping[str, str]) -> Any:
        """The value of the setting's environment variable; the default's value if that is unset or empty.

        None without a default.
        """
        text = environment.get(self.environment or "")
        return self.value_of(text) if text else self.default_value


def parse_count(text: str, *, least: int = 0) -> int:
    """A whole number of at least `least`. ValueError for any other text."""
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise ValueError(f"it is not a whole number of at least {least}")
    return int(text)


_SIZE_PATTERN = r"(?ai)(\d{1,15})\s*([KMGT]?)B?"


def parse_size(text: str) -> int:
    """The bytes of a size such as 500MB or 2GB, in powers of 1000. ValueError for any other text and for 0."""
    match = re.fullmatch(_SIZE_PATTERN, text.strip())
    size = int(match[1]) * 1000 ** " KMGT".index(match[2].upper() or " ") if match else 0
    if size < 1:
        raise ValueError("it is not a size, such as 500MB or 20GB")
    return size
