"""Jobs of several service processes on one state: each runs in one of them, and none is lost with it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

import pytest
from peers.postgresql import PASSWORD, PostgreSQLPeer
from support.stored_queries import stored_query
from support.waiting import eventually

from svcctl.api.models import JobStatus
from svcctl.service.accounts import domains, users
from svcctl.service.accounts.accounts import Account
from svcctl.service.jobs import job_table, jobs
from svcctl.service.jobs.checkpoint import Checkpoint, JobProgress
from svcctl.service.jobs.job_table import StoredJob
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.jobs.leases import Term
from svcctl.service.jobs.runner import Fenced, JobRun
from svcctl.service.state.database import STATE_AWAY, STATE_READ_ONLY, StateUnavailable
from svcctl.service.state.postgresql import PostgreSQL
from svcctl.service.state.store import Store

ME = Account("key", "secret", None, "local", administrator=True, domain_id=1)
TERM = Term(seconds=1.0, renewal=0.2)


class Process:
    """What a service process does with jobs: it looks after them again and again, until it is suspended."""

    def __init__(self, url: str, place: str) -> None:
        self.url = url
        self.store = Store(PostgreSQL(url, password=PASSWORD))
        self.jobs = Jobs(self.store, self._deliver, place=place, term=TERM)
        self.runs: list[JobRun] = []
        self.suspended = threading.Event()
        self.ending = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        while not self.ending.wait(0.05):
            if not self.suspended.is_set():
                with suppress(StateUnavailable):
                    self.jobs.renew()
                    self.jobs.settle()

    def _deliver(self, job: StoredJob, run: JobRun) -> bool:
        """Deliver a row each time until the run is stopped; a suspended process delivers nothing and hears nothing."""
        self.runs.append(run)
        sent = job.progress.sent
        while not run.stopping.wait(0.02):
            while self.suspended.is_set():
                time.sleep(0.01)
            run.check()
            sent += 1
            run.generated = sent
            run.save(JobProgress(sent, sent, Checkpoint()))
        return False

    def running(self) -> set[str]:
        """The jobs that this process delivers; a job that it has leased is not among them before the first delivery."""
        current = self.jobs.runs
        return {run.job_id for run in self.runs if current.get(run.job_id) is run and not run.stopping.is_set()}

    def close(self) -> None:
        self.suspended.clear()
        self.ending.set()
        self._thread.join()
        self.jobs.close()
        self.store.close()


@pytest.fixture
def processes(postgresql_peer: PostgreSQLPeer) -> Iterator[list[Process]]:
    """Two processes with different events of their own, and short leases."""
    url = postgresql_peer.fresh_database()
    with ExitStack() as stack:
        found = [stack.enter_context(closing(Process(url, place))) for place in ("a", "b")]
        domains.put_provider_domain(found[0].store, "local")
        users.assign(found[0].store, "local", "owner@local", users.OWNER)
        yield found


def launched(process: Process, *, everywhere: bool = True) -> str:
    return process.jobs.launch(ME, type="donothing", request=stored_query(), params={}, everywhere=everywhere).id


def sent(process: Process, job_id: str) -> int:
    return process.jobs.get(ME, job_id).events_sent or 0


def runner(processes: list[Process], job_id: str) -> tuple[Process, Process]:
    """The process that runs a job, and the other one."""
    eventually(lambda: any(job_id in process.running() for process in processes))
    first, second = sorted(processes, key=lambda process: job_id not in process.running())
    return first, second


def test_a_job_runs_in_one_process_and_every_process_operates_it(processes: list[Process]) -> None:
    job_id = launched(processes[0])
    here, there = runner(processes, job_id)
    eventually(lambda: sent(there, job_id) > 3)
    assert len([run for process in processes for run in process.runs]) == 1
    stopped = there.jobs.stop(ME, job_id)
    assert stopped.status is JobStatus.STOPPED
    eventually(lambda: here.running() == set())
    assert here.jobs.get(ME, job_id) == stopped
    assert there.jobs.start(ME, job_id).status is JobStatus.RUNNING
    here, there = runner(processes, job_id)
    assert there.jobs.remove(ME, job_id).status is JobStatus.REMOVED
    eventually(lambda: not here.running() and here.jobs.listed(ME) == [])


def test_a_suspended_process_loses_its_jobs_and_delivers_nothing_more(processes: list[Process]) -> None:
    job_id = launched(processes[0])
    here, there = runner(processes, job_id)
    here.suspended.set()
    since = time.monotonic()
    eventually(lambda: job_id in there.running())
    assert time.monotonic() - since < 5
    [old] = here.runs
    with pytest.raises(Fenced):  # its own clock tells it, before it has asked anybody
        old.check()
    old.until = float("inf")
    with pytest.raises(Fenced):  # and the state, in any case
        old.save(JobProgress(1_000_000))
    here.suspended.clear()
    assert old.ended.wait(10)
    job = job_table.get(there.store, job_id)
    assert job is not None
    assert (job.fence, job.status, job.error) == (old.token + 1, JobStatus.RUNNING, ())
    assert job.progress.sent < 1_000_000


def test_a_process_that_ends_gives_its_jobs_away_at_once(processes: list[Process]) -> None:
    job_id = launched(processes[0])
    here, there = runner(processes, job_id)
    here.ending.set()
    here.jobs.close()
    job = job_table.get(there.store, job_id)
    assert job is not None
    assert job.free or job_id in there.running()
    eventually(lambda: job_id in there.running(), seconds=TERM.seconds * 0.9)


def test_a_job_on_events_of_one_process_is_left_to_it(processes: list[Process]) -> None:
    here, there = processes
    job_id = launched(there, everywhere=False)
    eventually(lambda: job_id in there.running())
    there.suspended.set()
    time.sleep(TERM.seconds * 1.5)  # that nothing happens shows only after a time
    assert here.running() == set()
    there.suspended.clear()
    eventually(lambda: job_id in there.running())


def test_a_stop_does_not_wait_for_a_process_that_is_suspended(processes: list[Process]) -> None:
    job_id = launched(processes[0])
    here, there = runner(processes, job_id)
    here.suspended.set()
    since = time.monotonic()
    stopped = there.jobs.stop(ME, job_id)
    assert time.monotonic() - since < jobs.ELSEWHERE_SECONDS + 3
    assert (left := job_table.get(there.store, job_id)) is not None
    assert left.fence > here.runs[-1].token, "it could renew its lease when it wakes up, and deliver more"
    here.suspended.clear()
    eventually(lambda: here.running() == set())
    assert there.jobs.get(ME, job_id) == stopped


@pytest.mark.slow
def test_jobs_wait_for_a_state_that_is_away_and_go_on_with_it(
    processes: list[Process], postgresql_peer: PostgreSQLPeer
) -> None:
    job_id = launched(processes[0])
    here, there = runner(processes, job_id)
    eventually(lambda: sent(there, job_id) > 3)
    [run] = here.runs
    with postgresql_peer.down():
        with pytest.raises(StateUnavailable):
            sent(there, job_id)
        eventually(lambda: run.error == (STATE_AWAY.message,))
        time.sleep(TERM.seconds * 1.2)  # its lease ends, and its thread does not
        assert run.thread.is_alive()
    eventually(lambda: answers(there))
    before = sent(there, job_id)
    eventually(lambda: sent(there, job_id) > before)
    eventually(lambda: answers(here))  # its next request may meet a connection from before
    eventually(lambda: here.jobs.get(ME, job_id).error == ())


@pytest.mark.slow
def test_jobs_go_on_when_a_server_that_takes_no_writes_takes_them_again(
    processes: list[Process], postgresql_peer: PostgreSQLPeer
) -> None:
    job_id = launched(processes[0])
    here, there = runner(processes, job_id)
    eventually(lambda: sent(there, job_id) > 3)
    read_only_is(postgresql_peer, here.url, "on")
    for process in processes:
        eventually(lambda: process.jobs.get(ME, job_id).error == (STATE_READ_ONLY.message,))  # noqa: B023
    before = there.jobs.get(ME, job_id)
    read_only_is(postgresql_peer, here.url, "off")
    eventually(lambda: sent(there, job_id) > (before.events_sent or 0))
    eventually(lambda: here.jobs.get(ME, job_id).error == ())
    assert before.status is JobStatus.RUNNING


def answers(process: Process) -> bool:
    with suppress(StateUnavailable):
        process.store.check()
        return True
    return False


def read_only_is(peer: PostgreSQLPeer, url: str, word: str) -> None:
    """Set whether a database takes writes, and end its sessions, as a server does that becomes a replica."""
    name = url.rpartition("/")[2]
    with peer.connection() as connection:
        connection.execute(f"alter database {name} set default_transaction_read_only = {word}")
        connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", (name,))
