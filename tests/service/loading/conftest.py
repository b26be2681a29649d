"""An engine in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from svcctl.service.engines.duckdb import DuckDBEngine


@pytest.fixture(scope="module")
def opened() -> Iterator[DuckDBEngine]:
    with DuckDBEngine() as engine:
        yield engine


@pytest.fixture
def engine(opened: DuckDBEngine) -> Iterator[DuckDBEngine]:
    """An engine without tables: opening one takes as long as a load."""
    yield opened
    for name in opened.tables():
        opened.drop(name)
