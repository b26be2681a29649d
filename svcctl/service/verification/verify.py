"""The check of a job and of the older jobs that it continues, and the results as JSON.

The oldest job is checked first. A check reads the database, the tables and the destination. A check does not count as a
query, and does not need the job's lease. A check covers the rows that were delivered before the check began. A service
runs at most MOST_CHECKS checks at once, and at most one check of each job.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

from svcctl.api import models
from svcctl.api.destinations import place_of_files, without_secrets
from svcctl.api.models import JobStatus
from svcctl.dates.epochs import from_ms, to_ms
from svcctl.dates.operators import moment_text
from svcctl.errors import Conflict, CredentialsError, ServiceError, SvcctlError, Unavailable
from svcctl.service.accounts.accounts import Account
from svcctl.service.engines import Engines
from svcctl.service.hosts.allowed_hosts import AllowedHosts
from svcctl.service.jobs import job_table, step_log
from svcctl.service.jobs.checkpoint import JobProgress
from svcctl.service.jobs.job_table import StoredJob
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.jobs.step_log import FileEntry
from svcctl.service.state.store import Store
from svcctl.service.verification import (
    GAPS,
    CheckProgress,
    CheckTally,
    DeliveredJob,
    DeliveryFinding,
    ExpectedRows,
    FaultKind,
    earliest,
)
from svcctl.service.verification.comparison import ExpectedCursor
from svcctl.service.verification.expected import Production
from svcctl.service.verification.findings import FaultLog

MOST_CHECKS = 2
"""The maximum number of checks that a service runs at the same time."""
VERIFIABLE = ("kafka", "s3", "hdfs")
"""The types of destinations that can be verified."""
COUNTS = {kind: "outOfOrder" if kind is FaultKind.OUT_OF_ORDER else str(kind) for kind in FaultKind}
"""The member names of a result, by kind of fault. Each member has the number of rows with this kind of fault."""

CheckDelivery = Callable[..., Iterator[DeliveryFinding | CheckProgress | CheckTally]]
"""A function like `check`, which compares the rows at a destination with the expected rows."""

_log = logging.getLogger("svcctl.service")


class Checks:
    """The checks that a service runs at present. Each check compares delivered rows with expected rows."""

    def __init__(self, store: Store, engines: Engines, jobs: Jobs, allowed: AllowedHosts, check: CheckDelivery) -> None:
        self.store = store
        self.engines = engines
        self.jobs = jobs
        self.allowed = allowed
        self.check = check
        self.executor = ThreadPoolExecutor(MOST_CHECKS, thread_name_prefix="verify")
        self._running: list[JobCheck] = []
        self._lock = threading.Lock()

    def begin(self, account: Account, job_id: str, since: int | None, *, keep: bool) -> JobCheck:
        """Begin the check of a job.

        Rows with a date before `since` (epoch milliseconds) may no longer be at the destination. If `keep` is true, the
        date is saved for later checks.

        Raises NotFound if the account has no such job. Raises ServiceError if the job cannot be verified. Raises
        Conflict if a check of this job is running, or if too many checks are running.
        """
        shown = self.jobs.get(account, job_id)  # before `job`, so that the progress of `job` covers its last date
        job = self.jobs.owned(account, job_id)
        if job.type not in VERIFIABLE or job.request is None:
            reason = f"the destination {job.type} keeps no rows" if job.request is not None else str(job.unreadable)
            raise ServiceError(
                f"job {job_id} cannot be verified: {reason}", code=400, reason="not-verifiable", data={"job": job_id}
            )
        check = JobCheck(self, job, shown, since, keep=keep)
        with self._lock:
            if any(check.jobs & other.jobs for other in self._running):
                raise Conflict(f"a check of job {job_id} is running", reason="job-in-check", data={"job": job_id})
            if len(self._running) >= MOST_CHECKS:
                raise Conflict(
                    f"{MOST_CHECKS} checks of jobs are running, which is the maximum",
                    hint="try again when one of them has ended",
                    reason="service-busy",
                )
            if keep and since is not None:
                job_table.set_dates(self.store, job_id, kept_from=since)
            self._running.append(check)
        return check

    def end(self, check: JobCheck) -> None:
        """Remove an ended check from the running checks."""
        with self._lock:
            self._running.remove(check)


class JobCheck:
    """A check of the rows that a job has delivered.

    Only one thread may iterate over `lines`. Any thread may call the other methods.
    """

    def __init__(self, checks: Checks, job: StoredJob, shown: models.Job, since: int | None, *, keep: bool) -> None:
        self._checks = checks
        self._up_to = {job.id: shown.last_datetime or 0}
        self._chain, self._notes = _chain(checks.store, job)
        kept_from = max((job.kept_from for job in self._chain if job.kept_from is not None), default=None)
        self._since = kept_from if since is None else since
        self._is_kept = keep or self._since == kept_from
        self.jobs = {job.id for job in self._chain}
        """The IDs of all jobs that the check covers."""
        self._stopped = threading.Event()
        self._production: Production | None = None
        self.progress: dict[str, Any] = {"job": self._chain[0].id, "rows": 0, "of": 0}
        """The progress of the job that is being checked.

        `job` is the ID of the job, `rows` is the number of rows compared so far, and `of` is the number of all rows.
        """
        self.lines = self._objects()
        """A generator of the findings, results and errors. A caller that stops early must close the generator."""

    def stop(self) -> None:
        """Ask the check to end soon. If the engine is just starting a statement, it may miss the call."""
        self._stopped.set()
        if (production := self._production) is not None:
            production.interrupt()

    def _objects(self) -> Generator[dict[str, Any], None, None]:
        gap: int | None = None
        job = self._chain[0]
        try:
            for job in self._chain:
                gap = earliest(gap, (yield from self._of_job(job, gap)))
        except Exception as error:
            if not self._stopped.is_set():
                yield {"error": _refusal(error, job)}

    def _of_job(self, job: StoredJob, gap_before: int | None) -> Generator[dict[str, Any], None, int | None]:
        """Yield the findings of a job, and then its result. Return the date of the first gap, in epoch milliseconds.

        A gap is a row that is missing, changed or out of order at the destination. `gap_before` is the date of the
        first gap in the older jobs. For a gap without a known date, the date is 0.
        """
        store, delivered, whole = self._checks.store, *delivered_by(self._checks.store, job)
        production = Production(
            self._checks.engines, job.rest, delivered.first, delivered.sent, whole, self._stopped.is_set
        )
        delivered = replace(delivered, since=self._since, header=production.header())
        self._production, tally = production, CheckTally()
        self.progress = {"job": job.id, "rows": 0, "of": delivered.sent - delivered.first}
        expected = production.rows(step_log.steps(store, job.id, delivered.sent))
        items = self._checks.check(delivered, expected, allowed=self._checks.allowed, stopped=self._stopped.is_set)
        for item in items:
            match item:
                case CheckProgress(rows):
                    self.progress = self.progress | {"rows": rows}
                case CheckTally():
                    tally = item
                case DeliveryFinding():
                    yield {"finding": _finding(job, item)}
        if self._stopped.is_set():
            return None
        for fault in production.faults:
            count = fault.end - fault.first
            tally.add(fault.kind, count, fault.from_ms)
            if fault.kind is FaultKind.FOREIGN:  # these rows were also counted as not reproducible
                tally.not_reproducible = max(0, tally.not_reproducible - count)
            yield {"finding": _finding(job, fault)}
        reached = max(self._up_to.get(job.id, job.progress.last_datetime), tally.last_date or 0)
        verified = self._remember(job, delivered, tally, gap_before, reached)
        notes = [*self._notes, *_log_notes(delivered, production.first_date), *tally.notes]
        self._notes = []
        yield {"result": _result(job, tally, reached, verified, notes)}
        return 0 if _has_undated_gap(tally) else tally.gap_from

    def _remember(
        self, job: StoredJob, delivered: DeliveredJob, tally: CheckTally, gap_before: int | None, reached: int
    ) -> int | None:
        """Save the date up to which a job is verified, and return this date.

        `reached` is the date up to which rows were checked. A gap is a row that is missing, changed or out of order.
        There are three cases:
        - Without a gap, the job is verified up to `reached`, or up to the date of an earlier check if that date is
          later.
        - With a gap, the job is verified up to the moment before the first gap.
        - With a gap without a known date, the job is verified up to the beginning of its range.
        """
        gap = earliest(gap_before, tally.gap_from, tally.hidden_from)
        # If `since` is only for this check, older rows that no check has found before do not count as verified.
        excused = tally.no_longer_there > 0 and not self._is_kept and (job.verified or 0) < (self._since or 0)
        if delivered.first == delivered.sent > 0:
            return job.verified
        if gap_before == 0 or _has_undated_gap(tally):
            start = to_ms(job.rest.request.asked.range.start)
            verified = min(start, job.verified or start)
        elif gap is None:
            verified = job.verified or 0 if excused else max(job.verified or 0, reached)
        else:
            verified = min(gap - 1, reached, *([job.verified or 0] if excused else []))
        if verified <= 0:
            return job.verified
        if verified != job.verified:
            job_table.set_dates(self._checks.store, job.id, verified=verified)
        return verified


def _has_undated_gap(tally: CheckTally) -> bool:
    """Whether a check has found a gap without a known date. A gap is a row that is missing, changed or out of order."""
    return any(tally.counts[kind] for kind in GAPS) and not tally.gap_from


def check(
    job: DeliveredJob, expected: Iterable[ExpectedRows], *, allowed: AllowedHosts, stopped: Callable[[], bool]
) -> Iterator[DeliveryFinding | CheckProgress | CheckTally]:
    """Compare the rows at a job's destination with the expected rows. The destination is Kafka, S3 or HDFS.

    The last yielded item is a CheckTally with the figures of the check. If `stopped` returns True, the iterator ends
    soon, without a CheckTally. Raises Unavailable if the destination does not answer or is not an allowed host. Raises
    CredentialsError if the destination denies access.
    """
    if job.type == "kafka":
        from svcctl.service.verification.kafka_topic import check_topic as compare
    else:
        from svcctl.service.verification.stored_files import check_files as compare
    cursor = ExpectedCursor(expected, job.first, job.sent, job.since)
    log = FaultLog(cursor)
    with closing(compare(job, cursor, log, allowed, stopped)) as steps:
        try:
            for _ in steps:
                yield from log.ready()
                yield CheckProgress(cursor.row - job.first)
                if stopped():
                    return
        except SvcctlError:
            if stopped():
                return
            raise
    yield from log.rest()
    log.tally.rows, log.tally.last_date = job.sent - job.first, cursor.last_date or None
    yield log.tally


def _chain(store: Store, job: StoredJob) -> tuple[list[StoredJob], list[str]]:
    """Return a job and the older jobs that it continues, the oldest first. Also return notes for the user.

    A note names an older job that cannot be verified. The list then begins after that job.
    """
    chain, notes = [job], list[str]()
    while (before := chain[0].continues) is not None:
        older = next(iter(job_table.logged(store, before)), None)
        if older is None or older.request is None or older.type not in VERIFIABLE:
            why = "was removed" if older is None else "cannot be verified"
            notes.append(f"job {before}, which job {chain[0].id} continues, {why}")
            break
        chain.insert(0, older)
    return chain, notes


def delivered_by(store: Store, job: StoredJob) -> tuple[DeliveredJob, bool]:
    """Return the rows of a job that can be checked, and whether the last query step with rows is complete.

    A step is complete if all of its rows were delivered.
    """
    progress, running = _progress(store, job)
    sent, memo = progress.sent, progress.checkpoint.memo
    last = step_log.last(store, job.id)
    ended = not running and last is not None and last.step is None and last.first >= sent
    if ended and last is not None:
        sent, memo = last.first, {**memo, "offset": last.offset}
    steps = step_log.steps(store, job.id, sent)
    first = next((entry.first for entry in steps if entry.step is not None), sent)
    files = step_log.files(store, job.id)
    if job.type != "kafka":
        first = max(first, files[0].first if files else sent)
    checked = [file for file in files if first <= file.first < sent]
    offsets = step_log.offsets(store, job.id, sent)

    def goes_on() -> bool:
        """Whether the job may have delivered more rows since its progress was read.

        This is true if the job was running at that time, if it is running now, or if it has saved more rows.
        """
        now = job_table.get(store, job.id)
        latest, runs = (progress, False) if now is None else _progress(store, now)
        return running or runs or latest.sent > sent

    delivered = DeliveredJob(
        job_id=job.id,
        type=job.type,
        params=job.params,
        sent=sent,
        first=first,
        partition=memo.get("partition"),
        offset=memo.get("offset"),
        offsets=offsets,
        files=checked,
        running=goes_on,
        expected_hashes=partial(_expected_hashes, store, job, frozenset(checked)),
        since=None,
    )
    last = step_log.last(store, job.id, sent)  # leaves out steps that began after the progress was read
    in_last_step = last is None or progress.checkpoint.step == last.step  # then more rows of this step may follow
    return delivered, ended or job.status is JobStatus.COMPLETED or not in_last_step


def _progress(store: Store, job: StoredJob) -> tuple[JobProgress, bool]:
    """Return the progress of a job, and whether rows of the job are being delivered.

    A newer job that continues this job may deliver the rest of this job's rows. The progress then includes these rows.
    """
    progress, running = job.progress, job.status is JobStatus.RUNNING
    for other in job_table.owned(store, job.owner):  # a job that continues this job delivers its last rows
        rest = other.progress.before
        if rest is not None and rest.job_id == job.id and rest.progress.sent >= progress.sent:
            progress, running = rest.progress, other.status is JobStatus.RUNNING
    return progress, running


def _expected_hashes(store: Store, job: StoredJob, checked: Collection[FileEntry]) -> dict[int, set[str]]:
    """Return the hashes of the files of all jobs that deliver to the same place as `job`.

    The files of `job` that are in `checked` are left out. The result maps the number of a file to the hashes that the
    file can have. Files that are about to be completed are included.
    """
    place = job.type, place_of_files(job.type, job.params, job.id)
    hashes: defaultdict[int, set[str]] = defaultdict(set)
    for other in job_table.logged(store):
        if (other.type, place_of_files(other.type, other.params, other.id)) == place:
            for file in step_log.files(store, other.id):
                if other.id != job.id or file not in checked:
                    hashes[file.number].update(file.sha256)
        for rest in filter(None, (None if other.request is None else other.rest, other.progress.before)):
            checkpoint = rest.progress.checkpoint
            if checkpoint.batch and (rest.type, place_of_files(rest.type, rest.params, rest.job_id)) == place:
                hashes[checkpoint.memo["parts"]].update(checkpoint.memo.get("sha256", ()))
    return hashes


def _log_notes(delivered: DeliveredJob, date: int | None) -> list[str]:
    """Return a note if the job has delivered rows before its log began. `date` is the date of the first logged row."""
    if delivered.first == 0:
        return []
    if delivered.first == delivered.sent:
        return [f"the job is older than its log: its {delivered.sent:,} rows cannot be verified"]
    since = "" if date is None else f", of {moment_text(from_ms(date))}"
    return [f"the job is older than its log, which begins with row {delivered.first}{since}"]


def _finding(job: StoredJob, finding: DeliveryFinding) -> dict[str, Any]:
    members: dict[str, Any] = {
        "job": job.id,
        "kind": str(finding.kind),
        "rows": [finding.first, finding.end - 1] if finding.end > finding.first else None,
        "count": finding.end - finding.first or None,
        "partition": finding.partition,
        "offset": finding.offset,
        "file": finding.file,
        "from": finding.from_ms,
        "to": finding.to_ms,
    }
    if finding.kind in GAPS:
        start, end = job.rest.request.asked.range
        members["query"], members["range"] = job.query, [to_ms(start), None if end is None else to_ms(end)]
    return {name: value for name, value in members.items() if value is not None}


def _result(job: StoredJob, tally: CheckTally, up_to: int, verified: int | None, notes: list[str]) -> dict[str, Any]:
    return {
        "job": job.id,
        "name": job.friendly_name,
        "rows": tally.rows,
        "upTo": up_to,
        **{name: tally.counts[kind] for kind, name in COUNTS.items()},
        "noLongerThere": tally.no_longer_there,
        "notReproducible": tally.not_reproducible,
        "notYet": tally.not_yet,
        "hidden": tally.hidden,
        "verified": verified,
        "notes": notes,
    }


def _refusal(error: Exception, job: StoredJob) -> Mapping[str, Any]:
    """Return the error that ends a check, as JSON. If the error is a defect of the service, log its traceback."""
    if not isinstance(error, SvcctlError):
        _log.error("the check of job %s failed", job.id, exc_info=error)
        message = "the service failed on this check; its log has the reason"
        error = ServiceError(message, code=500, reason="internal-error")
    status = error.code if isinstance(error, ServiceError) else None
    if isinstance(error, CredentialsError | Unavailable):
        status = 403 if isinstance(error, CredentialsError) else 503
    message = without_secrets(error.message, job.params)
    return {"status": status or 400, "reason": error.reason, "message": message}
