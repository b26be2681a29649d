"""`svcctl job` and `svcctl query --dest` as a user's shell runs them: against a real service, and a scripted one."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from support.pseudo_terminal import Seen, on_terminal_of, screen
from support.scripted import Serve, http, ok
from support.shells import Shell

NOWHERE = "00000000-0000-0000-0000-000000000000"
SECRET = "5ecr3t"
LISTED = json.dumps({"status": 0, "object": [{"id": NOWHERE, "status": "RUNNING"}]})


@pytest.fixture
def jobs(service: Shell) -> Iterator[Shell]:
    """The service, without jobs of other tests before and after."""

    def clear() -> None:
        ids = service("job", "list", "--ids").stdout
        assert service("job", "rm", "--yes", "-", stdin=ids).returncode == 0

    clear()
    yield service
    clear()


def launch(shell: Shell, *more: str, query: str = "from sample") -> str:
    """The ID of a new job, by default one without an end."""
    more = more or ("--follow",)
    [job] = shell.ndjson("query", query, "--from", "31/01/2024 00:00:00", "--dest", "donothing", *more)
    return str(job["id"])


def test_a_query_with_a_destination_is_launched_and_printed(jobs: Shell) -> None:
    done = jobs("query", "from sample", "--from", "31/01/2024 00:00:00", "--dest", "DoNothing", "-f", "csv")
    header, job, end = done.stdout.split("\n")
    assert (done.returncode, header, end) == (0, "id,status,type,friendlyName", "")
    assert re.fullmatch(r"[0-9a-f-]{36},(RUNNING|COMPLETED),donothing,donothing_[a-z0-9]{8}", job)


def test_a_script_waits_for_a_job_and_removes_it(jobs: Shell) -> None:
    job_id = launch(jobs, "--to", "01/02/2024 00:00:00")
    done = jobs("job", "wait", job_id, "--max-time", "30", "-f", "csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n") == [
        "id,status,failing,type,friendlyName,eventGenerated,eventsSent,lastDatetime,error,query",
        f"{job_id},COMPLETED,false,donothing,{jobs.ndjson('job', 'show', job_id)[0]['friendlyName']},4,4,"
        "1706745600000,[],from sample",
        "",
    ]
    assert jobs("job", "rm", "--yes", job_id).returncode == 0
    assert jobs("job", "list", "--ids").stdout == ""


def test_a_list_is_piped_into_stop(jobs: Shell) -> None:
    running = [launch(jobs), launch(jobs)]
    complete = launch(jobs, "--to", "01/02/2024 00:00:00")
    assert jobs("job", "wait", complete).returncode == 0
    ids = jobs("job", "list", "--status", "running", "--ids").stdout
    assert ids == "".join(f"{job_id}\n" for job_id in running)
    done = jobs("job", "stop", "-", "-f", "ndjson", stdin=ids)
    assert done.returncode == 0, done.stderr
    stopped = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    assert [(job["id"], job["status"]) for job in stopped] == [(job_id, "STOPPED") for job_id in running]
    assert jobs("job", "list", "--status", "RUNNING", "--ids").stdout == ""
    listed = jobs.ndjson("job", "list", "--status", "STOPPED,COMPLETED", "--type", "donothing")
    assert [job["id"] for job in listed] == [*running, complete]
    assert jobs.ndjson("job", "list", "--type", "kafka") == []


def test_several_jobs_are_all_tried_and_the_worst_code_is_the_commands(jobs: Shell) -> None:
    running, stopped = launch(jobs), launch(jobs)
    assert jobs("job", "stop", stopped).returncode == 0
    done = jobs("job", "stop", NOWHERE, stopped, running, "-f", "ndjson")
    assert done.returncode == 5
    assert [json.loads(line)["id"] for line in done.stdout.split("\n")[:-1]] == [running]
    errors = [line for line in done.stderr.split("\n") if line.startswith("svcctl: error: ")]
    assert [NOWHERE in errors[0], stopped in errors[1], len(errors)] == [True, True, 2]


def test_stopping_a_stopped_job_and_starting_a_running_one_exit_5(jobs: Shell) -> None:
    job_id = launch(jobs)
    assert jobs("job", "start", job_id).returncode == 5
    assert jobs("job", "stop", job_id).returncode == 0
    assert jobs("job", "stop", job_id).returncode == 5
    assert jobs("job", "start", job_id).returncode == 0


@pytest.mark.parametrize(("answer", "code", "left"), [("n", 130, 1), ("", 130, 1), ("y", 0, 0)])
def test_on_a_terminal_the_answer_decides(jobs: Shell, answer: str, code: int, left: int) -> None:
    job_id = launch(jobs)
    assert on_terminal(jobs, ["job", "rm", job_id], f"{answer}\n").code == code
    assert len(jobs.ndjson("job", "list")) == left


def on_terminal(shell: Shell, arguments: list[str], typed: str = "", columns: int = 100) -> Seen:
    size = {"COLUMNS": str(columns), "LINES": "20"}
    return on_terminal_of(columns, shell, *arguments, typed=typed.encode(), NO_COLOR="1", **size)


def test_waiting_ends_when_the_time_is_up(jobs: Shell) -> None:
    job_id = launch(jobs)
    done = jobs("job", "wait", job_id, "--timeout", "20", "--max-time", "0.1")
    assert (done.returncode, done.stdout) == (6, "")
    assert [job_id in done.stderr, "RUNNING" in done.stderr] == [True, True]


def test_waiting_for_what_cannot_come_fails_at_once(jobs: Shell) -> None:
    job_id = launch(jobs)
    assert jobs("job", "wait", job_id, "--for", "RUNNING").returncode == 0
    assert jobs("job", "stop", job_id).returncode == 0
    done = jobs("job", "wait", job_id)
    assert (done.returncode, done.stderr) == (
        5,
        f"svcctl: error: job {job_id} is STOPPED: it does not become COMPLETED by itself\n"
        f"hint: it can be started again; how far it has read: svcctl job show {job_id}\n",
    )
    assert jobs("job", "wait", job_id, "--for", "COMPLETED,STOPPED").returncode == 0
    assert jobs("job", "rm", "--yes", job_id).returncode == 0
    assert jobs("job", "wait", job_id, "--for", "REMOVED").returncode == 0


def test_watching_in_a_pipe_is_a_row_for_each_job_and_look(jobs: Shell) -> None:
    job_id = launch(jobs, query="from sample where false")  # its rate is the same at every look
    rows = jobs.ndjson("job", "watch", job_id, "--interval", "0.1", "--max-time", "0.4")
    assert len(rows) >= 2
    assert set(rows[0]) == {
        *("time", "id", "status", "type", "friendlyName"),
        *("eventsSent", "eventGenerated", "rate", "lag", "error", "failing"),
    }
    assert (rows[-1]["id"], rows[-1]["status"], rows[-1]["rate"]) == (job_id, "RUNNING", 0.0)


@pytest.mark.parametrize(
    ("answers", "code", "rows", "notes"),
    [
        ([http("502 Bad")] * 20, 6, 0, 2),
        ([ok("{}")] * 20, 6, 0, 2),
        ([http("502 Bad"), *[ok(LISTED)] * 20], 0, 1, 1),
        ([ok(LISTED), *[http("502 Bad")] * 20], 6, 1, 2),
    ],
)
def test_watching_in_a_pipe_reports_each_new_failure_and_ends_with_the_last_one(
    answers: list[bytes], code: int, rows: int, notes: int, serve: Serve, shell: Shell
) -> None:
    script = serve(*answers)
    options = ("--retries", "0", "job", "watch", "-f", "csv", "--interval", "0.1", "--max-time", "0.3")
    done = shell(*options, SVCCTL_BASE_URL=script.url, SVCCTL_AUTH="token", SVCCTL_TOKEN="t")
    assert done.stdout.startswith("time,id,status,")
    assert (done.returncode, done.stdout.count("\n") > rows, len(done.stderr.splitlines())) == (code, True, notes)


def test_watching_on_a_terminal_leaves_the_last_frame(jobs: Shell) -> None:
    job_id = launch(jobs)
    seen = on_terminal(jobs, ["job", "watch", "--interval", "0.1", "--max-time", "1"])
    before, other, after = re.split("\x1b\\[\\?1049[hl]", seen.text)
    assert (seen.code, screen(before)) == (0, "")
    assert other.count("\x1b[H") >= 3
    lines = after.split("\n")
    assert lines[0].startswith("id")
    assert lines[2].startswith(job_id.partition("-")[0] + "  RUNNING  donothing_")
    assert re.fullmatch(r"1 job, 20[-0-9]{8} [:0-9]{8} \(UTC\)", lines[3])
    assert all(len(line) <= 100 for line in lines)


@pytest.mark.slow
def test_watching_continues_while_the_service_is_away(tmp_path: Path, shell: Shell) -> None:
    assert shell("service", "start").returncode == 0
    try:
        job_id = launch(shell, query="from auth.all")
        watching = shell.start(
            "--retries", "0", "job", "watch", "-f", "csv", "--interval", "0.2", stdout=subprocess.PIPE
        )
        assert watching.stdout is not None
        assert watching.stdout.readline().startswith(b"time,id,status,")
        assert job_id.encode() in watching.stdout.readline()
        assert shell("service", "stop").returncode == 0
        assert shell("service", "start").returncode == 0
        for _ in range(10):
            assert job_id.encode() in watching.stdout.readline()
        watching.terminate()
        watching.wait(10)
        watching.stdout.close()
    finally:
        shell("service", "stop")


# query --dest


def test_a_secret_is_no_value_of_an_option(jobs: Shell) -> None:
    done = jobs("query", "from t", "--from", "1h", "--dest", "s3", "--dest-param", f"aws.secretkey={SECRET}")
    assert (done.returncode, done.stdout) == (2, "")
    assert [SECRET in done.stderr, "aws.secretkey=@FILE" in done.stderr] == [False, True]


def test_a_preview_shows_parameters_and_no_secret(jobs: Shell) -> None:
    (jobs.home / "secret").write_text(f"{SECRET}\n")
    (jobs.home / "dest.json").write_text('{"type": "S3", "params": {"aws.bucket": "b", "aws.region": "r"}}')
    done = jobs(
        *("query", "from t", "--from", "1", "--to", "2", "--dest-json", "dest.json", "--dry-run"),
        *("--dest-param", "aws.secretkey=@secret", "--dest-param", "aws.region=s"),
    )
    assert (done.returncode, "unmasked" in done.stderr.splitlines()[-1]) == (0, True)
    assert json.loads(done.stdout.split("\n\n", 1)[1]) == {
        "query": "from t",
        "from": 1,
        "to": 2,
        "mode": {"type": "json"},
        "destination": {
            "type": "S3",
            "params": {"aws.bucket": "b", "aws.region": "s", "aws.secretkey": "****"},
        },
    }


def test_a_launched_job_is_printed_without_a_heading(jobs: Shell) -> None:
    done = jobs("query", "from sample", "--from", "1h", "--dest", "donothing", "-f", "csv", "--no-header")
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)


def test_a_job_whose_range_ends_in_the_future_says_so(jobs: Shell) -> None:
    done = jobs(
        "query", "from sample", "--from", "2024-01-31", "--to", "2100-01-01", "--dest", "donothing", "-f", "csv"
    )
    assert (done.returncode, done.stderr) == (
        0,
        "svcctl: --to is in the future: the job waits for events until 2100-01-01 00:00:00 UTC "
        "(--to now ends at once)\n",
    )


def test_a_second_job_of_a_name_is_noted(jobs: Shell) -> None:
    named = ["--follow", "--dest-param", "friendlyName=twin"]
    first = launch(jobs, *named)
    seen = on_terminal(jobs, ["query", "from sample", "--from", "31/01/2024 00:00:00", "--dest", "donothing", *named])
    told = f"svcctl: 1 other job is named 'twin': {first[:8]} RUNNING; commands need the ID"
    assert (seen.code, seen.screen.splitlines()[-1]) == (0, told)
    done = jobs("query", "from sample", "--from", "2024-01-31", "--dest", "donothing", *named)
    assert (done.returncode, re.sub(r"[0-9a-f]{8} ", "ID ", done.stderr)) == (
        0,
        "svcctl: 2 other jobs are named 'twin': ID RUNNING, ID RUNNING; commands need the ID\n",
    )


def test_what_looks_like_a_mistake_is_noted_and_sent(jobs: Shell) -> None:
    more = ("--dest-param", "friendlynam=x", "--dest-param", "colour=red")
    done = jobs("query", "from sample", "--from", "1h", "--dest", "donothing", *more)
    assert done.returncode == 0
    assert done.stderr == (
        "svcctl: donothing has no parameter 'friendlynam' (sent anyway): did you mean 'friendlyName'?\n"
        "svcctl: donothing has no parameter 'colour' (sent anyway)\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dest-param", "a=b"], "--dest-param needs a destination"),
        (["--dest", "donothing", "--dest-param", "ab"], "--dest-param must be of the form K=V"),
        (["--dest", "donothing", "--output", "x"], "--output cannot be used with --dest: no rows come back"),
        (["--dest", "donothing", "--fail-on-empty"], "--fail-on-empty cannot be used with --dest: no rows come back"),
        (["--dest", "nosuch"], "unknown destination type 'nosuch'"),
        (["--dest", "kafka"], "kafka needs topic and bootstrap.servers"),
        (["--dest-json", "absent"], "the destination cannot be read from absent: No such file or directory"),
        (["--dest-json", "/dev/null"], "/dev/null is not a destination in JSON"),
        (["--dest", "donothing", "--to", "1"], "the range ends before it starts: from "),
    ],
)
def test_a_destination_that_cannot_be_meant_is_refused(shell: Shell, arguments: list[str], message: str) -> None:
    done = shell("query", "from t", "--from", "1h", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"svcctl: error: {message}")


@pytest.mark.slow
def test_no_secret_is_in_the_log_or_the_list(jobs: Shell) -> None:
    (jobs.home / "dest.json").write_text(
        json.dumps(
            {
                "aws.bucket": "b",
                "aws.endpoint": "http://127.0.0.1:1",
                "aws.accesskey": "AKID",
                "aws.secretkey": SECRET,
            }
        )
    )
    job_id = launch(jobs, "--follow", "--dest", "s3", "--dest-json", "dest.json")
    done = jobs("-v", "job", "wait", job_id, "--for", "COMPLETED", "--max-time", "5", "--keep-waiting")
    assert done.returncode == 6
    assert "127.0.0.1:1" in done.stderr
    shown = done.stdout + done.stderr + jobs("-v", "job", "list", "-f", "json").stdout
    assert SECRET not in shown + (jobs.home / "data" / "service.log").read_text()


# A service that answers with every error body of the field


@dataclass
class Scripted:
    """A server on which every request is answered alike."""

    status: int = 200
    type: str = "application/json"
    body: str = ""
    requests: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)


@pytest.fixture
def script() -> Iterator[Scripted]:
    """A service that says what the test says."""
    script = Scripted()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            script.requests.append(f"{self.command} {self.path}")
            self.send_response(script.status)
            self.send_header("Content-Type", script.type)
            self.send_header("Content-Length", str(len(script.body.encode())))
            self.end_headers()
            self.wfile.write(script.body.encode())

        do_DELETE = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()

    script.environment = {
        "SVCCTL_BASE_URL": f"http://127.0.0.1:{server.server_port}",
        "SVCCTL_API_KEY": "key",
        "SVCCTL_API_SECRET": "secret",
        "SVCCTL_RETRIES": "0",
    }
    yield script
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def scripted(shell: Shell, script: Scripted) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command against that service."""

    def run(
        *arguments: str, status: int, body: str, type: str = "application/json"
    ) -> subprocess.CompletedProcess[str]:
        script.status, script.body, script.type = status, body, type
        return shell("job", *arguments, **script.environment)

    return run


BODIES = [
    (400, '{"error":{"code":12,"message":"no such thing"}}', 1, "no such thing (code 12)"),
    (
        500,
        '{"msg":"it broke","status":500,"timestamp":1,"cid":"c1","object":["it broke","because of that"]}',
        1,
        "it broke: because of that (code 500, cid c1)",
    ),
    (500, '{"error":"server_error","status":500,"cid":"c2"}', 1, "server_error (code 500, cid c2)"),
    (
        400,
        '{"msg":"too much","code":624,"timestamp":1,"cid":"c3","context":{"limit":5}}',
        1,
        "too much (code 624, cid c3)",
    ),
    (
        400,
        '{"error":"Bad parameters","object":["406 : Date from not valid format"]}',
        1,
        "Bad parameters: Date from not valid format (code 406)",
    ),
    (200, '{"msg":"no job","status":100,"cid":"c4"}', 4, "no job (code 100, cid c4)"),
    (200, '{"msg":"cannot change status","status":101,"cid":"c5"}', 5, "cannot change status (code 101, cid c5)"),
    (200, '{"msg":"not running","status":108,"cid":"c6"}', 5, "not running (code 108, cid c6)"),
    (401, '{"msg":"who are you","status":1}', 3, "who are you (code 1)"),
]


@pytest.mark.parametrize(
    ("verb", "status", "body", "code", "message"),
    [("show", *row) for row in BODIES] + [(verb, *row) for verb in ("stop", "start", "rm") for row in BODIES[5:8]],
)
def test_every_error_body_has_its_code_and_message(
    scripted: Callable[..., subprocess.CompletedProcess[str]],
    verb: str,
    status: int,
    body: str,
    code: int,
    message: str,
) -> None:
    done = scripted(verb, "X", *(["--yes"] if verb == "rm" else []), status=status, body=body)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.split("\n")[0] == f"svcctl: error: {message}"


@pytest.mark.parametrize(("status", "code"), [(403, 3), (502, 6), (503, 6), (520, 6), (522, 6), (524, 6)])
def test_a_page_of_a_proxy_is_told_from_an_answer(
    scripted: Callable[..., subprocess.CompletedProcess[str]], status: int, code: int
) -> None:
    page = "<html><head><title>Go away</title></head><body>please</body></html>"
    done = scripted("show", "X", status=status, body=page, type="text/html")
    assert (done.returncode, done.stdout) == (code, "")
    assert "Go away" in done.stderr


@pytest.mark.parametrize("verb", ["start", "wait"])
def test_a_job_that_stopped_with_an_error_is_no_success(
    scripted: Callable[..., subprocess.CompletedProcess[str]], verb: str
) -> None:
    body = '{"status":0,"msg":"","object":{"id":"X","status":"STOPPED","error":["disk full"]}}'
    done = scripted(verb, "X", status=200, body=body)
    assert (done.returncode, done.stdout) == (1, "")
    assert "disk full" in done.stderr


def test_at_80_columns_an_error_is_whole_and_columns_that_are_left_out_are_named(
    shell: Shell, script: Scripted
) -> None:
    error = "kafka: no connection to 127.0.0.1:9092: Connection refused; the topic was written last at 10:00 (UTC)"
    counts = {"eventGenerated": 1_000_000, "eventsSent": 999_000, "lastDatetime": 1_700_000_000_000}
    names = {"type": "kafka", "friendlyName": "nightly-to-warehouse", "query": "from web.access where status = 500"}
    running = {"id": NOWHERE, "status": "RUNNING", **names, **counts}
    script.body = json.dumps({"status": 0, "object": [running | {"id": "X"}, running | {"error": [error]}]})
    narrow = Shell(shell.home, shell.variables | script.environment)
    seen = on_terminal(narrow, ["job", "list"], columns=80)
    lines = seen.screen.split("\n")
    assert (seen.code, lines[4].split()[1], lines[5]) == (0, "FAILING", f"  error: {error}")
    assert lines[0].startswith("svcctl: left out columns that do not fit: lastDatetime, query ")
    seen = on_terminal(narrow, ["job", "watch", "--interval", "0.1", "--max-time", "0.2"], columns=80)
    lines = seen.text.rpartition("\x1b[?1049l")[2].split("\n")
    assert (seen.code, lines[2].split()[1]) == (0, "FAILING")
    assert lines[0].split()[:6] == ["id", "status", "friendlyName", "lag", "eventsSent", "rate"]
    assert lines[3] + lines[4] == f"  error: {error}"
    assert lines[-2].endswith(" (UTC), no room for eventGenerated")
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(("verb", "status"), [("stop", "RUNNING"), ("start", "PAUSED"), ("rm", "STOPPED")])
def test_a_change_that_the_service_did_not_make_exits_5(
    scripted: Callable[..., subprocess.CompletedProcess[str]], verb: str, status: str
) -> None:
    body = json.dumps({"status": 0, "msg": "", "object": {"id": "X", "status": status, "error": []}})
    done = scripted(verb, "X", *["--yes"] * (verb == "rm"), status=200, body=body)
    assert (done.returncode, done.stdout) == (5, "")
    assert status in done.stderr


def test_an_error_that_is_an_object_is_shown_by_its_message_and_is_json_as_it_came(
    scripted: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    errors = [{"code": 3, "message": "boom"}, "plain", {"code": 4}]
    body = json.dumps({"status": 0, "object": [{"id": "A", "status": "RUNNING", "error": errors}]})
    assert 'boom; plain; {"code": 4}' in scripted("list", "-f", "table", status=200, body=body).stdout
    assert json.loads(scripted("list", "-f", "json", status=200, body=body).stdout)[0]["error"] == errors
    one = json.dumps({"status": 0, "object": {"id": "A", "status": "RUNNING", "error": errors}})
    done = scripted("wait", "A", status=200, body=one)
    assert (done.returncode, "boom; plain" in done.stderr) == (1, True)


def test_fields_may_be_absent_and_statuses_unknown(
    scripted: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    body = '{"status":0,"object":[{"id":"A","status":"RECONNECTING"},{"id":"B","status":"STOPPED","lastDatetime":0}]}'
    done = scripted("list", "-f", "csv", status=200, body=body)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "id,status,failing,type,friendlyName,eventGenerated,eventsSent,lastDatetime,error,query\n"
        "A,RECONNECTING,false,,,,,,[],\n"
        "B,STOPPED,false,,,,,0,[],\n"
    )
