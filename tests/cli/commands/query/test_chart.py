"""`svcctl query --chart` against the real service."""

from __future__ import annotations

import json

from support.shells import DAY, Shell

NOT_DRAWN = "svcctl: not drawn: most (--columns ok,most draws it)\n"
COUNTS = "from sample group by ok select count() as n, max(n) as most"


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


def test_rows_that_cannot_be_charted_end_in_a_usage_error(service: Shell) -> None:
    done = service("query", "from sample select name", *DAY, "--chart")
    assert (done.returncode, done.stdout, "name (str)" in done.stderr) == (2, "", True)


def test_a_chart_asks_for_the_same_as_a_table(shell: Shell) -> None:
    done = shell("query", "from sample select n", *DAY, "--chart", "--dry-run")
    assert json.loads(done.stdout[done.stdout.index("{") :])["mode"] == {"type": "json/simple/compact"}


def test_a_chart_without_rows_says_so_in_a_pipe_too(service: Shell) -> None:
    done = service("query", "from sample where false group by ok select count() as n", *DAY, "--chart")
    assert (done.returncode, done.stdout, "no rows" in done.stderr) == (0, "", True)
