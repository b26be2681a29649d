"""Loads that reach a limit or have lost their client, and files that are made to use up time or memory."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from threading import Event

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from support.loads import first_skipped, load, undisturbed, written

from svcctl.api.loads import Loaded, LoadOptions
from svcctl.cli.help import topics
from svcctl.errors import ServiceError, SvcctlError, UsageError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.engines.duckdb.interruption import interruptible
from svcctl.service.engines.duckdb.syntax import distinct
from svcctl.service.loading import load as loading
from svcctl.service.loading import parquet
from svcctl.service.loading.decompression import Source
from svcctl.service.loading.files import LONG_SQL, reading
from svcctl.service.loading.kinds import FILE_KINDS
from svcctl.service.loading.limits import MAX_DEPTH, MAX_FIELDS, MAX_FREE_BYTES, LoadLimits, LoadWatch
from svcctl.service.loading.skips import Tally
from svcctl.words import size_text

ROW = b"time,a\n2026-01-01,1\n"
ENTRY = b'{"time":"2026-01-01","a":1}'
PACK: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "zst": zstandard.ZstdCompressor().compress}
BOMBS = {
    "newlines.csv": ROW + b"\n" * 3_000_000,
    "newlines.ndjson": ENTRY + b"\n" * 3_000_000,
    "blanks.json": b"[" + ENTRY + b"," + b" " * 3_000_000 + ENTRY + b"]",
    "quote.csv": ROW + b'2026-01-01,"x\n' + b"2026-01-01,1\n" * 200_000,
    "line.ndjson": ENTRY + b'\n{"a":"' + b"x" * 3_000_000,
}


def limited(engine: DuckDBEngine, path: Path, limits: LoadLimits) -> Loaded | None:
    return loading.load(engine, [Source(path, path.name)], "t", LoadOptions(), undisturbed, limits=limits)


def repeated(path: Path, rows: int, size: int) -> Path:
    """A small parquet file with so many rows that have the same large text."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * size]))
    times = pa.array(["2026-01-01"] * rows).dictionary_encode()
    pq.write_table(pa.table({"time": times, "text": texts}), path, compression="zstd", store_schema=False)
    return path


@pytest.mark.parametrize("packing", PACK)
@pytest.mark.parametrize("name", BOMBS)
def test_a_file_that_unpacks_to_too_much_is_refused(
    engine: DuckDBEngine, tmp_path: Path, name: str, packing: str
) -> None:
    path = tmp_path / f"{name}.{packing}"
    path.write_bytes(PACK[packing](BOMBS[name]))
    with pytest.raises(
        ServiceError, match=f"{path.name} unpacks to too many bytes: a load may unpack at most 2.0 MB"
    ) as caught:
        limited(engine, path, LoadLimits(unpacked_bytes=2_000_000))
    assert caught.value.code == 413
    assert "t" not in engine.tables()


def test_a_limit_counts_the_files_of_a_load_together(engine: DuckDBEngine, tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.csv.gz" for number in range(3)]
    for path in paths:
        path.write_bytes(gzip.compress(ROW * 10))
    sources = [Source(path, path.name) for path in paths]
    most = LoadLimits(unpacked_bytes=3 * len(ROW * 10))
    assert loading.load(engine, sources, "t", LoadOptions(), undisturbed, limits=most)
    with pytest.raises(ServiceError, match=r"2\.csv\.gz unpacks to too many bytes"):
        loading.load(
            engine, sources, "u", LoadOptions(), undisturbed, limits=LoadLimits(unpacked_bytes=most.unpacked_bytes - 1)
        )


def test_repeated_values_of_parquet_count_each_time(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = repeated(tmp_path / "a.parquet", rows=100_000, size=10_000)
    assert path.stat().st_size < 100_000
    with pytest.raises(ServiceError, match="a load may unpack at most 900 MB"):
        limited(engine, path, LoadLimits(unpacked_bytes=900_000_000))


@pytest.mark.parametrize(
    ("ratio", "size", "is_refused"), [(99, 1 << 30, True), (1 << 30, 1 << 30, False), (99, MAX_FREE_BYTES, False)]
)
def test_a_large_file_that_is_packed_too_small_is_refused(
    tmp_path: Path, ratio: int, size: int, is_refused: bool
) -> None:
    path = written(tmp_path, "a.parquet", b"x" * 10)
    watch = LoadWatch(undisturbed, LoadLimits(ratio=ratio))
    if not is_refused:
        watch.unpacked(path, path.name, size)
        return
    with pytest.raises(ServiceError, match="unpacks to more than 99 times its size") as caught:
        watch.unpacked(path, path.name, size)
    assert caught.value.code == 413
    assert "SVCCTL_LOAD_RATIO" in (caught.value.hint or "")


def test_a_small_parquet_file_of_many_large_rows_is_refused(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = repeated(tmp_path / "a.parquet", rows=100_000, size=10_000)
    with pytest.raises(ServiceError, match=r"a\.parquet unpacks to more than 5,000 times its size"):
        limited(engine, path, LoadLimits())
    assert "t" not in engine.tables()


def test_a_row_group_with_too_many_values_in_lists_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"time": ["2026-01-01"], "n": [[0] * 1000]}), path)
    source, limits = Source(path, path.name), LoadLimits(memory_bytes=7999)
    with pytest.raises(ServiceError, match=r"it needs more memory than the 8\.0 kB that a load may use") as caught:
        parquet.check_footer(source, path, LoadWatch(undisturbed, limits))
    assert caught.value.code == 422
    assert parquet.check_footer(source, path, LoadWatch(undisturbed, LoadLimits(memory_bytes=8000))) > 1


def test_a_load_that_takes_too_long_is_refused(engine: DuckDBEngine, tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="the load took longer than 0s") as caught:
        limited(engine, written(tmp_path, "a.csv", ROW), LoadLimits(seconds=0.0))
    assert caught.value.code == 422
    assert "SVCCTL_LOAD_TIME" in (caught.value.hint or "")


def test_time_is_measured_from_the_beginning_of_the_load() -> None:
    times = iter([100.0, 104.9, 105.0])
    watch = LoadWatch(undisturbed, LoadLimits(seconds=5.0), lambda: next(times))
    watch.check()
    with pytest.raises(ServiceError):
        watch.check()


def test_a_statement_is_interrupted_when_the_client_is_gone() -> None:
    def gone() -> None:
        raise ServiceError("gone")

    with duckdb.connect() as connection:
        with pytest.raises(ServiceError, match="gone"), interruptible(connection, gone, pause=0.01):
            connection.execute("SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b").fetchall()
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_a_block_that_ends_after_the_client_is_gone_has_succeeded() -> None:
    checked = Event()

    def gone() -> None:
        checked.set()
        raise ServiceError("gone")

    with duckdb.connect() as connection, interruptible(connection, gone, pause=0.001):
        assert checked.wait(10)


def test_a_statement_that_may_go_on_is_not_interrupted() -> None:
    with duckdb.connect() as connection, interruptible(connection, undisturbed, pause=0.001):
        assert connection.execute("SELECT count(*) FROM range(1000000)").fetchall() == [(1_000_000,)]


@pytest.mark.parametrize(
    "text",
    [
        ROW + b"\n" * 2_000_000,
        ROW + b"\n" * 500_000 + b"2026-01-02,2\r" + b"\n" * 500_000,
        ROW + b"\r\n" * 500_000 + b'2026-01-02,"a\n\n"\n' + b"\r" * 500_000,
    ],
    ids=["newlines", "a lone return", "a quoted record"],
)
def test_blank_lines_of_csv_take_no_time(engine: DuckDBEngine, tmp_path: Path, text: bytes) -> None:
    assert load(engine, written(tmp_path, "a.csv", text), "t").rows in (1, 2)


def nested(opening: str, closing: str, depth: int) -> str:
    return opening * depth + "1" + closing * depth


@pytest.mark.parametrize("kind", ["ndjson", "json"])
@pytest.mark.parametrize(
    ("value", "is_loaded"),
    [
        (nested("[", "]", MAX_DEPTH - 1), True),
        (nested("[", "]", MAX_DEPTH), False),
        (nested('{"a":', "}", 1000), False),
        (nested("[", "]", 100_000), False),
        (nested('[{"a":', "}]", 50_000), False),
        (json.dumps("[" * 1000 + '"' + "{" * 1000), True),
        ("[" + "[]," * 1000 + "{}]", True),
    ],
    ids=["deepest", "one more", "objects", "arrays", "both", "text", "wide"],
)
def test_values_that_are_nested_too_deep_are_skipped(
    engine: DuckDBEngine, tmp_path: Path, kind: str, value: str, is_loaded: bool
) -> None:
    entries = ['{"time":"2026-01-01"}', f'{{"time":"2026-01-01","a":{value}}}']
    text = "\n".join(entries) if kind == "ndjson" else f"[{','.join(entries)}]"
    result = load(engine, written(tmp_path, f"a.{kind}", text), "t")
    assert result.rows == 1 + is_loaded
    if not is_loaded:
        unit = "line" if kind == "ndjson" else "element"
        assert first_skipped(result) == f"{unit} 2: values in it are nested more than {MAX_DEPTH} deep"


def test_too_many_columns_of_csv_are_refused(engine: DuckDBEngine, tmp_path: Path) -> None:
    names = ",".join(f"n{number}" for number in range(MAX_FIELDS))
    with pytest.raises(UsageError, match=f"a.csv has more than {MAX_FIELDS} fields"):
        load(engine, written(tmp_path, "a.csv", f"time,{names}\n2026-01-01\n"), "t")


def test_long_statements_are_planned_without_a_search_for_common_parts(tmp_path: Path) -> None:
    source = Source(written(tmp_path, "a.csv", ROW), "a.csv")
    settings = "SELECT current_setting('threads'), current_setting('disabled_optimizers') FROM lines"
    with reading("UTC", LoadWatch(undisturbed)) as reader:
        file = reader.open(source, FILE_KINDS["csv"], reader.first_bytes(source, len(ROW)), LoadOptions())
        found = []
        for sql in (settings, settings + " " * LONG_SQL, settings):
            reader.stream(file, Tally())
            [batch] = reader.batches(file, sql)
            found.append(tuple(batch.to_pylist()[0].values()))
        assert found[1] == (1, "common_subexpressions")
        assert found[0] == found[2]
        assert found[0][1] == ""


def test_names_that_differ_in_case_only_get_numbers() -> None:
    names = [f"{number:014b}".replace("0", "a").replace("1", "A") for number in range(10_000)]
    found = distinct(names)
    assert found[:3] == ["a" * 14, "a" * 13 + "A_1", "a" * 12 + "Aa_2"]
    assert len({name.casefold() for name in found}) == len(names)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("a a a_1", "a a_2 a_1"),
        ("a A a_1 a_2 a", "a A_3 a_1 a_2 a_4"),
        ("a a a_1 a_1", "a a_2 a_1 a_1_1"),
        ("(line) (line)_1", "(line)_2 (line)_1"),
        (" column0", "column0 column0_1"),
    ],
)
def test_a_name_that_gets_a_number_is_no_other_name(names: str, expected: str) -> None:
    assert distinct(names.split(" ")) == expected.split(" ")


@pytest.mark.parametrize(
    ("magic", "kind"),
    [
        (b"PK\x05\x06", "zip"),
        (b"7z\xbc\xaf\x27\x1c", "7z"),
        (b"\x04\x22\x4d\x18", "lz4"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "spreadsheet"),
        (b"SQLite format 3\0", "SQLite"),
        (b"Obj\x01", "Avro"),
        (gzip.compress(gzip.compress(ROW)), "packed twice"),
    ],
    ids=["zip", "7z", "lz4", "xls", "sqlite", "avro", "gzip"],
)
def test_other_packings_are_named(engine: DuckDBEngine, tmp_path: Path, magic: bytes, kind: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(magic + b"\0" * 600 if kind != "packed twice" else magic)
    with pytest.raises(UsageError, match=kind):
        load(engine, path, "t")


@pytest.mark.parametrize("seed", range(20))
def test_a_footer_that_lies_is_refused(engine: DuckDBEngine, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    out = io.BytesIO()
    pq.write_table(pa.table({"time": ["2026-01-01"] * 50, "n": range(50), "l": [[1, 2]] * 50}), out)
    data = bytearray(out.getvalue())
    size = int.from_bytes(data[-8:-4], "little")
    for _ in range(3):
        data[len(data) - 8 - chance.randrange(1, size)] = chance.randrange(256)
    path = tmp_path / "a.parquet"
    path.write_bytes(data)
    try:
        limited(engine, path, LoadLimits())
    except SvcctlError as error:
        assert not isinstance(error, ServiceError) or error.code in (413, 422)  # noqa: PT017


def test_the_help_names_the_limits() -> None:
    page = " ".join(topics.read("loading").split())
    assert f"JSON nested more than {MAX_DEPTH} deep" in page
    assert f"A file has at most {MAX_FIELDS} columns" in page
    assert f"{size_text(MAX_FREE_BYTES)} are always allowed" in page
