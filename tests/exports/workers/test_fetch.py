"""One window: how often it is asked for, when, and what an attempt that fails leaves."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import gettempdir

import pytest
from support.limits import files_of_at_most
from support.scripted import Script, Serve, head, http
from support.tls import ENDINGS, tls_service

from svcctl.api.auth import Signature
from svcctl.api.client import Client
from svcctl.api.query import QueryRequest
from svcctl.dates.zones import named_zone
from svcctl.errors import IncompleteResult, InternalError, SvcctlError, Unavailable, UnprovenEnd
from svcctl.exports.record import ExportedFile
from svcctl.exports.windows import Window
from svcctl.exports.workers.fetch import Fetched, Progress, Task, fetch
from svcctl.exports.workers.pace import Pace, RequestTurns
from svcctl.exports.workers.spool import Spool, Unstored
from svcctl.storage.local import LocalStorage

# What the errors say, each once; the tests state their kind.
WORDS = {
    "a full disk": "cannot write {tmp_path}/part.csv: File too large",
    "a full temporary directory": "cannot write to the temporary directory {gettempdir}: File too large",
    "other columns": "the result is incomplete: its columns changed",
}
HINTS = {
    "a full temporary directory": "make room there, or set TMPDIR to another directory",
}

WINDOW = Window(600, 1200)
CSV = "Content-Type: text/csv"
AUTH = Signature("key", "secret")
ROWS = "a,b\n" + "1,2\n" * 1000


def task(**changes: object) -> Task:
    given = {"format": "csv", "path": "part.csv", "part_of": "all.csv", "retries": 2} | changes
    return Task(**{"window": WINDOW, "request": QueryRequest(0, 3600, "from x", mode="csv")} | given)  # type: ignore[arg-type]


def run(
    script: Script,
    folder: Path,
    task: Task,
    pace: Pace | None = None,
    progress: Progress | None = None,
    verify: bool | str = True,
) -> Fetched:
    with Client(script.url, AUTH, retries=0, timeout=10, verify=verify) as client:
        return fetch(
            task,
            client,
            LocalStorage(folder),
            pace or Pace(),
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
    assert fetched.entry == ExportedFile(600, 1200, "part.csv", 2, 8, digest, fetched.entry.when)
    assert fetched.head == "a,b\n"
    assert (progress.rows, progress.bytes, progress.retries) == (2, 8, 0)
    assert b'"from":600,"to":1200' in script.requests[0][2]


@pytest.mark.parametrize(
    ("format", "before", "now"),
    [
        ("csv", "b,a\n2,1\n", "b,c,a,d\n2,3,1,4\n"),
        ("tsv", "b\ta\n2\t1\n", "b\tc\ta\td\n2\t3\t1\t4\n"),
        ("ndjson", '{"b":2,"a":1}\n', '{"b":2,"c":3,"a":1,"d":4}\n'),
    ],
)
def test_columns_that_a_table_has_gained_are_left_out(
    serve: Serve, tmp_path: Path, format: str, before: str, now: str
) -> None:
    """The answer with all columns is given up before a row of it is stored, and the columns to keep are requested."""
    mode = {"ndjson": "json/simple"}.get(format, format)
    asked = task(format=format, columns=("b", "a"), request=QueryRequest(0, 3600, "from x where a > 0", mode=mode))
    script = serve(http("200 OK", now, "Content-Type: text/plain"), http("200 OK", before, "Content-Type: text/plain"))
    fetched = run(script, tmp_path, asked)
    assert (fetched.columns, fetched.left_out, fetched.entry.rows) == (("b", "a"), ("c", "d"), 1)
    assert (tmp_path / "part.csv").read_text() == before.removeprefix("b,a\n").removeprefix("b\ta\n")
    queries = [json.loads(body)["query"] for _, _, body in script.requests]
    assert queries == ["from x where a > 0", "from x where a > 0 select `b`, `a`"]


@pytest.mark.parametrize("columns", [None, ("a", "c")])
def test_columns_are_those_of_the_answer_if_the_query_names_them_or_one_is_gone(
    serve: Serve, tmp_path: Path, columns: tuple[str, ...] | None
) -> None:
    script = serve(http("200 OK", "a,b\n1,2\n", CSV))
    fetched = run(script, tmp_path, task(columns=columns))
    assert (fetched.head, fetched.left_out, len(script.requests)) == ("a,b\n", (), 1)


def test_the_first_window_decides_the_columns_of_a_run(serve: Serve, tmp_path: Path) -> None:
    script, progress = serve(*(http("200 OK", text, CSV) for text in ("a\n1\n", "a,b\n1,2\n", "a\n1\n"))), Progress()
    for left_out in ((), ("b",)):
        assert run(script, tmp_path, task(columns=()), progress=progress).left_out == left_out


@pytest.mark.parametrize(
    ("format", "mode", "answers"),
    [
        ("parquet", "json/simple/compact", (http("200 OK"), head("204 No Content"), http("200 OK", "{}\n"))),
        ("ndjson", "json/simple", (http("200 OK", "null\n"), head("204 No Content"), http("200 OK", "{}\n"))),
    ],
)
def test_an_answer_without_a_result_is_no_window_without_rows(
    serve: Serve, tmp_path: Path, format: str, mode: str, answers: tuple[bytes, ...]
) -> None:
    script = serve(*answers)
    with pytest.raises(Unavailable):
        run(script, tmp_path, task(format=format, request=QueryRequest(0, 3600, "from x", mode=mode)))
    assert (len(script.requests), list(tmp_path.iterdir())) == (3, [])


SUNDAY = Window(1_792_879_200, 1_792_969_200)
"""The 25th of October 2026 in Berlin, whose clocks go back at 01:00 UTC."""


def sunday(**changes: object) -> Task:
    given = {"request": QueryRequest(0, 1, "from x", mode="csv"), "zone": named_zone("Europe/Berlin"), "plain": True}
    return replace(task(), window=SUNDAY, **(given | changes))  # type: ignore[arg-type]


def asked(script: Script) -> list[tuple[int, int, str]]:
    """The range and the offset of each request."""
    bodies = [json.loads(body) for _, _, body in script.requests]
    return [(body["from"], body["to"], body["timeZone"]) for body in bodies]


BEFORE, AFTER = (http("200 OK", f"eventdate,n\n{row}\n", CSV) for row in ("02:59:59,1", "02:00:00,2"))
TWO_REQUESTS = [
    (SUNDAY.start, 1_792_890_000, "GMT+2"),
    (1_792_890_000, SUNDAY.end, "GMT+1"),
]


@pytest.mark.parametrize("whole", [True, False])
def test_plain_rows_of_a_window_whose_offset_changes_are_asked_for_in_two_requests_for_one_part(
    serve: Serve, tmp_path: Path, whole: bool
) -> None:
    script = serve(BEFORE, AFTER)
    fetched = run(script, tmp_path, sunday(part_of=None if whole else "all.csv"))
    assert asked(script) == TWO_REQUESTS
    rows = "02:59:59,1\n02:00:00,2\n"
    assert (tmp_path / "part.csv").read_text() == ("eventdate,n\n" if whole else "") + rows
    assert (fetched.entry.window, fetched.entry.rows, fetched.head) == (SUNDAY, 2, "eventdate,n\n")


def test_a_retry_begins_with_the_first_request_of_its_window(serve: Serve, tmp_path: Path) -> None:
    script = serve(BEFORE, http("503 Unavailable", ""), BEFORE, AFTER)
    fetched = run(script, tmp_path, sunday(part_of=None))
    assert asked(script) == TWO_REQUESTS * 2
    assert (fetched.attempts, fetched.entry.rows) == (2, 2)
    assert (tmp_path / "part.csv").read_text() == "eventdate,n\n02:59:59,1\n02:00:00,2\n"


def test_groups_of_a_window_whose_offset_changes_are_asked_for_in_one_request(serve: Serve, tmp_path: Path) -> None:
    script = serve(BEFORE)
    run(script, tmp_path, sunday(plain=False))
    assert asked(script) == [(SUNDAY.start, SUNDAY.end, "GMT+2")]


def test_a_window_without_events_has_no_part(serve: Serve, tmp_path: Path) -> None:
    fetched = run(serve(http("200 OK", "a,b\n", CSV)), tmp_path, task())
    assert fetched.entry == ExportedFile(600, 1200, "", 0, 0, "", fetched.entry.when)
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
        fetched = fetch(
            task(), client, LocalStorage(tmp_path), Pace(clock=lambda: now, chance=lambda: 0.25), Progress(), Over()
        )
    assert (fetched.attempts, [round(wait, 3) for wait in waits]) == (2, [7.1])


BUSY = http("429 Slow", "", "Retry-After: 0")


def test_a_refusal_costs_no_retry_while_an_older_request_is_answered(serve: Serve, tmp_path: Path) -> None:
    answer = http("200 OK", "a,b\n1,2\n", CSV)
    pace, other = Pace(chance=lambda: 0.0), Progress()
    with pace.turns():  # another window's request
        fetched = run(serve(*[BUSY] * 9, answer), tmp_path, task(), pace, other)
    assert (fetched.attempts, other.retries) == (10, 9)


def test_refusals_are_counted_in_a_row_until_another_window_is_fetched() -> None:
    pace = Pace()
    turns = pace.turns()

    def refused() -> int:
        with suppress(Unavailable), turns:
            raise Unavailable("refused")
        return turns.refused()

    assert [refused(), refused()] == [1, 2]
    with pace.turns():
        pass
    assert [refused(), refused()] == [0, 1]


def test_after_a_pause_a_request_that_was_just_refused_comes_last() -> None:
    pace, stopping, asked = Pace(chance=lambda: 0.0), threading.Event(), list[int]()
    pace.hold(0.1)

    def worker(number: int) -> None:
        for _ in range(3):
            assert pace.wait(stopping)
            asked.append(number)
            pace.hold(0.05)

    with ThreadPoolExecutor(4) as pool:
        for one in [pool.submit(worker, number) for number in range(4)]:
            one.result()
    assert sorted(asked[:4]) == [0, 1, 2, 3]
    assert asked == asked[:4] * 3


def test_every_second_request_refused_at_random_uses_no_windows_retries_up() -> None:
    """Four workers come back from each pause in any order, as they do when all wait for the same Retry-After."""
    random, pace, in_a_row = Random(31), Pace(), []
    workers, costs = [pace.turns() for _ in range(4)], Counter[RequestTurns]()
    for _ in range(720):
        for turns in random.sample(workers, 4):
            if random.random() < 0.5:
                with turns:
                    pass
                workers[workers.index(turns)] = pace.turns()
                continue
            with suppress(Unavailable), turns:
                raise Unavailable("refused")
            in_a_row.append(turns.refused())
            costs[turns] += in_a_row[-1] > 0
    assert (max(in_a_row), max(costs.values())) == (3, 6)


def test_a_service_that_refuses_all_requests_uses_the_retries_up(serve: Serve, tmp_path: Path) -> None:
    script = serve(BUSY)
    pace = Pace(chance=lambda: 0.0)
    with ThreadPoolExecutor(4) as pool:
        refused = [pool.submit(run, script, tmp_path, task(path=f"{one}.csv"), pace) for one in range(4)]
        for one in refused:
            with pytest.raises(Unavailable):
                one.result()
    assert len(script.requests) >= 12


@pytest.mark.parametrize(
    ("answer", "error", "asked"),
    [
        *((http(f"{status} No", "<h1>No</h1>"), Unavailable, 3) for status in (408, 425, 502, 503, 520, 527, 529, 530)),
        *((http(f"{status} No", "<h1>No</h1>"), Unavailable, 1) for status in (500, 501, 507, 525, 526)),
        (http("503 No", "{}"), Unavailable, 3),
        (http("500 No", '{"msg":"failed","status":500}'), InternalError, 1),
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


def test_an_answer_that_may_have_been_cut_is_asked_for_again(pem: Path, tmp_path: Path) -> None:
    answer = head("200 OK", CSV) + b"a,b\n1,2\n"
    whole = http("200 OK", "a,b\n1,2\n3,4\n", CSV)
    with tls_service(pem, ENDINGS["close"], answer, answer, whole, answer) as script:
        fetched = run(script, tmp_path, task(), verify=str(pem))
        assert (fetched.attempts, (tmp_path / "part.csv").read_text()) == (3, "1,2\n3,4\n")
        with pytest.raises(UnprovenEnd):
            run(script, tmp_path, task(path="other.csv"), verify=str(pem))
    assert [path.name for path in tmp_path.iterdir()] == ["part.csv"]


def test_a_disk_that_is_full_is_an_error_at_once(serve: Serve, tmp_path: Path) -> None:
    script = serve(http("200 OK", ROWS, CSV))
    with files_of_at_most(1000), pytest.raises(IncompleteResult) as caught:
        run(script, tmp_path, task())
    assert caught.value.message == WORDS["a full disk"].format(tmp_path=tmp_path)
    assert (len(script.requests), list(tmp_path.iterdir())) == (1, [])


def test_a_temporary_directory_that_is_full_is_an_error_at_once() -> None:
    with files_of_at_most(1 << 20), Spool() as spool, pytest.raises(Unstored) as caught:
        spool.write(bytes(1 << 22))
    assert caught.value.message == WORDS["a full temporary directory"].format(gettempdir=gettempdir())
    assert caught.value.hint == HINTS["a full temporary directory"]


def test_columns_that_change_between_the_requests_of_a_window_are_an_error(serve: Serve, tmp_path: Path) -> None:
    script = serve(BEFORE, http("200 OK", "eventdate,m\n02:00:00,2\n", CSV))
    with pytest.raises(IncompleteResult) as caught:
        run(script, tmp_path, sunday(retries=0))
    assert (caught.value.message, caught.value.rows) == (WORDS["other columns"], 1)
    assert list(tmp_path.iterdir()) == []
