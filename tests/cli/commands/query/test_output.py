"""`svcctl query -o x.xlsx`: the service's own sheet, or one that svcctl writes because rows are chosen or ordered."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.scripted import Serve, head
from support.shells import Shell

DAY = ("--from", "2024-01-31", "--to", "1d")
CUT = "svcctl: 1 text was cut to 32,767 characters, the most in a cell of a spreadsheet\n"


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
