"""Successful answers that lack what they should hold, by operation, over a real socket."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.scripted import Serve, head, http, ok

from svcctl.api.auth import Bearer
from svcctl.api.client import Client
from svcctl.api.models import Domain, Job, Role
from svcctl.api.query import QueryRequest
from svcctl.errors import Conflict, MalformedAnswer, Unavailable

JOB = {"id": "a", "status": "RUNNING"}
DOMAIN = {"name": "d@r", "plan": "basic", "status": "Active"}
LISTS: dict[str, tuple[Callable[[Client], Any], dict[str, str]]] = {
    "jobs": (lambda client: client.jobs(), JOB),
    "domains": (lambda client: client.domains(), DOMAIN),
    "roles": (lambda client: client.roles("d"), {"name": "Readers"}),
}
RECORDS: dict[str, tuple[Callable[[Client], Any], dict[str, str]]] = {
    "job": (lambda client: client.job("a"), JOB),
    "domain": (lambda client: client.domain("d"), DOMAIN),
    "create domain": (lambda client: client.create_domain("d", "basic"), DOMAIN),
    "role": (lambda client: client.role("d", "Readers"), {"name": "Readers"}),
}
READS = LISTS | RECORDS
CHANGES: dict[str, Callable[[Client], Any]] = {
    "enable": lambda client: client.enable_domain("d"),
    "disable": lambda client: client.disable_domain("d"),
    "delete domain": lambda client: client.delete_domain("d"),
    "delete role": lambda client: client.delete_role("d", "Readers"),
    "create role": lambda client: client.create_role("d", Role("Readers")),
    "update role": lambda client: client.update_role("d", "Readers", Role(description="x")),
}
EMPTY = {
    "no body": http("200 OK"),
    "no body, by closing": head("200 OK"),
    "204": head("204 No Content"),
    "blanks": ok(" \r\n"),
    "null": ok("null"),
    "{}": ok("{}"),
    "envelope": ok('{"success":true,"msg":"","status":0,"cid":"c","timestamp":1}'),
    "null object": ok('{"msg":"","status":0,"object":null}'),
    "{} object": ok('{"object":{}}'),
}
NO_RECORD = EMPTY | {
    "[]": ok("[]"),
    "[] object": ok('{"object":[]}'),
    "number": ok("5"),
    "text": ok('"done"'),
    "text object": ok('{"object":"done"}'),
    "number object": ok('{"object":0}'),
    "[null] object": ok('{"object":[null]}'),
    "[5] object": ok('{"object":[5]}'),
}
NO_LIST = {name: answer for name, answer in NO_RECORD.items() if name not in ("[]", "[] object")}


@contextmanager
def client(answer: bytes, serve: Serve) -> Iterator[Client]:
    with Client(serve(answer).url, Bearer("t"), retries=0) as client:
        yield client


def failure(operation: Callable[[Client], Any], answer: bytes, serve: Serve) -> Unavailable:
    with client(answer, serve) as service, pytest.raises(Unavailable) as caught:
        operation(service)
    return caught.value


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("answer", NO_LIST.values(), ids=NO_LIST)
def test_an_answer_without_a_list_is_not_an_empty_list(serve: Serve, name: str, answer: bytes) -> None:
    assert type(failure(LISTS[name][0], answer, serve)) is MalformedAnswer


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("answer", NO_RECORD.values(), ids=NO_RECORD)
def test_an_answer_without_a_record_is_not_a_record(serve: Serve, name: str, answer: bytes) -> None:
    assert type(failure(RECORDS[name][0], answer, serve)) is MalformedAnswer


IDENTITIES = [
    *(("jobs", member) for member in ("id", "status")),
    *(("job", member) for member in ("id", "status")),
    *((name, "name") for name in ("domains", "domain", "create domain", "roles", "role")),
]


@pytest.mark.parametrize(("name", "member"), IDENTITIES)
@pytest.mark.parametrize("value", [None, 5, True, ["a"], {}])
def test_a_record_without_its_identity_is_malformed(serve: Serve, name: str, member: str, value: object) -> None:
    operation, right = READS[name]
    wrong = {**right, member: value}
    answer = {"object": [right, wrong] if name in LISTS else wrong}
    where = "answer (record 2 of its list)" if name in LISTS else "answer"
    message = f"the service's {where} has no {member}"
    assert failure(operation, ok(json.dumps(answer)), serve).message == message
    if member != "status":
        wrong[member] = ""
        assert failure(operation, ok(json.dumps(answer)), serve).message == message


@pytest.mark.parametrize("name", READS)
def test_a_page_is_no_answer(serve: Serve, name: str) -> None:
    page = http("200 OK", "<html><title>Sign in</title></html>", "Content-Type: text/html")
    assert failure(READS[name][0], page, serve).message == "the service answered with a web page: Sign in"


@pytest.mark.parametrize("answer", EMPTY.values(), ids=EMPTY)
def test_the_error_of_a_create_says_that_it_may_have_been_done(serve: Serve, answer: bytes) -> None:
    error = failure(RECORDS["create domain"][0], answer, serve)
    assert error.hint == "the service may have carried out the request: check before trying again"


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("answer", EMPTY.values(), ids=EMPTY)
def test_an_answer_that_the_interface_does_not_show_may_be_empty(serve: Serve, name: str, answer: bytes) -> None:
    with client(answer, serve) as service:
        CHANGES[name](service)


@pytest.mark.parametrize("verb", ["stop_job", "start_job", "remove_job"])
@pytest.mark.parametrize("answer", NO_RECORD.values(), ids=NO_RECORD)
def test_a_changed_job_is_not_what_an_empty_answer_says(serve: Serve, verb: str, answer: bytes) -> None:
    error = failure(lambda client: getattr(client, verb)("a"), answer, serve)
    assert error.hint == "the service may have carried out the request: check before trying again"


def test_a_changed_job_needs_no_id_but_the_right_state(serve: Serve) -> None:
    with client(ok('{"object":{"status":"STOPPED"}}'), serve) as service:
        assert service.stop_job("a") == Job("a", "STOPPED")
    with client(ok('{"object":{"status":""}}'), serve) as service, pytest.raises(Conflict):
        service.stop_job("a")


@pytest.mark.parametrize("mode", ["json", "json/compact", "json/simple", "json/simple/compact", "csv", "msgpack"])
def test_an_answer_with_204_is_no_result(serve: Serve, mode: str) -> None:
    request = QueryRequest(from_="1h", to="now", query="from t", mode=mode)
    with (
        client(head("204 No Content"), serve) as service,
        pytest.raises(MalformedAnswer, match=r"HTTP 204"),
        service.query(request) as answer,
    ):
        list(answer.raw())


@pytest.mark.parametrize(
    ("name", "body", "found"),
    [
        ("jobs", '{"object":[]}', ()),
        ("jobs", "[]", ()),
        ("jobs", json.dumps({"status": 0, "object": [JOB]}), (Job("a", "RUNNING"),)),
        ("jobs", '{"object":[{"id":"a","status":""}]}', (Job("a", ""),)),
        ("domains", "[]", ()),
        ("domains", '{"domains":[]}', ()),
        ("domains", '{"object":{"domains":[{"name":"d@r"}]}}', (Domain("d@r"),)),
        ("domains", '[{"name":"d@r"}]', (Domain("d@r"),)),
        ("roles", '{"object":[]}', ()),
        ("roles", '{"roles":[{"name":"Readers"}]}', (Role("Readers"),)),
        ("job", json.dumps({"object": [JOB]}), Job("a", "RUNNING")),
        ("job", json.dumps(JOB), Job("a", "RUNNING")),
        ("domain", '[{"name":"d@r"}]', Domain("d@r")),
        ("create domain", '{"object":{"name":"d@r"}}', Domain("d@r")),
        ("role", '{"name":"Readers"}', Role("Readers")),
    ],
)
def test_empty_lists_and_bare_records_are_answers(serve: Serve, name: str, body: str, found: Any) -> None:
    with client(ok(body), serve) as service:
        assert READS[name][0](service) == found
