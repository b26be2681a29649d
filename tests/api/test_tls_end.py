"""The end of answers over TLS: what proves that an answer without a length or chunks is whole, and what does not."""

from __future__ import annotations

import gzip
import io
import json
import ssl
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgpack
import pytest
from support.over_httpx import OverHttpx
from support.scripted import head
from support.tls import ENDINGS, TlsScript, tls_service

from svcctl.api.addresses import trust
from svcctl.api.auth import Bearer
from svcctl.api.client import Client
from svcctl.api.destinations import Destination
from svcctl.api.follow import Follow
from svcctl.api.models import Job, Role
from svcctl.api.query import QueryRequest
from svcctl.api.response import MODES
from svcctl.api.transport import Event
from svcctl.errors import (
    CredentialsError,
    IncompleteResult,
    InternalError,
    ServiceError,
    SvcctlError,
    Unavailable,
    UnprovenEnd,
)


def spreadsheet() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("sheet.xml", "<row/>")
    return file.getvalue()


M = {"eventdate": {"type": "timestamp", "index": 0}}
OLD_SPREADSHEET = bytes.fromhex("d0cf11e0a1b11ae1").ljust(1024, b"\0")
BODIES: Mapping[str, bytes] = {
    "json": json.dumps({"status": 0, "object": [{"a": "1"}]}).encode(),
    "json/compact": json.dumps({"status": 0, "object": {"m": M, "d": [[1000]]}}).encode(),
    "json/simple": b'{"a":"1"}\n',
    "json/simple/compact": json.dumps({"m": M}).encode() + b'\n{"d":[1000]}\n',
    "msgpack": msgpack.packb({"status": 0, "object": [{"a": "1"}]}),
    "csv": b"a\n1\n",
    "tsv": b"a\tb\n1\t2\n",
    "xml": b"<rows><row/></rows>\n",
    "xls": spreadsheet(),
}
MARKED = ("json", "json/compact", "msgpack", "xml", "xls")
"""The formats that mark their own end."""
MAYBE = "the result may be incomplete: the service closed the connection without TLS close_notify"
BROKEN = "the result is incomplete: the connection broke in the middle"
MESSAGES = {"close": MAYBE, "cut record": MAYBE, "reset": BROKEN}

Over = Callable[[Path], OverHttpx | None]
TRANSPORTS: Mapping[str, Over] = {
    "ours": lambda pem: None,
    "httpx": lambda pem: OverHttpx(httpx.HTTPTransport(verify=trust(str(pem), ("https://x",)) or False)),
}
"""The transports of a client: its own, and one that a program may bring."""


@pytest.fixture(params=TRANSPORTS)
def over(request: pytest.FixtureRequest) -> Over:
    return TRANSPORTS[request.param]


@contextmanager
def client(script: TlsScript, pem: Path, over: Over = TRANSPORTS["ours"], **options: Any) -> Iterator[Client]:
    options = {"retries": 0, "sleep": lambda seconds: None, "observe": script.see, **options}
    with Client(script.url, Bearer("T"), verify=str(pem), transport=over(pem), **options) as service:
        yield service


def read(service: Client, mode: str) -> bytes:
    with service.query(QueryRequest(from_="1h", to="now", query="from t", mode=mode)) as answer:
        return b"".join(answer.raw())


def failure(call: Callable[[], object]) -> SvcctlError:
    with pytest.raises(SvcctlError) as caught:
        call()
    return caught.value


def test_the_table_of_formats_says_which_mark_their_end() -> None:
    assert [mode.name for mode in MODES.values() if mode.marks_end] == list(MARKED)
    assert BODIES.keys() == MODES.keys()


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("mode", MODES)
def test_an_answer_that_ends_with_its_connection_is_whole_if_that_or_its_format_says_so(
    pem: Path, over: Over, mode: str, ending: str
) -> None:
    answer = head("200 OK") + BODIES[mode]
    with tls_service(pem, ENDINGS[ending], answer) as script, client(script, pem, over) as service:
        if ending == "notify" or mode in MARKED:
            assert read(service, mode).strip() == BODIES[mode].strip()
            return
        error = failure(lambda: read(service, mode))
    assert isinstance(error, UnprovenEnd)
    assert (error.message, error.closed, error.rows) == (MESSAGES[ending], ending != "reset", 1)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "answer",
    [
        head("200 OK", f"Content-Length: {len(BODIES['csv'])}") + BODIES["csv"],
        head("200 OK", "Transfer-Encoding: chunked") + b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODIES["csv"]), BODIES["csv"]),
    ],
    ids=["length", "chunks"],
)
def test_a_length_or_chunks_are_enough(pem: Path, over: Over, answer: bytes, ending: str) -> None:
    with tls_service(pem, ENDINGS[ending], answer) as script, client(script, pem, over) as service:
        assert read(service, "csv") == BODIES["csv"]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.0 200 OK\r\n\r\n" + BODIES["csv"],
        head("200 OK", "Content-Encoding: gzip") + gzip.compress(BODIES["csv"], mtime=0),
        head("200 OK", "Content-Length: 9") + BODIES["csv"],
        head("200 OK", "Transfer-Encoding: chunked") + b"4\r\n" + BODIES["csv"] + b"\r\n",
        head("200 OK"),
        head("200 OK") + BODIES["csv"] + b'"2',
    ],
    ids=["http/1.0", "gzip", "length", "chunks", "nothing", "in a row"],
)
@pytest.mark.parametrize("ending", ["close", "reset"])
def test_other_answers_that_may_have_been_cut_are_incomplete(pem: Path, over: Over, answer: bytes, ending: str) -> None:
    with tls_service(pem, ENDINGS[ending], answer) as script, client(script, pem, over) as service:
        assert isinstance(failure(lambda: read(service, "csv")), IncompleteResult)


@pytest.mark.parametrize("mode", MARKED)
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_format_that_marks_its_end_is_incomplete_without_it(pem: Path, mode: str, ending: str) -> None:
    answer = head("200 OK") + BODIES[mode].rstrip()[:-1]
    with tls_service(pem, ENDINGS[ending], answer) as script, client(script, pem) as service:
        assert isinstance(failure(lambda: read(service, mode)), IncompleteResult)


def test_the_older_spreadsheet_does_not_mark_its_end(pem: Path) -> None:
    answer = head("200 OK") + OLD_SPREADSHEET
    with tls_service(pem, ENDINGS["notify"], answer) as script, client(script, pem) as service:
        assert read(service, "xls") == OLD_SPREADSHEET
    with tls_service(pem, ENDINGS["close"], answer) as script, client(script, pem) as service:
        assert failure(lambda: read(service, "xls")).message == MAYBE


@pytest.mark.parametrize("body", [b'{"error":{"code":12,"message":"no"}}', b"a\n1\ncsv.error,12,no\n"])
def test_an_error_that_an_answer_states_is_that_error(pem: Path, body: bytes) -> None:
    with tls_service(pem, ENDINGS["close"], head("200 OK") + body) as script, client(script, pem) as service:
        error = failure(lambda: read(service, "csv"))
    assert "no" in error.message
    assert not isinstance(error, UnprovenEnd)


REFUSALS = {
    400: ServiceError,
    401: CredentialsError,
    500: InternalError,
    503: Unavailable,
}


@pytest.mark.parametrize("status", REFUSALS)
@pytest.mark.parametrize("more", [0, 5], ids=["whole", "cut"])
@pytest.mark.parametrize("framed", [True, False])
@pytest.mark.parametrize("ending", ["close", "reset"])
def test_a_refusal_is_one_however_its_body_ends(
    pem: Path, over: Over, status: int, more: int, framed: bool, ending: str
) -> None:
    body = b'{"error":{"code":12,"message":"no"}}'
    start = head(f"{status} No", *([f"Content-Length: {len(body) + more}"] if framed else []))
    answer = start + body[: len(body) - (0 if framed else more)]
    with tls_service(pem, ENDINGS[ending], answer) as script, client(script, pem, over) as service:
        error = failure(lambda: read(service, "csv"))
        with service.request("GET", "/x") as raw:
            told = b"".join(raw.body)
            assert type(raw.error(told)) is type(error)
    kind = Unavailable if status == 500 and more and not framed else REFUSALS[status]  # the body says who failed
    assert (type(error), len(script.requests)) == (kind, 2)


@pytest.mark.parametrize("ending", ENDINGS)
def test_any_request_gets_a_body_that_is_whole_only_with_close_notify(pem: Path, over: Over, ending: str) -> None:
    answer = head("200 OK") + BODIES["json"]
    with (
        tls_service(pem, ENDINGS[ending], answer) as script,
        client(script, pem, over) as service,
        service.request("GET", "/x") as raw,
    ):
        if ending == "notify":
            assert b"".join(raw.body) == BODIES["json"]
        else:
            assert failure(lambda: b"".join(raw.body)).message == MESSAGES[ending]


ID = "0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1f0"
LAUNCH = QueryRequest(from_="1h", query="from t", destination=Destination("donothing"))


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_answer_of_an_operation_is_json_and_marks_its_end(pem: Path, over: Over, ending: str) -> None:
    answers = [b'{"status":0,"object":[{"id":"j1","status":"RUNNING"}]}', b'{"object":{"id":"j1"}}', ID.encode()]
    with (
        tls_service(pem, ENDINGS[ending], *(head("200 OK") + body for body in answers)) as script,
        client(script, pem, over) as service,
    ):
        assert service.jobs() == (Job("j1", "RUNNING"),)
        assert [service.launch(LAUNCH), service.launch(LAUNCH)] == ["j1", ID]


@pytest.mark.parametrize("body", [b"", b'{"status":0,"object":[{"id":"j1"', b"12"])
@pytest.mark.parametrize("ending", ["close", "reset"])
def test_an_operation_whose_answer_was_cut_is_tried_again_unless_it_may_be_done(
    pem: Path, over: Over, body: bytes, ending: str
) -> None:
    answer, whole = head("200 OK") + body, head("200 OK", "Content-Length: 13") + b'{"object":[]}'
    with (
        tls_service(pem, ENDINGS[ending], answer, whole, answer) as script,
        client(script, pem, over, retries=1) as service,
    ):
        assert service.jobs() == ()
        error = failure(lambda: service.launch(LAUNCH))
    assert (type(error), error.hint, len(script.requests)) == (
        Unavailable,
        "the service may have carried out the request: check before trying again",
        3,
    )


def test_a_connection_that_ends_before_the_answer_says_so(pem: Path, over: Over) -> None:
    for answer in (b"", b"HTTP/1.1 200 OK\r\nA: "):
        with tls_service(pem, ENDINGS["close"], answer) as script, client(script, pem, over) as service:
            error = failure(service.jobs)
        host = script.url.removeprefix("https://")
        assert (type(error), error.message) == (
            Unavailable,
            f"no answer from {host}: it closed the connection before the end of its answer",
        )


# tls_close: any


@pytest.mark.parametrize("mode", MODES)
def test_a_close_without_close_notify_can_be_accepted_and_is_reported_once(pem: Path, over: Over, mode: str) -> None:
    events: list[Event] = []
    answer = head("200 OK") + BODIES[mode]
    with (
        tls_service(pem, ENDINGS["close"], answer) as script,
        client(script, pem, over, any_close=True, observe=events.append) as service,
    ):
        for _ in range(2):
            assert read(service, mode).strip() == BODIES[mode].strip()
    assert len([event for event in events if isinstance(event, UnprovenEnd)]) == (mode not in MARKED)


def test_a_broken_connection_is_not_accepted_as_a_close(pem: Path, over: Over) -> None:
    with (
        tls_service(pem, ENDINGS["reset"], head("200 OK") + BODIES["csv"]) as script,
        client(script, pem, over, any_close=True) as service,
    ):
        assert failure(lambda: read(service, "csv")).message == BROKEN


def test_empty_answers_and_those_of_any_request_are_accepted_too(pem: Path, over: Over) -> None:
    with (
        tls_service(pem, ENDINGS["close"], head("200 OK"), head("200 OK") + b"text") as script,
        client(script, pem, over, any_close=True) as service,
    ):
        assert service.create_role("d@r", Role("r")) == Role("r")
        with service.request("GET", "/x") as raw:
            assert b"".join(raw.body) == b"text"


# Continuous queries


def test_a_followed_query_that_is_not_ended_properly_is_sent_again(pem: Path) -> None:
    start = head("200 OK") + json.dumps({"m": M}).encode()
    answers = [start + b"".join(b'\n{"d":[%d]}' % moment for moment in moments) + b"\n" for moments in ((1,), (1, 2))]
    notes: list[str] = []
    with (
        tls_service(pem, ENDINGS["close"], *answers) as script,
        client(script, pem) as service,
        Follow(
            service,
            QueryRequest(0, mode="json/simple/compact", query="from t", limit=2),
            notify=notes.append,
            sleep=lambda seconds: None,
        ) as follow,
    ):
        assert list(follow.rows()) == [(1,), (2,)]
    assert notes[0].startswith(f"{MAYBE}; reconnecting in ")


def test_a_limit_inside_a_followed_query_is_reached_only_if_the_connection_ends_properly(pem: Path) -> None:
    answer = head("200 OK") + BODIES["json/simple/compact"]
    request = QueryRequest(0, mode="json/simple/compact", query="from t limit 5 where n")
    for ending in ("notify", "close"):
        with (
            tls_service(pem, ENDINGS[ending], answer) as script,
            client(script, pem) as service,
            Follow(service, request, notify=lambda note: None, sleep=lambda seconds: None) as follow,
        ):
            if ending == "notify":
                assert list(follow.rows()) == [(1000,)]
            else:
                with pytest.raises(IncompleteResult):
                    list(follow.rows())


# What `profile check` asks


@pytest.mark.parametrize(("ending", "sent"), [("notify", True), ("close", False), ("reset", None)])
@pytest.mark.parametrize("framing", [[], ["Content-Length: 2"]], ids=["close", "length"])
def test_a_service_is_asked_to_close_to_see_how_it_does(
    pem: Path, ending: str, sent: bool | None, framing: list[str]
) -> None:
    with (
        tls_service(pem, ENDINGS[ending], head("401 No", *framing) + b"{}") as script,
        client(script, pem) as service,
    ):
        assert service.sends_close_notify() is sent
    assert script.requests[0][1]["connection"] == "close"


def test_a_service_that_keeps_its_connections_shows_no_end(pem: Path) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    asked = threading.Event()

    def keep(connection: ssl.SSLSocket) -> None:
        with connection:
            asked.wait(20)

    with tls_service(pem, keep, answer) as script, client(script, pem) as service:
        assert service.sends_close_notify(0.05) is None
        asked.set()


def test_a_transport_that_shows_no_end_of_a_connection_is_not_believed(pem: Path) -> None:
    answer = head("200 OK", "Content-Length: 2") + b"{}"
    with (
        tls_service(pem, ENDINGS["notify"], answer) as script,
        client(script, pem, TRANSPORTS["httpx"]) as service,
    ):
        assert service.sends_close_notify() is None
