"""Loads: the texts of refusals and notes, each with a file that leads to it."""

from __future__ import annotations

import bz2
import gzip
import lzma
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.loads import CSV, CSV_COLUMNS, UNREAD, load, packed_with_tar, rows, written

from svcctl.errors import UsageError
from svcctl.service.engines.duckdb import DuckDBEngine

Wished = dict[str, Any]

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
        "give --time-format 'MM/dd/yyyy hh:mm a'; 'dd/MM/yyyy hh:mm a' skips such lines",
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
        "describe how it is written with --time-format, such as 'dd/MM/yyyy HH:mm:ss'",
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
        "describe how it is written with --time-format, such as 'dd/MM/yyyy HH:mm:ss', or name another field with "
        "--time-field",
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
        "it has eventdate, n; load into another table, or make this one anew with its events and the file: "
        "svcctl -p local query 'from there' --from 1970-01-01 -f parquet -o there.parquet && "
        "svcctl service load there.parquet FILE -t there --replace",
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
        "no line of a.csv could be read: it is not UTF-8, as in '10.11.2026;10:15;M\N{REPLACEMENT CHARACTER}ller'",
        "convert the text to UTF-8: iconv -f latin1 -t utf-8 FILE | svcctl service load - -t …",
    ),
    (b"\0" * 100, {}, "the first line of a.csv has the character NUL: it is not a text file in UTF-8", None),
    (
        "n,sent,made,extra\n2,2026-01-05,01/02/2026,7\n",
        {
            "table": "there",
            "time_field": "made",
            "time_format": "MM/dd/yyyy",
            "zone": "America/New_York",
            "types": {"extra": "str"},
        },
        "table 'there' has no column 'sent', 'extra'",
        "it has eventdate, n; load into another table, or make this one anew with its events and the file: "
        "svcctl -p local query 'from there' --from 1970-01-01 -f parquet -o there.parquet && "
        "svcctl service load there.parquet FILE -t there --replace --time-field made --time-format MM/dd/yyyy "
        "--time-zone America/New_York --types extra=str",
    ),
    (
        "time,new\n2026-01-01,2\n",
        {"table": "there", "format": "csv"},
        "table 'there' has no column 'new'",
        "it has eventdate, n; load into another table",
    ),
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
        bz2.compress(b"2026-01-31 10:00:00 a\n"),
        {},
        "a.csv is packed with bzip2, which is not read as it is",
        "unpack it: bzcat FILE | svcctl service load - -t …",
    ),
    (
        lzma.compress(b"2026-01-31 10:00:00 a\n"),
        {},
        "a.csv is packed with xz, which is not read as it is",
        "unpack it: xzcat FILE | svcctl service load - -t …",
    ),
    (
        packed_with_tar(b"2026-01-31 10:00:00 a\n"),
        {},
        "a.csv is a tar archive, which is not read as it is",
        "unpack it with 'tar -xf FILE', and load the files in it",
    ),
    (
        b"PK\x03\x04\x14\n",
        {},
        "a.csv is a spreadsheet or another zip archive, which is not read as it is",
        "save it as csv, or unpack it",
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
        "give --time-format 'MM/dd/yyyy HH:mm'; 'dd/MM/yyyy HH:mm' skips such lines",
    ),
    (
        '{"time": "02/13/2026 10:00 PM"}\n',
        {"format": "ndjson"},
        "a.csv could not be read: line 1: time '02/13/2026 10:00 PM' has the month first, and such dates are read as "
        "day/month",
        "give --time-format 'MM/dd/yyyy hh:mm a'; 'dd/MM/yyyy hh:mm a' skips such lines",
    ),
    (
        "05/11/2026 10:00:00 one\n11/21/2026 10:00:00 two\n",
        {"format": "log"},
        "a.csv could not be read: line 2: eventdate '11/21/2026 10:00:00' has the month first, and such dates are "
        "read as day/month",
        "give --time-format 'MM/dd/yyyy HH:mm:ss'; 'dd/MM/yyyy HH:mm:ss' skips such lines",
    ),
    (
        "date,time\n11/21/2026,12:03\n",
        {},
        "a.csv could not be read: line 2: date '11/21/2026' has the month first, and such dates are read as day/month",
        "give --time-format 'MM/dd/yyyy'; 'dd/MM/yyyy' skips such lines",
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
    *(
        (
            "time,n\n10:00:01,1\n",
            wishes,
            "a.csv could not be read: line 2: time '10:00:01' has no day",
            "name the column of the day too, as in --time-field DATE,TIME; without one, write it before each time",
        )
        for wishes in ({}, {"time_format": "HH:mm:ss"})
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
        "load into another table, or change n to float8 and load again: "
        "svcctl -p local query 'from there' --from 1970-01-01 -f parquet -o there.parquet && "
        "svcctl service load there.parquet -t there --replace --strict --types n=float8",
    ),
    (
        "time,n\n2026-01-01,1.5\n",
        {"types": {"n": "int8"}},
        "a.csv could not be read: line 2: n '1.5' is not int8",
        "read it as another type, such as with --types n=float8",
    ),
    (
        'time,n\n2026-01-01,"1,234"\n',
        {"types": {"n": "float8"}},
        "a.csv could not be read: line 2: n '1,234' is not float8",
        'load it as text, without --types; in a query, float8(replaceall(n, ",", "")) makes numbers of it',
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


def midnight(day: str, rest: str) -> str:
    return f"dates were read from the column {day} and all are at midnight; {rest}"


def zone_as(zone: str, date: str, hour: str) -> str:
    return (
        f"the zone {zone}, which names several, was read so that '{date} {zone}' is 2026-11-20 {hour}:00:00 in UTC; "
        f"for another one, write its offset: sed 's/ {zone}/+HH:MM/' FILE | svcctl service load - -t …"
    )


NOTES: dict[str, tuple[str, str, Wished, list[str]]] = {
    "a day and a time of day": (
        "a.csv",
        "Datum,Uhrzeit\n21.11.2026,10:00:00\n",
        {},
        ["dates were read from two columns: Datum and Uhrzeit"],
    ),
    "days beside several times of day": (
        "a.csv",
        'Datum;Start;Ende;"a,b"\n21.11.2026;10:00;11:00:00.5;12:00\n',
        {},
        [midnight("Datum", "Start, Ende, a,b hold times of day: --time-field Datum,Start reads one of them, too")],
    ),
    "a chosen time of day": (
        "a.csv",
        'Datum;Start;"a,b"\n21.11.2026;10:00;12:00\n',
        {"time_field": "Datum,a,b"},
        ["dates were read from two columns: Datum and a,b"],
    ),
    "chosen days beside a time of day": (
        "a.csv",
        '"a,b";Uhr\n21.11.2026;10:00\n',
        {"time_field": "a,b"},
        [midnight("a,b", "Uhr holds times of day: --time-field a,b,Uhr reads both")],
    ),
    "the only column of times": (
        "a.csv",
        "host,release,seen\nw1,5.10.1,2026-11-22 10:00\n",
        {},
        ["dates were read from the column seen"],
    ),
    "several columns of times": (
        "a.csv",
        "ts,time,n\n2026-01-01,2026-01-02,5\n",
        {},
        [
            "dates were read from the column time, not from ts",
            "ts is text; --types ts=timestamp makes times of it",
        ],
    ),
    "dates whose order is not shown": (
        "a.csv",
        "time\n01/02/2026 10:00\n",
        {},
        [
            "dates such as '01/02/2026 10:00' were read as day/month; as month/day they are read with --time-format "
            "'MM/dd/yyyy HH:mm'"
        ],
    ),
    "a zone of a log that means several": (
        "a.log",
        "2026-11-20 06:00:02 CST [1] up\n",
        {},
        ["the zone CST, which names several, was not read; give --time-zone"],
    ),
    "zones of csv that mean several": (
        "a.csv",
        "time\n2026-11-20 06:00:00 CST\n2026-11-20 06:00 BST\n",
        {},
        [zone_as("CST", "2026-11-20 06:00:00", "12"), zone_as("BST", "2026-11-20 06:00", "00")],
    ),
    "a value in numbers": (
        "a.csv",
        "time,n\n" + "".join(f"2026-01-01,{value}\n" for value in ("1", "2", "n/a", "4")),
        {},
        [
            "n is text, not numbers, because of 'n/a' in line 4; in a query, int8(n) is null there; "
            "--types n=int8 skips such lines"
        ],
    ),
    "a value in numbers of a document": (
        "a.json",
        '[{"time":"2026-01-01","n":1},{"time":"2026-01-01","n":"n/a"},{"time":"2026-01-01","n":2.5}]',
        {},
        [
            "n is text, not numbers, because of 'n/a' in element 2; in a query, float8(n) is null there; "
            "--types n=float8 skips such lines"
        ],
    ),
    "numbers in strings": (
        "a.ndjson",
        '{"time":"2026-01-01","v":200,"w":1.5}\n{"time":"2026-01-01","v":"404","w":"2"}\n',
        {},
        [
            'v is text, not numbers, because of strings such as "404" in line 2; --types v=int8 makes numbers of them',
            'w is text, not numbers, because of strings such as "2" in line 2; --types w=float8 makes numbers of them',
        ],
    ),
    "a number beyond int8": (
        "a.ndjson",
        f'{{"time":"2026-01-01","h":{2**64 - 1}}}\n{{"time":"2026-01-02","h":7}}\n',
        {},
        ["--types h=str keeps such values"],
    ),
    "decimal commas and dots between thousands as text": (
        "a.csv",
        "time,sum\n" + "".join(f'2026-01-01,"{value}"\n' for value in ("1.234,50", "99,90", "7,5")),
        {},
        [
            "sum is text, not numbers, because of decimal commas such as '1.234,50' in line 2; "
            'in a query, float8(replaceall(replaceall(sum, ".", ""), ",", ".")) makes numbers of it'
        ],
    ),
    "decimal commas that are read": (
        "a.csv",
        "time;sum;kg;n\n2026-01-01;1.234,50;2,000;1.234\n2026-01-02;-99,90;0,125;2.345\n",
        {},
        [
            "decimal commas were read in sum, kg: '1.234,50' in line 2 is 1234.5; --types sum=str keeps the text",
            "'1.234' of n in line 2 is 1.234; if dots separate thousands there, --types n=str keeps the text",
        ],
    ),
    "commas between thousands that are read": (
        "a.csv",
        'time,n (net)\n2026-01-01,17\n2026-01-01,"1,234"\n2026-01-01,"-12,345,678"\n',
        {},
        [
            "commas between thousands were read in n (net): '-12,345,678' in line 4 is -12345678; "
            "--types 'n (net)=str' keeps the text"
        ],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", NOTES)
def test_a_note_says_how_a_file_was_read_that_may_be_read_otherwise(
    engine: DuckDBEngine, tmp_path: Path, case: str
) -> None:
    name, text, wishes, notes = NOTES[case]
    assert list(load(engine, written(tmp_path, name, text), "t", **wishes).notes) == notes


def test_the_notes_of_several_files_and_of_parquet(engine: DuckDBEngine, tmp_path: Path) -> None:
    values = pa.array([1.5, float("nan")])
    pq.write_table(pa.table({"time": [datetime(2026, 1, 1)] * 2, "x y": values}), tmp_path / "a.parquet")
    (infinite,) = load(engine, tmp_path / "a.parquet", "infinite").notes
    assert infinite == "NaN and infinite values of x y were read as null"
    texts = {"a": "1.5", "c": "abc"}
    files = [written(tmp_path, f"{name}.csv", f"time,n\n2026-01-01,{text}\n") for name, text in texts.items()]
    (mixed,) = load(engine, files, "mixed").notes
    assert mixed == (
        "n is text, not numbers, because of its values in c.csv; in a query, float8(n) is null there; "
        "--types n=float8 takes lines with numbers only"
    )
    columns = [f"n{at}" for at in range(5)]
    lines = (",".join(["2026-01-01", *[value] * 5]) for value in ("1", "2", "n/a", "4"))
    many = load(engine, written(tmp_path, "d.csv", "\n".join([",".join(["time", *columns]), *lines])), "many")
    assert many.notes[3] == "2 more columns are text, not numbers, because of a few values: n3, n4"
