"""A followed query over any breaks: every event is printed once, whatever dates the events have."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.over_httpx import OverHttpx

from svcctl.api.auth import Signature
from svcctl.api.client import Client
from svcctl.api.follow import Follow, Memory
from svcctl.api.query import QueryRequest
from svcctl.errors import IncompleteResult

START = 1_700_000_000
NOW = START + 3600
M = {"m": {"eventdate": {"type": "timestamp", "index": 0}, "value": {"type": "str", "index": 1}}}

Event = tuple[int, Any]
"""A date, in milliseconds behind START, and a value."""


@dataclass
class Connection:
    """What is stored before it and during it, and after how many rows it breaks."""

    before: list[Event]
    during: list[Event]
    rows: int


@dataclass
class Service:
    """Answers with the stored events by date, then with each new one as it is stored."""

    connections: list[Connection]
    stored: list[Event] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(
            200,
            headers={"Date": formatdate(NOW), "Content-Type": "application/json"},
            content=self.answer(json.loads(request.content)["from"] * 1000),
        )

    def answer(self, first: int) -> Iterator[bytes]:
        connection = self.connections.pop(0)
        self.stored += connection.before
        yield json.dumps(M).encode() + b"\n"
        rows = sorted(self.stored, key=lambda event: event[0])
        self.stored += connection.during
        matching = [event for event in rows + connection.during if START * 1000 + event[0] >= first]
        for date, value in matching[: connection.rows] if self.connections else matching:
            yield json.dumps({"d": [START * 1000 + date, value]}).encode() + b"\n"
        if self.connections:
            raise httpx.ReadError("the connection breaks")


dates = st.one_of(st.integers(0, 5000), st.integers(0, 10**7), st.integers(3_000_000_000, 10**12))
"""Close together, anywhere in hours around NOW, and far in the future."""
events: st.SearchStrategy[list[Event]] = st.lists(
    st.tuples(dates, st.sampled_from([-1, -2, None, "x", True, 1, [1, "y"], {"k": []}])), max_size=12
)
connections = st.lists(st.builds(Connection, events, events, st.integers(0, 20)), min_size=1, max_size=6)


@given(connections, st.integers(0, 3))
def test_every_event_is_printed_once(connections: list[Connection], skip: int) -> None:
    stored = [event for connection in connections for event in connection.before + connection.during]
    expected = Counter(json.dumps([START * 1000 + date, value]) for date, value in stored)
    rest = max(0, len(stored) - skip)
    service = Service(connections)
    with (
        Client("http://127.0.0.1:1", Signature("KEY", "SECRET"), transport=OverHttpx(service)) as client,
        Follow(
            client,
            QueryRequest(START, query="from t", mode="json/simple/compact", skip=skip, limit=rest),
            notify=lambda note: None,
            sleep=lambda seconds: None,
        ) as follow,
    ):
        printed = Counter(json.dumps(row) for row in follow.rows())
    assert printed <= expected
    assert printed.total() == rest


def test_a_sender_whose_clock_is_a_year_ahead_does_not_move_the_place_where_the_query_resumes() -> None:
    memory = Memory(most=10)
    for second in range(NOW - 20, NOW):
        memory.add(second, 1, NOW)
    memory.add(NOW + 365 * 86_400, 2, NOW)
    first, delivered = memory.resume()
    assert first == NOW - 9
    assert sorted(delivered) == [*range(NOW - 9, NOW), NOW + 365 * 86_400]
    assert memory.resume(groups=True)[0] == NOW


def test_a_query_of_which_only_future_dates_are_remembered_is_not_resumed() -> None:
    memory = Memory(most=10)
    memory.add(NOW, 1, NOW)
    for second in range(10):
        memory.add(NOW + 3600 + second, 1, NOW)
    with pytest.raises(IncompleteResult) as caught:
        memory.resume()
    assert caught.value.message == (
        "the connection broke, and the query cannot be resumed: more than 10 rows have the date of "
        "the newest event, or a later date"
    )


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 3)), max_size=200), st.integers(1, 30))
def test_the_memory_is_bounded_and_knows_each_row_since_the_second_that_it_names(
    rows: list[tuple[int, int]], most: int
) -> None:
    memory = Memory(most)
    for second, row in rows:
        memory.add(second, row, 50)
    try:
        first, delivered = memory.resume()
    except IncompleteResult:
        return
    kept = [(second, row) for second, counts in delivered.items() for row in counts.elements()]
    assert len(kept) <= most
    assert Counter(kept) == Counter(pair for pair in rows if first is None or pair[0] >= first)
