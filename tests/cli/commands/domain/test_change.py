"""Changes of domains: what each one sends, repeats with --if-needed, and notes."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from support.reseller import Reseller


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        (("list",), [("GET", "/domain", None)]),
        (("show", "a"), [("GET", "/domain/a", None)]),
        (("enable", "a@demo"), [("POST", "/domain/a@demo/enable", None)]),
        (("disable", "a/b"), [("POST", "/domain/a%2Fb/disable", None), ("GET", "/domain/a%2Fb", None)]),
        (("rm", "a", "--yes"), [("GET", "/domain/a", None), ("DELETE", "/domain/a@demo", None)]),
    ],
)
def test_the_other_operations_send_no_body(reseller: Reseller, arguments: tuple[str, ...], sent: list[Any]) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=[] if arguments == ("list",) else {"name": "a@demo"})

    assert reseller("domain", *arguments, answer=answer).sent == sent


def test_a_change_is_noted_by_the_typed_name_if_the_service_shows_no_domain(reseller: Reseller) -> None:
    done = reseller("domain", "enable", "a", answer=lambda request: httpx.Response(200))
    assert (done.code, done.stderr) == (0, "svcctl: domain a is enabled\n")


@pytest.mark.usefixtures("two")
def test_if_needed_makes_each_change_idempotent(reseller: Reseller) -> None:
    def twice(*arguments: str) -> list[tuple[int, str]]:
        return [
            (done.code, done.stderr) for done in (reseller("domain", *arguments, "--if-needed", "-q") for _ in range(2))
        ]

    assert twice("create", "new", "--plan", "trial") == [(0, ""), (0, "")]
    assert twice("disable", "acme") == [(0, ""), (0, "")]
    assert twice("enable", "acme") == [(0, ""), (0, "")]
    assert twice("rm", "acme", "--yes") == [(0, ""), (0, "")]
    assert [line.split(",")[0] for line in reseller("domain", "list").stdout.split()] == [
        "name",
        "new@demo",
        "waiting@demo",
    ]


QUIET: list[tuple[list[str], bool]] = [([], True), (["-q"], True), ([], False)]


def test_each_change_is_noted_on_a_terminal_and_in_a_pipe_but_not_with_quiet(reseller: Reseller) -> None:
    changes = {
        ("domain", "create", "acme", "--plan", "full"): "nobody can use acme@demo until it has an owner",
        ("domain", "disable", "acme"): "domain acme@demo is disabled",
        ("domain", "enable", "acme"): "domain acme@demo is enabled",
        ("role", "create", "acme", "--name", "R", "--policies", "Search,Alerts"): "created role 'R' in acme",
        ("role", "update", "acme", "R", "--policies", "Search"): "updated role 'R' in acme",
        ("role", "rm", "acme", "R", "--yes"): "deleted role 'R' of acme",
    }

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"name": "acme@demo"})

    for words, said in changes.items():
        notes = [reseller(*words, *more, answer=answer, terminal=terminal).stderr for more, terminal in QUIET]
        assert notes == [f"svcctl: {said}\n", "", f"svcctl: {said}\n"], words
