"""The client against a service that says exactly what a test scripts, byte for byte, over a real socket."""

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import httpx
import pytest
from support.over_httpx import OverHttpx
from support.scripted import LOST, Script, Serve, head, http, ok, read_request

from svcctl.api import retry
from svcctl.api.addresses import Paths
from svcctl.api.auth import Bearer, HeaderNames, Jwt, Signature, sign
from svcctl.api.client import Client
from svcctl.api.destinations import Destination
from svcctl.api.models import Domain, Job, Role
from svcctl.api.query import QueryRequest
from svcctl.api.transport import Event, Exchange, Retry
from svcctl.api.wire.failures import (
    ConnectError,
    ConnectTimeout,
    DecodingError,
    LocalProtocolError,
    ProxyError,
    ReadError,
    ReadTimeout,
    RemoteProtocolError,
    TimeoutException,
    UnsupportedProtocol,
)
from svcctl.api.wire.messages import Request, Response
from svcctl.errors import (
    Conflict,
    CredentialsError,
    IncompleteResult,
    InternalError,
    NotFound,
    ServiceError,
    SvcctlError,
    Unavailable,
    UsageError,
)

NOW = 1700000000.0
AUTH = Signature("KEY", "SECRET", clock=lambda: NOW)
CSV = QueryRequest(from_="1h", to="now", query="from t", mode="csv")


def client(script: Script, **options: Any) -> Client:
    return Client(
        script.url, options.pop("auth", AUTH), **{"clock": lambda: NOW, "sleep": lambda seconds: None, **options}
    )


def failure(call: Callable[[], object]) -> SvcctlError:
    with pytest.raises(SvcctlError) as caught:
        call()
    return caught.value


def read(script: Script, request: QueryRequest = CSV, **options: Any) -> bytes:
    with client(script, **options) as service, service.query(request) as response:
        return b"".join(response.raw())


SPANS = [replace(CSV, from_=start, to=start + 10, time_zone=zone) for start, zone in ((0, "GMT+2"), (10, "GMT+1"))]


def test_the_answers_for_neighbouring_spans_are_one_answer_with_one_heading(serve: Serve) -> None:
    script = serve(http("200 OK", 'a,b\n1,"x\ny"\n'), http("200 OK", "a,b\n"), http("200 OK", "a,b\n2,.error\n"))
    with client(script) as service, service.query_spans([*SPANS, CSV]) as answer:
        blocks = list(answer.raw())
    assert (blocks[0], b"".join(blocks)) == (b"a,b\n", b'a,b\n1,"x\ny"\n2,.error\n')
    assert (answer.row_count, answer.bytes, [column.name for column in answer.columns]) == (2, 21, ["a", "b"])
    assert [json.loads(body).get("timeZone") for _, _, body in script.requests] == ["GMT+2", "GMT+1", None]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (http("400 Bad", '{"msg":"no","status":400}'), ServiceError),
        (http("401 No", '{"msg":"no","status":401}'), CredentialsError),
        (http("503 No"), Unavailable),
        (http("200 OK", "<html></html>", "Content-Type: text/html"), Unavailable),
        (http("200 OK", "a,b\n2,3\nx.error,500,full,now\n"), IncompleteResult),
        (http("200 OK", "a,c\n2,3\n"), IncompleteResult),
        (http("200 OK", ""), IncompleteResult),
    ],
)
def test_the_error_of_a_later_span_comes_after_the_rows_of_the_first(
    serve: Serve, answer: bytes, kind: type[SvcctlError]
) -> None:
    script = serve(http("200 OK", "a,b\n1,2\n"), answer)
    read = list[bytes]()
    with client(script, retries=0) as service, pytest.raises(kind), service.query_spans(SPANS) as response:
        for block in response.raw():
            read.append(block)
    assert b"".join(read).startswith(b"a,b\n1,2\n")


def test_a_span_is_requested_when_the_one_before_it_has_been_read(serve: Serve) -> None:
    script = serve(http("200 OK", "a,b\n1,2\n"), http("200 OK", "a,b\n3,4\n"))
    with client(script) as service, service.query_spans(SPANS) as answer:
        blocks = answer.raw()
        seen = [next(blocks), next(blocks)]
        assert (seen, len(script.requests)) == ([b"a,b\n", b"1,2\n"], 1)
    assert len(script.requests) == 1


def test_the_bytes_signed_are_the_bytes_sent(serve: Serve) -> None:
    script = serve(http("200 OK", "a,b\n1,2\n"))
    assert read(script) == b"a,b\n1,2\n"
    [(line, headers, body)] = script.requests
    assert line == "POST /search/query"
    assert body == b'{"query":"from t","from":"1h","to":"now","mode":{"type":"csv"},"keepAlive":{"type":"token"}}'
    assert headers["x-svc-sign"] == sign("KEY", "SECRET", body, int(headers["x-svc-timestamp"]))
    assert (headers["content-type"], headers["accept-encoding"]) == ("application/json", "identity")


BODY = b'a,b\n1,"x\ny"\n2,3\n'
SENDINGS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    "close": (lambda body: head("200 OK"), lambda body: body),
    "length": (lambda body: head("200 OK", f"Content-Length: {len(body)}"), lambda body: body),
    "chunked": (
        lambda body: head("200 OK", "Transfer-Encoding: chunked"),
        lambda body: b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n",
    ),
}


@pytest.mark.parametrize("sending", SENDINGS)
def test_an_answer_that_comes_byte_by_byte_is_read(serve: Serve, sending: str) -> None:
    start, encode = SENDINGS[sending]
    sent = start(BODY) + encode(BODY)
    assert read(serve([sent[at : at + 1] for at in range(len(sent))])) == BODY


@pytest.mark.parametrize("sending", SENDINGS)
def test_a_connection_cut_at_every_byte_of_the_body(serve: Serve, sending: str) -> None:
    start, encode = SENDINGS[sending]
    encoded = encode(BODY)
    script = serve(*(start(BODY) + encoded[:at] for at in range(len(encoded))), b"")
    with client(script, retries=0) as service:
        for at in range(len(encoded)):
            got = b""
            complete, rows = False, None
            try:
                with service.query(CSV) as response:
                    for block in response.raw():
                        got += block
                    complete = True
            except IncompleteResult as error:
                rows = error.rows
            assert complete or rows == max(got.replace(b"x\ny", b"").count(b"\n") - 1, 0), at
            assert got in (b"", b"a,b\n", b'a,b\n1,"x\ny"\n', BODY), at
            # Only a body that ends by closing can be cut unseen, and then only where a row ends.
            assert complete == (sending == "close" and at in (4, 12)), at


def test_a_stream_that_broke_is_not_asked_for_again(serve: Serve) -> None:
    script = serve(head("200 OK", "Content-Length: 100") + b"a,b\n1,2\n3,")
    error = failure(lambda: read(script))
    assert isinstance(error, IncompleteResult)
    assert (error.rows, len(script.requests)) == (1, 1)


def test_a_silent_stream_is_incomplete(serve: Serve) -> None:
    ended = threading.Event()

    def pieces() -> Iterator[bytes]:
        yield head("200 OK") + b"a,b\n1,2\n"
        ended.wait(10)

    class Silent(list[bytes]):
        def __iter__(self) -> Iterator[bytes]:
            return pieces()

    error = failure(lambda: read(serve(Silent()), timeout=0.1))
    ended.set()
    assert (type(error), error.message) == (IncompleteResult, SILENT)


RETRIED = (408, 425, 429, 502, 503, 504, 520, 521, 522, 523, 524, 527, 529, 530)
FINAL = (300, 400, 405, 407, 421, 500, 501, 505, 507, 511, 525, 526)
"""HTTP statuses that no command tries again."""


@pytest.mark.parametrize("status", RETRIED)
def test_what_may_pass_by_itself_is_tried_again_with_a_new_signature(serve: Serve, status: int) -> None:
    moments, slept = iter([1.0, 2.0]), list[float]()
    busy = http(f"{status} Busy", "<html><title>Busy</title></html>", "Retry-After: 7")
    script = serve(busy, http("200 OK", "a\n1\n"))
    auth = Signature("KEY", "SECRET", clock=lambda: next(moments))
    assert (read(script, auth=auth, sleep=slept.append), slept) == (b"a\n1\n", [7.0])
    assert [headers["x-svc-timestamp"] for _, headers, _ in script.requests] == ["1000", "2000"]
    assert script.requests[0][1]["x-svc-sign"] != script.requests[1][1]["x-svc-sign"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, ServiceError), (401, CredentialsError), (403, CredentialsError), (404, NotFound), (500, InternalError)],
)
def test_a_refusal_is_not_tried_again(serve: Serve, status: int, kind: type) -> None:
    script = serve(http(f"{status} No", '{"error":{"code":12,"message":"no"}}'))
    error = failure(lambda: read(script))
    assert (type(error), error.message, len(script.requests)) == (kind, "no", 1)


@pytest.mark.parametrize("status", FINAL)
@pytest.mark.parametrize("body", ["", "<html><title>No</title></html>", '{"error":{"code":12,"message":"no"}}'])
def test_no_other_status_is_tried_again_whoever_sends_it(serve: Serve, status: int, body: str) -> None:
    script = serve(http(f"{status} No", body, "Retry-After: 0"))
    error = failure(lambda: read(script))
    assert (retry.is_passing(error), len(script.requests)) == (False, 1)


@pytest.mark.parametrize("status", RETRIED)
def test_what_must_not_be_done_twice_is_tried_again_only_if_nothing_was_done(serve: Serve, status: int) -> None:
    script = serve(http(f"{status} Busy"), ok('{"msg":"","status":0,"object":{"id":"j1"}}'))
    if status in (425, 429, 503):
        assert client(script).launch(LAUNCH) == "j1"
        return
    error = failure(lambda: client(script).launch(LAUNCH))
    assert (type(error), error.hint, len(script.requests)) == (
        Unavailable,
        "the service may have carried out the request: check before trying again",
        1,
    )


def test_an_idle_connection_that_was_closed_with_a_408_carries_no_request() -> None:
    """A server that gives up an idle connection says so with a 408, which is not the answer to the next request."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    late = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    connections = 0
    answered, closed = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer_twice() -> None:
            nonlocal connections
            for _ in range(2):
                connection, _ = listener.accept()
                with connection:
                    connections += 1
                    read_request(connection)
                    connection.sendall(answer)
                    assert answered.wait(10)
                    connection.sendall(late)
                closed.set()

        thread = threading.Thread(target=answer_twice)
        thread.start()
        with Client(f"http://127.0.0.1:{listener.getsockname()[1]}", AUTH, retries=0) as service:
            service.call("POST", "/x")
            answered.set()
            assert closed.wait(10)
            service.call("POST", "/x")
        thread.join(10)
    assert connections == 2


def test_a_service_without_space_is_unavailable_and_not_asked_again(serve: Serve) -> None:
    script = serve(http("507 Insufficient Storage", '{"msg":"no space left","status":1,"cid":"c9"}'))
    error = failure(lambda: read(script))
    assert (type(error), len(script.requests)) == (Unavailable, 1)


def test_attempts_end_with_unavailable(serve: Serve) -> None:
    events: list[Event] = []
    script = serve(http("503 Busy"))
    error = failure(lambda: read(script, retries=2, observe=events.append))
    assert type(error) is Unavailable
    retries = [event for event in events if isinstance(event, Retry)]
    assert [(event.failure.message, event.attempt, event.attempts) for event in retries] == [
        (error.message, 2, 3),
        (error.message, 3, 3),
    ]
    assert 0 <= retries[0].delay <= 0.5
    assert 0 <= retries[1].delay <= 1.0
    assert len(script.requests) == 3


class Broken:
    """A transport whose requests all end in an error."""

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.sent = 0

    def send(self, request: Request) -> Response:
        self.sent += 1
        raise self._error

    def close(self) -> None:
        """Nothing is open."""


def sent_in_vain(error: Exception, call: Callable[[Client], object]) -> tuple[SvcctlError, int]:
    """How a call fails whose every request ends in an error, and how many requests were sent."""
    transport = Broken(error)
    with Client("https://service.test", AUTH, transport=transport, sleep=lambda seconds: None) as service:
        return failure(lambda: call(service)), transport.sent


@pytest.mark.parametrize(
    ("cause", "sent"),
    [
        (socket.gaierror(socket.EAI_NONAME, "no such name"), 1),
        (socket.gaierror(socket.EAI_AGAIN, "no network"), 3),
        (ConnectionRefusedError("refused"), 5),
    ],
)
def test_what_does_not_pass_by_itself_is_not_tried_again(cause: OSError, sent: int) -> None:
    error = ConnectError(str(cause))
    error.__cause__ = cause
    failed, requests = sent_in_vain(error, Client.jobs)
    assert (type(failed), requests) == (Unavailable, sent)


@pytest.mark.parametrize(
    ("error", "kind", "sent"),
    [
        (ConnectError("gone"), Unavailable, 5),
        (ConnectTimeout("gone"), Unavailable, 5),
        (ProxyError("gone"), Unavailable, 5),
        (ReadTimeout("gone"), Unavailable, 1),
        (ReadError("gone"), Unavailable, 1),
        (RemoteProtocolError("gone"), Unavailable, 1),
        (DecodingError("gone"), Unavailable, 1),
        (LocalProtocolError("gone"), UsageError, 1),
        (UnsupportedProtocol("gone"), UsageError, 1),
    ],
)
def test_a_launch_is_sent_again_only_after_errors_that_say_it_was_not_sent(
    error: Exception, kind: type, sent: int
) -> None:
    failed, requests = sent_in_vain(error, lambda service: service.launch(LAUNCH))
    assert (type(failed), requests) == (kind, sent)
    assert ("in time" in failed.message) == isinstance(error, TimeoutException)


def test_a_transport_of_a_program_gets_the_request_and_gives_the_answer() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert (request.method, str(request.url)) == ("GET", "https://service.test/x")
        assert (request.headers["x-mine"], request.headers["accept"]) == ("1", "*/*")
        return httpx.Response(201, headers={"Content-Encoding": "gzip", "A": "b"}, content=gzip.compress(b"rows"))

    with (
        Client("https://service.test", AUTH, transport=OverHttpx(answer)) as service,
        service.request("GET", "/x", headers={"X-Mine": "1"}) as response,
    ):
        assert (response.status, response.headers["a"], b"".join(response.body)) == (201, "b", b"rows")


def test_a_path_is_sent_as_it_is_given_and_what_it_cannot_hold_is_quoted_once(serve: Serve) -> None:
    script = serve(ok("{}"))
    with client(script) as service:
        for path in ("/a b/ü/%20/x@y?q=a b&c=%C3%BC#part", "/a/./b/../c//d%2fe?q=%", "/?"):
            service.call("GET", path)
    assert script.lines == ["GET /a%20b/%C3%BC/%20/x@y?q=a%20b&c=%C3%BC", "GET /a/./b/../c//d%2fe?q=%", "GET /"]


def test_cookies_are_not_sent_back(serve: Serve) -> None:
    script = serve(http("200 OK", "{}", "Set-Cookie: a=b; Path=/"))
    with client(script) as service:
        service.call("GET", "/x")
        service.call("GET", "/x")
    assert ["cookie" in headers for _, headers, _ in script.requests] == [False, False]


@pytest.mark.parametrize(
    ("value", "timeout", "seconds"),
    [
        ("7", 60.0, 7.0),
        ("0", 60.0, 0.0),
        ("9999", 60.0, 60.0),
        ("120", 5.0, 5.0),
        ("120", 600.0, 120.0),
        ("9" * 400, 60.0, 60.0),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 60.0, 30.0),
        ("Tue, 14 Nov 2023 22:13:50 -0000", 60.0, 30.0),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 2.5, 2.5),
        ("Tue, 14 Nov 2023 22:13:10 GMT", 60.0, 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 60.0, 60.0),
    ],
)
def test_a_retry_after_is_followed_but_no_longer_than_the_timeout(
    serve: Serve, value: str, timeout: float, seconds: float
) -> None:
    slept: list[float] = []
    script = serve(http("429 Slow", "", f"Retry-After: {value}"), http("200 OK", "a\n"))
    assert read(script, timeout=timeout, sleep=slept.append) == b"a\n"
    assert slept == [seconds]


@pytest.mark.parametrize("value", ["", "-1", "1.5", "1e9", "soon", "7, 7", "Tue, 14 Nov 2023 25:61:00 GMT"])
def test_a_retry_after_that_is_no_time_is_ignored(serve: Serve, value: str) -> None:
    slept: list[float] = []
    script = serve(http("429 Slow", "", f"Retry-After: {value}"), http("200 OK", "a\n"))
    assert read(script, sleep=slept.append) == b"a\n"
    assert 0.25 <= slept[0] <= 0.5


@pytest.mark.parametrize(("status", "sent"), [(407, 1), (403, 1), (502, 3), (503, 3)])
def test_a_proxy_that_refuses_is_asked_again_as_a_service_would_be(serve: Serve, status: int, sent: int) -> None:
    script = serve(*[http(f"{status} No", "")] * sent)
    proxies = {"HTTPS_PROXY": script.url}
    with Client("https://service.test", AUTH, retries=2, environment=proxies, sleep=lambda seconds: None) as service:
        error = failure(service.jobs)
    assert (type(error), retry.is_passing(error), len(script.requests)) == (Unavailable, sent > 1, sent)


def test_no_service_at_all_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    error = failure(lambda: read(Script([], f"http://127.0.0.1:{port}"), retries=1))
    assert type(error) is Unavailable
    assert str(error).startswith(f"no answer from 127.0.0.1:{port}: ")


def test_a_port_without_tls_is_reported_with_a_hint() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer_without_tls() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(http("400 Bad Request"))

        thread = threading.Thread(target=answer_without_tls)
        thread.start()
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        error = failure(lambda: read(Script([], f"https://{host}"), retries=0))
        thread.join(10)
    assert (type(error), error.message, error.hint) == (Unavailable, NO_TLS[0].format(host=host), NO_TLS[1])


def test_a_redirect_to_what_is_no_url_is_no_answer(serve: Serve) -> None:
    for location in ("http://h:x", "mailto:x"):
        script = serve(http("302 Found", "", f"Location: {location}"))
        assert type(failure(partial(read, script))) is Unavailable


def test_a_redirect_is_not_followed(serve: Serve) -> None:
    script = serve(http("302 Found", "", "Location: https://elsewhere.test/login"))
    error = failure(lambda: read(script))
    assert (type(error), "https://elsewhere.test/login" in error.message) == (ServiceError, True)
    assert len(script.requests) == 1


@pytest.mark.parametrize(
    ("date", "hint"),
    [
        (
            "Tue, 14 Nov 2023 22:10:00 GMT",
            "this machine's clock is 200 s ahead of the service's, which makes signatures invalid",
        ),
        (
            "Tue, 14 Nov 2023 22:15:00 GMT",
            "this machine's clock is 100 s behind the service's, which makes signatures invalid",
        ),
        ("Tue, 14 Nov 2023 22:13:00 GMT", None),
    ],
)
def test_a_refused_signature_is_blamed_on_a_skewed_clock(serve: Serve, date: str, hint: str | None) -> None:
    error = failure(lambda: read(serve(http("401 No", '{"error":{"code":12,"message":"no"}}', f"Date: {date}"))))
    assert (type(error), error.hint) == (CredentialsError, hint)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://service.test", "'http://service.test' would send secrets unencrypted"),
        ("http://127.0.0.1.service.test", "'http://127.0.0.1.service.test' would send secrets unencrypted"),
        ("ftp://localhost", "'ftp://localhost' is not a URL of http or https"),
        ("service.test", "'service.test' is not a URL of http or https"),
        ("https://u:p@service.test", "a base URL must not contain a user name or a password"),
        ("https://service.test:x", "'https://service.test:x' is not a URL: the port must be a number up to 65535"),
        (
            "https://service.test?a=1",
            "'https://service.test?a=1' has a query or a fragment, which a base URL cannot have",
        ),
    ],
)
def test_secrets_go_nowhere_in_the_clear_but_to_this_machine(url: str, message: str) -> None:
    error = failure(lambda: Client(url, AUTH))
    assert (type(error), error.message) == (UsageError, message)
    assert type(failure(lambda: Client("https://service.test", AUTH, provisioning_url=url))) is UsageError


@pytest.mark.parametrize("url", ["http://127.8.0.1:1", "http://[::1]:1", "http://localhost", "https://service.test"])
def test_loopback_and_https_are_allowed(url: str) -> None:
    Client(url, AUTH).close()


JOB = '{"status":0,"object":{"id":"j1","status":"%s"}}'
MISSING = http("200 OK", '{"msg":"no such job","status":100,"cid":"c"}')


def test_job_operations_use_the_interfaces_methods_and_paths(serve: Serve) -> None:
    script = serve(
        ok(JOB % "RUNNING"),
        ok('{"status":0,"object":[{"id":"j1","status":"STOPPED"},{"id":"j2","status":"ODD"}]}'),
        ok(JOB % "STOPPED"),
        ok(JOB % "RUNNING"),
        ok(JOB % "REMOVED"),
    )
    with client(script) as service:
        assert service.job("j1") == Job("j1", "RUNNING")
        assert service.jobs() == (Job("j1", "STOPPED"), Job("j2", "ODD"))
        assert service.stop_job("j1") == Job("j1", "STOPPED")
        assert service.start_job("j1") == Job("j1", "RUNNING")
        assert service.remove_job("j/1") == Job("j1", "REMOVED")
    assert script.lines == [
        "GET /search/job/j1",
        "GET /search/jobs",
        "GET /search/job/stop/j1",
        "GET /search/job/start/j1",
        "DELETE /search/job/remove/j%2F1",
    ]


def test_a_stop_whose_reply_was_lost_is_read_before_it_is_tried_again(serve: Serve) -> None:
    script = serve(LOST, ok(JOB % "STOPPED"))
    assert client(script).stop_job("j1") == Job("j1", "STOPPED")
    assert script.lines == ["GET /search/job/stop/j1", "GET /search/job/j1"]


def test_a_start_that_was_lost_on_its_way_is_tried_again(serve: Serve) -> None:
    script = serve(http("504 Late"), ok(JOB % "STOPPED"), ok(JOB % "RUNNING"))
    assert client(script).start_job("j1") == Job("j1", "RUNNING")
    assert script.lines == ["GET /search/job/start/j1", "GET /search/job/j1", "GET /search/job/start/j1"]


def test_a_job_that_is_gone_after_a_lost_reply_was_removed(serve: Serve) -> None:
    script = serve(LOST, MISSING)
    assert client(script).remove_job("j1") == Job("j1", "REMOVED")


def test_a_job_that_never_was_is_not_found(serve: Serve) -> None:
    error = failure(lambda: client(serve(MISSING)).remove_job("j1"))
    assert (type(error), error.message) == (NotFound, "no such job")
    assert isinstance(error, NotFound)
    assert (error.code, error.cid) == (100, "c")


def test_a_started_job_that_stands_still_with_an_error_is_a_refusal(serve: Serve) -> None:
    script = serve(ok('{"status":0,"object":{"id":"j1","status":"STOPPED","error":["no broker","no topic"]}}'))
    error = failure(lambda: client(script).start_job("j1"))
    assert (type(error), "no broker; no topic" in error.message) == (ServiceError, True)


LAUNCH = QueryRequest(
    from_="1h", query="from t", destination=Destination("s3", {"aws.bucket": "b", "aws.secretkey": "hidden"})
)


def test_a_launch_returns_the_id_of_the_job(serve: Serve) -> None:
    assert client(serve(ok('{"msg":"","status":0,"object":{"id":"j1"}}'))).launch(LAUNCH) == "j1"


ID = "0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1f0"


@pytest.mark.parametrize(
    "answer",
    [
        f'{{"status":0,"object":{{"jobId":"{ID}"}}}}',
        f'{{"status":0,"object":[{{"jobId":"{ID}"}}]}}',
        f'{{"status":0,"object":"{ID}"}}',
        f'{{"status":0,"object":["{ID}"]}}',
        f'{{"status":0,"object":null,"id":"{ID}"}}',
        f'{{"status":0,"jobId":"{ID}","cid":"5e5e"}}',
        f'{{"status":0,"msg":"job {ID} is launched"}}',
        f'{{"jobId":"{ID}"}}',
        f'"{ID}"',
        f"{ID}\n",
    ],
)
def test_the_id_of_a_launched_job_is_found_wherever_it_stands(answer: str, serve: Serve) -> None:
    assert client(serve(ok(answer))).launch(LAUNCH) == ID


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ('{"msg":"ok","status":0,"object":{"job":7}}', '{"msg":"ok","status":0,"object":{"job":7}}'),
        ('{"status":0,\n "object":[]}\n', '{"status":0, "object":[]}'),
        ("", "it is empty"),
    ],
)
def test_a_notification_without_an_id_is_shown_whole_for_the_job_runs(answer: str, shown: str, serve: Serve) -> None:
    error = failure(lambda: client(serve(ok(answer))).launch(LAUNCH))
    assert (type(error), error.message.endswith(f": {shown}")) == (ServiceError, True)


def test_the_type_of_a_destination_is_sent_as_it_is_written(serve: Serve) -> None:
    for type_ in ("Kafka", "HDFS", "s3", "ftp"):
        script = serve(ok('{"status":0,"object":{"id":"j1"}}'))
        client(script).launch(QueryRequest(from_="1h", query="from t", destination=Destination(type_)))
        assert json.loads(script.requests[0][2])["destination"] == {"type": type_, "params": {}}


def test_a_launch_is_repeated_only_when_the_service_did_not_take_it(serve: Serve) -> None:
    script = serve(http("503 Busy"), http("429 Slow"), ok('{"msg":"","status":0,"object":{"id":"j1"}}'))
    assert client(script).launch(LAUNCH) == "j1"
    for answer in (LOST, http("502 Bad"), http("504 Late")):
        script = serve(answer)
        error = failure(partial(client(script).launch, LAUNCH))
        assert (type(error), len(script.requests), "may have" in str(error.hint)) == (Unavailable, 1, True)


@pytest.mark.parametrize(
    "create", [lambda service: service.create_domain("d", "p"), lambda service: service.create_role("d", Role("r"))]
)
def test_what_creates_is_not_repeated_when_its_reply_is_lost(serve: Serve, create: Callable[[Client], object]) -> None:
    script = serve(LOST)
    assert type(failure(lambda: create(client(script)))) is Unavailable
    assert len(script.requests) == 1


def test_domain_operations(serve: Serve) -> None:
    full = '{"name":"d@r","plan":"p","status":"Active"}'
    script = serve(ok(f"[{full}]"), ok(full), ok(full), ok(""), ok("{}"), ok(""))
    names = HeaderNames(reseller_apikey="x-reseller")
    auth = Signature("KEY", "SECRET", names, clock=lambda: NOW)
    with client(script, auth=auth, paths=Paths(domain="/p/domain")) as service:
        assert service.domains() == (Domain("d@r", "p", "Active"),)
        assert service.domain("d@r") == Domain("d@r", "p", "Active")
        assert service.create_domain("d", "p", volume=1.5) == Domain("d@r", "p", "Active")
        service.enable_domain("d@r")
        service.disable_domain("d@r")
        service.delete_domain("d@r")
    assert script.lines == [
        "GET /p/domain",
        "GET /p/domain/d@r",
        "POST /p/domain",
        "POST /p/domain/d@r/enable",
        "POST /p/domain/d@r/disable",
        "DELETE /p/domain/d@r",
    ]
    assert script.requests[2][2] == b'{"name":"d","plan":"p","volume":1.5}'
    assert all(headers.get("x-reseller") == "KEY" for _, headers, _ in script.requests)


SAME = http("200 OK", '{"error":{"code":117,"message":"d@r"}}')


def test_a_domain_enabled_before_is_a_conflict_unless_a_lost_request_did_it(serve: Serve) -> None:
    assert type(failure(lambda: client(serve(SAME)).enable_domain("d@r"))) is Conflict
    assert type(failure(lambda: client(serve(http("503 Busy"), SAME)).enable_domain("d@r"))) is Conflict
    client(serve(LOST, SAME)).enable_domain("d@r")


def test_role_operations(serve: Serve) -> None:
    script = serve(
        ok('{"status":0,"object":[{"name":"a b"}]}'), ok('{"name":"a b","maxVault":3}'), ok(""), ok("{}"), ok("")
    )
    role = Role("a b", policies=("p",))
    with client(script) as service:
        assert service.roles("d@r") == (Role("a b"),)
        assert service.role("d@r", "a b") == Role("a b", max_vault=3)
        assert service.create_role("d@r", role) == role
        assert service.update_role("d@r", "a b", Role(description="x")) == Role("a b", "x")
        service.delete_role("d@r", "a b")
    assert [(line, body) for line, _, body in script.requests] == [
        ("GET /domain/d@r/roles", b""),
        ("GET /domain/d@r/roles/a%20b", b""),
        ("POST /domain/d@r/roles", b'{"name":"a b","policies":["p"]}'),
        ("PUT /domain/d@r/roles/a%20b", b'{"description":"x"}'),
        ("DELETE /domain/d@r/roles/a%20b", b""),
    ]


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_change_the_path_is_refused(name: str) -> None:
    with Client("https://service.test", AUTH) as service:
        assert type(failure(lambda: service.delete_domain(name))) is UsageError
        assert type(failure(lambda: service.job(name))) is UsageError


def test_any_request_is_signed_and_its_answer_streams(serve: Serve) -> None:
    script = serve(http("200 OK", "anything", "X-Thing: 1"))
    with client(script) as service, service.request("put", "/x?y=1", b"{}", {"X-Mine": "2"}) as response:
        assert (response.status, response.headers["x-thing"], b"".join(response.body)) == (200, "1", b"anything")
    [(line, headers, body)] = script.requests
    assert (line, headers["x-mine"], body) == ("PUT /x?y=1", "2", b"{}")
    assert headers["x-svc-sign"] == sign("KEY", "SECRET", b"{}", int(headers["x-svc-timestamp"]))


@pytest.mark.parametrize(
    "auth", [Signature("hidden-key", "hidden", clock=lambda: NOW), Bearer("hidden"), Jwt("hidden")]
)
def test_the_wire_log_shows_no_secret(serve: Serve, auth: Any) -> None:
    events: list[Event] = []
    script = serve(ok('{"status":0,"object":{"id":"j1"}}'))
    client(script, auth=auth, observe=events.append).launch(LAUNCH)
    [exchange] = events
    assert isinstance(exchange, Exchange)
    assert "hidden" not in repr(exchange)
    assert (exchange.method, exchange.url, exchange.status) == ("POST", script.url + "/search/query", 200)
    assert exchange.body == script.requests[0][2].decode().replace("hidden", "****")
    assert "unmasked" in exchange.note


@pytest.mark.parametrize(
    ("body", "shown", "masked"),
    [
        ('{ "a" :1.0,\n"b":"\\u00e9 é", "n":[1e2,{}] }', None, False),
        ('{"a":"x\\"password\\": 1","token_":"t"}', '{"a":"x\\"password\\": 1","token_":"****"}', True),
        ('{"pass\\u0077ord" : {"x":[1]} , "b":2}', '{"pass\\u0077ord" : "****" , "b":2}', True),
        ('[{"aws.secretkey":"s"},{"aws.secretkey":null}]', '[{"aws.secretkey":"****"},{"aws.secretkey":"****"}]', True),
        ("not JSON", "8 bytes that are not JSON", False),
    ],
)
def test_a_body_is_shown_as_it_is_signed_but_for_the_values_of_secret_keys(
    serve: Serve, body: str, shown: str | None, masked: bool
) -> None:
    events: list[Event] = []
    script = serve(ok("{}"))
    with client(script, observe=events.append) as service:
        service.call("POST", "/x", body.encode())
    [exchange] = events
    assert isinstance(exchange, Exchange)
    assert (exchange.body, bool(exchange.note)) == (shown or body, masked)
    assert script.requests[0][2] == body.encode()


def test_a_preview_is_the_request_without_its_secrets() -> None:
    with Client("https://service.test/base/", AUTH) as service:
        assert service.preview(CSV).note == ""
        preview = service.preview(LAUNCH)
        assert preview.note == PREVIEW_NOTE
        assert preview.text == PREVIEW


def test_a_call_returns_what_any_path_answers(serve: Serve) -> None:
    script = serve(ok('{"pid":1}'), http("404 No", '{"error":{"code":404,"message":"no such path"}}'))
    with client(script) as service:
        assert service.call("GET", "/x") == {"pid": 1}
        assert type(failure(lambda: service.call("post", "/y", b"{}"))) is NotFound
        assert type(failure(lambda: service.call("GET", "x"))) is UsageError
    assert [(line, body) for line, _, body in script.requests] == [("GET /x", b""), ("POST /y", b"{}")]


@pytest.mark.parametrize("token", ["hidden\r\nx-other: 1", "hidden-ü"])
def test_a_token_that_would_break_out_of_its_header_is_neither_sent_nor_shown(serve: Serve, token: str) -> None:
    script = serve(LOST)
    error = failure(lambda: read(script, auth=Bearer(token)))
    assert (type(error), "hidden" in f"{error.message}{error.hint}") == (UsageError, False)
    assert script.requests in ([], [("", {}, b"")])


def test_a_path_that_no_url_holds_is_not_sent() -> None:
    with Client("https://service.test", AUTH) as service:
        assert type(failure(lambda: service.call("GET", "/a\tb"))) is UsageError


# What failures say: each text is here once, and the tests above state what kind of failure it is

SILENT = "the result is incomplete: the service stopped sending"
NO_TLS = (
    "no answer from {host}: the port does not speak TLS",
    "check the port in base_url; plain http, which is for this machine only, begins with http://",
)
PREVIEW_NOTE = "the signature and the content-length are of the unmasked body"
PREVIEW = """\
POST https://service.test/base/search/query
host: service.test
connection: keep-alive
accept: */*
accept-encoding: identity
user-agent: svcctl
content-length: 134
content-type: application/json
x-svc-apikey: ****
x-svc-timestamp: 1700000000000
x-svc-sign: ****

{"query":"from t","from":"1h","mode":{"type":"json"},"destination":\
{"type":"s3","params":{"aws.bucket":"b","aws.secretkey":"****"}}}"""


def launched(script: Script) -> object:
    return client(script).launch(LAUNCH)


def listed(script: Script) -> object:
    return client(script).jobs()


def started(script: Script) -> object:
    return client(script).start_job("j1")


def unsendable(script: Script) -> object:
    return read(script, auth=Bearer("hidden\r\nx-other: 1"))


def once(script: Script) -> object:
    return read(script, retries=0)


FAILURES: dict[str, tuple[Callable[[Script], object], bytes, type[SvcctlError], str, str | None]] = {
    "a connection that broke": (
        read,
        head("200 OK", "Content-Length: 100") + b"a,b\n1,2\n3,",
        IncompleteResult,
        "the result is incomplete: the connection broke in the middle",
        None,
    ),
    "a disk without space": (
        read,
        http("507 Insufficient Storage", '{"msg":"no space left","status":1,"cid":"c9"}'),
        Unavailable,
        "the service answered HTTP 507: no space left (cid c9)",
        None,
    ),
    "a busy service": (once, http("503 Busy"), Unavailable, "the service answered HTTP 503", None),
    "a redirect": (
        read,
        http("302 Found", "", "Location: https://elsewhere.test/login"),
        ServiceError,
        "the service redirects to https://elsewhere.test/login",
        "redirects are not followed: use that base URL",
    ),
    "a started job that stands still": (
        started,
        ok('{"status":0,"object":{"id":"j1","status":"STOPPED","error":["no broker","no topic"]}}'),
        ServiceError,
        "job j1 stopped with an error: no broker; no topic",
        None,
    ),
    "a notification without an ID": (
        launched,
        ok(""),
        ServiceError,
        "the query was launched, but the answer has no job ID: it is empty",
        "the job is running",
    ),
    "a launch whose answer is lost": (
        launched,
        http("502 Bad"),
        Unavailable,
        "the service answered HTTP 502",
        "the service may have carried out the request: check before trying again",
    ),
    "a header that cannot be sent": (
        unsendable,
        LOST,
        UsageError,
        "the request cannot be sent: the header Authorization is not one line of printable ASCII",
        None,
    ),
    "a port that hangs up": (
        once,
        b"",
        Unavailable,
        "no answer from {host}: it closed the connection without an answer",
        "if this port expects TLS, base_url must begin with https://",
    ),
    "a launch without an answer": (
        launched,
        b"",
        Unavailable,
        "no answer from {host}: it closed the connection without an answer",
        "the service may have carried out the request: check before trying again",
    ),
    "a page instead of a job": (
        listed,
        http("200 OK", "<html><title>Sign in</title></html>", "Content-Type: text/html"),
        Unavailable,
        "the service answered with a web page: Sign in",
        None,
    ),
    "a query that finds no route": (
        read,
        http("404 Not Found", '{"status":1,"msg":"no route POST /search/search/query","cid":"1"}'),
        NotFound,
        "no route POST /search/search/query",
        None,
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_what_a_failure_says(serve: Serve, case: str) -> None:
    call, answer, kind, message, hint = FAILURES[case]
    script = serve(answer)
    error = failure(lambda: call(script))
    told = message.replace("{host}", script.url.removeprefix("http://").partition("/")[0])
    assert (type(error), error.message, error.hint) == (kind, told, hint)
