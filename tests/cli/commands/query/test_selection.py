"""`svcctl query` with --columns, --sort and --top against the real service."""

from __future__ import annotations

import pytest
from support.shells import DAY, Shell

EVERY = "eventdate,name,n,x,ok"


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


def test_naming_all_columns_changes_no_byte(service: Shell) -> None:
    for format in ("csv", "tsv", "ndjson", "table", "vertical"):
        for dates in ((), ("--date-format", "iso", "--time-zone", "GMT-3:30")):
            if not (format == "ndjson" and dates):
                whole = service("query", "from sample", *DAY, "-f", format, *dates)
                selected = service("query", "from sample", *DAY, "-f", format, *dates, "--columns", EVERY)
                assert (selected.stdout, selected.stderr) == (whole.stdout, "")


def test_rows_are_sorted_and_the_first_are_printed_in_every_format(service: Shell) -> None:
    printed = {
        "csv": "x,n\n10000000000.0,-3\n2.25,\n",
        "tsv": "x\tn\n10000000000.0\t-3\n2.25\t\n",
        "ndjson": '{"x":10000000000.0,"n":-3}\n{"x":2.25,"n":null}\n',
        "json": '{"success":true,"msg":"","status":0,"object":['
        '\n{"x":10000000000.0,"n":-3},\n{"x":2.25,"n":null}\n]}\n',
        "table": "             x     n\n--------------  ----\n10000000000.0     -3\n          2.25  null\n",
        "vertical": "row 1\nx  10000000000.0\nn  -3\nrow 2\nx  2.25\nn  null\n",
    }
    for format, text in printed.items():
        done = service("query", "from sample", *DAY, "-f", format, "--sort", "x:desc", "--columns", "x,n", "--top", "2")
        assert (done.returncode, done.stdout, done.stderr) == (0, text, "")
    done = service("query", "from sample", *DAY, "--sort", "n", "--no-header", "--columns", "n")
    assert done.stdout == '-3\n1\n9007199254740993\n""\n'
    done = service("query", "from sample select n limit 1", *DAY, "--no-header")
    assert done.stdout == "1\n"


def test_a_limit_counts_the_rows_after_they_are_sorted(service: Shell) -> None:
    largest = ("query", "from sample select n", *DAY, "--sort", "n:desc", "-n", "1")
    done = service(*largest)
    assert (done.returncode, done.stdout, done.stderr) == (0, "n\n9007199254740993\n", "")
    assert "limit" not in service(*largest, "--dry-run").stdout
    done = service("query", "from sample select n limit 1", *DAY, "--sort", "n:desc")
    assert (done.stdout, "--top" in done.stderr) == ("n\n1\n", True)


@pytest.mark.parametrize("format", ["json/compact", "msgpack", "xml"])
def test_formats_that_only_a_service_writes_take_no_selection(shell: Shell, format: str) -> None:
    for option in (("--columns", "n"), ("--sort", "n"), ("--no-header",)):
        done = shell("query", "from sample", *DAY, "-f", format, *option)
        assert (done.returncode, done.stdout, f"{option[0]} cannot" in done.stderr) == (2, "", True)
