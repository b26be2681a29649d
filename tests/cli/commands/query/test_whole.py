"""`svcctl query` where things take long or go wrong: what is left behind, and what names the request."""

import re
import signal
import subprocess
from pathlib import Path

import pytest
from support.shells import Shell
from support.waiting import eventually

DAY = ("--from", "2024-01-31", "--to", "1d")


@pytest.mark.parametrize("name", ["csv", "ndjson", "json", "msgpack", "xls", "table"])
def test_verbose_names_the_request_in_every_format(service: Shell, tmp_path: Path, name: str) -> None:
    done = service("query", "from sample", *DAY, "-f", name, "-v", "-o", str(tmp_path / "rows"))
    assert done.returncode == 0, done.stderr
    first, *_, last, end = done.stderr.split("\n")
    assert (first, end) == ("svcctl: range 2024-01-31 00:00:00 to 2024-02-01 00:00:00 (UTC)", "")
    told = re.fullmatch(r"svcctl: cid (\w{12}), (4|-) rows, [\d.]+ \w+, [\d.]+s", last)
    assert told is not None, last
    assert f"svcctl: < x-svc-cid: {told[1]}\n" in done.stderr
    assert told[2] == ("-" if name == "xls" else "4")


def test_verbose_counts_one_row(service: Shell) -> None:
    told = service("query", "from sample", *DAY, "--limit", "1", "-f", "csv", "-v").stderr.splitlines()[-2]
    assert re.fullmatch(r"svcctl: cid \w{12}, 1 row, \d+ bytes, [\d.]+s", told), told


def test_a_near_miss_is_told_without_all_that_could_stand_there(service: Shell) -> None:
    done = service("query", "from sample wher n = 1", *DAY)
    assert done.returncode == 1
    assert re.sub(r"cid \w{12}", "cid CID", done.stderr) == (
        "svcctl: error: line 1, column 13: unexpected 'wher' (did you mean 'where'?) (code 1, cid CID)\n"
        "  from sample wher n = 1\n"
        "              ^\n"
    )


def waits(process: int) -> bool:
    """Whether a process is asleep: one that has opened its file then waits for the service, which packs a workbook."""
    return Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(") ")[2][0] == "S"


@pytest.mark.parametrize(
    ("name", "sent", "code", "said"),
    [
        ("csv", signal.SIGINT, 130, b"svcctl: interrupted\n"),
        ("json", signal.SIGINT, 130, b"svcctl: interrupted\n"),
        ("xls", signal.SIGINT, 130, b"svcctl: interrupted\n"),
        ("csv", signal.SIGTERM, 143, b"svcctl: ended by SIGTERM\n"),
    ],
)
def test_a_signal_while_a_file_is_being_written_leaves_none(
    service: Shell, tmp_path: Path, name: str, sent: signal.Signals, code: int, said: bytes
) -> None:
    target = tmp_path / "rows"
    process = service.start(
        "query", "from demo.ecommerce.data", "--from", "30d", "-f", name, "-o", str(target), stderr=subprocess.PIPE
    )
    part = tmp_path / "rows.part"
    eventually(lambda: part.exists() and (part.stat().st_size > 0 or waits(process.pid)))
    process.send_signal(sent)
    assert process.communicate()[1] == said
    assert (process.returncode, list(tmp_path.iterdir())) == (code, [])


def test_a_service_with_a_limit_that_is_no_time_does_not_start_and_says_why(shell: Shell) -> None:
    done = shell("service", "start", SVCCTL_QUERY_TIME="soon")
    said = "SVCCTL_QUERY_TIME 'soon' cannot be used: it is not a length such as 90, 30s, 5m, 1h30m or 1d"
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        f"svcctl: error: the local service did not start: {said}\n"
        f"hint: its log has the reason: {shell.home / 'data' / 'service.log'}\n",
    )
