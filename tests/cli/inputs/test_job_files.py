"""Files of jobs: their errors with file, line and key, their secrets, and which definitions are the same."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from svcctl.cli.inputs import yaml_files
from svcctl.cli.inputs.job_files import WrittenJob, written
from svcctl.errors import UsageError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WHOLE = """\
name: nightly
query: from auth.all
from: 1ad
destination:
  type: Kafka
  params:
    bootstrap.servers: broker:9092
    topic: fails
state: stopped
"""
SECRET = WHOLE.replace("topic: fails", "topic: fails\n    sasl.password: s3cret")


def read(file: Path) -> WrittenJob:
    (document,) = yaml_files.read([file], "job")
    return written(document, NOW)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("state: stopped", "status: x", "line 9: unknown key 'status'"),
        ("name: nightly", "name: nightly.3f2a9c1b", "line 1: name 'nightly.3f2a9c1b' is a name with a hash"),
        ("name: nightly", "name: 3f2a41c0-0000-4000-8000-000000000001", "line 1: name '3f2a41c0"),
        ("name: nightly", "name: [7]", "line 1: name is not text"),
        ("name: nightly", "name: ~", "line 1: name has no value"),
        ("name: nightly", "name: !!str\n", "line 1: name has no value"),
        ("name: nightly", "name: !!int 7", "line 1: a value begins with '!'"),
        ("query: from auth.all\n", "", "line 1: the query is missing"),
        ("from: 1ad\n", "", "line 1: 'from' is missing"),
        ("from: 1ad", "from: soon", "line 3: from: 'soon' is not a valid date"),
        ("from: 1ad", "from: [1]", "line 3: from is not text"),
        ("from: 1ad", "from:", "line 3: from has no value"),
        ("from: 1ad", "from: 10:00", "line 3: from: '10:00' is not a valid date"),
        ("from: 1ad", "from: 1e3", "line 3: from: '1e3' is not a valid date"),
        ("from: 1ad", "from: 1_700_000_000", "line 3: from: '1_700_000_000' is not a valid date"),
        ("from: 1ad", "from: 1h\nto: 0x7fffffff", "line 4: to: '0x7fffffff' is not a valid date"),
        ("state: stopped", "limit: 010", "line 9: unknown key 'limit'"),
        ("state: stopped", "state: off", "line 9: state 'off' is not one of running, stopped"),
        ("from: 1ad", "from: 1h\nto: 2001-01-01", "line 4: "),
        ("from: 1ad", "from: 1h\ntime_zone: Mars", "line 4: time_zone: there is no time zone 'Mars'"),
        ("from: 1ad", "from: 1h\ntime_zone: local", "line 4: time_zone local differs from computer to computer"),
        (
            "from: 1ad",
            "from: 2025-10-26 02:30\ntime_zone: Europe/Berlin",
            "line 3: from: date '2025-10-26 02:30' occurs",
        ),
        ("state: stopped", "state: paused", "line 9: state 'paused' is not one of running, stopped"),
        ("type: Kafka", "type: Kafak", "line 5: unknown destination type 'Kafak'"),
        ("type: Kafka", "typ: Kafka", "line 5: unknown key 'typ'"),
        ("    topic: fails\n", "", "line 4: Kafka needs topic"),
        ("topic: fails", "topic: fails\n    friendlyName: x", "line 9: the job's name is its 'name'"),
        ("topic: fails", "topic: [a, b]", "line 8: topic has no value, or more than one"),
        ("topic: fails", "topic: ''", "line 4: Kafka needs topic"),
        ("topic: fails", "topic: fails\n    MODE: csv", "line 9: mode must be json or array"),
        (
            "topic: fails",
            "topic: fails\n    sasl.password_file: a\n    sasl.password_command: b",
            "line 10: sasl.password is given twice",
        ),
        ("topic: fails", "topic: fails\n    topic: b", "line 9: key 'destination.params.topic' appears twice"),
        ("topic: fails", "topic: ~", "line 8: topic has no value, or more than one"),
        (
            "topic: fails",
            "topic: fails\n    maxBytesPerCommit: 0100",
            "line 9: maxBytesPerCommit must be a whole number",
        ),
        ("state: stopped", "name: other", "line 9: key 'name' appears twice, first in line 1"),
        ("topic: fails", "topic: fails\n    Topic: b", "line 9: topic is given twice"),
        ("topic: fails", "topic: '{{topic}}'", "line 8: destination.params.topic: {{topic}} has no value"),
        (
            "topic: fails",
            "topic: fails\n    sasl.password: x",
            "line 9: sasl.password is a secret, and others can read",
        ),
    ],
)
def test_an_error_in_a_file_of_jobs_names_line_and_key(tmp_path: Path, before: str, after: str, message: str) -> None:
    file = tmp_path / "jobs.yaml"
    assert before in WHOLE
    file.write_text(WHOLE.replace(before, after))
    file.chmod(0o644)
    with pytest.raises(UsageError) as caught:
        read(file)
    assert caught.value.message.startswith(f"{file}, {message}")


def test_an_unknown_parameter_of_a_destination_is_a_warning_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(WHOLE.replace("topic: fails", "topic: fails\n    topik: x\n    colour: red"))
    assert read(file).warnings == [
        f"{file}, line 9: Kafka has no parameter 'topik' (sent anyway): did you mean 'topic'?",
        f"{file}, line 10: Kafka has no parameter 'colour' (sent anyway)",
    ]
    file.write_text(WHOLE.replace("Kafka", "FTP"))
    assert read(file).warnings == [
        f"{file}, line 5: unknown destination type 'FTP' (sent anyway): types are Kafka, S3, HDFS, donothing",
    ]


def test_a_secret_that_is_not_read_yet_counts_as_given(tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    text = "name: a\nquery: from t\nfrom: 1h\ndestination: {{type: S3, params: {{aws.bucket: b, {}}}}}\n"
    file.write_text(text.format("aws.accesskey: k, aws.secretkey_file: nowhere"))
    assert list(read(file).secrets) == ["aws.secretkey"]
    file.write_text(text.format("aws.accesskey: k"))
    with pytest.raises(UsageError) as caught:
        read(file)
    assert caught.value.message == f"{file}, line 4: aws.accesskey needs aws.secretkey"


def test_a_secret_is_read_at_the_launch_and_is_in_no_hash_and_no_text(tmp_path: Path) -> None:
    file, secret = tmp_path / "jobs.yaml", tmp_path / "secret"
    file.write_text(WHOLE)
    without = read(file)
    hashes = set()
    for line, text in (
        ("sasl.password: s3cret", "s3cret"),
        ("sasl.password_file: secret", "from the file"),
        ("sasl.password_command: echo printed", "printed"),
    ):
        file.write_text(WHOLE.replace("topic: fails", f"topic: fails\n    {line}"))
        file.chmod(0o600)
        secret.unlink(missing_ok=True)
        job = read(file)
        secret.write_text("from the file\n")
        destination = job.request().destination
        assert destination is not None
        assert destination.params["sasl.password"] == text
        assert (text in job.place, text in repr(job)) == (False, False)
        hashes.add(job.hash)
    assert hashes == {without.hash}


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("from: 1ad", "from: 7ad", True),
        ("state: stopped", "state: running", True),
        ("Kafka", "KAFKA", True),
        ("    topic: fails\n", "    Topic: fails\n", True),
        ("from: 1ad", "from: 1ad\nto: 2030-01-01", False),
        ("from: 1ad", "from: 1ad\ntime_zone: Europe/Berlin", True),
        ("auth.all", "auth.some", False),
        ("fails", "failed", False),
        ("name: nightly", "name: daily", True),
    ],
)
def test_a_definition_is_the_query_its_end_and_the_destination(
    tmp_path: Path, before: str, after: str, same: bool
) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(WHOLE)
    one = read(file).hash
    file.write_text(WHOLE.replace(before, after))
    assert (read(file).hash == one) == same


def test_the_dates_of_a_file_are_in_utc_or_in_the_zone_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    found = []
    for zone in ("", "\ntime_zone: UTC", "\ntime_zone: Europe/Berlin"):
        for end in ("2026-10-25", "01/02/2026 00:00:00", "endday"):
            file.write_text(WHOLE.replace("from: 1ad", f"from: 1ad{zone}\nto: {end}"))
            found.append(read(file))
    assert [(job.from_, job.to) for job in found[:3]] == [("1ad", 1792886400), ("1ad", found[1].to), ("1ad", "endday")]
    assert found[1].to == "01/02/2026 00:00:00"
    assert [job.to for job in found[3:5]] == [1792886400, 1769904000]
    assert [job.to for job in found[6:8]] == [1792879200, 1769900400]
    midnight_before = 1767135600  # 2025-12-31 in Berlin: a day before NOW
    assert (found[8].from_, found[8].to) == (midnight_before, midnight_before + 86_399)
    assert (found[0].hash == found[3].hash, len({job.hash for job in found[6:]} | {found[2].hash})) == (True, 4)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('sasl.password: "hunter2\\nmore"', "sasl.password: the secret has more than one line"),
        ("sasl.password_file: secret", "sasl.password_file: secret file {secret} has more than one line"),
        (
            "sasl.password_command: cat {secret}",
            "sasl.password_command: the output of secret command 'cat {secret}' has",
        ),
    ],
)
def test_a_secret_follows_the_rule_for_secrets(tmp_path: Path, line: str, problem: str) -> None:
    file, secret = tmp_path / "jobs.yaml", tmp_path / "secret"
    secret.write_text("hunter2\nmore\n")
    secret.chmod(0o600)
    file.write_text(WHOLE.replace("topic: fails", f"topic: fails\n    {line.format(secret=secret)}"))
    file.chmod(0o600)
    with pytest.raises(UsageError) as caught:
        read(file).request()
    assert caught.value.message.startswith(f"{file}, line 9: {problem.format(secret=secret)}")
    assert "hunter" not in caught.value.message


@pytest.mark.parametrize("line", ["sasl.password_file: nowhere", "sasl.password_command: 'false'"])
def test_a_secret_that_cannot_be_read_is_an_error_of_its_line(tmp_path: Path, line: str) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(WHOLE.replace("topic: fails", f"topic: fails\n    {line}"))
    with pytest.raises(UsageError) as caught:
        read(file).request()
    assert caught.value.message.startswith(f"{file}, line 9: sasl.password_")


def test_the_last_two_digits_of_a_hash_are_those_of_the_name_of_the_files(tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    s3 = "name: a\nquery: from t\nfrom: 1h\ndestination: {type: S3, params: {aws.bucket: b, s3.fileName: x}}\n"
    hashes = []
    for text in (s3, s3.replace("from t", "from u"), s3.replace("fileName: x", "fileName: y")):
        file.write_text(text)
        hashes.append(read(file).hash)
    same, changed, renamed = hashes
    assert (same[:6] == changed[:6], same[-2:] == changed[-2:], same[-2:] == renamed[-2:]) == (False, True, False)


@pytest.mark.parametrize("written", ["true", "1.5", "10", "text", "007"])
def test_a_plan_shows_a_parameter_as_the_file_spells_it(tmp_path: Path, written: str) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(WHOLE.replace("topic: fails", f"topic: fails\n    unknown.key: {written}"))
    assert f"unknown.key={written}" in read(file).place.split()
