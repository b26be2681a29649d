"""The body of POST /query: what each field may be, and what is said about one that is wrong."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from typing import Any

import pytest

from svcctl.api.destinations import Destination
from svcctl.dates.range import Range
from svcctl.errors import NotFound, ServiceError
from svcctl.service.http.query_body import read_query
from svcctl.service.queries.request import AskedQuery
from svcctl.service.rendering import ENCODERS
from svcctl.service.rendering.keep_alive import KeepAlive

NOW = datetime(2024, 1, 1, 12, tzinfo=UTC)
SAVED = {"names": "from few select n"}
DESTINATION = "destination.params is neither an object nor a list of objects"
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


@pytest.mark.parametrize(
    "fields",
    [
        *(
            {name: None}
            for name in ("queryId", "to", "mode", "destination", "dateFormat", "timeZone", "skip", "offset")
        ),
        *({name: None} for name in ("limit", "ipAsString", "keepAlive", "continues", "unknown")),
        *({"mode": {"type": None}}, {"mode": {}}, {"keepAlive": {"type": None, "token": None}}),
    ],
)
def test_a_member_that_is_null_counts_as_omitted(fields: dict[str, Any]) -> None:
    assert read(fields) == read({})


def test_a_parameter_that_is_null_counts_as_omitted() -> None:
    params = {"topic": "t", "mode": None, "inner": {"a": None, "b": [None, {"c": None}]}}
    destination = read({"destination": {"type": "kafka", "params": params}}).destination
    assert destination == Destination("kafka", {"topic": "t", "inner": {"b": [None, {}]}})
    assert read({"destination": {"type": "kafka", "params": None}}).destination == Destination("kafka", {})


@pytest.mark.parametrize(
    "fields", [{"skip": 3}, {"offset": 3}, {"skip": 3, "offset": 3.0}, {"skip": None, "offset": 3}]
)
def test_the_rows_to_skip_have_two_names(fields: dict[str, Any]) -> None:
    assert read(fields).skip == 3


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
    with pytest.raises(NotFound, match="'nope'"):
        read({"query": None, "queryId": "nope"})


def test_offset_is_another_name_of_skip() -> None:
    assert (read({"offset": 5}).skip, read({"skip": 4}).skip) == (5, 4)


@pytest.mark.parametrize("mode", ["xml", "XML", {"type": "Xml"}])
def test_the_mode_is_a_name_or_an_object_with_one(mode: Any) -> None:
    assert read({"mode": mode}).mode == "xml"


@pytest.mark.parametrize(
    ("written", "milliseconds"),
    [
        ("1704103200.0", 0),
        ("1704103200.5", 500),
        ("1704103200.001", 1),
        ("1704103200.999", 999),
        ("1704103200.9999", 999),
        ("1704103200.0009", 0),
        ("1.7041032005e9", 500),
    ],
)
def test_seconds_with_a_fraction_count_to_the_millisecond_at_both_ends(written: str, milliseconds: int) -> None:
    expected = NOW - timedelta(hours=2) + timedelta(milliseconds=milliseconds)
    body = f'{{"query":"from few","from":{written},"to":{written}}}'
    assert read_bytes(body.encode()).range == Range(expected, expected)


def test_every_millisecond_can_be_written_with_a_fraction() -> None:
    start = 1704103200
    for milliseconds in range(1000):
        body = f'{{"query":"from few","from":{start}.{milliseconds:03}}}'
        assert read_bytes(body.encode()).range.start == NOW + timedelta(hours=-2, milliseconds=milliseconds)


def test_relative_ends_keep_the_fraction_of_from() -> None:
    found = read({"from": 1704103200.25, "to": "1h"}).range
    assert found.end == NOW - timedelta(hours=1) + timedelta(milliseconds=250)


def test_a_number_of_rows_may_be_written_with_a_point() -> None:
    found = read_bytes(b'{"query":"from few","from":1,"limit":2.0,"skip":1e3}')
    assert (found.limit, found.skip) == (2, 1000)
    assert (type(found.limit), type(found.skip)) == (int, int)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        ("none", KeepAlive("none")),
        ("NewLine", KeepAlive("newline")),
        ({"type": "empty"}, KeepAlive("empty")),
        ({"type": "token", "token": "    "}, KeepAlive("token", "    ")),
        ({"type": "none", "token": None}, KeepAlive("none")),
        ("token", KeepAlive("newline")),
        ({"type": "Token"}, KeepAlive("newline")),
        ({"type": "token", "token": None}, KeepAlive("newline")),
        ({"type": "token", "token": ""}, KeepAlive("newline")),
    ],
)
def test_the_padding_is_a_name_or_an_object(given: Any, expected: KeepAlive | None) -> None:
    assert read({"keepAlive": given}).keep_alive == expected


def test_the_form_of_addresses_may_be_left_to_the_service() -> None:
    asked = [read({}), read({"ipAsString": None}), read({"ipAsString": True}), read({"ipAsString": False})]
    assert [each.ip_as_string for each in asked] == [None, None, True, False]


IGNORED: list[tuple[dict[str, Any], str]] = [
    ({"secret": "hidden", "Limit": 5, "a\nb": 1}, r"a query: ignored unknown members 'Limit', 'a\nb', 'secret'"),
    ({"mode": {"type": "csv", "shape": 1}}, "mode: ignored unknown members 'shape'"),
    (
        {"destination": {"type": "s3", "params": {"own": 1}, "name": "x"}},
        "destination: ignored unknown members 'name'",
    ),
    ({"keepAlive": {"type": "none", "every": 5}}, "keepAlive: ignored unknown members 'every'"),
    (
        {f"x{number:02}": 1 for number in range(99)},
        "a query: ignored unknown members 'x00', 'x01', 'x02', 'x03', 'x04' and 94 more",
    ),
]


@pytest.mark.parametrize(("fields", "noted"), IGNORED)
def test_members_that_are_not_known_are_ignored_and_noted_in_one_line(
    caplog: pytest.LogCaptureFixture, fields: dict[str, Any], noted: str
) -> None:
    caplog.set_level("INFO")
    assert read(fields).limit is None
    assert caplog.messages == [noted]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not JSON"),
        (b"[" * 100_000, "the body is nested deeper than 16 levels"),
        (b"[]", "the body is not a JSON object"),
        (b'\xff{"query":"from few"}', "the body is not JSON"),
        (b'{"query":"from few"}', "from is missing"),
        (b'{"from":"2h"}', "query or queryId is missing"),
        (b"{}", "from is missing"),
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
        ({"from": -62135596801}, "date '-62135596801' is outside the calendar"),
        (
            {"mode": {"type": None, "typ": 1}, "skip": 1, "offset": 2},
            "skip 1 and offset 2 differ, but both name the number of rows to skip",
        ),
        ({"skip": 0, "offset": 2}, "skip 0 and offset 2 differ, but both name the number of rows to skip"),
        ({"skip": 3, "offset": "x"}, "offset 'x' is not a number of rows"),
        ({"skip": "x", "offset": 3}, "skip 'x' is not a number of rows"),
        ({"skip": 3, "offset": -1}, "offset '-1' is not a number of rows"),
        ({"skip": 0, "offset": True}, "offset 'true' is not a number of rows"),
        ({"limit": [1]}, "limit '[1]' is not a number of rows"),
        ({"limit": {"x": [None, "é"]}}, 'limit \'{"x": [null, "é"]}\' is not a number of rows'),
        ({"timeZone": True}, "time zone 'true' is not of the form GMT+2"),
        ({"timeZone": "GMT+002"}, "time zone 'GMT+002' is not of the form GMT+2"),
        ({"mode": False}, f"mode.type 'false' is not one of {MODES}"),
        ({"query": None}, "query or queryId is missing"),
        ({"from": None}, "from is missing"),
        ({"destination": {"type": None}}, "destination.type is missing"),
        ({"destination": {"type": ["s3"]}}, "destination.type is not a string"),
        ({"destination": {"type": "s3", "params": [None]}}, DESTINATION),
        ({"from": 1704110400000.5}, "date 1704110400000.5 is in milliseconds; dates are epoch seconds"),
        (
            {"from": 1704103200.75, "to": 1704103200.25},
            "the range ends before it starts: from 2024-01-01 10:00:00.750 to 2024-01-01 10:00:00.250 (UTC)",
        ),
        ({"ipAsString": "true"}, "ipAsString is neither true nor false"),
        ({"keepAlive": "often"}, "keepAlive 'often' is not one of none, newline, empty, token"),
        ({"keepAlive": True}, "keepAlive 'true' is not one of none, newline, empty, token"),
        ({"keepAlive": {"token": "x"}}, "keepAlive has a token and no type"),
        ({"keepAlive": {"type": "token", "token": 1}}, "token is not a string"),
        ({"keepAlive": {"type": "none", "token": "x"}}, "only keepAlive 'token' has a token"),
        ({"limit": -1}, "limit '-1' is not a number of rows"),
        ({"skip": 1.5}, "skip '1.5' is not a number of rows"),
        ({"limit": 1e19}, "limit '1e+19' is not a number of rows"),
        ({"dateFormat": []}, "dateFormat '[]' is not one of default, sql, iso"),
        ({"timeZone": "Mars"}, "time zone 'Mars' is not of the form GMT+2"),
    ],
)
def test_a_field_that_is_wrong_is_refused_with_the_reason(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ServiceError) as caught:
        read(fields)
    assert caught.value.message == message


NO_FROM, BAD_FROM, ENDS_FIRST = 405, 406, 408


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"from": None}, NO_FROM),
        ({"from": None, "to": "bad", "query": 5, "timeZone": "Mars"}, NO_FROM),
        *(
            ({"from": date, "to": to}, BAD_FROM)
            for date, to in product(
                ("", "bad", "1x", "31/02/2024 00:00:00", "99999999d", True, [], {}, -1704110400000, 1704110400000),
                (None, "now", "bad"),
            )
        ),
        ({"from": "now", "to": 1}, ENDS_FIRST),
        ({"from": 1704103200.75, "to": 1704103200.25}, ENDS_FIRST),
        ({"from": "now", "to": "01/01/2023 00:00:00", "timeZone": "GMT+2"}, ENDS_FIRST),
        ({"from": "1d", "to": "bad"}, None),
        ({"from": "1d", "to": True}, None),
        ({"from": "1d", "query": None}, None),
    ],
)
def test_what_is_wrong_with_from_has_a_code(fields: dict[str, Any], code: int | None) -> None:
    with pytest.raises(ServiceError) as caught:
        read(fields)
    assert caught.value.code == code


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
