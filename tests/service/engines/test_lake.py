"""Tables in a shared folder: what other tools, other processes and other stores have of them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, nullcontext
from datetime import UTC, date, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp
from support.engines import engines_of, new_lake
from support.events import batches, selected, store
from support.places import Place, hdfs, local, s3

from svcctl.dates.range import Range
from svcctl.errors import ServiceError, Unavailable, UsageError
from svcctl.service import rendering
from svcctl.service.engines import Engine, Engines, Mark
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.engines.duckdb.lake_reader import LakeReader
from svcctl.service.engines.lake.log import ATTEMPTS
from svcctl.service.engines.lake.selects import without_range
from svcctl.service.engines.lake.shared_tables import LakeTables
from svcctl.service.engines.lake.snapshot import File, SnapshotPart, parts, whole
from svcctl.service.engines.lake.upkeep import together, vacuum
from svcctl.service.engines.table_rules import AlreadyLoaded
from svcctl.service.language import Column, Plan, Type, compile, parse
from svcctl.service.queries.continuous import Steps
from svcctl.service.queries.request import AskedQuery

COLUMNS = (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8), Column("ip", Type.IP4))
FIRST = datetime(2024, 1, 1)
ADDRESS = int(IPv4Address("255.1.2.3"))


def opened(place: Place, **options: Any) -> LakeTables:
    """The tables of a place, as another process would open them."""
    return new_lake(f"{place.target}/tables", place.environment, **options)


def add(lake: LakeTables, *events: tuple[float, int]) -> None:
    """Events in table t: the hour of each, and its n."""
    store(lake, "t", COLUMNS, [(FIRST + timedelta(hours=hour), n, ADDRESS) for hour, n in events])


def planned(lake: LakeTables, query: str = "from t select n", **options: Any) -> Plan:
    given = {"start": datetime(2023, 1, 1, tzinfo=UTC), "end": None, "now": datetime(2024, 5, 6, tzinfo=UTC)} | options
    return compile(parse(query), lake.tables(), dialect=LakeReader(lake).dialect, **given)


def numbers(
    lake: LakeTables,
    query: str = "from t select n",
    *,
    since: Mark | None = None,
    until: Mark | None = None,
    **options: Any,
) -> list[int]:
    with LakeReader(lake).stream(planned(lake, query, **options), since=since, until=until) as stream:
        return [n for batch in stream for n in batch.columns[0].to_pylist()]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[LakeTables]:
    with opened(local(tmp_path)) as lake:
        yield lake


STORES: Mapping[str, Callable[[Any], Place]] = {"tmp_path": local, "ceph_peer": s3, "hdfs_peer": hdfs}


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest) -> Place:
    return STORES[request.param](request.getfixturevalue(request.param))


def test_a_table_is_the_same_for_every_process_on_every_store(place: Place) -> None:
    with opened(place) as here, opened(place) as there:
        assert dict(here.tables()) == {}
        add(here, (5, 1), (30, 2))
        assert numbers(there) == [1, 2]
        begin = there.mark("t")
        add(there, (1, 3))
        add(here, (1, 4))
        assert numbers(here) == numbers(there) == [3, 4, 1, 2]
        assert numbers(here, since=begin) == [3, 4]
        assert here.compact("t") == (3, 1)
        assert numbers(there, since=begin) == [3, 4]
        assert numbers(there) == [3, 4, 1, 2]
        assert there.mark("t") == here.mark("t") != begin
        store(there, "u.v", COLUMNS, [])
        there.drop("t")
        assert (here.current("t"), list(there.tables())) == (None, ["u.v"])
        assert vacuum(here, "t", timedelta()) == 5  # four files of loads and what was made of three of them
        assert not [name for name in place.everything() if name.endswith(".parquet") and "checkpoint" not in name]


def test_other_tools_read_a_table_as_it_is(lake: LakeTables, tmp_path: Path) -> None:
    add(lake, (5, 1), (30, 2))
    add(lake, (7, 3))
    table = deltalake.DeltaTable(f"{tmp_path}/tables/t")
    rows = sorted(table.to_pyarrow_table().drop_columns(["_load"]).to_pylist(), key=lambda row: row["n"])
    assert rows == [
        {"eventdate": FIRST + timedelta(hours=hour), "n": n, "ip": ADDRESS, "_row": row, "day": day}
        for hour, n, row, day in (
            (5, 1, 0, date(2024, 1, 1)),
            (30, 2, 1, date(2024, 1, 2)),
            (7, 3, 0, date(2024, 1, 1)),
        )
    ]
    files = f"{tmp_path}/tables/t/*/*.parquet"
    with closing(duckdb.connect()) as connection:
        found = connection.execute(f"SELECT n, ip, day::VARCHAR FROM '{files}' ORDER BY n").fetchall()
    assert found == [(1, ADDRESS, "2024-01-01"), (2, ADDRESS, "2024-01-02"), (3, ADDRESS, "2024-01-01")]


def test_a_query_opens_the_files_of_its_range_and_no_others(lake: LakeTables) -> None:
    for hour in range(40):
        add(lake, (hour, hour))
    table = lake.snapshot("t")
    assert len(table.files) == 40
    assert len(table.within(FIRST + timedelta(hours=7), FIRST + timedelta(hours=8))) == 1
    start = FIRST.replace(tzinfo=UTC) + timedelta(hours=7)
    assert numbers(lake, start=start, end=start + timedelta(hours=2)) == [7, 8]


@pytest.mark.parametrize(
    ("query", "start", "end", "counts", "read"),
    [
        ("group select count() as n", 0, None, [8], []),
        ("group select count() as n", 0, 96, [8], []),
        ("group select count() as n", 0, 90, [7], ["4"]),
        ("group select count() as n", 1, 90, [6], ["1", "4"]),
        ("group select count() as n", 24, 72, [4], []),
        ("group select count() as n", 90, 91, [0], ["4"]),
        ("group select count() as n", 200, 300, [0], []),
        ("group select count() * 2 as n, count() as m", 1, None, [14], ["1"]),
        ("group select count() as n where n > 8", 0, None, [], []),
        ("group select count() as n where n > 7", 0, None, [8], []),
        ("group select count() as n limit 1", 0, None, [8], []),
        ("group select count() as n offset 1", 0, None, [], []),
        ("where n > 0 group select count() as n", 0, None, [8], ["1", "2", "3", "4"]),
        ("where eventdate >= parsedate('2024-01-02') group select count() as n", 0, None, [6], ["1", "2", "3", "4"]),
        ("limit 3 group select count() as n", 0, None, [3], ["1", "2", "3", "4"]),
        ("offset 3 group select count() as n", 0, None, [5], ["1", "2", "3", "4"]),
        ("group select count(ip) as n", 0, None, [8], ["1", "2", "3", "4"]),
        ("group select count() as n, max(n) as m", 0, None, [8], ["1", "2", "3", "4"]),
        ("group every 1d select count() as m group select sum(m) as n", 0, None, [8], ["1", "2", "3", "4"]),
        ("group by n % 2 as odd select count() as m group select max(m) as n", 0, None, [4], ["1", "2", "3", "4"]),
        ("group by n select count() as m group select count() as n", 0, None, [8], ["1", "2", "3", "4"]),
    ],
)
def test_count_reads_the_files_that_the_range_cuts_and_no_others(
    query: str, start: int, end: int | None, counts: list[int], read: list[str], lake: LakeTables
) -> None:
    for day in range(4):
        add(lake, (24 * day, 2 * day + 1), (24 * day + 20, 2 * day + 2))
    files = {file.day[-1]: Path(lake.folder.uri, "t", file.path) for file in lake.snapshot("t").files}
    for unread in files.keys() - set(read):
        files[unread].unlink()
    first = FIRST.replace(tzinfo=UTC)
    begin, before = first + timedelta(hours=start), None if end is None else first + timedelta(hours=end)
    assert numbers(lake, f"from t {query}", start=begin, end=before) == counts


def test_count_of_some_loads_reads_the_files_that_have_others_too(lake: LakeTables) -> None:
    for load in range(3):
        add(lake, (load, load), (load + 24, load))
    lake.compact("t")
    add(lake, (72, 9), (73, 9))
    since, query = lake.mark("t"), "from t group select count() as n"
    add(lake, (48, 3), (49, 4), (50, 5))
    assert numbers(lake, query) == [11]
    assert numbers(lake, query, since=since) == [3]
    assert numbers(lake, query, until=since) == [8]
    for file in lake.snapshot("t").files:
        if file.loads[0] == file.loads[1]:
            Path(lake.folder.uri, "t", file.path).unlink()
    assert numbers(lake, query, since=since) == [3]
    assert numbers(lake, query, until=since) == [8]


@pytest.mark.parametrize(
    ("query", "start", "end", "left"),
    [
        ("", 0, None, []),
        ("", 0, 96, []),
        ("", 1, 96, [">=", "<"]),
        ("", 0, 95, [">=", "<"]),
        ("where n > 1", 0, None, [">"]),
        ("where n > 1", 1, None, [">=", ">"]),
        ("where n > 1, n != 5 and n != 6", 0, 96, [">", "!=", "!="]),
        ("where n = 1 or n != 2", 0, 96, ["=", "!="]),
        ("where eventdate >= parsedate('2024-01-02')", 0, 96, [">="]),
        ("where n > 1 group select count() as n where n < 4", 0, 96, [">", "<"]),
    ],
)
def test_the_range_is_no_condition_where_all_events_of_the_files_are_in_it(
    query: str, start: int, end: int | None, left: list[str], lake: LakeTables
) -> None:
    for day in range(4):
        add(lake, (24 * day, day), (24 * day + 23, day))
    first = FIRST.replace(tzinfo=UTC)
    before = None if end is None else first + timedelta(hours=end)
    plan = planned(lake, f"from t {query}", start=first + timedelta(hours=start), end=before)
    read = without_range(plan, lake.snapshot("t").within(plan.start, plan.end)).select
    signs = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.EQ: "=", exp.NEQ: "!="}
    found = [signs[type(each)] for where in read.find_all(exp.Where) for each in where.find_all(*signs)]
    assert sorted(found) == sorted(left)


def test_columns_of_events_may_have_the_names_of_the_hidden_ones(lake: LakeTables) -> None:
    columns = (COLUMNS[0], *(Column(name, Type.INT8) for name in ("day", "_load", "_row", "__row")))
    store(lake, "t", columns, [(FIRST, 1, 2, 3, 4)])
    store(lake, "t", columns, [(FIRST, 5, 6, 7, 8)])
    assert numbers(lake, "from t select day * 1000 + _load * 100 + _row * 10 + __row as n") == [1234, 5678]


def test_a_load_that_is_tried_again_is_not_doubled(lake: LakeTables) -> None:
    add(lake, (0, 0))
    for id_ in "ab":
        assert lake.extend(lake.snapshot("t"), _arranged(lake, [(FIRST, 7, 1)]), id_=id_) == 1
    lake.checkpoint("t")
    with closing(LakeTables(lake.folder.uri, {})) as other, pytest.raises(AlreadyLoaded):
        other.extend(other.snapshot("t"), _arranged(other, [(FIRST, 7, 1)]), id_="b")
    assert numbers(lake) == [0, 7, 7]


def test_a_load_whose_rows_were_replaced_or_dropped_is_no_longer_there(lake: LakeTables) -> None:

    def known() -> list[bool]:
        return [lake.has_load("t", id_) for id_ in "abc"]

    for id_, replace in (("a", False), ("b", True)):
        lake.make("t", COLUMNS, _arranged(lake, [(FIRST, 7, 1)]), id_=id_, replace=replace)
    assert known() == [False, True, False]
    assert lake.extend(lake.snapshot("t"), _arranged(lake, [(FIRST, 8, 1)]), id_="a") == 1
    assert known() == [True, True, False]
    lake.drop("t")
    lake.make("t", COLUMNS, _arranged(lake, [(FIRST, 7, 1)]), id_="c")
    assert known() == [False, False, True]


def test_a_load_into_a_table_that_is_replaced_meanwhile_is_refused(lake: LakeTables, tmp_path: Path) -> None:
    add(lake, (0, 0))

    def rows() -> Iterator[Any]:
        yield from batches(COLUMNS, [(FIRST, 1, 1)])
        with opened(local(tmp_path)) as other:
            other.append("t", batches(COLUMNS, [(FIRST, 2, 2)]), create=COLUMNS, replace=True)

    with pytest.raises(ServiceError) as caught, lake.scanner.arranged("t", _reader(rows())) as arranged:
        lake.extend(lake.snapshot("t"), arranged)
    assert caught.value.message == "table 't' was dropped or replaced during the load; nothing was loaded"
    assert numbers(lake) == [2]
    assert len(list(tmp_path.rglob("*.parquet"))) == 2


@pytest.mark.parametrize("same", [False, True])
def test_rows_of_a_table_that_two_processes_make_at_once_are_added_once(
    lake: LakeTables, tmp_path: Path, same: bool
) -> None:
    def rows() -> Iterator[Any]:
        yield from batches(COLUMNS, [(FIRST, 1, 1)])
        with opened(local(tmp_path)) as other:
            other.make("t", COLUMNS, _arranged(other, [(FIRST, 2, 2)]), id_="a" if same else "b")

    with pytest.raises(AlreadyLoaded) if same else nullcontext():
        assert lake.make("t", COLUMNS, _arranged(lake, _reader(rows())), id_="a") == 1
    with opened(local(tmp_path)) as reader:
        assert numbers(reader) == ([2] if same else [1, 2])


def _arranged(lake: LakeTables, rows: Any) -> Iterator[Any]:
    reader = batches(COLUMNS, rows) if isinstance(rows, list) else rows
    with lake.scanner.arranged("t", reader, COLUMNS) as arranged:
        yield from arranged


def _reader(rows: Iterator[Any]) -> Any:
    import pyarrow as pa

    return pa.RecordBatchReader.from_batches(batches(COLUMNS, []).schema, rows)


def test_a_store_on_which_two_writers_may_both_win_is_written_to_with_a_lock_only(s3_peer: Any, tmp_path: Path) -> None:
    place = s3(s3_peer)
    with opened(place, lock_file=tmp_path / "lock") as lake:
        add(lake, (0, 1))
        assert lake.extent("t").events == 1  # this server answers no request for a part of an object
    with opened(place) as lake, pytest.raises(UsageError) as caught:
        lake.create("u", COLUMNS)
    assert caught.value.message == (
        f"cannot write tables in {place.target}/tables: its store lets two writers of the same object both succeed"
    )


def file(oldest: float, newest: float, rows: int) -> File:
    """A file, by the hours of its first and last event."""
    first, last = FIRST + timedelta(hours=oldest), FIRST + timedelta(hours=newest)
    return File(f"day=1/ordered-{oldest}", "1", 9, rows, first, last, (1, 1))


def test_files_are_read_in_parts_of_which_those_to_be_sorted_have_few_rows() -> None:
    apart = [file(0, 1, 4_000_000), file(2, 3, 4_000_000)]
    few, many = [file(4, 6, 9), file(5, 7, 9), file(8, 9, 9), file(8, 9, 9)], [file(10, 14, 300_000)] * 2
    half = FIRST + timedelta(hours=12, milliseconds=0.5)
    assert parts([*many, *few, *apart]) == [
        SnapshotPart(apart, ordered=True),
        SnapshotPart(few, ordered=False),
        SnapshotPart(many, ordered=False, start=many[0].oldest, end=half),
        SnapshotPart(many, ordered=False, start=half, end=many[1].newest + timedelta(milliseconds=1)),
    ]
    assert parts([]) == [SnapshotPart([], ordered=True)]
    last = datetime.max.replace(microsecond=999_000)
    ended = [dataclasses.replace(one, newest=last) for one in many]
    assert parts(ended)[-1].end == datetime.max


def test_rows_that_are_answered_part_by_part_are_those_of_one_sort(place: Place) -> None:
    with opened(place) as whole_sort, opened(place, sorted_rows=5) as lake:
        events = [(hour % 7 + hour / 16, hour) for hour in range(48)]
        for first in range(0, 48, 8):
            add(lake, *events[first : first + 8])
        mark = lake.mark("t")
        add(lake, (1, 100), (6, 101))
        every = numbers(whole_sort, until=mark)
        assert sorted(events) == [events[n] for n in every]
        assert len(parts(lake.snapshot("t").files, 5)) > 5
        assert numbers(lake, until=mark) == every
        for condition in ("n % 3 = 0", "n % 16 = 0", "n = 40", "n < 0", "n >= 0", "n >= 30", "n < 9 or n > 44"):
            some = numbers(whole_sort, f"from t where {condition} select n", until=mark)
            assert numbers(lake, f"from t where {condition} select n", until=mark) == some, condition
            assert some == [n for n in every if n in some]
            later = "select n + 1 as m, ip where m != 7 select m - 1 as n, eventdate"
            assert numbers(lake, f"from t where {condition} {later}", until=mark) == [n for n in some if n != 6]
        assert numbers(lake, "from t select n offset 5 limit 20", until=mark) == every[5:25]
        assert numbers(lake, "from t group select sum(n) as n", until=mark) == [sum(every)]
        assert numbers(lake, since=mark) == [100, 101]
        plan = planned(lake)
        with rendering.stream(LakeReader(lake), plan, ["c0"], until=mark, skip=29) as stream:
            assert [n for batch in stream for n in batch.columns[0].to_pylist()] == every[29:]
        assert lake.compact("t") == (7, 1)
        assert numbers(lake, until=mark) == every


@pytest.mark.slow
def test_an_answer_over_files_that_overlap_is_not_held(tmp_path: Path) -> None:
    nowhere = tmp_path / "spill"
    nowhere.touch()
    with new_lake(f"{tmp_path}/tables") as lake:
        for first in range(4):
            rows = (
                f"TIMESTAMP '2024-01-01' + to_milliseconds(i * 80 + {first}) AS eventdate, i AS n, NULL::UINTEGER AS ip"
            )
            rows = selected(f"SELECT {rows} FROM range(1000000) r(i)")
            lake.append("t", rows, create=None if first else COLUMNS)
    with (
        LakeTables(f"{tmp_path}/tables", {}, memory_limit="128MB", spill=nowhere) as lake,
        LakeReader(lake).stream(planned(lake)) as stream,
    ):
        assert sum(batch.num_rows for batch in stream) == 4_000_000


def test_compaction_leaves_files_in_order_and_only_changes_what_is_small_or_overlaps(lake: LakeTables) -> None:
    large = [file(0, 2, 4_000_000), file(2, 4, 4_000_000), file(5, 6, 3_000_000)]
    assert together(large) == []
    late, small, next_ = file(5.5, 5.6, 10), file(7, 8, 10), file(9, 10, 20)
    assert together([*large, late, small, next_]) == [[large[2], late], [small, next_]]
    for hour in (1, 3, 2, 2):
        add(lake, (hour, hour), (hour + 2, hour))
    assert not whole(lake.snapshot("t").files).ordered
    assert lake.compact("t") == (4, 1)
    assert whole(lake.snapshot("t").files).ordered
    assert numbers(lake) == [1, 2, 2, 1, 3, 2, 2, 3]
    assert lake.compact("t") == (0, 0)


@pytest.mark.slow
def test_files_are_put_together_however_many_commits_others_make_meanwhile(lake: LakeTables, tmp_path: Path) -> None:
    add(lake, (5, 1))
    add(lake, (4, 2))
    table = lake.snapshot("t")
    with opened(local(tmp_path)) as other:
        log = other.log("t")
        for version in range(table.version, table.version + 2 * ATTEMPTS):
            log.commit(version, list, "WRITE", conflict=lambda _: pytest.fail("another"))
    assert lake.rewrite(table, table.files) == 1
    assert lake.snapshot("t").version == table.version + 2 * ATTEMPTS + 1
    assert numbers(lake) == [2, 1]


def test_files_that_cannot_be_read_are_an_outage_after_which_a_job_goes_on(place: Place) -> None:
    with opened(place) as lake:
        add(lake, (1, 1))
        for name in list(lake.folder.storage.names(lake.folder.name("t"))):
            if name.endswith(".parquet"):
                lake.folder.storage.remove(name)
        with pytest.raises(Unavailable) as caught:
            numbers(lake)
        assert caught.value.message.startswith("cannot read table 't'")
        assert f"{place.target}/tables/t" in caught.value.message


AWAY = {
    "gone": "it does not exist",
    "empty": "it has no file .svcctl",
    "stranger": "another folder is in its place",
}
"""What is where a shared folder was, and what is said of it."""


@pytest.mark.parametrize("instead", AWAY)
def test_a_folder_that_is_away_is_an_outage_and_nothing_is_written_in_its_place(
    lake: LakeTables, tmp_path: Path, instead: str
) -> None:
    add(lake, (1, 1))
    assert numbers(lake) == [1]
    folder, away, plan = tmp_path / "tables", tmp_path / "away", planned(lake)
    until = lake.mark("t")
    folder.rename(away)
    if instead == "empty":
        folder.mkdir()
    if instead == "stranger":  # with a table of the same name and columns, and as many versions
        with opened(local(tmp_path)) as other:
            add(other, (5, 5))
    before = sorted(folder.rglob("*"))
    asked = AskedQuery("from t select n", Range(FIRST.replace(tzinfo=UTC), None))
    now = (FIRST + timedelta(days=1)).replace(tzinfo=UTC)
    attempts: list[Callable[[], object]] = [
        lake.check,
        lambda: add(lake, (2, 2)),
        lambda: store(lake, "u", COLUMNS, [(FIRST, 1, ADDRESS)]),
        lambda: lake.create("u", COLUMNS),
        lambda: lake.extent("t"),
        lambda: lake.mark("t"),
        lambda: lake.check_mark("t", until),
        lambda: lake.has_load("t", "1"),
        lambda: LakeReader(lake).stream(plan).__enter__(),
        lambda: lake.compact("t"),
        lambda: lake.trim("t", most=0, since=FIRST),
        lambda: vacuum(lake, "t", timedelta()),
        lambda: lake.drop("t"),
        lambda: Steps(engines_of(lake), asked, lambda: now, launched=now),
    ]
    for attempt in attempts:
        with pytest.raises(Unavailable) as caught:
            attempt()
        assert caught.value.message == f"cannot read the shared folder {folder}: {AWAY[instead]}"
    assert sorted(folder.rglob("*")) == before
    if instead != "gone":
        folder.rename(tmp_path / "other")
    away.rename(folder)
    assert Steps(engines_of(lake), asked, lambda: now, launched=now).shape.table == "t"
    add(lake, (2, 2))
    assert (numbers(lake), numbers(lake, until=until)) == ([1, 2], [1])


def test_a_folder_is_known_by_its_identity_on_every_store(place: Place) -> None:
    with opened(place) as lake:
        add(lake, (1, 1))
        folder = lake.folder
        identity, name = folder.identity(), folder.name(folder.IDENTITY)
        assert identity is not None
        folder.storage.remove(name)
        for reason in ("it has no file .svcctl", "another folder is in its place"):
            for attempt in (lake.check, lambda: add(lake, (2, 2)), lambda: lake.mark("t")):
                with pytest.raises(Unavailable, match=f"^cannot read the shared folder {folder.uri}: {reason}$"):
                    attempt()
            folder.storage.remove(name)
            folder.put_new(folder.IDENTITY, b"another")
        folder.storage.remove(name)
        assert folder.put_new(folder.IDENTITY, identity.encode())
        assert numbers(lake) == [1]


def test_a_folder_that_goes_away_during_a_read_or_a_commit_is_an_outage_and_nothing_of_another_one_is_remembered(
    lake: LakeTables, tmp_path: Path
) -> None:
    add(lake, (1, 1))
    add(lake, (2, 2))
    folder, away, other = (tmp_path / name for name in ("tables", "away", "other"))
    with new_lake(str(other)) as stranger:
        for n in range(3, 7):
            add(stranger, (n, n))
    storage = lake.folder.storage
    first = storage.size

    def size(name: str) -> int | None:
        """The other folder takes its place between the first look at it and the next."""
        if not away.exists():
            folder.rename(away)
            other.rename(folder)
        return first(name)

    for attempt in (lambda: lake.mark("t"), lambda: add(lake, (7, 7)), lambda: lake.drop("t")):
        storage.size = size  # type: ignore[method-assign]
        with pytest.raises(Unavailable, match=r"another folder is in its place$"):
            attempt()
        folder.rename(other)
        away.rename(folder)
        storage.size = first  # type: ignore[method-assign]
        assert numbers(lake) == [1, 2]
    with LakeTables(str(other), {}) as stranger:
        assert numbers(stranger) == [3, 4, 5, 6]


def test_a_folder_without_an_identity_is_no_shared_folder(tmp_path: Path) -> None:
    with LakeTables(str(tmp_path), {}) as lake:
        with pytest.raises(Unavailable, match=AWAY["empty"]):
            lake.tables()
        assert lake.folder.create()
        assert not lake.folder.create()
        assert lake.tables() == {}


@pytest.mark.parametrize("version", [0, 1])
def test_no_commit_follows_a_version_that_is_gone(lake: LakeTables, tmp_path: Path, version: int) -> None:
    for load in range(version + 1):
        add(lake, (load, load))
    log = lake.log("t")
    (tmp_path / "tables/t/_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(Unavailable, match=rf"^cannot write table 't': version {version} is no longer in .*/tables$"):
        log.commit(version, list, "WRITE")
    assert not log.has(version + 1)


def test_a_reader_does_not_advance_while_its_table_is_away(lake: LakeTables, tmp_path: Path) -> None:
    add(lake, (1, 1))
    asked = AskedQuery("from t select n", Range(FIRST.replace(tzinfo=UTC), None))
    moments = iter(FIRST.replace(tzinfo=UTC) + timedelta(days=day) for day in range(1, 9))
    steps = Steps(engines_of(lake), asked, lambda: next(moments), launched=FIRST.replace(tzinfo=UTC))
    step = steps.next(None, 0)
    assert steps.read_up_to(None) == 0  # the step is not read yet
    reached = steps.read_up_to(step)
    assert reached > 0
    (tmp_path / "tables").rename(tmp_path / "away")
    with pytest.raises(Unavailable):
        steps.next(step, 1)
    assert steps.read_up_to(step) == reached


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("log", "cannot read table 't': versions are missing in {table}/_delta_log"),
        (0, "cannot read table 't': {file} is damaged"),
        (200, "cannot read table 't': {file} is damaged"),
    ],
)
def test_damage_is_told_in_plain_words_and_is_no_outage(
    lake: LakeTables, tmp_path: Path, damage: str | int, message: str
) -> None:
    for hour in (1, 2, 3):
        add(lake, (hour, hour))
    table = tmp_path / "tables" / "t"
    file = min(table.rglob("*.parquet"))
    now = datetime(2024, 5, 6, tzinfo=UTC)
    asked = AskedQuery("from t select n", Range(FIRST.replace(tzinfo=UTC), now))
    if isinstance(damage, int):
        file.write_bytes(file.read_bytes()[:damage])
    else:
        (table / "_delta_log" / f"{1:020}.json").unlink()
    with opened(local(tmp_path)) as fresh, pytest.raises(ServiceError) as caught:
        steps = Steps(engines_of(fresh), asked, lambda: now, launched=now)
        with LakeReader(fresh).stream(steps.shape) as stream:
            list(stream)
    assert (caught.value.message, caught.value.code) == (message.format(table=table, file=file), 500)


SECOND_ROW = {
    "storageType": "i",
    "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000005c8Xg0rr91",
    "sizeInBytes": 34,
    "cardinality": 1,
}
"""A deletion vector: the second row of a file was deleted."""


@pytest.mark.parametrize(
    ("added", "table", "lacks"),
    [
        ({"stats": None}, {}, "statistics"),
        ({"stats": '{"numRecords": 2}'}, {}, "statistics"),
        ({"stats": '{"nullCount": {"eventdate": 0, "_load": 0}}'}, {}, "statistics"),
        (
            {"stats": '{"numRecords": 2, "nullCount": {"eventdate": 1, "_load": 2}}'},
            {},
            "eventdate",
        ),
        ({"deletionVector": SECOND_ROW}, {}, "vectors"),
        ({}, {"delta.columnMapping.mode": "name"}, "names"),
    ],
)
def test_a_table_that_another_tool_left_unreadable_is_refused(
    lake: LakeTables, added: Mapping[str, Any], table: Mapping[str, str], lacks: str
) -> None:
    add(lake, (1, 1), (2, 2))
    log = Path(lake.folder.uri, "t", "_delta_log")
    _, protocol, described, adds = map(json.loads, (log / f"{0:020}.json").read_text().splitlines())
    for kind in ("readerFeatures", "writerFeatures"):
        protocol["protocol"][kind] += ["deletionVectors", "columnMapping"]
    schema = json.loads(described["metaData"]["schemaString"])
    for number, field in enumerate(schema["fields"]):
        field["metadata"] |= {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": field["name"]}
    described["metaData"] |= {"schemaString": json.dumps(schema)}
    described["metaData"]["configuration"] |= table
    adds["add"] |= {"path": "part.parquet", **added}
    (log / f"{1:020}.json").write_text("\n".join(map(json.dumps, (protocol, described, adds))))
    with pytest.raises(ServiceError) as caught:
        lake.snapshot("t")
    assert lacks in caught.value.message
    assert caught.value.code == 500


def test_rows_that_another_tool_adds_are_in_no_load(lake: LakeTables) -> None:
    add(lake, (1, 1), (2, 2))
    first = lake.mark("t")
    add(lake, (3, 3))
    dates = pa.array([FIRST + timedelta(hours=1, microseconds=700)], pa.timestamp("us"))
    hidden = {name: pa.nulls(1, pa.int64()) for name in ("_load", "_row")}
    event = {"eventdate": dates, "n": [4], "ip": [ADDRESS], "day": [FIRST.date()]} | hidden
    deltalake.write_deltalake(f"{lake.folder.uri}/t", pa.table(event), mode="append")
    count = "from t group select count() as n"
    for files in (3, 1):
        assert len(lake.snapshot("t").files) == files
        assert (numbers(lake), numbers(lake, count), lake.events("t")) == ([1, 4, 2, 3], [4], 4)
        assert (numbers(lake, until=first), numbers(lake, count, until=first)) == ([1, 4, 2], [3])
        assert (numbers(lake, since=first), numbers(lake, count, since=first)) == ([3], [1])
        lake.compact("t")


def test_rows_between_two_milliseconds_are_in_one_part(tmp_path: Path) -> None:
    with opened(local(tmp_path), sorted_rows=1) as lake:
        add(lake, *((ms / 3_600_000, ms) for ms in range(10)))
        dates = pa.array([FIRST + timedelta(milliseconds=ms, microseconds=700) for ms in range(10)], pa.timestamp("us"))
        hidden = {name: pa.nulls(10, pa.int64()) for name in ("_load", "_row")}
        events = {"eventdate": dates, "n": range(10, 20), "ip": [ADDRESS] * 10, "day": [FIRST.date()] * 10}
        for row in range(10):
            one = pa.table(events | hidden).slice(row, 1)
            deltalake.write_deltalake(f"{lake.folder.uri}/t", one, mode="append")
        assert numbers(lake) == [n for ms in range(10) for n in (ms, ms + 10)]


@pytest.mark.parametrize("until", [False, True])
def test_marks_name_the_same_rows_after_compaction_until_the_log_forgets_them(lake: LakeTables, until: bool) -> None:
    marks: list[Mark] = []
    for hour in (3, 1, 2):
        add(lake, (hour, hour), (hour + 24, hour + 24))
        marks.append(lake.mark("t"))
    lake.compact("t")
    if until:
        assert [numbers(lake, until=mark) for mark in marks] == [[3, 27], [1, 3, 25, 27], [1, 2, 3, 25, 26, 27]]
    else:
        assert [numbers(lake, since=mark) for mark in marks] == [[1, 2, 25, 26], [2, 26], []]
    lake.checkpoint("t")
    for version in range(3):
        Path(lake.folder.uri, "t", "_delta_log", f"{version:020}.json").unlink()
    other = LakeTables(lake.folder.uri, {})
    with other, pytest.raises(ServiceError, match="no longer has version 1"):
        numbers(other, since=None if until else marks[0], until=marks[0] if until else None)


def test_rows_of_some_loads_come_in_order_from_files_that_have_others_beside_them(lake: LakeTables) -> None:
    marks = []
    for day in range(6):
        for load in range(4):
            add(lake, *((24 * day + load, 100 * (4 * day + load) + n) for n in range(100)))
            marks.append(lake.mark("t"))
    lake.compact("t")
    assert len(lake.snapshot("t").files) == 6
    assert numbers(lake, since=marks[1], until=marks[21]) == list(range(200, 2200))
    assert numbers(lake, until=marks[13]) == list(range(1400))


def test_a_query_on_a_table_that_was_moved_ends_with_the_reason(lake: LakeTables) -> None:
    add(lake, (1, 1))
    with closing(DuckDBEngine()) as own:
        engines = Engines(Engine(own, own), Engine(lake, LakeReader(lake)))
        for shared in (False, True):
            mark = engines.of("t").stored.mark("t")
            assert engines.move("t", shared=shared) == 1
            with pytest.raises(ServiceError) as caught:
                engines.of("t").stored.check_mark("t", mark)
            assert caught.value.message == (
                "table 't' was moved, so the query cannot continue; a new query or job reads its events where it is now"
            )
