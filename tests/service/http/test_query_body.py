"""The body of POST /query: what each field may be, and what is said about one that is wrong."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from svcctl.api.dates import Range
from svcctl.api.destinations import Destination
from svcctl.errors import NotFound, ServiceError
from svcctl.service.http.query_body import read_query
from svcctl.service.queries.asked import AskedQuery
from svcctl.service.rendering import ENCODERS

NOW = datetime(2024, 1, 1, 12, tzinfo=UTC)
SAVED = {"names": "from few select n"}
MODES = "json, json/compact, json/simple, json/simple/compact, msgpack, csv, tsv, xml, xls"


def saved(id: str) -> str:
    if id not in SAVED:
        raise NotFound(f"no saved query '{id}'")
    return SAVED[id]


def read_bytes(body: bytes) -> AskedQuery:
    return read_query(body, now=NOW, modes=ENCODERS, saved=saved)


def read(fields: dict[str, Any]) -> AskedQuery:
    return read_bytes(json.dumps({"query": "from few", "from": "2h"} | fields).encode())


def test_only_a_query_and_from_are_needed() -> None:
    assert read({}) == AskedQuery("from few", Range(NOW - timedelta(hours=2), None), "json")


def test_every_field_is_read() -> None:
    fields = {
        "from": "today",
        "to": "1d",
        "mode": {"type": "CSV"},
        "destination": {"type": "Kafka", "params": {"topic": "t"}},
        "dateFormat": "iso",
        "timeZone": "GMT+2",
        "skip": 3,
        "limit": 7,
    }
    midnight = datetime(2023, 12, 31, 22, tzinfo=UTC)
    assert read(fields) == AskedQuery(
        query="from few",
        range=Range(midnight, midnight + timedelta(days=1)),
        mode="csv",
        date_format="iso",
        zone=timezone(timedelta(hours=2)),
        skip=3,
        limit=7,
        destination=Destination("Kafka", {"topic": "t"}),
    )


def test_a_saved_query_stands_for_its_text() -> None:
    assert read({"query": None, "queryId": "names"}).query == "from few select n"
    with pytest.raises(NotFound) as caught:
        read({"query": None, "queryId": "nope"})
    assert caught.value.message == "no saved query 'nope'"


def test_offset_is_another_name_of_skip() -> None:
    assert (read({"offset": 5}).skip, read({"skip": 4}).skip) == (5, 4)


@pytest.mark.parametrize("mode", ["xml", "XML", {"type": "Xml"}])
def test_the_mode_is_a_name_or_an_object_with_one(mode: Any) -> None:
    assert read({"mode": mode}).mode == "xml"


def test_seconds_may_be_written_as_a_whole_fraction() -> None:
    assert read({"from": 1704103200.0}).range.start == NOW - timedelta(hours=2)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not JSON"),
        (b"[" * 100_000, "the body is nested deeper than 16 levels"),
        (b"[]", "the body is not a JSON object"),
        (b'\xff{"query":"from few"}', "the body is not JSON"),
        (b'{"query":"from few"}', "from is missing"),
        (b'{"from":"2h"}', "query or queryId is missing"),
    ],
)
def test_a_body_that_is_no_query_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(ServiceError) as caught:
        read_bytes(body)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"from": True}, "from is neither epoch seconds nor a date"),
        ({"from": float("inf")}, "the body is not JSON: Infinity is not a number"),
        ({"from": 1704110400000}, "date 1704110400000 is in milliseconds; dates are epoch seconds"),
        ({"to": "3 weeks"}, "'3 weeks' is not a valid date"),
        ({"query": ["from few"]}, "query is not a string"),
        ({"queryId": "a"}, "query and queryId exclude each other"),
        ({"mode": {"type": "cvs"}}, f"mode.type 'cvs' is not one of {MODES}"),
        ({"mode": {"type": {}}}, f"mode.type '{{}}' is not one of {MODES}"),
        ({"limit": -1}, "limit '-1' is not a number of rows"),
        ({"skip": 1e3}, "skip '1000.0' is not a number of rows"),
        ({"dateFormat": []}, "dateFormat '[]' is not one of default, sql, iso"),
        ({"timeZone": "Mars"}, "time zone 'Mars' is not of the form GMT+2"),
    ],
)
def test_a_field_that_is_wrong_is_refused_with_the_reason(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ServiceError) as caught:
        read(fields)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        ({"type": "S3"}, Destination("S3", {})),
        ({"type": "s3", "params": None}, Destination("s3", {})),
        ({"type": "s3", "params": {"a": 1, "b": "c"}}, Destination("s3", {"a": 1, "b": "c"})),
        ({"type": "s3", "params": [{"a": 1}, {"b": "c"}]}, Destination("s3", {"a": 1, "b": "c"})),
    ],
)
def test_parameters_are_an_object_or_a_list_of_objects(given: Any, expected: Destination | None) -> None:
    assert read({"destination": given}).destination == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("s3", "destination is not an object"),
        ({}, "destination.type is missing"),
        ({"type": 3}, "destination.type is not a string"),
        ({"type": "s3", "params": "a=b"}, "destination.params is neither an object nor a list of objects"),
        ({"type": "s3", "params": ["a"]}, "destination.params is neither an object nor a list of objects"),
    ],
)
def test_any_other_destination_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ServiceError) as caught:
        read({"destination": given})
    assert caught.value.message == message
