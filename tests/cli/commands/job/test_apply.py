"""`svcctl job apply` and `job export`: what is shown, what is said, and the exit codes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from support.job_service import World, opened
from support.reseller import WIDE, Done, Scripted

from svcctl.api.destinations import Destination
from svcctl.api.query import QueryRequest
from svcctl.cli import main
from svcctl.cli.context import Context
from svcctl.cli.inputs import job_files, yaml_files
from svcctl.terminal.diagnostics import Diagnostics

Run = Callable[..., Done]
JOBS = """\
- name: a
  query: from t where n > 1
  from: 1704067200
  destination: {type: Kafka, params: {topic: x, bootstrap.servers: b, sasl.password_command: echo s3cret}}
- {name: b, query: from t, from: 1h, destination: {type: donothing}, state: stopped}
"""
NEW = """\
new job 'a'
+ query: from t where n > 1
+ from: 1704067200
+ destination: Kafka topic=x bootstrap.servers=b sasl.password=****
+ state: running
new job 'b'
+ query: from t
+ from: 1h
+ destination: donothing
+ state: stopped
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with opened(tmp_path) as world:
        yield world


@pytest.fixture
def run(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    environment = {"SVCCTL_CONFIG": str(tmp_path / "none"), "SVCCTL_BASE_URL": "http://localhost", "NO_COLOR": "1"}

    def run(*arguments: str, answers: tuple[str, ...] = ()) -> Done:
        stderr, prompt = io.StringIO(), Scripted(answers)
        context = Context(
            diagnostics=Diagnostics(stderr, moving=False, width=WIDE),
            environment=environment,
            client_factory=lambda *_: world.client,
            prompt=prompt,
        )
        code = main.run(arguments, context)
        return Done(code, capsys.readouterr().out, stderr.getvalue(), questions=prompt.questions)

    return run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.yaml"
    path.write_text(JOBS)
    return path


def test_a_file_is_checked_applied_and_checked_again(run: Run, world: World, file: Path) -> None:
    apply = ("job", "apply", "-F", str(file))
    check = run(*apply, "--check")
    assert (check.code, check.stdout) == (10, NEW)
    assert check.stderr == f"svcctl: error: 2 jobs differ from {file}\n"
    assert (run(*apply, "--dry-run").code, world.client.jobs()) == (0, ())
    done = run(*apply, answers=("y",))
    assert (done.code, done.stdout, done.questions) == (0, NEW, ["Apply these changes?"])
    assert done.stderr == "svcctl: created job 'a'\nsvcctl: created job 'b'\n"
    again = run(*apply, "--check")
    assert (again.code, again.stdout) == (0, "")
    assert again.stderr == f"svcctl: nothing to do: the jobs are already as in {file}\n"


def test_parameters_that_a_service_does_not_show_differ_by_their_hash(run: Run, file: Path) -> None:
    apply = ("job", "apply", "-F", str(file))
    run(*apply, "--yes")
    file.write_text(JOBS.replace("topic: x", "topic: y").replace("stopped", "running"))
    rows = [json.loads(line) for line in run(*apply, "--dry-run", "-f", "ndjson").stdout.splitlines()]
    assert [(row["action"], row["name"], row["key"]) for row in rows] == [
        ("change", "a", "definition"),
        ("change", "b", "state"),
    ]
    assert rows[0]["after"].endswith("(end or parameters differ)")


def test_commands_take_the_name_without_its_hash(run: Run, file: Path) -> None:
    run("job", "apply", "-F", str(file), "--yes")
    assert run("job", "stop", "a", "-f", "csv").code == 0
    shown = json.loads(run("job", "show", "a", "-f", "json").stdout)
    assert (shown["status"], shown["friendlyName"][:2]) == ("STOPPED", "a.")


def test_an_apply_that_stops_in_the_middle_says_how_much_was_done(run: Run, world: World, file: Path) -> None:
    world.wire.is_own = False  # such a service checks queries when they are launched
    file.write_text(JOBS.replace("query: from t,", "query: from t group by n select count() as c,"))
    done = run("-q", "job", "apply", "-F", str(file), "--yes")
    lines = done.stderr.splitlines()
    assert (done.code, lines[0]) == (1, "svcctl: 1 of 2 applied")
    assert lines[1].startswith(f"svcctl: error: job 'b' ({file}, line 5): line 1, column ")


WRONG = """\
- {name: a, query: from t, from: soon, destination: {type: donothing}}
- {name: b, query: from t, from: 1h, destination: {type: donothing}}
- {name: c, query: from t, from: 1h, destination: {type: HDFS, params: {fs.defaultFS: n, file: /f}}}
- {name: d, query: from t, from: 1h, destination: {type: donothing}, state: idle}
"""


@pytest.mark.parametrize("trial", ["--check", "--yes"])
def test_each_job_with_a_mistake_is_reported_before_anything_is_sent(
    run: Run, world: World, file: Path, trial: str
) -> None:
    file.write_text(WRONG)
    done = run("job", "apply", "-F", str(file), trial)
    errors = [line for line in done.stderr.splitlines() if line.startswith("svcctl: error: ")]
    starts = [
        f"svcctl: error: {file}, line {line}: {key}" for line, key in ((1, "from"), (3, "fs.default"), (4, "state"))
    ]
    assert (done.code, done.stdout, world.wire.sent, len(errors)) == (2, "", [], 3)
    assert all(map(str.startswith, errors, starts))


@pytest.mark.parametrize("trial", ["--check", "--yes"])
def test_each_query_that_would_be_refused_is_reported_before_a_job_is_launched(
    run: Run, world: World, file: Path, trial: str
) -> None:
    file.write_text(JOBS.replace("from t where", "from nosuch where").replace("query: from t,", "query: form t,"))
    done = run("job", "apply", "-F", str(file), trial)
    errors = [line for line in done.stderr.splitlines() if line.startswith("svcctl: error: ")]
    starts = [f"svcctl: error: {file}, line {line}: query: " for line in (2, 5)]
    assert (done.code, done.stdout, world.client.jobs(), len(errors)) == (2, "", (), 2)
    assert all(map(str.startswith, errors, starts))


def test_a_type_of_destination_that_only_another_service_has_is_refused_by_svcctls_own(
    run: Run, world: World, file: Path
) -> None:
    file.write_text(JOBS.replace("donothing", "FTP"))
    apply = ("job", "apply", "-F", str(file), "--check")
    done = run(*apply)
    assert (done.code, f"error: {file}, line 5: unknown destination type 'FTP'" in done.stderr) == (2, True)
    assert "sent anyway" not in done.stderr
    world.wire.is_own = False
    done = run(*apply)
    assert (done.code, "sent anyway" in done.stderr) == (10, True)


def test_a_lost_answer_names_its_job_and_a_second_run_is_safe(run: Run, world: World, file: Path) -> None:
    run("job", "apply", "-F", str(file), "--dry-run")
    asked = len(world.wire.sent)
    world.wire.due = [(asked, "lost")]  # the first request after the plan, which launches
    done = run("job", "apply", "-F", str(file), "--yes")
    lines = done.stderr.splitlines()
    assert (done.code, lines[0].startswith(f"svcctl: error: job 'a' ({file}, line 1): ")) == (6, True)
    assert lines[-1] == "hint: run the same command again, which is safe"
    file.write_text(JOBS)
    assert run("job", "apply", "-F", str(file), "--yes").code == 0
    assert [job.status for job in world.client.jobs()] == ["RUNNING", "STOPPED"]


def test_tables_are_not_checked_if_the_service_does_not_list_them(run: Run, world: World, file: Path) -> None:
    world.wire.is_own = False
    done = run("job", "apply", "-F", str(file), "--dry-run")
    assert (done.code, done.stdout, "not checked" in done.stderr) == (0, NEW, True)


def test_jobs_that_no_file_has_are_removed_only_with_prune(run: Run, world: World, file: Path) -> None:
    run("job", "apply", "-F", str(file), "--yes")
    file.write_text("".join(JOBS.partition("- {name: b")[1:]))
    apply = ("job", "apply", "-F", str(file))
    assert (run(*apply, "--check").code, run(*apply, "--check", "--prune").code) == (0, 10)
    done = run(*apply, "--prune", answers=("y",))
    assert (done.code, done.stdout, done.questions) == (0, "removed job 'a'\n", ["Apply these changes?"])
    assert [str(job.friendly_name)[:2] for job in world.client.jobs()] == ["b."]


def test_a_query_of_several_lines_differs_line_by_line(run: Run, file: Path) -> None:
    job = "name: a\nquery: |\n  from t\n  where n > {}\nfrom: 1h\ndestination: {{type: donothing}}\n"
    file.write_text(job.format(1))
    apply = ("job", "apply", "-F", str(file))
    assert run(*apply, "--yes").stdout.startswith("new job 'a'\n  query:\n+   from t\n+   where n > 1\n+ from: 1h\n")
    file.write_text(job.format(2))
    changed = "job 'a'\n  query:\n    from t\n-   where n > 1\n+   where n > 2\n"
    assert run(*apply, "--dry-run").stdout == changed


def test_a_second_job_of_a_name_is_shown_before_it_is_removed(run: Run, world: World, file: Path) -> None:
    run("job", "apply", "-F", str(file), "--yes")
    second = yaml_files.parse(JOBS, str(file), "job")[1]
    other = job_files.written(second, datetime.now(UTC))
    world.client.stop_job(other_id := world.client.launch(other.request()))
    shown = run("job", "apply", "-F", str(file), "--dry-run").stdout
    ids = [job.id for job in world.client.jobs() if str(job.friendly_name).startswith("b.")]
    assert other_id in ids
    assert shown.startswith("job 'b'\n- another job of this name: ")
    assert any(job_id in shown for job_id in ids)
    assert shown.endswith("+ another job of this name: removed\n")


def test_exported_jobs_are_a_file_that_changes_nothing(run: Run, file: Path) -> None:
    file.write_text(JOBS.replace("from: 1h,", "from: 1h, to: 2030-01-01 10:00,"))
    done = run("job", "apply", "-F", str(file), "--yes")
    assert done.code == 0, done.stderr
    exported = run("job", "export", "b")
    assert exported.code == 0, exported.stderr
    job = yaml.safe_load(exported.stdout)
    assert isinstance(job.pop("from"), str)
    assert (exported.code, exported.stderr, job) == (
        0,
        "",
        {
            "name": "b",
            "query": "from t",
            "to": "2030-01-01T10:00:00.000Z",
            "destination": {"type": "donothing", "params": {}},
            "state": "stopped",
        },
    )
    whole = run("job", "export")
    assert ("s3cret" in whole.stdout, "secrets" in whole.stderr) == (False, True)
    file.write_text(whole.stdout)
    assert run("job", "apply", "-F", str(file), "--check").code == 0


NUMBERS = """\
- name: a
  query: from t
  from: 1704067200
  to: 1893456000
  destination: {type: Kafka, params: {topic: 123, bootstrap.servers: b, maxBytesPerCommit: 1000, sasl.username: 1.5}}
- {name: b, query: from t, from: 2024-01-31, destination: {type: donothing}}
"""


def test_a_file_that_was_applied_before_texts_were_texts_changes_nothing(run: Run, world: World, file: Path) -> None:
    file.write_text(NUMBERS)
    params = {"topic": 123, "bootstrap.servers": "b", "maxBytesPerCommit": 1000, "sasl.username": 1.5}
    for name, destination_in_file in (
        ("a.14137cdc", Destination("Kafka", params)),
        ("b.350fea56", Destination("donothing", {})),
    ):
        destination = Destination(destination_in_file.type, {**destination_in_file.params, "friendlyName": name})
        to = 1893456000 if destination_in_file.params else None
        world.client.launch(QueryRequest(1704067200, to=to, query="from t", destination=destination))
    done = run("job", "apply", "-F", str(file), "--check")
    assert (done.code, done.stdout) == (0, "")


def test_exported_texts_that_look_like_numbers_are_a_file_that_changes_nothing(run: Run, file: Path) -> None:
    file.write_text(NUMBERS)
    apply = ("job", "apply", "-F", str(file))
    assert run(*apply, "--yes").code == 0
    file.write_text(run("job", "export").stdout)
    assert "topic: '123'" in file.read_text()
    assert run(*apply, "--check").code == 0


def test_a_text_that_is_no_number_reaches_the_service_unchanged(run: Run, world: World, file: Path) -> None:
    file.write_text(NUMBERS.replace("topic: 123", "topic: 0123"))
    shown = run("job", "apply", "-F", str(file), "--yes")
    assert "topic=0123 " in shown.stdout
    assert [job.extra["params"].get("topic") for job in world.client.jobs()] == ["0123", None]


def test_a_query_of_several_lines_is_exported_as_a_block_without_the_blanks_around_it(run: Run, file: Path) -> None:
    file.write_text('name: a\nquery: "\\nfrom t\\n\\nwhere n > 1\\n\\n"\nfrom: 1h\ndestination: {type: donothing}\n')
    run("job", "apply", "-F", str(file), "--yes")
    exported = run("job", "export").stdout
    assert "query: |-\n  from t\n\n  where n > 1\n" in exported
    file.write_text(exported)
    assert run("job", "apply", "-F", str(file), "--check").code == 0


def test_another_service_shows_less_of_a_job(run: Run, world: World, file: Path) -> None:
    run("job", "apply", "-F", str(file), "--yes")
    world.wire.is_own = False
    exported = run("job", "export", "a")
    assert yaml.safe_load(exported.stdout)["destination"] == {"type": "Kafka", "params": {}}
    assert "'to' and the parameters" in exported.stderr
