"""DuckDB's errors, provoked in DuckDB itself: their texts and classes change from version to version."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from svcctl.service.engines.duckdb.statement import Cause, StatementFailed, translated


def read(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    """Read all rows as a stream: what fails behind the first rows is an error of Arrow."""
    for _ in connection.sql(query).to_arrow_reader(2048):
        pass


def failure(connection: duckdb.DuckDBPyConnection, query: str) -> StatementFailed:
    with pytest.raises(StatementFailed) as caught, translated():
        read(connection, query)
    return caught.value


@pytest.mark.parametrize(
    ("query", "cause", "code", "file"),
    [
        ("SELECT error('File ''x'' too small')", Cause.REFUSED, None, None),
        ("SELECT if(range > 1000000, 'x', '1')::INT FROM range(1100000)", Cause.REFUSED, None, None),
        ("SELECT * FROM 'gone.parquet'", Cause.MISSING, 500, "gone.parquet"),
        ("SELECT * FROM 'short.parquet'", Cause.DAMAGED, None, "short.parquet"),
        ("SELECT * FROM 'cut.parquet'", Cause.DAMAGED, None, "cut.parquet"),
        ("COPY (SELECT 1) TO 'no/such/folder.csv'", Cause.FAILED, 500, None),
        ("SELECT list(range) FROM range(10000000)", Cause.MEMORY, None, None),
    ],
)
def test_what_failed_is_told_by_class_or_text(
    query: str, cause: Cause, code: int | None, file: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("short.parquet").write_bytes(b"PAR1")
    Path("cut.parquet").write_bytes(bytes(100))
    with duckdb.connect(config={"memory_limit": "20MB", "temp_directory": ""}) as connection:
        error = failure(connection, query)
    assert (error.cause, error.code, error.file) == (cause, code, file)


def test_a_registered_stream_that_fails_is_told_apart() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": [1]})
        raise OSError("gone")

    with duckdb.connect() as connection:
        connection.register("files0", pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), batches()))
        error = failure(connection, "SELECT sum(n) FROM files0")
    assert (error.cause, error.message.startswith("IOError: gone")) == (Cause.UNREAD, True)


def test_a_commit_that_needs_too_much_memory_is_told_as_a_statement_that_does(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "file.db", config={"memory_limit": "8MB", "temp_directory": ""}) as connection:
        connection.execute("CREATE TABLE t(a VARCHAR); BEGIN")
        connection.execute("INSERT INTO t SELECT range::VARCHAR || repeat('x', 200) FROM range(20000)")
        with pytest.raises(StatementFailed) as caught, translated("load"):
            connection.execute("COMMIT")
    assert (caught.value.cause, caught.value.code) == (Cause.MEMORY, None)


def test_a_file_that_another_process_has_open_is_locked(tmp_path: Path) -> None:
    file = tmp_path / "file.db"
    script = f"import duckdb, sys; c = duckdb.connect({os.fspath(file)!r}); print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(StatementFailed) as caught, translated():
            duckdb.connect(file)
        other.communicate()
    assert caught.value.cause is Cause.LOCKED
