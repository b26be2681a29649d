"""The check of what one job delivered: reads its destination, and compares it with the rows that are expected there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from svcctl.service.hosts.allowed_hosts import AllowedHosts
from svcctl.service.verification import (
    CheckProgress,
    CheckTally,
    DeliveredJob,
    DeliveryFinding,
    ExpectedRows,
    NotReproducible,
)

VERIFIABLE = ("kafka", "s3", "hdfs")
"""The destination types that can be read back."""


def check(
    job: DeliveredJob,
    expected: Iterable[ExpectedRows | NotReproducible],
    *,
    allowed: AllowedHosts,
    stopped: Callable[[], bool],
) -> Iterator[DeliveryFinding | CheckProgress | CheckTally]:
    """Compare the destination of a job, of a type in VERIFIABLE, with its rows; the last item is the tally.

    The iterator ends without it soon after `stopped` has returned True. Unavailable when the destination does not
    answer, or may not be connected to; CredentialsError when it denies the access.
    """
    if job.type == "kafka":
        from svcctl.service.verification.kafka_topic import check_topic

        return check_topic(job, expected, allowed, stopped)
    from svcctl.service.verification.stored_files import check_files

    return check_files(job, expected, allowed, stopped)
