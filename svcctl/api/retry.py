"""The rule for retries: the failures after which a request is sent again, and the delay before that.

The rule is the same for requests, for the windows of exports, for continuous queries, and for jobs.

The service's header Retry-After decides the delay, up to the timeout that the user allows for each wait. Without this
header, the longest delay doubles with each failure, and the delay is a random time between half of the longest delay
and all of it. So clients that failed together do not retry together, and no retry follows at once.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC

from svcctl.api.addresses import first_cause
from svcctl.errors import IncompleteResult, SvcctlError, TooManyRows, Unavailable

STATUSES = frozenset({408, 425, 429, 502, 503, 504, *range(520, 525), 527, 529, 530})
"""The HTTP statuses that are retried. No answer with another status is retried."""
NOT_DONE = frozenset({425, 429, 503})
"""The retried HTTP statuses that say that nothing was done.

A request that must not be carried out twice is retried only after these statuses.
"""
FIRST_DELAY = 0.5
"""The longest delay before the first retry, in seconds."""
MAX_DELAY = 30.0
"""The longest delay before a retry, in seconds, unless the service asks for more."""
_MOST_DOUBLINGS = 32


def delay(failures: int, retry_after: float | None = None, *, chance: Callable[[], float] = random.random) -> float:
    """Return the delay in seconds before a retry, after a number of failures in a row. There is at least one failure.

    `retry_after` is the delay that the service asks for. `chance` gives random numbers from 0 to 1.
    """
    if retry_after is not None:
        return retry_after
    doublings = min(failures - 1, _MOST_DOUBLINGS)  # without a bound, the power overflows in a long outage
    return (0.5 + chance() / 2) * min(MAX_DELAY, FIRST_DELAY * 2.0**doublings)


def after(text: str, now: float, longest: float) -> float | None:
    """Return the delay in seconds that a Retry-After header asks for, at most `longest`.

    The header is a number of seconds or a date; the result is None for any other text. `now` is in epoch seconds.
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), longest)
    moment = http_date(text)
    return None if moment is None else min(max(moment - now, 0.0), longest)


def is_passing(error: SvcctlError) -> bool:
    """Whether the same request may succeed later.

    This is so if the answer was incomplete, never came, or has an HTTP status that is retried.
    """
    if isinstance(error, Unavailable) and error.status is not None:
        return error.status in STATUSES
    return isinstance(error, (Unavailable, IncompleteResult)) and not isinstance(error, TooManyRows)


def attempts(error: BaseException) -> int | None:
    """Return the maximum number of attempts for a request that fails with this error; None if only the user limits it.

    There is one attempt if the host does not exist or its certificate is not trusted, because a retry would fail, too.
    There are three attempts if a host name cannot be looked up at the moment: probably there is no network for some
    time.
    """
    from socket import EAI_AGAIN, gaierror
    from ssl import SSLCertVerificationError  # loads more than most commands need, so it waits for a failure

    error = first_cause(error)
    if isinstance(error, gaierror):
        return 3 if error.errno == EAI_AGAIN else 1
    return 1 if isinstance(error, SSLCertVerificationError) else None


def http_date(text: str) -> float | None:
    """Convert a date in a header to epoch seconds; None if the text is not a date."""
    from email.utils import parsedate_to_datetime  # loads a dozen modules, so it waits for a failure

    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()  # the zone -0000 means UTC, too
