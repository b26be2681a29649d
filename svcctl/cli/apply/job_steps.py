"""The steps of `job apply`, which compares jobs in files with the jobs of the service.

A launched job has a name that ends in a hash of the job's definition, such as nightly-auth.3f2a9c1b. The hash shows
whether the definition in a file has changed, even if a service does not show the parameters of a job's destination.

A changed job is replaced by a new job that continues where the old job stopped. svcctl's local service launches the new
job and stops the old job in one transaction. With another service, svcctl first stops the old job. Then svcctl launches
the new job from the date of the last event that the old job has read. The old job is removed when the new job runs. If
the new job fails at once, the old job runs again.

An interrupted `apply` leaves the old job, the new job, or both. The next `apply` continues the new job if there is one,
or else the old job.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from svcctl.api import destinations, own_service
from svcctl.api.job_names import split_name
from svcctl.api.models import Job, JobStatus, status_text
from svcctl.cli.apply.plan import Action, FieldDifference, PlanStep, plan
from svcctl.cli.apply.steps import Noun
from svcctl.cli.inputs.job_files import RUNNING, STOPPED, WrittenJob, hash_of
from svcctl.dates.epochs import from_ms
from svcctl.errors import CredentialsError, NotFound, ServiceError, UsageError
from svcctl.words import did_you_mean

if TYPE_CHECKING:
    from svcctl.api.client import Client

SETTLED_SECONDS = 7.0
"""The maximum time, in seconds, to wait until a new job delivers or fails.

If Kafka does not answer, the job fails after 5 s, which is less than this time.
"""
POLL_SECONDS = 0.1
NOT_CHECKED = "the queries, which only svcctl's own service checks without running them"
MISSED = "job '{name}' may miss late events while it is changed: this service does not support 'continues'"

JobStep = PlanStep[WrittenJob, Sequence[Job]]


class DomainJobs(Noun):
    """The jobs of a domain. If several jobs of the service have the same name, one step changes all of them.

    `relaunch` has the names of jobs to launch again even if their definition is unchanged.
    """

    kind = "job"

    def __init__(
        self,
        client: Client,
        note: Callable[[str], None],
        *,
        relaunch: Collection[str] = (),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.client = client
        self.note = note
        self.relaunch = relaunch
        self.sleep = sleep

    @cached_property
    def is_own(self) -> bool:
        """Whether the service is svcctl's local service."""
        return own_service.table_names(self.client) is not None

    def steps(self, written: Sequence[WrittenJob], *, prune: bool) -> list[JobStep]:
        """Return the steps that make the domain's jobs match the files, by launching or changing jobs.

        With `prune`, the steps also remove applied jobs that are in no file. Applied jobs have a hash in their name.
        Raises UsageError if `relaunch` names a job that is in no file.
        """
        desired = {entry.name: entry for entry in written}
        if unknown := [name for name in self.relaunch if name not in desired]:
            hint = did_you_mean(unknown[0], desired)
            raise UsageError(f"--relaunch names the job '{unknown[0]}', but no file has it", hint=hint)
        actual: dict[str, Sequence[Job]] = {}
        for job in self.client.jobs():
            name = split_name(job.friendly_name or "")[0]
            actual[name] = [*actual.get(name, ()), job]
        return plan(desired, actual, self._differ, lambda jobs: prune and any(map(_is_applied, jobs)))

    def _unchanged(self, wanted: WrittenJob, existing: Sequence[Job] | None) -> Job | None:
        """Return the existing job with the same definition as the job in the file.

        Returns None if there is no such job, or if `relaunch` names the job.
        """
        same = [job for job in current(existing or ()) if _hash(job) in wanted.hashes]
        return None if wanted.name in self.relaunch else _latest(same)

    def _differ(self, wanted: WrittenJob, existing: Sequence[Job] | None) -> list[FieldDifference]:
        """Return the differences between a job in a file and the existing jobs of this name.

        The values of secrets are left out.
        """
        unchanged = self._unchanged(wanted, existing)
        old = unchanged or _latest(existing or ())
        if old is None:
            begins = str(wanted.document.fields["from"])
            values = (("query", wanted.query), ("from", begins), ("destination", wanted.place), ("state", wanted.state))
            return [FieldDifference(key, None, value) for key, value in values]
        differ = [] if unchanged else definitions(wanted, old)
        if not _is_in(old, wanted.state):
            differ.append(FieldDifference("state", STOPPED if wanted.state == RUNNING else RUNNING, wanted.state))
        others = [job for job in existing or () if job.id != old.id]
        return differ + [
            FieldDifference("another job of this name", f"{job.id} {status_text(job)}", "removed") for job in others
        ]

    def check(self, step: JobStep) -> str | None:
        wanted, existing = step.wanted, step.existing or ()
        if wanted is None or self._unchanged(wanted, existing) is not None:
            return None
        if self.is_own:
            self._check_type(wanted)
            self._check_query(wanted)
        elif (old := _latest(existing)) is not None:
            _check_files(wanted, old)
        for text in wanted.warnings:
            self.note(text)
        return None if self.is_own else NOT_CHECKED

    def _check_type(self, wanted: WrittenJob) -> None:
        """Raise UsageError for a type of destination that svcctl's local service does not have."""
        if destinations.canonical_type(wanted.type) not in destinations.TYPES:
            error = destinations.unknown_type(wanted.type)
            raise wanted.document.error(error.message, "destination.type", hint=error.hint)

    def _check_query(self, wanted: WrittenJob) -> None:
        """Raise UsageError for a query that svcctl's local service refuses."""
        try:
            with self.client.query(wanted.question):
                return
        except CredentialsError:
            raise
        except ServiceError as error:
            raise wanted.document.error(f"query: {error.message}", "query").advised_by(error) from None

    # Steps

    def prepare(self, step: JobStep) -> None:
        """Read the secrets of a job that will be launched."""
        if step.wanted is not None and self._unchanged(step.wanted, step.existing) is None:
            step.wanted.request()

    def make(self, step: JobStep) -> str:
        wanted, existing = step.wanted, step.existing or ()
        if wanted is None:
            self._remove(existing)
            return "removed"
        unchanged, old = self._unchanged(wanted, existing), _latest(existing)
        if old is None:
            job = self._launched(wanted, self.client.launch(wanted.request()))
        else:
            job = unchanged or self._replaced(wanted, old)
        self._remove(other for other in existing if other.id != job.id)
        moved = self._put(job, wanted.state)
        if step.action is Action.CREATE:
            return "created"
        return moved if moved and unchanged else "updated"

    def _put(self, job: Job, state: str) -> str | None:
        """Start or stop a job if its state is not `state`. Returns `started` or `stopped`; None if nothing was done."""
        if _is_in(job, state):
            return None
        if state == STOPPED:
            self.client.stop_job(job.id)
            return "stopped"
        self.client.start_job(job.id)
        return "started"

    def _remove(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            with suppress(NotFound):
                self.client.remove_job(job.id)

    def _launched(self, wanted: WrittenJob, job_id: str) -> Job:
        """Return the new job with the ID `job_id`.

        If the service has changed the requested name, removes the job and raises ServiceError.
        """
        job = self.client.job(job_id)
        if job.friendly_name == wanted.full_name:
            return job
        self.client.remove_job(job_id)
        raise ServiceError(
            f"this service names the job '{job.friendly_name}', not '{wanted.full_name}' as requested",
            hint="svcctl finds applied jobs by their names, so it cannot apply jobs here; the new job was removed",
        )

    def _replaced(self, wanted: WrittenJob, old: Job) -> Job:
        """Launch a job that continues the old job, and return the new job as soon as it runs.

        Raises ServiceError if the new job is refused or fails. If the new job fails before it reads any events, the new
        job is removed, and the old job runs again.
        """
        ran = old.status not in (JobStatus.STOPPED, JobStatus.COMPLETED)
        try:
            job = self._continuing(wanted, old)
            failure, job = self._settled(job, old)
            if failure is not None and not _has_read(job):
                self.client.remove_job(job.id)
                raise ServiceError(failure, hint="correct the file, and apply it again")
        except ServiceError:
            if ran and self.client.job(old.id).status == JobStatus.STOPPED:
                self.client.start_job(old.id)
            self.note(f"the old job '{wanted.name}' {'runs again' if ran else 'is kept'}")
            raise
        if failure is not None:
            explanation = "the new job has read events, so the old one stays stopped"
            raise ServiceError(failure, hint=f"{explanation}: correct the file, and apply it again")
        return job

    def _continuing(self, wanted: WrittenJob, old: Job) -> Job:
        """Launch a job that continues the old job, and stop the old job."""
        if self.is_own:
            return self._launched(wanted, self.client.launch(wanted.request(continues=old.id)))
        if not _is_in(old, STOPPED):
            self.client.stop_job(old.id)
        reached = self.client.job(old.id).last_datetime
        self.note(MISSED.format(name=wanted.name))
        return self._launched(wanted, self.client.launch(wanted.request(from_=reached / 1000 if reached else None)))

    def _settled(self, job: Job, old: Job) -> tuple[str | None, Job]:
        """Wait until a new job has delivered rows, has read further than the old job, or has failed.

        Waits for SETTLED_SECONDS at most. Returns a pair: the error of the new job (None if it has none) and the new
        job.
        """
        begun = self.client.job(old.id).last_datetime or 0
        deadline = time.monotonic() + SETTLED_SECONDS
        while True:
            if job.error:
                return f"{status_text(job)}: {job.reason}", job
            goes_on = bool(job.events_sent) or (job.last_datetime or 0) > begun
            if goes_on or job.status != JobStatus.RUNNING or time.monotonic() >= deadline:
                return None, job
            self.sleep(POLL_SECONDS)
            job = self.client.job(job.id)


def definitions(wanted: WrittenJob, old: Job) -> list[FieldDifference]:
    """Return the differences between the definition of a job in a file and the existing job `old`.

    Parts of the definition that the service does not show are left out.
    """
    differ = []
    if old.query and old.query.strip() != wanted.query.strip():
        differ.append(FieldDifference("query", old.query, wanted.query))
    if old.type and not _is_of_type(old, wanted):
        differ.append(FieldDifference("destination", old.type, wanted.place))
    before = _hash(old)
    if before in wanted.hashes:
        return [FieldDifference("launched", old.id, "again, with the current secrets")]
    return differ or [FieldDifference("definition", before or "unknown", f"{wanted.hash} (end or parameters differ)")]


def _check_files(wanted: WrittenJob, old: Job) -> None:
    """Raise UsageError if a changed job would write files with the same name as the old job.

    The new job would number its files from the beginning, so its files could replace the files of the old job.
    """
    before = _hash(old)
    if wanted.files is None or not _is_of_type(old, wanted):
        return
    if before is None or before[-2:] == wanted.hash[-2:]:
        raise wanted.document.error(
            f"this service cannot continue the numbers of the files '{wanted.files}', which job '{wanted.name}' writes",
            "destination",
            hint="give the files of the changed job another name",
        )


def exported(job: Job) -> dict[str, Any]:
    """Convert a job to the fields of a job in a YAML file. Parts that the service does not show are left out.

    svcctl's local service shows everything except the secrets.
    """
    row = destinations.TYPES.get((job.type or "").lower())
    values: dict[str, Any] = {
        "name": split_name(job.friendly_name or job.id)[0],
        "query": (job.query or "").strip(),
        "from": _date(job.last_datetime or job.extra.get("from")),
        "to": _date(job.extra.get("to")),
        "destination": {"type": row.name if row else job.type, "params": job.extra.get("params", {})},
        "state": STOPPED if job.status == JobStatus.STOPPED else RUNNING,
    }
    return {key: value for key, value in values.items() if value}


def _date(ms: int | None) -> str | None:
    """Convert a date in epoch milliseconds to the form in YAML files of jobs."""
    if ms is None:
        return None
    return from_ms(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _hash(job: Job) -> str | None:
    """Return the hash in a job's name, or else compute the hash from the job's definition.

    Returns None if the name has no hash and the service does not show the parameters.
    """
    named, end = split_name(job.friendly_name or "")[1], job.extra.get("to")
    if named is None and "params" in job.extra:
        return hash_of(job.query or "", end and end / 1000, job.type or "", job.extra["params"])
    return named


def _is_applied(job: Job) -> bool:
    """Return whether a job was launched from a file. Only the names of such jobs end in a hash."""
    return split_name(job.friendly_name or "")[1] is not None


def _is_in(job: Job, state: str) -> bool:
    """Return whether a job is in the state `state`. Also true for a completed job, which needs no start or stop."""
    return job.status == JobStatus.COMPLETED or (job.status == JobStatus.STOPPED) == (state == STOPPED)


def _is_of_type(job: Job, wanted: WrittenJob) -> bool:
    """Return whether a job's destination has the same type as the destination in a file."""
    return (job.type or "").lower() == destinations.canonical_type(wanted.type)


def current(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs, except each old job that a new job continues."""
    continued = {job.extra.get("continues") for job in jobs}
    return [job for job in jobs if job.id not in continued]


def _latest(jobs: Sequence[Job]) -> Job | None:
    """Return the running job, or else the job that has read the most; None for no jobs.

    Jobs that another job continues are left out. Among equal jobs, the last in the list is returned.
    """
    return max(
        reversed(current(jobs)),
        key=lambda job: (job.status == JobStatus.RUNNING, job.last_datetime or 0),
        default=None,
    )


def _has_read(job: Job) -> bool:
    return bool(job.event_generated or job.events_sent)
