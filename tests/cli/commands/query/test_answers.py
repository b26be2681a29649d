"""Answers to `svcctl query` that end in errors, and values that a format cannot hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyarrow import parquet
from support.reseller import Reseller
from support.scripted import Serve, head
from support.shells import Shell

QUERY = ("query", "from t", "--from", "2024-01-31", "--to", "1d", "-f")
OPENED = '{"success":true,"msg":"","status":0,"cid":"c","timestamp":1,"object":'
M = '"m":{"a":{"type":"str","index":0},"b":{"type":"int4","index":1}}'
METADATA = '"metadata":[{"name":"a","type":"str"},{"name":"b","type":"int4"}]'
FAILED = {
    "csv": ("\r\na,b\r\n,\r\nx,1\r\n\r\nsvc.api.error,500,oops\r\n", "a,b\r\nx,1\r\n"),
    "tsv": ("a\tb\r\nx\t1\r\n\r\nsvc.api.error\t500\toops\r\n", "a\tb\r\nx\t1\r\n"),
    "ndjson": ('    \r\n{"a":"x","b":1}\r\n    \r\n["error",500,"oops"]\r\n', '{"a":"x","b":1}\r\n'),
    "json": (OPENED + '[\r\n    {"a":"x","b":1}\n],"error": [500, "oops"]}\r\n', OPENED + '[\n{"a":"x","b":1}\n]'),
    "json/compact": (
        OPENED + f'{{{M},{METADATA},"d":[\n["x",1]' + '\n]},"e": [500, "oops"]}\n',
        OPENED + f'{{{M},{METADATA},"d":[\n["x",1]\n]',
    ),
    "json/simple/compact": (
        f'{{{M},{METADATA}}}\r\n{{"d":["x",1]}}\r\n' + '{"e": [500, "oops"]}\r\n',
        f'{{{M},{METADATA}}}\r\n{{"d":["x",1]}}\r\n',
    ),
    "table": (f'{{{METADATA}}}\r\n{{"d":["x",1]}}\r\n' + '{"e": [500, "oops"]}\r\n', ""),
    "xml": ('<events>\n<event><field name="a">x</field></event>\n<error code="500">oops</error>\n</events>\n', ""),
}
"""By output format: an answer that ends in an error, and what is printed of it."""


def says(status: int, body: str) -> Callable[[httpx.Request], httpx.Response]:
    return lambda request: httpx.Response(status, content=body.encode(), headers={"content-type": "text/plain"})


@pytest.mark.parametrize("name", FAILED)
def test_an_error_after_the_rows_exits_7_and_is_never_printed_as_a_row(reseller: Reseller, name: str) -> None:
    answer, printed = FAILED[name]
    done = reseller(*QUERY, name, answer=says(200, answer))
    cid = ", cid c" if OPENED in answer else ""
    assert (done.code, done.stdout) == (7, printed)
    assert done.stderr.splitlines()[0] == (
        f"svcctl: error: the result is incomplete: it ended in an error of the service: oops (code 500{cid})"
    )


REFUSAL = (
    '{"success":false,"msg":"no table \'t\'","status":1,"cid":"c","timestamp":1,'
    '"error":{"code":1,"message":"no table \'t\'"},"object":["no table \'t\'","no table"]}'
)


@pytest.mark.parametrize("status", [200, 400])
def test_a_refusal_in_all_forms_is_one_message(reseller: Reseller, status: int) -> None:
    done = reseller(*QUERY, "csv", answer=says(status, REFUSAL))
    assert (done.code, done.stdout) == (1, "")
    assert done.stderr.splitlines()[0] == "svcctl: error: no table 't' (code 1, cid c)"


ROWS = (
    b'{"m":{"n":{"type":"float8","index":0},"s":{"type":"str","index":1},"l":{"type":"list","index":2}}}\n'
    b'{"d":[1e400,"caf\xe9",[NaN]]}\n'
    b'{"d":[NaN,"\\ud800 \\udce9","\\u0000"]}\n'
    b'{"d":[123456789012345678901234567890,"\\ud83d\\ude00",null]}\n'
)
ASK = ("query", "from a", "--from", "1h", "--columns", "n,s,l")
RECORDS: list[dict[str, Any]] = [
    {"n": None, "s": "caf\ufffd", "l": [None]},
    {"n": None, "s": "\ufffd \ufffd", "l": "\0"},
    {"n": 123456789012345678901234567890, "s": "\U0001f600", "l": None},
]
NUMBERS = "svcctl: {} became null: NaN, infinite, or too large\n"
BYTES = "svcctl: 1 byte that is not UTF-8 became U+FFFD; csv and tsv keep such bytes\n"
HALVES = "svcctl: 2 halves of surrogate pairs became U+FFFD\n"


def served(serve: Serve, body: bytes) -> dict[str, str]:
    """The variables of a profile whose service sends this body."""
    url = serve(head("200 OK", "Content-Type: application/json", f"Content-Length: {len(body)}") + body).url
    return {"SVCCTL_BASE_URL": url, "SVCCTL_AUTH": "token", "SVCCTL_TOKEN": "T"}


@pytest.fixture
def lossy(shell: Shell, serve: Serve) -> Shell:
    return Shell(shell.home, served(serve, ROWS))


READ: dict[str, Any] = {
    "ndjson": lambda text: [json.loads(line) for line in text.splitlines()],
    "json/simple": lambda text: [json.loads(line) for line in text.splitlines()],
    "json": lambda text: json.loads(text)["object"],
    "json/simple/compact": lambda text: [
        dict(zip(("n", "s", "l"), json.loads(line)["d"], strict=True)) for line in text.splitlines()[1:]
    ],
}


@pytest.mark.parametrize("format", READ)
def test_json_is_valid_and_a_note_counts_lost_values(lossy: Shell, format: str) -> None:
    done = lossy(*ASK, "-f", format)
    assert (done.returncode, READ[format](done.stdout)) == (0, RECORDS)
    assert done.stderr == NUMBERS.format("3 numbers") + BYTES + HALVES
    assert lossy("-q", *ASK, "-f", format).stderr == ""


@pytest.mark.parametrize(("format", "separator"), [("csv", ","), ("tsv", "\t")])
def test_bytes_stay_in_csv_and_tsv(lossy: Shell, format: str, separator: str) -> None:
    for option in ((), ("--sort", "s")):
        done = lossy(*ASK, *option, "--columns", "s,l", "-f", format, "--no-header")
        lines = ["caf\udce9,[null]", "\ufffd \ufffd,\0", "\U0001f600,"]
        assert (done.returncode, done.stdout) == (0, "".join(f"{line.replace(',', separator)}\n" for line in lines))
        assert done.stderr == NUMBERS.format("1 number") + HALVES


def test_tables_show_the_replacement_character(lossy: Shell) -> None:
    done = lossy("query", "from a", "--from", "1h", "-f", "table", "--columns", "s")
    assert done.stdout == "s\n----\ncaf\ufffd\n\ufffd \ufffd\n\U0001f600\n"
    assert done.stderr == BYTES + HALVES


@pytest.mark.parametrize(("top", "count"), [(1, "1 number"), (2, "2 numbers"), (3, "2 numbers")])
def test_only_printed_values_are_counted(lossy: Shell, top: int, count: str) -> None:
    ask = ("query", "from a", "--from", "1h", "-f", "ndjson", "--columns", "n")
    done = lossy(*ask, "--sort", "s", "--top", str(top))
    assert (len(done.stdout.splitlines()), done.stderr) == (top, NUMBERS.format(count))


def test_parquet_and_spreadsheets_say_it_too(lossy: Shell, tmp_path: Path) -> None:
    done = lossy(*ASK, "--columns", "s", "-o", str(tmp_path / "a.parquet"))
    assert (done.returncode, done.stderr) == (0, BYTES + HALVES)
    assert parquet.read_table(tmp_path / "a.parquet").column("s").to_pylist() == [row["s"] for row in RECORDS]
    done = lossy(*ASK, "-o", str(tmp_path / "a.xlsx"))
    assert (done.returncode, done.stderr) == (0, NUMBERS.format("3 numbers") + BYTES + HALVES)


def test_an_export_to_parquet_counts_over_all_windows_and_ndjson_keeps_the_bytes(shell: Shell, serve: Serve) -> None:
    rows = b'{"m":{"s":{"type":"str","index":0}}}\n{"d":["caf\xe9"]}\n'
    variables = served(serve, rows)
    export = ("export", "from a select s", "--from", "2024-01-31", "--to", "2024-02-02", "--window", "1d")
    done = shell(*export, "-o", "a.parquet", **variables)
    assert (done.returncode, done.stderr.splitlines(True)[0]) == (
        0,
        BYTES.replace("1 byte that is", "2 bytes that are"),
    )
    assert parquet.read_table(shell.home / "a.parquet").to_pylist() == 2 * [{"s": "caf\ufffd"}]
    done = shell(*export, "-o", "a.ndjson", **variables)
    assert (done.returncode, "U+FFFD" in done.stderr) == (0, False)
    assert (shell.home / "a.ndjson").read_bytes() == 2 * rows


def test_names_that_become_equal_are_refused(shell: Shell, serve: Serve) -> None:
    rows = b'{"m":{"a\xe9":{"type":"int4","index":0},"a\xe8":{"type":"int4","index":1}}}\n{"d":[1,2]}\n'
    variables = served(serve, rows)
    done = shell("query", "from a", "--from", "1h", "-f", "parquet", **variables)
    assert (done.returncode, "two columns are called 'a\ufffd'" in done.stderr) == (2, True)
    done = shell("query", "from a", "--from", "1h", "-f", "vertical", **variables)
    assert (done.returncode, done.stdout) == (0, "row 1\na\ufffd  1\na\ufffd  2\n")
