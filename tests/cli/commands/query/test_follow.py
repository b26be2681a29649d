"""`svcctl query --follow`: events as they are stored, once each, whatever happens to the service."""

import json
import random
import re
import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.pseudo_terminal import on_terminal
from support.shells import Shell
from support.waiting import eventually


def load(shell: Shell, table: str, events: list[dict[str, object]]) -> None:
    path = shell.home / f"{table}.ndjson"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    done = shell("service", "load", str(path), "--table", table)
    assert done.returncode == 0, done.stderr


def event(number: int, start: datetime, step: float = 0.01) -> dict[str, object]:
    return {"eventdate": (start + timedelta(seconds=number * step)).isoformat(timespec="milliseconds"), "n": number}


def recent(seconds: int) -> datetime:
    return datetime.now(UTC).replace(tzinfo=None, microsecond=0) - timedelta(seconds=seconds)


def lines(path: Path) -> list[str]:
    return path.read_text().split("\n")[:-1]


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("csv", ["n", "0", "1", "2", "3"]),
        ("tsv", ["n", "0", "1", "2", "3"]),
        ("ndjson", ['{"n":0}', '{"n":1}', '{"n":2}', '{"n":3}']),
        (
            "json/simple/compact",
            ['{"m":{"n":{"type":"int8","index":0}}}', '{"d":[0]}', '{"d":[1]}', '{"d":[2]}', '{"d":[3]}'],
        ),
        ("table", ["           n", "------------", *(f"           {n}" for n in range(4))]),
    ],
)
def test_new_events_are_printed_as_they_are_stored(
    service: Shell, tmp_path: Path, name: str, printed: list[str]
) -> None:
    table = f"live.{name.replace('/', '_')}"
    start = recent(600)
    load(service, table, [event(number, start) for number in range(2)])
    out = tmp_path / "rows"
    with out.open("wb") as stdout:
        query = f"from {table} select n"
        process = service.start("query", query, "--from", "1h", "--follow", "--limit", "4", "-f", name, stdout=stdout)
        eventually(lambda: len(lines(out)) == len(printed) - 2)
        load(service, table, [event(number, start) for number in (2, 3)])
        assert process.wait(20) == 0
    assert lines(out) == printed


def test_max_time_ends_it_with_success(service: Shell) -> None:
    done = service(
        "query", "from sample select n", "--from", "2024-01-31", "--follow", "--max-time", "1", "-f", "ndjson"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 4


WHOLE = b'n\n1\n9007199254740993\n-3\n""\n'


@pytest.mark.parametrize(
    ("options", "sent", "code", "said"),
    [
        ((), signal.SIGINT, 130, b"svcctl: interrupted\n"),
        ((), signal.SIGTERM, 143, b"svcctl: ended by SIGTERM\n"),
        (("--to", "2030-01-01"), signal.SIGTERM, 143, b"svcctl: ended by SIGTERM\n"),
    ],
)
def test_an_interrupted_follow_leaves_a_whole_file(
    service: Shell, tmp_path: Path, options: tuple[str, ...], sent: signal.Signals, code: int, said: bytes
) -> None:
    follow = ("query", "from sample select n", "--from", "2024-01-31", "--follow", *options)
    query = (*follow, "-o", str(tmp_path / "rows.csv"))
    process = service.start(*query, stderr=subprocess.PIPE)
    part = tmp_path / "rows.csv.part"
    eventually(lambda: part.exists() and part.read_bytes().endswith(b'""\n'))
    process.send_signal(sent)
    _, stderr = process.communicate(timeout=20)
    assert (process.returncode, stderr.splitlines(keepends=True)[-1]) == (code, said)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"rows.csv": WHOLE}


def test_a_terminal_shows_the_size_of_the_file_that_a_followed_query_wrote(service: Shell) -> None:
    query = ("query", "from sample select n", "--from", "2024-01-31", "--follow", "--limit", "2", "-o", "followed.csv")
    assert on_terminal(service, *query).screen.splitlines()[-2:] == [
        "svcctl: wrote followed.csv: 2 rows, 21 bytes",
        "svcctl: stopped at the limit of 2 rows: there may be more",
    ]


@pytest.mark.parametrize("options", [(), ("--to", "2030-01-01")])
def test_a_query_that_waits_ends_with_its_reader(service: Shell, options: tuple[str, ...]) -> None:
    query = ("-q", "query", "from sample select n", "--from", "2024-01-31", "--follow", *options, "-f", "csv")
    process = service.start(*query, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    for line in (b"n\n", b"1\n", b"9007199254740993\n", b"-3\n"):
        assert process.stdout.readline() == line
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr as stderr:
        assert (process.wait(20), stderr.read()) == (141, b"")


def test_a_group_is_printed_when_its_period_is_over(service: Shell) -> None:
    start = recent(600)
    load(service, "live.groups", [event(number, start, 1.0) for number in range(10)])
    query = "from live.groups group every 1s select count() as n"
    done = service("query", query, "--from", "1h", "--follow", "--limit", "10", "-f", "ndjson")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    first = int(start.replace(tzinfo=UTC).timestamp()) * 1000
    assert rows == [{"eventdate": first + 1000 * number, "n": 1} for number in range(10)]


def test_a_group_that_never_ends_is_refused(service: Shell) -> None:
    done = service("query", "from sample group by name", "--from", "1d", "--follow")
    assert done.returncode == 1
    assert "the groups would never be complete" in done.stderr


@pytest.mark.parametrize("to", ["tomorrow", "2030-01-01", "1893456000"])
def test_without_follow_an_end_in_the_future_is_not_waited_for(service: Shell, to: str) -> None:
    done = service("query", "from sample select n", "--from", "2024-01-31", "--to", to)
    assert (done.returncode, done.stdout) == (0, 'n\n1\n9007199254740993\n-3\n""\n')
    note = "svcctl: --to is in the future: the range ends now; --follow waits until .* UTC\n"
    assert re.fullmatch(note, done.stderr)
    assert service("-q", "query", "from sample select n", "--from", "2024-01-31", "--to", to).stderr == ""


@pytest.mark.slow
def test_a_follow_with_an_end_runs_until_then_and_prints_its_last_period(service: Shell) -> None:
    end = int(time.time()) + 5
    load(service, "live.until", [event(number, recent(0), 1.0) for number in range(9)])
    follow = ("--from", "1h", "--follow", "--to", str(end), "-f", "ndjson")
    rows = service.start("query", "from live.until select n", *follow, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    groups = service("query", "from live.until group every 2s select count() as n", *follow)
    output, notes = rows.communicate(timeout=20)
    assert (rows.returncode, groups.returncode, notes.decode(), groups.stderr) == (0, 0, "", "")
    assert time.time() >= end
    printed = len(output.splitlines())
    assert 0 < printed < 9
    assert sum(json.loads(line)["n"] for line in groups.stdout.splitlines()) == printed
    assert json.loads(groups.stdout.splitlines()[-1])["eventdate"] >= (end - 3) * 1000


def test_the_services_own_requests_are_events(service: Shell, tmp_path: Path) -> None:
    out = tmp_path / "rows"
    with out.open("wb") as stdout:
        query = "from service.access where uri = '/search/query', statusCode = 400 select method, statusCode"
        process = service.start("query", query, "--from", "now", "--follow", "--limit", "1", stdout=stdout)
        eventually(lambda: lines(out))
        assert service("query", "from nothing", "--from", "1d").returncode == 1
        assert process.wait(20) == 0
    assert lines(out) == ["method,statusCode", "POST,400"]


def following(shell: Shell, query: str) -> subprocess.Popen[bytes]:
    """Follow a query of the table `events`, and return when the heading and the first row are printed."""
    assert shell("service", "start").returncode == 0
    load(shell, "events", [event(0, recent(60))])
    process = shell.start("query", query, "--from", "1h", "--follow", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert all(process.stdout.readline() for _ in range(2))
    return process


@pytest.mark.slow
def test_a_query_that_cannot_be_resumed_says_so(shell: Shell) -> None:
    process = following(shell, "from events select n")
    shell.kill_service()
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 7
    assert stderr.decode() == (
        "svcctl: error: the result is incomplete: the connection broke in the middle, and a query without the column "
        "eventdate cannot be resumed\n"
    )


@pytest.mark.slow
def test_a_followed_query_whose_local_service_was_stopped_prints_how_to_start_it(shell: Shell) -> None:
    process = following(shell, "from events")
    assert process.stderr is not None
    assert shell("service", "stop").returncode == 0
    said = iter(process.stderr.readline, b"")
    hint = next(line for line in said if b"has ended" in line).decode()
    process.terminate()
    process.communicate(timeout=30)
    assert hint.startswith("svcctl: the local service has ended: see ")
    assert hint.endswith(", and start it with 'svcctl service start'\n")


@pytest.mark.parametrize(
    ("kills", "events", "seconds"), [(1, 100, 0.1), pytest.param(10, 50_000, 0.5, marks=pytest.mark.slow)]
)
@pytest.mark.timeout(600)
def test_every_event_comes_once_though_the_service_is_killed_again_and_again(
    shell: Shell, tmp_path: Path, kills: int, events: int, seconds: float
) -> None:
    chance = random.Random(events)
    start = recent(3000)
    batch = events // (kills + 1)
    load(shell, "events", [event(0, start)])
    out, said = tmp_path / "rows", tmp_path / "said"
    with out.open("wb") as stdout, said.open("wb") as stderr:
        process = shell.start(
            "query", "from events", "--from", "1h", "--follow", "--limit", str(events), "-f", "ndjson",
            stdout=stdout, stderr=stderr,
        )  # fmt: skip
        eventually(lambda: len(lines(out)) == 1)
        for kill in range(kills):
            numbers = range(max(1, kill * batch), (kill + 1) * batch)
            load(shell, "events", [event(number, start) for number in numbers])
            time.sleep(chance.uniform(0, seconds))  # somewhere in the delivery
            shell.kill_service()
        load(shell, "events", [event(number, start) for number in range(kills * batch, events)])
        assert process.wait(120) == 0, said.read_text()
    shell.kill_service()
    assert [json.loads(line)["n"] for line in lines(out)] == list(range(events))
    assert said.read_text().count("reconnected") >= 1
