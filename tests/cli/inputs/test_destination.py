"""A destination from the options --dest, --dest-param and --dest-json: what is sent, warned about and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from svcctl.api.destinations import Destination
from svcctl.cli.hints import hint_of
from svcctl.cli.inputs.destination import read
from svcctl.errors import UsageError

# What the errors say, each once; the tests state their kind.
WORDS = {
    "not a destination": "{file} is not a destination in JSON",
    "no type": "the destination in {file} has no type",
}
HINTS = {
    "not a destination": 'it must be like {"type": "kafka", "params": {"topic": "…"}}',
    "no type": "name it with --dest TYPE",
}


def read_all(
    type_: str | None, assignments: list[str], file: Path | None = None
) -> tuple[Destination | None, list[str]]:
    notes: list[str] = []
    return read(type_, assignments, file, notes.append, endless=True), notes


def test_without_options_there_is_no_destination() -> None:
    assert read_all(None, []) == (None, [])


def test_parameters_are_text_or_the_content_of_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2\n", encoding="utf-8")
    found = read_all("s3", ["aws.bucket=b", "s3.fileName=a=b", f"aws.secretkey=@{secret}"])
    assert found == (Destination("s3", {"aws.bucket": "b", "s3.fileName": "a=b", "aws.secretkey": "hunter2"}), [])


@pytest.mark.parametrize(
    ("content", "mode", "problem"),
    [
        (b"hunter2\nmore\n", 0o600, "has more than one line"),
        (b"hunter2\0", 0o600, "has a control character in it"),
        (b"hunter2\xff", 0o600, "is not UTF-8"),
        (b" \n", 0o600, "is empty"),
        (b"hunter2", 0o602, "can be written by others (mode 0602)"),
    ],
)
def test_a_secret_of_a_destination_follows_the_rule_for_secrets(
    tmp_path: Path, content: bytes, mode: int, problem: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(content)
    secret.chmod(mode)
    with pytest.raises(UsageError) as caught:
        read_all("s3", [f"aws.secretkey=@{secret}"])
    assert caught.value.message == f"secret file {secret} {problem}"


@pytest.mark.parametrize("params", ['"params": {%s}', '"params": [{%s}]', "%s"])
def test_a_secret_in_json_follows_the_rule_for_secrets(tmp_path: Path, params: str) -> None:
    file = tmp_path / "destination.json"
    file.write_text('{"type": "ftp", ' + params.replace("%s", '"password": " hush\\n"') + "}")
    destination, _ = read_all(None, [], file)
    assert destination is not None
    assert destination.params == {"password": "hush"}
    file.write_text('{"type": "ftp", ' + params.replace("%s", '"password": "hunter2\\nmore"') + "}")
    with pytest.raises(UsageError) as caught:
        read_all(None, [], file)
    assert caught.value.message == f"password ({file}) has more than one line"


@pytest.mark.parametrize(
    "given",
    [
        {"type": "kafka", "params": {"topic": "t", "maxBytesPerCommit": 1000, "bootstrap.servers": "b"}},
        {"type": "kafka", "topic": "t", "maxBytesPerCommit": 1000, "bootstrap.servers": "b"},
    ],
)
def test_a_file_has_the_parameters_next_to_the_type_or_below_params(given: dict[str, object], tmp_path: Path) -> None:
    file = tmp_path / "destination.json"
    file.write_text(json.dumps(given), encoding="utf-8")
    rest = {"maxBytesPerCommit": 1000, "bootstrap.servers": "b"}
    assert read_all(None, ["topic=u"], file) == (Destination("kafka", {"topic": "u", **rest}), [])
    assert read_all("Kafka", [], file) == (Destination("Kafka", {"topic": "t", **rest}), [])


def test_a_file_may_name_another_type_or_lack_keys_for_a_service_that_differs(tmp_path: Path) -> None:
    file = tmp_path / "destination.json"
    file.write_text('{"type": "ftp", "host": "h"}', encoding="utf-8")
    assert read_all(None, [], file) == (
        Destination("ftp", {"host": "h"}),
        ["unknown destination type 'ftp' (sent anyway): types are Kafka, S3, HDFS, donothing"],
    )
    file.write_text('{"type": "kafka", "topic": "t", "mode": "csv"}', encoding="utf-8")
    assert read_all(None, [], file) == (Destination("kafka", {"topic": "t", "mode": "csv"}), [])


@pytest.mark.parametrize(
    ("type_", "assignments", "message", "hint"),
    [
        ("nosuch", ["a=b"], "unknown destination type 'nosuch'", "types are Kafka, S3, HDFS, donothing"),
        (
            "hfds",
            [],
            "unknown destination type 'hfds'",
            "did you mean 'HDFS'? types are Kafka, S3, HDFS, donothing",
        ),
        (
            "kafka",
            [],
            "kafka needs topic and bootstrap.servers",
            "for example: --dest kafka --dest-param topic=web --dest-param bootstrap.servers=host:9092",
        ),
        (
            "kafka",
            ["topik=web", "bootstrap.server=h:1", "colour=red"],
            "kafka needs topic and bootstrap.servers",
            "did you mean 'topic' for 'topik' and 'bootstrap.servers' for 'bootstrap.server'?",
        ),
        ("S3", ["format=zip"], "S3 needs aws.bucket", "for example: --dest S3 --dest-param aws.bucket=my-bucket"),
        (
            "hdfs",
            ["file=/f"],
            "hdfs needs fs.defaultFS",
            "for example: --dest hdfs --dest-param fs.defaultFS=hdfs://host:8020",
        ),
        ("s3", ["aws.bucket=b", "format=rar"], "format must be plain, gzip or zip", None),
        (
            "s3",
            ["aws.bucket=b", "Multiplefile=FALSE"],
            "multiplefile must be true for a query without an end",
            None,
        ),
    ],
)
def test_a_type_of_the_command_line_must_be_known_and_have_what_it_needs(
    type_: str, assignments: list[str], message: str, hint: str | None
) -> None:
    notes: list[str] = []
    with pytest.raises(UsageError) as caught:
        read(type_, assignments, None, notes.append, endless=True)
    assert (caught.value.message, caught.value.hint or hint_of(caught.value), notes) == (message, hint, [])


def test_known_keys_of_the_command_line_may_be_written_in_any_case() -> None:
    params = {"topic": "t", "bootstrap.servers": "b"}
    assert read_all("KAFKA", ["Topic=t", "Bootstrap.Servers=b"]) == (Destination("KAFKA", params), [])


def test_a_list_of_parameters_in_a_file_is_sent_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "destination.json"
    parts: list[dict[str, object]] = [{"topic": "t", "Mode": "json"}, {"bootstrap.servers": "b"}]
    file.write_text(json.dumps({"type": "Kafka", "params": parts}), encoding="utf-8")
    found, notes = read_all(None, [], file)
    assert found is not None
    assert (found.to_json(), notes) == ({"type": "Kafka", "params": parts}, [])
    found, notes = read_all("Kafka", ["mode=array"], file)
    assert found is not None
    assert found.to_json()["params"] == [{"topic": "t"}, {"bootstrap.servers": "b"}, {"mode": "array"}]


def test_unknown_keys_are_sent_with_a_warning() -> None:
    assert read_all("donothing", ["friendlynam=x", "colour=red"])[1] == [
        "donothing has no parameter 'friendlynam' (sent anyway): did you mean 'friendlyName'?",
        "donothing has no parameter 'colour' (sent anyway)",
    ]


@pytest.mark.parametrize(
    ("type_", "assignment", "message"),
    [
        (None, "topic=t", "--dest-param needs a destination"),
        ("kafka", "topic", "--dest-param must be of the form K=V"),
        ("kafka", "=t", "--dest-param must be of the form K=V"),
        ("kafka", "sasl.password=p", "--dest-param sasl.password would show a secret in the process list"),
        ("other", "my.token=p", "--dest-param my.token would show a secret in the process list"),
    ],
)
def test_a_parameter_that_cannot_be_used_is_refused(type_: str | None, assignment: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_all(type_, [assignment])
    assert caught.value.message == message


@pytest.mark.parametrize("content", ["", "[]", '{"params": 5}', '{"params": ["topic"]}', "{"])
def test_a_file_that_holds_no_destination_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "destination.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_all("kafka", [], file)
    assert caught.value.message == WORDS["not a destination"].format(file=file)
    assert caught.value.hint == HINTS["not a destination"]


def test_a_file_without_a_type_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "destination.json"
    file.write_text('{"params": {}}', encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_all(None, [], file)
    assert caught.value.message == WORDS["no type"].format(file=file)
    assert caught.value.hint == HINTS["no type"]
