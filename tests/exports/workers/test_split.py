"""An answer for several windows: each row goes to the file of its window, or the answer is given up."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from support.scripted import Script, Serve, http

from svcctl.api.auth import Signature
from svcctl.api.client import Client
from svcctl.api.query import QueryRequest
from svcctl.api.response import MODES, QueryResponse
from svcctl.dates.zones import Zone, named_zone
from svcctl.errors import IncompleteResult
from svcctl.exports.windows import Window
from svcctl.exports.workers.fetch import TOGETHER, Fetched, Progress, Task, fetch
from svcctl.exports.workers.pace import Pace
from svcctl.exports.workers.split import Split, Unsplittable, object_edges, text_edges
from svcctl.storage.local import LocalStorage

START = 1_706_659_200
"""2024-01-31."""
WINDOW, WINDOWS = 10, 40
EXACT = "x-svc-errors: exact"


def tasks(format: str, zone: Zone | None = None, compression: str = "") -> tuple[Task, ...]:
    request = QueryRequest(START, START + 3600, "from x", mode={"ndjson": "json/simple"}.get(format, format))
    return tuple(
        Task(Window(start, start + WINDOW), request, format, f"{start - START:03}", compression, zone=zone, columns=())
        for start in range(START, START + WINDOW * WINDOWS, WINDOW)
    )


def run(script: Script, folder: Path, parts: tuple[Task, ...]) -> Fetched:
    window = Window(parts[0].window.start, parts[-1].window.end)
    first = parts[0]
    joined = Task(window, first.request, first.format, "", first.compression, zone=first.zone, columns=(), parts=parts)
    with Client(script.url, Signature("key", "secret"), retries=0, timeout=10) as client:
        return fetch(
            joined, client, LocalStorage(folder), Pace(), Progress(), threading.Event(), delay=lambda failures: 0.0
        )


def date(second: float, zone: timedelta = timedelta()) -> str:
    return (datetime.fromtimestamp(START + second, UTC) + zone).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def text(*seconds: float, zone: timedelta = timedelta()) -> str:
    return "eventdate,n\n" + "".join(f"{date(second, zone)},{second}\n" for second in seconds)


def objects(*dates: object) -> str:
    return "".join(f'{{"eventdate":{date},"n":1}}\n' for date in dates)


@pytest.mark.parametrize(("name", "zone"), [(None, timedelta()), ("GMT+5:30", timedelta(hours=5.5))])
def test_each_window_gets_its_rows_and_the_heading(
    serve: Serve, tmp_path: Path, name: str | None, zone: timedelta
) -> None:
    seconds = (0, 0.001, 9.999, 10, 25, 399.999)
    script = serve(http("200 OK", text(*seconds, zone=zone), "Content-Type: text/csv", EXACT))
    fetched = run(script, tmp_path, tasks("csv", named_zone(name) if name else None))
    for start in range(0, WINDOW * WINDOWS, WINDOW):
        inside = [second for second in seconds if start <= second < start + WINDOW]
        assert (tmp_path / f"{start:03}").read_text() == text(*inside, zone=zone)
    assert [entry.rows for entry in fetched.entries[:3]] == [3, 1, 1]
    assert [entry.window for entry in fetched.entries] == [task.window for task in tasks("csv")]
    assert WINDOWS > TOGETHER
    assert len(script.requests) == 1


def test_an_answer_without_rows_makes_empty_files(serve: Serve, tmp_path: Path) -> None:
    fetched = run(serve(http("200 OK", "", "Content-Type: application/json")), tmp_path, tasks("ndjson"))
    assert {(tmp_path / task.path).read_bytes() for task in tasks("ndjson")} == {b""}
    assert sum(entry.rows for entry in fetched.entries) == 0


MS = START * 1000


@pytest.mark.parametrize(
    ("format", "body", "headers"),
    [
        ("csv", text(1, 2), []),
        ("csv", text(11, 2), [EXACT]),
        ("csv", text(1, 2, 1000), [EXACT]),
        ("csv", text(-1, 2), [EXACT]),
        ("csv", "n,eventdate\n" + f"1,{date(1)}\n", [EXACT]),
        ("csv", "eventdate,n\n,1\n", [EXACT]),
        ("ndjson", objects(MS + 10_000, MS), []),
        ("ndjson", objects(MS, MS + 25_000, MS + 15_000, MS + 26_000), []),
        ("ndjson", objects(MS, MS + WINDOW * WINDOWS * 1000), []),
        ("ndjson", objects(MS - 1, MS), []),
        ("ndjson", objects("null", MS), []),
        ("ndjson", objects(f'"{MS}"'), []),
        ("ndjson", objects(START), []),
        ("ndjson", objects(MS * 1000), []),
        ("ndjson", objects(f"{MS}.5"), []),
        ("ndjson", objects(f" {MS}"), []),
        ("ndjson", f'{{"n":1,"eventdate":{MS}}}\n', []),
    ],
    ids=lambda value: None if isinstance(value, list) else str(value)[:60],
)
def test_an_answer_whose_rows_are_not_certain_is_given_up_at_once_and_leaves_nothing(
    serve: Serve, tmp_path: Path, format: str, body: str, headers: list[str]
) -> None:
    script = serve(http("200 OK", body, "Content-Type: text/plain", *headers))
    with pytest.raises(Unsplittable):
        run(script, tmp_path, tasks(format))
    assert (len(script.requests), list(tmp_path.iterdir())) == (1, [])


def test_a_broken_answer_is_requested_again_and_leaves_nothing_before(serve: Serve, tmp_path: Path) -> None:
    broken = http("200 OK", text(*range(400)), "Content-Type: text/csv", EXACT)[:-1000]
    whole = http("200 OK", text(*range(300)), "Content-Type: text/csv", EXACT)
    fetched = run(serve(broken, whole), tmp_path, tasks("csv"))
    assert (fetched.attempts, sum(entry.rows for entry in fetched.entries)) == (2, 300)
    assert (tmp_path / "390").read_text() == "eventdate,n\n"


def test_an_answer_that_stays_broken_leaves_no_file(serve: Serve, tmp_path: Path) -> None:
    broken = http("200 OK", text(*range(400)), "Content-Type: text/csv", EXACT)[:-1000]
    with pytest.raises(IncompleteResult):
        run(serve(*[broken] * 5), tmp_path, tasks("csv"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("later", [False, True], ids=["in the first row", "in the first row of a later window"])
def test_columns_that_a_table_has_gained_are_left_out_of_all_files(serve: Serve, tmp_path: Path, later: bool) -> None:
    more = f'{{"eventdate":{MS + 20_000},"n":1,"c":2}}\n'
    first = objects(MS) + more if later else more
    script = serve(
        *(http("200 OK", body, "Content-Type: application/json") for body in (first, objects(MS, MS + 20_000)))
    )
    progress = Progress(columns=("eventdate", "n"))
    parts = tasks("ndjson")
    joined = Task(Window(START, parts[-1].window.end), parts[0].request, "ndjson", "", columns=(), parts=parts)
    with Client(script.url, Signature("key", "secret"), retries=0, timeout=10) as client:
        fetched = fetch(joined, client, LocalStorage(tmp_path), Pace(), progress, threading.Event())
    assert (fetched.columns, fetched.left_out) == (("eventdate", "n"), ("c",))
    assert json.loads(script.requests[1][2])["query"] == "from x select `eventdate`, `n`"
    assert (tmp_path / "000").read_text() + (tmp_path / "020").read_text() == objects(MS, MS + 20_000)


def chunks(body: bytes, random: Random) -> Iterator[bytes]:
    while body:
        size = random.choice((1, 7, 100, 5000))
        yield body[:size]
        body = body[size:]


TEXTS = ("plain", '"a ""b"", c"', f'"two\n{date(5)},x\n"', '"\n\n"', "", '"{""eventdate"":1}"')


@pytest.mark.parametrize("seed", range(20))
def test_rows_of_any_text_in_pieces_of_any_size_go_to_their_windows(seed: int) -> None:
    random = Random(seed)
    edges = sorted(random.sample(range(0, 400, 5), random.choice((2, 3, 30))))
    windows = [Window(START + start, START + end) for start, end in pairwise(edges)]
    moments = sorted(random.choice(range(edges[0] * 1000, edges[-1] * 1000)) for _ in range(random.choice((0, 9, 500))))
    named = random.random() < 0.5
    rows = [objects(MS + moment) if named else f"{date(moment / 1000)},{random.choice(TEXTS)}\n" for moment in moments]
    body = ("" if named else "eventdate,t\n") + "".join(rows)
    mode = MODES["json/simple" if named else "csv"]
    answer = QueryResponse(mode, "text/plain", chunks(body.encode(), random), exact=not named)
    with Split(object_edges(windows) if named else text_edges(windows, None, None), lambda: None) as split:
        split.begin(answer, None)
        for number, block in enumerate(answer.raw()):
            if named or number:
                split.write(block)
        files = [(count, b"".join(pieces).decode()) for count, pieces in split.files()]
    for window, (count, written) in zip(windows, files, strict=True):
        start, end = ((moment - START) * 1000 for moment in (window.start, window.end))
        inside = [row for row, moment in zip(rows, moments, strict=True) if start <= moment < end]
        assert (count, written) == (len(inside), "".join(inside))
