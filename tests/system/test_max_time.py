"""--max-time bounds a whole command: silence, a trickle, retries, and the pause that a service asks for."""

import io
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.scripted import Serve, head, http, ok

from svcctl.cli.context import Context
from svcctl.cli.main import run
from svcctl.terminal.diagnostics import Diagnostics

# What is said on stderr when the time is up, each text once.
WORDS = {
    "a far Retry-After": (
        "svcctl: the service answered HTTP 503; attempt 2 of 5 in 1m\n"
        "svcctl: error: the service answered HTTP 503; --max-time 0.5s is over\n"
        "hint: give it longer with --max-time, or ask for less\n"
    ),
    "attempts that failed": (
        "svcctl: error: no answer from {place}: Connection refused; --max-time 1s is over\n"
        "hint: find out why with 'svcctl profile check'\n"
    ),
    "an answer without an end": (
        "svcctl: error: the result is incomplete after 1s\nhint: give it longer with --max-time, or ask for less\n"
    ),
    "a request without an end": "svcctl: error: no complete answer within 1s\n",
    "a far Retry-After that is followed": (
        "svcctl: the service answered HTTP 503; attempt 2 of 5 in 1m\n"
        "svcctl: error: the service answered HTTP 503; --max-time 0.5s is over\n"
        "hint: give it longer with --max-time\n"
    ),
}

# A connection that the alarm interrupts is closed by the end of the process, which a test does not reach.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

QUERY = ("query", "from t", "--from", "1h", "-f", "csv")
FAR = http("503 Busy", "", "Retry-After: 100")
SOON = 15
"""Seconds that a command may take which would take a hundred without its limit."""


@dataclass(frozen=True)
class Done:
    code: int
    stdout: str
    stderr: str


@pytest.fixture
def svcctl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Runs a command against a URL, in this process: starting another one would take part of its time."""

    def command(url: str, *arguments: str) -> Done:
        stderr = io.StringIO()
        environment = {"SVCCTL_CONFIG": str(tmp_path / "none"), "SVCCTL_BASE_URL": url, "SVCCTL_TOKEN": "t"}
        started = time.monotonic()
        context = Context(diagnostics=Diagnostics(stderr), environment=environment | {"SVCCTL_AUTH": "token"})
        code = run([*arguments], context)
        assert time.monotonic() - started < SOON
        return Done(code, capsys.readouterr().out, stderr.getvalue())

    return command


Svcctl = Callable[..., Done]


class Trickle:
    """An answer that begins and never ends; it is sent until `over` is set."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces
        self.over = threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces
        while not self.over.wait(0.05):
            yield b"1,2\n"


@pytest.fixture
def trickle() -> Iterator[list[bytes]]:
    class Pieces(list[bytes]):
        """A list for the scripted service, which sends lists piece by piece."""

        answer = Trickle(head("200 OK"), b"a,b\n")

        def __iter__(self) -> Iterator[bytes]:
            return iter(self.answer)

    pieces = Pieces()
    yield pieces
    pieces.answer.over.set()


def test_a_far_retry_after_does_not_outlast_it(serve: Serve, svcctl: Svcctl, tmp_path: Path) -> None:
    done = svcctl(serve(FAR).url, *QUERY, "--max-time", "0.5")
    assert (done.code, done.stdout, done.stderr) == (
        6,
        "",
        WORDS["a far Retry-After"],
    )


def test_the_reason_of_attempts_that_failed_outlasts_quiet(svcctl: Svcctl) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    done = svcctl(f"http://{place}", *QUERY, "--max-time", "1", "-q")
    assert (done.code, done.stderr) == (
        6,
        WORDS["attempts that failed"].format(place=place),
    )


def test_an_answer_that_does_not_end_is_incomplete_and_leaves_no_file(
    serve: Serve, svcctl: Svcctl, tmp_path: Path, trickle: list[bytes]
) -> None:
    done = svcctl(serve(trickle).url, *QUERY, "--max-time", "1", "-o", str(tmp_path / "rows.csv"))
    assert (done.code, done.stdout, done.stderr) == (
        7,
        "",
        WORDS["an answer without an end"],
    )
    assert list(tmp_path.glob("rows*")) == []


def test_a_request_of_any_kind_has_a_limit(serve: Serve, svcctl: Svcctl, tmp_path: Path, trickle: list[bytes]) -> None:
    done = svcctl(serve(trickle).url, "api", "GET", "/x", "--max-time", "1", "-o", str(tmp_path / "rows.csv"))
    assert (done.code, done.stdout, done.stderr) == (7, "", WORDS["a request without an end"])
    assert list(tmp_path.glob("rows*")) == []


def test_an_answer_in_time_is_not_disturbed(serve: Serve, svcctl: Svcctl, tmp_path: Path) -> None:
    done = svcctl(serve(http("200 OK", "a,b\n1,2\n")).url, *QUERY, "--max-time", "30")
    assert (done.code, done.stdout, done.stderr) == (0, "a,b\n1,2\n", "")


def test_no_time_at_all_is_refused(serve: Serve, svcctl: Svcctl, tmp_path: Path) -> None:
    assert svcctl(serve(FAR).url, *QUERY, "--max-time", "0").code == 2


@pytest.mark.slow
def test_follow_whose_time_is_up_while_it_reconnects_keeps_its_file_and_says_since_when_events_are_missing(
    serve: Serve, svcctl: Svcctl, tmp_path: Path
) -> None:
    columns = '{"m":{"n":{"type":"int4","index":0},"eventdate":{"type":"timestamp","index":1}}}\n'
    script = serve(http("200 OK", columns + '{"d":[1,1]}\n'), FAR)
    rows = tmp_path / "rows.ndjson"
    done = svcctl(script.url, "query", "from t", "--from", "1h", "--follow", "--max-time", "2", "-o", str(rows))
    assert (done.code, rows.read_text()) == (7, '{"n":1,"eventdate":1}\n')
    assert re.fullmatch(
        "svcctl: error: the result is incomplete: there has been no connection since "
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC",
        done.stderr.splitlines()[-1],
    )


def test_follow_that_is_never_answered_leaves_no_file(serve: Serve, svcctl: Svcctl, tmp_path: Path) -> None:
    command = ("query", "from t", "--from", "1h", "--follow", "--max-time", "0.5", "-o", str(tmp_path / "rows.csv"))
    done = svcctl(serve(FAR).url, *command)
    assert (done.code, done.stderr) == (
        6,
        WORDS["a far Retry-After that is followed"],
    )
    assert list(tmp_path.glob("rows*")) == []


@pytest.mark.slow
def test_waiting_for_a_job_ends_although_the_service_asks_for_patience(
    serve: Serve, svcctl: Svcctl, tmp_path: Path
) -> None:
    job = '{"status":0,"object":{"id":"a","status":"RUNNING"}}'
    done = svcctl(serve(ok(job), FAR).url, "job", "wait", "a", "b", "--max-time", "1")
    assert (done.code, done.stdout) == (6, "")
    assert done.stderr.endswith("svcctl: error: the service answered HTTP 503; --max-time 1s is over\n"), done.stderr


def test_an_export_stops_and_the_next_run_resumes_it(serve: Serve, svcctl: Svcctl, tmp_path: Path) -> None:
    script = serve(http("200 OK", "a,b\n1,2\n"), FAR)
    command = (
        "export",
        "from t",
        "--from",
        "1700006400",
        "--to",
        "1700017200",
        "--workers",
        "1",
        "-o",
        str(tmp_path / "rows.csv"),
    )
    done = svcctl(script.url, *command, "--max-time", "1")
    assert (done.code, done.stderr.splitlines()[-2:]) == (
        7,
        [
            "svcctl: error: the export is not complete after 1s: the service answered HTTP 503",
            "hint: the same command again fetches only what is missing",
        ],
    )
    assert not (tmp_path / "rows.csv").exists()
    asked = len(script.requests)
    script.answers[:] = [http("200 OK", "a,b\n1,2\n")]
    done = svcctl(script.url, *command)
    assert (done.code, done.stderr.split()[1]) == (0, "rows=3"), done.stderr
    assert len(script.requests) - asked == 2


def late(seconds: float, body: bytes) -> Iterator[bytes]:
    """An answer that begins after so many seconds."""
    time.sleep(seconds)
    yield head("200 OK")
    yield body


EMPTY = b"\x81\xa6object\x90"


@pytest.mark.parametrize(("format", "code", "requests"), [("msgpack", 0, 1), ("csv", 6, 2)])
def test_an_answer_that_begins_when_all_of_it_is_there_is_asked_for_once_however_long_it_takes(
    serve: Serve, svcctl: Svcctl, tmp_path: Path, format: str, code: int, requests: int
) -> None:
    script = serve(late(0.5, EMPTY), late(0.5, EMPTY))
    options = ("-f", format, "--timeout", "0.2", "--retries", "1", "-o", str(tmp_path / "rows"))
    assert svcctl(script.url, *QUERY[:-2], *options).code == code
    assert len(script.requests) == requests


@pytest.mark.slow
def test_max_time_bounds_the_wait_for_an_answer_that_begins_when_all_of_it_is_there(
    serve: Serve, svcctl: Svcctl, tmp_path: Path
) -> None:
    url = serve(late(3, EMPTY)).url
    done = svcctl(url, *QUERY[:-2], "-f", "xls", "--max-time", "0.3", "-o", str(tmp_path / "rows"))
    assert done.code == 6
    assert list(tmp_path.glob("rows*")) == []
