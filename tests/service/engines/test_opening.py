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
from support.unversioned import unpack

from svcctl import __version__
from svcctl.errors import UsageError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.engines.duckdb.opening import VERSION
from svcctl.service.language.types import Column, Type

COLUMNS = (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8))


@pytest.fixture
def unversioned(tmp_path: Path) -> Path:
    """A file of events from before there were versions."""
    unpack(tmp_path)
    return tmp_path / "events.duckdb"


def version_of(path: Path) -> int | None:
    with duckdb.connect(str(path), read_only=True) as connection:
        if not connection.execute("SELECT * FROM duckdb_tables() WHERE table_name = 'version'").fetchall():
            return None
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


def test_a_file_without_a_version_is_copied_and_stamped_once(unversioned: Path) -> None:
    before = unversioned.read_bytes()
    copy = unversioned.with_name(f"events.duckdb.before-{VERSION}")
    with DuckDBEngine(unversioned) as engine:
        assert {name: engine.mark(name) for name in engine.tables()} == {"service.access": 17, "shop.orders": 700}
    assert (version_of(unversioned), version_of(copy)) == (VERSION, None)
    assert (copy.read_bytes(), copy.stat().st_mode & 0o777) == (before, 0o600)
    copy.unlink()
    with DuckDBEngine(unversioned) as engine:
        store(engine, "shop.orders", COLUMNS[:1], [(datetime(2024, 1, 31),)])
        assert engine.mark("shop.orders") == 701
    assert not copy.exists()


KILLED = """
import os, sys
from pathlib import Path
import duckdb
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.language.types import Column, Type
engine = DuckDBEngine(Path(sys.argv[1]))
columns = [Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8)]
rows = duckdb.sql("SELECT now()::TIMESTAMP AS eventdate, 7 AS n").to_arrow_reader()
engine.append("t", rows, create=columns)
engine._connection.execute("DROP TABLE main.version")
os._exit(9)
"""


def test_the_copy_has_what_a_killed_process_stored_last(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    assert subprocess.run([sys.executable, "-c", KILLED, path], check=False).returncode == 9
    assert Path(f"{path}.wal").stat().st_size > 0
    with DuckDBEngine(path) as engine:
        assert engine.mark("t") == 1
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{path}.before-{VERSION}' AS before (READ_ONLY)")
        assert connection.execute("SELECT n FROM before.events.t").fetchall() == [(7,)]


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
    assert caught.value.hint == "install a newer svcctl: pip install --upgrade 'svcctl[service]'"
    assert (path.read_bytes(), names_in(tmp_path)) == (before, ["events.duckdb"])


def test_a_file_that_cannot_be_read_is_refused_in_one_line(unversioned: Path) -> None:
    whole = unversioned.read_bytes()
    damaged = {
        "no database": b"x" * 5000,
        "its first block": whole[:5000] + bytes([whole[5000] ^ 0xFF]) + whole[5001:],
        "its end": whole[: len(whole) // 2],
        "its middle": whole[:20_000] + bytes(len(whole) - 20_000),
    }
    for what, content in damaged.items():
        unversioned.write_bytes(content)
        with pytest.raises(UsageError) as caught:
            DuckDBEngine(unversioned)
        message = caught.value.message
        assert message.startswith(f"cannot open {unversioned}: "), what
        assert "\n" not in message, what
        assert "Error: " not in message, what
        assert caught.value.hint == (
            "it may be damaged, or written by a newer DuckDB; move it away to start with an empty one"
        )
