"""The file of events when it is opened: its version, and what is said of a file that cannot be read."""

from __future__ import annotations

import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import duckdb
import pytest
from support.events import store

from svcctl import __version__
from svcctl.errors import UsageError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.engines.duckdb.opening import VERSION
from svcctl.service.language.types import Column, Type

COLUMNS = (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8))


def version_of(path: Path) -> int:
    with duckdb.connect(str(path), read_only=True) as connection:
        [(version,)] = connection.execute("SELECT version FROM main.version").fetchall()
        return int(version)


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_new_file_has_the_version_and_no_copy(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    for _ in range(2):
        DuckDBEngine(path).close()
        assert (version_of(path), names_in(tmp_path)) == (VERSION, ["events.duckdb"])


MAKES = """
import resource, signal, sys
from pathlib import Path
from svcctl.service.engines.duckdb import DuckDBEngine
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
DuckDBEngine(Path(sys.argv[1])).close()
"""
"""Makes a file of events; the kernel kills the process at the write that goes beyond so many bytes."""


@pytest.mark.parametrize("size", [0, 4096, 12_288])
def test_a_file_whose_making_was_cut_off_is_made_anew(tmp_path: Path, size: int) -> None:
    path = tmp_path / "events.duckdb"
    done = subprocess.run([sys.executable, "-c", MAKES, str(path), str(size)], check=False)
    assert done.returncode == -signal.SIGXFSZ
    DuckDBEngine(path).close()
    assert (version_of(path), names_in(tmp_path)) == (VERSION, ["events.duckdb"])


def test_a_file_of_a_newer_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    DuckDBEngine(path).close()
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE main.version SET version = 7")
    before = path.read_bytes()
    with pytest.raises(UsageError) as caught:
        DuckDBEngine(path)
    assert caught.value.message == (
        f"events file {path} has version 7, and svcctl {__version__} reads versions up to {VERSION}"
    )
    assert caught.value.reason == "newer-version"
    assert (path.read_bytes(), names_in(tmp_path)) == (before, ["events.duckdb"])


def test_a_file_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE stored (name VARCHAR)")
    before = path.read_bytes()
    with pytest.raises(UsageError) as caught:
        DuckDBEngine(path)
    assert (caught.value.message, caught.value.hint) == (
        f"{path} is not a file of svcctl's events",
        "move it away to start with an empty one",
    )
    assert (path.read_bytes(), names_in(tmp_path)) == (before, ["events.duckdb"])


def test_a_file_that_cannot_be_read_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "events.duckdb"
    with DuckDBEngine(file) as engine:
        store(engine, "shop.orders", COLUMNS, [(datetime(2024, 1, 31, 0, 0, n % 60), n) for n in range(5000)])
    whole = file.read_bytes()
    damaged = {
        "no database": b"x" * 5000,
        "its first block": whole[:5000] + bytes([whole[5000] ^ 0xFF]) + whole[5001:],
        "its end": whole[: len(whole) // 2],
        "its middle": whole[:20_000] + bytes(len(whole) - 20_000),
    }
    for what, content in damaged.items():
        file.write_bytes(content)
        with pytest.raises(UsageError) as caught:
            DuckDBEngine(file)
        message = caught.value.message
        assert message.startswith(f"cannot open {file}: "), what
        assert "\n" not in message, what
        assert "Error: " not in message, what
        assert caught.value.hint == (
            "it may be damaged, or from a newer DuckDB: restore it from a backup, or move it away to do without it"
        )
