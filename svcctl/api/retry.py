"""The rule for retries: after which failures a request is sent again, and after which delay.

The rule is the same for requests, for the windows of exports, for continuous queries, and for jobs.

The delay is that of the service's Retry-After, up to the timeout that the user allows for each wait. Without one, a
limit of the delay doubles with each failure, and the delay is random between half of the limit and all of it. So
clients that failed together do not retry together, and no retry follows at once.
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
"""The retried HTTP statuses that say that nothing was done. A request that must not be carried out twice is retried
only after these."""
FIRST_DELAY = 0.5
"""The longest delay before the first retry, in seconds."""
MAX_DELAY = 30.0
"""The longest delay before a retry, in seconds, unless the service asks for more."""
_MOST_DOUBLINGS = 32


def delay(failures: int, retry_after: float | None = None, *, chance: Callable[[], float] = random.random) -> float:
    """The delay in seconds before a retry, after a number of failures in a row, at least 1.

    `retry_after` is the delay that the service asks for. `chance` gives random numbers from 0 to 1.
    """
    if retry_after is not None:
        return retry_after
    doublings = min(failures - 1, _MOST_DOUBLINGS)  # a power without a bound overflows in a long outage
    return (0.5 + chance() / 2) * min(MAX_DELAY, FIRST_DELAY * 2.0**doublings)


def after(text: str, now: float, longest: float) -> float | None:
    """The delay in seconds that a Retry-After header asks for, at most `longest`.

    The header is a number of seconds or a date; None for any other text. `now` is in epoch seconds.
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), longest)
    moment = http_date(text)
    return None if moment is None else min(max(moment - now, 0.0), longest)


def is_passing(error: SvcctlError) -> bool:
    """Whether the same request may succeed later: its answer was incomplete or never came, or has a retried status."""
    if isinstance(error, Unavailable) and error.status is not None:
        return error.status in STATUSES
    return isinstance(error, (Unavailable, IncompleteResult)) and not isinstance(error, TooManyRows)


def attempts(error: BaseException) -> int | None:
    """The most attempts for a request that fails with this error; None if only the user limits them.

    There is one attempt if the host does not exist or its certificate is not trusted, because that does not change.
    There are three if a name cannot be looked up at the moment: probably there is no network for some time.
    """
    from socket import EAI_AGAIN, gaierror
    from ssl import SSLCertVerificationError  # loads more than most commands need, for failures only

    error = first_cause(error)
    if isinstance(error, gaierror):
        return 3 if error.errno == EAI_AGAIN else 1
    return 1 if isinstance(error, SSLCertVerificationError) else None


def http_date(text: str) -> float | None:
    """The epoch seconds of a date in a header; None if the text is not a date."""
    from email.utils import parsedate_to_datetime  # loads a dozen modules, for failures only

    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()  # the zone -0000 means UTC, too
