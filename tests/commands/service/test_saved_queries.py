"""Saved queries, from `svcctl service queries set` to `svcctl query --query-id`."""

from __future__ import annotations

import json

import httpx
import pytest
from support.shells import Shell

from svcctl import local_service

TEXT = 'from sample where n > 0\nselect name // "quoted"'
DAY = ("--from", "2024-01-31", "--to", "1d")


def test_a_saved_query_is_listed_shown_run_replaced_and_removed(service: Shell) -> None:
    assert service("service", "queries", "set", "names", "-", stdin=TEXT + "\n").returncode == 0
    listed = service("service", "queries", "list", "-f", "ndjson")
    assert listed.stdout == json.dumps({"id": "names", "query": TEXT}, separators=(",", ":")) + "\n"
    assert service("service", "queries", "show", "names").stdout == TEXT + "\n"

    done = service("query", "--query-id", "names", *DAY)
    assert (done.returncode, done.stdout, done.stderr) == (0, 'name\nplain\n"comma, ""quote"""\n', "")
    assert service("query", "--query-id", "names", *DAY, "--limit", "1").stdout == "name\nplain\n"

    (service.home / "other.q").write_text("from sample select ok limit 1", encoding="utf-8")
    assert service("service", "queries", "set", "names", "-F", "other.q").returncode == 0
    assert service("query", "--query-id", "names", *DAY).stdout == "ok\ntrue\n"

    refused = service("service", "queries", "rm", "names")
    assert (refused.returncode, refused.stderr) == (
        2,
        "svcctl: error: this needs confirmation: Delete the saved query names?\nhint: add --yes\n",
    )
    assert service("service", "queries", "rm", "names", "--yes").returncode == 0
    assert service("service", "queries", "list").stdout == "id,query\n"


@pytest.mark.parametrize("verb", [("show",), ("rm", "--yes")])
def test_an_id_that_nobody_saved_is_not_found(service: Shell, verb: tuple[str, ...]) -> None:
    done = service("service", "queries", *verb, "nope")
    assert (done.returncode, done.stdout, done.stderr) == (
        4,
        "",
        "svcctl: error: no saved query 'nope'\nhint: save one with 'svcctl service queries set'\n",
    )


def test_a_mistyped_id_is_answered_with_the_one_that_is_saved(service: Shell) -> None:
    assert service("service", "queries", "set", "failures", "from sample").returncode == 0
    shown = service("service", "queries", "show", "failure")
    assert (shown.returncode, shown.stderr) == (
        4,
        "svcctl: error: no saved query 'failure'\nhint: did you mean 'failures'?\n",
    )
    run = service("query", "--query-id", "failure", *DAY)
    assert (run.returncode, run.stderr.partition("\n")[2]) == (4, "hint: did you mean 'failures'?\n")


@pytest.mark.parametrize("format", ["csv", "json/simple", "xls", "table"])
def test_running_an_unknown_id_is_not_found_in_every_format(service: Shell, format: str) -> None:
    done = service("query", "--query-id", "nope", *DAY, "-f", format)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("svcctl: error: no saved query 'nope' (")
    assert done.stderr.partition("\n")[2] == "hint: save one with 'svcctl service queries set'\n"


def test_a_mistake_is_reported_with_its_place_when_the_query_is_saved(service: Shell) -> None:
    done = service("service", "queries", "set", "bad", "from sample\nwhere n >")
    assert (done.returncode, done.stdout) == (1, "")
    message, line, caret, rest = done.stderr.split("\n")
    assert message.startswith("svcctl: error: line 2, column 10: unexpected end of query, expected ")
    assert (line, caret, rest) == ("  where n >", "           ^", "")
    assert service("service", "queries", "show", "bad").returncode == 4


@pytest.mark.parametrize("id", ["", ".hidden", "a/b", "a b", "x" * 101, "é"])
def test_an_id_is_a_word(service: Shell, id: str) -> None:
    done = service("service", "queries", "set", "--", id, "from sample")
    assert (done.returncode, done.stderr) == (
        2,
        f"svcctl: error: invalid query ID '{id}'\n"
        "hint: use 1 to 100 letters, digits, '.', '_' or '-', and start with a letter or digit\n",
    )


SAVE = ("service", "queries", "set", "errors", "from sample\nwhere n >= {{min}}")


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (
            ("query", "--query-id", "names", *DAY, "from sample"),
            "--query-id runs a saved query unchanged",
            "leave out the text and --file",
        ),
        (
            ("query", "--query-id", "names", *DAY, "-F", "some.q"),
            "--query-id runs a saved query unchanged",
            "leave out the text and --file",
        ),
        (
            ("query", "--query-id", "names", *DAY, "--var", "a=b"),
            "--query-id runs a saved query, which has no variables",
            "keep the query in a file: svcctl query -F FILE --var a=b",
        ),
        (
            SAVE,
            "a saved query has no variables such as {{min}}",
            "keep the query in a file: svcctl query -F FILE --var min=…",
        ),
        (
            (*SAVE, "--var", "min=5"),
            "no such option: --var",
            "only 'svcctl query' and 'svcctl export' have --var; keep a query with {{…}} in a file; "
            "see 'svcctl service queries set --help'",
        ),
    ],
)
def test_a_saved_query_takes_neither_text_nor_variables(
    service: Shell, arguments: tuple[str, ...], message: str, hint: str
) -> None:
    done = service(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"svcctl: error: {message}\nhint: {hint}\n")


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"query": "from sample", "queryId": "names"}, 400, "query and queryId exclude each other"),
        ({}, 400, "query or queryId is missing"),
        ({"query": None, "queryId": None}, 400, "query or queryId is missing"),
        ({"queryId": 7}, 400, "queryId is not a string"),
        ({"queryId": "nope"}, 404, "no saved query 'nope'; save one with 'svcctl service queries set'"),
        (
            {"queryId": "x' or 1=1 --"},
            404,
            "no saved query 'x' or 1=1 --'; save one with 'svcctl service queries set'",
        ),
    ],
)
def test_the_service_refuses_what_names_no_one_query(
    service: Shell, fields: dict[str, object], status: int, message: str
) -> None:
    files = local_service.Files(service.home / "data")
    token = local_service.credentials(files, "local")["token"]
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(files.socket))) as client:
        answer = client.post(
            "http://localhost/search/query",
            json=fields | {"from": 1, "to": 2},
            headers={"Authorization": f"Bearer {token}"},
        )
    content = answer.json()
    assert (answer.status_code, content["success"], content["status"], content["msg"]) == (status, False, 1, message)


def test_saved_queries_outlive_the_service(shell: Shell) -> None:
    assert shell("service", "queries", "set", "a.b-c_1", "from nowhere").returncode == 0
    assert shell("service", "status").returncode == 4  # saving started nothing
    assert shell("service", "queries", "show", "a.b-c_1").stdout == "from nowhere\n"
