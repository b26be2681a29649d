"""Names that change are listed without a wait, cached for a while, and never with an error on the prompt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from support.shells import Shell

from svcctl.cli.help import LANGUAGE
from svcctl.service.language import FUNCTIONS


class Jobs:
    """A service with jobs; it answers once `free` is set, and counts the requests."""

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
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
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
    """The output of `svcctl complete`, once the child process has filled the cache."""
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
        "kafka_x1\tRUNNING 3f2a0000-0000-4000-8000-000000000001\n"
    )


def test_a_name_that_several_jobs_have_is_not_offered(shell: Shell, jobs: Jobs) -> None:
    both = [{"id": f"{n}f2a0000-0000-4000-8000-000000000001", "status": "RUNNING", "friendlyName": "k"} for n in (1, 2)]
    jobs.answer = 200, json.dumps({"status": 0, "object": both}).encode()
    jobs.free.set()
    ids = "".join(f"{job['id']}\tRUNNING k\n" for job in both)
    assert answered(asking(shell, jobs), "jobs") == ids
    assert asking(shell, jobs)("complete", "running").stdout == ids


def test_a_running_job_with_an_error_is_failing_and_its_name_comes_without_a_hash(shell: Shell, jobs: Jobs) -> None:
    failing = {"id": "3f2a0000-0000-4000-8000-000000000001", "status": "RUNNING", "error": ["no broker answers"]}
    jobs.answer = 200, json.dumps({"status": 0, "object": [failing | {"friendlyName": "nightly.3f2a9c1b"}]}).encode()
    jobs.free.set()
    told = f"{failing['id']}\tFAILING nightly.3f2a9c1b\nnightly\tFAILING {failing['id']}\n"
    assert answered(asking(shell, jobs), "running") == told


def test_one_answer_serves_all_kinds_of_jobs_for_a_while(shell: Shell, jobs: Jobs) -> None:
    jobs.free.set()
    run = asking(shell, jobs)
    assert answered(run, "running") == (
        "3f2a0000-0000-4000-8000-000000000001\tRUNNING kafka_x1\n"
        "kafka_x1\tRUNNING 3f2a0000-0000-4000-8000-000000000001\n"
    )
    asked = jobs.asked
    (kept,) = (shell.home / ".cache" / "svcctl" / "completion").iterdir()
    os.utime(kept, (time.time() + 60,) * 2)  # the cache does not expire, however slow this machine is
    assert run("complete", "stopped").stdout == "3f2a0000-0000-4000-8000-000000000002\tSTOPPED evil [2J name\n"
    assert jobs.asked == asked


def test_a_prompt_does_not_wait_for_a_service_that_is_silent(shell: Shell, jobs: Jobs) -> None:
    run = asking(shell, jobs)
    done = run("complete", "jobs")  # the service answers only after this has ended
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    jobs.free.set()
    assert answered(run, "jobs").startswith("3f2a0000")


def test_cached_names_are_printed_when_the_service_fails(shell: Shell, jobs: Jobs) -> None:
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
    assert "auth.all\teventdate, user, srcIp, method, result, reason" in answered(service, "tables").splitlines()


def test_loaded_tables_have_their_number_of_events(service: Shell) -> None:
    (service.home / "one.csv").write_text("eventdate,n\n2024-01-31 10:00:00,1\n")
    assert service("service", "load", "one.csv", "--table", "completed.one", "--replace").returncode == 0
    found = answered(service, "loaded").splitlines()
    assert {"completed.one\t1 event", "sample\t4 events"} <= set(found)


def test_a_table_is_offered_from_its_load_until_it_is_dropped(service: Shell) -> None:
    def offered(expected: bool) -> None:
        deadline = time.monotonic() + 20  # a prompt does not wait for a service that is slow
        while ("completed.two\t" in service("complete", "tables").stdout) != expected:
            assert time.monotonic() < deadline

    assert answered(service, "tables")
    (service.home / "two.csv").write_text("eventdate,n\n2024-01-31 10:00:00,1\n")
    assert service("service", "load", "two.csv", "--table", "completed.two").returncode == 0
    offered(True)
    assert service("service", "drop", "completed.two", "--yes").returncode == 0
    offered(False)


@pytest.mark.parametrize(
    ("command", "expires"),
    [
        ("job stop 3f2a0000-0000-4000-8000-000000000001", True),
        ("api /search/job/start/3f2a0000-0000-4000-8000-000000000001", True),
        ("query Q --from 1h --dest donothing", True),
        ("query Q --from 1h", False),
        ("job list", False),
    ],
)
def test_a_request_that_changes_something_expires_the_names(
    shell: Shell, jobs: Jobs, command: str, expires: bool
) -> None:
    jobs.free.set()
    run = asking(shell, jobs)
    assert answered(run, "jobs")
    (names,) = (shell.home / ".cache" / "svcctl" / "completion").iterdir()
    run("--retries", "0", *(word.replace("Q", "from t") for word in command.split()))
    assert (names.stat().st_mtime == 0) == expires


def test_columns_and_saved_queries_are_known_while_the_service_is_stopped(shell: Shell) -> None:
    assert shell("complete", "queries").stdout == shell("complete", "columns", "auth.all").stdout == ""
    assert not (shell.home / "data" / "service.sock").exists()  # nothing was started
    assert shell("service", "queries", "set", "busy", "from auth.all limit 1").returncode == 0
    assert shell("complete", "queries").stdout == "busy\tfrom auth.all limit 1\n"


def test_the_roles_and_columns_are_those_of_the_word_before(service: Shell) -> None:
    deadline = time.monotonic() + 20
    while not (columns := service("complete", "columns", "auth.all").stdout):  # the first answers fill the cache
        assert time.monotonic() < deadline
    assert [line.partition("\t")[0] for line in columns.splitlines()][:3] == ["eventdate", "user", "srcIp"]
    assert service("complete", "columns", "nosuch").stdout == ""


@pytest.mark.parametrize(
    ("typed", "columns"),
    [
        ("from auth.all where result = 'FAIL'", ["eventdate", "user", "srcIp", "method", "result", "reason"]),
        ("'from auth.all where user = '\\''x'\\'' select user, srcIp as ip'", ["user", "ip"]),
        ('"from auth.all\ngroup by user select count() as n"', ["user", "n"]),
        ("'from nosuch group by user select count(), max(a) + 1 as `$(x)`", ["user", "count"]),
        ("from", []),
        ("'", []),
        ("' \"", []),
    ],
)
def test_the_columns_of_a_query_are_those_of_its_answer(service: Shell, typed: str, columns: list[str]) -> None:
    answered(service, "tables")
    done = service("complete", "columns", typed)
    assert (done.stdout, done.stderr) == ("".join(f"{column}\t\n" for column in columns), "")


def test_the_columns_of_a_clause_are_those_that_it_can_name(shell: Shell) -> None:
    done = shell("complete", "language", "from t group by user select count() as n where ")
    assert [line.split("\t")[0] for line in done.stdout.splitlines()][:2] == ["user", "n"]


def test_words_of_the_language_are_those_of_its_page(shell: Shell) -> None:
    offered = [line.split("\t") for line in shell("complete", "language", "t").stdout.splitlines()]
    assert [name for name, meaning in offered if meaning == "function"] == list(FUNCTIONS)
    assert [name for name, meaning in offered if meaning == "keyword"] == list(LANGUAGE)
    assert len(offered) == len(FUNCTIONS) + len(LANGUAGE)


def test_columns_that_a_query_names_are_known_without_a_service(shell: Shell) -> None:
    assert shell("complete", "columns", "from t group every 1h select count() as n").stdout == "eventdate\t\nn\t\n"
    assert not (shell.home / ".cache" / "svcctl" / "completion").exists()  # and nothing was asked


def test_the_columns_of_a_query_are_found_without_parsing_it() -> None:
    loaded = "sorted({'lark', 'httpx', 'rich', 'sqlglot'} & set(sys.modules))"
    modules = "sys, svcctl.cli.completion.names, svcctl.api.query, svcctl.cli.help.topics"
    code = f"import {modules}; svcctl.cli.help.topics.functions(); print(*{loaded})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"
