"""The parameters of a destination in a request. The table in `api/destinations` has the rules for the parameters.

Unknown keys are saved with the job, and otherwise ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from svcctl.api import destinations as api
from svcctl.errors import ServiceError
from svcctl.words import nearest


class Params:
    """The parameters of one job's destination. `endless` is true if the job's query has no end.

    Raises ServiceError if parameters are missing. The error names all missing parameters. Also raises ServiceError for
    the first parameter that cannot be used.
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
        """Return the value of a parameter. If the request does not set the parameter, return its default value.

        The argument `default` is used if the table of parameters has no default value. If letter case does not matter
        for the parameter, the result is in lower case.
        """
        return api.text_of(self._destination, key, default)

    def number(self, key: str) -> int:
        return int(self.text(key))


def refused(key: str, why: str) -> ServiceError:
    """Make the error for a parameter. The message does not repeat the parameter's value, which may be a secret."""
    return ServiceError(f"destination.params: {key} {why}")
