"""Loads: the texts of refusals and findings, each with a file that leads to it."""

from __future__ import annotations

import gzip
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.loads import ANY, CSV, CSV_COLUMNS, load, rows, told, written

from svcctl.errors import UsageError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.loading.skips import Change

Wished = dict[str, Any]

DESCRIBE = (
    "describe the time with --time-format, such as '%d/%m/%Y %H:%M:%S', or name another column with "
    "--time-field, or two as DATE,TIME"
)
CONVERT = "not-utf8"
UNCLEAR = "each event needs a time, and it is not clear which column of a.csv has the time"
NAMES = "no-column-names"
ORDER = "add --time-format %d/%m if the day is first, or --time-format %m/%d if the month is first"
ANEW = "load into another table, or replace it"
TYPE = "read the column as another type, such as with --types n=str"
NUL = "nul-character"

REFUSED: list[tuple[str | bytes, Wished, str, str | None]] = [
    ("a,b\n1,2\n", {}, UNCLEAR, "no-column-of-times"),
    (
        "n,made,seen\n1,01/31/2026 10:00,2026-02-01\n",
        {},
        UNCLEAR,
        "choose a column of times with --time-field: made, seen",
    ),
    (
        "n,made\n1,01/31/2026 10:00 PM\n",
        {},
        "dates of a.csv such as '01/31/2026 10:00 PM' may have the day or the month first",
        ORDER,
    ),
    (
        "05/11/2026 10:00:00 one\n",
        {"format": "log"},
        "dates of a.csv such as '05/11/2026 10:00:00' may have the day or the month first",
        ORDER,
    ),
    *(
        (text, options, f"the first line of a.csv looks like data: '{name}'; it must name the columns", NAMES)
        for name, text, options in (
            ("2026-11-21 10:00", "2026-11-21 10:00,ann,5\n2026-11-21 11:00,bob,7\n", {}),
            ("11/22/2026 10:00:00", "ann;11/22/2026 10:00:00\nbob;11/22/2026 11:00:00\n", {}),
            ("20261121", "ann\t20261121\nbob\t20261122\n", {"time_format": "%Y%m%d"}),
            ("2026-11-21 10:00", "2026-11-21 10:00,ann", {}),
            ("1763719200", "ann,1763719200\n", {}),
            ("1763719200.5", "1763719200.5,ann\n1763719201.5,bob\n", {}),
            ("2026-11-21T10:00:00Z", "2026-11-21T10:00:00Z,ann\n2026-11-21T11:00:00Z,bob\n", {}),
        )
    ),
    ("a,b\n1,2\n", {"time_field": "c"}, "a.csv has no column 'c'", "its columns are a, b"),
    (
        ",".join(f"c{n}" for n in range(200)) + "\n" + "1," * 199 + "1\n",
        {"time_field": "c"},
        "a.csv has no column 'c'",
        f"its columns are {', '.join(f'c{n}' for n in range(20))} and 180 more",
    ),
    ("time,b\nx,2\n", {}, "a.csv could not be read: line 2: time 'x' is not a time", DESCRIBE),
    (
        "eventdate,b\n2026-01-01,2\n",
        {"time_field": "b"},
        "a.csv has a column eventdate, so 'b' cannot take its place",
        None,
    ),
    (
        "2026-11-20 06:00:01 a\n2026-11-20 06:00:02 CST b\n",
        {"format": "log"},
        "times of a.csv such as '2026-11-20 06:00:02 CST' end with an abbreviation of a zone, which may mean several "
        "zones",
        "abbreviated-zone",
    ),
    (
        "time,größe\n2026-01-01,1\n".encode("latin1"),
        {},
        "the names of columns of a.csv are not UTF-8: 'time,gr\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}e'",
        CONVERT,
    ),
    ("time,b\n", {"replace": True}, "no events in a.csv", "nothing was changed"),
    (
        "a,b\n",
        {},
        "a.csv has only one line, and it is not clear whether it names columns: 'a,b'",
        NAMES,
    ),
    (
        "a,b\n1,2\n",
        {"format": "yaml"},
        "unknown format 'yaml'",
        "formats are csv, tsv, ndjson, json, parquet, access, log, syslog, logfmt, fields",
    ),
    (
        "a,b\n1,2\n",
        {"format": "ndjson"},
        "a.csv has no line that is a JSON object with members; the first is 'a,b'",
        None,
    ),
    *(
        (
            f'{{"n":1}}{rest}\n{{"n":2}}{rest}\n',
            {"format": "ndjson"},
            "a.csv has no line that is a JSON object with members; the first is "
            f"'{{\"n\":1}}{rest}', with '{rest}' after the object",
            hint,
        )
        for rest, hint in ((",", "end each object with a line end, without a comma"), ("//x", None))
    ),
    (
        "time\n2026-01-01\n",
        {"time_format": "dd/MM/yyyy"},
        "'dd/MM/yyyy' is not a format of times",
        "write it as in '%d/%m/%Y %H:%M:%S' (help loading), or only %d/%m or %m/%d; or name the unit of numbers: "
        "epoch, epoch_ms, epoch_us, epoch_ns, spreadsheet",
    ),
    *(
        (
            "time\n2026-01-01\n",
            {"time_format": format},
            f"the format of times '{format}' has the unknown code {code}",
            "unknown-time-code",
        )
        for format, code in (("%s", "%s"), ("%Y-%m-%d %q", "%q"), ("%d%", "%"))
    ),
    (
        "time,new\n2026-01-01,2\n",
        {"table": "there", "fixed_columns": True},
        "table 'there' has no column 'new'",
        "it has eventdate, n",
    ),
    (
        "time,n\n2026-01-01,2\n",
        {"table": "there", "types": {"n": "int4"}},
        "column 'n' of table 'there' is already int8, not int4",
        ANEW,
    ),
    (
        "time\n2026-01-01\n",
        {"table": "no table"},
        "'no table' cannot be the name of a table",
        "join parts of letters, digits and _ with dots, as in web.access; a part cannot begin with a digit",
    ),
    (
        CSV,
        {"table": "group"},
        "'group' cannot be the name of a table: queries would need back quotes around it",
        None,
    ),
    (
        "\ufefftime,n\n2026-01-01,1\n".encode("utf-16le"),
        {},
        "a.csv is not text in UTF-8: its first line has the character NUL",
        NUL,
    ),
    ('\x1e{"n":1}\n\x1e{"n":2}\n', {}, "a.csv has record separators (0x1E) before its entries", "record-separators"),
    (
        "Datum;Zeit;Kunde\n10.11.2026;10:15;Müller\n".encode("latin-1"),
        {"time_field": "Kunde"},
        "a.csv could not be read: line 2: it is not UTF-8: '10.11.2026;10:15;M\N{REPLACEMENT CHARACTER}ller'",
        CONVERT,
    ),
    (
        "2026 x\n",
        {"format": "log", "time_format": "%Y%m%d %H%M%S"},
        "a.csv could not be read: line 1: '2026 x' is not an entry of the format log",
        "no-time-in-line",
    ),
    (
        "time\n2026-11-20 06:00 BST\n",
        {},
        "times of a.csv such as '2026-11-20 06:00 BST' end with an abbreviation of a zone, which may mean several "
        "zones",
        "abbreviated-zone",
    ),
    (
        "Datum;Start;Ende\n21.11.2026;10:00;11:00:00.5\n",
        {},
        "the column Datum of a.csv has days, and times of day are in Start, Ende",
        "read both with --time-field Datum,Start or --time-field Datum,Ende; or the days alone with --time-field Datum",
    ),
    (
        "time,n\n2026-01-01,1.5\n",
        {"types": {"n": "int8"}, "strict": True},
        "a.csv could not be read: line 2: n '1.5' is not int8",
        "nothing was changed; without --strict such values are null",
    ),
    *(
        (
            f'[{{"time":1763719201,"n":1}}{text}',
            {"format": "json"},
            f"a.csv is damaged or cut off: it does not end with {end}",
            "nothing of it was loaded; copy or download the file again",
        )
        for text, end in ((",\n", "]"), ("] x", "]"))
    ),
    *(
        (
            f'[{{"time":1763719201}},\n{{"time":1763719202}}{text}',
            {"format": "json"},
            f"a.csv could not be read: line {line} is not JSON: {rest}",
            "nothing was changed",
        )
        for text, line, rest in (
            (",\n{,}]", 3, "',}]'"),
            ("]\n[1]", 3, "'[1]'"),
            ("\n" + ',{"time":1763719203}\n' * 100_000 + '{"time":1763719204}]', 100_003, "'{\"time\":1763719204}]'"),
        )
    ),
    *(
        (f"ts,n\n{number},1\n", {}, f"numbers in ts of a.csv such as '{number}' {meaning}", "unclear-numbers")
        for number, meaning in (
            ("20240131", "look like dates"),
            ("20240131100000", "look like dates"),
            ("101500", "may be times of day"),
            ("45322.4", "may be days of a spreadsheet"),
            ("0.031415", "are not epochs between 2000 and now"),
            ("1796169601", "are not epochs between 2000 and now"),
        )
    ),
    (
        '{"eventdate":1763719200}',
        {"format": "ndjson"},
        "numbers in eventdate of a.csv such as '1763719200' may be epoch seconds, or milliseconds of 1970",
        "seconds-or-milliseconds",
    ),
    *(
        (f"{time} x\n", {"format": "log"}, f"a.csv could not be read: the time '{time}' {lack}", reason)
        for time, lack, reason in (
            ("24/01/31 10:00:00", "has a year of two digits", "time-of-short-year"),
            ("01-31 10:00:00.123", "has no year", "time-without-year"),
            ("I0131 10:00:00.123456", "has no year", "time-without-year"),
            ("10:00:00.123", "has no date", "time-without-day"),
        )
    ),
    (
        "time,n\n10:00:00,1\n",
        {},
        "the column time of a.csv has times of day, but no column has the days",
        "no-column-of-days",
    ),
    (
        "#Version: 1.0\na b\n",
        {"format": "fields"},
        "a.csv has no line that names its fields",
        "no-field-names",
    ),
    (
        "#Fields: date time a\n2026-01-01 10:00:00 1\n#Fields: date time b\n",
        {"format": "fields"},
        "line 3 of a.csv names other fields than the lines above: '#Fields: date time b'",
        "split the file there, and load its parts",
    ),
    (
        gzip.compress(b"time,n\n2026-01-01,1\n", mtime=0)[:-1],
        {},
        "a.csv is damaged or cut off: Truncated compressed stream",
        "nothing of it was loaded; copy or download the file again",
    ),
]


@pytest.mark.parametrize(
    ("text", "options", "message", "hint_or_reason"), REFUSED, ids=[message for _, _, message, _ in REFUSED]
)
def test_what_cannot_be_loaded_is_refused_and_leaves_nothing(
    engine: DuckDBEngine, tmp_path: Path, text: str | bytes, options: Wished, message: str, hint_or_reason: str | None
) -> None:
    engine.create("there", CSV_COLUMNS[:2])
    with pytest.raises(UsageError) as caught:
        load(engine, written(tmp_path, "a.csv", text), **({"table": "t"} | options))
    hinted = caught.value.hint or {"unusable": None}.get(caught.value.reason, caught.value.reason)
    assert (caught.value.message, hinted) == (message, hint_or_reason)
    assert list(engine.tables()) == ["there"]
    assert rows(engine, "there") == []


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/dev/zero", "cannot read zero: it is not a regular file"),
        ("/nowhere/nope.csv", "cannot read nope.csv: No such file or directory"),
    ],
)
def test_what_is_no_file_is_refused(engine: DuckDBEngine, path: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(engine, Path(path), "t", format="csv")
    assert caught.value.message == message


SAID: dict[str, tuple[str, str | bytes, Wished, list[str]]] = {
    "every reason to skip a line of csv": (
        "a.csv",
        b'time,n\n2026-01-01T00:00Z,1\n2026-01-01,1,2\n2026-01-01,caf\xe9\n,3\nsoon,4\n1969-12-31,5\n"open\n',
        {"max_skipped": ANY},
        [
            "line 4: it is not UTF-8: '2026-01-01,caf\N{REPLACEMENT CHARACTER}'",
            "line 8: a quote in it is not closed: '\"open'",
            "line 3: it has too many cells: '2026-01-01,1,2'",
            "line 5: it has no time that can be read",
            "line 6: time 'soon' is not a time",
            "line 7: time '1969-12-31' is before 1970, the first year of events",
        ],
    ),
    "bytes of another encoding in a log": (
        "a.log",
        "2026-01-01 00:00:00Z a\n2026-01-01 00:00:00Z é\n2026-01-01 00:00:00Z é\n".encode("latin1"),
        {},
        ["line 2: bytes that are not UTF-8 were replaced by \N{REPLACEMENT CHARACTER}"],
    ),
    "a line that is too long": (
        "a.log",
        "2026-01-01 00:00:00Z a\n2026-01-01 00:00:00Z " + "x" * (1 << 24),
        {},
        ["line 2: it is longer than 17 MB"],
    ),
    "lines of syslog without a time": (
        "messages",
        "<34>1 2024-01-31T10:00:00Z h a - - - ok\n<34>1 - - - - - - x\nnoise\n",
        {"format": "syslog", "max_skipped": ANY},
        [
            "line 3: 'noise' is not an entry of the format syslog",
            "line 2: it has no eventdate that can be read",
        ],
    ),
    "numbers and incomplete times after times that can be read": (
        "a.csv",
        "ts\n" + "1763719200\n" * 36 + "0\n10:15:00\n01/31/24\nJan 31 10:00:00\n",
        {},
        [
            "line 38: ts '0' is not an epoch between 2000 and tomorrow in the unit of the other numbers; "
            "for epochs of any year, name their unit as the time format: epoch, epoch_ms, epoch_us or epoch_ns",
            "line 40: ts '01/31/24' has a year of two digits",
            "line 41: ts 'Jan 31 10:00:00' has no year",
            "line 39: ts '10:15:00' has no date",
        ],
    ),
    "every change of csv": (
        "a.csv",
        "made,n,x y\n"
        + "".join(f"2026-01-01 00:00:00.123456,{value},{value}\n" for value in ("1", "2.5", "n/a"))
        + "2026-01-01 00:00Z,1\n2026-01-01,,n/a\n",
        {},
        [
            "line 2: dates were read from the column made; --time-field names another",
            "line 5: the last cells are missing, and were read as null",
            "line 4: text, not numbers, because of other values in the column: n, x y; --types "
            "'n=float8,x y=float8' turns other values into null, and --null names texts that mean null (an existing "
            "table also needs --replace)",
            "line 2: times are kept to the millisecond",
            "line 2: times without a zone were read as UTC; --time-zone names their zone",
        ],
    ),
    "lines that are no events": (
        "a.csv",
        "# made today\n\ntime,n\n2026-01-01T00:00Z,1\n# half\ntime,n\n2026-01-01T00:00Z,x\n\n2026-0",
        {"types": {"n": "int8"}},
        [
            "line 7: 'x' is not int8",
            "line 1: it is a comment, and was left out",
            "line 1: it is blank, and was left out",
            "line 6: it is the heading again, and was left out",
            "line 9: it is the last line, is not finished, and was left out: '2026-0'",
        ],
    ),
    "lines of a log that belong to others": (
        "a.log",
        "2026-01-01 00:00:00Z a\nError: b\n  at c\n\n2026-01-01 00:00:01Z d\n",
        {},
        ["line 2: it belongs to the entry above it", "line 4: it is blank, and was left out"],
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_what_happened_to_lines_is_said_in_one_sentence_for_each_kind(
    engine: DuckDBEngine, tmp_path: Path, case: str
) -> None:
    name, text, options, said = SAID[case]
    result = load(engine, written(tmp_path, name, text), "t", **options)
    assert [told(one) for one in (*result.skips, *result.nulls, *result.asides, *result.changes)] == said


def test_what_happened_in_several_files_is_counted_in_all_with_the_first_place(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    days = pa.array([datetime(2026, 1, 1)] * 2, pa.timestamp("us", "UTC"))
    for name in ("a", "b"):
        pq.write_table(pa.table({"time": days, "x y": [1.5, float("nan")]}), tmp_path / f"{name}.parquet")
    [found] = load(engine, [tmp_path / "a.parquet", tmp_path / "b.parquet"], "t").changes
    assert (found.count, told(found)) == (2, "a.parquet, row 2: NaN and infinite numbers are null: x y")


def test_a_column_that_is_text_because_of_another_file_is_noted_unless_its_type_was_named(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    files = [
        written(tmp_path, f"{n}.csv", f"time,n\n2026-01-01T00:00Z,\n2026-01-01T00:00Z,{n}\n")
        for n in ("1", "one", "true", "2")
    ]
    [found] = load(engine, files, "t").changes
    assert (found.what, found.count, found.place, found.fields) == (Change.TEXT, 2, "one.csv, line 3", ("n",))
    assert load(engine, files, "t").changes == load(engine, files, "u", types={"n": "str"}).changes == ()
