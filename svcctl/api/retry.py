"""Which answers are tried again, and after how long: one rule for requests, connections that are followed, and jobs.

A service that sends Retry-After is obeyed, up to a limit. Otherwise a limit on the wait doubles with each failure, and
the wait is drawn evenly between half of the limit and all of it. So clients that failed together do not come back
together, and no retry follows at once.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from svcctl.api.addresses import first_cause

UNAVAILABLE = frozenset({429, 502, 503, 504, 520, 521, 522, 523, 524})
"""The HTTP statuses that are worth a retry."""
NOT_ACCEPTED = frozenset({429, 503})
"""Those of them with which a service says that it has done nothing: what must not be done twice is sent again too."""
FIRST_DELAY = 0.5
"""The longest first wait, in seconds."""
MAX_DELAY = 30.0
"""The longest wait, in seconds."""
MAX_RETRY_AFTER = 120.0
"""The longest Retry-After that is obeyed, in seconds."""
_MOST_DOUBLINGS = 32


def delay(failures: int, retry_after: float | None = None, *, chance: Callable[[], float] = random.random) -> float:
    """Seconds to wait after a number of failures in a row, at least 1; `retry_after` is what the service asks for, and
    `chance` gives numbers from 0 to 1."""
    if retry_after is not None:
        return retry_after
    doublings = min(failures - 1, _MOST_DOUBLINGS)  # a power without a bound overflows in a long outage
    return (0.5 + chance() / 2) * min(MAX_DELAY, FIRST_DELAY * 2.0**doublings)


def after(text: str, now: float) -> float | None:
    """Return the seconds that a Retry-After header asks for, as a number or a date; None when it is neither."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), MAX_RETRY_AFTER)
    moment = http_date(text)
    return None if moment is None else min(max(moment - now, 0.0), MAX_RETRY_AFTER)


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
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
