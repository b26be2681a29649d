"""A query that is run again and again: in a pipe one answer after the other, on a terminal in one place."""

from __future__ import annotations

import json
import re

import pytest
from support.pseudo_terminal import on_terminal, screen
from support.scripted import Serve, http, ok
from support.shells import Shell

QUERY = ("query", "from t select n", "--from", "1h", "--every", "0.1")
REFUSAL = ok('{"msg":"no more","code":624,"timestamp":1,"cid":"c","context":{}}')
BUSY = http("503 Service Unavailable", "busy")


def rows(*numbers: int) -> bytes:
    lines = [{"m": {"n": {"type": "int4", "index": 0}}}, *({"d": [number]} for number in numbers)]
    return ok("".join(json.dumps(line) + "\n" for line in lines))


def test_in_a_pipe_answers_follow_one_another_with_one_heading_until_a_refusal(serve: Serve, shell: Shell) -> None:
    script = serve(ok("n\n1\n"), BUSY, ok("n\n2\n"), REFUSAL)
    done = shell(*QUERY, **script.access)
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "n\n1\n2\n",
        "svcctl: cannot refresh: the service answered HTTP 503: busy\nsvcctl: error: no more (code 624, cid c)\n",
    )
    sent = [json.loads(body) for _, _, body in script.requests]
    assert [request["from"] for request in sent] == ["1h"] * 4


def test_a_table_in_a_pipe_is_printed_whole_each_time(serve: Serve, shell: Shell) -> None:
    done = shell(*QUERY, "-f", "table", "--sort", "n:desc", **serve(rows(1, 2), rows(3), REFUSAL).access)
    assert (done.returncode, done.stdout) == (1, "n\n-\n2\n1\n\nn\n-\n3\n\n")


def test_a_chart_without_rows_says_so_in_a_pipe(serve: Serve, shell: Shell) -> None:
    query = ("query", "from t group by k select count() as n", "--from", "2024-01-31", "--to", "1d", "--every", "0.1")
    empty = ok('{"m":{"k":{"type":"str","index":0},"n":{"type":"int8","index":1}}}\n')
    done = shell(*query, "--chart", **serve(empty, REFUSAL).access)
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        "svcctl: no rows from 2024-01-31 00:00:00 to 2024-02-01 00:00:00 (UTC)\n"
        "svcctl: error: no more (code 624, cid c)\n",
    )


def test_a_terminal_shows_each_answer_in_one_place_and_is_restored(serve: Serve, shell: Shell) -> None:
    script = serve(rows(1), BUSY, rows(2), REFUSAL)
    seen = on_terminal(shell, *QUERY, "--no-header", typed=b"", **script.access)
    other, rest = seen.text.split("\x1b[?25h\x1b[?1049l")
    begin, *frames = re.sub(r" +\n", "\n", other).split("\x1b[?25l\x1b[H")
    assert (seen.code, begin[:11], screen(begin), len(frames)) == (1, "\x1b[?1049h\x1b[H", "", 3)
    assert frames[0].startswith("1\nevery 0.1s: 1 row, 20")
    assert frames[1].startswith("1\ncannot refresh: the service answered HTTP 503: busy; every 0.1s: ")
    assert frames[2].startswith("2\nevery 0.1s: 1 row, 20")
    frame, way_out, _ = frames[2].partition("q or Ctrl-C leaves this screen")
    assert (way_out, rest) == (
        "q or Ctrl-C leaves this screen",
        frame + "svcctl: \x1b[31merror:\x1b[0m no more (code 624, cid c)\n",
    )


def test_a_terminal_whose_cursor_cannot_move_gets_one_answer_after_the_other(serve: Serve, shell: Shell) -> None:
    seen = on_terminal(shell, *QUERY, typed=b"", TERM="dumb", **serve(rows(1), rows(2), REFUSAL).access)
    first, second, rest = seen.text.split("\n\n")
    assert "\x1b" not in seen.text
    assert first.startswith("n\n-\n1\nevery 0.1s: 1 row, 20")
    assert second.startswith("n\n-\n2\nevery 0.1s: 1 row, 20")
    assert rest == "svcctl: error: no more (code 624, cid c)\n"


def test_a_terminal_names_the_rows_that_top_shows_of_all(serve: Serve, shell: Shell) -> None:
    script = serve(rows(1, 2, 3), REFUSAL)
    seen = on_terminal(shell, *QUERY, "--sort", "n:desc", "--top", "2", typed=b"", TERM="dumb", **script.access)
    assert seen.text.startswith("n\n-\n3\n2\nevery 0.1s: 2 of 3 rows, 20")


def test_the_first_failure_ends_it_and_max_time_is_a_success(serve: Serve, shell: Shell) -> None:
    done = shell(*QUERY, **serve(BUSY).access)
    assert (done.returncode, done.stderr) == (6, "svcctl: error: the service answered HTTP 503: busy\n")
    done = shell(*QUERY, "--every", "1h", "--max-time", "0.5", **serve(ok("n\n1\n")).access)
    assert (done.returncode, done.stdout, done.stderr) == (0, "n\n1\n", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--follow",), "--every and --follow exclude each other"),
        (("-o", "x.csv"), "--every and --output exclude each other"),
        (("--dest", "donothing"), "--every cannot be used with --dest: no rows come back"),
        (("-f", "xls"), "--every cannot be combined with format xls: a file can have only one such document"),
        (("--every", "soon"), "--every 'soon' cannot be used: it is not a length such as 90, 30s, 5m, 1h30m or 1d"),
        (("--every", "0"), "--every '0' cannot be used: it must be at least 0.1s"),
    ],
)
def test_options_of_a_single_answer_are_refused(shell: Shell, options: tuple[str, ...], message: str) -> None:
    done = shell(*QUERY, *options)
    assert (done.returncode, done.stdout, done.stderr.splitlines()[0]) == (2, "", f"svcctl: error: {message}")
