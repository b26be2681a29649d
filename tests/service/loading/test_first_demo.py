"""The first demo events, which a process of its own makes."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.waiting import eventually

from svcctl.errors import Locked, UsageError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.loading import first_demo
from svcctl.service.loading.demo import TABLES

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
YEARS = timedelta(days=3650)
MAKES_YEARS = """
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from svcctl.service.loading import first_demo
def report(table, fraction):
    print(table, flush=True)
first_demo.make(Path(sys.argv[1]), datetime(2026, 3, 20, 12, tzinfo=UTC), timedelta(days=3650), report)
"""


def can_be_opened(path: Path) -> bool:
    with suppress(Locked), DuckDBEngine(path):
        return True
    return False


def test_the_file_has_the_tables_and_each_step_is_reported(tmp_path: Path) -> None:
    path, steps = tmp_path / "events.db", list[tuple[str, float]]()
    first_demo.make(path, NOW, timedelta(days=6), lambda table, fraction: steps.append((table, round(fraction, 2))))
    assert steps == [(table, fraction) for table in TABLES for fraction in (0.83, 1)]
    with DuckDBEngine(path) as engine:
        assert all(str(engine.newest(table)) > "2026-03-20 11:00" for table in TABLES)


def test_an_error_of_the_report_ends_the_process_before_it_is_raised(tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        first_demo.make(tmp_path / "events.db", NOW, YEARS, fail)
    assert can_be_opened(tmp_path / "events.db")


def test_the_process_ends_with_a_service_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    with subprocess.Popen([sys.executable, "-c", MAKES_YEARS, str(path)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"demo.ecommerce.data\n"
        assert not can_be_opened(path)
        parent.kill()
    eventually(lambda: can_be_opened(path), 10)


def test_a_failure_is_left_to_the_caller(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    path.write_bytes(b"not a database")
    first_demo.make(path, NOW, timedelta(days=1), lambda *_: pytest.fail("nothing can be made"))
    with pytest.raises(UsageError):
        DuckDBEngine(path)
