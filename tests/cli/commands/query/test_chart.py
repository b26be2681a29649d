"""`svcctl query --columns` and `--chart` against the real service."""

from __future__ import annotations

import json

import pytest
from support.shells import Shell

DAY = ("--from", "2024-01-31", "--to", "1d")
NOT_DRAWN = "svcctl: not drawn: most (--columns ok,most draws it)\n"
COUNTS = "from sample group by ok select count() as n, max(n) as most"


def test_columns_are_chosen_and_ordered(service: Shell) -> None:
    done = service("query", "from sample", *DAY, "--format", "table", "--columns", "ok, n")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n") == [
        "ok                    n",
        "-----  ----------------",
        "true                  1",
        "false  9007199254740993",
        "null                 -3",
        "true               null",
        "",
    ]
    done = service("query", "from sample limit 1", *DAY, "--format", "vertical", "--columns", "n")
    assert done.stdout == "row 1\nn  1\n"


def test_a_column_whose_name_holds_a_comma_is_quoted(service: Shell) -> None:
    query = "from sample select round(x, 1) as `x, rounded`, ok limit 1"
    done = service("query", query, *DAY, "-f", "vertical", "--columns", 'ok,"x, rounded"')
    assert (done.stdout, done.stderr) == ("row 1\nok          true\nx, rounded  0.5\n", "")


def test_an_unknown_column_is_reported_with_the_nearest_first(service: Shell) -> None:
    for option in ("--columns", "--sort"):
        done = service("query", "from sample", *DAY, "-f", "table", option, "ok,nmae")
        assert (done.returncode, done.stdout, "'name'? columns are: eventdate, " in done.stderr) == (2, "", True)


@pytest.mark.parametrize("columns", ["", "a,", ",", "a,,b"])
def test_a_missing_name_is_refused(shell: Shell, columns: str) -> None:
    done = shell("query", "from sample", *DAY, "-f", "table", "--columns", columns)
    assert (done.returncode, f"--columns '{columns}'" in done.stderr) == (2, True)


def test_columns_hold_for_follow_too(service: Shell) -> None:
    service("service", "status")  # an event of the table, if it is the first
    query = ("query", "from service.access", "--from", "1h", "--follow", "--limit", "1")
    done = service(*query, "-f", "vertical", "--columns", "uri")
    assert (done.returncode, done.stdout.split("/")[0], done.stdout.count("\n")) == (0, "row 1\nuri  ", 2)


def test_a_chart_in_a_pipe_is_bars_with_their_numbers(service: Shell) -> None:
    for option in ("--chart",), ("--format", "chart"), ("--chart", "-f", "chart"):
        done = service("query", COUNTS, *DAY, *option)
        assert (done.returncode, done.stderr) == (0, NOT_DRAWN)
        assert done.stdout.split("\n") == [
            "n by ok",
            "false  1  " + "#" * 35,
            "true   2  " + "#" * 70,
            "null   1  " + "#" * 35,
            "",
        ]


def test_the_columns_of_a_chart_can_be_chosen(service: Shell) -> None:
    done = service("query", COUNTS, *DAY, "--chart", "--columns", "ok,most")
    assert done.stdout.split("\n")[0] == "most by ok"


def test_a_chart_goes_to_a_file_as_in_a_pipe(service: Shell) -> None:
    done = service("query", COUNTS, *DAY, "--chart", "-o", "chart.txt", "--color", "always")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", NOT_DRAWN)
    assert (service.home / "chart.txt").read_text().split("\n")[1] == "false  1  " + "#" * 35


def test_buckets_are_charted_over_time(service: Shell) -> None:
    query = ("query", "from sample group every 1s select count() as n", *DAY, "--chart", "--time-zone", "GMT+2")
    assert service(*query).stdout.split("\n") == [
        "n by eventdate (GMT+2)",
        "(no rows in 43,200 periods)",
        *(f"2024-01-31 12:00:0{second}  1  " + "#" * 56 for second in range(4)),
        "(no rows in 43,196 periods)",
        "",
    ]
    colored = service(*query, "--color", "always").stdout
    assert "\x1b[36m⠁\x1b[0m" in colored
    assert "00:00" in colored


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        (("--chart", "-f", "csv"), "--chart and --format csv exclude each other", "leave out one of them"),
        (
            ("--chart", "--follow"),
            "--follow cannot be combined with format chart, which needs the end of the result",
            "formats for --follow are: table, vertical, csv, tsv, ndjson, json/simple, json/simple/compact",
        ),
    ],
)
def test_what_a_chart_cannot_be_joined_with(shell: Shell, options: tuple[str, ...], message: str, hint: str) -> None:
    done = shell("query", "from sample", "--from", "1d", *options)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"svcctl: error: {message}\nhint: {hint}\n")


def test_rows_that_cannot_be_charted_end_in_a_usage_error(service: Shell) -> None:
    done = service("query", "from sample select name", *DAY, "--chart")
    assert (done.returncode, done.stdout, "name (str)" in done.stderr) == (2, "", True)


def test_a_chart_asks_for_the_same_as_a_table(shell: Shell) -> None:
    done = shell("query", "from sample select n", *DAY, "--chart", "--dry-run")
    assert json.loads(done.stdout[done.stdout.index("{") :])["mode"] == {"type": "json/simple/compact"}
