"""The common base class of the two readers that use DuckDB."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass

import duckdb

from svcctl.service.engines import ROWS_PER_BATCH, Mark
from svcctl.service.engines.duckdb.statement import Statement
from svcctl.service.language.types import Plan


@dataclass(frozen=True, slots=True)
class Selects:
    """SELECTs that together return the rows of a plan.

    The rows of all SELECTs together are numbered from 0. The plan's result has the rows from `skip` up to, but not
    including, `stop`.
    """

    texts: Iterable[str]
    skip: int = 0
    stop: int | None = None


class Reading(ABC):
    """A reader that runs plans in DuckDB."""

    @contextmanager
    def stream(
        self,
        plan: Plan,
        *,
        since: Mark | None = None,
        until: Mark | None = None,
        rows_per_batch: int = ROWS_PER_BATCH,
    ) -> Iterator[Statement]:
        with (
            self._reading(plan, since, until) as (cursor, selects),
            closing(Statement(cursor, selects.texts, rows_per_batch, selects.skip, selects.stop)) as statement,
        ):
            yield statement

    @contextmanager
    def render(
        self,
        plan: Plan,
        expressions: Sequence[str],
        *,
        since: Mark | None = None,
        until: Mark | None = None,
        skip: int = 0,
        rows_per_batch: int = ROWS_PER_BATCH,
    ) -> Iterator[Statement]:
        """Run a plan, and read the values of SQL expressions for each of its rows. The first `skip` rows are left out.

        In the expressions, the plan's columns have the names c0, c1 and so on. The other arguments have the same
        meaning as in `stream`.
        """
        # The plan's own column names cannot be used, because DuckDB ignores the case of names.
        names = ", ".join(f"c{index}" for index in range(plan.width))
        with self._reading(plan, since, until) as (cursor, selects):
            texts = (f"SELECT {', '.join(expressions)} FROM ({text}) AS plan({names})" for text in selects.texts)
            statement = Statement(cursor, texts, rows_per_batch, selects.skip + skip, selects.stop)
            with closing(statement):
                yield statement

    @abstractmethod
    def _reading(
        self, plan: Plan, since: Mark | None, until: Mark | None
    ) -> AbstractContextManager[tuple[duckdb.DuckDBPyConnection, Selects]]:
        """Yield a connection for a plan, and the statements to run on the connection.

        The statements are stopped at the end of the `with` block.
        """
