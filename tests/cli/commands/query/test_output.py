"""`svcctl query -o`: the format of a file, whole files, and spreadsheets."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from pyarrow import parquet
from support.scripted import Serve, head
from support.shells import DAY, SAMPLE, Shell
from support.waiting import eventually

ROWS = SAMPLE.replace("1e10", "10000000000.0")
CUT = "svcctl: 1 text was cut to 32,767 characters, the most in a cell of a spreadsheet\n"


def test_output_appears_whole_and_is_not_overwritten(service: Shell, tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    assert service("query", "from sample", *DAY, "-o", str(target)).returncode == 0
    assert target.read_text(encoding="utf-8") == ROWS
    again = service("query", "from sample", *DAY, "-o", str(target))
    assert (again.returncode, "--force" in again.stderr) == (2, True)
    assert target.read_text(encoding="utf-8") == ROWS
    folder = service("query", "from sample", *DAY, "-o", f"{tmp_path}/new/")
    assert (folder.returncode, f"{tmp_path}/new/events.csv" in folder.stderr) == (2, True)
    pattern = service("query", "from sample", *DAY, "-o", "n-{from:%F}.csv.gz")
    assert (pattern.returncode, "$(date +%F)" in pattern.stderr) == (2, True)
    packed = tmp_path / "rows.csv.gz"
    assert service("query", "from sample", *DAY, "-o", str(packed)).returncode == 0
    assert gzip.decompress(packed.read_bytes()).decode() == ROWS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.csv", "rows.csv.gz"]


def test_the_path_of_standard_output_is_that_of_its_file(service: Shell, tmp_path: Path) -> None:
    out = tmp_path / "o.out"
    for _ in range(2):
        with out.open("ab") as stdout:
            assert service.start("query", "from sample", *DAY, "-o", "/dev/stdout", stdout=stdout).wait() == 0
    assert out.read_text(encoding="utf-8") == ROWS * 2


def test_a_files_name_says_its_format(service: Shell, tmp_path: Path) -> None:
    begins = {
        "a.csv": b"eventdate,name,",
        "a.TSV": b"eventdate\tname\t",
        "a.ndjson": b'{"eventdate":1706695200000,',
        "a.jsonl": b'{"eventdate":1706695200000,',
        "a.json": b'{"success":true,',
        "a.xml": b"<?xml",
        "a.xlsx": b"PK\x03\x04",
        "a.msgpack": b"\x86\xa7success",
        "a.parquet": b"PAR1",
        "a": b"eventdate,name,",
        "a.txt": b"eventdate,name,",
    }
    for name, begin in begins.items():
        done = service("query", "from sample", *DAY, "-o", str(tmp_path / name), SVCCTL_FORMAT="auto")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert (tmp_path / name).read_bytes().startswith(begin), name
    assert service("query", "from sample", *DAY, "-o", str(tmp_path / "b.json.gz")).stderr == ""
    assert json.loads(gzip.decompress((tmp_path / "b.json.gz").read_bytes()))["success"] is True
    done = service("query", "from sample", *DAY, "-o", str(tmp_path / "c.json"), "-f", "csv")
    assert (done.returncode, "csv, not json" in done.stderr) == (0, True)
    done = service("query", "from sample", *DAY, "-o", str(tmp_path / "c.xls"), "-f", "xls")
    assert (done.returncode, "xlsx, not xls" in done.stderr) == (0, True)
    done = service("query", "from sample", *DAY, "-o", str(tmp_path / "c.jsn"))
    assert (done.returncode, "contains csv" in done.stderr) == (0, True)
    assert service("query", "from sample", *DAY, "-o", str(tmp_path / "c.dat"), "-f", "csv").stderr == ""
    done = service("query", "from sample", *DAY, "-o", str(tmp_path / "d.csv"), SVCCTL_FORMAT="ndjson")
    assert (tmp_path / "d.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()


def test_parquet_has_the_rows_and_their_types_selected_and_ordered(service: Shell, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    done = service("query", "from sample", *DAY, "-o", str(path), "--sort", "n:desc", "--columns", "n,eventdate,ok")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    table = parquet.read_table(path)
    assert [f"{field.name} {field.type}" for field in table.schema] == [
        "n int64",
        "eventdate timestamp[ms, tz=UTC]",
        "ok bool",
    ]
    assert table.column("n").to_pylist() == [9007199254740993, 1, -3, None]
    piped = service("query", "from sample where false", *DAY, "-f", "parquet", "-o", str(tmp_path / "none"))
    assert (piped.returncode, parquet.read_table(tmp_path / "none").num_rows) == (0, 0)


def test_a_killed_query_leaves_at_most_the_part_file(service: Shell, tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    process = service.start("query", "from demo.ecommerce.data", "--from", "30d", "-o", str(target))
    part = tmp_path / "rows.csv.part"
    eventually(lambda: part.exists() and part.stat().st_size > 0)
    process.kill()
    process.wait()
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv.part"]
    done = service(
        "query", "from demo.ecommerce.data group by method select count() as n", "--from", "1d", "-o", str(target)
    )
    assert done.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


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


def rows(path: Path) -> list[list[str]]:
    """The texts of the cells that are there, row by row."""
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(path) as book:
        sheet = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))
    return [["".join(cell.itertext()) for cell in row] for row in sheet.iter(f"{space}row")]


def test_rows_are_chosen_and_ordered(service: Shell, tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    ask = ("query", "from sample", *DAY, "-o", str(path), "--force")
    done = service(*ask, "--sort", "x:desc", "--columns", "x,n", "--top", "2", "--fail-on-empty")
    assert (done.returncode, done.stderr) == (0, "")
    assert rows(path) == [["x", "n"], ["10000000000", "-3"], ["2.25"]]
    done = service(*ask, "--no-header", "--sort", "n", "--limit", "1", "--columns", "n,ok,eventdate")
    assert done.returncode == 0
    assert [row[0] for row in rows(path)] == ["-3"]
    done = service(*ask, "--columns", "n", "--fail-on-empty", "--skip", "1000")
    assert (done.returncode, [row[0] for row in rows(path)]) == (8, ["-3"])


def test_dates_have_the_zone_and_the_format_of_the_answer(service: Shell, tmp_path: Path) -> None:
    own, served = tmp_path / "own.xlsx", tmp_path / "served.xlsx"
    for path, option in ((own, ("--sort", "eventdate")), (served, ())):
        dates = ("--time-zone", "GMT+2", "--date-format", "iso")
        done = service("query", "from sample select eventdate, n", *DAY, *dates, "-o", str(path), *option)
        assert done.returncode == 0, done.stderr
    assert rows(own) == rows(served)
    for path in (own, served):
        with zipfile.ZipFile(path) as book:
            assert b"yyyy-mm-dd&quot;T&quot;hh:mm:ss.000" in book.read("xl/styles.xml")


@pytest.mark.parametrize("option", [(), ("--columns", "a"), ("--sort", "a")])
def test_a_text_that_is_cut_is_reported_whoever_writes_the_sheet(
    service: Shell, tmp_path: Path, option: tuple[str, ...]
) -> None:
    (tmp_path / "l.ndjson").write_text(json.dumps({"eventdate": "2024-01-31T10:00:00Z", "a": "x" * 40000}))
    assert service("service", "load", str(tmp_path / "l.ndjson"), "-t", "x.long", "--replace").returncode == 0
    done = service("query", "from x.long select a", *DAY, "-o", str(tmp_path / "l.xlsx"), *option)
    assert (done.returncode, done.stderr) == (0, CUT)
    assert [len(text) for [text] in rows(tmp_path / "l.xlsx")] == [1, 32767]


def test_too_many_columns_leave_no_file(shell: Shell, serve: Serve) -> None:
    names = {f"c{number}": {"type": "int4", "index": number} for number in range(16_385)}
    body = json.dumps({"m": names}).encode() + b"\n"
    url = serve(head("200 OK", "Content-Type: application/json", f"Content-Length: {len(body)}") + body).url
    done = shell(
        *("query", "from a", "--from", "1h", "-o", "a.xlsx", "--no-header"),
        SVCCTL_BASE_URL=url, SVCCTL_AUTH="token", SVCCTL_TOKEN="T",
    )  # fmt: skip
    assert (done.returncode, "at most 16384 columns" in done.stderr) == (2, True)
    assert [path for path in shell.home.iterdir() if path.name.startswith("a.xlsx")] == []


def test_a_client_without_the_extra_names_it_and_passes_on_the_service_s_sheet(shell: Shell, serve: Serve) -> None:
    blocked = "import sys; sys.modules['xlsxwriter'] = None\n"
    (shell.home / "sitecustomize.py").write_text(blocked)
    book = zipped(shell.home)
    url = serve(head("200 OK", "Content-Type: application/octet-stream", f"Content-Length: {len(book)}") + book).url
    variables = {
        "SVCCTL_BASE_URL": url, "SVCCTL_AUTH": "token", "SVCCTL_TOKEN": "T", "PYTHONPATH": str(shell.home)
    }  # fmt: skip
    done = shell("query", "from a", "--from", "1h", "-o", "a.xlsx", "--sort", "n", **variables)
    assert (done.returncode, "pip install 'svcctl[xlsx]'" in done.stderr) == (2, True)
    done = shell("query", "from a", "--from", "1h", "-o", "a.xlsx", **variables)
    assert (done.returncode, (shell.home / "a.xlsx").read_bytes()) == (0, book)


def zipped(folder: Path) -> bytes:
    with zipfile.ZipFile(folder / "book", "w") as archive:
        archive.writestr("a", b"b")
    return (folder / "book").read_bytes()
