"""The states of jobs and the operations that move them, against the interface's own table."""

from __future__ import annotations

import os
import re
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from sqlalchemy import select
from support.state import FAILURES, read_only
from support.stored_queries import FIRST_MS, stored_query

from svcctl.api import models
from svcctl.api.models import DomainStatus, JobStatus
from svcctl.dates.epochs import from_ms
from svcctl.errors import Conflict, NotFound, ServiceError, Unavailable
from svcctl.service.accounts import accounts, domains, price_plans, users
from svcctl.service.accounts.accounts import Account
from svcctl.service.jobs import job_table, jobs
from svcctl.service.jobs.checkpoint import Checkpoint, JobProgress
from svcctl.service.jobs.job_table import StoredJob
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.jobs.runner import JobRun
from svcctl.service.state import schema
from svcctl.service.state.database import StateUnavailable
from svcctl.service.state.sqlite import SQLite
from svcctl.service.state.store import Store

ME = Account("key", "secret", None, "local", administrator=True, domain_id=1)
COLLEAGUE = Account("other key", "secret", None, "local", domain_id=1)
STRANGER = Account("third key", "secret", None, "elsewhere", domain_id=2)
RESELLER = Account("fourth key", "secret", None, "", reseller="north")
PROCESS = f"{socket.gethostname()}/{os.getpid()}"
SECRET = "5ecr3t-of-the-destination"


class Work:
    """Deliveries that continue until the test ends them; `alive` is false for those of a service that was killed."""

    def __init__(self) -> None:
        self.orders: dict[str, threading.Event] = {}
        self.begun = threading.Semaphore(0)
        self.alive = True

    def __call__(self, job: StoredJob, run: JobRun) -> bool:
        order = self.orders.setdefault(job.id, threading.Event())
        self.begun.release()
        while not run.stopping.is_set():
            if order.wait(0.001):
                run.save(JobProgress(job.progress.sent + 10, 5, Checkpoint()))
                return True
        if self.alive:
            run.save(JobProgress(job.progress.sent + 1, 4, Checkpoint()))
        return False


HINT = "stop or remove one"


def launch(jobs: Jobs, account: Account = ME, params: Mapping[str, str] | None = None) -> str:
    return jobs.launch(account, type="donothing", request=stored_query(), params=params or {}).id


def opened(directory: Path) -> Store:
    """A store with the domains of the accounts."""
    store = Store(directory / "state.db")
    for name in ("local", "elsewhere"):
        domains.put_provider_domain(store, name)
        users.assign(store, name, f"owner@{name}", users.OWNER)
    return store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = opened(tmp_path)
    yield store
    store.close()


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def mine(store: Store, work: Work) -> Iterator[Jobs]:
    mine = Jobs(store, work)
    yield mine
    mine.close()


def ended(jobs: Jobs, job_id: str) -> models.Job:
    """The job when its thread is through."""
    run = jobs.runs.get(job_id)
    if run is not None:
        assert run.ended.wait(10)
    return jobs.get(ME, job_id)


def awaited(jobs: Jobs, job_id: str, happens: Callable[[models.Job], bool]) -> models.Job:
    """The job as soon as this is so."""
    deadline = time.monotonic() + 10
    while not happens(job := jobs.get(ME, job_id)):
        assert time.monotonic() < deadline, job
        time.sleep(0.01)
    return job


def refusal(act: Callable[[], object]) -> tuple[str, int | None]:
    with pytest.raises(ServiceError) as caught:
        act()
    return type(caught.value).__name__, caught.value.code


def test_a_new_job_is_running_and_named_after_its_type(mine: Jobs) -> None:
    job = mine.get(ME, launch(mine))
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", job.id)
    assert re.fullmatch(r"donothing_[a-z0-9]{8}", job.friendly_name or "")
    assert job.to_json() | {"id": "", "friendlyName": ""} == {
        "id": "",
        "from": FIRST_MS,
        "launched": FIRST_MS,
        "process": PROCESS,
        "params": {},
        "status": "RUNNING",
        "type": "donothing",
        "friendlyName": "",
        "query": "from t",
        "eventGenerated": 0,
        "eventsSent": 0,
        "lastDatetime": 0,
        "error": [],
    }


def test_a_job_may_be_given_its_name(mine: Jobs) -> None:
    assert mine.get(ME, launch(mine, params={"friendlyName": "nightly"})).friendly_name == "nightly"


def test_no_answer_holds_a_parameter(mine: Jobs, store: Store) -> None:
    job_id = launch(mine, params={"aws.secretkey": SECRET})
    shown = [mine.get(ME, job_id), *mine.listed(ME), mine.stop(ME, job_id), mine.start(ME, job_id)]
    shown += [mine.remove(ME, job_id)]
    assert SECRET not in repr(shown)
    assert SECRET not in repr([job.to_json() for job in shown])
    assert SECRET not in repr(job_table.get(store, job_id))
    job_id = launch(mine, params={"aws.secretkey": SECRET})
    assert SECRET not in repr(job_table.get(store, job_id))


def test_the_password_of_a_url_among_the_parameters_is_masked(mine: Jobs) -> None:
    params = {"aws.bucket": "b", "aws.endpoint": f"https://user:{SECRET}@minio:9000"}
    job = mine.launch(ME, type="s3", request=stored_query(), params=params)
    assert job.extra["params"] == params | {"aws.endpoint": "https://****@minio:9000"}


def test_what_is_removed_is_forgotten_with_its_secrets(mine: Jobs, store: Store, tmp_path: Path) -> None:
    mine.remove(ME, launch(mine, params={"aws.secretkey": SECRET}))
    with store.reading() as connection:
        assert connection.execute(select(schema.jobs)).all() == []


def test_the_file_of_secrets_is_its_owners_alone(mine: Jobs, tmp_path: Path) -> None:
    launch(mine)
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.glob("state.db")} == {"state.db": "0o600"}


def test_jobs_are_those_of_the_domain(mine: Jobs) -> None:
    first, second = launch(mine), launch(mine, COLLEAGUE)
    launch(mine, STRANGER)
    assert [job.id for job in mine.listed(ME)] == [first, second]
    assert mine.stop(ME, second).status == "STOPPED"
    assert refusal(lambda: mine.get(STRANGER, first)) == ("NotFound", 100)
    assert refusal(lambda: mine.remove(STRANGER, first)) == ("NotFound", 100)


def test_a_stopped_job_has_delivered_its_rows_and_resumes_from_there(mine: Jobs, work: Work) -> None:
    job_id = launch(mine)
    work.begun.acquire()
    stopped = mine.stop(ME, job_id)
    assert (stopped.status, stopped.events_sent, stopped.event_generated, stopped.last_datetime) == ("STOPPED", 1, 1, 4)
    started = mine.start(ME, job_id)
    assert (started.status, started.events_sent) == ("RUNNING", 1)


def test_a_complete_job_has_sent_all_it_generated(mine: Jobs, work: Work) -> None:
    job_id = launch(mine)
    work.begun.acquire()
    work.orders[job_id].set()
    job = ended(mine, job_id)
    assert (job.status, job.events_sent, job.event_generated, job.last_datetime) == ("COMPLETED", 10, 10, 5)


def test_a_query_that_fails_stops_its_job_with_the_reason(store: Store) -> None:
    def fail(job: StoredJob, run: JobRun) -> bool:
        raise ServiceError("no table 't'")

    jobs = Jobs(store, fail)
    job = ended(jobs, launch(jobs))
    assert (job.status, job.error) == ("STOPPED", ("no table 't'",))


def test_a_job_whose_events_are_away_waits_for_them(store: Store) -> None:
    away = [True]

    def read(job: StoredJob, run: JobRun) -> bool:
        if away:
            raise Unavailable("hdfs://namenode/events: nobody answers")
        return True

    mine = Jobs(store, read)
    job_id = launch(mine)
    job = awaited(mine, job_id, lambda job: bool(job.error))
    assert (job.status, job.error) == ("RUNNING", ("hdfs://namenode/events: nobody answers",))
    away.clear()
    assert ended(mine, job.id).status == "COMPLETED"
    mine.close()


def test_a_job_says_since_when_it_fails_when_it_delivered_and_where_it_runs(store: Store) -> None:
    looks: list[Mapping[str, Any]] = []

    def deliver(job: StoredJob, run: JobRun) -> bool:
        steps: tuple[Callable[[], None], ...] = (
            lambda: run.trouble("no broker"),
            lambda: run.trouble("no topic"),
            lambda: run.save(JobProgress(3, 5)),
            lambda: run.save(JobProgress(3, 6)),
            lambda: run.trouble("no broker again"),
        )
        for step in steps:
            step()
            looks.append(service.get(ME, job.id).extra)
            time.sleep(0.002)  # its moments differ from those of the next
        return True

    service = Jobs(store, deliver)
    before = int(time.time() * 1000)
    query = stored_query(launched=from_ms(before))
    launched = service.launch(ME, type="kafka", request=query, params={})
    done = ended(service, launched.id)
    service.close()
    first, second, third, fourth, fifth = looks
    assert first == second
    members = {"from": FIRST_MS, "params": {}, "launched": before}
    assert first == members | {"process": PROCESS, "failingSince": first["failingSince"]}
    assert third == members | {"process": PROCESS, "lastDelivered": third["lastDelivered"]}
    assert fourth == third
    assert done.extra == members | {"lastDelivered": third["lastDelivered"]}
    moments = [before, first["failingSince"], third["lastDelivered"], fifth["failingSince"]]
    assert moments == sorted(moments)
    assert len({*moments[1:]}) == 3


def test_a_defect_stops_its_job_and_says_no_more_than_where_to_look(store: Store) -> None:
    def fail(job: StoredJob, run: JobRun) -> bool:
        raise KeyError(SECRET)

    jobs = Jobs(store, fail)
    job = ended(jobs, launch(jobs))
    assert (job.status, job.error) == ("STOPPED", ("the service failed on this job; its log has the reason",))


def test_no_more_than_so_many_run_at_once(store: Store, work: Work) -> None:
    mine = Jobs(store, work, share=2)
    running = [launch(mine), launch(mine)]
    assert refusal(lambda: launch(mine)) == ("Conflict", 101)
    mine.stop(ME, running[0])
    another = launch(mine)
    assert refusal(lambda: mine.start(ME, running[0])) == ("Conflict", 101)
    mine.remove(ME, another)
    assert mine.start(ME, running[0]).status == "RUNNING"
    mine.close()


def test_a_start_of_a_completed_job_changes_nothing_and_needs_no_room(store: Store, work: Work) -> None:
    mine = Jobs(store, work, share=1)
    done = launch(mine)
    work.orders.setdefault(done, threading.Event()).set()
    assert ended(mine, done).status == "COMPLETED"
    launch(mine)
    assert mine.start(ME, done).status == "COMPLETED"
    mine.close()


def test_each_domain_has_a_share_of_the_jobs_and_all_together_a_maximum(store: Store, work: Work) -> None:
    mine = Jobs(store, work, share=2, total=3)
    first, _, theirs = launch(mine), launch(mine), launch(mine, STRANGER)
    for account, message, hint in (
        (ME, "no more jobs can run in this domain: 2 are running, and the limit is 2", HINT),
        (
            RESELLER,
            "the service already runs 3 jobs of all its domains, which is the maximum",
            "try again when some of them have ended",
        ),
    ):
        with pytest.raises(Conflict) as caught:
            launch(mine, account)
        assert (caught.value.message, caught.value.hint, caught.value.code) == (message, hint, 101)
    mine.stop(ME, first)
    launch(mine, RESELLER)
    assert refusal(lambda: launch(mine)) == ("Conflict", 101)
    mine.stop(STRANGER, theirs)
    launch(mine)
    mine.close()


def test_a_job_that_continues_a_running_one_takes_its_place_when_more_run_than_the_limit(
    store: Store, work: Work
) -> None:
    before = Jobs(store, work)
    first, _, _ = (launch(before) for _ in range(3))
    before.close()
    mine = Jobs(store, work, share=1)
    with pytest.raises(Conflict, match=r": 3 are running, and the limit is 1$"):
        launch(mine)
    assert mine.launch(ME, type="donothing", request=stored_query(continues=first), params={}).status == "RUNNING"
    mine.close()


# A state that fails


def deliver_rows(job: StoredJob, run: JobRun) -> bool:
    """Deliver a row each time until the run is stopped, with checkpoints that grow."""
    sent = job.progress.sent
    while not run.stopping.wait(0.01):
        sent += 1
        run.save(JobProgress(sent, sent, Checkpoint(memo={"text": "x" * 4096 * sent})))
    return False


def test_of_jobs_that_are_launched_together_to_continue_one_another_only_one_is_stored(mine: Jobs) -> None:
    first = launch(mine)
    asked = stored_query(continues=first)
    actions = [
        *[lambda: mine.launch(ME, type="donothing", request=asked, params={}).id] * 4,
        *[lambda: mine.start(ME, first).id] * 2,
    ]
    with ThreadPoolExecutor(len(actions)) as pool:
        outcomes = [attempt.exception() for attempt in [pool.submit(action) for action in actions]]
    running = [job.id for job in mine.listed(ME) if job.status == "RUNNING"]
    assert len(running) == 1
    assert {type(outcome) for outcome in outcomes} <= {Conflict, type(None)}


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[Store]:
    """A store that does not wait long for other processes."""
    opened(tmp_path).close()
    store = Store(SQLite(tmp_path / "state.db", lock_seconds=0.05))
    yield store
    store.close()


@pytest.mark.parametrize("name", FAILURES)
def test_a_job_goes_on_by_itself_in_its_thread_after_each_failure_of_its_state(hasty: Store, name: str) -> None:
    failing, failure = FAILURES[name]
    mine = Jobs(hasty, deliver_rows)
    job_id = launch(mine)
    awaited(mine, job_id, lambda job: (job.events_sent or 0) > 1)
    run = mine.runs[job_id]
    with failing(hasty):
        job = awaited(mine, job_id, lambda job: bool(job.error))
        assert (job.status, job.error) == ("RUNNING", (failure.message,))
        assert abs(time.time() * 1000 - job.extra["failingSince"]) < 60_000
        with pytest.raises(StateUnavailable) as caught:
            mine.launch(ME, type="donothing", request=stored_query("x" * 100_000), params={})
        assert caught.value.failure is failure
    after = awaited(mine, job_id, lambda now: not now.error and (now.events_sent or 0) > (job.events_sent or 0))
    assert (after.status, after.extra.get("failingSince"), mine.runs[job_id]) == ("RUNNING", None, run)
    assert mine.stop(ME, job_id).status == "STOPPED"
    mine.close()


def test_a_job_that_ends_while_its_state_cannot_be_written_is_ended_later(store: Store) -> None:
    may_end = threading.Event()

    def fail(job: StoredJob, run: JobRun) -> bool:
        may_end.wait(10)
        raise ServiceError("no table 't'")

    mine = Jobs(store, fail)
    job_id = launch(mine)
    with read_only(store):
        may_end.set()
        assert awaited(mine, job_id, lambda job: bool(job.error)).status == "RUNNING"
    job = awaited(mine, job_id, lambda job: job.status == "STOPPED")
    mine.close()  # its thread still gives its lease back
    assert job.error == ("no table 't'",)


def test_a_job_that_no_process_can_lease_says_why_until_one_can(store: Store, work: Work) -> None:
    before = Jobs(store, work)
    job_id = launch(before)
    before.close()
    after = Jobs(store, work)
    with read_only(store):
        with pytest.raises(StateUnavailable):
            after.settle()
        job = after.get(ME, job_id)
        assert (job.status, job.error) == ("RUNNING", ("the state of the service is read-only",))
    after.settle()
    assert (after.get(ME, job_id).error, set(after.runs)) == ((), {job_id})
    after.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_running_job_without_a_thread_gets_another_one_and_the_log_says_so(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    threads: list[int] = []

    def die_first(job: StoredJob, run: JobRun) -> bool:
        threads.append(threading.get_ident())
        if len(threads) == 1:
            raise SystemExit  # ends a thread, whatever that would do at its end
        return True

    mine = Jobs(store, die_first)
    job_id = launch(mine)
    thread = mine.runs[job_id].thread
    thread.join(10)
    assert mine.get(ME, job_id).status == "RUNNING"
    mine.settle()
    assert ended(mine, job_id).status == "COMPLETED"
    assert caplog.messages == [f"job {job_id}: its thread is gone; a job that is RUNNING gets another one"]


# Domains that are disabled and deleted


@pytest.fixture
def customer(store: Store) -> Account:
    """An account of a reseller's domain."""
    return new_customer(store)


def new_customer(store: Store) -> Account:
    price_plans.put_reseller(store, price_plans.Reseller("north"))
    price_plans.put_plan(store, price_plans.PricePlan("north", "basic"))
    domains.create(store, "north", {"name": "acme", "plan": "basic"})
    users.assign(store, "acme@north", "ann@acme.example", users.OWNER)
    return accounts.issue(store, domain="acme@north")


def test_the_jobs_of_a_disabled_domain_rest_and_those_that_ran_resume(
    mine: Jobs, work: Work, store: Store, customer: Account
) -> None:
    ran, stopped, others = launch(mine, customer), launch(mine, customer), launch(mine)
    for _ in range(3):
        assert work.begun.acquire(timeout=10)
    mine.stop(customer, stopped)
    run = mine.runs[ran]
    domains.disable(store, "north", "acme")
    mine.settle()
    assert run.ended.is_set()
    assert set(mine.runs) == {others}
    at_rest = mine.get(customer, ran)
    assert (at_rest.status, at_rest.events_sent, at_rest.error) == ("RUNNING", 1, ())
    domains.enable(store, "north", "acme")
    mine.settle()
    assert set(mine.runs) == {ran, others}
    assert [job.status for job in mine.listed(customer)] == ["RUNNING", "STOPPED"]


def test_a_service_that_starts_leaves_the_jobs_of_a_disabled_domain_at_rest(
    store: Store, work: Work, customer: Account
) -> None:
    before = Jobs(store, work)
    job_id = launch(before, customer)
    before.close()
    domains.set_status(store, "acme@north", DomainStatus.PENDING)
    after = Jobs(store, work)
    after.settle()
    assert after.runs == {}
    domains.set_status(store, "acme@north", DomainStatus.ACTIVE)
    after.settle()
    assert set(after.runs) == {job_id}
    after.close()


def test_the_jobs_of_a_deleted_domain_end_and_the_next_of_its_name_has_none(
    mine: Jobs, work: Work, store: Store, customer: Account
) -> None:
    job_id = launch(mine, customer, {"aws.secretkey": SECRET})
    assert work.begun.acquire(timeout=10)
    run = mine.runs[job_id]
    domains.delete(store, "north", "acme")
    mine.settle()
    assert run.ended.is_set()
    assert job_table.get(store, job_id) is None
    next_ = new_customer(store)
    assert next_.domain_id != customer.domain_id
    assert mine.listed(next_) == []
    for operation in (mine.get, mine.stop, mine.start, mine.remove):
        assert refusal(partial(operation, next_, job_id)) == ("NotFound", 100)
    with pytest.raises(NotFound, match=r"^domain acme@north is deleted$"):
        launch(mine, customer)
    assert mine.listed(next_) == []


def test_the_jobs_of_a_reseller_go_with_it(mine: Jobs, store: Store) -> None:
    price_plans.put_reseller(store, price_plans.Reseller("north"))
    job_id = launch(mine, RESELLER)
    price_plans.remove_reseller(store, "north")
    mine.settle()
    assert (job_table.get(store, job_id), mine.listed(RESELLER)) == (None, [])


# Destinations that hang


class Hanging:
    """Deliveries that hang in their destination until the test lets it answer; then they commit and save."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.begun = threading.Semaphore(0)
        self.inside: list[str] = []
        self.most = 0
        self.delivered: list[str] = []

    def __call__(self, job: StoredJob, run: JobRun) -> bool:
        self.inside.append(job.id)
        self.most = max(self.most, len(self.inside))
        self.begun.release()
        try:
            self.answers.wait(30)
            run.check()
            self.delivered.append(job.id)
            run.save(JobProgress(job.progress.sent + 1, 4, Checkpoint()))
            run.stopping.wait()
            return False
        finally:
            self.inside.remove(job.id)


OPERATIONS: dict[str, Callable[[Jobs, Store, Account, str], object]] = {
    "stop": lambda jobs, store, account, job_id: jobs.stop(account, job_id),
    "remove": lambda jobs, store, account, job_id: jobs.remove(account, job_id),
    "list": lambda jobs, store, account, job_id: jobs.listed(account),
    "disable": lambda jobs, store, account, job_id: settled(jobs, domains.disable(store, "north", "acme")),
    "delete": lambda jobs, store, account, job_id: settled(jobs, domains.delete(store, "north", "acme")),
}


def settled(jobs: Jobs, _: object) -> None:
    jobs.settle()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_operation_waits_for_a_destination_that_hangs(store: Store, customer: Account, operation: str) -> None:
    hanging = Hanging()
    mine = Jobs(store, hanging)
    job_id = launch(mine, customer)
    assert hanging.begun.acquire(timeout=10)
    run, started = mine.runs[job_id], time.monotonic()
    OPERATIONS[operation](mine, store, customer, job_id)
    assert time.monotonic() - started < 3  # on an idle machine jobs.PATIENCE
    if operation != "list":
        hanging.answers.set()
        assert run.ended.wait(10)
        assert hanging.delivered == []
    hanging.answers.set()
    mine.close()


def test_what_a_stop_answers_is_where_the_next_start_begins(store: Store) -> None:
    hanging = Hanging()
    mine = Jobs(store, hanging)
    job_id = launch(mine)
    assert hanging.begun.acquire(timeout=10)
    before = mine.runs[job_id]
    stopped = mine.stop(ME, job_id)
    assert (stopped.status, stopped.events_sent, stopped.last_datetime) == ("STOPPED", 0, 0)
    assert mine.start(ME, job_id).status == "RUNNING"
    assert mine.stop(ME, job_id).status == "STOPPED"
    assert mine.start(ME, job_id).status == "RUNNING"
    assert not hanging.begun.acquire(timeout=0.1)
    hanging.answers.set()
    assert before.ended.wait(10)
    assert hanging.begun.acquire(timeout=10)
    mine.close()
    assert (hanging.delivered, hanging.most) == ([job_id], 1)
    job = mine.get(ME, job_id)
    assert (job.status, job.events_sent, job.error) == ("RUNNING", 1, ())


def test_a_job_that_waits_for_its_previous_run_says_so(store: Store) -> None:
    hanging = Hanging()
    mine = Jobs(store, hanging, waiting=0.01)
    job_id = launch(mine)
    assert hanging.begun.acquire(timeout=10)
    mine.stop(ME, job_id)
    mine.start(ME, job_id)
    while not (errors := mine.get(ME, job_id).error):
        threading.Event().wait(0.01)
    assert errors == ("waiting for the destination to answer the job's previous run",)
    hanging.answers.set()
    mine.close()


def test_a_job_that_was_stopped_has_no_error_of_a_thread_that_was_about_to_end(store: Store) -> None:
    begun = threading.Event()

    def troubled(job: StoredJob, run: JobRun) -> bool:
        begun.set()
        assert run.stopping.wait(10)
        run.trouble("the destination does not answer")
        return False

    mine = Jobs(store, troubled)
    job_id = launch(mine)
    assert begun.wait(10)
    stopped = mine.stop(ME, job_id)
    mine.close()
    assert (stopped.status, stopped.error, mine.get(ME, job_id).error) == ("STOPPED", (), ())


@pytest.mark.parametrize("restarted", [True, False])
def test_a_run_that_is_stopping_leaves_no_error_in_a_job_that_was_started_again(store: Store, restarted: bool) -> None:
    mine = Jobs(store, lambda job, run: not run.stopping.wait(10))
    job_id = launch(mine)
    old = JobRun(job_id, store, mine.runs[job_id].token)
    if restarted:
        old.stopping.set()
    old.trouble("the destination does not answer")
    told = mine.get(ME, job_id).error
    old.end(JobStatus.STOPPED, "the query failed")
    ended = mine.get(ME, job_id)
    mine.close()
    if restarted:
        assert (told, ended.status, ended.error) == ((), "RUNNING", ())
    else:
        assert (told, ended.error) == (("the destination does not answer",), ("the query failed",))


def test_running_jobs_resume_with_the_service_and_no_others(store: Store, work: Work) -> None:
    before = Jobs(store, work)
    running, stopped = launch(before), launch(before)
    before.stop(ME, stopped)
    before.close()
    again = Work()
    after = Jobs(store, again)
    after.settle()
    assert again.begun.acquire(timeout=10)
    assert after.get(ME, running).status == "RUNNING"
    assert set(again.orders) == {running}
    after.close()


def test_a_start_waits_until_the_run_before_it_is_over(store: Store) -> None:
    held, inside, most = threading.Event(), [], []

    def slow(job: StoredJob, run: JobRun) -> bool:
        inside.append(job.id)
        most.append(len(inside))
        run.stopping.wait()
        held.wait()
        inside.pop()
        return False

    mine = Jobs(store, slow)
    job_id = launch(mine)
    before = mine.runs[job_id]
    stopping = threading.Thread(target=lambda: mine.stop(ME, job_id))
    stopping.start()
    assert before.stopping.wait(10)
    assert mine.start(ME, job_id).status == "RUNNING"
    assert mine.runs[job_id] is not before
    held.set()
    stopping.join()
    mine.close()
    assert max(most) == 1


class States(RuleBasedStateMachine):
    """The interface's transition table as a model; a service that is killed and comes back is one more move."""

    known = Bundle("known")
    share = 2

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.store = opened(Path(self.directory.name))
        self.work = Work()
        self.jobs = Jobs(self.store, self.work, share=self.share)
        self.model: dict[str, str] = {}

    def teardown(self) -> None:
        self.jobs.close()
        self.store.close()
        self.directory.cleanup()

    def moved(self, act: Callable[[Account, str], models.Job], job_id: str, moves: dict[str, str | int]) -> None:
        """One operation: from each state of `moves` it leads to a state, or is refused with a code."""
        expected = moves.get(self.model.get(job_id, "REMOVED"), jobs.UNKNOWN)
        if isinstance(expected, int):
            kind = NotFound if expected == jobs.UNKNOWN else Conflict
            assert refusal(lambda: act(ME, job_id)) == (kind.__name__, expected)
            return
        job = act(ME, job_id)
        assert (job.id, job.status, job.error) == (job_id, expected, ())
        self.model[job_id] = expected

    def is_full(self) -> bool:
        return list(self.model.values()).count("RUNNING") == self.share

    @rule(target=known)
    def launch(self) -> str:
        if self.is_full():
            assert refusal(lambda: launch(self.jobs)) == ("Conflict", 101)
            return "00000000-0000-0000-0000-000000000000"
        job_id = launch(self.jobs)
        self.model[job_id] = "RUNNING"
        return job_id

    @rule(job_id=known)
    def stop(self, job_id: str) -> None:
        self.moved(self.jobs.stop, job_id, {"RUNNING": "STOPPED", "STOPPED": 108, "COMPLETED": "COMPLETED"})

    @rule(job_id=known)
    def start(self, job_id: str) -> None:
        resumed: str | int = 101 if self.is_full() else "RUNNING"
        self.moved(self.jobs.start, job_id, {"STOPPED": resumed, "RUNNING": 101, "COMPLETED": "COMPLETED"})

    @rule(job_id=known)
    def remove(self, job_id: str) -> None:
        self.moved(self.jobs.remove, job_id, dict.fromkeys(("RUNNING", "STOPPED", "COMPLETED"), "REMOVED"))

    @rule(job_id=known)
    def complete(self, job_id: str) -> None:
        if self.model.get(job_id) == "RUNNING":
            self.work.orders.setdefault(job_id, threading.Event()).set()
            assert ended(self.jobs, job_id).status == "COMPLETED"
            self.model[job_id] = "COMPLETED"

    @rule()
    def kill(self) -> None:
        self.work.alive = False
        self.jobs.close()
        self.work = Work()
        self.jobs = Jobs(self.store, self.work, share=self.share)
        self.jobs.settle()

    @invariant()
    def the_list_says_what_the_model_says(self) -> None:
        listed = {job.id: job.status for job in self.jobs.listed(ME)}
        assert listed == {job_id: status for job_id, status in self.model.items() if status != "REMOVED"}

    @invariant()
    def nothing_is_counted_as_sent_that_was_not_generated(self) -> None:
        for job in self.jobs.listed(ME):
            assert (job.events_sent or 0) <= (job.event_generated or 0)


TestStates = States.TestCase
TestStates.settings = settings(max_examples=3, stateful_step_count=25, deadline=None)


@pytest.mark.slow
def test_the_states_are_those_of_the_model_in_many_orders() -> None:
    run_state_machine_as_test(States, settings=settings(max_examples=15, stateful_step_count=25, deadline=None))
