"""Settings and the functions that parse them. Settings are read from a profile or from environment variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from svcctl.errors import UsageError


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting. `parse` converts the text of the setting to its value, or raises ValueError with the reason."""

    name: str
    meaning: str
    parse: Callable[[str], Any] = str
    environment: str | None = None
    default: str | None = None
    """The text of the default value; None if the setting has no default."""
    choices: tuple[str, ...] = ()
    """The allowed values. Case is ignored. If there are no choices, any text that `parse` accepts is allowed."""
    refusal: ClassVar[type[UsageError]] = UsageError

    @property
    def explanation(self) -> str:
        """A text for help pages, with the meaning of the setting, its choices and its default."""
        choices = f": {', '.join(self.choices[:-1])} or {self.choices[-1]}" if self.choices else ""
        return f"{self.meaning}{choices}" + (f" (default {self.default})" if self.default else "")

    def value_of(self, text: str, source: str | None = None) -> Any:
        """Return the value of the setting for a text.

        Raises UsageError if the text cannot be parsed. `source` says where the text comes from. The message contains
        `source`, if given.
        """
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
        """Return the text of a value for messages. Subclasses mask secrets."""
        return text

    @property
    def default_value(self) -> Any:
        """The parsed default value; None if the setting has no default."""
        return None if self.default is None else self.value_of(self.default)

    def read(self, environment: Mapping[str, str]) -> Any:
        """Return the value in the setting's environment variable.

        If the variable is unset or empty, the default value is returned. If the setting has no default, the result is
        None.
        """
        text = environment.get(self.environment or "")
        return self.value_of(text) if text else self.default_value


def parse_count(text: str, *, least: int = 0) -> int:
    """Return the whole number in a text.

    Raises ValueError if the text is not a whole number, or if the number is less than `least`.
    """
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise ValueError(f"it is not a whole number of at least {least}")
    return int(text)


_SIZE_PATTERN = r"(?ai)(\d{1,15})\s*([KMGT]?)B?"


def parse_size(text: str) -> int:
    """Return the number of bytes of a size such as 500MB or 2GB. 1KB is 1000 bytes, and 1MB is 1000KB.

    Raises ValueError for any other text and for 0.
    """
    match = re.fullmatch(_SIZE_PATTERN, text.strip())
    size = int(match[1]) * 1000 ** " KMGT".index(match[2].upper() or " ") if match else 0
    if size < 1:
        raise ValueError("it is not a size, such as 500MB or 20GB")
    return size
