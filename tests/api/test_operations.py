"""The operations that only read or may be repeated, and how requests may be written that look like them."""

from __future__ import annotations

import json
import re

import pytest
from support.scripted import Serve, http

from svcctl.api.addresses import Paths, segment
from svcctl.api.auth import Bearer
from svcctl.api.client import Client
from svcctl.api.operations import Operations
from svcctl.errors import Unavailable
from svcctl.service.http.app import routes

BASE, PROVISIONING = "https://h/v2", "https://p"
OPERATIONS = Operations(BASE, PROVISIONING, Paths())
QUERY = {"query": "from t", "from": "1h"}

READS = {
    "GET /search/jobs",
    "GET /search/job/{id}",
    "GET /domain",
    "GET /domain/{domain:path}",
    "GET /domain/{domain}/roles",
    "GET /domain/{domain}/roles/{role:path}",
    "GET /service/domain/{domain}/available",
    "GET /service/health",
    "GET /service/jobs/{id}/verify",
    "GET /service/load/{attempt}",
    "GET /service/metrics",
    "GET /service/ping",
    "GET /service/status",
    "GET /service/tables",
    "GET /service/tables/{name}",
    "POST /search/query",
    "POST /service/domain/check",
    "POST /service/temporary-table",
}
"""The routes of svcctl's own service that change nothing."""


def url_of(path: str) -> str:
    return (PROVISIONING if path.startswith("/domain") else BASE) + path


def change(method: str, path: str, body: bytes = b"", *headers: str) -> str | None:
    return OPERATIONS.change(method, url_of(path), body, headers)


def test_the_routes_of_the_service_that_are_not_listed_change_something() -> None:
    reads = set()
    for route in routes(stops=True):
        path = re.sub(r"{[^}]*}", "x", route.path)
        for method in (route.methods or set()) - {"HEAD"}:
            if change(method, path, json.dumps(QUERY).encode()) is None:
                reads.add(f"{method} {route.path}")
    assert reads == READS


@pytest.mark.parametrize(
    "path",
    [
        "/search/jobs",
        "/search/job/3f2a",
        "/domain",
        "/domain/acme%40demo",
        "/domain/stop",
        "/domain/acme/roles",
        f"/domain/acme/roles/{segment('a/b c')}",
    ],
)
def test_lists_and_records_are_read(path: str) -> None:
    assert change("GET", path) is None
    assert [
        method for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "get") if change(method, path) is None
    ] == []


@pytest.mark.parametrize(
    "path",
    [
        "/search/job/stop/3f2a",
        "/search/job/start/3f2a",
        "/search/job/remove/3f2a",
        "/search/job/stop",
        "/search/job/STOP",
        "/search/job/%73top",
        "/search/job/stop%2F3f2a",
        "/search/job/stop%252F3f2a",
        "/search/job/stop\\3f2a",
        "/search/job/3f2a/../stop/3f2a",
        "/search/job/..%2Fjob%2Fstop%2F3f2a",
        "/search/job/..",
        "/search/job//3f2a",
        "/search/job/",
        "/search/job/3f2a#x",
        "/search/job/..;",
        "/search/job/stop;x",
        "/search/job/3f2a%00",
        "//search/jobs",
        "/search/jobs/",
        "/Search/jobs",
        "/search/jobs?_method=DELETE",
        "/domain/acme/disable",
        "/domain/acme%2Fdisable",
        "/domain/acme/roles/..%2F..%2Fdisable",
        "/service/stop",
        "/new/operation",
    ],
)
def test_every_other_path_may_change_something(path: str) -> None:
    assert [method for method in ("GET", "HEAD", "POST", "PUT", "DELETE") if change(method, path) is None] == []


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (json.dumps(QUERY), None),
        (json.dumps({"queryId": "saved", "from": 0, "mode": {"type": "csv", "destination": 1}}), None),
        (json.dumps(QUERY | {"destination": {"type": "donothing"}}), "a destination"),
        (json.dumps(QUERY | {"destination": None}), "a destination"),
        (json.dumps(QUERY | {"Destination": {}}), "a destination"),
        ('{"destination": {"type": "kafka"}, "destination": null}', "a destination"),
        (r'{"query": "from t", "\u0064estination": {}}', "a destination"),
        ("", "a body that is not a JSON object"),
        ("[]", "a body that is not a JSON object"),
        ('{"query": "from t"', "a body that is not a JSON object"),
        ("[" * 100_000, "a body that is not a JSON object"),
    ],
)
def test_a_query_reads_if_it_surely_has_no_destination(body: str, part: str | None) -> None:
    expected = None if part is None else f"POST /v2/search/query with {part}"
    assert change("POST", "/search/query", body.encode()) == expected


def test_a_query_is_known_however_its_url_is_written_but_read_in_one_form_only() -> None:
    body = json.dumps(QUERY).encode()
    for path in ("/search/query/", "/search//query", "/search/%71uery", "/search/query?x=1"):
        assert OPERATIONS.is_query("POST", BASE + path)
        assert change("POST", path, body) is not None
    assert not OPERATIONS.is_query("POST", f"{BASE}/search/jobs")


@pytest.mark.parametrize(
    "header", ["X-HTTP-Method-Override", "x-method-override", "X-HTTP-Method", "X-Original-URL", "x-rewrite-url"]
)
def test_a_header_that_replaces_the_method_or_the_path_may_change_something(header: str) -> None:
    assert change("GET", "/search/jobs", b"", "accept") is None
    assert change("GET", "/search/jobs", b"", "accept", header) == f"GET /v2/search/jobs with the header {header}"


def test_the_paths_and_urls_are_those_of_the_deployment() -> None:
    operations = Operations(BASE, PROVISIONING, Paths(query="/ask", job="/j", jobs="/list", domain="/d"))
    reads = ("/list", "/j/3f2a")
    assert [operations.change("GET", BASE + path, b"") for path in reads] == [None, None]
    assert operations.change("GET", f"{PROVISIONING}/d/acme/roles", b"") is None
    assert operations.change("POST", f"{BASE}/ask", b"{}") is None
    others = [f"{BASE}/j/stop/3f2a", f"{BASE}/search/jobs", f"{BASE}/d", f"{PROVISIONING}/list", "https://other/list"]
    assert None not in [operations.change("GET", url, b"") for url in others]


@pytest.mark.parametrize(
    ("method", "path", "body", "sent"),
    [
        ("GET", "/search/jobs", b"", 2),
        ("GET", "/x", b"", 2),
        ("POST", "/search/query", b'{"query":"from t","from":"1h"}', 2),
        ("POST", "/search/query", b'{"query":"from t","from":"1h","destination":{"type":"donothing"}}', 1),
        ("GET", "/search/job/stop/j1", b"", 1),
        ("GET", "/search/job/st%61rt/j1", b"", 1),
        ("DELETE", "/search/job/remove/j1", b"", 1),
        ("POST", "/domain", b'{"name":"d"}', 1),
        ("PATCH", "/x", b"{}", 1),
        ("PUT", "/domain/d/roles/r", b"{}", 2),
        ("DELETE", "/domain/d", b"", 2),
    ],
)
def test_any_request_is_repeated_unless_it_must_not_be_done_twice(
    method: str, path: str, body: bytes, sent: int, serve: Serve
) -> None:
    for status, count in (("502 Bad", sent), ("503 Busy", 2)):
        script = serve(http(status), http(status))
        with (
            Client(script.url, Bearer("T"), retries=1, sleep=lambda seconds: None) as client,
            pytest.raises(Unavailable),
        ):
            client.call(method, path, body)
        assert len(script.requests) == count
