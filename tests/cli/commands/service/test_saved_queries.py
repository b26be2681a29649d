"""Saved queries, from `svcctl service queries set` to `svcctl query --query-id`."""

from __future__ import annotations

import json

import httpx
import pytest
from support.shells import DAY, Shell

from svcctl.service import process

TEXT = 'from sample where n > 0\nselect name // "quoted"'


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
    assert refused.returncode == 2
    assert service("service", "queries", "show", "names").returncode == 0
    assert service("service", "queries", "rm", "names", "--yes").returncode == 0
    assert service("service", "queries", "list").stdout == "id,query\n"


@pytest.mark.parametrize("verb", [("show",), ("rm", "--yes")])
def test_an_id_that_nobody_saved_is_not_found(service: Shell, verb: tuple[str, ...]) -> None:
    done = service("service", "queries", *verb, "nope")
    assert (done.returncode, done.stdout, "'nope'" in done.stderr) == (4, "", True)


def test_a_mistyped_id_is_answered_with_the_one_that_is_saved(service: Shell) -> None:
    assert service("service", "queries", "set", "failures", "from sample").returncode == 0
    for asked in (("service", "queries", "show", "failure"), ("query", "--query-id", "failure", *DAY)):
        done = service(*asked)
        assert (done.returncode, "'failures'?" in done.stderr) == (4, True)


@pytest.mark.parametrize("format", ["csv", "json/simple", "xls", "table"])
def test_running_an_unknown_id_is_not_found_in_every_format(service: Shell, format: str) -> None:
    done = service("query", "--query-id", "nope", *DAY, "-f", format)
    assert (done.returncode, done.stdout) == (4, "")
    assert "'nope'" in done.stderr


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
    assert (done.returncode, f"'{id}'" in done.stderr) == (2, True)


SAVE = ("service", "queries", "set", "errors", "from sample\nwhere n >= {{min}}")


NO_TEXT = "--query-id runs a saved query unchanged\nhint: leave out the text and --file\n"
REFUSED: list[tuple[tuple[str, ...], int, str]] = [
    (("query", "--query-id", "names", *DAY, "from sample"), 2, NO_TEXT),
    (("query", "--query-id", "names", *DAY, "-F", "some.q"), 2, NO_TEXT),
    (
        ("query", "--query-id", "names", *DAY, "--var", "a=b"),
        2,
        "--query-id runs a saved query, which has no variables\n"
        "hint: keep the query in a file: svcctl query -F FILE --var a=b\n",
    ),
    (
        SAVE,
        2,
        "a saved query has no variables such as {{min}}\n"
        "hint: keep the query in a file: svcctl query -F FILE --var min=…\n",
    ),
    (
        (*SAVE, "--var", "min=5"),
        2,
        "no such option: --var\nhint: see 'svcctl service queries set --help'\n",
    ),
    (
        ("service", "queries", "set", "a/b", "from sample"),
        2,
        "invalid query ID 'a/b'\n"
        "hint: use 1 to 100 letters, digits, '.', '_' or '-', and start with a letter or digit\n",
    ),
    (
        ("service", "queries", "show", "nope"),
        4,
        "no saved query 'nope'\nhint: save one with 'svcctl service queries set'\n",
    ),
    (
        ("service", "queries", "rm", "kept"),
        2,
        "this needs confirmation: Delete the saved query kept?\nhint: add --yes\n",
    ),
    (("service", "queries", "show", "kep"), 4, "no saved query 'kep'\nhint: did you mean 'kept'?\n"),
]


@pytest.mark.parametrize(("arguments", "code", "said"), REFUSED)
def test_an_impossible_change_of_a_saved_query_is_refused(
    service: Shell, arguments: tuple[str, ...], code: int, said: str
) -> None:
    named = arguments[-1][:3] == "kep"
    if named:
        assert service("service", "queries", "set", "kept", "from sample").returncode == 0
    done = service(*arguments)
    if named:
        assert service("service", "queries", "rm", "kept", "--yes").returncode == 0
    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"svcctl: error: {said}")


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"query": "from sample", "queryId": "names"}, 400, "query and queryId exclude each other"),
        ({}, 400, "query or queryId is missing"),
        ({"query": None, "queryId": None}, 400, "query or queryId is missing"),
        ({"queryId": 7}, 400, "queryId is not a string"),
        ({"queryId": "nope"}, 404, "no saved query 'nope'"),
        (
            {"queryId": "x' or 1=1 --"},
            404,
            "no saved query 'x' or 1=1 --'",
        ),
    ],
)
def test_the_service_refuses_what_names_no_one_query(
    service: Shell, fields: dict[str, object], status: int, message: str
) -> None:
    files = process.ServiceFiles(service.home / "data")
    token = process.credentials(files, "local")["token"]
    with httpx.Client(transport=httpx.HTTPTransport(verify=False, uds=str(files.socket))) as client:
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
