"""Every body an error can take becomes one exception with the service's own words."""

import pytest

from svcctl.api.refusals import Refusal, error_of, is_error_line, is_exact, read_refusal, refusal_in
from svcctl.errors import Conflict, CredentialsError, InternalError, NotFound, QueryPosition, ServiceError, Unavailable


@pytest.mark.parametrize(
    ("status", "body", "kind", "message", "code", "cid"),
    [
        (400, '{"error":{"code":12,"message":"no such table"}}', ServiceError, "no such table", 12, None),
        (
            500,
            '{"msg":"failed","status":500,"timestamp":1,"cid":"c1","object":["failed","the cause"]}',
            InternalError,
            "failed: the cause",
            500,
            "c1",
        ),
        (500, '{"error":"server_error","status":500,"cid":"c2"}', InternalError, "server_error", 500, "c2"),
        (
            400,
            '{"msg":"limit reached","code":624,"timestamp":1,"cid":"c3","context":{}}',
            ServiceError,
            "limit reached",
            624,
            "c3",
        ),
        (
            400,
            '{"error":"Bad parameters","object":["406 : Date from not valid format"]}',
            ServiceError,
            "Bad parameters: Date from not valid format",
            406,
            None,
        ),
        (200, '{"error":{"code":106,"message":"invalid domain"}}', NotFound, "invalid domain", 106, None),
        (404, '{"error":{"code":12,"message":"gone"}}', NotFound, "gone", 12, None),
        (200, '{"error":{"code":117,"message":"d@r"}}', Conflict, "d@r", 117, None),
        (200, '{"msg":"job not found","status":100,"cid":"c"}', NotFound, "job not found", 100, "c"),
        (200, '{"msg":"cannot change","status":101}', Conflict, "cannot change", 101, None),
        (200, '{"msg":"not running","status":108}', Conflict, "not running", 108, None),
        (200, '{"msg":"m","status":1,"error":{"code":100,"message":"m"},"object":["m","m"]}', NotFound, "m", 100, None),
        (200, '{"msg":"m","status":1,"error":{"code":101,"message":"m"},"object":["m","m"]}', Conflict, "m", 101, None),
        (200, '{"msg":"m","status":1,"error":{"code":108,"message":"m"},"object":["m","m"]}', Conflict, "m", 108, None),
        (401, '{"error":{"code":12,"message":"bad key"}}', CredentialsError, "bad key", 12, None),
        (403, "<html><title>403 Forbidden</title></html>", CredentialsError, "403 Forbidden", 403, None),
        (409, '{"success":false,"msg":"exists","status":1}', Conflict, "exists", 1, None),
        (
            400,
            '{"success":false,"msg":"bad","status":1,"cid":"c","timestamp":1,'
            '"error":{"code":1,"message":"bad"},"object":["bad","why"]}',
            ServiceError,
            "bad",
            1,
            "c",
        ),
        (400, "", ServiceError, "HTTP 400 with no message", 400, None),
        (
            404,
            '{"type":"about:blank","title":"Not Found","status":404,"detail":"no route to x","instance":"/x"}',
            NotFound,
            "no route to x",
            404,
            None,
        ),
        (400, '{"type":"about:blank","title":"Bad Request"}', ServiceError, "Bad Request", 400, None),
        (
            401,
            '{"error":{"code":12,"message":"bad key","more":[1]},"reason":null,"data":null,"new":{}}',
            CredentialsError,
            "bad key",
            12,
            None,
        ),
        (418, "short and  stout\n", ServiceError, "short and stout", 418, None),
    ],
)
def test_a_refusal_keeps_the_services_message_code_and_cid(
    status: int, body: str, kind: type, message: str, code: int | None, cid: str | None
) -> None:
    error = error_of(status, "application/json", body.encode())
    assert type(error) is kind
    assert isinstance(error, ServiceError)
    assert (error.message, error.code, error.cid) == (message, code, cid)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (502, "<html><head><title>502 Bad\nGateway</title></head><body>x</body></html>", ": Bad Gateway"),
        (522, "<!doctype html><h1>Timed <b>out</b></h1>", ": Timed out"),
        (503, "upstream gone", ": upstream gone"),
        (500, "<html><title>Oops</title></html>", ": Oops"),
        (429, "", ""),
        (503, '{"msg":"busy","status":503,"cid":"c9"}', ": busy (cid c9)"),
    ],
)
def test_a_passing_failure_is_unavailable_in_one_short_line(status: int, body: str, message: str) -> None:
    error = error_of(status, "text/html", body.encode())
    assert type(error) is Unavailable
    assert error.message == f"the service answered HTTP {status}{message}"


@pytest.mark.parametrize(
    "payload",
    [
        {"name": "d@r", "status": "Active"},
        {"status": 0, "msg": "", "object": [{"error": "in data"}]},
        {"success": True, "object": []},
        {"id": "j", "status": "STOPPED", "error": []},
        [{"error": 1}],
        None,
    ],
)
def test_an_answer_that_refuses_nothing_is_no_refusal(payload: object) -> None:
    assert read_refusal(payload) is None


def test_a_row_with_columns_called_msg_and_status_is_not_an_error_line() -> None:
    assert not is_error_line({"msg": "GET /", "status": 500})
    assert not is_error_line({"msg": "m", "status": 500, "cid": "c", "host": "h"})
    assert is_error_line({"msg": "m", "status": 500, "cid": "c"})
    assert is_error_line({"error": {"code": 1, "message": "m"}})


def test_a_refusal_in_all_forms_keeps_its_place_in_the_query() -> None:
    refusal = read_refusal(
        {"msg": "m", "status": 1, "error": {"code": 1, "message": "m"}, "context": {"line": 2, "column": 7}}
    )
    assert refusal == Refusal("m", 1, None, QueryPosition(2, 7))


@pytest.mark.parametrize("value", ["exact", "Exact", " exact ", "exact, exact", "other,exact"])
def test_an_answer_is_exact_if_its_header_says_so(value: str) -> None:
    assert is_exact({"x-svc-errors": value})


@pytest.mark.parametrize("headers", [{}, {"x-svc-errors": ""}, {"x-svc-errors": "inexact"}, {"x-svc-error": "exact"}])
def test_any_other_answer_is_not_exact(headers: dict[str, str]) -> None:
    assert not is_exact(headers)


@pytest.mark.parametrize(
    ("body", "anywhere", "exact"),
    [
        ('{"msg":"m","status":500,"cid":"c"}', True, False),
        ('{"error":"boom"}', True, False),
        ('{"error":{"code":1,"message":"m"}}', True, False),
        ('{"e":"x"}', True, False),
        ('{"success":false,"msg":"m"}', True, False),
        ('["error",500,"m"]', True, True),
        ('{"success":true,"status":0,"object":[],"error": [500, "m"]}', True, True),
        ('{"success":true,"status":0,"object":{"m":{},"d":[]},"e":[500,"m"]}', True, True),
        ('{"msg":"m","status":500,"cid":"c","user":"u"}', False, False),
        ('[{"error":"boom"}]', False, False),
        ("[]", False, False),
        ("5", False, False),
    ],
)
def test_a_whole_body_that_may_be_a_row_is_a_refusal(body: str, anywhere: bool, exact: bool) -> None:
    assert (refusal_in(body.encode()) is not None) == anywhere
    assert (refusal_in(body.encode(), exact=True) is not None) == exact
