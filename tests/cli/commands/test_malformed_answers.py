"""Commands that get a successful answer without what they asked for."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from support.reseller import Reseller

ID = "b1b32b90-1a2b-4c3d-8e4f-0123456789ab"
QUERY = ("query", "from t", "--from", "2024-01-31", "--to", "1d", "-f")
JOBS = "- {name: a, query: from t, from: 2024-01-31, to: 2024-02-01, destination: {type: donothing}}\n"


def empty(request: httpx.Request) -> httpx.Response:
    """An answer without an object. All other forms of such answers are in tests/api/test_malformed_answers.py."""
    return httpx.Response(200, json={"success": True, "msg": "", "status": 0, "object": None})


@pytest.mark.parametrize(
    "words",
    [
        ("job", "list"),
        ("job", "list", "--ids"),
        ("job", "show", ID),
        ("job", "show", "nightly"),
        ("job", "export"),
        ("job", "rm", "nightly", "--yes", "--if-needed"),
        ("domain", "list"),
        ("domain", "show", "d"),
        ("domain", "export"),
        ("domain", "create", "d", "--plan", "basic"),
        ("domain", "rm", "d", "--yes"),
        ("role", "list", "d"),
        ("role", "show", "d", "Readers"),
        (*QUERY, "json"),
        (*QUERY, "json/compact"),
        (*QUERY, "json/simple/compact"),
        (*QUERY, "table"),
    ],
    ids=lambda words: " ".join(words[-2:]),
)
def test_a_command_without_its_answer_exits_6(reseller: Reseller, words: tuple[str, ...]) -> None:
    done = reseller(*words, answer=empty)
    assert (done.code, done.stdout) == (6, "")
    assert {method for method, _, _ in done.sent} <= ({"POST"} if words[0] == "query" or "create" in words else {"GET"})
    assert ("\nhint: the service may have carried out the request: check before" in done.stderr) == ("create" in words)


def test_nothing_is_launched_when_the_jobs_are_not_known(reseller: Reseller, tmp_path: Path) -> None:
    (tmp_path / "jobs.yaml").write_text(JOBS)
    apply = ("job", "apply", "-F", str(tmp_path / "jobs.yaml"), "--yes")
    done = reseller(*apply, answer=empty)
    assert (done.code, done.sent) == (6, [("GET", "/search/jobs", None)])


def test_a_name_that_the_service_does_not_know_is_not_absent_if_its_jobs_are_not_known(reseller: Reseller) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/search/jobs":
            return httpx.Response(200, json={})
        return httpx.Response(404, json={"msg": "no such job", "status": 100})

    assert reseller("job", "rm", "nightly", "--yes", "--if-needed", answer=answer).code == 6
    assert reseller("job", "rm", ID, "--yes", "--if-needed", answer=answer).code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("domain", "enable", "d@r"),
        ("domain", "disable", "d@r"),
        ("role", "create", "d", "--name", "Readers", "--policies", "Search"),
        ("role", "update", "d", "Readers", "--description", "x"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_an_empty_answer_to_a_change_is_a_success(reseller: Reseller, words: tuple[str, ...]) -> None:
    done = reseller(*words, answer=empty)
    assert (done.code, done.stdout) == (0, "")
