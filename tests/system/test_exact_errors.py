"""Rows that look like errors, from the real service through every command that reads rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.clients import client_of
from support.scripted import Serve, head, http
from support.shells import Shell

from svcctl.api.auth import Bearer
from svcctl.api.client import Client
from svcctl.api.query import QueryRequest
from svcctl.errors import SvcctlError

DAY = ("--from", "2024-01-31", "--to", "2024-02-01")
EVENTS = [
    ("plain", 1, "x", "c"),
    ("disk.error", 500, "full", "c"),
    ("svc.api.error", 500, "full", "c"),
    ("svc.api.error", 500, 'full, "and" more', "c"),
]
SELECTS = ("select name, code, text", "select text as msg, code as status, cid", "select name as error, cid as object")
EXACT = "X-Svc-Errors: exact"


@pytest.fixture(scope="module")
def stored(service: Shell, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A service with a table of each number of the events, whose last one is the last row of each answer."""
    for count in range(1, len(EVENTS) + 1):
        path = tmp_path_factory.mktemp("events") / "events.ndjson"
        keys = ("name", "code", "text", "cid")
        events = (dict(zip(keys, event, strict=True)) for event in EVENTS[:count])
        lines = (json.dumps({"eventdate": f"2024-01-31T10:00:0{at}Z"} | event) for at, event in enumerate(events))
        path.write_text("\n".join(lines) + "\n")
        assert service("service", "load", str(path), "-t", f"looks.first{count}").returncode == 0
    return service


@pytest.mark.parametrize("select", SELECTS)
def test_rows_that_look_like_errors_are_read_as_rows(stored: Shell, select: str) -> None:
    with client_of(stored) as client:
        for count in range(1, len(EVENTS) + 1):
            for mode in ("csv", "tsv", "json", "json/compact", "json/simple", "json/simple/compact", "msgpack"):
                query = f"from looks.first{count} {select}"
                request = QueryRequest(query=query, from_=1_706_659_200, to=1_706_745_600, mode=mode)
                with client.query(request) as answer:
                    rows = list(answer.rows())
                columns = {"name": 0, "code": 1, "text": 2, "cid": 3}
                chosen = [columns[part.split()[0]] for part in select.removeprefix("select ").split(", ")]
                expected = [tuple(str(event[at]) for at in chosen) for event in EVENTS[:count]]
                assert [tuple(map(str, row)) for row in rows] == expected, (mode, count)


FOUR, LONE = f"from looks.first4 {SELECTS[0]}", f"from looks.first1 {SELECTS[1]}"


@pytest.mark.parametrize("query", [FOUR, LONE], ids=["four", "lone"])
@pytest.mark.parametrize("command", [("query",), ("export", "--window", "1d")], ids=lambda command: command[0])
def test_commands_take_rows_that_look_like_errors_for_rows(
    stored: Shell, tmp_path: Path, query: str, command: tuple[str, ...]
) -> None:
    for ending in ("csv", "ndjson", "parquet", *(("xml", "table") if command == ("query",) else ())):
        output = ("-f", "table") if ending == "table" else ("-o", str(tmp_path / f"rows.{ending}"))
        done = stored("-q", *command, query, *DAY, *output)
        assert (done.returncode, done.stderr) == (0, ""), ending


@pytest.mark.parametrize("mode", ["csv", "json/simple", "json"])
def test_api_takes_rows_that_look_like_errors_for_rows(stored: Shell, mode: str) -> None:
    body = {"query": LONE, "from": 1_706_659_200, "to": 1_706_745_600, "mode": {"type": mode}}
    done = stored("api", "POST", "/search/query", "-d", json.dumps(body))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("mode", "body"),
    [("csv", "a,b,c\ndisk.error,500,full\n"), ("json/simple", '{"msg":"disk full","status":500,"cid":"c"}\n')],
)
def test_a_proxy_that_drops_the_header_leaves_the_forms_of_other_services(serve: Serve, mode: str, body: str) -> None:
    request = QueryRequest(query="from t", from_="1h", to="now", mode=mode)
    for answer in (http("200 OK", body, EXACT), head("200 OK", EXACT) + body.encode()):
        with Client(serve(answer).url, Bearer("t")) as client, client.query(request) as result:
            assert len(list(result.rows())) == 1
    script = serve(http("200 OK", body))
    with Client(script.url, Bearer("t")) as client, client.query(request) as result, pytest.raises(SvcctlError):
        list(result.rows())


@pytest.mark.parametrize("status", ["400 Bad", "404 Not Found", "500 Oops"])
def test_an_exact_answer_with_a_failing_status_is_an_error(serve: Serve, status: str) -> None:
    request = QueryRequest(query="from t", from_="1h", to="now", mode="csv")
    answer = http(status, '{"msg":"m","status":1,"error":{"code":1,"message":"m"}}', EXACT)
    with (
        Client(serve(answer).url, Bearer("t")) as client,
        pytest.raises(SvcctlError, match=r"^m$"),
        client.query(request),
    ):
        pass
