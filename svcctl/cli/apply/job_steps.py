"""Jobs as files describe them, compared with those that are there.

A service shows the query and the type of a job, and not its parameters. So a job is launched with a name that ends in a
hash of its definition, as nightly-auth.3f2a9c1b, and another hash means another definition.

A job that changes is continued: svcctl's own service launches the new job and stops the old one in one transaction.
Another service is asked to stop the old one, and to launch the new one from its lastDatetime. The old one is removed
when the new one runs; if that fails at once, the old one runs again. Whatever stops in the middle leaves the old job,
the new one, or both, from which the next plan goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from svcctl.api import destinations, own_service
from svcctl.api.jobs import split_name
from svcctl.api.models import Job, JobStatus, shown
from svcctl.cli.apply.plan import Action, Difference, Step, plan
from svcctl.cli.inputs.job_files import RUNNING, STOPPED, WrittenJob
from svcctl.errors import CredentialsError, NotFound, ServiceError, UsageError
from svcctl.words import counted, did_you_mean

if TYPE_CHECKING:
    from svcctl.api.client import Client

SETTLED_SECONDS = 7.0
"""The longest wait for a new job to deliver or to fail; a Kafka that does not answer is reported after 5 s."""
POLL_SECONDS = 0.1
NOT_CHECKED = "the queries are not checked: only svcctl's own service does that without running them"
LEFT = (
    "{number} job applied from files is in none of them: {names} (--prune removes it)",
    "{number} jobs applied from files are in none of them: {names} (--prune removes them)",
)
MISSED = "events that came late while job '{name}' changed may be missed: this service has no 'continues'"

Jobs_ = Sequence[Job]
JobStep = Step[WrittenJob, Jobs_]


@dataclass(frozen=True)
class Jobs:
    """The jobs of a domain; see `apply.Noun`. Their actual state is all jobs of a name, mostly one."""

    client: Client
    note: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep
    relaunch: Collection[str] = ()
    """The names of jobs that are launched again although their definition is the same."""
    kind: str = "job"
    where: str = ""
    of: str = ""

    @cached_property
    def is_own(self) -> bool:
        """Whether the service is svcctl's own."""
        return own_service.table_names(self.client) is not None

    def steps(self, written: Sequence[WrittenJob], *, prune: bool) -> list[JobStep]:
        """The steps to the written jobs; with `prune`, to these alone. UsageError for what cannot be done."""
        desired = {one.name: one for one in written}
        if unknown := [name for name in self.relaunch if name not in desired]:
            hint = did_you_mean(unknown[0], desired)
            raise UsageError(f"no file has the job '{unknown[0]}', which --relaunch names", hint=hint)
        actual: dict[str, Jobs_] = {}
        for job in self.client.jobs():
            name = split_name(job.friendly_name or "")[0]
            actual[name] = [*actual.get(name, ()), job]

        def differ(wanted: WrittenJob, found: Jobs_ | None) -> list[Difference]:
            return differences(wanted, found or (), again=wanted.name in self.relaunch)

        steps = plan(desired, actual, differ, lambda found: any(map(_is_applied, found)))
        if not prune:
            left = [step.name for step in steps if step.action is Action.REMOVE]
            if left:
                self.note(LEFT[len(left) > 1].format(number=len(left), names=", ".join(left)))
            steps = [step for step in steps if step.action is not Action.REMOVE]
        for step in steps:
            self._check(step)
        return steps

    def _check(self, step: JobStep) -> None:
        """UsageError for a query that the service refuses, and for files that would get other events under one name."""
        wanted = step.wanted
        if wanted is None:
            return
        if self._kept(step) is not None:
            return
        if self.is_own:
            self._check_query(wanted)
            return
        old = _latest(step.found or ())
        if old is None or wanted.files is None:
            return
        if (old.type or "").lower() != destinations.canonical_type(wanted.type):
            return
        before = split_name(old.friendly_name or "")[1]
        if before is None or before[-2:] == wanted.hash[-2:]:
            raise wanted.document.error(
                f"job '{wanted.name}' writes files named '{wanted.files}', whose numbers this service cannot hand on",
                "destination",
                hint="give the files of the changed job another name",
            )

    def _check_query(self, wanted: WrittenJob) -> None:
        """UsageError for a query that the service refuses."""
        try:
            with self.client.query(wanted.question):
                pass
        except CredentialsError:
            raise
        except ServiceError as error:
            raise wanted.document.error(f"query: {error.message}", "query", hint=error.hint) from None

    @property
    def unchecked(self) -> str | None:
        return None if self.is_own else NOT_CHECKED

    def about(self, step: JobStep) -> str:
        return ""

    def warnings(self, steps: Sequence[JobStep]) -> Iterable[str]:
        lost = [step.name for step in steps if step.action is Action.REMOVE]
        return [f"{counted(len(lost), 'job')} will be removed: {', '.join(lost)}."] if lost else []

    def _kept(self, step: JobStep) -> Job | None:
        """The job that is as the file says, if there is one."""
        assert step.wanted is not None
        again = step.wanted.name in self.relaunch
        return (
            None if again else _latest([job for job in step.found or () if job.friendly_name == step.wanted.full_name])
        )

    # Steps

    def prepare(self, steps: Sequence[JobStep]) -> None:
        """Read the secrets of the jobs that will be launched."""
        for step in steps:
            if step.wanted is not None and self._kept(step) is None:
                step.wanted.request()

    def make(self, step: JobStep) -> str:
        wanted, found = step.wanted, step.found or ()
        if wanted is None:
            self._remove(found)
            return "removed"
        kept, done = self._kept(step), "updated"
        if kept is None and not found:
            kept, done = self._launched(wanted, self.client.launch(wanted.request())), "created"
        elif kept is None:
            old = _latest(found)
            assert old is not None
            kept = self._replaced(wanted, old)
        self._remove(job for job in found if job.id != kept.id)
        moved = self._put(kept, wanted.state)
        return moved if moved and done == "updated" and kept in found else done

    def _put(self, job: Job, state: str) -> str | None:
        """Start or stop a job that is not in a state; returns what was done."""
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

    def _launched(self, wanted: WrittenJob, job_id: str, continues: str | None = None) -> Job:
        """A job that was just launched. It is removed, with a ServiceError, if the service did not do as was asked."""
        job = self.client.job(job_id)
        if job.friendly_name == wanted.full_name and (continues is None or job.extra.get("continues") == continues):
            return job
        self.client.remove_job(job_id)
        raise ServiceError(
            f"this service names the job '{job.friendly_name}', not '{wanted.full_name}' as was asked",
            hint="svcctl cannot apply jobs that it does not find again by their names; the new job was removed",
        )

    def _replaced(self, wanted: WrittenJob, old: Job) -> Job:
        """The job that continues the old one, once it runs. If it is refused, or fails before it has read anything, it
        is removed, and the old one runs again.
        """
        try:
            job = self._continuing(wanted, old)
            failure, job = self._settled(job, old)
            if failure is not None and not _has_read(job):
                self.client.remove_job(job.id)
                raise ServiceError(failure, hint="correct the file, and apply it again")
        except ServiceError:
            if _is_in(old, RUNNING) and self.client.job(old.id).status == JobStatus.STOPPED:
                self.client.start_job(old.id)
            self.note(f"the job '{wanted.name}' that was there {'runs again' if _is_in(old, RUNNING) else 'is kept'}")
            raise
        if failure is not None:
            hint = (
                "it has read events, so the one that it continues stays stopped: correct the file, and apply it again"
            )
            raise ServiceError(failure, hint=hint)
        return job

    def _continuing(self, wanted: WrittenJob, old: Job) -> Job:
        """Launch the job that continues another one, which is stopped then."""
        if self.is_own:
            return self._launched(wanted, self.client.launch(wanted.request(continues=old.id)), old.id)
        if not _is_in(old, STOPPED):
            self.client.stop_job(old.id)
        reached = self.client.job(old.id).last_datetime
        self.note(MISSED.format(name=wanted.name))
        return self._launched(wanted, self.client.launch(wanted.request(from_=reached / 1000 if reached else None)))

    def _settled(self, job: Job, old: Job) -> tuple[str | None, Job]:
        """Wait until a new job has delivered or read on, or fails; returns why it fails, and the job as it is then."""
        begun = self.client.job(old.id).last_datetime or 0
        deadline = time.monotonic() + SETTLED_SECONDS
        while True:
            if job.error:
                return f"{shown(job)}: {job.reason}", job
            goes_on = bool(job.events_sent) or (job.last_datetime or 0) > begun
            if goes_on or job.status != JobStatus.RUNNING or time.monotonic() >= deadline:
                return None, job
            self.sleep(POLL_SECONDS)
            job = self.client.job(job.id)


def differences(wanted: WrittenJob, found: Jobs_, *, again: bool = False) -> list[Difference]:
    """How the jobs of a name differ from the one that a file describes; values of secrets are not in it."""
    if not found:
        begins = str(wanted.document.fields["from"])
        given = (("query", wanted.query), ("from", begins), ("destination", wanted.place), ("state", wanted.state))
        return [Difference(key, None, value) for key, value in given]
    kept = _latest([job for job in found if job.friendly_name == wanted.full_name])
    old = kept or _latest(found)
    assert old is not None
    differ = []
    if kept is None:
        if old.query and old.query.strip() != wanted.query.strip():
            differ.append(Difference("query", old.query, wanted.query))
        if old.type and old.type.lower() != destinations.canonical_type(wanted.type):
            differ.append(Difference("destination", old.type, wanted.place))
        if not differ:  # a service does not show the rest
            before = split_name(old.friendly_name or "")[1]
            differ = [Difference("definition", before or "unknown", f"{wanted.hash} (end or parameters differ)")]
    elif again:
        differ = [Difference("launched", kept.id, "again, with the secrets of now")]
    if not _is_in(old, wanted.state):
        differ.append(Difference("state", STOPPED if wanted.state == RUNNING else RUNNING, wanted.state))
    if not again and kept is not None:
        differ += [
            Difference("another job of this name", f"{job.id} {shown(job)}", "removed")
            for job in found
            if job is not kept
        ]
    return differ


def exported(job: Job) -> dict[str, Any]:
    """A job as a file describes it, as far as a service shows it."""
    row = destinations.TYPES.get((job.type or "").lower())
    at = job.last_datetime
    values: dict[str, Any] = {
        "name": split_name(job.friendly_name or job.id)[0],
        "query": job.query,
        "from": at and datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "destination": {"type": row.name if row else job.type, "params": {}},
        "state": STOPPED if job.status == JobStatus.STOPPED else RUNNING,
    }
    return {key: value for key, value in values.items() if value}


def _is_applied(job: Job) -> bool:
    """Whether the name of a job has a hash, so that it was applied from a file."""
    return split_name(job.friendly_name or "")[1] is not None


def _is_in(job: Job, state: str) -> bool:
    """Whether a job needs no start or stop for a state; a completed one has nothing left to do."""
    return job.status == JobStatus.COMPLETED or (job.status == JobStatus.STOPPED) == (state == STOPPED)


def _latest(jobs: Jobs_) -> Job | None:
    """The job that runs, else the one that has read the most; of equal ones the last in the list."""
    return max(reversed(jobs), key=lambda job: (job.status == JobStatus.RUNNING, job.last_datetime or 0), default=None)


def _has_read(job: Job) -> bool:
    return bool(job.event_generated or job.events_sent)
