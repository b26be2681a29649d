"""Interrupts DuckDB statements that are no longer needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import duckdb

CHECK_SECONDS = 0.2


@contextmanager
def interruptible(
    connection: duckdb.DuckDBPyConnection, check: Callable[[], None], pause: float = CHECK_SECONDS
) -> Iterator[None]:
    """Call `check` in a thread every `pause` seconds during the `with` block.

    If `check` raises an error, the running statement is interrupted, and the block raises the error of `check`. If the
    block still comes to its end, no error is raised, because the block may already have stored its rows.
    """
    ended, failures = Event(), list[Exception]()

    def watch() -> None:
        while not ended.wait(pause):
            try:
                if not failures:
                    check()
            except Exception as error:
                failures.append(error)
            if failures:
                connection.interrupt()  # repeated, because the next statement may have begun

    thread = Thread(target=watch, daemon=True, name="interruption")
    thread.start()
    try:
        yield
    except Exception:
        if failures:
            raise failures[0] from None
        raise
    finally:
        ended.set()
        thread.join()
