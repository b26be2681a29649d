"""Two services for `svcctl job`: one in this process with four jobs, and one that a test scripts.

The jobs of the first one run in this process. Their delivery is scripted: a kafka job never reaches its broker, and a
job named `done` has delivered all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from subprocess import CompletedProcess

import pytest
from support.jobs import COMPLETED, NIGHTLY, OTHER, REFUSED, STOPPED
from support.reseller import KEY, SECRET, Machine, Reseller, command_line
from support.scripted import Serve, http
from support.shells import Shell
from support.stored_queries import stored_query

from svcctl.api.models import JobStatus
from svcctl.service.accounts import accounts, seed
from svcctl.service.accounts.accounts import Account
from svcctl.service.jobs import job_table
from svcctl.service.jobs.checkpoint import JobProgress
from svcctl.service.jobs.job_table import StoredJob
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.jobs.runner import JobRun
from svcctl.service.state.store import Store

ACCOUNT = Account(KEY, SECRET, None, "", reseller=seed.RESELLER)


class Deliveries:
    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)

    def __call__(self, job: StoredJob, run: JobRun) -> bool:
        done = job.friendly_name == "done"
        if done:
            run.save(JobProgress(4, 1_706_745_600_000))
        elif job.type == "kafka":
            run.trouble(REFUSED)
        self.begun.release()
        return done or not run.stopping.wait()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    directory = tmp_path_factory.mktemp("jobs")
    store = Store(directory / "state.db")
    accounts.put(store, ACCOUNT)
    yield Machine(store, directory)
    store.close()


@pytest.fixture
def job(place: Machine, capsys: pytest.CaptureFixture[str]) -> Iterator[Reseller]:
    """Runs `svcctl job` where one job is failing, one runs, one is stopped and one is complete."""
    for job_id, status, type_, name in (
        (COMPLETED, JobStatus.COMPLETED, "donothing", "done"),
        (OTHER, JobStatus.RUNNING, "donothing", "other"),
        (STOPPED, JobStatus.STOPPED, "donothing", "resting"),
        (NIGHTLY, JobStatus.RUNNING, "kafka", "nightly"),
    ):
        job_table.add(place.store, StoredJob(job_id, ACCOUNT.owner, status, type_, name, "from t", stored_query(), {}))
    deliveries = Deliveries()
    jobs = Jobs(place.store, deliveries)
    jobs.settle()
    for _ in range(2):
        assert deliveries.begun.acquire(timeout=10)
    run = command_line(place, capsys, jobs)
    yield lambda *arguments, **options: run("job", *arguments, **options)
    jobs.close()
    for stored in job_table.owned(place.store, ACCOUNT.owner):
        job_table.remove(place.store, stored.id)


@pytest.fixture
def scripted(serve: Serve, shell: Shell) -> Callable[..., CompletedProcess[str]]:
    """Runs `svcctl job` against a service that answers each request alike."""

    def run(*arguments: str, status: int, body: str, type: str = "application/json") -> CompletedProcess[str]:
        answer = http(f"{status} Scripted", body, f"Content-Type: {type}")
        return shell("job", *arguments, **serve(answer).access)

    return run
