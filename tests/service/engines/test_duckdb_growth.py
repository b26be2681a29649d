"""Columns that a load changes in the file of events, when the process is killed right after the load."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.language import Column, Type

CHANGE_AND_DIE = """
import os, signal, sys
from datetime import datetime, timedelta
from pathlib import Path
import pyarrow as pa
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.engines.table_rules import ColumnChange
from svcctl.service.language import Column, Type

date = Column("eventdate", Type.TIMESTAMP)
columns, rows = (date, Column("n", Type.INT4), Column("b", Type.BOOL)), int(sys.argv[2])
after = (date, Column("n", Type.FLOAT8), Column("b", Type.STR), Column("new", Type.INT8))
engine = DuckDBEngine(Path(sys.argv[1]))
dates = [datetime(2024, 1, 1) + timedelta(seconds=n) for n in range(rows)]
events = pa.table({"eventdate": dates, "n": pa.array(range(rows), pa.int32()), "b": [True] * rows})
engine.append("t", events.to_reader(), create=columns)
late = pa.table({"eventdate": [datetime(2025, 1, 1)], "n": [0.5], "b": ["x"], "new": [7]})
engine.append("t", late.to_reader(), change=ColumnChange(columns, after))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.parametrize("rows", [3, 70_000], ids=["in the log", "in the file"])
def test_changed_columns_outlive_a_kill(tmp_path: Path, rows: int) -> None:
    """The write-ahead log is read again, in which the change of a column is not alone."""
    path = tmp_path / "events.db"
    killed = subprocess.run([sys.executable, "-c", CHANGE_AND_DIE, path, str(rows)], check=False)
    assert killed.returncode == -signal.SIGKILL
    with DuckDBEngine(path) as engine:
        table = engine.table("t")
        assert (table.columns[1:], table.added) == (
            (Column("n", Type.FLOAT8), Column("b", Type.STR), Column("new", Type.INT8)),
            1,
        )
        assert engine.events("t") == rows + 1
        with engine.statement("SELECT sum(n), count(b), min(b), sum(new)::BIGINT FROM events.t") as statement:
            [[found]] = [batch.to_pylist() for batch in statement]
    assert list(found.values()) == [rows * (rows - 1) / 2 + 0.5, rows + 1, "true", 7]
