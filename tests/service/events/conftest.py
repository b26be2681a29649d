"""An engine in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from svcctl.service.engines.duckdb import DuckDBEngine


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    with DuckDBEngine() as engine:
        yield engine
