"""Jobs over several requests: launch, wait and restart; the service's answers are scripted."""

import time
from typing import Any

import httpx
import pytest
from support.over_httpx import OverHttpx

from svcctl.api.auth import Signature
from svcctl.api.client import Client
from svcctl.api.destinations import Destination
from svcctl.api.jobs import launch, restart, wait_for
from svcctl.api.models import Job
from svcctl.api.query import QueryRequest
from svcctl.errors import Conflict, ServiceError, Unavailable


def client_of(*answers: httpx.Response) -> Client:
    """A client of a service that gives these answers, one after the other."""
    script = iter(answers)
    transport = OverHttpx(lambda request: next(script))
    return Client("http://localhost", Signature("key", "secret"), transport=transport, retries=0)


def job(status: str, **fields: Any) -> httpx.Response:
    return httpx.Response(200, json={"status": 0, "object": {"id": "a", "status": status, **fields}})


def test_a_job_is_waited_for_until_it_is_in_a_wanted_state() -> None:
    client = client_of(job("RUNNING"), job("COMPLETED"))
    assert wait_for(client, "a", {"COMPLETED"}, None) == Job("a", "COMPLETED")


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (job("STOPPED"), Conflict, "job a is STOPPED: it does not become COMPLETED by itself"),
        (job("STOPPED", error=["disk full"]), ServiceError, "job a is STOPPED with an error: disk full"),
    ],
)
def test_a_state_that_cannot_come_is_not_waited_for(
    answer: httpx.Response, kind: type[ServiceError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        wait_for(client_of(answer), "a", {"COMPLETED"}, None)
    assert caught.value.message == message


def test_a_deadline_says_what_the_job_was_last() -> None:
    with pytest.raises(Unavailable) as caught:
        wait_for(client_of(job("RUNNING", error=["slow"])), "a", {"COMPLETED"}, time.monotonic())
    assert caught.value.message == "job a is FAILING (slow), not COMPLETED, and the time is up"


@pytest.mark.parametrize(
    ("change", "answered", "message"),
    [
        ("stop_job", "STOPPED", None),
        ("stop_job", "COMPLETED", None),
        ("stop_job", "RUNNING", "job a is not stopped: the service answered RUNNING"),
        ("stop_job", "PAUSED", "job a is not stopped: the service answered PAUSED"),
        ("stop_job", "", "job a is not stopped: the service answered no state"),
        ("start_job", "RUNNING", None),
        ("start_job", "COMPLETED", None),
        ("start_job", "CREATED", None),
        ("start_job", "RECONNECTING", None),
        ("start_job", "STOPPED", "job a is not started: the service answered STOPPED"),
        ("remove_job", "REMOVED", None),
        ("remove_job", "RUNNING", "job a is not removed: the service answered RUNNING"),
    ],
)
def test_a_change_of_a_job_fails_when_the_service_answers_another_state(
    change: str, answered: str, message: str | None
) -> None:
    client = client_of(job(answered))
    if message is None:
        assert getattr(client, change)("a").status == answered
        return
    with pytest.raises(Conflict) as caught:
        getattr(client, change)("a")
    assert caught.value.message == message


def test_a_restart_of_a_job_that_goes_on_running_fails() -> None:
    running = [job("RUNNING") for _ in range(3)]
    with pytest.raises(Conflict):
        restart(client_of(*running), "a", pytest.fail)


def test_a_job_that_is_gone_counts_as_removed() -> None:
    assert wait_for(client_of(httpx.Response(404)), "a", {"REMOVED"}, None) == Job("a", "REMOVED")


def test_a_launched_job_that_cannot_be_read_has_its_id_and_a_note() -> None:
    request = QueryRequest("1h", "now", "from a", destination=Destination("donothing"))
    notes: list[str] = []
    launched = launch(client_of(job("RUNNING"), httpx.Response(500)), request, notes.append)
    assert launched == Job("a", "")
    assert [note.partition(", but ")[0] for note in notes] == ["the job is launched"]
