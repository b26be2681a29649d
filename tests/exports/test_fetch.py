"""One window: how often it is asked for, when, and what an attempt that fails leaves."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from tempfile import gettempdir

import pytest
from support.limits import files_of_at_most
from support.scripted import Script, Serve, head, http

from svcctl.api.auth import Signature
from svcctl.api.client import Client
from svcctl.api.query import QueryRequest
from svcctl.errors import IncompleteResult, SvcctlError, Unavailable
from svcctl.exports.fetch import Fetched, Progress, Task, fetch
from svcctl.exports.manifest import Entry
from svcctl.exports.pace import Pace
from svcctl.exports.windows import Window
from svcctl.storage.local import Local

WINDOW = Window(600, 1200)
CSV = "Content-Type: text/csv"
AUTH = Signature("key", "secret")
ROWS = "a,b\n" + "1,2\n" * 1000


def task(**changes: object) -> Task:
    given = {"format": "csv", "path": "part.csv", "retries": 2} | changes
    return Task(WINDOW, QueryRequest(0, 3600, "from x", mode="csv"), **given)  # type: ignore[arg-type]


def run(
    script: Script, folder: Path, task: Task, pace: Pace | None = None, progress: Progress | None = None
) -> Fetched:
    with Client(script.url, AUTH, retries=0, timeout=10) as client:
        return fetch(
            task,
            client,
            Local(folder),
            Pace(),
            progress or Progress(),
            threading.Event(),
            delay=lambda failures: 0.0,
        )


def test_a_window_is_its_rows_without_the_heading(serve: Serve, tmp_path: Path) -> None:
    script = serve(http("200 OK", "a,b\n1,2\n3,4\n", CSV))
    progress = Progress()
    fetched = run(script, tmp_path, task(), progress=progress)
    assert (tmp_path / "part.csv").read_text() == "1,2\n3,4\n"
    digest = hashlib.sha256(b"1,2\n3,4\n").hexdigest()
    assert fetched.entry == Entry(600, 1200, "part.csv", 2, 8, digest, fetched.entry.seconds, 1)
    assert fetched.head == "a,b\n"
    assert (progress.rows, progress.bytes, progress.retries) == (2, 8, 0)
    assert b'"from":600,"to":1200' in script.requests[0][2]


def test_a_window_without_events_has_no_part(serve: Serve, tmp_path: Path) -> None:
    fetched = run(serve(http("200 OK", "a,b\n", CSV)), tmp_path, task())
    assert fetched.entry == Entry(600, 1200, "", 0, 0, "", fetched.entry.seconds, 1)
    assert list(tmp_path.iterdir()) == []


def test_one_retry_after_slows_all_workers(serve: Serve, tmp_path: Path) -> None:
    now = 100.0
    waits = []

    class Over(threading.Event):
        """Notes how long it is waited for, which is a request's turn, and then lets that time pass."""

        def wait(self, timeout: float | None = None) -> bool:
            nonlocal now
            assert timeout is not None
            waits.append(timeout)
            now += timeout
            return False

    script = serve(http("429 Slow", "", "Retry-After: 7"), http("200 OK", "a,b\n1,2\n", CSV))
    with Client(script.url, AUTH, retries=0, timeout=10) as client:
        fetched = fetch(task(), client, Local(tmp_path), Pace(clock=lambda: now), Progress(), Over())
    assert (fetched.entry.attempts, waits) == (2, [7.0])


@pytest.mark.parametrize(
    ("answer", "error", "asked"),
    [
        (http("503 No", "{}"), Unavailable, 3),
        (head("200 OK", CSV, "Content-Length: 100") + b"a,b\n1,2\n", IncompleteResult, 3),
        (http("400 No", '{"msg":"no table x","status":400}'), SvcctlError, 1),
    ],
)
def test_only_what_may_pass_is_asked_again(
    serve: Serve, tmp_path: Path, answer: bytes, error: type[SvcctlError], asked: int
) -> None:
    script = serve(answer)
    progress = Progress()
    with pytest.raises(error):
        run(script, tmp_path, task(), progress=progress)
    assert (len(script.requests), progress.rows, progress.bytes) == (asked, 0, 0)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_is_an_error_at_once(serve: Serve, tmp_path: Path) -> None:
    script = serve(http("200 OK", ROWS, CSV))
    with files_of_at_most(1000), pytest.raises(IncompleteResult) as caught:
        run(script, tmp_path, task())
    assert caught.value.message == f"cannot write {tmp_path}/part.csv: File too large"
    assert (len(script.requests), list(tmp_path.iterdir())) == (1, [])


def test_a_temporary_directory_that_is_full_is_an_error_at_once(serve: Serve, tmp_path: Path) -> None:
    script = serve(http("200 OK", "a,b\n" + "1,2\n" * (1 << 21), CSV))
    with files_of_at_most(1 << 20), pytest.raises(IncompleteResult) as caught:
        run(script, tmp_path, task(most=1 << 22))
    assert caught.value.message == f"cannot write to the temporary directory {gettempdir()}: File too large"
    assert caught.value.hint == "make room there, or set TMPDIR to another directory"
    assert (len(script.requests), list(tmp_path.iterdir())) == (1, [])
