"""The error codes in the member `error.code` of an answer.

The interface defines no codes, but existing clients check these codes.
"""

from __future__ import annotations

from svcctl.errors import ServiceError, SvcctlError
from svcctl.service.jobs.jobs import CODES as JOBS

INVALID = 1
"""The code of an error without a more specific code. It is also the value of `status` in every answer with an error."""
CREDENTIALS = 12
"""The code for a request with a missing or wrong key, signature or token."""
NO_FROM, BAD_FROM, ENDS_FIRST = 405, 406, 408
"""The codes for wrong dates of a query: `from` is missing, `from` is invalid, `from` is after `to`.

These codes are not HTTP statuses.
"""

_OWN_CODES = frozenset({CREDENTIALS, *JOBS})


class DatesRefused(ServiceError):
    """Raised if the member `from` of a query is missing, invalid, or after the member `to`.

    Each of the three cases has its own code. The HTTP status is always 400.
    """

    reason = "dates-refused"


def code_of(error: SvcctlError) -> int:
    """Return the value of `error.code` for an error. This is INVALID if the error has no more specific code."""
    code = error.code if isinstance(error, ServiceError) else None
    return code if code is not None and (isinstance(error, DatesRefused) or code in _OWN_CODES) else INVALID
