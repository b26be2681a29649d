"""Models take what services send; requests and destinations; what may be imported without httpx."""

import subprocess
import sys
from typing import Any

import pytest

from svcctl.api.columns import ResultColumn, columns_of
from svcctl.api.destinations import TYPES, Destination, suggest_key, suggest_type, unknown_keys, without_secret
from svcctl.api.models import Domain, Job, Role
from svcctl.api.query import QueryRequest
from svcctl.errors import UsageError
from svcctl.words import DESTINATION_TYPES, is_secret


def test_a_job_with_only_an_id_and_a_status_is_a_job() -> None:
    assert Job.from_json({"id": "j1", "status": "PAUSED"}) == Job("j1", "PAUSED")


def test_a_job_keeps_all_fields_those_it_does_not_know_too() -> None:
    source = {
        "status": "COMPLETED",
        "id": "j1",
        "eventGenerated": 9007199254740993,
        "eventsSent": 7,
        "lastDatetime": 1538991192000,
        "type": "kafka",
        "query": "from t",
        "friendlyName": "kafka_x",
        "error": ["first", "second"],
        "owner": "someone",
    }
    job = Job.from_json(source)
    assert job == Job(
        "j1",
        "COMPLETED",
        "kafka",
        "kafka_x",
        9007199254740993,
        7,
        1538991192000,
        "from t",
        ("first", "second"),
        {"owner": "someone"},
    )
    assert job.to_json() == source


def test_a_domain_round_trips() -> None:
    source = {"name": "d@r", "plan": "p", "time": 1.5, "volume": 2, "status": "Active", "owner": None}
    assert Domain.from_json(source) == Domain("d@r", "p", "Active", 1.5, 2, {"owner": None})
    assert Domain.from_json(source).to_json() == source


def test_a_single_policy_is_a_list_of_one_and_everything_is_a_star() -> None:
    role = Role.from_json({"name": "r", "policies": "p", "applications": "*", "resourceIds": {"a": [1], "*": []}})
    assert role == Role("r", policies=("p",), applications=("*",), resource_ids={"a": (1,), "*": ()})
    assert role.body() == {"name": "r", "policies": ["p"], "applications": "*", "resourceIds": {"a": [1], "*": []}}


def test_a_role_body_sends_what_is_empty_and_not_what_is_absent_or_read_only() -> None:
    role = Role(applications=(), default_application_name="", alert_permissions=["a"], max_vault=3)
    assert role.body() == {"applications": [], "defaultApplicationName": ""}
    assert role.to_json() == {
        "applications": [],
        "defaultApplicationName": "",
        "alertPermissions": ["a"],
        "maxVault": 3,
    }


def test_columns_are_ordered_by_index() -> None:
    m = {"b": {"type": "str", "index": 1}, "a": {"type": "int8", "index": 0}}
    assert columns_of(m) == (ResultColumn("a", "int8"), ResultColumn("b", "str"))


@pytest.mark.parametrize("m", [None, [], {"a": 1}, {"a": {"type": "str"}}, {"a": {"type": "str", "index": 1}}])
def test_column_metadata_that_cannot_be_used_is_refused(m: object) -> None:
    with pytest.raises(ValueError, match=r"m is not an object|no index|0, 1, 2"):
        columns_of(m)


def test_a_request_is_exactly_the_interfaces_fields() -> None:
    request = QueryRequest(
        from_="2d",
        to=1536150131,
        query="from t where ñ = 'x'",
        mode="csv",
        destination=Destination("Kafka", {"topic": "t", "bootstrap.servers": "b:1"}),
        date_format="iso",
        time_zone="GMT+2",
        skip=0,
        limit=5,
    )
    assert request.body().decode() == (
        '{"query":"from t where ñ = \'x\'","from":"2d","to":1536150131,"mode":{"type":"csv"},'
        '"destination":{"type":"Kafka","params":{"topic":"t","bootstrap.servers":"b:1"}},'
        '"dateFormat":"iso","timeZone":"GMT+2","skip":0,"limit":5}'
    )
    assert request.body() is request.body()


def test_a_continuous_request_has_no_to() -> None:
    request = QueryRequest(from_="now", query_id="q1", mode="json/simple")
    assert request.body() == b'{"queryId":"q1","from":"now","mode":{"type":"json/simple"}}'
    assert request.continuous


@pytest.mark.parametrize(
    ("fields", "message", "hint"),
    [
        ({}, "a request has either a query or the ID of a saved query", None),
        ({"query": "q", "query_id": "i"}, "a request has either a query or the ID of a saved query", None),
        ({"query": "q", "mode": "json/simpel"}, "there is no format 'json/simpel'", "did you mean 'json/simple'?"),
        (
            {"query": "q", "date_format": "us"},
            "there is no date format 'us'",
            "one of default, sql, iso",
        ),
        ({"query": "q", "limit": -1}, "limit -1 is below 0", None),
    ],
)
def test_fields_that_cannot_be_a_request_are_usage_errors(
    fields: dict[str, Any], message: str, hint: str | None
) -> None:
    with pytest.raises(UsageError) as caught:
        QueryRequest(from_="now", **fields)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_query_that_is_not_unicode_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="bytes that are not UTF-8"):
        QueryRequest(from_="now", query="from t where a = '\udcff'").body()


def test_destination_facts() -> None:
    assert suggest_type("kafak") == "Kafka"
    assert suggest_type("S3") is None
    assert suggest_key("Kafka", "bootstrap.server") == "bootstrap.servers"
    assert suggest_key("kafka", "topic") is None
    assert unknown_keys(Destination("kafka", {"topic": "t", "acks": "all"})) == ("acks",)
    assert unknown_keys(Destination("other", {"a": 1})) == ()
    assert {row.key for kind in TYPES.values() for row in kind.parameters if row.secret != is_secret(row.key)} == set()


@pytest.mark.parametrize(
    ("secret", "shown"),
    [
        ("", "s3://logs/49b5c6d4: b refuses hunter2"),
        ("b", "s3://logs/49b5c6d4: **** refuses hunter2"),
        ("hunt", "s3://logs/49b5c6d4: b refuses ****er2"),
        ("hunter2", "s3://logs/49b5c6d4: b refuses ****"),
    ],
)
def test_a_secret_of_a_few_letters_is_masked_only_where_it_is_a_word(secret: str, shown: str) -> None:
    assert without_secret("s3://logs/49b5c6d4: b refuses hunter2", secret) == shown


def test_the_types_of_destinations_are_the_rows_of_their_table() -> None:
    assert [(key, row.name) for key, row in TYPES.items()] == [(name.lower(), name) for name in DESTINATION_TYPES]


def test_names_and_models_load_without_httpx() -> None:
    code = (
        "import sys, svcctl.api.models, svcctl.api.destinations, svcctl.api.query, svcctl.dates.operators\n"
        "sys.exit('httpx' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
