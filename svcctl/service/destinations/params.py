"""The parameters of a destination as a request gives them, read by key, with errors that name the key.

Values may be of any JSON type or text, since a command line has only text. Keys that no destination knows are kept with
the job and otherwise ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from svcctl.api.destinations import TYPES
from svcctl.errors import ServiceError
from svcctl.words import nearest

_FLAGS = {"true": True, "false": False}


class Params:
    """One job's parameters. `endless` says that its query has no end."""

    def __init__(self, type_: str, given: Mapping[str, Any], *, endless: bool = True) -> None:
        self.type = type_
        self.endless = endless
        self._given = given

    def check_required(self) -> None:
        """ServiceError that names every required key of the type that is missing."""
        self._need(*(parameter.key for parameter in TYPES[self.type].parameters if parameter.required))

    def text(self, key: str, default: str = "") -> str:
        value = self._given.get(key)
        if value is None or value == "":
            return default
        if isinstance(value, dict | list):
            raise self.refused(key, "must be text")
        return str(value)

    def required(self, key: str) -> str:
        self._need(key)
        return self.text(key)

    def number(self, key: str, low: int, high: int, default: int) -> int:
        text = self.text(key, str(default))
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
        if not low <= number <= high:
            raise self.refused(key, f"must be a whole number from {low} to {high}")
        return number

    def choice(self, key: str, options: tuple[str, ...]) -> str:
        """One of the options, in any case; the first by default."""
        value = self.text(key, options[0]).lower()
        if value not in options:
            raise self.refused(key, f"must be {_listed(options, 'or')}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = _FLAGS.get(self.text(key, str(default)).lower())
        if value is None:
            raise self.refused(key, "must be true or false")
        return value

    def refused(self, key: str, why: str) -> ServiceError:
        """The error for a parameter. Its value is not repeated, since it may be a secret."""
        return ServiceError(f"destination.params: {key} {why}")

    def _need(self, *keys: str) -> None:
        missing = [key for key in keys if not self.text(key)]
        if not missing:
            return
        near = ((key, wrong) for wrong in self._given if (key := nearest(wrong, missing)))
        meant = ", ".join(f"'{key}' for '{wrong}'" for key, wrong in near)
        raise ServiceError(
            f"destination.params: {self.type} needs {_listed(missing, 'and')}"
            + (f" (did you mean {meant}?)" if meant else "")
        )


def _listed(names: Sequence[str], word: str) -> str:
    """Names as in `a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} {word} {last}" if first else last
