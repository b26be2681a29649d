"""Runs a query plan on any engine, and evaluates DuckDB expressions over the rows, for example to write them as JSON.

If the engine is DuckDB, one statement runs the plan and evaluates the expressions. The rows of any other engine are
passed to a separate DuckDB in memory, which evaluates the expressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from svcctl.errors import SvcctlError
from svcctl.service.engines import ARROW, ROWS_PER_BATCH, Mark, Reader, Stream
from svcctl.service.engines.duckdb.reading import Reading
from svcctl.service.engines.duckdb.statement import Statement
from svcctl.service.engines.duckdb.syntax import DEFINED
from svcctl.service.language.types import Plan, Type


@contextmanager
def stream(
    reader: Reader,
    plan: Plan,
    expressions: Sequence[str],
    *,
    since: Mark | None = None,
    until: Mark | None = None,
    skip: int = 0,
    rows_per_batch: int = ROWS_PER_BATCH,
) -> Iterator[Stream]:
    """Run a plan, and stream the values of DuckDB expressions over the plan's columns.

    In the expressions, the columns have the names c0, c1 and so on. The first `skip` rows are left out. The other
    arguments are those of the method `stream` of `reader`.
    """
    if isinstance(reader, Reading):
        with reader.render(
            plan, expressions, since=since, until=until, skip=skip, rows_per_batch=rows_per_batch
        ) as fused:
            yield fused
        return
    with reader.stream(plan, since=since, until=until, rows_per_batch=rows_per_batch) as rows:
        rendered = _RenderedStream(rows, plan, expressions, skip, rows_per_batch)
        try:
            yield rendered
        finally:
            rendered.close()


class _RenderedStream:
    """Evaluates expressions over the rows of another stream."""

    def __init__(self, rows: Stream, plan: Plan, expressions: Sequence[str], skip: int, rows_per_batch: int) -> None:
        self._rows = rows
        self._skip = skip
        self._failure: SvcctlError | None = None
        types = [column.type for column in plan.columns] + [Type.TIMESTAMP] * plan.dated
        self._schema = pa.schema([(f"c{index}", ARROW[type_]) for index, type_ in enumerate(types)])
        connection = duckdb.connect(":memory:", config={"python_enable_replacements": "false"})
        connection.execute(f"{DEFINED} SET TimeZone='UTC'; SET enable_progress_bar=false")
        connection.register("plan", pa.RecordBatchReader.from_batches(self._schema, self._batches()))
        self._statement = Statement(connection, [f"SELECT {', '.join(expressions)} FROM plan"], rows_per_batch)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the plan, with columns named c0, c1, …

        An error is saved before it is raised, because DuckDB would turn the error into text.
        """
        try:
            for batch in self._rows:
                left_out = min(self._skip, batch.num_rows)
                self._skip -= left_out
                yield pa.RecordBatch.from_arrays(batch.columns, schema=self._schema).slice(left_out)
        except SvcctlError as error:
            self._failure = error
            raise

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._statement
        except SvcctlError:
            if self._failure is not None:
                raise self._failure from None
            raise

    def interrupt(self, reason: SvcctlError | None = None) -> None:
        self._rows.interrupt(reason)
        self._statement.interrupt(reason)

    def close(self) -> None:
        self._statement.close()
