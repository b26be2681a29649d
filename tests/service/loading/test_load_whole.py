"""Loads as a whole: what is refused, packed files, tables that exist, and files with anything in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from support.engines import new_lake
from support.loads import (
    ANY,
    CODECS,
    CSV,
    CSV_COLUMNS,
    ENTRIES,
    HARM,
    INTERNAL,
    PACKED,
    TABLES,
    UNLIMITED,
    first_skipped,
    load,
    rows,
    told,
    undisturbed,
    written,
)

from svcctl.api.loads import LoadOptions
from svcctl.errors import ServiceError, UsageError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.language.types import Column, Type
from svcctl.service.loading import load as loading
from svcctl.service.loading.columns import COLUMNS_OF
from svcctl.service.loading.decompression import BLOCK_BYTES, Source, opened
from svcctl.service.loading.kinds import FILE_KINDS
from svcctl.service.loading.skips import Aside


@pytest.mark.slow
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
    assert (result.rows, result.skipped, first_skipped(result)) == (4, 1, "line 5: it is longer than 17 MB")


@pytest.mark.slow
def test_a_load_ends_when_it_may_not_go_on(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", CSV)
    for most in range(100):
        left = iter(range(most))

        def go_on(left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise ServiceError("enough")

        try:
            loading.load(engine, [Source(path, path.name)], "t", LoadOptions(), go_on)
        except ServiceError as error:
            assert str(error) == "enough"  # noqa: PT017
            assert "t" not in engine.tables()
        else:
            assert most > 3
            break


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind != "csv")) for kind in ENTRIES])
def test_whatever_a_file_holds_every_line_is_loaded_or_counted(tmp_path: Path, kind: str) -> None:
    @seed(1)
    @settings(max_examples=5, database=None, deadline=None, phases=[Phase.generate])
    @given(st.lists(ENTRIES[kind], min_size=1, max_size=20), st.sampled_from(["\n", "\r\n"]))
    def every_line(entries: list[str], end: str) -> None:
        text = "".join(entry.encode("utf-8", "replace").decode() + end for entry in entries)
        path = written(tmp_path, "a", ("time,s,n" + end if kind == "csv" else "") + text)
        with DuckDBEngine() as engine:
            refused = ""
            try:
                field = None if FILE_KINDS[kind].pattern else "time"
                result = load(engine, path, "t", format=kind, time_field=field, max_skipped=ANY)
            except UsageError as error:
                refused = error.message
            assert not INTERNAL.search(refused or " ".join(told(one) for one in result.skips + result.changes))
            if refused:
                return
            lines = [line for line in text.replace("\r\n", "\n").split("\n") if line]
            held = rows(engine, "t") if result.rows else []
            inside = sum(str(value).count("\n") for row in held for value in row)
            left_out = sum(one.count for one in result.asides if one.what not in (Aside.BLANK, Aside.JOINED))
            blank = sum(not line.strip() for line in lines)
            assert result.rows + result.skipped + inside + left_out in range(len(lines) - blank, len(lines) + 1)

    every_line()


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("format", [None, "log"])
def test_a_file_that_is_packed_otherwise_is_refused_with_what_unpacks_it(
    engine: DuckDBEngine, tmp_path: Path, name: str, format: str | None
) -> None:
    pack, what, how = PACKED[name]
    (tmp_path / name).write_bytes(pack(b"2026-01-31 10:00:00 a\n"))
    with pytest.raises(UsageError) as caught:
        load(engine, tmp_path / name, "t", format=format)
    assert what in caught.value.message
    assert how in f"{caught.value.hint} with {caught.value.data.get('unpacker')}"
    assert "t" not in engine.tables()


def test_an_existing_table_takes_what_fits_and_counts_the_rest(engine: DuckDBEngine, tmp_path: Path) -> None:
    engine.create("t", [CSV_COLUMNS[0], Column("ip", Type.IP4), Column("n", Type.INT4), Column("absent", Type.STR)])
    text = "time,ip,n\n2026-01-01,192.0.2.1,1\n2026-01-01,192.0.2.256,2\n2026-01-01,10.0.0.1,1.5\n2026-01-02,,3\n"
    result = load(engine, written(tmp_path, "a.csv", text), "t")
    assert [(one.count, *one.fields, told(one)) for one in result.nulls] == [
        (1, "ip", "line 3: '192.0.2.256' is not ip4"),
        (1, "n", "line 4: '1.5' is not int4"),
    ]
    assert rows(engine, "t") == [
        (datetime(2026, 1, 1), 0xC0000201, 1, None),
        (datetime(2026, 1, 1), None, 2, None),
        (datetime(2026, 1, 1), 0x0A000001, None, None),
        (datetime(2026, 1, 2), None, 3, None),
    ]


def test_a_table_that_another_load_makes_meanwhile_takes_what_fits(tmp_path: Path) -> None:
    first, second = (written(tmp_path, f"{n}.csv", f"timestamp,n\n2026-01-02,{n}\n") for n in ("1.5", "2"))
    with new_lake(str(tmp_path / "tables")) as engine:

        def go_on() -> None:
            if "t" not in engine.tables():
                loading.load(engine, [Source(first, "first")], "t", LoadOptions(), undisturbed)

        loaded = loading.load(engine, [Source(second, "second")], "t", LoadOptions(), go_on)
        assert loaded is not None
        assert (loaded.rows, loaded.before, engine.table("t").columns[1]) == (1, 1, Column("n", Type.FLOAT8))


def test_older_events_go_to_the_end_of_an_existing_table(engine: DuckDBEngine, tmp_path: Path) -> None:
    load(engine, written(tmp_path, "a.csv", "time,n\n2026-01-02,1\n"), "t")
    load(engine, written(tmp_path, "b.csv", "time,n\n2026-01-01,2\n"), "t")
    assert rows(engine, "t") == [(datetime(2026, 1, 2), 1), (datetime(2026, 1, 1), 2)]
    assert not engine.table("t").ordered


def test_the_columns_of_every_kind_of_file_are_found() -> None:
    assert list(FILE_KINDS) == list(COLUMNS_OF)


@pytest.mark.slow
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
        assert f"{path.name} is damaged or cut off" in caught.value.message, what
        assert "t" not in engine.tables()
    path.write_bytes(whole)
    assert load(engine, path, "t", format=kind).rows == 5000
    path.write_bytes(CODECS[ending](TABLES[kind][:40_004]) + CODECS[ending](TABLES[kind][40_004:]))
    assert load(engine, path, "two", format=kind).rows == 5000


def test_a_zstd_file_may_begin_with_a_frame_without_data(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = tmp_path / "a.csv.zst"
    path.write_bytes(b"\x5a\x2a\x4d\x18\x02\0\0\0ab" + CODECS[".zst"](b"time,n\n2026-01-01,1\n"))
    assert load(engine, path, "t").rows == 1


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


@pytest.mark.parametrize("size", [0, BLOCK_BYTES, 2 * BLOCK_BYTES])
def test_a_file_that_another_program_makes_shorter_while_it_is_read_is_refused(tmp_path: Path, size: int) -> None:
    path = written(tmp_path, "a.log", b"x\n" * (2 * BLOCK_BYTES))
    refused = pytest.raises(UsageError, match="became shorter while it was read")
    with refused, opened(Source(path, path.name), UNLIMITED) as file:
        file.read(BLOCK_BYTES)
        os.truncate(path, size)
        while file.read(BLOCK_BYTES):
            pass


def test_a_file_that_grows_while_it_is_read_is_loaded(tmp_path: Path) -> None:
    path = written(tmp_path, "a.log", b"one\n")
    with opened(Source(path, path.name), UNLIMITED) as file:
        assert file.read(BLOCK_BYTES) == b"one\n"
        path.write_bytes(b"one\ntwo\n")
        assert file.read(BLOCK_BYTES) == b"two\n"
