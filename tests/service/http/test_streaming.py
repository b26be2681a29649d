"""Queries to a service with few threads and little patience: padding, limits, clients that leave, and hostile ones."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pytest
import uvicorn
from support.engines import chosen_engine
from support.events import selected
from support.waiting import eventually

from svcctl.api.auth import Bearer
from svcctl.api.client import Client
from svcctl.api.follow import Follow
from svcctl.api.query import QueryRequest
from svcctl.api.response import MODES, QueryResponse
from svcctl.errors import IncompleteResult, NotFound, ServiceError
from svcctl.service.accounts import accounts, domains, price_plans, users
from svcctl.service.accounts.accounts import Account
from svcctl.service.engines import Engines
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.http.app import build, settle
from svcctl.service.http.connection import ServerConnection
from svcctl.service.http.context import Service
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.language.types import Column, Type
from svcctl.service.rendering import ENCODERS
from svcctl.service.state.store import Store

NOON = 1_704_110_400
"""2024-01-01 12:00:00, a minute after the events of `few` began."""
FEW = (
    "SELECT TIMESTAMP '2024-01-01 11:59:00' + to_seconds(i) AS eventdate, i AS n, 'text ' || i AS text"
    " FROM range(3) r(i)"
)
COLUMNS = (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8), Column("text", Type.STR))
ROWS = [(1_704_110_340_000 + 1000 * n, n, f"text {n}") for n in range(3)]
STREAMING = [mode for mode, encoder in ENCODERS.items() if encoder.streams]
A_FEW_FAST = [pytest.param(mode, marks=[pytest.mark.slow] * (mode not in ("csv", "json"))) for mode in STREAMING]


@dataclass
class Served:
    """A service that runs in this process, and how to reach it."""

    engines: Engines
    service: Service
    address: tuple[str, int]
    moment: float = 0.0
    """What its clock adds to the time there is."""

    def client(self) -> Client:
        return Client(f"http://127.0.0.1:{self.address[1]}", Bearer("token"), retries=0)

    def ask(self, query: str, mode: str = "json/simple/compact", **fields: Any) -> list[tuple[Any, ...]]:
        asked = {"from_": NOON - 3600, "to": NOON, **fields}
        with self.client() as client, client.query(QueryRequest(query=query, mode=mode, **asked)) as answer:
            return list(answer.rows())

    def body(self, fields: dict[str, Any]) -> tuple[str, bytes]:
        """The content type and the untouched bytes of an answer."""
        with self.client() as client, client.request("POST", "/search/query", json.dumps(fields).encode()) as answer:
            return answer.headers["content-type"], b"".join(answer.body)


@cache
def endless_events() -> bytes:
    """A file of events with the table `endless`, a view of DuckDB's own: nobody has loaded its events.

    It has no text, of which the engine would ask how much each row of a table has, and hides the row numbers, which a
    view does not have.
    """
    with TemporaryDirectory() as directory:
        file = Path(directory) / "endless.duckdb"
        DuckDBEngine(file).close()
        with duckdb.connect(str(file)) as connection:
            connection.execute(
                "CREATE VIEW events.endless AS SELECT TIMESTAMP '2024-01-01 11:59:00' AS eventdate, i AS n,"
                " 1 / (i + 1) AS part, i AS rowid FROM range(1000000000000000) r(i);"
                " INSERT INTO main.stored VALUES ('endless', true)"
            )
        return file.read_bytes()


@contextmanager
def running(directory: Path, threads: int = 1, **patience: Any) -> Iterator[Served]:
    """A service with the tables `few` and `endless`; a query that reads all of `endless` never comes to its end."""
    with ExitStack() as closing:
        events = directory / "endless.duckdb"
        events.write_bytes(endless_events())
        engines = closing.enter_context(chosen_engine(events))
        engines.of("few").stored.append("few", selected(FEW), create=COLUMNS)
        store = Store(directory / "state.db")
        closing.callback(store.close)
        accounts.put(store, Account("key", "secret", "token", "", reseller="none"))
        executor = closing.enter_context(ThreadPoolExecutor(threads))
        listener = socket.create_server(("127.0.0.1", 0))
        served = Served(engines, Service(engines, store, executor, **patience), listener.getsockname())
        served.service.clock = lambda: NOON + served.moment
        config = uvicorn.Config(
            build(served.service), http=ServerConnection, lifespan="off", log_config=None, access_log=False, ws="none"
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        closing.callback(thread.join)
        closing.callback(setattr, server, "should_exit", True)
        yield served


Serve = Callable[..., Served]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a service of the test's own."""
    with ExitStack() as closing:
        yield lambda *args, **named: closing.enter_context(running(tmp_path, *args, **named))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service for tests that leave it as it was."""
    with running(tmp_path_factory.mktemp("served")) as served:
        yield served


def asked(query: str, mode: str, *headers: str, version: str = "1.1") -> bytes:
    """A request with a query."""
    body = json.dumps({"query": query, "from": NOON - 3600, "to": NOON, "mode": {"type": mode}})
    lines = [f"POST /search/query HTTP/{version}", "Host: x", "Authorization: Bearer token"]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", *headers, "", body]).encode()


def sent(served: Served, query: str, mode: str) -> socket.socket:
    """A connection on which a query was asked, by a client that does nothing else."""
    connection = socket.create_connection(served.address)
    connection.sendall(asked(query, mode))
    return connection


CLOSES = {
    "nothing": ((), "1.1", {"json/simple", "json/simple/compact"}),
    "keep-alive": (("Connection: x, Keep-Alive",), "1.1", set()),
    "close": (("connection: x, CLOSE",), "1.1", set(ENCODERS)),
    "1.0": ((), "1.0", set(ENCODERS)),
    "1.0 keep-alive": (("Connection: keep-alive",), "1.0", set(ENCODERS)),
}


@pytest.mark.parametrize("case", CLOSES)
@pytest.mark.parametrize("mode", ENCODERS)
def test_the_connection_is_closed_after_an_answer_if_the_client_or_the_interface_says_so(
    served: Served, mode: str, case: str
) -> None:
    headers, version, closing = CLOSES[case]
    health = b"GET /service/health HTTP/1.0\r\n\r\n"
    with socket.create_connection(served.address, timeout=20) as connection:
        connection.sendall(asked("from few", mode, *headers, version=version) + health)
        received = b""
        while block := connection.recv(1 << 16):
            received += block
    head, _, body = received.partition(b"\r\n\r\n")
    closed = mode in closing
    assert (b"\r\nconnection: close" in head.lower()) == closed
    assert (b'{"status":"ok"}' in body.replace(b" ", b"")) != closed  # the next request on the connection
    if version == "1.1":
        assert b"\r\n0\r\n\r\n" in body


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ((), 401),
        (("x-svc-apikey: nobody", "x-svc-timestamp: {now}", "x-svc-sign: 0"), 401),
        (("x-svc-apikey: key", "x-svc-timestamp: {late}", "x-svc-sign: 0"), 401),
        (("x-svc-apikey: key", "x-svc-timestamp: now", "x-svc-sign: 0"), 401),
        (("x-svc-apikey: key", "x-svc-timestamp: {now}"), 401),
        (("authorization: Bearer wrong",), 401),
        (("authorization: jwt a.b.c",), 401),
        (("authorization: basic a",), 401),
        (("authorization: Bearer token", "content-length: 1048577"), 413),
        (("x-svc-apikey: key", "x-svc-timestamp: {now}", "x-svc-sign: 0", "content-length: 18446744073709551615"), 413),
    ],
)
def test_a_request_that_its_head_refuses_is_answered_before_its_body_arrives(
    served: Served, headers: tuple[str, ...], status: int
) -> None:
    lines = ["POST /search/query HTTP/1.1\r\nhost: x\r\nexpect: 100-continue", *headers]
    if not any("content-length" in header for header in headers):
        lines.append("content-length: 1000")
    stamp = int(NOON * 1000)
    with socket.create_connection(served.address, timeout=5) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).format(now=stamp, late=stamp - 301_000).encode())
        received = b""
        while block := connection.recv(1 << 16):
            received += block
    assert received.startswith(b"HTTP/1.1 %d " % status)
    assert b"\r\nconnection: close\r\n" in received


def test_a_body_that_waits_for_leave_is_asked_for_and_the_connection_stays(served: Served) -> None:
    head, _, body = asked("from few", "csv", "expect: 100-continue").partition(b"\r\n\r\n")
    with socket.create_connection(served.address, timeout=5) as connection:
        for _ in range(2):
            connection.sendall(head + b"\r\n\r\n")
            assert connection.recv(1 << 16) == b"HTTP/1.1 100 Continue\r\n\r\n"
            connection.sendall(body)
            received = b""
            while not received.endswith(b"0\r\n\r\n"):
                received += connection.recv(1 << 16)
            assert b"connection: close" not in received


ENDLESS = "from endless group by n % 10 select count()"


@pytest.mark.parametrize("mode", ["csv", "json", "msgpack", "xls"])
def test_a_client_that_leaves_before_the_answer_frees_its_thread(serve: Serve, mode: str) -> None:
    served = serve(threads=1, padding_seconds=0.05)
    sent(served, ENDLESS, mode).close()
    assert served.ask("from few") == ROWS


def test_a_client_that_leaves_is_noticed_at_once_and_not_when_padding_is_due(serve: Serve) -> None:
    served = serve(threads=1, padding_seconds=60)
    sent(served, ENDLESS, "csv").close()
    started = time.monotonic()
    assert served.ask("from few") == ROWS
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("mode", ["csv", "json"])
def test_a_client_that_leaves_while_the_engine_works_frees_its_thread(serve: Serve, mode: str) -> None:
    served = serve(threads=1, padding_seconds=0.05)
    with sent(served, ENDLESS, mode) as connection:
        assert connection.recv(15) == b"HTTP/1.1 200 OK"
    assert served.ask("from few") == ROWS


@pytest.mark.parametrize("mode", ["msgpack", "xls"])
def test_a_client_that_leaves_while_a_file_is_made_frees_its_thread(serve: Serve, mode: str) -> None:
    served = serve(threads=1, padding_seconds=0.05)
    with sent(served, ENDLESS, mode) as connection, pytest.raises(TimeoutError):
        connection.settimeout(0.5)
        connection.recv(1)
    assert served.ask("from few") == ROWS


def test_a_client_that_leaves_among_the_rows_frees_its_thread(serve: Serve) -> None:
    served = serve(threads=1)
    with sent(served, "from endless", "json/simple") as connection:
        received = 0
        while received < 5_000_000:
            received += len(connection.recv(1 << 16))
    assert served.ask("from few") == ROWS


def test_a_client_that_does_not_read_holds_no_thread(serve: Serve) -> None:
    served = serve(threads=1)
    with sent(served, "from endless", "csv") as connection:
        assert connection.recv(15) == b"HTTP/1.1 200 OK"
        assert served.ask("from few") == ROWS


def test_a_query_that_takes_too_long_is_refused_while_nothing_was_sent(serve: Serve) -> None:
    served = serve(threads=1, query_seconds=0.1)
    for mode in MODES:
        with pytest.raises(ServiceError) as caught, served.client() as client:
            asked = QueryRequest(query=ENDLESS, from_=NOON - 3600, to=NOON, mode=mode)
            with client.query(asked) as answer:
                list(answer.raw())
        assert ("more than 0.1s" in caught.value.message, type(caught.value)) == (True, ServiceError)
    served.service.query_seconds = 60.0
    assert served.ask("from few") == ROWS


@pytest.mark.parametrize("mode", A_FEW_FAST)
def test_a_query_that_takes_too_long_ends_an_answer_that_began(serve: Serve, mode: str) -> None:
    served = serve(threads=1, query_seconds=0.3, padding_seconds=0.05)
    with pytest.raises(IncompleteResult) as caught, served.client() as client:
        asked = QueryRequest(query=ENDLESS, from_=NOON - 3600, to=NOON, mode=mode)
        with client.query(asked) as answer:
            list(answer.raw())
    assert "more than 0.3s" in caught.value.message
    assert f"(code 400, cid {answer.cid})" in caught.value.message
    served.service.query_seconds = 60.0
    assert served.ask("from few") == ROWS


@pytest.mark.parametrize("mode", sorted(MODES.keys() - set(STREAMING)))
def test_a_format_that_cannot_be_streamed_is_refused_however_late_its_query_fails(serve: Serve, mode: str) -> None:
    served = serve(threads=1, query_seconds=0.3, padding_seconds=0.05)
    with pytest.raises(ServiceError) as caught, served.client() as client:
        asked = QueryRequest(query=ENDLESS, from_=NOON - 3600, to=NOON, mode=mode)
        with client.query(asked) as answer:
            list(answer.raw())
    assert (caught.value.message, caught.value.code) == ("the query ran for more than 0.3s; narrow its range", 1)


@pytest.mark.parametrize("mode", A_FEW_FAST)
def test_padding_comes_while_nothing_else_does_and_no_reader_sees_it(serve: Serve, mode: str) -> None:
    served = serve(padding_seconds=0.01)
    asked = QueryRequest(query="from few where n < 2", from_=NOON - 3600, to=NOON + 60, mode=mode)
    chunks = []
    with served.client() as client, client.request("POST", "/search/query", asked.body()) as answer:
        for chunk in answer.body:
            chunks.append(chunk)
            if sum(not chunk.strip() for chunk in chunks) == 3:
                served.moment = 63.0
    assert sum(not chunk.strip() for chunk in chunks) >= 3
    if mode != "xml":  # its rows are not read
        rows = list(QueryResponse(MODES[mode], answer.headers["content-type"], chunks).rows())
        if mode in ("csv", "tsv"):
            assert [row[1:] for row in rows] == [("0", "text 0"), ("1", "text 1")]
        else:
            assert rows == ROWS[:2]
    raw = b"".join(QueryResponse(MODES[mode], answer.headers["content-type"], chunks).raw())
    served.service.padding_seconds = 60.0  # or a busy machine would be slow enough for padding in this answer too
    whole = served.body(json.loads(asked.body()) | {"to": NOON})[1]
    if mode == "xml":  # its white space is its own, and passed on
        raw = b"\n".join(line for line in raw.split(b"\n") if line) + b"\n"
    assert without_the_request(raw) == without_the_request(whole)


def without_the_request(body: bytes) -> bytes:
    """A body without the members that differ from request to request."""
    start, end = body.find(b'"cid"'), body.find(b'"object"')
    return body[:start] + body[end:] if 0 <= start < end else body


@pytest.mark.parametrize(
    ("start", "end", "numbers"),
    [
        (0.5, 1.5, [1, 2]),
        (0.501, 1.5, [2]),
        (0.5, 1.501, [1, 2, 3]),
        (0, 1, [0, 1]),
        (0.001, 0.5, []),
        (0.5, 0.5, []),
        (0.5009, 1.0001, [1]),
    ],
)
def test_a_range_is_half_open_to_the_millisecond_at_both_ends(
    serve: Serve, start: float, end: float, numbers: list[int]
) -> None:
    served = serve()
    halves = "SELECT TIMESTAMP '2024-01-01 11:00:00' + to_milliseconds(500 * i) AS eventdate, i AS n FROM range(5) r(i)"
    served.engines.of("halves").stored.append("halves", selected(halves), create=COLUMNS[:2])
    fields = {"query": "from halves select n", "from": NOON - 3600 + start, "to": NOON - 3600 + end, "mode": "csv"}
    assert served.body(fields)[1].split() == [b"n", *(str(number).encode() for number in numbers)]


@pytest.mark.parametrize("mode", ["csv", "tsv", "json/simple", "json/simple/compact"])
def test_lines_end_as_the_service_is_set(serve: Serve, mode: str) -> None:
    served = serve()
    fields = {"query": "from few", "from": NOON - 3600, "to": NOON, "mode": {"type": mode}}
    plain = served.body(fields)[1]
    served.service.line_end = "crlf"
    assert served.body(fields)[1] == plain.replace(b"\n", b"\r\n")
    assert [row[-1] for row in served.ask("from few", mode)] == ["text 0", "text 1", "text 2"]


@pytest.mark.parametrize(
    ("mode", "keep_alive", "padding"),
    [
        ("csv", "none", b""),
        ("csv", None, b""),
        ("tsv", None, b""),
        ("csv", "newline", b"\n"),
        ("csv", "empty", b",,\n"),
        ("csv", {"type": "token", "token": "#\n"}, b"#\n"),
        ("csv", {"type": "token"}, b"\n"),
        ("json/simple", {"type": "newline"}, b"\n"),
        ("json", {"type": "token", "token": "\t"}, b"\t"),
    ],
)
def test_a_request_chooses_what_is_sent_while_there_are_no_rows(
    serve: Serve, mode: str, keep_alive: Any, padding: bytes
) -> None:
    served = serve(padding_seconds=0.01, line_end="crlf")
    fields = {"query": "from few", "from": NOON + 1, "to": NOON + 60, "mode": mode, "keepAlive": keep_alive}
    chunks = []
    with served.client() as client, client.request("POST", "/search/query", json.dumps(fields).encode()) as answer:
        for chunk in answer.body:
            chunks.append(chunk)
            if padding == b"" or b"".join(chunks).count(padding) > 3:
                served.moment = 63.0
    served.service.padding_seconds = 60.0
    whole = served.body(fields)[1]
    sent = without_the_request(b"".join(chunks))
    if padding == b"":
        assert sent == without_the_request(whole)
    else:
        assert sent.count(padding) > 3 - (padding in whole)
        assert sent.replace(padding, b"") == without_the_request(whole).replace(padding, b"")


def test_padding_that_a_format_cannot_have_is_refused(served: Served) -> None:
    fields = {"query": "from few", "from": NOON - 3600, "to": NOON, "mode": "json", "keepAlive": "empty"}
    told = json.loads(served.body(fields)[1])
    assert (told["status"], told["msg"]) == (1, "keepAlive 'empty' is a row of separators, which only csv and tsv have")


def test_addresses_are_what_the_request_asks_for_and_their_type_says_so(served: Served) -> None:
    fields = {"query": "from few select 192.0.2.1 as ip limit 1", "from": NOON - 3600, "to": NOON}
    for flag, type_, value in (
        (None, "str", '"192.0.2.1"'),
        (True, "ip4", '"192.0.2.1"'),
        (False, "ip4", "3221225985"),
    ):
        asked = fields | {"ipAsString": flag, "mode": {"type": "json/simple/compact"}}
        assert served.body(asked)[1].decode() == (
            f'{{"m":{{"ip":{{"type":"{type_}","index":0}}}},"metadata":[{{"name":"ip","type":"{type_}"}}]}}\n'
            f'{{"d":[{value}]}}\n'
        )


@pytest.mark.parametrize("mode", MODES)
def test_the_mode_may_be_written_in_any_case(served: Served, mode: str) -> None:
    fields = {"query": "from few select n", "from": NOON - 3600, "to": NOON}
    told = [served.body(fields | {"mode": {"type": name}})[0] for name in (mode, mode.upper(), mode.title())]
    assert told == [ENCODERS[mode].content_type] * 3


def test_twenty_clients_at_once_on_eight_threads_all_get_their_rows(serve: Serve) -> None:
    served = serve(threads=8)
    counting = (
        "SELECT TIMESTAMP '2024-01-01 11:00:00' + to_milliseconds(i) AS eventdate, i AS n FROM range(100000) r(i)"
    )
    served.engines.of("many").stored.append("many", selected(counting), create=COLUMNS[:2])
    together = threading.Barrier(20)

    def ask(number: int) -> list[tuple[Any, ...]]:
        together.wait()
        return served.ask(f"from many where n % 20 = {number} select n")

    with ThreadPoolExecutor(20) as clients:
        answers = list(clients.map(ask, range(20)))
    assert answers == [[(n,) for n in range(number, 100_000, 20)] for number in range(20)]


def test_queries_without_an_end_hold_no_thread_while_they_wait(serve: Serve) -> None:
    served = serve(threads=1)
    with ExitStack() as following:
        arriving = []
        for _ in range(4):
            client = following.enter_context(served.client())
            asked = QueryRequest(query="from few select n", from_=NOON - 3600, mode="json/simple/compact")
            arriving.append(following.enter_context(client.query(asked)).rows())
        assert [[next(rows) for _ in ROWS] for rows in arriving] == [[(0,), (1,), (2,)]] * 4
        assert served.ask("from few") == ROWS
        late = "SELECT TIMESTAMP '2024-01-01 11:59:30' AS eventdate, 99 AS n, 'late' AS text"
        served.engines.of("few").stored.append("few", selected(late))
        assert [next(rows) for rows in arriving] == [(99,)] * 4


# Shares, and domains that are disabled


@pytest.mark.slow
def test_eight_heavy_queries_leave_a_place_for_a_small_one(serve: Serve) -> None:
    served = serve(threads=32, slice_seconds=4)
    heavy = [sent(served, f"from endless group by n % {10 + number} select count()", "csv") for number in range(8)]
    try:
        eventually(lambda: served.service.turns.load() == {"running": 2, "waiting": 6, "idle": 0})
        for _ in range(3):
            assert served.ask("from few") == ROWS
    finally:
        for connection in heavy:
            connection.close()


def test_one_query_too_many_is_refused_with_the_time_to_try_again(serve: Serve) -> None:
    served = serve(threads=8, share=2)
    with ExitStack() as closing:
        clients = [closing.enter_context(sent(served, "from endless", "csv")) for _ in range(2)]
        assert [client.recv(15) for client in clients] == [b"HTTP/1.1 200 OK"] * 2
        refused = closing.enter_context(sent(served, "from few", "csv"))
        told = b""
        while not told.endswith(b"}"):
            told += refused.recv(1 << 16)
        head, _, body = told.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 429 ")
        assert b"\r\nretry-after: 1\r\n" in head + b"\r\n"
        assert {key: value for key, value in json.loads(body).items() if key in ("success", "status", "msg")} == {
            "success": False,
            "status": 1,
            "msg": "2 queries are already open, which is the maximum; try again when one of them has ended",
        }
        waits: list[float] = []

        def sleep(seconds: float) -> None:
            waits.append(seconds)
            clients[0].close()

        with Client(f"http://127.0.0.1:{served.address[1]}", Bearer("token"), retries=50, sleep=sleep) as client:
            request = QueryRequest(query="from few", from_=NOON - 3600, to=NOON, mode="json/simple/compact")
            with client.query(request) as answer:
                assert list(answer.rows()) == ROWS
        assert set(waits) == {1.0}


@pytest.fixture
def acme(serve: Serve) -> Served:
    """A service with the domain acme of the reseller that has the token; acme's token is `customer`."""
    served = serve(threads=8, padding_seconds=0.05)
    store = served.service.store
    price_plans.put_reseller(store, price_plans.Reseller("none"))
    price_plans.put_plan(store, price_plans.PricePlan("none", "basic"))
    domains.create(store, "none", {"name": "acme", "plan": "basic"})
    users.assign(store, "acme@none", "ann@acme.example", users.OWNER)
    accounts.put(store, Account("customer", "secret", "customer", "acme@none"))
    return served


@pytest.mark.parametrize("mode", [mode for mode in A_FEW_FAST if mode.values != ("xml",)])
@pytest.mark.parametrize(
    ("method", "path", "reason"),
    [
        ("POST", "/domain/acme/disable", (409, "domain acme@none is disabled and cannot be accessed")),
        ("DELETE", "/domain/acme", (404, "domain acme@none is deleted")),
    ],
)
@pytest.mark.parametrize("query", ["from few select n", "from endless where n < 3 select n"])
def test_the_answers_of_a_domain_end_with_its_access(
    acme: Served, mode: str, method: str, path: str, reason: tuple[int, str], query: str
) -> None:
    address = f"http://127.0.0.1:{acme.address[1]}"
    with Client(address, Bearer("customer"), retries=0) as customer, acme.client() as reseller:
        to = None if "few" in query else NOON
        with customer.query(QueryRequest(query=query, from_=NOON - 3600, to=to, mode=mode)) as answer:
            reseller.call(method, path)
            with pytest.raises(IncompleteResult) as caught:
                list(answer.raw())
    code, message = reason
    assert f"{message} (code {code}, cid {answer.cid})" in caught.value.message
    eventually(lambda: not acme.service.turns.domains())
    assert acme.ask("from few") == ROWS


@pytest.mark.parametrize("expires", [None, 0], ids=["deleted", "expired"])
def test_the_answers_of_a_key_end_with_it_and_those_of_other_keys_go_on(acme: Served, expires: int | None) -> None:
    store = acme.service.store
    accounts.put(store, Account("second", "secret", "second", "acme@none"))
    address = f"http://127.0.0.1:{acme.address[1]}"
    request = QueryRequest(query="from few select n", from_=NOON - 3600, to=None, mode="csv")
    with ExitStack() as closing:
        ending, other = (
            closing.enter_context(closing.enter_context(Client(address, Bearer(token), retries=0)).query(request))
            for token in ("customer", "second")
        )
        assert acme.service.turns.api_keys() == {"customer", "second"}
        if expires is None:
            accounts.remove(store, "customer")
        else:
            accounts.put(store, Account("customer", "secret", "customer", "acme@none", expires=expires))
        settle(acme.service, Jobs(store, lambda job, run: True))
        with pytest.raises(IncompleteResult, match=r"key of this request is no longer valid \(code 401"):
            list(ending.raw())
        eventually(lambda: acme.service.turns.api_keys() == {"second"})
        assert next(iter(other.raw()))


def test_every_answer_names_its_request_in_its_head(served: Served) -> None:
    asked = QueryRequest(query="from few", from_=NOON - 3600, to=NOON, mode="csv")
    with served.client() as client:
        with client.query(asked) as answer:
            assert len(answer.cid or "") == 12
        with client.request("POST", "/search/query", asked.body().replace(b'"csv"', b'"json"')) as told:
            assert json.loads(b"".join(told.body))["cid"] == told.headers["x-svc-cid"]
        for call, code in ((lambda: client.domain("nobody"), 106), (lambda: client.call("GET", "/nowhere"), 1)):
            with pytest.raises(ServiceError) as caught:
                call()
            assert (caught.value.code, len(caught.value.cid or "")) == (code, 12)


HOSTILE = 'from few where text = "text 1" select n, text limit 5'
PIECES = ["'", '"', ";", "--", "/*", "\\", "`", "\0", "') OR 1=1;--", "; DROP TABLE events.few;"]
EVERYWHERE = list(product(range(len(HOSTILE) + 1), PIECES))
INSIDE = range(HOSTILE.index('"') + 1, HOSTILE.rindex('"') + 1)
"""Where a piece without a quote is part of the text that is looked for, and not found."""


@pytest.mark.slow
def test_no_piece_of_sql_at_any_place_of_a_query_does_harm(served: Served) -> None:
    told = {(at, piece): rows_or_refusal(served, HOSTILE[:at] + piece + HOSTILE[at:]) for at, piece in EVERYWHERE}
    answered = {place: rows for place, rows in told.items() if not isinstance(rows, ServiceError)}
    texts: dict[tuple[int, str], list[Any]] = {
        (at, piece): [] for at, piece in product(INSIDE, PIECES) if not set(piece) & set('"\\\0')
    }
    tabs: dict[tuple[int, str], list[Any]] = {(at, "\\"): [] for at in INSIDE if HOSTILE[at] == "t"}
    twice_negative = {(at, "--"): [(1, "text 1")] for at in (HOSTILE.index(" n"), HOSTILE.index("n,"))}
    assert answered == texts | tabs | twice_negative
    refused = [error for error in told.values() if isinstance(error, ServiceError)]
    assert {error.code for error in refused} == {1}
    assert [piece for (_, piece), error in told.items() if isinstance(error, ServiceError) and not error.place] == (
        ["\0"] * (len(HOSTILE) + 1)
    )
    assert served.ask("from few") == ROWS


def rows_or_refusal(served: Served, query: str) -> list[tuple[Any, ...]] | ServiceError:
    try:
        return served.ask(query)
    except ServiceError as error:
        return error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("from few where " + "(" * 30_000 + "true" + ")" * 30_000, None),
        ("from few where " + "not " * 20_000 + "true", "nested too deep"),
        ("from few where " + "- " * 20_000 + "1 = 1", None),
        ("from few select " + "lower(" * 20_000 + "text" + ")" * 20_000, "nested too deep"),
        ("from few where text = '" + "x" * 1_040_000 + "'", "line 1, column 1: the query has 1.0 MB, more than "),
        ("x" * 2_000_000, "the body is larger than 1.0 MB"),
        ("from few where not text in {" + "'a'," * 5_000 + "'b'}", None),
        ("from " + "a." * 100_000 + "b", "line 1, column 6: no table"),
        ("from few //" + "\u2028" * 80_000, None),
        ("", "line 1, column 1: unexpected end of query"),
    ],
    ids=["parentheses", "not", "minus", "calls", "string", "body", "set", "name", "comment", "nothing"],
)
def test_a_monstrous_query_is_refused_or_answered_and_the_service_lives_on(
    served: Served, query: str, message: str | None
) -> None:
    told = rows_or_refusal(served, query)
    if message is None:
        assert told == ROWS
    else:
        assert isinstance(told, ServiceError)
        assert message in told.message
        assert len(told.message) < 500
    assert served.ask("from few") == ROWS


def test_what_is_no_text_of_a_query_is_refused_with_the_reason(served: Served) -> None:
    with served.client() as client, pytest.raises(ServiceError, match=r"^query contains half of a surrogate pair"):
        client.call("POST", "/search/query", b'{"query":"\\ud800","from":"2h"}')


@pytest.mark.parametrize("mode", sorted(MODES.keys() - set(STREAMING)))
def test_a_mode_that_cannot_be_streamed_needs_an_end(served: Served, mode: str) -> None:
    with pytest.raises(ServiceError) as caught:
        served.ask("from few", mode, to=None)
    assert caught.value.message == f"mode.type {mode} cannot be streamed, so the query needs an end (to)"


LATE = "SELECT TIMESTAMP '2024-01-01 11:59:05' AS eventdate, 9 AS n, '' AS text"
NEXT = "SELECT TIMESTAMP '2024-01-01 12:00:00' AS eventdate, 9 AS n, '' AS text"


def grouped(mode: str = "json/simple/compact") -> QueryRequest:
    return QueryRequest(NOON - 3600, query="from few group every 10s select count() as n", mode=mode)


def test_who_follows_groups_is_told_of_events_that_came_too_late(serve: Serve) -> None:
    served = serve(lag_seconds=1.5)
    notes: list[str] = []
    with served.client() as client, Follow(client, grouped(), notify=notes.append) as following:
        rows = following.rows()
        assert next(rows) == (1_704_110_340_000, 3)
        served.engines.of("few").stored.append("few", selected(f"{LATE} UNION ALL {NEXT}"))
        served.moment = 11.4
        served.engines.of("few").stored.append("few", selected(LATE))
        served.moment = 11.5
        assert next(rows) == (NOON * 1000, 1)
        served.engines.of("few").stored.append("few", selected(LATE))
        served.engines.of("few").stored.append("few", selected(NEXT.replace("12:00", "12:01")))
        served.moment = 80
        assert next(rows) == (NOON * 1000 + 60_000, 1)
    told = "stored more than 1.5s after the end of"
    assert notes[-1] == f"3 late events are in no group: {told} their period"
    assert served.service.counts.late == 3


@pytest.mark.parametrize("mode", ["json/simple", "json/simple/compact", "csv"])
def test_who_does_not_ask_gets_nothing_but_rows(serve: Serve, mode: str) -> None:
    served = serve(lag_seconds=1.5)
    request = replace(grouped(mode), limit=2)
    with served.client() as client, client.query(request) as answer:
        pieces = answer.raw()
        whole = next(pieces)
        served.engines.of("few").stored.append("few", selected(f"{LATE} UNION ALL {NEXT}"))
        served.moment = 30
        whole += b"".join(pieces)
    assert b"late" not in whole
    assert (answer.row_count, served.service.counts.late) == (2, 1)


def test_an_unknown_saved_query_is_not_found(served: Served) -> None:
    with served.client() as client, pytest.raises(NotFound, match="'nope'"):
        client.call("POST", "/search/query", b'{"queryId":"nope","from":"2h"}')
