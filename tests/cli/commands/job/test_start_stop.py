"""`svcctl job` as an operator uses it: names and beginnings of IDs, failing jobs, restarts, questions.

The service and its jobs run in this process. What is scripted is the delivery: a kafka job never reaches its broker,
and a job named `done` has delivered all.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator

import httpx
import pytest
from support.reseller import KEY, SECRET, Done, Machine, Reseller, command_line
from support.stored_queries import stored_query
from support.typed import type_in

from svcctl.api.models import JobStatus
from svcctl.service.accounts import accounts, seed
from svcctl.service.accounts.accounts import Account
from svcctl.service.jobs import job_table
from svcctl.service.jobs.checkpoint import JobProgress
from svcctl.service.jobs.job_table import StoredJob
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.jobs.runner import JobRun
from svcctl.service.state.store import Store

NIGHTLY, OTHER = "3f2a41c0-0000-4000-8000-000000000001", "3f2a41c0-0000-4000-8000-000000000002"
STOPPED, COMPLETED = "beef0000-0000-4000-8000-000000000003", "cafe0000-0000-4000-8000-000000000004"
ACCOUNT = Account(KEY, SECRET, None, "", reseller=seed.RESELLER)
UNKNOWN = "00000000-0000-4000-8000-000000000000"
REFUSED = "kafka: Connection refused"
VERBS = ("show", "stop", "start", "restart", "rm", "wait", "watch")
STOPS = f"GET /search/job/stop/{NIGHTLY}"


class Deliveries:
    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)

    def __call__(self, job: StoredJob, run: JobRun) -> bool:
        done = job.friendly_name == "done"
        if done:
            run.save(JobProgress(4, 1_706_745_600_000))
        elif job.type == "kafka":
            run.trouble(REFUSED)
        self.begun.release()
        return done or not run.stopping.wait()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    directory = tmp_path_factory.mktemp("jobs")
    store = Store(directory / "state.db")
    accounts.put(store, ACCOUNT)
    yield Machine(store, directory)
    store.close()


@pytest.fixture
def job(place: Machine, capsys: pytest.CaptureFixture[str]) -> Iterator[Reseller]:
    """Runs `svcctl job` where one job is failing, one runs, one is stopped and one is complete."""
    for job_id, status, type_, name in (
        (COMPLETED, JobStatus.COMPLETED, "donothing", "done"),
        (OTHER, JobStatus.RUNNING, "donothing", "other"),
        (STOPPED, JobStatus.STOPPED, "donothing", "resting"),
        (NIGHTLY, JobStatus.RUNNING, "kafka", "nightly"),
    ):
        job_table.add(place.store, StoredJob(job_id, ACCOUNT.owner, status, type_, name, "from t", stored_query(), {}))
    deliveries = Deliveries()
    jobs = Jobs(place.store, deliveries)
    jobs.settle()
    for _ in range(2):
        assert deliveries.begun.acquire(timeout=10)
    run = command_line(place, capsys, jobs)
    yield lambda *arguments, **options: run("job", *arguments, **options)
    jobs.close()
    for one in job_table.owned(place.store, ACCOUNT.owner):
        job_table.remove(place.store, one.id)


def has_read_everything(place: Machine, job_id: str) -> None:
    """Make a job one that has read all events up to now, and long after that."""
    job = job_table.get(place.store, job_id)
    assert job is not None
    job_table.reach(place.store, job_id, job.fence, 4_102_444_800_000)


def requests(done: Done) -> list[str]:
    return [f"{method} {path}" for method, path, _ in done.sent]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (NIGHTLY, [STOPS]),
        ("nightly", ["GET /search/jobs", STOPS]),
        (NIGHTLY[:-5], ["GET /search/jobs"]),
        (NIGHTLY[:-5].upper(), ["GET /search/jobs"]),
        ("3f", ["GET /search/jobs"]),
        ("cafe", ["GET /search/jobs", f"GET /search/job/stop/{COMPLETED}"]),
        ("nope", ["GET /search/jobs", "GET /search/job/stop/nope"]),
    ],
)
def test_the_list_is_requested_only_for_what_is_no_whole_id(job: Reseller, given: str, sent: list[str]) -> None:
    assert requests(job("stop", given)) == sent


def test_what_may_mean_several_jobs_is_refused_before_anything_is_done(job: Reseller) -> None:
    for verb in VERBS:
        done = job(verb, "resting", "3f2a", answers=["y"])
        assert (done.code, done.stdout, requests(done)) == (2, "", ["GET /search/jobs"]), verb
        assert {OTHER, NIGHTLY} <= {*done.stderr.split()}, verb


def test_an_unknown_job_exits_4_and_the_hint_says_where_jobs_are(job: Reseller) -> None:
    for verb in VERBS:
        for given in ("nope", UNKNOWN):
            done = job(verb, given, *(["--yes"] if verb == "rm" else []))
            assert (done.code, done.stdout) == (4, ""), verb
            assert given in done.stderr, verb
            assert "'svcctl job list'" in done.stderr.split("\n")[1], verb


def test_a_name_that_is_mistyped_is_suggested(job: Reseller) -> None:
    for verb in VERBS:
        done = job(verb, "nightley", *(["--yes"] if verb == "rm" else []))
        assert (done.code, "'nightly'" in done.stderr.split("\n")[1]) == (4, True), verb


def test_a_table_has_failing_jobs_first_and_short_ids_that_every_command_takes(job: Reseller) -> None:
    listed = job("list", "-f", "tsv")
    assert [line.split("\t")[0] for line in listed.stdout.split("\n")] == ["id", COMPLETED, OTHER, STOPPED, NIGHTLY, ""]
    listed = job("list", "-f", "table")
    rows = [line.split() for line in listed.stdout.split("\n")[2:-1]]
    assert [row[1:3] for row in rows] == [
        ["FAILING", "nightly"],
        ["COMPLETED", "done"],
        ["RUNNING", "other"],
        ["STOPPED", "resting"],
    ]
    shown = job("show", *(row[0] for row in rows), "-f", "ndjson")
    assert [json.loads(line)["id"] for line in shown.stdout.split("\n")[:-1]] == [NIGHTLY, COMPLETED, OTHER, STOPPED]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--failing"], [NIGHTLY]),
        (["--status", "failing"], [NIGHTLY]),
        (["--status", "running"], [OTHER, NIGHTLY]),
        (["--status", "STOPPED,completed"], [COMPLETED, STOPPED]),
        (["--type", "Kafka"], [NIGHTLY]),
        (["--type", "s3"], []),
        (["--sort", "friendlyName:desc", "--top", "2"], [STOPPED, OTHER]),
        (["--sort", "status,friendlyName"], [COMPLETED, NIGHTLY, OTHER, STOPPED]),
    ],
)
def test_a_list_is_narrowed_and_sorted(job: Reseller, options: list[str], ids: list[str]) -> None:
    done = job("list", "--ids", *options)
    assert (done.code, done.stdout.split(), done.stderr) == (0, ids, "")


@pytest.mark.parametrize(
    ("option", "stderr"),
    [
        (("--status", "STOPED"), "there is no state 'STOPED'\nhint: did you mean 'STOPPED'?\n"),
        (
            ("--status", "stopped,nonsense"),
            "there is no state 'nonsense'\nhint: states are RUNNING, STOPPED, COMPLETED, REMOVED, FAILING\n",
        ),
        (
            ("--sort", "name"),
            "no column 'name'\nhint: did you mean 'friendlyName'? columns are: id, status, failing, type, "
            "friendlyName, eventGenerated, eventsSent, lastDatetime, error, query, lag\n",
        ),
        (
            ("--columns", "id"),
            "--columns has no effect on --ids, which prints only IDs\nhint: leave out one of the two\n",
        ),
        (("-f", "json"), "--format has no effect on --ids, which prints only IDs\nhint: leave out one of the two\n"),
        (("--type", "nope"), "there is no type 'nope'\nhint: types are Kafka, S3, HDFS, donothing\n"),
    ],
)
def test_a_list_of_a_state_or_type_that_is_none_is_refused(job: Reseller, option: tuple[str, str], stderr: str) -> None:
    done = job("list", "--ids", *option)
    assert (done.code, done.stdout, done.stderr) == (2, "", f"svcctl: error: {stderr}")


def test_a_job_that_a_person_stopped_is_not_failing_even_with_an_error(place: Machine, job: Reseller) -> None:
    job_table.move(place.store, STOPPED, JobStatus.STOPPED, JobStatus.RUNNING)
    job_table.end(place.store, STOPPED, 0, JobStatus.STOPPED, (REFUSED,))
    assert job("list", "--ids", "--failing").stdout.split() == [NIGHTLY]


def test_a_command_that_changes_a_job_wants_more_than_a_few_characters_of_its_id(job: Reseller) -> None:
    for verb in ("stop", "start", "restart", "rm"):
        done = job(verb, "caf", *(["--yes"] if verb == "rm" else []))
        assert (done.code, done.stdout, requests(done)) == (2, "", ["GET /search/jobs"]), verb
        assert COMPLETED in done.stderr.split()
    assert job("show", "caf").code == 0


def test_a_list_without_rows_says_so_on_a_terminal(job: Reseller, reseller: Reseller) -> None:
    for arguments, stderr in (
        (["domain", "list", "-f", "table"], "svcctl: no domains\n"),
        (["job", "list", "-f", "table"], "svcctl: no jobs\n"),
        (["job", "list", "-f", "csv"], ""),
    ):
        done = reseller(*arguments, terminal=True, answer=lambda _: httpx.Response(200, json=[]))
        assert (done.code, done.stderr) == (0, stderr)
    assert job("list", "--status", "REMOVED", "-f", "csv", terminal=True).stderr == ""


def test_a_failing_job_that_is_stopped_says_why_it_failed_until_it_is_started(job: Reseller) -> None:
    assert job("stop", "nightly").code == 0
    assert json.loads(job("show", NIGHTLY, "-f", "json").stdout)["error"] == [REFUSED]
    listed = job("list", "--status", "STOPPED", "--columns", "friendlyName,error", "-f", "tsv")
    assert listed.stdout == f'friendlyName\terror\nresting\t[]\nnightly\t"[""{REFUSED}""]"\n'
    done = job("restart", "nightly")
    assert [word in done.stderr for word in (NIGHTLY, "STOPPED", REFUSED)] == [True] * 3


def test_waiting_for_a_job_that_has_no_end_says_so_once(place: Machine, job: Reseller) -> None:
    has_read_everything(place, OTHER)
    done = job("wait", "other", "--max-time", "1")
    assert (done.code, done.stderr.count("new events"), done.stderr.count("\n")) == (6, 1, 2)
    assert job("wait", "other", "--for", "RUNNING").stderr == ""


def test_a_restart_tells_the_error_that_it_clears(job: Reseller) -> None:
    done = job("restart", "nightly", STOPPED, COMPLETED, "-f", "csv")
    assert [line.split(",")[:2] for line in done.stdout.split("\n")[1:-1]] == [
        [NIGHTLY, "RUNNING"],
        [STOPPED, "RUNNING"],
        [COMPLETED, "COMPLETED"],
    ]
    told, unchanged = done.stderr.split("\n")[:-1]
    assert (done.code, REFUSED in told, NIGHTLY in told, COMPLETED in unchanged) == (0, True, True, True)
    assert requests(done)[1:] == [
        f"GET /search/job/{NIGHTLY}",
        STOPS,
        f"GET /search/job/start/{NIGHTLY}",
        f"GET /search/job/{STOPPED}",
        f"GET /search/job/start/{STOPPED}",
        f"GET /search/job/{COMPLETED}",
    ]


@pytest.mark.parametrize(
    ("verb", "id", "status"),
    [
        ("stop", STOPPED, "STOPPED"),
        ("start", OTHER, "RUNNING"),
        ("start", COMPLETED, "COMPLETED"),
        ("stop", COMPLETED, "COMPLETED"),
    ],
)
def test_if_needed_makes_a_change_of_a_job_idempotent(job: Reseller, verb: str, id: str, status: str) -> None:
    done = job(verb, id, "--if-needed", "-f", "csv")
    assert (done.code, done.stdout.split("\n")[1].split(",")[:2]) == (0, [id, status])
    assert (id in done.stderr, "error" in done.stderr) == (True, False)


def test_a_change_of_several_jobs_says_on_a_terminal_how_many_it_made(job: Reseller) -> None:
    for arguments, changed in (
        (("restart", "nightly", COMPLETED), "restarted 1 of 2 jobs"),
        (("stop", "nightly", "other"), "stopped 2 of 2 jobs"),
        (("start", "nightly", COMPLETED, "--if-needed"), "started 1 of 2 jobs"),
        (("rm", "other", "nope", "--yes"), "removed 1 of 2 jobs"),
    ):
        assert job(*arguments, terminal=True).stderr.split("\n")[-2] == f"svcctl: {changed}"
    done = job("stop", "nightly", "resting", "done", terminal=True)
    assert (done.code, done.stderr.count("error"), "1 of 3" in done.stderr) == (5, 1, True)


@pytest.mark.parametrize("format", ["table", "vertical", "json", "csv"])
def test_the_jobs_that_are_there_are_printed_though_another_one_is_not(job: Reseller, format: str) -> None:
    for verb, name in (("show", "other"), ("stop", "other"), ("start", "other"), ("rm", "resting")):
        done = job(verb, name, "nope", *["--yes"] * (verb == "rm"), "-f", format)
        found = re.findall(f"{OTHER[:8]}|{STOPPED[:8]}|RUNNING|STOPPED|REMOVED", done.stdout)
        status = {"stop": "STOPPED", "rm": "REMOVED"}.get(verb, "RUNNING")
        assert (done.code, found) == (4, [(STOPPED if verb == "rm" else OTHER)[:8], status]), verb


def test_quiet_silences_the_note_that_there_is_nothing_to_do(job: Reseller) -> None:
    for arguments in (("restart", COMPLETED), ("stop", COMPLETED, "--if-needed"), ("stop", STOPPED, "--if-needed")):
        done = job(*arguments, "-q", terminal=True)
        assert (done.code, done.stderr) == (0, ""), arguments


@pytest.mark.parametrize(("terminal", "stderr"), [(True, "svcctl: no IDs: nothing done\n"), (False, "")])
def test_a_list_without_jobs_is_nothing_to_do(
    job: Reseller, monkeypatch: pytest.MonkeyPatch, terminal: bool, stderr: str
) -> None:
    type_in(monkeypatch, b"id,status\n")
    done = job("stop", "-", terminal=terminal)
    assert (done.code, done.stdout, done.stderr, done.sent) == (0, "", stderr, [])


def test_the_question_before_a_removal_names_the_jobs(job: Reseller) -> None:
    done = job("rm", "nightly", answers=["n"])
    assert (done.code, done.questions) == (130, [f"Remove job {NIGHTLY}  FAILING  nightly?"])
    done = job("rm", "nightly", COMPLETED, answers=["n"])
    assert done.questions == [
        f"Jobs:\n  {NIGHTLY}  FAILING  nightly\n  {COMPLETED}  COMPLETED  done\nRemove these 2 jobs?"
    ]
    done = job("rm", STOPPED, "-f", "csv", answers=["y"])
    assert (done.code, done.stdout.split("\n")[1].split(",")[:2]) == (0, [STOPPED, "REMOVED"])


def test_nothing_is_removed_and_nobody_is_asked_when_one_of_the_jobs_is_unknown(job: Reseller) -> None:
    done = job("rm", "nightly", "nightley", UNKNOWN, answers=["y"], terminal=True)
    assert (done.code, done.questions) == (4, [])
    assert [word in done.stderr for word in ("'nightly'", UNKNOWN)] == [True, True]
    assert NIGHTLY in job("list", "--ids").stdout


def test_a_removal_passes_over_jobs_that_are_not_there_if_it_may(job: Reseller) -> None:
    done = job("rm", "nope", "resting", "--if-needed", "--yes", "-f", "csv")
    assert (done.code, "nope" in done.stderr) == (0, True)
    assert done.stdout.split("\n")[1].split(",")[:2] == [STOPPED, "REMOVED"]
    done = job("rm", STOPPED, "--if-needed")
    assert (done.code, done.stdout, STOPPED in done.stderr) == (0, "", True)


def test_without_a_terminal_a_removal_is_refused_before_anything_changes(job: Reseller) -> None:
    done = job("rm", "nightly")
    assert (done.code, requests(done), "--yes" in done.stderr) == (2, ["GET /search/jobs"], True)
    done = job("rm", NIGHTLY, OTHER)
    assert (done.code, requests(done), "--yes" in done.stderr) == (2, ["GET /search/jobs"], True)
    assert job("rm", "nightley").code == 4


@pytest.mark.parametrize(
    ("arguments", "code", "stderr"),
    [
        (
            ["other", "--for", "nonsense"],
            2,
            "svcctl: error: there is no state 'nonsense'\nhint: states are RUNNING, STOPPED, COMPLETED, REMOVED\n",
        ),
        (
            ["other", "--for", "completed,failing"],
            2,
            "svcctl: error: FAILING is no state to wait for: it is a running job with an error\n"
            "hint: without it, 'svcctl job wait' fails as soon as a job reports an error\n",
        ),
        (["other", "--for", "runing"], 2, "svcctl: error: there is no state 'runing'\nhint: did you mean 'RUNNING'?\n"),
        (
            ["other", "--for", ","],
            2,
            "svcctl: error: ',' names no state\nhint: states are RUNNING, STOPPED, COMPLETED, REMOVED\n",
        ),
        (["other", "--for", "paused,running"], 0, ""),
        (
            ["nightly", "--for", "RUNNING", "--max-time", "0.001", "--keep-waiting"],
            6,
            f"svcctl: job {NIGHTLY} is FAILING and reports: {REFUSED} (still waiting)\n"
            f"svcctl: error: job {NIGHTLY} is FAILING ({REFUSED}), not RUNNING, and the time is up\n",
        ),
        (
            ["nightly"],
            1,
            f"svcctl: error: job {NIGHTLY} is FAILING and reports: {REFUSED}\n"
            "hint: --keep-waiting waits until it recovers\n",
        ),
    ],
)
def test_waiting_knows_its_states_and_tells_errors(job: Reseller, arguments: list[str], code: int, stderr: str) -> None:
    done = job("wait", *arguments)
    assert (done.code, done.stderr) == (code, stderr)


def test_a_job_that_is_shown_alone_is_one_json_object(job: Reseller) -> None:
    assert json.loads(job("show", "other", "-f", "json").stdout)["id"] == OTHER
    assert job("show", "other", "-f", "ndjson", "--columns", "id").stdout == f'{{"id":"{OTHER}"}}\n'
    several = json.loads(job("show", "other", "resting", "-f", "json").stdout)
    assert [one["id"] for one in several] == [OTHER, STOPPED]


# What the commands say: each text is here once, and the tests above state what happens.

LIST = "hint: list the jobs with 'svcctl job list'"
MEANT = "hint: did you mean 'nightly'?"
WORDS: dict[tuple[str, ...], str] = {
    ("show", "3f2a"): (
        f"svcctl: error: 2 job IDs begin with '3f2a': {OTHER} other, {NIGHTLY} nightly\nhint: give more of the ID\n"
    ),
    ("stop", "nope"): f"svcctl: error: no job nope (code 100)\n{LIST}\n",
    ("watch", "nope"): f"svcctl: error: no job nope\n{LIST}\n",
    ("show", "nightley"): f"svcctl: error: no job nightley (code 100)\n{MEANT}\n",
    ("stop", "caf"): (
        f"svcctl: error: 'caf' is too short for a command that changes a job: {COMPLETED[:8]} done\n"
        f"hint: give at least 4 characters, or the ID: {COMPLETED}\n"
    ),
    ("list", "--status", "REMOVED", "-f", "table"): "svcctl: none of 4 jobs\n",
    ("restart", "nightly", COMPLETED): (
        f"svcctl: job {NIGHTLY} was FAILING with the error: {REFUSED}\n"
        f"svcctl: nothing to do: job {COMPLETED} is COMPLETED\n"
        "svcctl: restarted 1 of 2 jobs\n"
    ),
    ("stop", "resting", "done", "nightly"): (
        f"svcctl: error: job {STOPPED} is STOPPED: only a running job can be stopped (code 108)\n"
        "hint: --if-needed allows that\n"
        f"svcctl: nothing to do: job {COMPLETED} is COMPLETED\n"
        "svcctl: stopped 1 of 3 jobs\n"
    ),
    ("stop", STOPPED, "--if-needed"): (
        f"svcctl: nothing to do: job {STOPPED} is STOPPED: only a running job can be stopped\n"
    ),
    ("start", OTHER, "--if-needed"): f"svcctl: nothing to do: job {OTHER} is already running\n",
    ("rm", "nightley", UNKNOWN): (
        f"svcctl: error: no job nightley (code 100)\n{MEANT}\n"
        f"svcctl: error: no job {UNKNOWN} (code 100)\n{LIST}\n"
        "svcctl: nothing was removed\n"
    ),
    ("rm", "nope", "--if-needed"): "svcctl: nothing to do: no job nope\n",
    ("rm", "nightly"): (
        f"svcctl: error: this needs confirmation: Remove job {NIGHTLY}  FAILING  nightly?\nhint: add --yes\n"
    ),
    ("rm", NIGHTLY, OTHER): "svcctl: error: this needs confirmation: Remove 2 jobs?\nhint: add --yes\n",
}


@pytest.mark.parametrize("arguments", [*WORDS], ids=" ".join)
def test_what_a_command_of_jobs_says(job: Reseller, arguments: tuple[str, ...]) -> None:
    assert job(*arguments, terminal=True).stderr == WORDS[arguments]


def test_what_is_said_of_a_job_that_was_stopped_with_an_error_or_waits_for_events(
    place: Machine, job: Reseller
) -> None:
    said = {
        "restart": f"svcctl: job {NIGHTLY} was STOPPED with the error: {REFUSED}\n",
        "wait": f"svcctl: job {OTHER} has read all events up to now: "
        "it waits for new events, until the end of its range, or for ever if it was launched with --follow\n"
        f"svcctl: error: job {OTHER} is RUNNING, not COMPLETED, and the time is up\n",
    }
    assert job("stop", "nightly").code == 0
    has_read_everything(place, OTHER)
    for verb, arguments in (("restart", ["nightly"]), ("wait", ["other", "--max-time", "0.001"])):
        assert job(verb, *arguments).stderr == said[verb]
