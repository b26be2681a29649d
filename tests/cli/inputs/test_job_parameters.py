"""The hashes of jobs: those of files that were applied before stay the same, and follow the meaning of a text."""

from datetime import UTC, datetime

import pytest

from svcctl.cli.inputs import yaml_files
from svcctl.cli.inputs.job_files import WrittenJob, written
from svcctl.errors import UsageError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NEEDED = {
    "Kafka": "bootstrap.servers: 'b:9'",
    "S3": "aws.bucket: b",
    "HDFS": "fs.defaultFS: 'hdfs://h:1', file: /a.csv",
}


def job(type_: str, params: str, to: str = "") -> WrittenJob:
    whole = ", ".join(filter(None, (NEEDED.get(type_), params)))
    end = f"to: {to}\n" if to else ""
    text = f"name: j\nquery: from t\nfrom: 1h\n{end}destination: {{type: {type_}, params: {{{whole}}}}}\n"
    (document,) = yaml_files.parse(text, "jobs.yaml", "job")
    return written(document, NOW)


@pytest.mark.parametrize(
    ("type_", "params", "to", "expected"),
    [
        ("Kafka", "topic: web", "", "c08757dc"),
        ("Kafka", "topic: 123", "", "ddce51dc"),
        ("Kafka", "topic: '123'", "", "417c95dc"),
        ("Kafka", 'topic: "123"', "", "417c95dc"),
        ("Kafka", "topic: 0", "", "b129e6dc"),
        ("Kafka", "topic: -1", "", "ad3278dc"),
        ("Kafka", "topic: 1.5", "", "8a7571dc"),
        ("Kafka", "topic: true", "", "14bb84dc"),
        ("Kafka", "topic: 'true'", "", "b3e703dc"),
        ("Kafka", "topic: false", "", "fe959edc"),
        ("Kafka", "topic: 1e3", "", "562428dc"),
        ("Kafka", "topic: 2024-01-31", "", "ab4ef8dc"),
        ("Kafka", "topic: 1.0", "", "c0e053dc"),
        ("Kafka", "topic: 12345678901234567890", "", "af8e7bdc"),
        ("Kafka", "topic: !!str 12", "", "2a065ddc"),
        ("Kafka", "topic: 1e400", "", "0533e4dc"),
        ("Kafka", "topic: =x", "", "c22b43dc"),
        ("Kafka", "topic: y", "", "3e0f14dc"),
        ("Kafka", "topic: w, maxBytesPerCommit: 1000", "", "aff43bdc"),
        ("Kafka", "topic: w, maxBytesPerCommit: '1000'", "", "0c237bdc"),
        ("Kafka", "topic: w, maxBytesPerCommit: 1_000", "", "aff43bdc"),
        ("S3", "multiplefile: true", "2027-01-01", "7bd54d94"),
        ("S3", "multiplefile: True", "2027-01-01", "7bd54d94"),
        ("S3", "multiplefile: TRUE", "2027-01-01", "7bd54d94"),
        ("S3", "multiplefile: 'true'", "2027-01-01", "f3811194"),
        ("S3", "multiplefile: 'True'", "2027-01-01", "c82cc494"),
        ("S3", "multiplefile: yes", "2027-01-01", "7bd54d94"),
        ("S3", "multiplefile: Yes", "2027-01-01", "7bd54d94"),
        ("S3", "multiplefile: on", "2027-01-01", "7bd54d94"),
        ("S3", "multiplefile: no", "2027-01-01", "b574b994"),
        ("S3", "multiplefile: false", "2027-01-01", "b574b994"),
        ("S3", "multiplefile: False", "2027-01-01", "b574b994"),
        ("S3", "multiplefile: off", "2027-01-01", "b574b994"),
        ("S3", "retention.size: 50", "", "a8959b94"),
        ("S3", "retention.size: '50'", "", "cafe2394"),
        ("S3", "retention.size: 100", "", "023cfe94"),
        ("S3", "retention.size: 1_00", "", "023cfe94"),
        ("S3", "retention.size: 500", "", "cc575e94"),
        ("S3", "format: gzip, s3.fileName: 123", "", "4c2ac2d5"),
        ("S3", "format: GZIP, s3.fileName: '123'", "", "049ab5d5"),
        ("S3", "s3.fileName: true", "", "deffd4a0"),
        ("S3", "aws.region: eu-1, aws.endpoint: 'http://x:1'", "", "26fd3794"),
        ("S3", "file.password_file: x, format: zip", "", "201bc494"),
        ("HDFS", "dfs.replication: 3", "", "e8937cc3"),
        ("HDFS", "dfs.replication: '3', retention.time: 60", "", "bab58ec3"),
        ("HDFS", "retention.size: 128, retention.time: 300", "", "ec6fb8c3"),
        ("FTP", "x: 1", "", "1ff4e041"),
        ("FTP", "x: '1'", "", "d89e7941"),
        ("FTP", "x: 1.5", "", "106c4341"),
        ("FTP", "x: 1.50", "", "106c4341"),
        ("FTP", "x: -1", "", "543a9241"),
        ("FTP", "x: 0", "", "cf1cfa41"),
        ("FTP", "x: 1e3", "", "94c0bc41"),
        ("FTP", "x: 1.0e3", "", "1cb98541"),
        ("FTP", "x: 1.0e+3", "", "33701341"),
        ("FTP", "x: 1E5", "", "a7420c41"),
        ("FTP", "x: 1e400", "", "31d98b41"),
        ("FTP", "x: -0", "", "cf1cfa41"),
        ("FTP", "x: -0.0", "", "339a2a41"),
        ("FTP", "x: true", "", "663d8d41"),
        ("FTP", "x: false", "", "69eba741"),
        ("FTP", "x: 'true'", "", "340c6841"),
        ("FTP", "x: text", "", "f6648941"),
        ("FTP", "x: 2024-01-31", "", "1226ce41"),
        ("FTP", "x: 'a: b'", "", "38f0d541"),
        ("FTP", 'x: ""', "", "8a680a41"),
        ("FTP", "x: 12345678901234567890", "", "843f4241"),
        ("FTP", "x: 0o17", "", "6cd13c41"),
        ("FTP", "x: y", "", "b3cbe841"),
        ("FTP", "x: null_", "", "1dca7541"),
        ("Kafka", "topic: w, colour: 3, size: 1.5, ok: true", "", "9a3447dc"),
        ("donothing", "", "2027-01-01", "2f336656"),
        ("donothing", "", "2027-01-01T10:00:00Z", "51121656"),
        ("donothing", "", "1893456000", "5a42bb56"),
        ("donothing", "", "'1893456000'", "5a42bb56"),
        ("donothing", "", "2027-01-01 10:00", "51121656"),
        ("donothing", "", "31/12/2027 10:00:00", "0ec2c556"),
        ("donothing", "", "1893456000.5", "e5adff56"),
        ("donothing", "", "2027-01", "2f336656"),
        ("donothing", "", "tomorrow", "8c998f56"),
        ("Kafka", "TOPIC: w", "", "847cfedc"),
        ("Kafka", "topic: w, sasl.mechanism: PLAIN, sasl.username: 7, sasl.password_command: echo x", "", "d53326dc"),
        ("Kafka", "topic: w, broker.version.fallback: 0.9, api.version.request: true", "", "10de37dc"),
        ("Kafka", "topic: w, broker.version.fallback: 0.10.2, api.version.request: no", "", "3c22a8dc"),
    ],
)
def test_the_hash_of_a_job_that_was_applied_before_is_the_same(type_: str, params: str, to: str, expected: str) -> None:
    assert job(type_, params, to).hash == expected


@pytest.mark.parametrize(
    ("type_", "params", "before"),
    [
        ("Kafka", "topic: 0123", "topic: 83"),
        ("Kafka", "topic: 1.10", "topic: 1.1"),
        ("Kafka", "topic: 0x1F", "topic: 31"),
        ("Kafka", "topic: 1:30", "topic: 90"),
        ("Kafka", "topic: yes", "topic: true"),
        ("S3", "s3.fileName: 007", "s3.fileName: 7"),
        ("FTP", "x: 01", "x: 1"),
        ("FTP", "x: yes", "x: true"),
    ],
)
def test_a_text_that_yaml_makes_another_one_of_has_a_hash_of_its_own(type_: str, params: str, before: str) -> None:
    assert job(type_, params).hash not in job(type_, before).hashes


@pytest.mark.parametrize(
    ("type_", "plain", "quoted", "same"),
    [
        ("Kafka", "topic: 123", "topic: '123'", True),
        ("Kafka", "topic: true", "topic: 'true'", True),
        ("Kafka", "topic: 0123", "topic: '0123'", True),
        ("S3", "s3.fileName: 1.5", 's3.fileName: "1.5"', True),
        ("FTP", "x: 1", "x: '1'", False),
        ("FTP", "x: true", "x: 'true'", False),
    ],
)
def test_quotes_around_a_text_do_not_change_the_definition(type_: str, plain: str, quoted: str, same: bool) -> None:
    one, other = job(type_, plain), job(type_, quoted)
    assert (one.params == other.params, one.hash in other.hashes, other.hash in one.hashes) == (same, same, same)


@pytest.mark.parametrize(
    ("written_as", "sent"),
    [
        *(("1", 1), ("-1", -1), ("0", 0), ("1.5", 1.5), ("1.50", 1.5), ("1e3", 1000.0), ("1E-2", 0.01)),
        *(("true", True), ("false", False), ("12345678901234567890", 12345678901234567890)),
        *((text, text) for text in ("01", "0x1F", "0o17", "1_000", "1:30", "+1", ".5", "1.", ".inf", ".nan", "1e400")),
        *((text, text) for text in ("yes", "no", "on", "off", "y", "True", "TRUE", "Null", "=", "<<", "2024-01-31")),
        *((f"'{text}'", text) for text in ("1", "true", "null", "", "1.5")),
        *(("'{{n}}'", "{{n}}"), ("!!str 1", "1"), ("9" * 2000, "9" * 2000)),
    ],
)
def test_a_parameter_that_is_not_known_has_the_type_that_json_gives_its_spelling(written_as: str, sent: object) -> None:
    value = job("FTP", f"x: {written_as}").params["x"]
    assert (value, type(value)) == (sent, type(sent))


@pytest.mark.parametrize(
    ("type_", "key", "written_as", "sent"),
    [
        *(("Kafka", "topic", text, text) for text in ("0123", "123", "no", "true", "1.10", "1e3", "0x1F", "10:00")),
        *(("Kafka", "sasl.username", text, text) for text in ("007", "2024-01-31", "1_000")),
        ("Kafka", "maxBytesPerCommit", "1000", 1000),
        ("Kafka", "maxBytesPerCommit", "1_000_000", 1_000_000),
        ("Kafka", "maxBytesPerCommit", "'1000'", "1000"),
        *(("S3", "multiplefile", text, True) for text in ("true", "True", "yes", "on")),
        ("S3", "multiplefile", "'true'", "true"),
        ("HDFS", "dfs.replication", "3", 3),
    ],
)
def test_a_known_parameter_has_the_type_of_its_values(type_: str, key: str, written_as: str, sent: object) -> None:
    value = job(type_, f"{key}: {written_as}" + (", topic: t" if type_ == "Kafka" and key != "topic" else "")).params[
        key
    ]
    assert (value, type(value)) == (sent, type(sent))


@pytest.mark.parametrize(
    ("type_", "params"),
    [
        *(("S3", f"retention.size: {text}") for text in ("0100", "0x64", "1:40", "+100", "1e2", "100.0", "yes")),
        *(("S3", f"multiplefile: {text}") for text in ("y", "1", "'yes'", "maybe")),
        *(("HDFS", f"dfs.replication: {text}") for text in ("03", "0o3", "~", "null", "", "[3]")),
    ],
)
def test_a_value_that_a_known_parameter_cannot_have_is_refused_with_line_and_key(type_: str, params: str) -> None:
    with pytest.raises(UsageError) as caught:
        job(type_, params)
    assert caught.value.message.startswith(f"jobs.yaml, line 4: {params.partition(':')[0]} ")
