"""What `--if-needed` means: a request that would change nothing succeeds, with a note."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from svcctl.api.models import Domain, Job
from svcctl.api.refusals import Code
from svcctl.errors import Conflict, NotFound, ServiceError

if TYPE_CHECKING:
    from svcctl.api.client import Client

Note = Callable[[str], None]


def already_so(error: ServiceError) -> bool:
    """The domain is already enabled, or already disabled."""
    return error.code == Code.ALREADY_SO


def no_domain(error: ServiceError) -> bool:
    """The domain does not exist."""
    return error.code == Code.NO_DOMAIN


def no_role(error: ServiceError) -> bool:
    """The role does not exist, in a domain that does."""
    return isinstance(error, NotFound) and error.code != Code.NO_DOMAIN


@contextmanager
def done_if(wanted: bool, says_done: Callable[[ServiceError], bool], note: Note) -> Iterator[None]:
    """When `wanted`, an error that says that there is nothing to do becomes a note."""
    try:
        yield
    except ServiceError as error:
        if not wanted or not says_done(error):
            raise
        note(f"nothing to do: {error.message}")


def change_job(change: Callable[[str], Job], client: Client, job_id: str, wanted: str, note: Note) -> Job:
    """Change a job, or return it when it is already in the wanted state: a conflict may have other reasons."""
    try:
        return change(job_id)
    except Conflict as error:
        job = client.job(job_id)
        if job.status != wanted:
            raise
        note(error.message)
        return job


def create_domain(client: Client, name: str, plan: str, time: float | None, volume: float | None, note: Note) -> Domain:
    """Create a domain, or return the one that exists as wanted. Conflict when it exists with other values."""
    try:
        return client.create_domain(name, plan, time=time, volume=volume)
    except ServiceError:
        if (existing := _existing(client, name)) is None:
            raise
    for what, wanted, found in (
        ("plan", plan, existing.plan),
        ("time", time, existing.time),
        ("volume", volume, existing.volume),
    ):
        if wanted is not None and wanted != found:
            raise Conflict(f"domain {existing.name} already exists with {what} {found}, not {wanted}")
    note(f"nothing to do: domain {existing.name} already exists")
    return existing


def _existing(client: Client, name: str) -> Domain | None:
    try:
        return client.domain(name)
    except NotFound:
        return None
