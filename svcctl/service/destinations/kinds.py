"""The table of destination types, and the function that makes a destination for a job.

The module of a destination is imported only when a job needs it, because the module's packages are optional.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from svcctl.api.destinations import canonical_type, suggest_type
from svcctl.errors import ServiceError, Unavailable
from svcctl.io import extras
from svcctl.service.destinations import JobDestination, Memo
from svcctl.service.destinations.params import Params
from svcctl.service.hosts.allowed_hosts import EVERYTHING, AllowedHosts, HostRefused
from svcctl.words import DESTINATION_TYPES


def _kafka(job_id: str, params: Params, allowed: AllowedHosts) -> JobDestination:
    from svcctl.service.destinations.kafka import Kafka

    return Kafka(job_id, params, allowed=allowed)


def _s3(job_id: str, params: Params, allowed: AllowedHosts) -> JobDestination:
    from svcctl.service.destinations.s3_and_hdfs import s3

    return s3(job_id, params, allowed)


def _hdfs(job_id: str, params: Params, allowed: AllowedHosts) -> JobDestination:
    from svcctl.service.destinations.s3_and_hdfs import hdfs

    return hdfs(job_id, params, allowed)


def _donothing(job_id: str, params: Params, allowed: AllowedHosts) -> JobDestination:
    from svcctl.service.destinations.donothing import DoNothing

    return DoNothing()


@dataclass(frozen=True, slots=True)
class DestinationKind:
    """A row of the table KINDS. `make` makes a destination from a job's ID, the parameters and the allowed hosts."""

    make: Callable[[str, Params, AllowedHosts], JobDestination]
    extra: str | None = None
    """The name of the extra (optional dependencies) that this destination needs. It is None if no extra is needed."""
    place: tuple[str, ...] = ()
    """The names of the parameters that define where the rows are delivered."""
    inherited: tuple[str, ...] = ()
    """The names of the memo's members that a new job takes over when it continues an old job.

    The memo is the saved state of the destination. The members are taken over only if both jobs deliver to the same
    place.
    """


KINDS: Mapping[str, DestinationKind] = {
    "kafka": DestinationKind(_kafka, "kafka", ("bootstrap.servers", "topic"), ("partition",)),
    "s3": DestinationKind(_s3, "s3", ("aws.bucket", "aws.endpoint", "s3.fileName"), ("parts",)),
    "hdfs": DestinationKind(_hdfs, "hdfs", ("fs.defaultFS", "file"), ("parts",)),
    "donothing": DestinationKind(_donothing),
}


def known_type(name: str) -> str:
    """Return the destination type with this name. The name may be in upper or lower case.

    Raises ServiceError if the type is unknown.
    """
    type_ = canonical_type(name)
    if type_ not in KINDS:
        nearest = suggest_type(name)
        hint = f"did you mean '{nearest}'?" if nearest else f"known types are {', '.join(DESTINATION_TYPES)}"
        raise ServiceError(f"unknown destination.type '{name}' ({hint})")
    return type_


def check(type_: str, params: Mapping[str, Any], *, endless: bool, allowed: AllowedHosts) -> None:
    """Check the parameters and the hosts of a job before the job is launched.

    Raises ServiceError for a parameter that cannot be used, and for a host to which the service may not connect. A host
    name without an IP address is accepted, because the job waits until the name has an address.
    """
    try:
        destination(type_, "", params, endless=endless, allowed=allowed).close()
    except HostRefused as error:
        raise ServiceError(f"destination.params: {error.message}") from None
    except Unavailable:
        return


def destination(
    type_: str, job_id: str, params: Mapping[str, Any], *, endless: bool = True, allowed: AllowedHosts = EVERYTHING
) -> JobDestination:
    """Make the destination of a job. `endless` is true if the job's query has no end.

    Raises ServiceError for missing or unusable parameters, MissingExtra for missing packages, and HostRefused for a
    host that is not `allowed`. The hosts are checked again at each attempt to deliver.
    """
    kind = KINDS[type_]
    if kind.extra is not None:
        extras.need(kind.extra, f"the destination {type_}")
    return kind.make(job_id, Params(type_, params, endless=endless), allowed)


def inherited_memo(memo: Memo, before: tuple[str, Mapping[str, Any]], after: tuple[str, Mapping[str, Any]]) -> Memo:
    """Return the members of an old job's memo that the new job takes over.

    The memo is the saved state of a destination. It has, for example, the partition or the number of the next file.

    `before` has the type and the parameters of the old destination. `after` has the type and the parameters of the new
    destination. The result is empty if the two jobs deliver to different places.
    """
    kind = KINDS[after[0]]
    same = before[0] == after[0] and all(before[1].get(key) == after[1].get(key) for key in kind.place)
    return {key: value for key, value in memo.items() if key in kind.inherited} if same else {}
