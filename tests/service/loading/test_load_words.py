"""Loads: the texts of refusals and notes, each with a file that leads to it."""

from __future__ import annotations

import gzip
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.loads import CSV, CSV_COLUMNS, UNREAD, load, rows, told, written

from svcctl.errors import UsageError
from svcctl.service.engines.duckdb import DuckDBEngine

Wished = dict[str, Any]

DESCRIBE = (
    "describe how it is written with --time-format, such as 'dd/MM/yyyy HH:mm:ss', or name another column with "
    "--time-field, or two as DATE,TIME"
)
MONTH_FIRST = "give --time-format MM/dd; with dd/MM such lines are skipped"

REFUSED: list[tuple[str | bytes, Wished, str, str | None]] = [
    (
        "a,b\n1,2\n",
        {},
        "each event needs a time, and it is not clear which column of a.csv has it",
        "name it with --time-field: a, b; if none has it, add a column of times",
    ),
    (
        "n,made,seen,name\n1,2026-01-31,2026-02-01,a\n",
        {},
        "each event needs a time, and it is not clear which column of a.csv has it",
        "name one of those with times with --time-field: made, seen",
    ),
    (
        "n,made,seen\n1,01/31/2026 10:00,02/13/2026 10:00\n",
        {},
        "each event needs a time, and it is not clear which column of a.csv has it",
        "name one of those with times with --time-field: made, seen",
    ),
    (
        "n,made\n1,01/31/2026 10:00 PM\n",
        {},
        "a.csv could not be read: line 2: made '01/31/2026 10:00 PM' has the month first, and such dates are read "
        "as day/month",
        MONTH_FIRST,
    ),
    (
        "# made by x, on y\ntime,v\n2026-01-01,2\n",
        {},
        "a.csv begins with a comment, not with the names of its columns: '# made by x'",
        "leave the comments out: grep -v '^#' FILE | svcctl service load - -t …",
    ),
    (
        "Report of November\n\ntime,v\n2026-01-01,2\n",
        {},
        "a.csv begins with a title, not with the names of its columns: 'Report of November'",
        "begin with the line of the names, the Nth: tail -n +N FILE | svcctl service load - -t …",
    ),
    *(
        (
            text,
            options,
            f"the first line of a.csv looks like data: '{name}'; it must name the columns",
            "put a line of names before it: (echo time,…; cat FILE) | svcctl service load - -t …",
        )
        for name, text, options in (
            ("2026-11-21 10:00", "2026-11-21 10:00,ann,5\n2026-11-21 11:00,bob,7\n", {}),
            ("21/11/2026 10:00:00", "ann;21/11/2026 10:00:00\nbob;21/11/2026 11:00:00\n", {}),
            ("20261121", "ann\t20261121\nbob\t20261122\n", {"time_format": "yyyyMMdd"}),
            ("1763719200", "1763719200,ann\n1763719300,bob\n", {}),
            ("2026-11-21 10:00", "2026-11-21 10:00,5\n2026-11-21 11:00,7\n", {"time_field": "time"}),
            ("2026-11-21 10:00", "2026-11-21 10:00,ann", {}),
            ("11/22/2026 10:00", "11/22/2026 10:00,5\n", {}),
            ("11/22/2026 10:00", "11/22/2026 10:00,5\n11/22/2026 10:01,6\n", {}),
            ("Nov 22 2026 10:00:00", "Nov 22 2026 10:00:00,5\n", {}),
            ("Nov 22 2026 10:00:00", "Nov 22 2026 10:00:00,5\nNov 22 2026 10:01:00,6\n", {}),
        )
    ),
    (
        "#id,b\n1,2\n",
        {},
        "each event needs a time, and it is not clear which column of a.csv has it",
        "name it with --time-field: #id, b; if none has it, add a column of times",
    ),
    ("a,b\n1,2\n", {"time_field": "c"}, "a.csv has no column 'c'", "its columns are a, b"),
    *(
        (
            f"id,when\n1,2026-11-20T10:00:00+02:00\n2,\n3,{other}\n",
            {},
            "each event needs a time, and the column when of a.csv has times and others: "
            f"'{other}' in line 4 is not read as one",
            f"{hint}; or name another column with --time-field: id, when",
        )
        for other, hint in (
            ("11/21/2026 10:00 PM", "write all in one way"),
            ("n/a", "--time-field when skips such lines"),
        )
    ),
    (
        "a,b\nx,2\n",
        {"time_field": "a"},
        "a.csv could not be read: line 2: a 'x' is not a time",
        DESCRIBE,
    ),
    (
        "time,b\nx,2\n",
        {"time_format": "dd/MM"},
        "a.csv could not be read: line 2: time 'x' is not a time",
        "it is not written as in --time-format 'dd/MM'",
    ),
    (
        "time,b\nx,2\n",
        {},
        "a.csv could not be read: line 2: time 'x' is not a time",
        DESCRIBE,
    ),
    (
        "eventdate,b\n2026-01-01,2\n",
        {"time_field": "b"},
        "a.csv has a column eventdate, so 'b' cannot take its place",
        None,
    ),
    ("", {}, "no events in a.csv, and not even a heading", "nothing was changed"),
    ("a,b\n", {"replace": True}, "no events in a.csv", "nothing was changed"),
    (
        "web1,2026-01-01\n",
        {},
        "the first line of a.csv looks like data: '2026-01-01'; it must name the columns",
        "put a line of names before it: (echo time,…; cat FILE) | svcctl service load - -t …",
    ),
    (
        "a,b\n1,2\n",
        {"format": "yaml"},
        "unknown format 'yaml'",
        "formats are csv, tsv, ndjson, json, parquet, access, log, syslog, logfmt",
    ),
    ("a,b\n1,2\n", {"format": "ndjson"}, "a.csv has no line that is a JSON object", None),
    (
        "time,new\n2026-01-01,2\n",
        {"table": "there"},
        "table 'there' has no column 'new'",
        "it has eventdate, n; load into another table, or all files of this one with --replace ('svcctl help loading' "
        "says how to add a column)",
    ),
    (
        "time\n2026-01-01\n",
        {"table": "no table"},
        "'no table' cannot name a table",
        "use letters, digits and _ in parts joined by dots, as in web.access",
    ),
    (
        "\ufefftime,n\n2026-01-01,1\n".encode("utf-16le"),
        {},
        "a.csv is text in UTF-16, not in UTF-8",
        "convert it: iconv -f utf-16 -t utf-8 FILE | svcctl service load - -t …",
    ),
    (
        "time,n\n2026-01-01,1\n".encode("utf-16le"),
        {},
        "a.csv is text in UTF-16LE, not in UTF-8",
        "convert it: iconv -f utf-16le -t utf-8 FILE | svcctl service load - -t …",
    ),
    (
        "Datum;Zeit;Kunde\n10.11.2026;10:15;Müller\n".encode("latin-1"),
        {"time_field": "Kunde"},
        "no line of a.csv could be read: it is not UTF-8, as in line 2: "
        "'10.11.2026;10:15;M\N{REPLACEMENT CHARACTER}ller'",
        "convert the text to UTF-8: iconv -f latin1 -t utf-8 FILE | svcctl service load - -t …",
    ),
    (b"\0" * 100, {}, "the first line of a.csv has the character NUL: it is not a text file in UTF-8", None),
    (
        CSV,
        {"table": "nightly.group"},
        "'nightly.group' cannot name a table: group is a word of the query language",
        "use another name, such as nightly.group_",
    ),
    (
        CSV,
        {"table": "2026.orders"},
        "'2026.orders' cannot name a table: 2026 begins with a digit",
        "use another name, such as t2026.orders",
    ),
    (
        UNREAD["a.json"][0],
        {"format": "json"},
        "a.csv is the answer of a query as one document, which is not read as it is",
        "write the answer with -f ndjson, which can be loaded",
    ),
    (
        UNREAD["c.xml"][0],
        {"format": "json"},
        "a.csv is a document of XML, which is not read as it is",
        "write or convert it as csv or ndjson",
    ),
    (
        "time\n01/02/2026 10:00\n02/13/2026 10:00\n",
        {},
        "a.csv could not be read: line 3: time '02/13/2026 10:00' has the month first, and such dates are read as "
        "day/month",
        MONTH_FIRST,
    ),
    (
        '{"time": "02/13/2026 10:00 PM"}\n',
        {"format": "ndjson"},
        "a.csv could not be read: line 1: time '02/13/2026 10:00 PM' has the month first, and such dates are read as "
        "day/month",
        MONTH_FIRST,
    ),
    (
        "05/11/2026 10:00:00 one\n11/21/2026 10:00:00 two\n",
        {"format": "log"},
        "a.csv could not be read: line 2: eventdate '11/21/2026 10:00:00' has the month first, and such dates are "
        "read as day/month",
        MONTH_FIRST,
    ),
    (
        "date,time\n11/21/2026,12:03\n",
        {},
        "a.csv could not be read: line 2: date '11/21/2026' has the month first, and such dates are read as day/month",
        MONTH_FIRST,
    ),
    (
        "2026 x\n",
        {"format": "log", "time_format": "%Y%m%d %H%M%S"},
        "a.csv could not be read: line 1: '2026 x' is not a line with a time",
        "it is not written as in --time-format '%Y%m%d %H%M%S'",
    ),
    (
        "Datum,Uhr\n2026-11-21,noon\n",
        {"time_field": "Datum,Uhr"},
        "column 'Uhr' of a.csv has values that are no times of day",
        "they are written as 10:00 or 10:00:00; --time-field Datum reads the days alone",
    ),
    ("time,n\n10:00:01,1\n", {}, "a.csv could not be read: line 2: time '10:00:01' is not a time", DESCRIBE),
    (
        "time\n01/02/2026 10:00\n",
        {},
        "dates of a.csv such as '01/02/2026 10:00' may have the day or the month first",
        "say which with --time-format dd/MM or --time-format MM/dd",
    ),
    (
        "time\n2026-11-20 06:00 BST\n",
        {},
        "times of a.csv have the zone BST, which means several",
        "name the one that it means with --time-zone, such as America/Chicago",
    ),
    (
        "time\n2026-11-20 06:00 BST\n2026-11-20 06:00 CST\n",
        {},
        "times of a.csv have the zones BST, CST, which mean several",
        "write their offsets, such as +08:00, in the file",
    ),
    (
        "Datum;Start;Ende\n21.11.2026;10:00;11:00:00.5\n",
        {},
        "the column Datum of a.csv has days, and Start, Ende have times of day",
        "read both with --time-field Datum,Start or --time-field Datum,Ende; or the days alone with --time-field Datum",
    ),
    (
        "host,release,seen\nw1,5.10.1,2026-11-22 10:00\nw2,6.1,never\n",
        {},
        "each event needs a time, and the column seen of a.csv has times and others: 'never' in line 3 is not read as "
        "one",
        "--time-field seen skips such lines; or name another column with --time-field: host, release, seen",
    ),
    (
        "host,said\nw1,2026-11-22 10:00\nw2,up\nw3,down\n",
        {},
        "each event needs a time, and it is not clear which column of a.csv has it",
        "name it with --time-field: host, said; if none has it, add a column of times",
    ),
    (
        "host,release\nw1,5.10.1\nw2,6.1\n",
        {},
        "each event needs a time, and it is not clear which column of a.csv has it",
        "name it with --time-field: host, release; if none has it, add a column of times",
    ),
    (
        "time,n\n2026-01-01,1.5\n",
        {"table": "there"},
        "a.csv could not be read: line 2: n '1.5' is not int8",
        "load into another table, or all files of this one with --replace --types n=float8 ('svcctl help loading' says "
        "how to change a column)",
    ),
    (
        "time,n\n2026-01-01,1.5\n",
        {"types": {"n": "int8"}},
        "a.csv could not be read: line 2: n '1.5' is not int8",
        "read it as another type, such as with --types n=float8",
    ),
    (
        gzip.compress(b"time,n\n2026-01-01,1\n", mtime=0)[:-1],
        {},
        "a.csv is damaged or cut off: Truncated compressed stream",
        "nothing of it was loaded; copy or download the file again",
    ),
]


@pytest.mark.parametrize(("text", "options", "message", "hint"), REFUSED, ids=[message for _, _, message, _ in REFUSED])
def test_what_cannot_be_loaded_is_refused_and_leaves_nothing(
    engine: DuckDBEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str | bytes,
    options: Wished,
    message: str,
    hint: str | None,
) -> None:
    monkeypatch.chdir(tmp_path)
    engine.create("there", CSV_COLUMNS[:2])
    written(tmp_path, "a.csv", text)
    with pytest.raises(UsageError) as caught:
        load(engine, Path("a.csv"), **({"table": "t"} | options))
    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert list(engine.tables()) == ["there"]
    assert rows(engine, "there") == []


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/dev/zero", "cannot read zero: it is not a regular file"),
        ("/", "cannot read : it is not a regular file"),
        ("/" + "x" * 300, f"cannot read {'x' * 300}: File name too long"),
        ("/nowhere/nope.csv", "cannot read nope.csv: No such file or directory"),
    ],
)
def test_what_is_no_file_is_refused(engine: DuckDBEngine, path: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(engine, Path(path), "t", format="csv")
    assert caught.value.message == message


def test_a_column_that_no_file_has_is_refused_with_the_one_that_all_have(engine: DuckDBEngine, tmp_path: Path) -> None:
    files = [written(tmp_path, f"{name}.csv", "eventdate,n\n2026-01-01,1\n") for name in "ab"]
    with pytest.raises(UsageError) as caught:
        load(engine, files, "t", time_field="maed")
    assert str(caught.value) == "no file has a column 'maed'"
    assert caught.value.hint == "leave out --time-field: all have eventdate"


SAID: dict[str, tuple[str, str | bytes, Wished, list[str]]] = {
    "every reason to skip a line of csv": (
        "a.csv",
        b'time,n\n2026-01-01T00:00Z,1\n2026-01-01,1,2\n2026-01-01,caf\xe9\n,3\nsoon,4\n1969-12-31,5\n2026-01-01,x\n"open\n',
        {"types": {"n": "int8"}},
        [
            "line 4: it is not UTF-8: '2026-01-01,caf\N{REPLACEMENT CHARACTER}'",
            "line 9: a quote in it is not closed: '\"open'",
            "line 3: it has too many cells: '2026-01-01,1,2'",
            "line 5: it has no time",
            "line 6: time 'soon' is not a time",
            "line 7: time '1969-12-31' is before 1970, where no query begins",
            "line 8: n 'x' is not int8",
        ],
    ),
    "a line that is too long": (
        "a.log",
        "2026-01-01 00:00:00Z a\n2026-01-01 00:00:00Z " + "x" * (1 << 24),
        {},
        ["line 2: it is longer than 16 MiB"],
    ),
    "lines of syslog without a time": (
        "messages",
        "<34>1 2024-01-31T10:00:00Z h a - - - ok\n<34>1 - - - - - - x\nnoise\n",
        {},
        ["line 3: 'noise' is not a line of syslog", "line 2: the time of '<34>1 - - - - - - x' is not a time"],
    ),
    "rows with too few cells": (
        "a.csv",
        "time,n,m\n2026-01-01T00:00Z,1\n2026-01-01T00:00Z\n",
        {},
        ["the last cells are missing, and null: 2 rows; the first: line 2"],
    ),
    "several columns of times": (
        "a.csv",
        "ts,time,n\n2026-01-01,2026-01-02T00:00Z,5\n",
        {},
        [
            "dates were read from the column time, not from ts; --time-field names another",
            "text: ts; --types ts=timestamp makes times of them",
        ],
    ),
    "values in numbers": (
        "a.csv",
        "time,n,m\n" + "".join(f"2026-01-01T00:00Z,{value},{value}\n" for value in ("1", "2.5", "n/a", "4", "-")),
        {},
        [
            "text, not numbers: n, m, because of 2 rows such as 'n/a' in line 4; --types n=float8,m=float8 skips lines "
            "without a number, and --null names texts that stand for nothing"
        ],
    ),
    "numbers with commas": (
        "a.csv",
        "time;sum;kg\n2026-01-01T00:00Z;1.234,50;2,00\n2026-01-02T00:00Z;-99,90;0\n",
        {},
        [
            "decimal commas in numbers of sum, kg: 2 rows such as '1.234,50' in line 2; --types sum=str,kg=str keeps "
            "the text"
        ],
    ),
    "objects inside events": (
        "a.ndjson",
        '{"time":"2024-01-31T00:00Z","http":{"status":200},"list":[1]}\n',
        {},
        [
            """JSON text: http; for columns of the members: jq -c 'reduce (to_entries[] | select(.value|"""
            """type=="object")) as $o (.; del(.[$o.key]) + ($o.value | with_entries(.key |= $o.key+"_"+.)))' FILE | """
            """svcctl service load - -t …"""
        ],
    ),
    "an access log with more fields than a combined one": (
        "access.log",
        '10.0.0.1 - - [31/Jan/2024:10:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "curl/8"\n'
        '10.0.0.1 - - [31/Jan/2024:10:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "curl/8" "10.1.1.1" rt=0.003\n',
        {},
        [
            "the ends of 1 row were left out, as common and combined logs do not have them: "
            "'\"10.1.1.1\" rt=0.003' in line 2"
        ],
    ),
    "times that are too fine, without a zone and in the future": (
        "a.csv",
        "time\n2999-01-01 10:00:00.123456\n",
        {},
        [
            "times are kept to the millisecond: 1 row such as '2999-01-01 10:00:00.123456' of eventdate in line 2",
            "times without a zone were read as UTC: 1 row; --time-zone names their zone",
            "events in the future, which a query that ends now does not have: 1; the first: line 2",
        ],
    ),
    "a zone with several meanings": (
        "a.csv",
        "time\n2026-11-20 06:00 CST\n",
        {"zone": "Asia/Shanghai"},
        ["times with a zone that means several were read in --time-zone: 1 row; the first: line 2"],
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_what_happened_to_lines_is_said_in_one_sentence_for_each_kind(
    engine: DuckDBEngine, tmp_path: Path, case: str
) -> None:
    name, text, wishes, said = SAID[case]
    result = load(engine, written(tmp_path, name, text), "t", **wishes)
    assert [*map(told, result.skips), *(change.sentence for change in result.changes)] == said


def test_what_happened_in_several_files_is_counted_in_all_with_the_first_place(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    values = pa.array([1.5, float("nan")])
    days = pa.array([datetime(2026, 1, 1)] * 2, pa.timestamp("us", "UTC"))
    for name in ("a", "b"):
        pq.write_table(pa.table({"time": days, "x y": values}), tmp_path / f"{name}.parquet")
    texts = written(tmp_path, "c.csv", "time,x y\n2026-01-01T00:00Z,abc\n")
    result = load(engine, [tmp_path / "a.parquet", tmp_path / "b.parquet", texts], "t")
    assert [change.sentence for change in result.changes] == [
        "text, not numbers: x y, because of their values in c.csv; --types 'x y=float8' skips lines without a number",
        "NaN and infinite numbers of x y are null: 2 rows; the first: a.parquet, row 2",
    ]
