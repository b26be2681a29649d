"""The result of `svcctl query`, printed by the real service's rows: formats, notes, and how it ends."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import msgpack
import pytest
from support.pseudo_terminal import on_terminal
from support.shells import DAY, SAMPLE, SVCCTL, Shell

PRINTED = {
    "table": """\
eventdate (UTC)          name                               n               x  ok
-----------------------  ------------------  ----------------  --------------  -----
2024-01-31 10:00:00.000  plain                              1            0.5   true
2024-01-31 10:00:01.000  comma, "quote"      9007199254740993            null  false
2024-01-31 10:00:02.007  [brackets] 漢字 😀                -3  10000000000.0   null
2024-01-31 10:00:03.000  two\\nlines                      null            2.25  true
""",
    "csv": SAMPLE.replace("1e10", "10000000000.0"),
    "tsv": """\
eventdate	name	n	x	ok
2024-01-31 10:00:00.000	plain	1	0.5	true
2024-01-31 10:00:01.000	"comma, ""quote\"""	9007199254740993		false
2024-01-31 10:00:02.007	[brackets] 漢字 😀	-3	10000000000.0\t
2024-01-31 10:00:03.000	"two
lines"		2.25	true
""",
    "ndjson": """\
{"eventdate":1706695200000,"name":"plain","n":1,"x":0.5,"ok":true}
{"eventdate":1706695201000,"name":"comma, \\"quote\\"","n":9007199254740993,"x":null,"ok":false}
{"eventdate":1706695202007,"name":"[brackets] 漢字 😀","n":-3,"x":10000000000.0,"ok":null}
{"eventdate":1706695203000,"name":"two\\nlines","n":null,"x":2.25,"ok":true}
""",
}
RECORDS = [json.loads(line) for line in PRINTED["ndjson"].split("\n")[:-1]]


@pytest.mark.parametrize("name", PRINTED)
def test_rows_are_printed_whole_in_a_pipe(service: Shell, name: str) -> None:
    done = service("query", "from sample", *DAY, "-f", name)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", PRINTED[name])


def test_a_pipe_gets_csv_by_default(service: Shell) -> None:
    assert service("query", "from sample", *DAY).stdout == PRINTED["csv"]
    assert service("query", "from sample", *DAY, SVCCTL_FORMAT="ndjson").stdout == PRINTED["ndjson"]
    assert service("query", "from sample", *DAY, "-f", "csv", SVCCTL_FORMAT="ndjson").stdout == PRINTED["csv"]


def test_json_is_an_envelope_and_compact_has_columns_and_arrays(service: Shell) -> None:
    envelope = json.loads(service("query", "from sample", *DAY, "-f", "json").stdout)
    assert envelope.pop("timestamp") > 1.7e12
    assert len(envelope.pop("cid")) == 12
    assert envelope == {"success": True, "msg": "", "status": 0, "object": RECORDS}
    compact = json.loads(service("query", "from sample", *DAY, "-f", "json/compact").stdout)["object"]
    types = {"eventdate": "timestamp", "name": "str", "n": "int8", "x": "float8", "ok": "bool"}
    assert compact["m"] == {name: {"type": kind, "index": at} for at, (name, kind) in enumerate(types.items())}
    assert compact["metadata"] == [{"name": name, "type": kind} for name, kind in types.items()]
    assert compact["d"] == [list(record.values()) for record in RECORDS]
    lines = service("query", "from sample", *DAY, "-f", "json/simple/compact").stdout.split("\n")[:-1]
    first = {"m": compact["m"], "metadata": compact["metadata"]}
    assert [json.loads(line) for line in lines] == [first, *({"d": row} for row in compact["d"])]


def test_msgpack_and_xls_go_to_files(service: Shell, tmp_path: Path) -> None:
    packed, sheet = tmp_path / "rows.mp", tmp_path / "rows.xlsx"
    assert service("query", "from sample", *DAY, "-f", "msgpack", "-o", str(packed)).returncode == 0
    assert msgpack.unpackb(packed.read_bytes())["object"] == RECORDS
    assert service("query", "from sample", *DAY, "-f", "xls", "-o", str(sheet)).returncode == 0
    assert "xl/worksheets/sheet1.xml" in zipfile.ZipFile(sheet).namelist()


def test_limit_and_skip_and_the_note_that_there_may_be_more(service: Shell) -> None:
    done = service("query", "from sample select n", *DAY, "--skip", "1", "--limit", "2")
    assert (done.stdout, "limit of 2 rows" in done.stderr) == ("n\n9007199254740993\n-3\n", True)
    done = service("query", "from sample select n", *DAY, "--limit", "5")
    assert done.stderr == ""
    done = service("-q", "query", "from sample select n", *DAY, "--limit", "1")
    assert done.stderr == ""
    seen = on_terminal(service, "query", "from sample select n", *DAY, "--limit", "1", "-f", "csv")
    assert seen.screen == "svcctl: 2024-01-31 00:00 … 2024-02-01 00:00 UTC (1d)\nn\n1\n"


FIRST = ("from sample limit 1", *DAY)


def test_verbose_shows_the_request_and_the_answer_without_secrets(service: Shell) -> None:
    done = service("query", *FIRST, "-v")
    lines = done.stderr.split("\n")
    assert lines[0] == "svcctl: range 2024-01-31 00:00:00 to 2024-02-01 00:00:00 (UTC)"
    assert "svcctl: > POST http://localhost/search/query" in lines
    assert "svcctl: > x-svc-sign: ****" in lines
    assert any(line.startswith("svcctl: < 200 after ") for line in lines)
    assert "1 row, 63 bytes, " in lines[-2]
    secrets = json.loads((service.home / "data" / "credentials.json").read_text())["local"]
    assert not [secret for secret in secrets.values() if secret in done.stderr]


@pytest.mark.parametrize("name", ["csv", "ndjson", "json", "msgpack", "xls", "table"])
def test_verbose_names_the_request_in_every_format(service: Shell, tmp_path: Path, name: str) -> None:
    done = service("query", "from sample", *DAY, "-f", name, "-v", "-o", str(tmp_path / "rows"))
    assert done.returncode == 0, done.stderr
    first, *_, last, end = done.stderr.split("\n")
    assert (first, end) == ("svcctl: range 2024-01-31 00:00:00 to 2024-02-01 00:00:00 (UTC)", "")
    summary = re.fullmatch(r"svcctl: cid (\w{12}), (4|-) rows, [\d.]+ \w+, [\d.]+s", last)
    assert summary is not None, last
    assert f"svcctl: < x-svc-cid: {summary[1]}\n" in done.stderr
    assert summary[2] == ("-" if name == "xls" else "4")


def test_verbose_counts_one_row(service: Shell) -> None:
    summary = service("query", "from sample", *DAY, "--limit", "1", "-f", "csv", "-v").stderr.splitlines()[-2]
    assert re.fullmatch(r"svcctl: cid \w{12}, 1 row, \d+ bytes, [\d.]+s", summary), summary


def test_periods_that_do_not_begin_with_the_days_of_the_zone_are_noted_in_pipes_too(service: Shell) -> None:
    query = ("query", "from sample group every 1d select count() as n", *DAY, "--time-zone", "GMT+2")
    done = service(*query)
    assert done.stdout == "eventdate,n\n2024-01-31 02:00:00.000,4\n"
    assert ["02:00 GMT+2" in done.stderr, '"yyyy-MM-dd", "GMT+2")' in done.stderr] == [True, True]
    assert service("-q", *query).stderr == ""


def test_a_terminal_without_rows_shows_the_dates_of_the_tables_events(service: Shell) -> None:
    seen = on_terminal(service, "query", "from sample select n", "--from", "2024-01-01", "--to", "1d", NO_COLOR="1")
    assert (seen.code, seen.screen.splitlines()[-1]) == (
        0,
        "svcctl: no rows from 2024-01-01 00:00:00 to 2024-01-02 00:00:00 (UTC); "
        "the events of sample are from 2024-01-31 10:00:00 to 2024-01-31 10:00:03",
    )
    seen = on_terminal(service, "query", "from sample where false", *DAY, NO_COLOR="1")
    assert seen.screen.splitlines()[-1].endswith(" to 2024-02-01 00:00:00 (UTC)")


def test_a_full_disk_and_a_closed_pipe_have_their_codes(service: Shell) -> None:
    with Path("/dev/full").open("wb") as full:
        process = service.start("query", "from sample", *DAY, stdout=full, stderr=subprocess.PIPE)
        assert process.communicate()[1] == b"svcctl: error: cannot write to standard output: No space left on device\n"
        assert process.returncode == 7
    process = service.start(
        "query", "from demo.ecommerce.data", "--from", "30d", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"eventdate,")
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


@pytest.mark.slow
def test_many_rows_stream_in_bounded_memory(service: Shell) -> None:
    # A small parent, because a child's peak counts the memory of the process it was forked from.
    measure = "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); "
    measure += "print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)"
    process = subprocess.Popen(
        [sys.executable, "-c", measure, *SVCCTL, "query", "from demo.ecommerce.data", "--from", "11d", "-f", "ndjson"],
        env=service.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    rows = 0
    while block := process.stdout.read(1 << 20):
        rows += block.count(b"\n")
    code, peak = map(int, process.communicate()[1].split())
    assert code == 0
    assert peak < 64 * 1024
    counted = service.ndjson("query", "from demo.ecommerce.data group by protocol select count() as n", "--from", "11d")
    assert abs(rows - sum(int(str(row["n"])) for row in counted)) < 2000  # the two ranges end seconds apart
    assert rows > 400_000


def test_csv_of_the_demo_reads_as_csv(service: Shell) -> None:
    done = service("query", "from demo.ecommerce.data", "--from", "2h")
    rows = list(csv.reader(io.StringIO(done.stdout)))
    assert {len(row) for row in rows} == {13}
    assert [row[0] for row in rows[1:]] == sorted(row[0] for row in rows[1:])
