"""The error codes of the envelope, `error.code`. The interface shows none, but clients of such services check these."""

from __future__ import annotations

from svcctl.errors import ServiceError, SvcctlError
from svcctl.service.jobs.jobs import CODES as JOBS

INVALID = 1
"""The code of any other error, and the `status` of every envelope that refuses a request."""
CREDENTIALS = 12
"""The key, the signature or the token of a request is missing or wrong."""
NO_FROM, BAD_FROM, ENDS_FIRST = 405, 406, 408
"""The codes of a query whose `from` is missing, invalid, or after its `to`. They are not HTTP statuses."""

_OWN_CODES = frozenset({CREDENTIALS, *JOBS})


class DatesRefused(ServiceError):
    """The `from` of a query is missing, invalid or after its `to`. The code says which; the HTTP status is 400."""

    reason = "dates-refused"


def code_of(error: SvcctlError) -> int:
    """The code of an error in the envelope; INVALID for an error without its own code."""
    code = error.code if isinstance(error, ServiceError) else None
    return code if code is not None and (isinstance(error, DatesRefused) or code in _OWN_CODES) else INVALID
