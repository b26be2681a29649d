"""The kind of a file by the share of its first lines, and how much of a file may be skipped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.loads import ANY, columns, load, rows, written

from svcctl.api.loads import SkipLimit
from svcctl.errors import UsageError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.loading.heads import HEAD_BYTES, head_of, kind_of
from svcctl.service.loading.recognition import TIME_NAMES

ACCESS = '10.0.0.1 - - [31/Jan/2024:10:00:00 +0000] "GET / HTTP/1.1" 200 512\n'
LOG = "2024-01-31T00:00:01.564Z www turned[20784]: over\n"
SYSLOG = "Jan 31 10:00:00 web1 sshd[123]: a\n"
NDJSON = '{"time":"2024-01-31","a":[1,2],"b":"c, d"}\n'
W3C = "#Fields: date time\n2024-01-31 10:00:00\n"
TRACE = "Traceback (most recent call last):\n  File x\nValueError: y\n"


def kind(name: str, text: str | bytes, written: str = "") -> str:
    data = text if isinstance(text, bytes) else text.encode()
    return kind_of(head_of(name, data[:HEAD_BYTES]), Path(name).suffix, written, TIME_NAMES).name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LOG + ACCESS * 9, "access"),
        (SYSLOG + ACCESS * 9, "access"),
        (ACCESS + LOG * 9, "log"),
        ("starting, with a comma\n" + LOG * 9, "log"),
        ((LOG + TRACE) * 5, "log"),
        ((LOG + "java.lang.Error: x\n\tat a.b\nCaused by: y\n\t... 3 more\n}\n") * 5, "log"),
        ("# a\n\n# b\n" + SYSLOG, "syslog"),
        ("oops, no JSON\n" + NDJSON * 9, "ndjson"),
        (NDJSON * 30_000, "ndjson"),
        (NDJSON.replace("\n", " \n") * 9, "ndjson"),
        ('{"time":1,"a":"' + "x" * (2 * HEAD_BYTES), "ndjson"),
        ('{ "time": 1,\n  "v": 1 }\n' * 9, "json"),
        ("[" + NDJSON.strip() + ",\n" + NDJSON.strip() + "]\n", "json"),
        ("[\n" + f"{NDJSON.strip()},\n" * 40_000, "json"),
        ('{"time":1} {"time":2}\n', "json"),
        ("time,a\n" + '2024-01-31,"b\nc"\n' * 9, "csv"),
        ("time,a\n2024-01-31\tb,c\n", "csv"),
        ("time\ta,b\n" + "2024-01-31\tb,c\n" * 9, "tsv"),
        ("time,a\n", "csv"),
        ("time\n" + "2024-01-31 10:00:00\n" * 30, "csv"),
        ("Day;n\n" + "31.01.2024 10:00:00;1\n" * 9, "csv"),
        ("sep=;\n\nDay;n;a,b,c,d\n" + "31.01.2024 10:00:00;1;x,y\n" * 9, "csv"),
        ("Day\tn\n" + "2024-01-31 10:00:00\t1\n" * 9, "tsv"),
        ("Day\tn\n" + "1763719200\t1\n" * 9, "tsv"),
        ("Hello, World\n" + "2024-01-31 10:00:00, Info a\n" * 9, "log"),
        ("Start|of the log\n" + LOG.replace("over", "a|b") * 9, "log"),
        (b"PAR1\0\1", "parquet"),
        ("-- Journal begins at Mon. --\n" + SYSLOG, "syslog"),
        (SYSLOG + "-- Boot 3f2a --\n" * 9, "syslog"),
        ("unix:" + ACCESS.removeprefix("10.0.0.1"), "access"),
        (f"INFO:web:{ACCESS}", "log"),
        (("\ufeff" + LOG + LOG) * 3, "log"),
        (LOG.replace("\n", "\r\r\n") * 3, "log"),
        (LOG.replace("over", "1%\r2%\r3%") + LOG * 3, "log"),
        ("time,a\r2024-01-31,b\r", "csv"),
        (NDJSON * 3 + NDJSON[:20], "ndjson"),
        (ACCESS * 3 + ACCESS[:20], "access"),
        (SYSLOG * 3 + SYSLOG[:5], "syslog"),
        ('{ "time": 1,\n  "v": 1 }\n{ "ti', "json"),
        (f"#Version: 1.0\n{W3C}", "fields"),
        ("#separator \\x2c\n#fields,ts\n1763719200\n", "fields"),
        ("#fields\tts\n1763719200\n", "fields"),
        (f"# fields\n#fields of a log\n{LOG}", "log"),
        (LOG * 9 + W3C, "log"),
    ],
)
def test_the_kind_of_a_file_is_the_one_that_reads_most_of_its_head(text: str | bytes, expected: str) -> None:
    assert kind("a", text) == expected
    assert kind("a.txt", text) == expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.csv", NDJSON * 9, "ndjson"),
        ("a.csv", "#Fields: date,time\n2024-01-31,10:00:00\n", "fields"),
        ("a.csv", "a,b\n1\n1,2,3\n", "csv"),
        ("a.json", NDJSON + "oops\n", "ndjson"),
        ("a.json", "{}\n" + LOG * 19, "log"),
        ("a.ndjson", NDJSON.replace("[1,2]", "\t,") + NDJSON, "ndjson"),
    ],
)
def test_an_ending_decides_only_if_no_other_kind_reads_the_head(name: str, text: str, expected: str) -> None:
    assert kind(name, text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            LOG + ACCESS * 2,
            "of its first 3 lines, access fits 66% and log fits 33%; the first line that does not fit is line 1",
        ),
        (
            ACCESS * 8 + LOG * 2,
            "of its first 10 lines, access fits 80% and log fits 20%; the first line that does not fit is line 9",
        ),
        (LOG + "foo\n" * 9, "of its first 10 lines, log fits 10%; the first line that does not fit is line 2: 'foo'"),
        (
            SYSLOG * 8 + "foo\n" * 2,
            "of its first 10 lines, syslog fits 80%; the first line that does not fit is line 9: 'foo'",
        ),
        (NDJSON.replace("[1,2]", "NULL,") * 2, 'no format fits the line \'{"time":"2024-01-31","a":NULL,,'),
        ("Hello, World\n", "no format fits the line 'Hello, World'"),
        (
            "Hello, World, and so on\nfoo\nbar\n",
            "of its first 3 lines, csv fits 33%; the first line that does not fit is line 2",
        ),
        (f'"{ACCESS}', "no format fits the line '\"10.0.0.1 - -"),
        (
            "Hello, World, and so on\nfoo",
            "of its first 2 lines, csv fits 50%; the first line that does not fit is line 2",
        ),
    ],
)
def test_a_head_that_no_kind_reads_is_refused_with_the_best_kinds(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"^the format of a is not clear: {re.escape(why)}"):
        kind("a", text)


HASHES = "####<Oct 27, 2026 4:06:07 PM UTC> <Info> <started>\n####<Oct 27, 2026 4:06:08 PM UTC> <Info> <ready>\n"


def test_a_file_of_comments_that_may_be_events_is_refused_unless_its_format_is_named(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    file = written(tmp_path, "a.log", HASHES)
    with pytest.raises(UsageError) as caught:
        load(engine, file, "t")
    assert caught.value.reason == "events-in-comments"
    with pytest.raises(UsageError) as caught:
        load(engine, file, "t", format="log")
    assert caught.value.reason == "no-time-in-line"
    load(engine, file, "t", format="log", time_format="%b %d, %Y %I:%M:%S %p")
    assert [message for _, message in rows(engine, "t")] == ["####<UTC> <Info> <started>", "####<UTC> <Info> <ready>"]


@pytest.mark.parametrize("text", [NDJSON, ACCESS, LOG, SYSLOG, "time=2024-01-31 a=b\n"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_file_whose_lines_end_with_returns_alone_is_refused(
    engine: DuckDBEngine, tmp_path: Path, text: str, end: str
) -> None:
    path = written(tmp_path, "a.log", text.replace("\n", "\r") * 3 + end)
    for format in (None, kind("a", text)):
        with pytest.raises(UsageError) as caught:
            load(engine, path, "t", format=format)
        assert caught.value.reason == "carriage-returns"


@pytest.mark.parametrize("text", ["#1,2026-01-01\n#2,2026-01-02\n", "#id,time\n#1,2026-01-01\n"])
def test_a_file_of_rows_that_begin_with_a_hash_is_refused(engine: DuckDBEngine, tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(engine, written(tmp_path, "a.csv", text), "t")
    assert caught.value.reason == "events-in-comments"


@pytest.mark.parametrize(
    "text", ["# nothing happened\n", "#Date: 2024-01-31 10:00:00\n#Fields: date time x\n", "#\n\n# 10:00\n"]
)
def test_a_file_of_comments_without_times_or_with_names_of_fields_has_no_events(
    engine: DuckDBEngine, tmp_path: Path, text: str
) -> None:
    assert load(engine, written(tmp_path, "a.log", text), "t").empty == ("a.log",)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("01-31 10:00:00.123  1 2 D tag: x\n", "time-without-year"),
        ("10:00:00,1,INFO a\n" * 2, "time-without-day"),
        ("----- beginning of main\n" + "01-31 10:00:00.123  1 2 D tag: x\n" * 3, "time-without-year"),
        ("-- Journal begins at Mon. --\n24/01/31 10:00:00 x\n", "time-of-short-year"),
        ("240131 100000 12 INFO x\n", "time-of-short-year"),
        ("240131  9:00:00 [Note] x\n", "time-of-short-year"),
        ("31.01.24 10:00:00 x\n", "time-of-short-year"),
        ("01/31-10:00:00.123456 [**] x\n", "time-without-year"),
        ("[01.31 10:00:00] x\n", "time-without-year"),
        ("<189>: 2024 Jan 31 10:00:00 CET: x\n", "unclear-format"),
    ],
)
def test_a_head_whose_times_lack_a_part_is_refused_with_that_part(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        kind("a", text)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("31-Jan-2024 10:00:00,ana\n", {"names": ("when", "who")}, [("ana",)]),
        ("31-Jan-2024 10:00:00,ana\n", {"header": False}, [("ana",)]),
        ("31-Jan-2024 10:00:00,ana\n", {"header": True, "time_field": "ana"}, None),
        ("a,b\n2024-01-31,ana\n", {"header": True, "names": ("when", "who")}, [("ana",)]),
        ("when,who\n2024-01-31,ana\n", {"names": ("when", "who"), "time_field": "when"}, [("ana",)]),
        ("when\n2024-01-31,ana\n", {"header": True, "names": ("when", "who")}, [("ana",)]),
    ],
)
def test_options_decide_whether_csv_has_a_heading(
    engine: DuckDBEngine, tmp_path: Path, text: str, options: dict[str, Any], expected: list[tuple[str]] | None
) -> None:
    result = load(engine, written(tmp_path, "a.csv", text), "t", **options)
    assert (result.empty, result.skipped) == ((), 0) if expected else (("a.csv",), 0)
    if expected:
        assert columns(engine) == ["column1 str" if options == {"header": False} else "who str"]
        assert [row[1:] for row in rows(engine, "t")] == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ("a", "b", "c")}, "3 names for columns, but the first row of a.csv has 2 cells"),
        ({"names": ("a",), "header": True}, "1 name for columns, but the first row of a.csv has 2 cells"),
        ({"names": ("a",)}, "1 name for columns, but the first row of a.csv has 2 cells"),
        ({"names": ("a", "b"), "format": "log"}, "--header and --names are for csv and tsv, not for log"),
    ],
)
def test_names_that_a_file_cannot_have_are_refused(
    engine: DuckDBEngine, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(message)}"):
        load(engine, written(tmp_path, "a.csv", "2024-01-31,1\n"), "t", **options)


@pytest.mark.parametrize(
    ("good", "bad", "limit", "is_loaded"),
    [
        (1, 1, None, True),
        (2, 2, None, False),
        (18, 2, None, True),
        (17, 2, None, False),
        (17, 2, "2", True),
        (17, 2, "1", False),
        (17, 2, "10.5%", False),
        (17, 2, "11%", True),
        (9, 1, "0", False),
        (1, 9, "100%", True),
    ],
)
def test_a_file_of_which_much_would_be_skipped_is_refused(
    engine: DuckDBEngine, tmp_path: Path, good: int, bad: int, limit: str | None, is_loaded: bool
) -> None:
    path = written(tmp_path, "a.csv", "time,n\n" + "2024-01-31,1\n" * good + "soon,2\n" * bad + "# c\n\n" * 9)
    options = {"max_skipped": None if limit is None else SkipLimit.parse(limit)}
    if is_loaded:
        assert load(engine, path, "t", **options).skipped == bad
        return
    with pytest.raises(UsageError, match=f"^{bad} of {good + bad} lines of a.csv cannot be read; the first: line "):
        load(engine, path, "t", **options)
    assert list(engine.tables()) == []


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "101%", "%", "٣"])
def test_a_limit_that_is_no_number_of_lines_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        SkipLimit.parse(text)
    assert [str(limit) for limit in (SkipLimit.parse("7"), SkipLimit.parse("0"), ANY)] == ["7", "0", "100%"]
