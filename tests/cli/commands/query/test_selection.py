"""Files whose names say their format, and rows that are selected and ordered, against the real service."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from pyarrow import parquet
from support.shells import Shell

DAY = ("--from", "2024-01-31", "--to", "1d")
EVERY = "eventdate,name,n,x,ok"
HOUR = "from 2024-01-31 00:00:00 to 2024-02-01 00:00:00 (UTC)"


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
    assert (done.returncode, "holds csv" in done.stderr) == (0, True)
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


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        (
            ("-o", "x.yaml"),
            "svcctl cannot write .yaml files",
            "endings that name a format are .csv, .tsv, .ndjson, .jsonl, .json, .msgpack, .xml, .xlsx, .parquet, each "
            "with .gz or .zst; --format names one for any file",
        ),
        (("-o", "x.csv.bz2"), "svcctl cannot write .bz2 files", "write .gz or .zst instead"),
        (("-o", "x.csv.xz", "-f", "csv"), "svcctl cannot write .xz files", "write .gz or .zst instead"),
        (("-o", "x.xls"), "x.xls would hold a spreadsheet in the format .xlsx", "name it .xlsx"),
        (("-o", "x.parquet.gz"), "parquet compresses by itself", "leave out .gz"),
        (("-o", "x.gz", "-f", "parquet"), "parquet compresses by itself", "leave out .gz"),
        (
            ("--top", "3"),
            "--top needs --sort",
            "for the largest n: --sort n:desc --top 3; for the first rows of a query: --limit 3",
        ),
        (
            ("--sort", "n", "--top", "3", "--limit", "9"),
            "--limit and --top exclude each other",
            "the first rows of --sort: --top 3",
        ),
        (
            ("--sort", "n", "--skip", "1"),
            "--skip and --sort exclude each other: rows would be skipped before they are sorted",
            "leave out --skip; --top N prints the first N rows of --sort",
        ),
        (
            ("--sort", "n", "--follow"),
            "--follow and --sort exclude each other: endless rows cannot be sorted",
            None,
        ),
        (
            ("--fail-on-empty", "-f", "xls"),
            "--fail-on-empty cannot be used with format xls, whose rows are not counted",
            "use one of: table, vertical, chart, csv, tsv, ndjson, json, json/compact, json/simple, "
            "json/simple/compact, msgpack, parquet",
        ),
        (
            ("--chart",),
            "a chart of whole events has nothing to measure",
            "group them: group every 10m select count() as n; or choose: --columns eventdate,COLUMN",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_sent(
    shell: Shell, options: tuple[str, ...], message: str, hint: str | None
) -> None:
    end = () if "--follow" in options else ("--to", "1d")
    done = shell("query", "from sample", "--from", "2024-01-31", *end, *options)
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert lines[0] == f"svcctl: error: {message}"
    assert hint is None or lines[1:] == [f"hint: {hint}"]
    assert not (shell.home / "data" / "service.sock").exists()


def test_lists_are_selected_and_ordered_too(shell: Shell) -> None:
    for name in ("b", "a", "c"):
        shell("profile", "set", name, f"base_url=https://{name}.example")
    done = shell("profile", "list", "--sort", "base_url:desc", "--top", "2", "--columns", "name,base_url")
    assert (done.stdout, done.stderr) == ("name,base_url\nc,https://c.example\nb,https://b.example\n", "")
    done = shell("profile", "list", "--columns", "nam", "-f", "table")
    assert (done.returncode, "'name'? columns are: name, used, auth, base_url" in done.stderr) == (2, True)
