"""The error codes in the envelope's `error.code`. The interface defines no codes, but existing clients check these."""

from __future__ import annotations

from svcctl.errors import ServiceError, SvcctlError
from svcctl.service.jobs.jobs import CODES as JOBS

INVALID = 1
"""The code of an error without a code of its own, and the `status` of every envelope that refuses a request."""
CREDENTIALS = 12
"""The code for a request whose key, signature or token is missing or wrong."""
NO_FROM, BAD_FROM, ENDS_FIRST = 405, 406, 408
"""The codes of a query whose `from` is missing, invalid, or after its `to`. They are not HTTP statuses."""

_OWN_CODES = frozenset({CREDENTIALS, *JOBS})


class DatesRefused(ServiceError):
    """The `from` of a query is missing, invalid or after its `to`.

    Each of the three cases has its own code. The HTTP status is always 400.
    """

    reason = "dates-refused"


def code_of(error: SvcctlError) -> int:
    """Return the code of an error in the envelope; INVALID for an error without a code of its own."""
    code = error.code if isinstance(error, ServiceError) else None
    return code if code is not None and (isinstance(error, DatesRefused) or code in _OWN_CODES) else INVALID
