"""An engine in memory, for files that are loaded for a single query."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from svcctl.io.temporary import temporary
from svcctl.service.engines import Engine
from svcctl.service.engines.duckdb import DuckDBEngine


@contextmanager
def engine_in_memory() -> Iterator[Engine]:
    """Open an engine without tables for a `with` block. Data that exceeds the memory goes to a temporary directory."""
    with temporary("query") as folder, DuckDBEngine(spill=folder / "spill") as engine:
        yield Engine(engine, engine)
