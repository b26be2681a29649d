"""What every engine does: the contract of the protocol, on each of EVERY_ENGINE. A new engine is a row there."""

from __future__ import annotations

import json
import math
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from support.engines import EVERY_ENGINE, rows_of_engines
from support.events import batches, store

from svcctl.errors import ServiceError, UsageError
from svcctl.service.engines import ARROW, BYTES_PER_BATCH, Engine, Mark
from svcctl.service.engines.table_rules import AlreadyLoaded, ColumnChange, ColumnsChanged, UnknownTable
from svcctl.service.language import Column, Plan, Type, compile, parse

COLUMNS = (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8))
EVERY_TYPE = tuple(Column("eventdate" if type_ is Type.TIMESTAMP else type_.value, type_) for type_ in Type)
FIRST = datetime(2024, 1, 1)


@pytest.fixture(params=rows_of_engines())
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with EVERY_ENGINE[request.param]() as engine:
        yield engine


def at(second: float) -> datetime:
    return FIRST + timedelta(seconds=second)


def add(engine: Engine, *events: tuple[float, int]) -> None:
    """Events in table t: the second of each, and its n."""
    store(engine.stored, "t", COLUMNS, [(at(second), n) for second, n in events])


def plan(engine: Engine, query: str = "from t", **options: Any) -> Plan:
    given = {"start": datetime(2023, 1, 1, tzinfo=UTC), "end": None, "now": datetime(2024, 5, 6, tzinfo=UTC)} | options
    return compile(parse(query), engine.stored.tables(), dialect=engine.reader.dialect, **given)


def rows(engine: Engine, query: str = "from t", since: Mark | None = None, until: Mark | None = None) -> list[Any]:
    """The rows of a query; those of one column without their tuples."""
    with engine.reader.stream(plan(engine, query), since=since, until=until) as stream:
        found = [row for batch in stream for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]
    return [row[0] if len(row) == 1 else row for row in found]


def test_a_new_table_is_listed_with_its_columns_and_is_empty(engine: Engine) -> None:
    made = engine.stored.create("demo.web.data", EVERY_TYPE)
    assert (made.name, made.columns) == ("demo.web.data", EVERY_TYPE)
    assert dict(engine.stored.tables()) == {"demo.web.data": made}
    assert (engine.stored.table("demo.web.data"), engine.stored.newest("demo.web.data")) == (made, None)


@pytest.mark.parametrize(
    ("name", "columns", "message"),
    [
        ("a b", COLUMNS, "'a b' cannot be the name of a table"),
        ("a..b", COLUMNS, "'a..b' cannot be the name of a table"),
        ('a"b', COLUMNS, "'a\"b' cannot be the name of a table"),
        ("t", COLUMNS[1:], "table 't' needs a column eventdate of type timestamp"),
        ("t", (*COLUMNS, Column("N", Type.STR)), "table 't' would have two columns of the same name"),
        ("taken", COLUMNS, "table 'taken' already exists"),
        ("Taken", COLUMNS, "table 'Taken' differs from table 'taken' only in case"),
    ],
)
def test_a_table_that_cannot_be_made_is_refused(
    engine: Engine, name: str, columns: tuple[Column, ...], message: str
) -> None:
    engine.stored.create("taken", COLUMNS)
    for make in (
        lambda: engine.stored.create(name, columns),
        lambda: engine.stored.append(name, batches(COLUMNS, []), create=columns),
    ):
        with pytest.raises(UsageError) as caught:
            make()
        assert caught.value.message == message
    assert list(engine.stored.tables()) == ["taken"]


def test_a_table_that_is_not_stored_is_not_found_and_the_error_has_the_names_that_are(engine: Engine) -> None:
    for name in ("one", "two"):
        engine.stored.create(name, COLUMNS)
    for ask in (
        engine.stored.table,
        engine.stored.newest,
        engine.stored.events,
        engine.stored.extent,
        engine.stored.mark,
        engine.stored.drop,
        lambda name: engine.stored.append(name, batches(COLUMNS, [])),
        lambda name: engine.stored.trim(name, most=1, since=FIRST),
        lambda name: engine.stored.remove_before(name, FIRST),
    ):
        with pytest.raises(UnknownTable, match=r"^no table 'onne'$") as caught:
            ask("onne")
        assert caught.value.hint == "did you mean 'one'? tables are one, two"


def test_columns_go_by_name_missing_ones_are_null_and_times_are_cut_to_milliseconds(engine: Engine) -> None:
    engine.stored.create("t", COLUMNS)
    times = pa.array([datetime(2024, 1, 1, 0, 0, 0, 123_999), at(-0.5)], pa.timestamp("us"))
    assert engine.stored.append("t", pa.table({"eventdate": times}).to_reader()) == 2
    assert engine.stored.append("t", pa.table({"n": pa.array([7], pa.int8()), "eventdate": times[:1]}).to_reader()) == 1
    with engine.reader.stream(plan(engine)) as stream:
        found = [tuple(row.values()) for batch in stream for row in batch.to_pylist()]
    assert found == [
        (datetime(2023, 12, 31, 23, 59, 59, 500_000), None),
        (datetime(2024, 1, 1, 0, 0, 0, 123_000), None),
        (datetime(2024, 1, 1, 0, 0, 0, 123_000), 7),
    ]


def test_a_column_that_the_table_lacks_is_refused_and_leaves_nothing(engine: Engine) -> None:
    add(engine, (0, 0))
    with pytest.raises(UsageError, match=r"^table 't' has no column 'other'$"):
        engine.stored.append("t", pa.table({"eventdate": [at(1)], "other": [1]}).to_reader())
    assert rows(engine, "from t select n") == [0]


def changed(engine: Engine, *columns: Column, event: Mapping[str, object], **options: Any) -> int:
    """Store an event with a change of table t, which gets these columns after those that it has, or in their place."""
    before = engine.stored.table("t").columns
    names = {column.name: column for column in columns}
    after = [names.pop(column.name, column) for column in before]
    change = ColumnChange(before, (*after, *names.values()))
    with_all = [event.get(column.name) for column in change.after]
    return engine.stored.append("t", batches(change.after, [with_all]), change=change, **options)


EXTRA = Column("extra", Type.STR)


def test_an_added_column_is_null_in_older_events_and_comes_last(engine: Engine) -> None:
    add(engine, (0, 0), (5, 5))
    first = engine.stored.mark("t")
    before = plan(engine)
    added = [Column(f"{type_}2", type_) for type_ in Type]
    values = ("a", 1, 2, 0.5, True, 9)
    event = {"eventdate": at(1), "n": 1, "timestamp2": at(9)} | dict(
        zip([c.name for c in added[1:]], values, strict=True)
    )
    assert changed(engine, *added, event=event) == 1
    table = engine.stored.table("t")
    assert (table.columns, table.added, engine.stored.tables()["t"]) == ((*COLUMNS, *added), len(added), table)
    nulls = (None,) * len(added)
    assert rows(engine) == [(at(0), 0, *nulls), (at(1), 1, at(9), *values), (at(5), 5, *nulls)]
    assert rows(engine, "from t where isnull(str2) select n") == [0, 5]
    with engine.reader.stream(before) as stream:
        assert sum(batch.num_rows for batch in stream) == 3
    engine.stored.check_mark("t", first)
    assert (rows(engine, since=first), rows(engine, until=first)) == (
        [(at(1), 1, at(9), *values)],
        [(at(0), 0, *nulls), (at(5), 5, *nulls)],
    )
    add(engine, (2, 2))
    assert rows(engine, "from t select n, str2") == [(0, None), (1, "a"), (2, None), (5, None)]
    engine.stored.remove_before("t", at(1))
    assert rows(engine, "from t select n, str2") == [(1, "a"), (2, None), (5, None)]
    assert engine.stored.trim("t", most=2, since=at(0)) == 2
    assert len(rows(engine)) == 2


@pytest.mark.parametrize(
    ("before", "value", "after", "becomes"),
    [
        (Type.INT4, -7, Type.INT8, -7),
        (Type.INT4, -7, Type.FLOAT8, -7.0),
        (Type.INT4, -7, Type.STR, "-7"),
        (Type.INT8, 2**53, Type.FLOAT8, 2.0**53),
        (Type.INT8, -(2**63), Type.FLOAT8, -(2.0**63)),
        (Type.INT8, 2**63 - 1, Type.STR, "9223372036854775807"),
        (Type.FLOAT8, 0.1, Type.STR, "0.1"),
        (Type.FLOAT8, 1e300, Type.STR, "1e+300"),
        (Type.BOOL, True, Type.STR, "true"),
        (Type.IP4, 0x0A000001, Type.STR, "10.0.0.1"),
        (Type.TIMESTAMP, datetime(2024, 1, 31, 1, 2, 3, 45_000), Type.STR, "2024-01-31 01:02:03.045"),
    ],
)
def test_a_column_that_is_widened_keeps_its_values_and_marks(
    engine: Engine, before: Type, value: object, after: Type, becomes: object
) -> None:
    store(engine.stored, "t", (*COLUMNS, Column("x", before)), [(at(0), 0, value), (at(2), 2, None)])
    text, mark = rows(engine, "from t select str(x)"), engine.stored.mark("t")
    event = {"eventdate": at(1), "x": becomes}
    assert changed(engine, Column("x", after), EXTRA, event=event, load_id="a") == 1
    assert engine.stored.table("t").columns == (*COLUMNS, Column("x", after), EXTRA)
    assert rows(engine, "from t select x") == [becomes, becomes, None]
    assert text[0] == rows(engine, "from t select str(x)")[0] or after is Type.FLOAT8
    assert (rows(engine, "from t select x", since=mark), engine.stored.has_load("t", "a")) == ([becomes], True)
    assert (rows(engine, "from t select n", until=mark), rows(engine, "from t group select count() as n")) == (
        [0, 2],
        [3],
    )
    add(engine, (9, 9))
    assert rows(engine, "from t select n") == [0, None, 2, 9]


@pytest.mark.parametrize(("type_", "added"), [(Type.FLOAT8, ()), (Type.INT4, ()), (Type.STR, (Column("N", Type.STR),))])
def test_a_change_that_loses_something_is_refused_and_changes_nothing(
    engine: Engine, type_: Type, added: tuple[Column, ...]
) -> None:
    add(engine, (0, 2**53 + 1), (1, 2**63 - 1), (2, 2**53))
    table, mark = engine.stored.table("t"), engine.stored.mark("t")
    with pytest.raises(UsageError):
        changed(engine, Column("n", type_), *added, event={"eventdate": at(1), "n": None})
    assert (engine.stored.table("t"), engine.stored.mark("t")) == (table, mark)
    assert rows(engine, "from t select n") == [2**53 + 1, 2**63 - 1, 2**53]


def test_a_change_that_is_given_up_or_comes_late_changes_nothing(engine: Engine) -> None:
    def give_up() -> None:
        raise ServiceError("enough")

    add(engine, (0, 0))
    wide = Column("n", Type.FLOAT8)
    with pytest.raises(ServiceError, match=r"^enough$"):
        changed(engine, EXTRA, wide, event={"eventdate": at(1), "n": 0.5}, go_on=give_up)
    assert (engine.stored.table("t").columns, rows(engine)) == (COLUMNS, [(at(0), 0)])
    stale = ColumnChange(COLUMNS, (*COLUMNS, EXTRA))
    changed(engine, EXTRA, event={"eventdate": at(1), "n": 1, "extra": "a"})
    with pytest.raises(ColumnsChanged):
        engine.stored.append("t", batches(COLUMNS, [(at(2), 2)]), change=stale)
    assert rows(engine) == [(at(0), 0, None), (at(1), 1, "a")]
    engine.stored.append("t", batches(COLUMNS, [(at(3), 3)]), create=COLUMNS, replace=True)
    assert engine.stored.table("t").added == 0


@pytest.mark.parametrize("values", [["1", "text"], [1, 2**40]], ids=["text", "large"])
def test_a_value_that_does_not_fit_leaves_neither_rows_nor_the_table_it_made(
    engine: Engine, values: list[object]
) -> None:
    columns = (COLUMNS[0], Column("n", Type.INT4))
    bad = pa.table({"eventdate": [at(1), at(2)], "n": values})
    with pytest.raises(ServiceError):
        engine.stored.append("t", bad.to_reader(), create=columns)
    assert dict(engine.stored.tables()) == {}


def test_a_row_without_a_date_is_refused_with_all_rows_beside_it(engine: Engine) -> None:
    add(engine, (0, 0))
    with pytest.raises(ServiceError):
        engine.stored.append("t", batches(COLUMNS, [*((at(n), n) for n in range(9000)), (None, 4)]))
    assert rows(engine) == [(at(0), 0)]


def test_rows_that_are_given_up_at_the_last_moment_leave_everything_as_it_was(engine: Engine) -> None:
    def give_up() -> None:
        raise ServiceError("enough")

    add(engine, (0, 0))
    mark = engine.stored.mark("t")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("t", {}),
        ("t", {"create": COLUMNS, "replace": True}),
        ("u", {"create": COLUMNS}),
    ]
    for name, options in calls:
        with pytest.raises(ServiceError, match=r"^enough$"):
            engine.stored.append(name, batches(COLUMNS, [(at(1), 1)]), go_on=give_up, **options)
    assert (list(engine.stored.tables()), rows(engine), engine.stored.mark("t")) == (["t"], [(at(0), 0)], mark)


def test_batches_have_the_types_of_the_plan(engine: Engine) -> None:
    event = (at(0), "a", 2**31 - 1, -(2**63), 0.1, True, 2**32 - 1)
    store(engine.stored, "t", EVERY_TYPE, [event])
    with engine.reader.stream(plan(engine)) as stream:
        [batch] = stream
    assert batch.schema.types == [ARROW[column.type] for column in EVERY_TYPE]
    assert tuple(column[0].as_py() for column in batch.columns) == event


def test_a_dated_plan_returns_each_row_s_date_last(engine: Engine) -> None:
    add(engine, (1, 1), (0, 0))
    with engine.reader.stream(plan(engine, "from t select n", dated=True)) as stream:
        found = pa.Table.from_batches(stream)
    assert [column.to_pylist() for column in found.columns] == [[0, 1], [at(0), at(1)]]
    assert found.schema.types == [pa.int64(), ARROW[Type.TIMESTAMP]]


def test_rows_come_in_the_order_of_their_dates_and_those_of_one_date_as_they_were_stored(engine: Engine) -> None:
    for events in ([(5, 0)], [(1, 1)], [(5, 2)], [(1, 3)], [(0, 4)]):
        add(engine, *events)
    assert rows(engine, "from t select n") == [4, 1, 3, 0, 2]
    assert rows(engine, "from t select n limit 3 offset 1") == [1, 3, 0]
    assert rows(engine, "from t select n + 10 as m where m > 10 limit 2") == [14, 11]


def test_rows_come_in_order_also_where_few_of_many_are_read(engine: Engine) -> None:
    large = pa.table({"eventdate": [at(0)] * 400_000, "n": pa.array(range(400_000), pa.int64())})
    engine.stored.append("t", large.to_reader(8192), create=COLUMNS)
    marks = []
    for load in range(8):
        add(engine, *((1 + load, 1_000_000 + 100 * load + n) for n in range(100)))
        marks.append(engine.stored.mark("t"))
    wanted = list(range(5, 400_000, 20_000)) + list(range(1_000_050, 1_000_800, 100))
    asked = ", ".join(map(str, reversed(wanted)))
    assert rows(engine, f"from t where n in {{{asked}}} select n") == wanted
    assert rows(engine, "from t select n", marks[0], marks[6]) == list(range(1_000_100, 1_000_700))
    assert rows(engine, f"from t where n in {{{asked}}} select n", marks[0], marks[6]) == wanted[-7:-1]


@pytest.mark.parametrize("late", [0, 70_000], ids=["mixed", "at last"])
def test_rows_of_one_date_in_a_load_stay_as_they_came(engine: Engine, late: int) -> None:
    seconds = [number // 1000 if number < late else number * 7919 % 100 for number in range(72_000)]
    dates = pa.array([at(second) for second in seconds], pa.timestamp("us"))
    load = pa.table({"eventdate": dates, "n": pa.array(range(72_000), pa.int64())})
    expected = sorted(range(72_000), key=lambda number: seconds[number])
    engine.stored.append("t", load.to_reader(8192), create=COLUMNS)
    assert rows(engine, "from t select n") == expected
    mark = engine.stored.mark("t")
    engine.stored.append("t", load.to_reader(8192))
    assert rows(engine, "from t select n", since=mark) == expected


def test_nan_is_above_every_number_whatever_numbers_are_stored_with_it(engine: Engine) -> None:
    columns = (*COLUMNS, Column("x", Type.FLOAT8))
    values = [*(1.0, math.nan, None), *(math.nan, math.nan, -math.inf), *(2.0, 2.0, 2.0), *(math.inf, 0.0, -0.0)]
    events = [(at(n), n, x) for n, x in enumerate(values)]
    for first in range(0, len(events), 3):
        store(engine.stored, "t", columns, events[first : first + 3])
    holds: Mapping[str, Callable[[float], bool]] = {
        "x = 1.0": lambda x: x == 1,
        "x != 1.0": lambda x: x != 1,
        "x > 1.0": lambda x: math.isnan(x) or x > 1,
        "x >= 9.0": lambda x: math.isnan(x) or x >= 9,
        "x < 9.0": lambda x: x < 9,
        "x <= 2.0": lambda x: x <= 2,
        "not x in {1.0, 2.0}": lambda x: x not in (1, 2),
        "x != x": lambda _: False,
        "x = 0.0": lambda x: x == 0,
        "isnotnull(x)": lambda _: True,
    }
    assert rows(engine, "from t where isnull(x) select n") == [2]
    for condition, is_met in holds.items():
        expected = [n for _, n, x in events if x is not None and is_met(x)]
        assert rows(engine, f"from t where {condition} select n") == expected, condition


def test_the_newest_event_has_the_latest_date_whatever_was_stored_last(engine: Engine) -> None:
    engine.stored.create("t", COLUMNS)
    add(engine, (2, 0), (5, 1))
    add(engine, (3, 2))
    assert engine.stored.newest("t") == at(5)


def test_a_mark_is_json_and_equal_until_something_is_stored(engine: Engine) -> None:
    engine.stored.create("other", COLUMNS)
    add(engine, (0, 0))
    before = engine.stored.mark("t")
    store(engine.stored, "other", COLUMNS, [(at(0), 0)])
    assert json.loads(json.dumps(before)) == before == engine.stored.mark("t")
    add(engine, (0, 0))
    assert engine.stored.mark("t") != before


def test_rows_between_two_marks_are_those_stored_between_them(engine: Engine) -> None:
    engine.stored.create("t", COLUMNS)
    marks = [engine.stored.mark("t")]
    for events in ([(5, 0), (6, 1)], [(1, 2)], [(5, 3), (0, 4)]):
        add(engine, *events)
        marks.append(engine.stored.mark("t"))

    def between(since: Mark | None, until: Mark | None) -> list[int]:
        return rows(engine, "from t select n", since, until)

    assert between(None, None) == between(marks[0], marks[3]) == between(None, marks[3]) == [4, 2, 0, 3, 1]
    assert [between(*pair) for pair in pairwise(marks)] == [[0, 1], [2], [4, 3]]
    assert (between(marks[1], None), between(None, marks[2]), between(marks[2], marks[2])) == ([4, 2, 3], [2, 0, 1], [])
    assert rows(engine, "from t where n < 4 select n limit 2 offset 1", marks[0], marks[3]) == [0, 3]
    assert rows(engine, "from t group select sum(n)", marks[1], marks[2]) == [2]


@pytest.mark.parametrize("name", ["rowid", "RowID", "position", "version"])
def test_a_column_may_have_any_name_and_changes_no_positions(engine: Engine, name: str) -> None:
    columns = (COLUMNS[0], Column(name, Type.INT8))
    marks = []
    for n, second in ((900, 5), (-1, 5), (50, 1)):
        store(engine.stored, "t", columns, [(at(second), n)])
        marks.append(engine.stored.mark("t"))
    assert rows(engine, f"from t select {name}") == [50, 900, -1]
    assert rows(engine, f"from t select {name} limit 2 offset 1", None, marks[2]) == [900, -1]
    assert rows(engine, f"from t select {name} + 1 as m where m > -5", marks[0], marks[2]) == [51, 0]


def test_a_trimmed_table_keeps_what_was_stored_last_and_its_marks(engine: Engine) -> None:
    marks = []
    for number in range(4):
        add(engine, (number, number), (number, number + 10))
        marks.append(engine.stored.mark("t"))
    last = marks[-1]
    assert engine.stored.trim("t", most=5, since=FIRST) == 5
    assert rows(engine, "from t select n") == [11, 2, 12, 3, 13]
    assert engine.stored.mark("t") == last
    assert rows(engine, "from t select n", since=marks[2]) == [3, 13]
    assert rows(engine, "from t select n", since=marks[0], until=marks[1]) == [11]
    assert rows(engine, "from t select n", until=marks[0]) == []
    add(engine, (4, 4))
    assert rows(engine, "from t select n", since=last) == [4]
    assert engine.stored.mark("t") != last
    assert engine.stored.trim("t", most=100, since=at(3)) == 3
    assert engine.stored.trim("t", most=100, since=at(3)) == 3
    assert rows(engine, "from t select n", since=marks[0]) == [3, 13, 4]
    assert rows(engine, "from t select n", since=last) == [4]
    assert (engine.stored.table("t").columns, engine.stored.newest("t")) == (COLUMNS, at(4))


def test_events_before_a_date_are_removed_wherever_they_are_stored_and_marks_stay(engine: Engine) -> None:
    """Loads overlap in their dates, and their marks name the rows that are left of them."""
    engine.stored.create("t", COLUMNS)
    dice, marks = random.Random(7), [engine.stored.mark("t")]
    stored: list[list[tuple[int, int]]] = []
    for number in range(24):
        if number % 4 == 3:
            cut, last = dice.randrange(20 + 3 * number), engine.stored.mark("t")
            gone = [event for load in stored for event in load if event[0] < cut]
            assert engine.stored.remove_before("t", at(cut)) == len(gone)
            assert engine.stored.mark("t") == last
            stored = [[event for event in load if event[0] >= cut] for load in stored]
        else:
            load = [(dice.randrange(100), 100 * number + n) for n in range(dice.randrange(1, 30))]
            add(engine, *load)
            stored.append(sorted(load, key=lambda event: event[0]))
            marks.append(engine.stored.mark("t"))
        first, last_ = sorted(dice.choices(range(len(marks)), k=2))
        between = sorted((event for load in stored[first:last_] for event in load), key=lambda event: event[0])
        assert rows(engine, "from t select n", marks[first], marks[last_]) == [n for _, n in between]
    assert engine.stored.events("t") == sum(map(len, stored))
    assert engine.stored.remove_before("t", at(10_000)) == sum(map(len, stored))
    assert engine.stored.remove_before("t", at(10_000)) == 0
    add(engine, (3, -1))
    assert (rows(engine, "from t select n"), rows(engine, "from t select n", marks[-1])) == ([-1], [-1])


def test_a_part_of_a_table_says_whether_events_of_it_were_removed(engine: Engine) -> None:
    marks = []
    for number in range(4):
        add(engine, (10 * number, number), (10 * number + 5, number))
        marks.append(engine.stored.mark("t"))

    def removed(first: int, last: int, start: float) -> bool:
        return engine.stored.has_removed("t", marks[first], marks[last], at(start))

    assert not removed(0, 3, 0)
    assert engine.stored.remove_before("t", at(12)) == 3
    assert removed(0, 1, 0)
    assert not removed(0, 3, 12)  # nothing as late was removed
    add(engine, (50, 0))
    marks.append(engine.stored.mark("t"))
    assert engine.stored.trim("t", most=3, since=at(0)) == 3  # leaves 30, 35 and 50
    assert removed(1, 2, 20)
    assert not removed(2, 4, 40)
    assert engine.stored.has_removed("t", None, marks[3], at(0))
    assert not engine.stored.has_removed("t", None, marks[3], at(60))
    engine.stored.drop("t")
    add(engine, (0, 0))
    with pytest.raises(ServiceError, match="was dropped or replaced"):
        removed(0, 1, 0)
    assert not engine.stored.has_removed("t", None, engine.stored.mark("t"), at(0))


def test_events_are_removed_while_they_are_read(engine: Engine) -> None:
    store(engine.stored, "t", COLUMNS, [(at(second), second) for second in range(1000)])
    with engine.reader.stream(plan(engine, "from t select n"), rows_per_batch=10) as stream:
        batches = iter(stream)
        read = next(batches).num_rows
        assert engine.stored.remove_before("t", at(900)) == 900
        assert read + sum(batch.num_rows for batch in batches) == 1000
    assert rows(engine, "from t select n") == list(range(900, 1000))


def test_a_table_is_trimmed_while_it_is_read(engine: Engine) -> None:
    store(engine.stored, "t", COLUMNS, [(at(second), second) for second in range(1000)])
    last = engine.stored.mark("t")
    with engine.reader.stream(plan(engine, "from t select n"), until=last, rows_per_batch=10) as stream:
        batches = iter(stream)
        read = next(batches).num_rows
        engine.stored.trim("t", most=1, since=FIRST)
        assert read + sum(batch.num_rows for batch in batches) == 1000


def test_the_same_call_returns_the_same_rows_in_the_same_order_again(engine: Engine) -> None:
    for round_ in range(3):
        add(engine, *((n % 5, round_ * 3000 + n) for n in range(3000)))
    until = engine.stored.mark("t")
    first = rows(engine, "from t select n", None, until)
    add(engine, *((n % 5, -n) for n in range(3000)))
    assert rows(engine, "from t select n", None, until) == first
    assert sorted(first) == list(range(9000))


def test_an_interrupt_gives_the_reason_wherever_the_stream_is(engine: Engine) -> None:
    add(engine, *((n, n) for n in range(50_000)))
    reason = ServiceError("enough", code=503)
    with engine.reader.stream(plan(engine)) as stream:
        stream.interrupt(reason)
        with pytest.raises(ServiceError, match=r"^enough$"):
            list(stream)
    with engine.reader.stream(plan(engine), rows_per_batch=100) as stream:
        found = iter(stream)
        next(found)
        thread = threading.Thread(target=stream.interrupt, args=[reason])
        thread.start()
        thread.join()
        with pytest.raises(ServiceError, match=r"^enough$"):
            list(found)
    with engine.reader.stream(plan(engine)) as stream:
        list(stream)
        stream.interrupt(reason)


def test_queries_that_run_at_once_do_not_see_one_another(engine: Engine) -> None:
    numbers = range(6)
    for number in numbers:
        store(engine.stored, f"t{number}", COLUMNS, [(at(second), number) for second in range(10 + number)])
    with ThreadPoolExecutor(len(numbers)) as clients:
        asked = [
            clients.submit(rows, engine, f"from t{number} select n", None, None) for number in numbers for _ in range(6)
        ]
        assert [each.result() for each in asked] == [[number] * (10 + number) for number in numbers for _ in range(6)]


def test_reads_run_beside_a_write(engine: Engine) -> None:
    add(engine, *((n, n) for n in range(30_000)))
    with engine.reader.stream(plan(engine, "from t select n"), rows_per_batch=100) as stream:
        found = iter(stream)
        seen = next(found).num_rows
        add(engine, (0, -1))
        seen += sum(batch.num_rows for batch in found)
    assert seen == 30_000
    assert len(rows(engine)) == 30_001


def test_a_pattern_is_checked(engine: Engine) -> None:
    assert engine.reader.dialect.check_pattern("a[b-d]+$") is None
    assert engine.reader.dialect.check_pattern("(") == "missing ): ("


def test_an_extent_counts_events_and_has_their_first_and_last_date(engine: Engine) -> None:
    engine.stored.create("empty", COLUMNS)
    add(engine, (3, 1), (1, 2), (2, 3))
    full, empty = engine.stored.extent("t"), engine.stored.extent("empty")
    assert (full.events, full.oldest, full.newest) == (3, at(1), at(3))
    assert (empty.events, empty.oldest, empty.newest, empty.bytes) == (0, None, None, None)
    assert (engine.stored.events("t"), engine.stored.events("empty")) == (3, 0)


GONE = "table 't' was dropped or replaced, so the query cannot continue; a new query or job reads its new events"


@pytest.mark.parametrize("again", ["replaced", "dropped and made again"])
def test_the_marks_of_a_table_end_with_it_whatever_the_new_one_holds(engine: Engine, again: str) -> None:
    add(engine, (0, 0))
    old = [engine.stored.mark("t")]
    add(engine, (1, 1))
    old.append(engine.stored.mark("t"))
    for count in (0, 1, 5):  # fewer rows than before, and more
        new = batches(COLUMNS, [(at(n), 10 + n) for n in range(count)])
        if again != "replaced":
            engine.stored.drop("t")
            assert dict(engine.stored.tables()) == {}
        assert engine.stored.append("t", new, create=COLUMNS, replace=True) == count
        for mark in old:
            with pytest.raises(ServiceError) as caught:
                engine.stored.check_mark("t", mark)
            assert caught.value.message == GONE
            for since, until in ((mark, None), (None, mark), (mark, engine.stored.mark("t"))):
                with pytest.raises(ServiceError) as caught:
                    rows(engine, since=since, until=until)
                assert caught.value.message == GONE
        begin = engine.stored.mark("t")
        engine.stored.check_mark("t", begin)
        assert rows(engine, "from t select n", until=begin) == list(range(10, 10 + count))
        add(engine, (9, 99))
        assert rows(engine, "from t select n", since=begin) == [99]
        old.append(engine.stored.mark("t"))


def test_a_load_with_an_id_is_stored_once_while_the_table_has_its_rows(engine: Engine) -> None:
    def load(load_id: str, **options: Any) -> int | str:
        try:
            return engine.stored.append("t", batches(COLUMNS, [(at(1), 1)]), load_id=load_id, **options)
        except AlreadyLoaded as error:
            return error.message

    def give_up() -> None:
        raise ServiceError("enough")

    def known() -> list[bool]:
        return [engine.stored.has_load("t", load_id) for load_id in "abc"]

    assert known() == [False, False, False]
    again = "table 't' already has the load {}"
    assert [load("a", create=COLUMNS), load("a"), load("b"), load("b")] == [1, again.format("a"), 1, again.format("b")]
    with pytest.raises(ServiceError, match=r"^enough$"):
        load("c", go_on=give_up)
    assert (known(), rows(engine, "from t select n")) == ([True, True, False], [1, 1])
    assert load("a", create=COLUMNS, replace=True) == again.format("a")
    assert load("c", create=COLUMNS, replace=True) == 1
    assert (known(), rows(engine, "from t select n")) == ([False, False, True], [1])
    engine.stored.drop("t")
    assert known() == [False, False, False]
    assert (load("c", create=COLUMNS), known()) == (1, [False, False, True])


def test_a_replacement_that_fails_leaves_the_old_table(engine: Engine) -> None:
    add(engine, (0, 1))
    mark = engine.stored.mark("t")
    columns = (COLUMNS[0], Column("other", Type.INT4))
    with pytest.raises(ServiceError):
        engine.stored.append("t", batches(columns, [(at(1), 1), (None, 2)]), create=columns, replace=True)
    assert (engine.stored.table("t").columns, engine.stored.mark("t"), rows(engine, "from t select n")) == (
        COLUMNS,
        mark,
        [1],
    )


def test_a_query_that_runs_reads_on_while_its_table_is_dropped(engine: Engine) -> None:
    add(engine, *((n, n) for n in range(20_000)))
    with engine.reader.stream(plan(engine, "from t select n"), rows_per_batch=2048) as stream:
        batches_ = iter(stream)
        first = next(batches_)
        engine.stored.drop("t")
        assert first.num_rows + sum(batch.num_rows for batch in batches_) == 20_000


def deviation(values: list[int]) -> float | None:
    """The sample standard deviation of whole numbers: rounded where the exact spread becomes a float8, and behind."""

    def spread(one: list[int], other: list[int]) -> int:
        return len(values) * sum(map(int.__mul__, one, other)) - sum(one) * sum(other)

    upper, lower = [value >> 32 for value in values], [value & 2**32 - 1 for value in values]
    if spread(upper, upper) < 2**56:
        total = float(spread(values, values))
    else:
        parts = spread(upper, upper), spread(upper, lower), spread(lower, lower)
        total = parts[0] * 2.0**64 + parts[1] * 2.0**33 + parts[2]
    count = float(len(values))
    return math.sqrt(total / (count * (count - 1))) if len(values) > 1 else None


WHOLE: Mapping[str, Callable[[Random], int]] = {
    "status": lambda random: random.choice([200, 200, 200, 301, 404, 500]),
    "int4": lambda random: random.randint(-(2**31), 2**31 - 1),
    "milliseconds": lambda random: 2**40 + random.randint(-(10**7), 10**7),
    "edge": lambda random: 2**32 - random.randint(0, 1),
    "equal": lambda random: 2**62 + 1,
    "int8": lambda random: random.randint(-(2**63), 2**63 - 1),
    "ends": lambda random: random.choice([-(2**63), 2**63 - 1]),
}


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 4))])
def test_mean_and_deviation_of_whole_numbers_are_exact_whatever_their_order(engine: Engine, seed: int) -> None:
    random = Random(seed)
    kinds = list(WHOLE.values())
    groups = {key: [kinds[key](random) for _ in range(random.randint(2, 3000))] for key in range(len(kinds))}
    groups[len(kinds)] = [random.randint(0, 100)]
    columns = (*COLUMNS, Column("key", Type.INT4), Column("small", Type.INT4))
    events = [
        (at(random.randint(0, 999)), n, key, n if -(2**31) <= n < 2**31 else None)
        for key, values in groups.items()
        for n in values
    ]
    random.shuffle(events)
    store(engine.stored, "t", columns, events)
    asked = "avg(n), stddev(n) as of8, stddev(small) as of4, count(small) as many"
    assert rows(engine, f"from t group by key select {asked}") == [
        (
            key,
            float(sum(values)) / len(values),
            deviation(values),
            deviation([n for n in values if -(2**31) <= n < 2**31]),
            sum(-(2**31) <= n < 2**31 for n in values),
        )
        for key, values in groups.items()
    ]
    assert rows(engine, "from t where n = 1, n = 2 group select avg(n), stddev(n), stddev(small) as s") == [(None,) * 3]
    where = "where key < 5 group by key select stddev(n) as s, avg(n) as a where s >= 0.0 select key, a + s as x"
    assert rows(engine, f"from t {where}") == [
        (key, float(sum(groups[key])) / len(groups[key]) + (deviation(groups[key]) or 0)) for key in range(5)
    ]


def percentile(values: list[float], percent: float) -> float:
    """On the line between two neighbours, whose one product is not rounded."""
    ordered = sorted(values)
    place = (len(values) - 1) * float(Fraction(str(percent)) / 100)
    low, high, part = ordered[math.floor(place)], ordered[math.ceil(place)], place % 1
    return low if low == high else float(Fraction(low) * Fraction(1 - part) + Fraction(high * part))


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 4))])
def test_percentiles_are_the_same_to_the_last_digit(engine: Engine, seed: int) -> None:
    random = Random(seed)
    kinds = [
        lambda: random.uniform(-1e5, 1e5),
        lambda: round(random.uniform(0, 1000), 2),
        lambda: float(random.randint(-(10**9), 10**9)),
        lambda: random.uniform(1, 10) * 10.0 ** random.randint(-100, 100),
        lambda: float(random.randint(0, 3)),
    ]
    groups = {key: [kinds[key % len(kinds)]() for _ in range(random.randint(1, 200))] for key in range(60)}
    columns = (COLUMNS[0], Column("key", Type.INT4), Column("x", Type.FLOAT8))
    events = [(at(random.randint(0, 999)), key, x) for key, values in groups.items() for x in values]
    random.shuffle(events)
    store(engine.stored, "t", columns, events)
    percents = (0, 5, 33.3, 50, 90, 95, 99.9, 100, round(random.uniform(0, 100), 3))
    asked = ", ".join(f"percentile(x, {percent}) as p{index}" for index, percent in enumerate(percents))
    assert rows(engine, f"from t group by key select {asked}, median(x)") == [
        (key, *(percentile(values, percent) for percent in percents), percentile(values, 50))
        for key, values in groups.items()
    ]


def test_a_small_number_has_the_same_text(engine: Engine) -> None:
    random = Random(1)
    numbers = [random.uniform(1, 10) * 10.0**-power for power in range(1, 8) for _ in range(50)]
    numbers += [sign * digit * 10.0**-power for power in range(1, 12) for digit in (1, 12, 9.99) for sign in (1, -1)]
    numbers += [0.0, -0.0, 0.0001, 0.00009999999999999999, 0.00001, 0.000009999999999999999, 1e15, 123456789.125]
    store(
        engine.stored, "t", (COLUMNS[0], Column("x", Type.FLOAT8)), [(at(index), x) for index, x in enumerate(numbers)]
    )
    assert rows(engine, "from t select str(x) as s") == list(map(repr, numbers))


def test_rows_of_any_size_come_in_batches_of_a_few_megabytes(engine: Engine) -> None:
    columns = (COLUMNS[0], Column("n", Type.INT8), Column("s", Type.STR))
    for first in (1, 0):
        store(engine.stored, "t", columns, [(at(n), n, f"{n} " + "x" * 250_000) for n in range(first, 80, 2)])
    with engine.reader.stream(plan(engine)) as stream:
        found = [(batch.nbytes, batch.column(1).to_pylist()) for batch in stream]
    assert [n for _, numbers in found for n in numbers] == list(range(80))
    assert max(size for size, _ in found) < BYTES_PER_BATCH + 250_000
    assert rows(engine, "from t select n offset 7 limit 5") == list(range(7, 12))
