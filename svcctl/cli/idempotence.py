"""The option `--if-needed`: if nothing needs to be changed, a command succeeds with a note."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from svcctl.api.jobs import Changed
from svcctl.api.models import Domain, Job
from svcctl.errors import Conflict, NotFound, ServiceError, SvcctlError
from svcctl.words import json_text

if TYPE_CHECKING:
    from svcctl.api.client import Client

Note = Callable[[str], None]
ALLOWED = "--if-needed allows that"


@contextmanager
def done_if(wanted: bool, says_done: Callable[[ServiceError], bool], note: Note) -> Iterator[None]:
    """Print a note instead of raising an error, if the error says that there is nothing to do.

    `says_done` returns whether an error of the block says that there is nothing to do. If `wanted` is false, because
    --if-needed was not given, every error is raised. A Conflict that says that there is nothing to do then gets a hint
    about --if-needed.
    """
    try:
        yield
    except ServiceError as error:
        if not wanted or not says_done(error):
            if isinstance(error, Conflict) and says_done(error):
                error.add_note(ALLOWED)
            raise
        note(f"nothing to do: {error.message}")


def change_job(change: Callable[[str], Job], client: Client, job_id: str, wanted: str, *, if_needed: bool) -> Changed:
    """Change the state of a job to `wanted` by calling `change`.

    Raises Conflict if the service refuses the change. With `if_needed`, a job that is already in the state `wanted` is
    returned unchanged.
    """
    try:
        return Changed(change(job_id))
    except Conflict as error:
        try:
            job = client.job(job_id)
        except SvcctlError:
            raise error from None
        if job.status != wanted:
            raise
        if not if_needed:
            error.add_note(ALLOWED)
            raise
        return Changed(job, error.message)


def create_domain(
    client: Client, name: str, plan: str, time: float | None, volume: float | None, note: Note, *, if_needed: bool
) -> Domain:
    """Create a domain, and return it. With `if_needed`, an existing domain with the given values is returned.

    Raises Conflict if the existing domain has other values, or if a domain exists and `if_needed` is false.
    """
    try:
        return client.create_domain(name, plan, time=time, volume=volume)
    except ServiceError as error:
        if not if_needed:
            if isinstance(error, Conflict):
                error.add_note(f"{ALLOWED}, if the domain has the same plan")
            raise
        if (existing := _existing(client, name)) is None:
            raise
    for attribute, wanted, existing_value in (
        ("plan", plan, existing.plan),
        ("time", time, existing.time),
        ("volume", volume, existing.volume),
    ):
        if wanted is not None and wanted != existing_value:
            state = f"no {attribute}" if existing_value is None else f"{attribute} {json_text(existing_value)}"
            raise Conflict(f"domain {existing.name} already exists with {state}, not {wanted}")
    note(f"nothing to do: domain {existing.name} already exists")
    return existing


def _existing(client: Client, name: str) -> Domain | None:
    try:
        return client.domain(name)
    except NotFound:
        return None
