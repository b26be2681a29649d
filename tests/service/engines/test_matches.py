"""Parts of a shared table that are read together: which, and that the rows are those of one sort."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta

import duckdb
import pytest

from svcctl.errors import ServiceError
from svcctl.service.engines.duckdb.matches import Statements, selects
from svcctl.service.engines.duckdb.statement import Statement
from svcctl.service.engines.lake.snapshot import File, SnapshotPart

PARTS = 64
ROWS = 10
"""The rows of a part: its numbers, in two files that both have all of its range."""


def part(number: int) -> SnapshotPart:
    oldest = datetime(2024, 1, 1) + timedelta(hours=number)
    newest = oldest + timedelta(minutes=59)
    return SnapshotPart(
        [File(f"{number}-{file}", "1", 9, ROWS // 2, oldest, newest, (1, 1)) for file in "ab"], ordered=False
    )


def statements(condition: str, reads: list[tuple[str, int]]) -> Statements:
    """Rows whose n meets a condition. `reads` gets the way and the number of the parts of each SELECT."""

    def over(way: str, select: str) -> Callable[[SnapshotPart], str]:
        def text(part: SnapshotPart) -> str:
            numbers = sorted({int(file.path.partition("-")[0]) for file in part.files})
            reads.append((way, len(numbers)))
            rows = f"range({numbers[0] * ROWS}, {(numbers[-1] + 1) * ROWS}) t(n)"
            return select.format(f"{rows} WHERE {condition}")

        return text

    return Statements(
        over("sorted", "SELECT n AS n FROM {} ORDER BY n"),
        over("unsorted", "SELECT n AS c0, n AS c1 FROM {} ORDER BY n DESC"),
        ["n"],
        keys=1,
    )


@pytest.mark.parametrize(
    ("condition", "reads"),
    [
        pytest.param("n < 0", [2, 8, 32, 22], id="none"),
        pytest.param("n = 77", [2, 8, 32, 22], id="one"),
        pytest.param("n % 10 = 0", [2, 8, 8, 8, 8, 8, 8, 8, 6], id="one in ten"),
        pytest.param("n >= 0", [2, 1, 2, *[1] * 2, 2, *[1] * 4, 2, *[1] * 8, 2, *[1] * 16, 2, *[1] * 33], id="all"),
        pytest.param("n >= 600", [2, 8, 32, 22, 5, 5, 5, 5, 2, 2, 2, 1, 2, 1, 1], id="the last"),
    ],
)
def test_parts_are_read_together_while_they_have_few_matches(condition: str, reads: list[int]) -> None:
    made: list[tuple[str, int]] = []
    with duckdb.connect() as connection:
        cursor, parts = connection.cursor(), [part(number) for number in range(PARTS)]
        texts = selects(cursor, parts, statements(condition, made), 20)
        with closing(Statement(cursor, texts, rows_per_batch=7)) as statement:
            rows = [n for batch in statement for n in batch.column("n").to_pylist()]
        expected = connection.execute(f"SELECT n FROM range({PARTS * ROWS}) t(n) WHERE {condition}").fetchall()
    assert rows == [n for (n,) in expected]
    first, *others = made
    assert first == ("sorted", 1), "the plan is checked over the first part"
    assert others == [("sorted" if size == 1 else "unsorted", size) for size in reads]


def test_an_interrupt_ends_the_search_for_matches_with_its_reason() -> None:
    searching, ended = threading.Event(), threading.Event()

    def endless(_: SnapshotPart) -> str:
        searching.set()
        return "SELECT range AS c0, range AS c1 FROM range(1000000000000) WHERE hash(range) = 0"

    def interrupt() -> None:
        searching.wait()
        while not ended.wait(0.01):
            statement.interrupt(ServiceError("enough", code=503))

    with duckdb.connect() as connection:
        search = Statements(lambda _: "SELECT 1 AS n", endless, ["n"], keys=1)
        statement = Statement(connection, selects(connection, [part(0), part(1)], search, 10), 10)
        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            with pytest.raises(ServiceError, match=r"^enough$"):
                next(iter(statement))
        finally:
            ended.set()
            thread.join()
            statement.close()


def test_a_part_holds_fewer_rows_when_any_of_its_files_has_large_ones() -> None:
    small, large = part(0).files[0], File("1-a", "1", 5 * (1 << 20), 10, datetime.min, datetime.max, (1, 1))
    assert SnapshotPart([], ordered=False).rows_of(500_000) == 500_000
    assert SnapshotPart([small], ordered=False).rows_of(500_000) == 500_000
    assert SnapshotPart([small, large], ordered=False).rows_of(500_000) == 8
