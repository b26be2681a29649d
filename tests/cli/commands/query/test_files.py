"""`svcctl query --load`: files that are the table `file` for one query, with the real service."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.shells import OWN_FILE, Shell
from support.waiting import eventually

LOG = """\
10.0.0.1 - ana [31/Jan/2024:10:00:00 +0000] "GET /a HTTP/1.1" 200 512
10.0.0.2 - - [31/Jan/2024:10:00:09 +0000] "GET /b HTTP/1.1" 404 0
10.0.0.2 - - [31/Jan/2024:10:00:19 +0000] "GET /b HTTP/1.1" 500 0
"""
CSV = "time,n\n2024-01-31 10:00:00,1\n2024-01-31 10:00:09,2\n2024-01-31 10:00:19,x\n"
LARGE_ROWS = 300_000


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    """A shell with a service of its own, and files."""
    with tempfile.TemporaryDirectory(prefix="svcctl-") as home:
        shell = Shell(Path(home), {"SVCCTL_DEMO": "0", "TMPDIR": f"{home}/tmp", **OWN_FILE})
        (shell.home / "tmp").mkdir()
        files = {"access.log": LOG, "a.csv": CSV, "empty.csv": "", "mine.csv": "time,real\n2024-01-31 10:00:00Z,7\n"}
        for name, text in files.items():
            (shell.home / name).write_text(text)
        (shell.home / "access.log.gz").write_bytes(gzip.compress(LOG.encode()))
        assert shell("service", "start").returncode == 0
        assert shell("service", "load", "mine.csv", "--table", "file").returncode == 0
        yield shell
        shell("service", "stop")


@pytest.fixture(scope="module")
def large(shell: Shell) -> str:
    """A file that takes the service seconds to load."""
    start = datetime(2024, 1, 31)
    lines = (f"{start + timedelta(seconds=n // 10)},{-n},some text of event {n}\n" for n in range(LARGE_ROWS))
    (shell.home / "large.csv").write_text("time,n,text\n" + "".join(lines))
    return "large.csv"


def rows(shell: Shell, *arguments: str, stdin: str = "") -> list[str]:
    """The rows of a query of files, without the heading."""
    done = shell("query", *arguments, "-f", "csv", stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[1:]


def held(shell: Shell) -> list[Path]:
    """The directories of queries of files, and of loads."""
    return [*(shell.home / "tmp").glob("svcctl-*"), *(shell.home / "data").glob("svcctl-*")]


def test_a_file_is_queried_in_one_command_and_nothing_is_left(shell: Shell) -> None:
    query = "from file where statusCode >= 400 group by uri select count() as n"
    assert rows(shell, "--load", "access.log", query) == ["/b,2"]
    assert [row["name"] for row in shell.ndjson("tables") if row["name"] != "service.access"] == ["file"]
    assert rows(shell, "from file select real", "--from", "2024-01-01") == ["7"]
    eventually(lambda: not held(shell))


@pytest.mark.parametrize("source", ["access.log.gz", "-"])
def test_a_pipe_and_a_packed_file_are_read(shell: Shell, source: str) -> None:
    assert rows(shell, "--load", source, "from file select statusCode", stdin=LOG) == ["200", "404", "500"]


def test_standard_input_that_is_a_file_is_read_by_its_path(shell: Shell) -> None:
    query = ("query", "--load", "/dev/stdin", "from file select statusCode", "-f", "csv")
    with (shell.home / "access.log").open() as log, shell.start(*query, stdin=log, stdout=subprocess.PIPE) as process:
        assert process.communicate(timeout=30)[0] == b"statusCode\n200\n404\n500\n"


def test_a_file_may_be_called_file(shell: Shell) -> None:
    (shell.home / "file").write_text(LOG)
    assert len(rows(shell, "--load", "file", "from file")) == 3


def test_several_files_are_one_table(shell: Shell) -> None:
    query = "from file group select count() as n"
    assert rows(shell, "--load", "access.log", "--load", "access.log.gz", query) == ["6"]


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ((), ["1", "2", "x"]),
        (("--from", "2024-01-31T10:00:05"), ["2", "x"]),
        (("--to", "2024-01-31T10:00:09"), ["1"]),
        (("--from", "1h"), []),
        (("--types", "n=int8"), ["1", "2", ""]),
        (("--null", "x"), ["1", "2", ""]),
        (("--names", "time,n", "--header", "yes", "--load-format", "csv"), ["1", "2", "x"]),
        (("--sort", "n:desc", "--top", "1"), ["x"]),
    ],
)
def test_the_range_is_that_of_the_file_and_options_of_loads_apply(
    shell: Shell, options: tuple[str, ...], numbers: list[str]
) -> None:
    values = rows(shell, "--load", "a.csv", "from file", "--columns", "n", *options)
    assert [number.strip('"') for number in values] == numbers


@pytest.mark.parametrize(
    ("options", "hours", "epoch"),
    [
        ((), "10:00", 1706695200000),
        (("--time-zone", "Europe/Berlin"), "10:00", 1706691600000),
        (("--time-zone", "Europe/Berlin", "--load-time-zone", "UTC"), "11:00", 1706695200000),
        (("--load-time-zone", "GMT+2"), "08:00", 1706688000000),
    ],
)
def test_the_time_zone_is_that_of_dates_without_one_in_the_file_and_of_the_output(
    shell: Shell, options: tuple[str, ...], hours: str, epoch: int
) -> None:
    asked = ("query", "--load", "a.csv", "from file limit 1", *options)
    assert shell(*asked, "-f", "csv").stdout.splitlines()[1] == f"2024-01-31 {hours}:00.000,1"
    assert json.loads(shell(*asked, "-f", "ndjson").stdout)["eventdate"] == epoch


@pytest.mark.parametrize("options", [(), ("--from", "2024-01-01"), ("--to", "2099-01-01")])
@pytest.mark.parametrize("query", ["from file select n", "from file group every 1d select count() as n"])
def test_events_in_the_future_are_in_the_range_and_nobody_waits_for_them(
    shell: Shell, query: str, options: tuple[str, ...]
) -> None:
    text = f"time,n\n2024-01-31 10:00:00Z,1\n{datetime.now(UTC) + timedelta(days=400):%F} 10:00:00Z,2\n"
    assert len(rows(shell, "--load", "-", query, *options, stdin=text)) == 2


@pytest.mark.parametrize(("first", "count"), [("2024-01-31", 1), ("9999-12-31T23:59:59.999", 0)])
def test_a_note_tells_that_the_files_have_events_later_than_any_range(shell: Shell, first: str, count: int) -> None:
    lines = f"time,n\n{first},1\n9999-12-31T23:59:59.999Z,2\n"
    done = shell("query", "--load", "-", "from file select n", "-f", "csv", stdin=lines)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1 + count
    assert "the range ends at 5138-11-16 09:46:39 (UTC), and the files have later events" in done.stderr


def test_the_notes_of_a_load_are_on_stderr_also_with_quiet(shell: Shell) -> None:
    done = shell("-q", "query", "--load", "a.csv", "--types", "n=int8", "from file select n", "-f", "csv")
    assert (done.stdout, done.stderr) == (
        'n\n1\n2\n""\n',
        "svcctl: null in place of 1 value of n; the first: line 4: 'x' is not int8\n",
    )


@pytest.mark.parametrize(
    ("query", "options", "printed"),
    [
        ("from file where x = 1 group by uri select count() as n", ("-f", "csv"), "uri,n\n"),
        ("from file", ("-f", "ndjson"), ""),
        ("from file", ("-f", "csv", "--columns", "b,a", "--sort", "a"), "b,a\n"),
    ],
)
def test_a_file_without_events_gives_no_rows_and_a_note(
    shell: Shell, query: str, options: tuple[str, ...], printed: str
) -> None:
    done = shell("query", "--load", "empty.csv", query, *options)
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "svcctl: empty.csv has no events\n")


def test_a_file_without_events_has_no_chart_and_fails_where_rows_are_needed(shell: Shell) -> None:
    done = shell("query", "--load", "empty.csv", "from file group by uri select count() as n", "--chart")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "svcctl: empty.csv has no events\n")
    assert shell("query", "--load", "empty.csv", "from file", "-f", "csv", "--fail-on-empty").returncode == 8


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--load", "nope.log", "from file"), 2, "no file nope.log"),
        (("--load", ".", "from file"), 2, "is a directory"),
        (("--load", "access.log", "from access.log"), 2, "hint: write 'from file' in place of 'from access.log'"),
        (("--load", "access.log", "from web.access"), 4, "hint: begin it with: from file"),
        (("--load", "access.log", "from file whree x"), 1, "did you mean 'where'?"),
        (("--load", "access.log", "from file where uris = 1"), 1, "no column 'uris'"),
        (("--load", "access.log", "access.log", "from file"), 2, "hint: name each file with an option of its own"),
        (("--load", "a.csv", "--strict", "--types", "n=int8", "from file"), 2, "'x' is not int8"),
        (("--load", "a.csv", "--load-format", "zip", "from file"), 2, "unknown format 'zip'"),
        (("--load", "a.csv", "--time-zone", "local", "from file"), 2, "has no name"),
        (("--load", "-", "--load-format", "access"), 2, "the query cannot come from there"),
        (("--load", "/dev/stdin", "-F", "-"), 2, "the query cannot come from there"),
        (("--load", "a.csv", "from file", "--follow"), 2, "--load and --follow exclude each other"),
        (("--load", "a.csv", "from file", "--dest", "donothing"), 2, "--load and --dest exclude each other"),
        (("--load", "a.csv", "--query-id", "q"), 2, "--load and --query-id exclude each other"),
        (("--load", "a.csv", "from file", "--every", "5s"), 2, "--load and --every exclude each other"),
        (("--load", "a.csv", "from file", "--dry-run"), 2, "--load and --dry-run exclude each other"),
        (("--load", "a.csv", "from file", "--profile", "prod"), 2, "not that of --profile prod"),
        (("from file", "--from", "1h", "--strict"), 2, "--strict is for files"),
        (("from file", "--from", "1h", "--load-format", "csv"), 2, "--load-format is for files"),
        (("from file",), 2, "missing --from"),
    ],
)
def test_a_query_of_files_that_cannot_be_answered_is_refused(
    shell: Shell, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = shell("query", *arguments)
    assert (done.returncode, done.stdout, said in done.stderr) == (code, "", True), done.stderr


def test_hints_name_the_options_of_the_query(shell: Shell) -> None:
    (shell.home / "prose.txt").write_text("2024-01-31 10:00:00 a\n" + "words of prose\n" * 20)
    said = shell("query", "--load", "prose.txt", "from file").stderr
    assert "--load-format" in said, said
    (shell.home / "latin.csv").write_bytes(b"time,n\n2024-01-31 10:00:00,\xe4\n")
    assert "| svcctl query --load - …" in shell("query", "--load", "latin.csv", "from file").stderr


def test_the_local_service_is_asked_whatever_the_default_profile_is(shell: Shell) -> None:
    for name in ("SVCCTL_PROFILE", "SVCCTL_BASE_URL"):
        done = shell("query", "--load", "access.log", "from file", "-f", "csv", **{name: "https://svc.example"})
        assert done.returncode == 0, done.stderr


def test_two_queries_of_files_at_once_do_not_see_each_other(shell: Shell) -> None:
    def ask(file: str) -> list[str]:
        return rows(shell, "--load", file, "from file group select count() as n")

    with ThreadPoolExecutor(2) as both:
        assert list(both.map(ask, ("access.log", "mine.csv"))) == [["3"], ["1"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)]
)
@pytest.mark.parametrize("moment", ["load", "answer"])
def test_nothing_is_left_of_a_query_whose_client_ends(
    shell: Shell, large: str, sent: signal.Signals, code: int, moment: str
) -> None:
    process = shell.start(
        "query", "--load", large, "from file", "-f", "csv", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    if moment == "load":
        eventually(lambda: any("load" in path.name for path in held(shell)))
    else:
        assert process.stdout.readline() == b"eventdate,n,text\n"
    process.send_signal(sent)
    process.communicate(timeout=30)
    assert process.returncode == code
    eventually(lambda: not held(shell))


@pytest.mark.slow
def test_nothing_is_left_of_a_query_whose_service_is_killed_and_its_client_exits_6(shell: Shell, large: str) -> None:
    query = ("query", "--load", large, "from file", "-f", "csv", "--retries", "0")
    process = shell.start(*query, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    eventually(lambda: any("load" in path.name for path in held(shell)))
    shell.kill_service()
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 6, stderr
    assert shell("service", "start").returncode == 0
    assert not held(shell)


@pytest.mark.slow
def test_a_query_of_files_ends_after_its_max_time(shell: Shell, large: str) -> None:
    done = shell("query", "--load", large, "from file", "--max-time", "0.5s")
    assert (done.returncode, "within 0.5s" in done.stderr) == (6, True), done.stderr
    eventually(lambda: not held(shell))
