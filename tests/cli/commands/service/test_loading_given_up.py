"""Loads that end in the middle, because their client or the service does: nothing of them is ever seen."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from support.shells import Shell, made
from support.waiting import eventually

ROWS = 400_000


@pytest.fixture(scope="module")
def loading() -> Iterator[Shell]:
    """A shell with a service of its own, and a file `large.csv` that takes it seconds to load."""
    with tempfile.TemporaryDirectory(prefix="svcctl-") as home:
        shell = Shell(Path(home), {"SVCCTL_DEMO": "0", "TMPDIR": f"{home}/tmp"})
        for name in ("tmp", "folder"):
            (shell.home / name).mkdir()
        start = datetime(2024, 1, 31)
        lines = (f"{start + timedelta(seconds=n // 10)},{-n},some text of event {n}\n" for n in range(1, ROWS))
        (shell.home / "large.csv").write_text("time,n,text\n" + "".join(lines))
        assert shell("service", "start").returncode == 0
        yield shell
        shell("service", "stop")


def is_loading(shell: Shell) -> bool:
    """Whether the service reads files: it keeps what does not fit its memory in a directory of their own."""
    return any((shell.home / "tmp").glob("svcctl-load-*"))


def begun(shell: Shell, table: str, *options: str, file: str = "large.csv") -> subprocess.Popen[bytes]:
    """A load of a large file, which has begun."""
    process = shell.start("service", "load", file, "--table", table, *options, stderr=subprocess.PIPE)
    eventually(lambda: is_loading(shell))
    return process


def load(shell: Shell, table: str, numbers: range) -> None:
    path = shell.home / f"{table}-{numbers.start}.csv"
    path.write_text("time,n,text\n" + "".join(f"2024-01-31 10:00:{n % 60:02},{n},x\n" for n in numbers))
    done = shell("service", "load", path.name, "--table", table)
    assert done.returncode == 0, done.stderr


def tables(shell: Shell) -> list[object]:
    return [row["name"] for row in shell.ndjson("tables", "--columns", "name")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "code", "said"), [(signal.SIGINT, 130, b"svcctl: interrupted\n"), (signal.SIGKILL, -signal.SIGKILL, b"")]
)
def test_a_load_whose_client_leaves_ends_and_leaves_nothing(
    loading: Shell, sent: signal.Signals, code: int, said: bytes
) -> None:
    process = begun(loading, "left")
    process.send_signal(sent)
    _, stderr = process.communicate(timeout=30)
    stderr = stderr.removeprefix(b"svcctl: nothing was loaded\n")  # on a busy machine it is not known in time
    assert (process.returncode, stderr) == (code, said)
    load(loading, "small", range(3))
    eventually(lambda: not is_loading(loading))
    assert "left" not in tables(loading)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "code", "said"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "ended by SIGTERM")]
)
def test_a_load_into_a_shared_folder_ends_by_a_signal(
    loading: Shell, sent: signal.Signals, code: int, said: str
) -> None:
    lines = (loading.home / "large.csv").read_bytes().partition(b"\n")
    (loading.home / "huge.csv").write_bytes(b"".join((*lines[:2], *[lines[2]] * 5)))
    folder = loading.home / "folder"
    process = begun(loading, "left", "--tables", made(folder), file="huge.csv")
    process.send_signal(sent)
    _, stderr = process.communicate(timeout=30)
    assert (process.returncode, said in stderr.decode()) == (code, True)
    assert not is_loading(loading)
    assert [path.name for path in folder.rglob("*") if path.is_file()] == [".svcctl"]


@pytest.mark.slow
def test_a_load_whose_service_is_killed_leaves_nothing_and_its_client_fails(loading: Shell) -> None:
    process = begun(loading, "lost")
    loading.kill_service()
    _, stderr = process.communicate(timeout=30)
    assert (process.returncode, b"no answer from localhost" in stderr) == (6, True)
    assert loading("service", "start").returncode == 0
    assert "lost" not in tables(loading)
    assert not is_loading(loading)


@pytest.mark.slow
def test_a_load_with_an_id_is_sent_again_when_its_service_is_killed_and_stored_once(loading: Shell) -> None:
    process = begun(loading, "once", "--id", "night", "--retries", "20")
    loading.kill_service()
    assert loading("service", "start").returncode == 0
    _, stderr = process.communicate(timeout=60)
    assert (process.returncode, f"loaded {ROWS - 1:,} events".encode() in stderr) == (0, True)
    again = loading("service", "load", "large.csv", "--table", "once", "--id", "night")
    assert (again.returncode, "nothing was loaded" in again.stderr) == (0, True)
    assert not is_loading(loading)


@pytest.mark.slow
def test_every_event_of_loads_side_by_side_comes_once_and_none_of_one_that_was_given_up(loading: Shell) -> None:
    loads = [range(first, first + 500) for first in range(1, 4001, 500)]
    count = 1 + sum(map(len, loads))
    load(loading, "events", range(1))
    query = ("query", "from events select eventdate, n", "--from", "2024-01-31", "--follow")
    job = loading.ndjson(*query, "--dest", "donothing")[0]["id"]
    out = loading.home / "rows"
    with out.open("wb") as stdout:
        following = loading.start(*query, "--limit", str(count), "-f", "ndjson", stdout=stdout)
        eventually(lambda: out.stat().st_size > 0)
        given_up = begun(loading, "events")
        given_up.kill()
        given_up.communicate(timeout=30)
        with ThreadPoolExecutor(2) as both:
            list(both.map(lambda numbers: load(loading, "events", numbers), loads))
        assert following.wait(60) == 0
    assert sorted(json.loads(line)["n"] for line in out.read_text().splitlines()) == list(range(count))
    eventually(lambda: loading.ndjson("job", "show", str(job))[0]["eventsSent"] == count)
