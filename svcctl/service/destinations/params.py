"""The parameters of a destination in a request: checked by the table of `api/destinations`, and read by key.

Keys that no destination knows are kept with the job and otherwise ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from svcctl.api import destinations as api
from svcctl.errors import ServiceError
from svcctl.words import nearest


class Params:
    """The parameters of one job's destination. With `endless`, the job's query has no end.

    ServiceError names all missing parameters, or the first unusable one.
    """

    def __init__(self, type_: str, values: Mapping[str, Any], *, endless: bool) -> None:
        destination = api.Destination(type_, values)
        if missing := [param.key for param in api.missing(destination)]:
            pairs = ((key, wrong) for wrong in values if (key := nearest(wrong, missing)))
            meant = ", ".join(f"'{key}' for '{wrong}'" for key, wrong in pairs)
            raise ServiceError(
                f"destination.params: {type_} needs {' and '.join(missing)}"
                + (f" (did you mean {meant}?)" if meant else "")
            )
        for key, why in api.mistakes(destination, endless=endless):
            raise refused(key, why)
        self._destination = destination

    def text(self, key: str, default: str = "") -> str:
        """The value of a parameter, else its default or `default`; in lower case if case does not count."""
        return api.text_of(self._destination, key, default)

    def number(self, key: str) -> int:
        return int(self.text(key))


def refused(key: str, why: str) -> ServiceError:
    """The error for a parameter. Its value is not repeated, since it may be a secret."""
    return ServiceError(f"destination.params: {key} {why}")
