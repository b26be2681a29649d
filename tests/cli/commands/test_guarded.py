"""Profiles with `read_only` and `max_rows` against the real service: what is refused, and where answers end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.pseudo_terminal import on_terminal
from support.shells import Shell

SAMPLE = ("from sample", "--from", "2024-01-31", "--to", "1d")
BODY = '{"query":"from sample","from":"31/01/2024 00:00:00","to":"1d","mode":{"type":"csv"}}'


@pytest.fixture(scope="module")
def guarded(service: Shell, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """The shell of the service, with the profiles `audit`, `reseller` (both read-only) and `few` (three rows)."""
    data = Path(service.environment["SVCCTL_DATA"])
    config = tmp_path_factory.mktemp("guarded") / "config.yaml"
    keys = json.loads((data / "credentials.json").read_text())
    shell = Shell(service.home, {**service.variables, "SVCCTL_CONFIG": str(config)})
    for name, source, setting in (
        ("audit", "local", "read_only=true"),
        ("reseller", "local-reseller", "read_only=true"),
        ("few", "local", "max_rows=3"),
    ):
        fields = ("base_url=http://localhost", f"socket={data / 'service.sock'}", f"api_key={keys[source]['api_key']}")
        secret = f"{keys[source]['api_secret']}\n"
        done = shell("profile", "set", name, *fields, "api_secret=-", setting, stdin=secret)
        assert done.returncode == 0, done.stderr
    return shell


@pytest.fixture(scope="module")
def job(service: Shell) -> Iterator[str]:
    """The ID of a job that runs until tomorrow."""
    done = service("query", "from auth.all", "--from", "1h", "--to", "1d", "--dest", "donothing", "-f", "ndjson")
    job_id: str = json.loads(done.stdout)["id"]
    yield job_id
    assert service("job", "rm", job_id, "--yes").returncode == 0


@pytest.mark.parametrize(
    "command",
    [
        "job stop ID",
        "job start ID",
        "job restart ID",
        "job rm ID",
        "job rm ID --yes",
        "api /search/job/stop/ID",
        "api GET /search/job/remove/ID",
        "api DELETE /search/job/remove/ID",
        "api OPTIONS /search/jobs",
        "api /search/jobs -H X-HTTP-Method-Override:DELETE",
        "query from_auth.all --from 1h --dest donothing",
        "role create local --name dev --yes",
        "service stop",
        "service restart",
        "service reset --yes",
        "service load sample.csv --table other",
        "service drop sample --yes",
        "service confirm-loss",
        "service accounts key --domain local",
        "service queries set one from_auth.all",
    ],
)
def test_a_read_only_profile_refuses_changes_and_names_itself(guarded: Shell, job: str, command: str) -> None:
    words = [word.replace("ID", job).replace("from_", "from ") for word in command.split()]
    done = guarded("-p", "audit", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert " is refused: read_only is true in profile audit\nhint: 'svcctl help profiles' says" in done.stderr


def test_nothing_has_changed_afterwards(guarded: Shell, job: str) -> None:
    for words in (("job", "stop", job), ("job", "rm", job, "--yes"), ("service", "reset", "--yes")):
        assert guarded("-p", "audit", *words).returncode == 2
    assert json.loads(guarded("job", "show", job, "-f", "json").stdout)["status"] == "RUNNING"
    assert guarded("service", "status").returncode == 0


@pytest.mark.parametrize("words", [("create", "acme", "--plan", "basic"), ("enable", "acme"), ("rm", "acme", "--yes")])
def test_a_read_only_profile_changes_no_domain(guarded: Shell, words: tuple[str, ...]) -> None:
    done = guarded("-p", "reseller", "domain", *words)
    assert (done.returncode, done.stdout) in {(2, ""), (4, "")}
    assert guarded("-p", "reseller", "domain", "list", "-f", "json").stdout == "[]\n"


@pytest.mark.parametrize(
    "command",
    [
        "job list",
        "job show ID",
        "job export",
        "tables",
        "tables sample",
        "role list local",
        "api /search/jobs",
        "api HEAD /search/job/ID",
        "profile check",
        "profile show",
        "range --from 1h",
        "export from_sample --from 2024-01-31 --to 1d -o out.csv; export verify out.csv; export reconcile out.csv",
        "query from_auth.all --from 1h --dest donothing --dry-run",
        "service load --help",
    ],
)
def test_a_read_only_profile_reads(guarded: Shell, job: str, command: str) -> None:
    for part in command.split("; "):
        words = [word.replace("ID", job).replace("from_", "from ") for word in part.split()]
        done = guarded("-p", "audit", *words)
        assert done.returncode == 0, done.stderr


def test_a_read_only_profile_answers_queries(guarded: Shell) -> None:
    assert guarded("-p", "audit", "api", "POST", "/search/query", "-d", BODY).stdout.count("2024-01-31 10:") == 4
    assert guarded("-p", "audit", "query", *SAMPLE, "-f", "ndjson").stdout.count("\n") == 4


def test_every_profile_is_read_only_with_the_variable(guarded: Shell, job: str) -> None:
    variable = {"SVCCTL_READ_ONLY": "true"}
    for words in (("-p", "local", "service", "stop"), ("service", "drop", "sample", "--yes"), ("job", "stop", job)):
        done = guarded(*words, **variable)
        assert (done.returncode, done.stdout) == (2, "")
        assert "read_only is true in environment SVCCTL_READ_ONLY" in done.stderr
    assert guarded("service", "status", **variable).returncode == 0
    assert guarded("service", "accounts", "list", "keys", **variable).returncode == 0
    loosened = guarded("-p", "audit", "job", "stop", job, SVCCTL_READ_ONLY="false")
    assert (loosened.returncode, "read_only is true in profile audit" in loosened.stderr) == (2, True)


def test_a_query_still_starts_the_local_service(shell: Shell) -> None:
    variable = {"SVCCTL_READ_ONLY": "true"}
    try:
        assert shell("service", "start", **variable).returncode == 2
        assert shell("query", "from auth.all", "--from", "1h", "--limit", "1", **variable).returncode == 0
        assert shell("service", "stop", **variable).returncode == 2
    finally:
        assert shell("service", "stop").returncode == 0


@pytest.mark.parametrize("content", ["profiles: [\n", None])
def test_the_local_service_can_be_stopped_when_the_profiles_file_is_broken(
    shell: Shell, tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "profiles.yaml"
    variable = {"SVCCTL_CONFIG": str(file)}
    if content is not None:
        file.write_text(content)
        file.chmod(0o600)
    try:
        assert shell("-p", "local", "service", "start", **variable).returncode == 0
        assert shell("service", "status", **variable).returncode == 0
        refused = shell("service", "stop", **variable)
        assert (refused.returncode, str(file) in refused.stderr) == (2, True)
        named = shell("-p", "local", "--config", str(file), "service", "stop")
        assert (named.returncode, str(file) in named.stderr) == (2, True)
        read_only = shell("-p", "local", "service", "stop", **variable, SVCCTL_READ_ONLY="true")
        assert (read_only.returncode, "SVCCTL_READ_ONLY" in read_only.stderr) == (2, True)
        assert shell("-p", "local", "service", "stop", **variable).returncode == 0
    finally:
        shell("service", "stop")


def test_the_profiles_of_svcctl_itself_can_be_changed(guarded: Shell) -> None:
    assert guarded("profile", "set", "spare", "timeout=20").returncode == 0
    assert guarded("-p", "audit", "profile", "rm", "spare", "--yes").returncode == 0


def test_nobody_is_asked_about_a_change_that_is_refused(guarded: Shell, job: str) -> None:
    done = on_terminal(guarded, "-p", "audit", "job", "rm", job, typed=b"y\n")
    assert (done.code, "?" in done.screen) == (2, False)
    assert "read_only is true in profile audit" in done.screen


# Rows


@pytest.mark.parametrize(
    ("options", "code", "rows"),
    [
        ("-f csv", 7, 3),
        ("-f ndjson", 7, 3),
        ("-f csv --columns name", 7, 3),
        ("-f json", 7, 0),
        ("-f csv --limit 3", 0, 3),
        ("-f csv --limit 4", 7, 3),
        ("-f csv --limit 3 --follow", 0, 3),
        ("-f csv --follow", 7, 3),
        ("-f csv --sort n", 7, 0),
        ("-f xml", 2, 0),
        ("-f xml --limit 3", 0, 3),
    ],
)
def test_an_answer_with_too_many_rows_ends_with_an_error(guarded: Shell, options: str, code: int, rows: int) -> None:
    done = guarded("-p", "few", "query", *SAMPLE, *options.split())
    assert done.returncode == code, done.stderr
    names = ("plain", "quote", "brackets", "two")
    assert [name in done.stdout for name in names] == [at < rows for at in range(4)]
    assert ("max_rows of profile few" in done.stderr) == (code != 0)
    assert ("--limit 3" in done.stderr) == (code != 0)


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.ndjson", "out.json", "out.parquet", "out.xlsx"])
def test_too_many_rows_make_no_file(guarded: Shell, tmp_path: Path, name: str) -> None:
    done = guarded("-p", "few", "query", *SAMPLE, "-o", str(tmp_path / name))
    assert (done.returncode, list(tmp_path.iterdir())) == (2 if name == "out.xlsx" else 7, [])
    whole = guarded("-p", "few", "query", *SAMPLE, "--limit", "3", "-o", str(tmp_path / name))
    assert (whole.returncode, (tmp_path / name).exists()) == (0, True)


def test_each_request_of_an_export_may_have_as_many_rows(guarded: Shell, tmp_path: Path) -> None:
    def export(window: str) -> tuple[int, str, list[str]]:
        target = tmp_path / window / "out.csv"
        target.parent.mkdir()
        options = ("--from", "2024-01-31T10:00:00Z", "--to", "4s", "--window", window, "-o", str(target))
        done = guarded("-p", "few", "export", "from sample", *options)
        return done.returncode, done.stderr, [path.name for path in target.parent.iterdir()]

    code, told, files = export("4s")
    assert (code, "out.csv" in files) == (7, False)
    assert "max_rows of profile few" in told
    assert "a shorter --window" in told
    code, _, files = export("2s")
    assert (code, "out.csv" in files) == (0, True)


@pytest.mark.parametrize("format", ["table", "vertical", "csv", "ndjson"])
def test_a_terminal_shows_the_first_rows_and_says_that_there_are_more(guarded: Shell, format: str) -> None:
    done = on_terminal(guarded, "-p", "few", "query", *SAMPLE, "-f", format, NO_COLOR="1")
    assert done.code == 7
    assert [name in done.screen for name in ("plain", "quote", "brackets", "two")] == [True, True, True, False]
    assert "the result has more than 3 rows, the limit of max_rows of profile few" in done.screen


def test_api_counts_the_rows_of_a_query(guarded: Shell, tmp_path: Path) -> None:
    request = ("api", "POST", "/search/query", "-d")
    done = guarded("-p", "few", *request, BODY)
    assert (done.returncode, done.stdout.count("2024-01-31 10:")) == (7, 3)
    assert guarded("-p", "few", *request, BODY, "-o", str(tmp_path / "out")).returncode == 7
    assert list(tmp_path.iterdir()) == []
    whole = guarded("-p", "few", *request, BODY.replace('"to"', '"limit":3,"to"'))
    assert (whole.returncode, whole.stdout.count("2024-01-31 10:")) == (0, 3)


def test_the_environment_only_tightens_the_number_of_rows(guarded: Shell) -> None:
    def rows(most: str) -> int:
        return guarded("-p", "few", "query", *SAMPLE, "-f", "ndjson", SVCCTL_MAX_ROWS=most).stdout.count("\n")

    assert [rows("2"), rows("1000")] == [2, 3]
