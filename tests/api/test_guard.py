"""A guarded client over a real socket: what it does not send, and where an answer that is too long ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any

import pytest
from support.scripted import Script, Serve, head, http, ok

from svcctl.api import own_service
from svcctl.api.auth import Bearer
from svcctl.api.client import Client
from svcctl.api.destinations import Destination
from svcctl.api.follow import Follow
from svcctl.api.guard import Guard
from svcctl.api.loads import LoadOptions
from svcctl.api.models import Domain, Role
from svcctl.api.query import QueryRequest
from svcctl.api.response import MODES
from svcctl.api.retry import is_passing
from svcctl.errors import NotFound, SvcctlError, TooManyRows, UsageError

READ_ONLY = Guard(read_only=True, read_only_source="profile audit")
QUERY = QueryRequest(from_=0, to=9, query="from t", mode="csv")
JOB = '{"object": {"id": "3f2a", "status": "RUNNING"}}'

Act = Callable[[Client], Any]

CHANGES: dict[str, Act] = {
    "launch": lambda client: client.launch(
        QueryRequest(from_=0, to=9, query="from t", destination=Destination("donothing"))
    ),
    "stop_job": lambda client: client.stop_job("3f2a"),
    "start_job": lambda client: client.start_job("3f2a"),
    "remove_job": lambda client: client.remove_job("3f2a"),
    "create_domain": lambda client: client.create_domain("acme", "basic"),
    "enable_domain": lambda client: client.enable_domain("acme"),
    "disable_domain": lambda client: client.disable_domain("acme"),
    "delete_domain": lambda client: client.delete_domain("acme"),
    "create_role": lambda client: client.create_role("acme", Role("dev")),
    "update_role": lambda client: client.update_role("acme", "dev", Role("ops")),
    "delete_role": lambda client: client.delete_role("acme", "dev"),
    "request": lambda client: client.request("GET", "/search/job/stop/3f2a").__enter__(),
    "call": lambda client: client.call("PATCH", "/search/jobs"),
    "confirm_loss": own_service.confirm_loss,
    "drop": lambda client: own_service.drop(client, "t"),
    "trim": lambda client: own_service.trim(client, "t", 0),
    "copy": lambda client: own_service.copy(client, "t", "file"),
    "load": lambda client: own_service.load(client, [("a", "a")], "t", LoadOptions()),
}
READS: dict[str, Act] = {
    "job": lambda client: client.job("3f2a"),
    "jobs": lambda client: client.jobs(),
    "domain": lambda client: client.domain("acme"),
    "domains": lambda client: client.domains(),
    "role": lambda client: client.role("acme", "dev"),
    "roles": lambda client: client.roles("acme"),
    "query": lambda client: client.query(QUERY).__enter__(),
    "query_spans": lambda client: client.query_spans([QUERY]).__enter__(),
    "preview": lambda client: client.preview(QUERY),
    "sends_close_notify": lambda client: client.sends_close_notify(0),
    "status": own_service.status,
    "tables": own_service.tables,
    "table": lambda client: own_service.table(client, "t"),
    "table_names": own_service.table_names,
    "available": lambda client: own_service.available(client, "acme"),
    "check_domain": lambda client: own_service.check_domain(client, Domain("acme", "basic")),
    "load_ended": lambda client: own_service.load_ended(client, "a"),
}
OTHERS = {"close", "guard"}
"""What a client has besides operations."""


def client(script: Script, guard: Guard, **options: Any) -> Client:
    return Client(script.url, Bearer("T"), guard=guard, sleep=lambda seconds: None, **options)


@pytest.mark.parametrize("name", CHANGES)
def test_a_read_only_client_sends_nothing_that_changes_something(serve: Serve, name: str) -> None:
    script = serve(ok(JOB))
    with client(script, READ_ONLY) as service, pytest.raises(UsageError) as caught:
        CHANGES[name](service)
    assert (caught.value.reason, script.requests) == ("read-only", [])
    assert caught.value.message.endswith(" is refused: read_only is true in profile audit")


@pytest.mark.parametrize("name", READS)
def test_a_read_only_client_reads(serve: Serve, name: str) -> None:
    script = serve(http("404 No", '{"error": {"code": 106, "message": "no"}}'))
    with client(script, READ_ONLY, retries=0) as service, suppress(NotFound):
        READS[name](service)
    assert len(script.requests) == (name != "preview")


def test_every_operation_of_a_client_reads_or_changes() -> None:
    operations = {name for name in vars(Client) if not name.startswith("_")}
    assert operations - CHANGES.keys() - READS.keys() == OTHERS


def test_a_redirect_to_a_change_is_not_followed(serve: Serve) -> None:
    script = serve(http("302 Found", "", "Location: /search/job/stop/3f2a"))
    with client(script, READ_ONLY) as service, pytest.raises(SvcctlError):
        service.job("3f2a")
    assert script.lines == ["GET /search/job/3f2a"]


# Rows

ROWS = {
    "json": '{"object":[{"a":"1"},\n{"a":"2"},\n{"a":"3"}]}',
    "json/compact": '{"object":{"m":{"a":{"type":"str","index":0}},"d":[["1"],["2"],["3"]]}}',
    "json/simple": '{"a":"1"}\n{"a":"2"}\n{"a":"3"}\n',
    "json/simple/compact": '{"m":{"a":{"type":"str","index":0}}}\n{"d":["1"]}\n{"d":["2"]}\n{"d":["3"]}\n',
    "csv": 'a\n1\n"2"\n"3"\n',
    "tsv": "a\n1\n2\n3\n",
}
"""Three rows in the formats whose texts are written here."""


def limited(most: int) -> Guard:
    return Guard(max_rows=most, max_rows_source="profile few")


def rows_of(answers: Script, mode: str, most: int) -> tuple[list[Any], int | None]:
    """The rows that are delivered, and the number that the error names; None without an error."""
    request = QueryRequest(from_=0, to=9, query="from t", mode=mode)
    rows: list[Any] = []
    with client(answers, limited(most)) as service, service.query(request) as answer:
        try:
            rows.extend(answer.rows())
        except TooManyRows as error:
            return rows, error.rows
    return rows, None


@pytest.mark.parametrize("mode", ROWS)
@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_an_answer_ends_in_an_error_after_as_many_rows_as_are_allowed(serve: Serve, mode: str, most: int) -> None:
    script = serve(http("200 OK", ROWS[mode]))
    rows, named = rows_of(script, mode, most)
    assert rows == [("1",), ("2",), ("3",)][:most]
    assert (named, len(script.requests)) == (most if most < 3 else None, 1)


@pytest.mark.parametrize("mode", ["json/simple", "json/simple/compact", "csv", "tsv"])
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_the_bytes_of_the_first_rows_are_passed_on(serve: Serve, mode: str, most: int, size: int) -> None:
    whole = ROWS[mode].encode()
    script = serve([head("200 OK"), *(whole[at : at + size] for at in range(0, len(whole), size))])
    request = QueryRequest(from_=0, to=9, query="from t", mode=mode)
    blocks: list[bytes] = []
    with client(script, limited(most)) as service, service.query(request) as answer, pytest.raises(TooManyRows):
        for block in answer.raw():
            blocks.append(block)
    lines = whole.splitlines(keepends=True)
    heading = len(lines) - 3
    assert b"".join(blocks) == b"".join(lines[: heading + most])
    assert answer.row_count == most


def test_all_answers_for_neighbouring_spans_count_together(serve: Serve) -> None:
    script = serve(http("200 OK", "a\n1\n2\n"))
    with (
        client(script, limited(3)) as service,
        service.query_spans([QUERY, QUERY]) as answer,
        pytest.raises(TooManyRows),
    ):
        list(answer.raw())
    assert answer.row_count == 3


def test_too_many_rows_are_no_reason_for_another_attempt() -> None:
    assert not is_passing(limited(3).too_many_rows())


@pytest.mark.parametrize(("limit", "sent"), [(None, 0), (4, 0), (3, 1), (0, 1)])
@pytest.mark.parametrize("mode", [name for name, mode in MODES.items() if not mode.counts])
def test_a_format_without_a_number_of_rows_needs_a_limit(serve: Serve, mode: str, limit: int | None, sent: int) -> None:
    script = serve(http("400 Bad", '{"msg": "no", "status": 400}'))
    request = QueryRequest(from_=0, to=9, query="from t", mode=mode, limit=limit)
    body = {"query": "from t", "from": 0, "mode": {"type": mode}} | ({} if limit is None else {"limit": limit})
    with client(script, limited(3)) as service:
        with pytest.raises(SvcctlError) as caught:
            service.query(request).__enter__()
        assert (isinstance(caught.value, UsageError), len(script.requests)) == (not sent, sent)
        if sent:
            service.request("POST", "/search/query", json.dumps(body).encode()).__enter__()
        else:
            with pytest.raises(UsageError):
                service.request("POST", "/search/query", json.dumps(body).encode()).__enter__()


@pytest.mark.parametrize("path", ["/search/query", "/search/query?x=1", "/search//query/"])
@pytest.mark.parametrize(("mode", "most", "passed"), [("json/simple", 2, 2), ("JSON/Simple", 2, 2), ("json", 2, 0)])
def test_the_rows_of_any_request_for_a_query_are_counted(
    serve: Serve, path: str, mode: str, most: int, passed: int
) -> None:
    text = ROWS[mode.lower()]
    script = serve(http("200 OK", text))
    body = json.dumps({"query": "from t", "from": 0, "mode": {"type": mode}}).encode()
    pieces: list[bytes] = []
    with (
        client(script, limited(most)) as service,
        service.request("POST", path, body) as answer,
        pytest.raises(TooManyRows),
    ):
        for piece in answer.body:
            pieces.append(piece)
    assert b"".join(pieces).decode() == "".join(text.splitlines(keepends=True)[:passed])


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        ('{"msg": "no", "status": 400}', b'{"query": "from t", "from": 0}'),
        ("  \n" + ROWS["csv"], b'{"query": "from t", "from": 0}'),
        (ROWS["json"], b'{"query": "from t", "from": 0, "destination": {"type": "kafka"}}'),
        (ROWS["json"], b"no JSON"),
    ],
)
def test_an_answer_that_is_no_result_is_passed_on_unchanged(serve: Serve, answer: str, body: bytes) -> None:
    script = serve(http("200 OK", answer))
    with client(script, limited(1)) as service, service.request("POST", "/search/query", body) as response:
        assert b"".join(response.body).decode() == answer


@pytest.mark.parametrize("limit", [None, 2])
def test_the_rows_of_a_follow_count_over_its_connections(serve: Serve, limit: int | None) -> None:
    columns = '{"m":{"eventdate":{"type":"timestamp","index":0}}}\n'
    script = serve(
        head("200 OK") + f'{columns}{{"d":[1000]}}\n'.encode(),
        head("200 OK") + f'{columns}{{"d":[1000]}}\n{{"d":[2000]}}\n{{"d":[3000]}}\n'.encode(),
    )
    request = QueryRequest(from_=0, query="from t", mode="json/simple/compact", limit=limit)
    rows: list[Any] = []
    with (
        client(script, limited(2)) as service,
        Follow(service, request, notify=lambda text: None, sleep=lambda seconds: None) as following,
        pytest.raises(TooManyRows) if limit is None else nullcontext(),
    ):
        rows.extend(following.rows())
    assert (rows, len(script.requests)) == ([(1000,), (2000,)], 2)
