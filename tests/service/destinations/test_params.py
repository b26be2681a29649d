"""Which parameters a launch takes, and what it says about those it refuses, before anything is connected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from svcctl.api.destinations import TYPES
from svcctl.errors import ServiceError
from svcctl.service.destinations import kinds
from svcctl.service.destinations.gzip_and_zip import PACKINGS
from svcctl.service.destinations.kafka import MODES

KAFKA = {"topic": "t", "bootstrap.servers": "b:9092"}
S3 = {"aws.bucket": "b"}
HDFS = {"fs.defaultFS": "hdfs://n:8020", "file": "/a/b.csv"}


@pytest.mark.parametrize(
    ("type_", "params"),
    [
        ("kafka", KAFKA),
        ("kafka", KAFKA | {"mode": "JSON", "maxBytesPerCommit": 10_000_000, "maxTimeWithoutCommit": "1000"}),
        ("kafka", KAFKA | {"security.protocol": "SASL_SSL", "compression.type": "Zstd"}),
        ("kafka", KAFKA | {"colour": "red", "plugin.library.paths": "/tmp/x.so"}),
        ("s3", S3),
        ("s3", S3 | {"format": "ZIP", "file.password": "p", "retention.size": 50, "retention.time": "86400"}),
        ("s3", S3 | {"aws.accesskey": "a", "aws.secretkey": "s", "multiplefile": True}),
        ("hdfs", HDFS | {"dfs.replication": 3}),
        ("donothing", {"friendlyName": "x"}),
    ],
)
def test_parameters_that_can_be_used_are_taken(type_: str, params: dict[str, Any]) -> None:
    made = kinds.destination(type_, "job", params)
    assert type(made).__name__ == {"kafka": "Kafka", "donothing": "DoNothing"}.get(type_, "NumberedFiles")


@pytest.mark.parametrize(
    ("type_", "params", "message"),
    [
        ("kafka", {"bootstrap.servers": "b"}, "kafka needs topic"),
        ("kafka", {"topic": "", "bootstrap.servers": None}, "kafka needs topic and bootstrap.servers"),
        (
            "kafka",
            {"topic": "t", "bootstrap.server": "b"},
            "kafka needs bootstrap.servers (did you mean 'bootstrap.servers' for 'bootstrap.server'?)",
        ),
        (
            "kafka",
            {"topik": "t", "bootstrap.server": "b"},
            "kafka needs topic and bootstrap.servers"
            " (did you mean 'topic' for 'topik', 'bootstrap.servers' for 'bootstrap.server'?)",
        ),
        ("kafka", KAFKA | {"mode": "csv"}, "mode must be json or array"),
        ("kafka", KAFKA | {"api.version.request": "no"}, "api.version.request must be true or false"),
        (
            "kafka",
            KAFKA | {"security.protocol": "tls"},
            "security.protocol must be plaintext, ssl, sasl_plaintext or sasl_ssl",
        ),
        (
            "kafka",
            KAFKA | {"compression.type": "bogus"},
            "compression.type must be none, gzip, snappy, lz4 or zstd",
        ),
        (
            "kafka",
            KAFKA | {"maxBytesPerCommit": 10_000_001},
            "maxBytesPerCommit must be a whole number from 1 to 10000000",
        ),
        (
            "kafka",
            KAFKA | {"maxTimeWithoutCommit": 999},
            "maxTimeWithoutCommit must be a whole number from 1000 to 3600000",
        ),
        ("s3", {}, "s3 needs aws.bucket"),
        ("s3", S3 | {"aws.accesskey": "a"}, "aws.accesskey needs aws.secretkey"),
        ("s3", S3 | {"aws.endpoint": "localhost:9000"}, "aws.endpoint must be an http or https URL"),
        ("s3", S3 | {"aws.endpoint": "http://"}, "aws.endpoint must be an http or https URL"),
        ("s3", S3 | {"aws.endpoint": "http://[::1"}, "aws.endpoint must be an http or https URL"),
        ("s3", S3 | {"aws.endpoint": "http://host:99999"}, "aws.endpoint must be an http or https URL"),
        ("s3", S3 | {"format": "rar"}, "format must be plain, gzip or zip"),
        ("s3", S3 | {"file.password": "hunter2"}, "file.password needs format zip"),
        ("s3", S3 | {"retention.size": "49"}, "retention.size must be a whole number from 50 to 500"),
        ("s3", S3 | {"retention.time": 299.5}, "retention.time must be a whole number from 300 to 86400"),
        ("s3", S3 | {"multiplefile": "perhaps"}, "multiplefile must be true or false"),
        ("s3", S3 | {"multiplefile": False}, "multiplefile must be true for a query without an end"),
        ("s3", S3 | {"aws.region": {}}, "aws.region must be text"),
        ("hdfs", {"file": "/x"}, "hdfs needs fs.defaultFS"),
        ("hdfs", {}, "hdfs needs fs.defaultFS and file"),
        ("hdfs", HDFS | {"fs.defaultFS": "hdfs://n"}, "fs.defaultFS must be of the form hdfs://host:port"),
        ("hdfs", HDFS | {"fs.defaultFS": "n:8020"}, "fs.defaultFS must be of the form hdfs://host:port"),
        ("hdfs", HDFS | {"fs.defaultFS": "hdfs://["}, "fs.defaultFS must be of the form hdfs://host:port"),
        ("hdfs", HDFS | {"file": "b.csv"}, "file must be an absolute path, without / at its end"),
        ("hdfs", HDFS | {"dfs.replication": "0"}, "dfs.replication must be a whole number from 1 to 512"),
    ],
)
def test_an_error_names_the_key_and_not_its_value(type_: str, params: dict[str, Any], message: str) -> None:
    with pytest.raises(ServiceError) as caught:
        kinds.destination(type_, "job", params)
    assert caught.value.message == f"destination.params: {message}"


@pytest.mark.parametrize(("type_", "key", "known"), [("s3", "format", PACKINGS), ("kafka", "mode", MODES)])
def test_each_word_of_a_choice_is_one_that_the_service_knows(type_: str, key: str, known: Mapping[str, object]) -> None:
    (form,) = (one.form for one in TYPES[type_].parameters if one.key == key)
    *first, last = known
    assert (form and form.wanted) == f"{', '.join(first)} or {last}"
