"""Operations on one job that arrive at the same time on real connections: one changes the job, each answer is true."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import uvicorn
from peers.postgresql import PASSWORD, PostgreSQLPeer
from support.stored_queries import stored_query

from svcctl.service.accounts import accounts, domains, users
from svcctl.service.accounts.accounts import Account
from svcctl.service.http.app import build
from svcctl.service.http.context import Service
from svcctl.service.jobs.checkpoint import Checkpoint, JobProgress
from svcctl.service.jobs.job_table import StoredJob
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.jobs.runner import JobRun
from svcctl.service.state.postgresql import PostgreSQL
from svcctl.service.state.store import Store

THREADS = 16
ME = Account("key", "secret", "token", "local", administrator=True, domain_id=1)
Outcome = tuple[int, Any]
"""The HTTP status of an answer, and the status of the job in it or the code of the error."""
STOPPED, STARTED, REMOVED = (200, "STOPPED"), (200, "RUNNING"), (200, "REMOVED")
NOT_RUNNING, RUNS_ALREADY, UNKNOWN = (409, 108), (409, 101), (404, 100)


def deliver(job: StoredJob, run: JobRun) -> bool:
    """Count rows until the run is stopped."""
    sent = job.progress.sent
    while not run.stopping.wait(0.01):
        sent += 1
        run.save(JobProgress(sent, sent, Checkpoint()))
    return False


class Services:
    """Services on one state, each with a socket, and clients that send their requests at the same moment."""

    def __init__(self, stores: Sequence[Store], stack: ExitStack) -> None:
        authorized: dict[str, Any] = {"headers": {"authorization": "token"}, "timeout": 60, "verify": False}
        self.jobs = [Jobs(store, deliver) for store in stores]
        self.urls = []
        for store, jobs in zip(stores, self.jobs, strict=True):
            stack.callback(jobs.close)
            # No request here asks the engine for anything.
            app = build(Service(cast(Any, None), store, cast(Any, None)), jobs)
            listener = socket.create_server(("127.0.0.1", 0))
            server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None, access_log=False, ws="none"))
            thread = threading.Thread(target=server.run, args=([listener],))
            thread.start()
            stack.callback(thread.join)
            stack.callback(setattr, server, "should_exit", True)
            self.urls.append("http://{}:{}".format(*listener.getsockname()))
        self._clients = [
            stack.enter_context(httpx.Client(base_url=self.urls[n % len(self.urls)], **authorized))
            for n in range(THREADS)
        ]
        self._threads = stack.enter_context(ThreadPoolExecutor(THREADS))

    def launched(self) -> str:
        return self.jobs[0].launch(ME, type="donothing", request=stored_query(), params={}).id

    def at_once(self, job_id: str, operations: Sequence[str], times: int = 1) -> list[list[Outcome]]:
        """The outcomes of each client: all begin together, and each sends its operation so many times."""
        start = threading.Barrier(THREADS)

        def ask(client: httpx.Client, operation: str) -> list[Outcome]:
            start.wait(30)
            method = "DELETE" if operation == "remove" else "GET"
            return [outcome(client.request(method, f"/search/job/{operation}/{job_id}")) for _ in range(times)]

        return list(self._threads.map(ask, self._clients, operations))


def outcome(answer: httpx.Response) -> Outcome:
    body = answer.json()
    return answer.status_code, body["object"]["status"] if answer.status_code == 200 else body["error"]["code"]


def prepared(store: Store) -> Store:
    domains.put_provider_domain(store, "local")
    users.assign(store, "local", "owner@local", users.OWNER)
    accounts.put(store, ME)
    return store


@pytest.fixture
def one_service(tmp_path: Path) -> Iterator[Services]:
    with ExitStack() as stack:
        yield Services([prepared(stack.enter_context(closing(Store(tmp_path / "state.db"))))], stack)


@pytest.fixture
def two_services(postgresql_peer: PostgreSQLPeer) -> Iterator[Services]:
    url = postgresql_peer.fresh_database()
    with ExitStack() as stack:
        stores = [stack.enter_context(closing(Store(PostgreSQL(url, password=PASSWORD)))) for _ in range(2)]
        prepared(stores[0])
        yield Services(stores, stack)


def one_of_all_succeeds(services: Services) -> None:
    job_id = services.launched()
    for operation, success, refusal in (
        ("stop", STOPPED, NOT_RUNNING),
        ("start", STARTED, RUNS_ALREADY),
        ("stop", STOPPED, NOT_RUNNING),
        ("start", STARTED, RUNS_ALREADY),
        ("remove", REMOVED, UNKNOWN),
    ):
        outcomes = Counter(answers[0] for answers in services.at_once(job_id, [operation] * THREADS))
        assert outcomes == {success: 1, refusal: THREADS - 1}, operation


def each_answer_is_of_its_own_request(services: Services, times: int) -> None:
    job_id = services.launched()
    stops, starts = ["stop"] * (THREADS // 2), ["start"] * (THREADS // 2)
    answers = services.at_once(job_id, [*stops, *starts], times)
    stopped, started = (Counter(one for own in part for one in own) for part in (answers[:8], answers[8:]))
    assert set(stopped) <= {STOPPED, NOT_RUNNING}
    assert set(started) <= {STARTED, RUNS_ALREADY}
    left = services.jobs[0].get(ME, job_id).status
    assert stopped[STOPPED] - started[STARTED] == (left == "STOPPED"), "each success moved the job once"
    assert stopped[STOPPED] > 0
    services.jobs[0].remove(ME, job_id)


def a_remove_wins_once(services: Services, times: int) -> None:
    job_id = services.launched()
    operations = [("stop", "start", "remove", "remove")[n % 4] for n in range(THREADS)]
    answers = services.at_once(job_id, operations, times)
    outcomes = {
        operation: Counter(
            one for asked, own in zip(operations, answers, strict=True) if asked == operation for one in own
        )
        for operation in operations
    }
    assert outcomes["remove"] == {REMOVED: 1, UNKNOWN: times * THREADS // 2 - 1}
    assert set(outcomes["stop"]) <= {STOPPED, NOT_RUNNING, UNKNOWN}
    assert set(outcomes["start"]) <= {STARTED, RUNS_ALREADY, UNKNOWN}
    assert services.jobs[0].listed(ME) == []


Check = Callable[[Services], None]
CHECKS: list[Check] = [
    one_of_all_succeeds,
    lambda services: each_answer_is_of_its_own_request(services, 3),
    lambda services: a_remove_wins_once(services, 2),
]
NAMES = ["one of all succeeds", "stops and starts", "removes among them"]


@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
def test_simultaneous_operations_on_a_job_are_answered_with_what_each_of_them_did(
    one_service: Services, check: Check
) -> None:
    check(one_service)


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
def test_simultaneous_operations_in_two_services_on_a_state_are_answered_with_what_each_of_them_did(
    two_services: Services, check: Check
) -> None:
    check(two_services)
