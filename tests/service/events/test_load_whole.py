"""Loads as a whole: what is refused, packed files, tables that exist, and files with anything in them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from support.engines import new_lake
from support.loads import (
    AFTERWARDS,
    ANSWER,
    CODECS,
    CSV,
    CSV_COLUMNS,
    ENTRIES,
    HARM,
    INTERNAL,
    OTHER_LOGS,
    PACKED,
    TABLES,
    UNREAD,
    load,
    rows,
    written,
)

from svcctl.errors import ServiceError, UsageError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.engines.duckdb.formats import READERS
from svcctl.service.engines.duckdb.lake import LakeEngine
from svcctl.service.events import load as loading
from svcctl.service.events.load import Source, Wishes
from svcctl.service.events.readers import FILE_KINDS
from svcctl.service.language.types import Column, Type


@pytest.mark.parametrize(
    ("encoding", "mark", "named"),
    [("utf-16le", "\ufeff", "utf-16"), ("utf-16be", "\ufeff", "utf-16"), ("utf-16le", "", "utf-16le")],
)
def test_utf_16_is_named_with_what_converts_it(
    engine: DuckDBEngine, tmp_path: Path, encoding: str, mark: str, named: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load(engine, written(tmp_path, "a.csv", f"{mark}time,n\n2026-01-01,1\n".encode(encoding)), "t")
    assert caught.value.message == f"a.csv is text in {named.upper()}, not in UTF-8"
    assert caught.value.hint == f"convert it: iconv -f {named} -t utf-8 FILE | svcctl service load - -t …"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "time,s\n" + "2026-01-01,a\n" * 3 + f"2026-01-01,{'x' * (1 << 24)}\n2026-01-01,b\n"),
        ("a.csv", "time,s\n" + "2026-01-01,a\n" * 3 + f'2026-01-01,"{"x" * (1 << 24)}\n2026-01-01,b\n'),
        ("a.ndjson", '{"time":"2026-01-01"}\n' * 4 + f'{{"s":"{"x" * (1 << 24)}"}}\n'),
        ("a.log", "2026-01-01 00:00:00 a\n" * 4 + f"2026-01-01 00:00:00 {'x' * (1 << 24)}\n"),
    ],
)
def test_of_a_line_that_is_too_long_the_others_are_loaded(
    engine: DuckDBEngine, tmp_path: Path, name: str, text: str
) -> None:
    result = load(engine, written(tmp_path, name, text), "t")
    assert (result.rows, result.skipped, result.first_skipped) == (4, 1, "line 5: it is longer than 16 MiB")


def test_a_load_ends_when_it_may_not_go_on(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", CSV)
    for most in range(100):
        left = iter(range(most))

        def go_on(left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise ServiceError("enough")

        try:
            loading.load(engine, [Source(path, path.name)], "t", Wishes(), go_on)
        except ServiceError as error:
            assert str(error) == "enough"  # noqa: PT017
            assert "t" not in engine.tables()
        else:
            assert most > 3
            break


@pytest.mark.parametrize("kind", ENTRIES)
def test_whatever_a_file_holds_every_line_is_loaded_or_counted(tmp_path: Path, kind: str) -> None:
    @seed(1)
    @settings(max_examples=10, database=None, deadline=None, phases=[Phase.generate])
    @given(st.lists(ENTRIES[kind], min_size=1, max_size=20), st.sampled_from(["\n", "\r\n"]))
    def every_line(entries: list[str], end: str) -> None:
        text = "".join(entry.encode("utf-8", "replace").decode() + end for entry in entries)
        path = written(tmp_path, "a", ("time,s,n" + end if kind == "csv" else "") + text)
        with DuckDBEngine() as engine:
            refused = ""
            try:
                result = load(engine, path, "t", format=kind, time_field=None if FILE_KINDS[kind].pattern else "time")
            except UsageError as error:
                refused = error.message
            assert not INTERNAL.search(refused or result.first_skipped or "")
            if refused:
                return
            lines = [line for line in text.replace("\r\n", "\n").split("\n") if line]
            held = rows(engine, "t") if result.rows else []
            inside = sum(str(value).count("\n") for row in held for value in row)
            assert result.rows + result.skipped + inside == len(lines)

    every_line()


def test_csv_of_which_no_line_is_utf_8_is_told_before_anything_else(engine: DuckDBEngine, tmp_path: Path) -> None:
    latin = "Datum;Zeit;Kunde\n10.11.2026;10:15;Müller\n11.11.2026;10:20;Jäger\n".encode("latin-1")
    file = written(tmp_path, "a.csv", latin)
    for wished in (None, "Datum,Zeit", "Kunde"):
        with pytest.raises(UsageError) as caught:
            load(engine, file, "t", time_field=wished)
        assert (caught.value.message, caught.value.hint) == (
            "no line of a.csv could be read: it is not UTF-8, as in '10.11.2026;10:15;M\N{REPLACEMENT CHARACTER}ller'",
            "convert the text to UTF-8: iconv -f latin1 -t utf-8 FILE | svcctl service load - -t …",
        )


def test_a_file_of_nul_is_named(engine: DuckDBEngine, tmp_path: Path) -> None:
    files = [written(tmp_path, "a.csv", "time\n2026-01-01\n"), written(tmp_path, "b.csv", b"\0" * 100)]
    with pytest.raises(UsageError) as caught:
        load(engine, files, "t")
    assert caught.value.message == "the first line of b.csv has the character NUL: it is not a text file in UTF-8"


def test_a_table_is_made_anew_with_a_further_column_as_the_hint_says(engine: DuckDBEngine, tmp_path: Path) -> None:
    old = tmp_path / "t.parquet"
    pq.write_table(pa.table({"eventdate": [datetime(2026, 1, 1, tzinfo=UTC)], "n": [1]}), old)
    load(engine, old, "t")
    new = written(tmp_path, "new.csv", "n,sent,made,extra\n2,2026-01-05,01/02/2026,7\n")
    wishes = {"time_field": "made", "time_format": "MM/dd/yyyy", "zone": "America/New_York", "types": {"extra": "str"}}
    with pytest.raises(UsageError) as caught:
        load(engine, new, "t", **wishes)
    assert (caught.value.message, caught.value.hint) == (
        "table 't' has no column 'sent', 'extra'",
        "it has eventdate, n; load into another table, or make this one anew with its events and the file: "
        "svcctl -p local query 'from t' --from 1970-01-01 -f parquet -o t.parquet && "
        "svcctl service load t.parquet FILE -t t --replace --time-field made --time-format MM/dd/yyyy "
        "--time-zone America/New_York --types extra=str",
    )
    with pytest.raises(UsageError) as caught:
        load(engine, new, "t", **wishes, format="csv")
    assert caught.value.hint == "it has eventdate, n; load into another table"
    load(engine, [old, new], "t", replace=True, **wishes)
    assert rows(engine, "t") == [
        (datetime(2026, 1, 1), 1, None, None),
        (datetime(2026, 1, 2, 5), 2, "2026-01-05", "7"),
    ]
    other = written(tmp_path, "u.csv", "eventdate,n\n2026-01-01,1\n")
    with pytest.raises(UsageError) as caught:
        load(engine, [old, other], "t", time_field="maed")
    assert (caught.value.message, caught.value.hint) == (
        "no file has a column 'maed'",
        "leave out --time-field: all have eventdate",
    )


@pytest.mark.parametrize("name", OTHER_LOGS)
def test_a_known_log_that_is_not_read_is_refused_with_what_makes_it_readable(
    engine: DuckDBEngine, tmp_path: Path, name: str
) -> None:
    path = written(tmp_path, "a.log", OTHER_LOGS[name])
    with pytest.raises(UsageError, match=f"^a\\.log is a log of {name}, which is not read as it is$") as caught:
        load(engine, path, "t")
    command, _, loading = (caught.value.hint or "").partition(" | svcctl service load - ")
    text = subprocess.run(["sh", "-c", command.replace("FILE", str(path))], capture_output=True, check=True).stdout
    format = "tsv" if loading.startswith("-f tsv") else None
    load(engine, written(tmp_path, "b", text), "t", format=format)
    assert rows(engine, "t") == [(datetime(2026, 1, 31, 10, 0, 0, 123_000), *AFTERWARDS[name])]


@pytest.mark.parametrize("name", UNREAD)
def test_an_answer_that_is_one_document_is_refused_whole(engine: DuckDBEngine, tmp_path: Path, name: str) -> None:
    content, what = UNREAD[name]
    (tmp_path / name).write_bytes(content)
    for format in (None, "json") if what == ANSWER else (None,):
        with pytest.raises(UsageError) as caught:
            load(engine, tmp_path / name, "t", format=format)
        assert str(caught.value) == f"{name} is {what}, which is not read as it is"
    assert "t" not in engine.tables()


@pytest.mark.parametrize(
    ("name", "why", "other"),
    [
        ("nightly.group", "group is a word of the query language", "nightly.group_"),
        ("2026.orders", "2026 begins with a digit", "t2026.orders"),
    ],
)
def test_a_name_that_a_query_cannot_read_is_refused_for_a_new_table(
    engine: DuckDBEngine, tmp_path: Path, name: str, why: str, other: str
) -> None:
    path = written(tmp_path, "a.csv", CSV)
    with pytest.raises(UsageError) as caught:
        load(engine, path, name)
    assert str(caught.value) == f"'{name}' cannot name a table: {why}"
    assert caught.value.hint == f"use another name, such as {other}"
    engine.create(name, CSV_COLUMNS)
    assert load(engine, path, name).rows == 3


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("format", [None, "log"])
def test_a_file_that_is_packed_otherwise_is_refused_with_what_unpacks_it(
    engine: DuckDBEngine, tmp_path: Path, name: str, format: str | None
) -> None:
    pack, what, hint = PACKED[name]
    (tmp_path / name).write_bytes(pack(b"2026-01-31 10:00:00 a\n"))
    with pytest.raises(UsageError) as caught:
        load(engine, tmp_path / name, "t", format=format)
    assert (str(caught.value), caught.value.hint) == (f"{name} is {what}, which is not read as it is", hint)


def test_an_existing_table_takes_what_fits_and_counts_the_rest(engine: DuckDBEngine, tmp_path: Path) -> None:
    engine.create("t", [CSV_COLUMNS[0], Column("ip", Type.IP4), Column("n", Type.INT4), Column("absent", Type.STR)])
    text = "time,ip,n\n2026-01-01,192.0.2.1,1\n2026-01-01,192.0.2.256,2\n2026-01-01,10.0.0.1,1.5\n2026-01-02,,3\n"
    result = load(engine, written(tmp_path, "a.csv", text), "t")
    assert (result.rows, result.skipped, result.first_skipped) == (2, 2, "line 3: ip '192.0.2.256' is not ip4")
    assert rows(engine, "t") == [
        (datetime(2026, 1, 1), 0xC0000201, 1, None),
        (datetime(2026, 1, 2), None, 3, None),
    ]


def test_a_table_that_another_load_makes_meanwhile_takes_what_fits(tmp_path: Path) -> None:
    first, second = (written(tmp_path, f"{n}.csv", f"timestamp,n\n2026-01-02,{n}\n") for n in ("1.5", "2"))
    with LakeEngine(new_lake(str(tmp_path / "tables"))) as engine:

        def go_on() -> None:
            if "t" not in engine.tables():
                loading.load(engine, [Source(first, "first")], "t", Wishes())

        loaded = loading.load(engine, [Source(second, "second")], "t", Wishes(), go_on)
        assert loaded is not None
        assert (loaded.rows, loaded.before, loaded.columns[1]) == (1, 1, Column("n", Type.FLOAT8))


def test_older_events_go_to_the_end_of_an_existing_table(engine: DuckDBEngine, tmp_path: Path) -> None:
    load(engine, written(tmp_path, "a.csv", "time,n\n2026-01-02,1\n"), "t")
    load(engine, written(tmp_path, "b.csv", "time,n\n2026-01-01,2\n"), "t")
    assert rows(engine, "t") == [(datetime(2026, 1, 2), 1), (datetime(2026, 1, 1), 2)]
    assert not engine.table("t").ordered


@pytest.mark.parametrize(
    ("text", "options", "message", "hint"),
    [
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
            "it has eventdate; load into another table, or make this one anew with its events and the file: "
            "svcctl -p local query 'from there' --from 1970-01-01 -f parquet -o there.parquet && "
            "svcctl service load there.parquet FILE -t there --replace",
        ),
        ("time\n2026-01-01\n", {"table": "no table"}, "'no table' cannot name a table", None),
    ],
)
def test_what_cannot_be_loaded_is_refused_and_leaves_nothing(
    engine: DuckDBEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    options: dict[str, str],
    message: str,
    hint: str | None,
) -> None:
    monkeypatch.chdir(tmp_path)
    engine.create("there", CSV_COLUMNS[:1])
    written(tmp_path, "a.csv", text)
    with pytest.raises(UsageError) as caught:
        load(engine, Path("a.csv"), **({"table": "t"} | options))
    assert caught.value.message == message
    if "cannot name" not in message:
        assert caught.value.hint == hint
    assert list(engine.tables()) == ["there"]
    assert rows(engine, "there") == []


def test_a_file_that_is_not_there_is_refused(engine: DuckDBEngine, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^cannot read nope.csv: No such file or directory$"):
        load(engine, tmp_path / "nope.csv", "t")


def test_every_kind_of_file_has_a_reader() -> None:
    assert list(FILE_KINDS) == list(READERS)


@pytest.mark.parametrize("ending", CODECS)
@pytest.mark.parametrize("kind", TABLES)
def test_of_a_packed_file_everything_is_loaded_or_nothing(
    engine: DuckDBEngine, tmp_path: Path, kind: str, ending: str
) -> None:
    path = tmp_path / f"a.{kind}{ending}"
    whole = CODECS[ending](TABLES[kind])
    for what, harm in HARM.items():
        path.write_bytes(harm(whole))
        with pytest.raises(UsageError) as caught:
            load(engine, path, "t", format=kind)
        assert caught.value.message.startswith(f"{path.name} is damaged or cut off: "), what
        assert caught.value.hint == "nothing of it was loaded; copy or download the file again"
        assert "t" not in engine.tables()
    path.write_bytes(whole)
    assert load(engine, path, "t", format=kind).rows == 5000
    path.write_bytes(CODECS[ending](TABLES[kind][:40_004]) + CODECS[ending](TABLES[kind][40_004:]))
    assert load(engine, path, "two", format=kind).rows == 5000


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_parquet_file_whose_pages_fail_their_check_sums_is_not_loaded(
    engine: DuckDBEngine, tmp_path: Path, ending: str
) -> None:
    table = pa.table({"eventdate": pa.array([datetime(2026, 1, 2)] * 50_000), "n": list(range(50_000))})
    pq.write_table(table, tmp_path / "a.parquet", write_page_checksum=True, compression="none", use_dictionary=False)
    whole = (tmp_path / "a.parquet").read_bytes()
    path = tmp_path / f"b.parquet{ending}"
    path.write_bytes(CODECS.get(ending, bytes)(HARM["a bit flipped"](whole)))
    with pytest.raises(UsageError, match="is damaged or cut off: could not verify page integrity"):
        load(engine, path, "t")
    assert "t" not in engine.tables()
    path.write_bytes(CODECS.get(ending, bytes)(whole))
    assert load(engine, path, "t").rows == 50_000


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("/dev/zero", "it is not a regular file"),
        ("/", "it is not a regular file"),
        ("/" + "x" * 300, "File name too long"),
    ],
)
def test_what_is_no_file_is_refused(engine: DuckDBEngine, name: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(engine, Path(name), "t", format="csv")
    assert caught.value.message == f"cannot read {Path(name).name}: {why}"
