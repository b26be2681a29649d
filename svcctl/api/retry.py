"""The rule for retries: the failures after which a request is sent again, and the delay before the next attempt.

The rule is the same for single requests, for exports, for continuous queries, and for jobs.

If the service sends the header Retry-After, this header decides the delay, up to the timeout that the user has set.
Without this header, a maximum delay doubles with each failure. The delay is a random time from half of this maximum to
this maximum. So clients that failed at the same time do not retry at the same time.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC

from svcctl.api.addresses import first_cause
from svcctl.errors import IncompleteResult, SvcctlError, TooManyRows, Unavailable

STATUSES = frozenset({408, 425, 429, 502, 503, 504, *range(520, 525), 527, 529, 530})
"""The HTTP statuses that are retried. Other HTTP statuses are not retried."""
NOT_DONE = frozenset({425, 429, 503})
"""The HTTP statuses which say that the service has not carried out the request.

After these statuses, even a request that must not be carried out twice is retried.
"""
FIRST_DELAY = 0.5
"""The maximum delay before the first retry, in seconds."""
MAX_DELAY = 30.0
"""The maximum delay before any retry, in seconds. The header Retry-After can ask for more."""
_MOST_DOUBLINGS = 32


def delay(failures: int, retry_after: float | None = None, *, chance: Callable[[], float] = random.random) -> float:
    """Return the delay in seconds before a retry. `failures` is the number of failures in a row, at least 1.

    `retry_after` is the delay that the service asks for. `chance` returns random numbers from 0 to 1.
    """
    if retry_after is not None:
        return retry_after
    doublings = min(failures - 1, _MOST_DOUBLINGS)  # without a limit, the power overflows in a long outage
    return (0.5 + chance() / 2) * min(MAX_DELAY, FIRST_DELAY * 2.0**doublings)


def after(text: str, now: float, longest: float) -> float | None:
    """Return the delay in seconds that a Retry-After header asks for, but at most `longest`.

    The header is a number of seconds or a date. For any other text, the result is None. `now` is in epoch seconds.
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), longest)
    moment = http_date(text)
    return None if moment is None else min(max(moment - now, 0.0), longest)


def is_passing(error: SvcctlError) -> bool:
    """Return whether the same request may succeed later.

    The result is True if the answer was incomplete, if there was no answer, or if the answer's HTTP status is retried.
    """
    if isinstance(error, Unavailable) and error.status is not None:
        return error.status in STATUSES
    return isinstance(error, (Unavailable, IncompleteResult)) and not isinstance(error, TooManyRows)


def attempts(error: BaseException) -> int | None:
    """Return the maximum number of attempts for a request that fails with this error.

    Returns None if only the user's setting limits the attempts. The result is 1 if the host does not exist, or if its
    certificate is not accepted. The result is 3 if the host name cannot be looked up at the moment.
    """
    from socket import EAI_AGAIN, gaierror
    from ssl import SSLCertVerificationError  # a large module, which is imported only after a failure

    error = first_cause(error)
    if isinstance(error, gaierror):
        return 3 if error.errno == EAI_AGAIN else 1
    return 1 if isinstance(error, SSLCertVerificationError) else None


def http_date(text: str) -> float | None:
    """Convert a date in a header to epoch seconds. Returns None if the text is not a date."""
    from email.utils import parsedate_to_datetime  # loads a dozen modules, only after a failure

    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()  # the zone -0000 means UTC, too
