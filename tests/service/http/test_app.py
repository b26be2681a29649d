"""What every route shares: errors as envelopes, request IDs, limits; and the routes of the service itself."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from support.application import answered
from support.engines import chosen_engine

from svcctl import __version__
from svcctl.cli.help import topics
from svcctl.service.accounts import accounts
from svcctl.service.http import monitoring, provisioning, tables, temporary_tables
from svcctl.service.http.app import build
from svcctl.service.http.context import Service
from svcctl.service.state.store import Store

NOW = 1_700_000_000.0
MIB = 2**20
Ask = Callable[..., httpx.Response]


@pytest.fixture
def ask(store: Store) -> Iterator[Ask]:
    """Sends a request to a service without tables; `token` is that of an operator unless given."""
    with chosen_engine() as engines, ThreadPoolExecutor(1) as executor:
        app = build(Service(engines, store, executor, clock=lambda: NOW, started=NOW))

        def ask(method: str, path: str, content: bytes = b"", token: str = "operator", **named: str) -> httpx.Response:
            """`named` has more headers, with _ for -."""
            headers = {name.replace("_", "-"): value for name, value in named.items()}
            headers["authorization"] = f"Bearer {token}"
            return answered(app, method, path, content, headers)

        yield ask


def without_id(answer: httpx.Response) -> tuple[int, dict[str, Any]]:
    """Status and body of an answer, whose ID is the same in header and body."""
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert re.fullmatch("[0-9a-f]{12}", answer.headers["x-svc-cid"])
    assert body.pop("cid") == answer.headers["x-svc-cid"]
    if answer.is_error:
        assert (body.pop("reason") != "", isinstance(body.pop("data"), dict)) == (True, True)
    return answer.status_code, body


def refusal(message: str, code: int = 1) -> dict[str, Any]:
    return {
        "success": False,
        "msg": message,
        "status": 1,
        "timestamp": int(NOW * 1000),
        "error": {"code": code, "message": message},
        "object": [f"{code} : {message}" if code in (405, 406, 408) else message, message],
    }


@pytest.mark.parametrize("token", ["operator", "nobody"])
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/"), ("GET", "/search/query"), ("POST", "/search/jobs"), ("DELETE", "/search/job/1"), ("GET", "/search")],
)
def test_what_has_no_route_is_not_found_whoever_asks(ask: Ask, method: str, path: str, token: str) -> None:
    assert without_id(ask(method, path, token=token)) == (404, refusal(f"no route {method} {path}"))


def test_each_request_has_an_id_of_its_own(ask: Ask) -> None:
    assert len({ask("GET", "/service/status").headers["x-svc-cid"] for _ in range(3)}) == 3


def test_a_request_that_is_not_signed_is_refused(ask: Ask) -> None:
    assert without_id(ask("GET", "/service/status", token="nobody")) == (401, refusal("the token is not valid", 12))


def test_a_request_with_an_expired_key_is_refused_as_one_with_an_unknown_key_and_logged(
    ask: Ask, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    key = accounts.issue(store, domain="local", name="ann", expires=int(NOW * 1000))
    for _ in range(2):
        refused = ask("GET", "/service/status", token=key.token or "")
        assert without_id(refused) == (401, refusal("the token is not valid", 12))
    assert [key.api_key in message for message in caplog.messages] == [True]


def test_the_status_tells_operators_which_keys_expire_soon(ask: Ask, store: Store) -> None:
    soon, day = int(time.time() * 1000), 86_400_000
    key = accounts.issue(store, domain="local", expires=soon + 2 * day)
    for name, expires in (("ann", soon + day), ("old", soon), ("later", soon + 30 * day)):
        accounts.issue(store, domain="local", name=name, expires=expires)
    assert ask("GET", "/service/status").json()["object"]["expiringKeys"] == [
        {"name": key.api_key, "expires": soon + 2 * day},
        {"name": "ann", "expires": soon + day},
    ]
    assert "expiringKeys" not in ask("GET", "/service/status", token="ordinary").json()["object"]


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (b"{}", 405, "from is missing"),
        (b'{"from":"x"}', 406, "'x' is not a valid date"),
        (
            b'{"from":2,"to":1}',
            408,
            "the range ends before it starts: from 1970-01-01 00:00:02 to 1970-01-01 00:00:01 (UTC)",
        ),
    ],
)
def test_a_query_without_a_range_is_answered_with_the_code_of_the_reason(
    ask: Ask, body: bytes, code: int, message: str
) -> None:
    if code != 405:
        body = body.replace(b"{", b'{"query":"from t",', 1)
    assert without_id(ask("POST", "/search/query", body)) == (400, refusal(message, code))


def test_a_body_may_have_a_mebibyte_and_not_a_byte_more(ask: Ask) -> None:
    assert without_id(ask("POST", "/search/query", b" " * MIB)) == (400, refusal("the body is not JSON"))
    too_large = refusal("the body is larger than 1.0 MB")
    assert without_id(ask("POST", "/search/query", b" " * (MIB + 1))) == (413, too_large)


@pytest.mark.parametrize("coding", ["UTF-8", "utf8", "identity", "charset=utf-8", "identity, ISO-8859-1"])
def test_a_charset_in_content_encoding_is_ignored(ask: Ask, coding: str) -> None:
    answer = ask("POST", "/search/query", b'{"query":"from a"}', content_encoding=coding)
    assert answer.json() == ask("POST", "/search/query", b'{"query":"from a"}').json() | {
        "cid": answer.headers["x-svc-cid"]
    }


@pytest.mark.parametrize(
    ("coding", "name"), [("gzip", "gzip"), ("Deflate, UTF-8", "deflate"), ("br, zstd", "br, zstd")]
)
def test_a_compressed_body_is_refused_by_the_name_of_its_compression(ask: Ask, coding: str, name: str) -> None:
    status, body = without_id(ask("POST", "/search/query", b"{}", content_encoding=coding))
    cause = f"the body is compressed with {name}"
    assert (status, body["msg"], body["object"][1]) == (415, f"{cause}; send it without compression", cause)
    assert ask("GET", "/search/jobs", content_encoding=coding).status_code == 200


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON;CHARSET=UTF-8",
        " application/json ;charset=latin-1; x=y",
        "text/json",
        "application/vnd.x.v2+json",
        "",
    ],
)
def test_a_body_of_json_is_read_whatever_the_parameters_of_its_type_are(ask: Ask, kind: str) -> None:
    assert ask("POST", "/domain", b"[]", content_type=kind).json() == ask("POST", "/domain", b"[]").json()


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=application/json",
        "application/jsonl",
        "application/x-ndjson",
        "application/octet-stream",
        "json",
        "*/*",
        "text/plain; a=application/json",
        "+json",
    ],
)
def test_a_body_of_another_type_is_refused(ask: Ask, kind: str) -> None:
    for method, path in (("POST", "/search/query"), ("POST", "/domain"), ("PUT", "/domain/a/roles/b")):
        answer = ask(method, path, b"{}", content_type=kind)
        cause = f"the body has the Content-Type {kind}, which is not JSON"
        assert (answer.status_code, answer.json()["error"]["message"]) == (415, f"{cause}; send it as application/json")
    assert ask("GET", "/search/jobs", content_type=kind).status_code == 200
    assert ask("POST", "/search/query", content_type=kind).status_code == 400  # without a body


def test_every_answer_says_that_its_errors_are_exact(ask: Ask) -> None:
    for method, path, token in (
        *(("GET", path, "operator") for path in ("/search/jobs", "/service/tables", "/service/health", "/domain")),
        ("POST", "/search/query", "operator"),
        ("GET", "/nowhere", "operator"),
        ("GET", "/search/jobs", "nobody"),
    ):
        assert ask(method, path, token=token).headers["x-svc-errors"] == "exact", path


def test_a_defect_is_an_envelope_too_and_its_reason_is_in_the_log_alone(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    without_engine = Service(cast(Any, None), store, cast(Any, None), clock=lambda: NOW)
    answer = answered(build(without_engine), "GET", "/service/status", headers={"authorization": "Bearer operator"})
    assert without_id(answer) == (500, refusal("the service failed on this request; its log has the reason"))
    assert answer.headers["connection"] == "close"
    cid = answer.headers["x-svc-cid"]
    assert caplog.messages == [f"request {cid} failed: AttributeError(\"'NoneType' object has no attribute 'check'\")"]


def test_the_status_tells_version_start_and_tables(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("eventdate,n\n2024-01-31 10:00:00,1\n", encoding="utf-8")
    fields = {"files": [{"path": str(tmp_path / "rows.csv")}], "table": "rows"}
    status, loaded = without_id(ask("POST", "/service/load", json.dumps(fields).encode()))
    assert (status, loaded["object"]["rows"]) == (200, 1)
    assert without_id(ask("GET", "/service/status"))[1]["object"] == {
        "version": __version__,
        "address": None,
        "startedAt": int(NOW * 1000),
        "tables": [{"name": "rows", "columns": ["eventdate timestamp", "n int8"]}],
        "uses": {},
    }


@pytest.mark.parametrize(
    ("token", "client", "status", "stops"),
    [
        ("operator", None, 200, 1),
        ("operator", ("127.0.0.1", 123), 401, 0),
        ("ordinary", None, 401, 0),
        ("wrong", None, 401, 0),
    ],
)
def test_only_an_administrator_stops_the_service_and_only_over_its_own_socket(
    store: Store, token: str, client: tuple[str, int] | None, status: int, stops: int
) -> None:
    calls: list[None] = []
    with chosen_engine() as engines, ThreadPoolExecutor(1) as executor:
        app = build(Service(engines, store, executor, stop=lambda: calls.append(None)))
        answer = answered(app, "POST", "/service/stop", b"", {"authorization": f"Bearer {token}"}, client=client)
    assert (answer.status_code, len(calls)) == (status, stops)


def test_a_service_that_no_request_stops_does_not_know_that_request(ask: Ask) -> None:
    assert ask("POST", "/service/stop").status_code == 404


def test_the_help_has_the_routes_of_our_own_and_the_members_of_what_they_take_and_answer(
    ask: Ask, store: Store, tmp_path: Path
) -> None:
    page = topics.read("service")
    routes = [
        route
        for module in (tables, temporary_tables, monitoring, provisioning)
        for route in module.ROUTES
        if "/service/" in route.path
    ]
    paths = [re.sub(r"\{(\w+)\}", lambda name: name[1].upper(), route.path) for route in routes]
    assert [path for path in paths if not re.search(rf"(GET|POST|DELETE) {path}\s", page)] == []
    (tmp_path / "rows.csv").write_text("eventdate,n\n2024-01-31 10:00:00,1\n", encoding="utf-8")
    fields = {"files": [{"path": str(tmp_path / "rows.csv")}], "table": "rows", "attempt": "a"}
    accounts.issue(store, domain="local", expires=int(time.time() * 1000) + 1000)
    answers = [
        ask("POST", "/service/load", json.dumps(fields).encode()),
        ask("GET", "/service/load/a"),
        ask("GET", "/service/tables/rows"),
        ask("GET", "/service/status"),
        ask("GET", "/service/health"),
        ask("POST", "/service/tables/rows/trim", b'{"before": 1000}'),
        ask("DELETE", "/service/tables/rows"),
    ]
    members = {name for answer in answers for name in answer.json()["object"]}
    assert {"rows", "loaded", "removed", "startedAt"} <= members
    told = page.partition("Members of the other routes")[2].partition("\nColumns\n")[0]
    taken = {*tables.LOAD_MEMBERS, *temporary_tables.MEMBERS}
    assert sorted(name for name in members | taken if not re.search(rf"\b{name}\b", told)) == []


NO_FILES = 'files is not a list of objects with a path, such as [{"path": "/rows.csv"}]'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not JSON"),
        (b"[]", "the body is not a JSON object"),
        (b"{}", "table is missing"),
        (b'{"table":null}', "table is missing"),
        (b'{"table":1}', "table is not a string"),
        (b'{"table":"t"}', "files is missing"),
        (b'{"table":"t","files":[]}', NO_FILES),
        (b'{"table":"t","files":["/rows.csv"]}', NO_FILES),
        (b'{"table":"t","files":[{}]}', "path is missing"),
        (b'{"table":"t","files":[{"path":1}]}', "path is not a string"),
        (b'{"table":"t","files":[{"path":"/x"}],"types":["ip4"]}', "types is not an object of strings"),
        (b'{"table":"t","files":[{"path":"/x"}],"replace":1}', "replace is neither true nor false"),
        (
            b'{"table":"t","files":[{"path":"/x"}],"timeZone":"GMT+002"}',
            "time zone 'GMT+002' is not of the form GMT+2; "
            "write GMT, GMT+<hours>, GMT-<hours>, or GMT+<hours>:<minutes>",
        ),
    ],
)
def test_a_load_whose_body_cannot_be_used_is_a_request_error(ask: Ask, body: bytes, message: str) -> None:
    status, answer = without_id(ask("POST", "/service/load", body))
    assert (status, answer["msg"], answer["success"]) == (400, message, False)


def test_only_an_administrator_of_the_service_loads_events(ask: Ask) -> None:
    assert without_id(ask("POST", "/service/load", b"{}", token="ordinary")) == (
        401,
        refusal("only an administrator of the service may load events"),
    )


PAGE = "https://app.example"


@pytest.fixture
def from_page(store: Store) -> Ask:
    """Sends a request of a web page to a service that pages of PAGE may use."""
    without_engine = Service(cast(Any, None), store, cast(Any, None), clock=lambda: NOW)

    def ask(method: str, path: str, origin: str = PAGE, **headers: str) -> httpx.Response:
        app = build(without_engine, origins=[PAGE])
        return answered(app, method, path, b"", {"origin": origin} | headers)

    return ask


def cors(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "x-svc-sign,content-type"}


def test_a_browser_that_asks_for_a_page_of_the_setting_is_told_what_the_page_may_send(from_page: Ask) -> None:
    answer = from_page("OPTIONS", "/search/query", **PREFLIGHT)
    assert answer.status_code == 200
    assert cors(answer) == {
        "access-control-allow-origin": PAGE,
        "access-control-allow-methods": "GET, POST, PUT, DELETE",
        "access-control-allow-headers": "Accept, Accept-Language, Authorization, Content-Language, Content-Type, "
        "x-svc-apikey, x-svc-sign, x-svc-timestamp",
        "access-control-max-age": "600",
    }


def test_a_page_of_the_setting_may_read_answers_and_refusals(from_page: Ask) -> None:
    readable = {"access-control-allow-origin": PAGE, "access-control-expose-headers": "x-svc-cid, x-svc-errors"}
    jobs = from_page("GET", "/search/jobs", authorization="operator")
    assert (jobs.status_code, jobs.json()["object"], cors(jobs)) == (200, [], readable)
    for path, token, status in (("/search/jobs", "nobody", 401), ("/x", "", 404), ("/service/status", "operator", 500)):
        refused = from_page("GET", path, authorization=token)
        assert (refused.status_code, cors(refused)) == (status, readable)


def test_other_pages_may_not_read_and_without_the_setting_none_may(from_page: Ask, ask: Ask, store: Store) -> None:
    elsewhere = from_page("GET", "/search/jobs", "https://elsewhere.example", authorization="operator")
    assert "access-control-allow-origin" not in elsewhere.headers
    assert from_page("OPTIONS", "/search/query", "https://elsewhere.example", **PREFLIGHT).status_code == 400
    off = build(Service(cast(Any, None), store, cast(Any, None), clock=lambda: NOW))
    asked = answered(off, "OPTIONS", "/search/query", b"", {"origin": PAGE, **PREFLIGHT})
    assert (without_id(asked), cors(asked)) == ((404, refusal("no route OPTIONS /search/query")), {})
    assert cors(answered(off, "GET", "/search/jobs", b"", {"origin": PAGE, "authorization": "operator"})) == {}


SECRET = "s3cr3t-value"


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": SECRET},
        {"authorization": f"Bearer {SECRET}"},
        {"authorization": f"jwt {SECRET}"},
        {"authorization": f"{SECRET} {SECRET}"},
        {"x-svc-apikey": SECRET, "x-svc-timestamp": SECRET, "x-svc-sign": SECRET},
        {"x-svc-apikey": SECRET, "x-svc-timestamp": str(int(NOW * 1000)), "x-svc-sign": SECRET},
    ],
)
def test_no_refusal_repeats_a_header(store: Store, headers: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    app = build(Service(cast(Any, None), store, cast(Any, None), clock=lambda: NOW))
    answer = answered(app, "GET", "/search/jobs", b"", headers)
    assert answer.status_code == 401
    assert SECRET not in answer.text + caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("type_", ["kafka", "s3", "hdfs", SECRET])
@pytest.mark.parametrize(
    "params",
    [
        {"aws.secretkey": SECRET, "file.password": SECRET, "sasl.password": SECRET, "format": "gzip"},
        {"aws.secretkey": {"key": SECRET}, "topic": [SECRET], "bootstrap.servers": {}},
        {"token": SECRET, "fs.defaultFS": "nowhere", "file": "x"},
        SECRET,
        [SECRET],
    ],
)
def test_no_refusal_repeats_a_parameter_that_may_be_a_secret(
    ask: Ask, type_: str, params: Any, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("eventdate,n\n2024-01-31 10:00:00,1\n", encoding="utf-8")
    ask(
        "POST", "/service/load", json.dumps({"files": [{"path": str(tmp_path / "rows.csv")}], "table": "rows"}).encode()
    )
    destination = {"type": type_, "params": params}
    query = {"query": "from rows", "from": 1, "to": 2, "destination": destination}
    answer = ask("POST", "/search/query", json.dumps(query).encode())
    assert answer.status_code == 400
    assert (SECRET in answer.text) == (type_ == SECRET and isinstance(params, dict))
    assert SECRET not in caplog.text
