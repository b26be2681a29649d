"""The parameters of a destination as a request gives them, read by key, with errors that name the key.

Values may be JSON's own or text, since a command line has only text. Keys that no destination knows are kept with the
job and otherwise left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from svcctl.api.suggest import nearest
from svcctl.errors import ServiceError

_FLAGS = {"true": True, "false": False}


class Params:
    """One job's parameters. `endless` says that its query has no end."""

    def __init__(self, type_: str, given: Mapping[str, Any], *, endless: bool = True) -> None:
        self.type = type_
        self.endless = endless
        self._given = given

    def text(self, key: str, default: str = "") -> str:
        value = self._given.get(key)
        if value is None or value == "":
            return default
        if isinstance(value, dict | list):
            raise self.refused(key, "is not text")
        return str(value)

    def required(self, key: str) -> str:
        value = self.text(key)
        if not value:
            wrong = next((name for name in self._given if nearest(name, (key,))), None)
            meant = f" ('{wrong}' is given, which is another)" if wrong else ""
            raise ServiceError(f"destination.params: {self.type} needs {key}{meant}")
        return value

    def number(self, key: str, low: int, high: int, default: int) -> int:
        text = self.text(key, str(default))
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
        if not low <= number <= high:
            raise self.refused(key, f"is not a whole number from {low} to {high}")
        return number

    def choice(self, key: str, options: tuple[str, ...]) -> str:
        """One of the options, in any case; the first unless another is given."""
        value = self.text(key, options[0]).lower()
        if value not in options:
            raise self.refused(key, f"is not one of {', '.join(options)}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = _FLAGS.get(self.text(key, str(default)).lower())
        if value is None:
            raise self.refused(key, "is not true or false")
        return value

    def refused(self, key: str, why: str) -> ServiceError:
        """What is wrong with a key; its value is not repeated, since it may be a secret."""
        return ServiceError(f"destination.params: {key} {why}")
