"""The rule for retries: after which failures a request is sent again, and how long to wait before that.

It is the same for requests, for the windows of exports, for queries that are followed, and for jobs.

A service that sends Retry-After is obeyed, up to the timeout that the user allows for each wait. Otherwise a limit on
the wait doubles with each failure, and the wait is drawn evenly between half of the limit and all of it. So clients
that failed together do not come back together, and no retry follows at once.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC

from svcctl.api.addresses import first_cause
from svcctl.errors import IncompleteResult, SvcctlError, TooManyRows, Unavailable

STATUSES = frozenset({408, 425, 429, 502, 503, 504, *range(520, 525), 527, 529, 530})
"""The HTTP statuses that are retried. No answer with another one is, whatever sends it."""
NOT_DONE = frozenset({425, 429, 503})
"""The statuses among them that say that nothing was done. Only these are retried for a request that must not be carried
out twice."""
FIRST_DELAY = 0.5
"""The longest first wait, in seconds."""
MAX_DELAY = 30.0
"""The longest wait, in seconds."""
_MOST_DOUBLINGS = 32


def delay(failures: int, retry_after: float | None = None, *, chance: Callable[[], float] = random.random) -> float:
    """Seconds to wait after a number of failures in a row, at least 1; `retry_after` is what the service asks for, and
    `chance` gives numbers from 0 to 1."""
    if retry_after is not None:
        return retry_after
    doublings = min(failures - 1, _MOST_DOUBLINGS)  # a power without a bound overflows in a long outage
    return (0.5 + chance() / 2) * min(MAX_DELAY, FIRST_DELAY * 2.0**doublings)


def after(text: str, now: float, longest: float) -> float | None:
    """Return the seconds to wait for a Retry-After header, a number or a date, but at most `longest`; None when it is
    neither."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), longest)
    moment = http_date(text)
    return None if moment is None else min(max(moment - now, 0.0), longest)


def is_passing(error: SvcctlError) -> bool:
    """Whether the same request may succeed later: the answer was cut or never came, or its HTTP status is retried."""
    if isinstance(error, Unavailable) and error.status is not None:
        return error.status in STATUSES
    return isinstance(error, (Unavailable, IncompleteResult)) and not isinstance(error, TooManyRows)


def attempts(error: BaseException) -> int | None:
    """How often a request that fails with this error is sent at most; None when only the user limits it.

    A host that does not exist and a certificate that is not trusted stay so, and a name that cannot be looked up at the
    moment means that there is no network, which does not change soon.
    """
    from socket import EAI_AGAIN, gaierror
    from ssl import SSLCertVerificationError  # loads more than most commands need, for failures only

    error = first_cause(error)
    if isinstance(error, gaierror):
        return 3 if error.errno == EAI_AGAIN else 1
    return 1 if isinstance(error, SSLCertVerificationError) else None


def http_date(text: str) -> float | None:
    """Return the epoch seconds of a date in a header; None when the text is not a date."""
    from email.utils import parsedate_to_datetime  # loads a dozen modules, for failures only

    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()  # the zone -0000 means UTC, too
