"""A followed query over connections that end in every way, at a service that says exactly what a test scripts."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from email.utils import formatdate
from typing import Any

import pytest
from support.scripted import Script, Serve, head, http

from svcctl.api.auth import Signature
from svcctl.api.client import Client
from svcctl.api.follow import QUIET_SECONDS, Follow
from svcctl.api.query import QueryRequest
from svcctl.api.retry import FIRST_DELAY
from svcctl.errors import IncompleteResult, ServiceError, Unavailable

AUTH = Signature("KEY", "SECRET")
START = 1_700_000_000


def answer(*rows: tuple[int, object], type_: str = "str", more: Sequence[str] = ()) -> bytes:
    """An answer of rows (second, text) that the service ends by closing the connection, as it ends any stream.

    It may have `more` columns of text.
    """
    names = {"eventdate": "timestamp", "n": type_} | dict.fromkeys(more, "str")
    m = {name: {"type": type_, "index": index} for index, (name, type_) in enumerate(names.items())}
    lines = [{"m": m}, *({"d": [(START + second) * 1000, text, *more]} for second, text in rows)]
    return (
        head("200 OK", "Content-Type: application/json") + "".join(json.dumps(line) + "\n" for line in lines).encode()
    )


@contextmanager
def following(
    script: Script, retries: int = 0, clock: Callable[[], float] = time.time, **fields: Any
) -> Iterator[tuple[Follow, list[str]]]:
    """A followed query, and what it notes."""
    notes: list[str] = []
    with (
        Client(script.url, AUTH, retries=retries) as client,
        Follow(
            client,
            QueryRequest(START, mode="json/simple/compact", **fields),
            notify=notes.append,
            sleep=lambda seconds: None,
            clock=clock,
        ) as follow,
    ):
        yield follow, notes


def texts(follow: Follow) -> list[str]:
    return [str(row[1]) for row in follow.rows()]


def test_a_limit_in_a_string_is_not_a_limit_so_a_closed_connection_is_opened_again(serve: Serve) -> None:
    script = serve(answer((0, "a"), (1, "b")), answer((0, "a"), (1, "b"), (2, "c")))
    with following(script, query='from t where reason = "limit reached" // limit 1', limit=3) as (follow, notes):
        assert texts(follow) == ["a", "b", "c"]
    assert len(script.requests) == 2
    assert notes[0].startswith("the service closed the connection; reconnecting in ")
    assert notes[1:] == ["reconnected"]


def test_a_long_outage_is_one_note_and_its_attempts_are_not_retried_twice(serve: Serve) -> None:
    busy = http("503 Service Unavailable", "busy")
    script = serve(answer((0, "a")), busy, busy, busy, answer((0, "a"), (1, "b")))
    with following(script, retries=1, query="from t", limit=2) as (follow, notes):
        assert texts(follow) == ["a", "b"]
    assert [note.partition("; ")[0] for note in notes] == [
        "the service closed the connection",
        "the service answered HTTP 503: busy",
        "reconnected",
    ]


@pytest.mark.parametrize("status", [408, 425, 429, 502, 503, 504, 520, 524, 527, 529, 530])
def test_a_status_that_may_pass_does_not_end_a_followed_query(serve: Serve, status: int) -> None:
    script = serve(answer((0, "a")), http(f"{status} Busy", "<h1>Busy</h1>"), answer((0, "a"), (1, "b")))
    with following(script, query="from t", limit=2) as (follow, _):
        assert texts(follow) == ["a", "b"]


@pytest.mark.parametrize("status", [400, 404, 500, 501, 507, 525, 526])
def test_any_other_status_ends_a_followed_query(serve: Serve, status: int) -> None:
    script = serve(answer((0, "a")), http(f"{status} No", "<h1>No</h1>"))
    with following(script, query="from t") as (follow, _), pytest.raises((ServiceError, Unavailable)):
        texts(follow)
    assert len(script.requests) == 2


class Stop(Exception):
    """Ends a followed query when enough was seen."""


def delays(serve: Serve, *connections: bytes | tuple[bytes, float]) -> list[float]:
    """The delay after each connection: an answer that ends at once, or with the seconds for which it lasts."""
    now, asked, slept = [0.0], threading.Event(), list[float]()

    class Lasting(list[bytes]):
        """An answer that ends some seconds after the client has noted when it began."""

        def __init__(self, answer: bytes, seconds: float) -> None:
            self.seconds = seconds
            super().__init__([answer])

        def __iter__(self) -> Iterator[bytes]:
            asked.clear()
            yield from super().__iter__()
            assert asked.wait(10)
            now[0] += self.seconds

    def clock() -> float:
        asked.set()
        return now[0]

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == len(connections):
            raise Stop

    script = serve(*(one if isinstance(one, bytes) else Lasting(*one) for one in connections))
    request = QueryRequest(START, mode="json/simple/compact", query="from t")
    with (
        Client(script.url, AUTH, retries=0) as client,
        Follow(client, request, notify=lambda note: None, sleep=sleep, clock=clock) as follow,
        pytest.raises(Stop),
    ):
        texts(follow)
    return slept


QUIET_STREAM = answer()
NO_COLUMNS = head("200 OK")
BUSY = http("503 Busy")


@pytest.mark.parametrize(
    ("connections", "failures"),
    [
        ([(QUIET_STREAM, 2.0)] * 4, [1, 1, 1, 1]),
        ([QUIET_STREAM, *[(NO_COLUMNS, 2.0)] * 3], [1, 1, 1, 1]),
        ([(QUIET_STREAM, 0.0)] * 5, [1, 2, 3, 4, 5]),
        ([answer((number, "new")) for number in range(4)], [1, 1, 1, 1]),
        ([answer((0, "old"))] * 4, [1, 2, 3, 4]),
        ([QUIET_STREAM, *[BUSY] * 5], [1, 2, 3, 4, 5, 6]),
        ([QUIET_STREAM, *[BUSY] * 3, (QUIET_STREAM, 4.0), BUSY, BUSY], [1, 2, 3, 4, 1, 2, 3]),
        ([QUIET_STREAM, *[BUSY] * 3, (QUIET_STREAM, 1.0), BUSY], [1, 2, 3, 4, 5, 6]),
    ],
)
def test_the_delay_grows_after_failed_attempts_only(
    serve: Serve, connections: list[bytes | tuple[bytes, float]], failures: list[int]
) -> None:
    found = delays(serve, *connections)
    for seconds, count in zip(found, failures, strict=True):
        assert FIRST_DELAY * 2 ** (count - 2) <= seconds <= FIRST_DELAY * 2 ** (count - 1)


def test_a_connection_after_a_long_retry_after_has_to_last_as_long(serve: Serve) -> None:
    later = http("503 Busy", "", "Retry-After: 9")
    _, asked, after_less, after_as_much = delays(serve, QUIET_STREAM, later, (QUIET_STREAM, 8.9), (QUIET_STREAM, 9))
    assert asked == 9
    assert 1 <= after_less <= 2
    assert 0.25 <= after_as_much <= 0.5


@pytest.mark.parametrize("query", ["from t limit 3", "from t where n limit 003 select eventdate, n pragma a: b"])
def test_a_limit_at_the_end_of_the_text_counts_over_all_connections(serve: Serve, query: str) -> None:
    script = serve(answer((0, "a"), (1, "b")), answer((0, "a"), (1, "b"), (2, "c")))
    with following(script, query=query) as (follow, _):
        assert texts(follow) == ["a", "b", "c"]
    assert len(script.requests) == 2


def test_the_smaller_of_two_limits_counts(serve: Serve) -> None:
    rows = answer((0, "a"), (1, "b"), (2, "c"))
    with following(serve(rows), query="from t limit 3", limit=2) as (follow, _):
        assert texts(follow) == ["a", "b"]
    with following(serve(rows), query="from t limit 1", limit=2) as (follow, _):
        assert texts(follow) == ["a"]


@pytest.mark.parametrize("fields", [{"query": "from t limit 0"}, {"query": "from t", "limit": 0}])
def test_a_limit_of_nothing_ends_at_once(serve: Serve, fields: dict[str, Any]) -> None:
    script = serve(answer())
    with following(script, **fields) as (follow, _):
        assert texts(follow) == []
    assert len(script.requests) == 1


def test_a_service_that_closes_a_query_with_a_limit_inside_has_reached_it(serve: Serve) -> None:
    script = serve(answer((0, "a"), (1, "b")))
    with following(script, query="from t limit 5 where n") as (follow, notes):
        assert texts(follow) == ["a", "b"]
    assert (len(script.requests), notes) == (1, [])


@pytest.mark.parametrize(
    ("query", "clauses"),
    [
        ("from t offset 5", "offset"),
        ("from t offset 5 limit 9", "offset"),
        ("from t limit 9 offset 5 group every 1m", "limit and offset"),
    ],
)
def test_a_query_whose_limit_or_offset_would_count_again_is_not_resumed(serve: Serve, query: str, clauses: str) -> None:
    script = serve([answer((0, "a")) + b'{"d":[17'])
    with following(script, query=query) as (follow, _), pytest.raises(IncompleteResult) as caught:
        texts(follow)
    assert caught.value.message.endswith(f", and a query with {clauses} cannot be resumed")
    assert len(script.requests) == 1


def test_a_saved_query_is_asked_again_since_only_the_service_knows_its_limit(serve: Serve) -> None:
    script = serve(answer((0, "a"), (1, "b")), answer((1, "b"), (2, "c")))
    with following(script, query_id="saved", limit=3) as (follow, notes):
        assert texts(follow) == ["a", "b", "c"]
    assert notes[0].startswith(
        "the service closed the connection, perhaps at a limit in the saved query; reconnecting in "
    )


def test_a_query_that_groups_is_resumed_at_its_newest_group_so_an_older_one_is_not_delivered_again(
    serve: Serve,
) -> None:
    script = serve(answer((0, "0: 6"), (60, "1: 6")), answer((0, "0: 1"), (60, "1: 6"), (120, "2: 6")))
    with following(script, query="from t group every 1m select count()", limit=3) as (follow, _):
        assert texts(follow) == ["0: 6", "1: 6", "2: 6"]
    assert [json.loads(body)["from"] - START for _, _, body in script.requests] == [0, 60]


def test_columns_that_the_table_gained_during_a_break_are_left_out(serve: Serve) -> None:
    script = serve(answer((0, "a")), answer((0, "a"), (1, "b"), more=["x", "y"]))
    with following(script, query="from t", limit=2) as (follow, _):
        assert [row[1:] for row in follow.rows()] == [("a",), ("b",)]
        assert [column.name for column in follow.columns] == ["eventdate", "n"]


def test_a_query_whose_column_has_another_type_after_a_break_ends(serve: Serve) -> None:
    script = serve(answer((0, 1), type_="int8"), answer((0, 1.0), type_="float8"))
    with following(script, query="from t", limit=2) as (follow, _), pytest.raises(ServiceError, match=r"column n"):
        list(follow.rows())


def test_a_new_connection_is_incomplete_until_it_is_quiet_or_as_far_as_the_old_one_was_lost(serve: Serve) -> None:
    told = "the result is incomplete: not all events since 2023-11-14 22:15:00 UTC have arrived"
    now = [START + 100.0]
    script = serve(answer((0, "a")), answer((0, "a"), (1, "b"), (120, "c"), (121, "d")))
    with following(script, query="from t", limit=4, clock=lambda: now[0]) as (follow, _):
        found = follow.rows()
        next(found)
        assert follow.broken is None
        next(found)
        assert str(follow.broken) == told
        now[0] += QUIET_SECONDS
        assert follow.broken is None
        next(found)
        now[0] -= QUIET_SECONDS
        assert follow.broken is None
    with following(script, query="from t", limit=2, clock=lambda: now[0]) as (follow, _):
        assert len(texts(follow)) == 2
        assert follow.broken is None


def dated(date: int, *rows: tuple[int, str], length: int | None = None) -> bytes:
    """An answer of rows by a service whose clock is `date` seconds after START; one with a `length` is cut off."""
    at = f"Date: {formatdate(START + date, usegmt=True)}"
    first, rest = answer(*rows).split(b"\r\n", 1)
    more = at if length is None else f"{at}\r\nContent-Length: {length}"
    return first + b"\r\n" + more.encode() + b"\r\n" + rest


def test_a_connection_that_is_closed_before_the_end_broke_and_one_after_it_is_the_end(serve: Serve) -> None:
    rows = [(0, "a"), (1, "b"), (2, "c")]
    script = serve(dated(10, *rows[:1]), dated(58, *rows[:2]), dated(60, *rows))
    with following(script, clock=lambda: START - 86_400.0, query="from t", to=START + 60) as (follow, notes):
        assert texts(follow) == ["a", "b", "c"]
    assert [json.loads(body)["to"] for _, _, body in script.requests] == [START + 60] * 3
    assert notes[1::2] == ["reconnected"] * 2
    assert follow.broken is None


def test_an_answer_that_is_cut_off_after_the_end_is_asked_for_again(serve: Serve) -> None:
    script = serve(dated(70, (0, "a"), length=9_999), dated(71, (0, "a"), (1, "b")))
    with following(script, clock=lambda: float(START), query="from t", to=START + 60) as (follow, notes):
        assert texts(follow) == ["a", "b"]
    assert notes[1:] == ["reconnected"]


def test_a_query_that_groups_prints_its_last_period_once_when_its_connection_broke(serve: Serve) -> None:
    script = serve(dated(30, (0, "5"), (20, "6")), dated(61, (20, "6"), (40, "7")))
    query = "from t group every 20s select count() as n"
    with following(script, clock=lambda: float(START), query=query, to=START + 60) as (follow, _):
        assert texts(follow) == ["5", "6", "7"]
    assert json.loads(script.requests[1][2])["from"] == START + 20


def test_a_range_that_is_over_is_answered_once(serve: Serve) -> None:
    script = serve(dated(3600, (0, "a")))
    with following(script, query="from t select n", to=START + 60) as (follow, notes):
        assert texts(follow) == ["a"]
    assert (len(script.requests), notes) == (1, [])
