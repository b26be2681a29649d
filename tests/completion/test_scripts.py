"""The completion scripts' table is what the app has, the files are up to date, and names are found without a wait."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from support import ROOT
from support.shells import Shell

from svcctl.api import destinations
from svcctl.completion import scripts
from svcctl.completion.scripts import FILE_NAMES, VALUES, Values, Word, script, table, values_of, whole_app
from svcctl.terminal.formats import FORMATS

PLACES = {place.name: place.values for place in table().places}


def parameters() -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Every option with a value and every argument: the command's path, its name as VALUES has it, its metavar."""

    def visit(command: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str, str]]:
        for parameter in command.params:  # type: ignore[attr-defined]
            metavar = str(parameter.metavar).strip("[]")
            if parameter.param_type_name == "argument":
                yield path, metavar, metavar
            elif not parameter.is_flag and not parameter.hidden:
                yield path, next(name for name in parameter.opts if name.startswith("--")), metavar
        for name, inner in getattr(command, "commands", {}).items():
            yield from visit(inner, (*path, name))

    return visit(whole_app(), ())


@pytest.mark.parametrize("shell", FILE_NAMES)
def test_the_scripts_are_up_to_date(shell: str) -> None:
    how = "write them anew: python -m svcctl.completion.scripts completions"
    assert (ROOT / "completions" / FILE_NAMES[shell]).read_text(encoding="utf-8") == script(shell), how


def test_every_row_of_values_is_about_something_there_is() -> None:
    assert set(VALUES) - {values_of(path, name)[0] for path, name, _ in parameters()} == set()


def test_every_file_is_completed_as_one() -> None:
    files = {(path, name) for path, name, metavar in parameters() if metavar.rstrip("…") == "FILE"}
    assert {(path, name) for path, name in files if values_of(path, name)[1] != Values(kind="files")} == set()
    assert (("query",), "--output") in files


def test_the_first_word_is_a_command_and_hidden_ones_are_none() -> None:
    words = {word.text for word in PLACES["svcctl 0"].words}
    assert {"query", "job", "domain", "role", "profile", "service", "help", "api", "completion"} <= words
    assert "complete" not in words


def test_a_command_has_its_own_options_then_those_of_all() -> None:
    assert PLACES["svcctl range -"].words == (
        Word("--from", "Start of the range; 1h is an hour ago (see 'svcctl help dates')."),
        Word("--to", "End of the range, not included."),
        Word("--time-zone", "Zone of relative dates and of printed ones."),
        Word("--at", "The moment to take for now (not an operator)."),
        Word("--format", "Output format; auto is a table on a terminal, csv in a pipe."),
        Word("--profile", "Profile to use."),
        Word("--config", "Profiles file to use."),
        Word("--timeout", "Seconds to wait for the network."),
        Word("--retries", "Times a failed request is tried again."),
        Word("--color", "auto, always or never."),
        Word("--quiet", "Say nothing but errors."),
        Word("--verbose", "Say what is sent and answered, secrets masked."),
        Word("--help", "Show the help page."),
    )


def test_a_query_has_every_format_and_a_list_those_of_lists() -> None:
    assert [word.text for word in PLACES["svcctl query --format"].words] == ["auto", *FORMATS]
    assert [word.text for word in PLACES["* --format"].words] == [
        "auto",
        *("table", "vertical", "csv", "tsv", "ndjson", "json"),
    ]


def test_the_keys_of_a_destination_are_those_of_its_type_and_a_secret_is_a_file() -> None:
    places = {kind: PLACES[f"svcctl query --dest-param {kind}"].words for kind in destinations.TYPES}
    assert [word.text for word in places["donothing"]] == ["friendlyName="]
    assert [word.text for word in places["hdfs"]][:2] == ["fs.defaultFS=", "file="]
    secrets = {word.text for words in places.values() for word in words if word.text.endswith("@")}
    assert secrets == {f"{row.key}=@" for rows in destinations.TYPES.values() for row in rows if row.secret}
    assert {"aws.secretkey=@", "file.password=@"} <= secrets


def test_a_job_to_stop_is_one_that_runs() -> None:
    assert {verb: PLACES[f"svcctl job {verb} *"].kind for verb in ("stop", "start", "show", "rm")} == {
        "stop": "running",
        "start": "stopped",
        "show": "jobs",
        "rm": "jobs",
    }


def test_what_a_script_quotes_stands_for_itself() -> None:
    assert scripts._quoted("it's $(x)") == "'it'\\''s $(x)'"
    assert scripts._quoted("json") == "json"


# The command


@pytest.mark.parametrize("name", FILE_NAMES)
def test_the_command_prints_the_script(name: str, shell: Shell) -> None:
    assert shell("completion", name).stdout == script(name)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("bash", ".local/share/bash-completion/completions/svcctl"),
        ("zsh", ".local/share/zsh/site-functions/_svcctl"),
        ("fish", ".config/fish/completions/svcctl.fish"),
    ],
)
def test_a_script_is_installed_where_the_shell_looks(shell: Shell, name: str, place: str) -> None:
    done = shell("completion", name, "--install")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.split("\n")[0] == f"svcctl: installed {shell.home / place}"
    assert (shell.home / place).read_text(encoding="utf-8") == script(name)


def test_a_shell_that_is_none_is_refused(shell: Shell) -> None:
    done = shell("completion", "tcsh")
    assert (done.returncode, done.stderr) == (
        2,
        "svcctl: error: shell 'tcsh' is not one\nhint: shells are: bash, zsh, fish\n",
    )


# Names


class Jobs:
    """A service with jobs, which answers when it is let, and counts how often it was asked."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.asked = 0
        self.answer: tuple[int, bytes] = (200, json.dumps({"status": 0, "object": JOBS}).encode())
        self.url = ""


JOBS = [
    {"id": "3f2a0000-0000-4000-8000-000000000001", "status": "RUNNING", "type": "kafka", "friendlyName": "kafka_x1"},
    {"id": "3f2a0000-0000-4000-8000-000000000002", "status": "STOPPED", "friendlyName": "evil\x1b[2J\tname"},
    {"id": "$(touch pwned)", "status": "RUNNING"},
    {"id": "-rf", "status": "RUNNING"},
]


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    with serving() as found:
        yield found


@contextmanager
def serving() -> Iterator[Jobs]:
    state = Jobs()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked += 1
            state.free.wait(20)
            status, body = state.answer
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield state
    finally:
        state.free.set()
        server.shutdown()
        thread.join()
        server.server_close()


def asking(shell: Shell, service: Jobs) -> Shell:
    variables = {"SVCCTL_BASE_URL": service.url, "SVCCTL_API_KEY": "k", "SVCCTL_API_SECRET": "s"}
    return Shell(shell.home, variables)


def answered(shell: Shell, kind: str) -> str:
    """What is printed once the process that asks has written down what it heard."""
    deadline = time.monotonic() + 20
    while not (printed := shell("complete", kind).stdout):
        assert time.monotonic() < deadline
    return printed


def test_jobs_come_with_their_state_and_friendly_name_and_nothing_that_a_shell_could_run(
    shell: Shell, jobs: Jobs
) -> None:
    jobs.free.set()
    assert answered(asking(shell, jobs), "jobs") == (
        "3f2a0000-0000-4000-8000-000000000001\tRUNNING kafka_x1\n"
        "3f2a0000-0000-4000-8000-000000000002\tSTOPPED evil [2J name\n"
    )


def test_one_answer_serves_all_kinds_of_jobs_for_a_while(shell: Shell, jobs: Jobs) -> None:
    jobs.free.set()
    run = asking(shell, jobs)
    assert answered(run, "running") == "3f2a0000-0000-4000-8000-000000000001\tRUNNING kafka_x1\n"
    asked = jobs.asked
    (kept,) = (shell.home / ".cache" / "svcctl" / "completion").iterdir()
    os.utime(kept, (time.time() + 60,) * 2)  # the while does not end, however slow this machine is
    assert run("complete", "stopped").stdout == "3f2a0000-0000-4000-8000-000000000002\tSTOPPED evil [2J name\n"
    assert jobs.asked == asked


def test_a_prompt_does_not_wait_for_a_service_that_is_silent(shell: Shell, jobs: Jobs) -> None:
    run = asking(shell, jobs)
    done = run("complete", "jobs", timeout=15)  # the service answers only after this has ended
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    jobs.free.set()
    assert answered(run, "jobs").startswith("3f2a0000")


def test_what_was_known_is_told_when_the_service_fails(shell: Shell, jobs: Jobs) -> None:
    jobs.free.set()
    run = asking(shell, jobs)
    known = answered(run, "jobs")
    (kept,) = (shell.home / ".cache" / "svcctl" / "completion").iterdir()
    os.utime(kept, (1, 1))
    jobs.answer = 500, b"<html>no</html>"
    done = run("complete", "jobs")
    assert (done.returncode, done.stdout, done.stderr) == (0, known, "")


@pytest.mark.parametrize("kind", ["jobs", "tables", "domains", "nonsense"])
def test_there_is_never_an_error_on_the_prompt(shell: Shell, kind: str) -> None:
    variables = {"SVCCTL_BASE_URL": "http://127.0.0.1:1", "SVCCTL_API_KEY": "k", "SVCCTL_API_SECRET": "s"}
    for environment in ({}, variables, {"SVCCTL_PROFILE": "unknown"}, {"SVCCTL_BASE_URL": "nonsense"}):
        done = shell("complete", kind, **environment)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_neither_a_service_nor_a_command_is_started_for_a_prompt(shell: Shell, jobs: Jobs) -> None:
    jobs.free.set()
    assert shell("complete", "tables").stdout == ""
    assert not (shell.home / "data" / "service.sock").exists()
    fields = (f"base_url={jobs.url}", "api_key=k", f"api_secret_command=touch {shell.home}/ran; echo s")
    assert shell("profile", "set", "prod", *fields).returncode == 0
    assert shell("-p", "prod", "complete", "jobs").stdout == ""
    assert (jobs.asked, (shell.home / "ran").exists()) == (0, False)


def test_profiles_are_those_of_the_file_and_the_built_in_ones(shell: Shell) -> None:
    shell("profile", "set", "prod", "base_url=https://events.example.com")
    assert shell("complete", "profiles").stdout == ("prod\thttps://events.example.com\nlocal\t\nlocal-reseller\t\n")


def test_tables_are_those_of_the_service(service: Shell) -> None:
    assert answered(service, "tables").split("\n")[0] == "auth.all\teventdate, user, srcIp, method, result, reason"
