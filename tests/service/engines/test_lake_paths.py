"""A shared folder works, or is refused before anything is stored: no load is lost, and no other folder is read."""

from __future__ import annotations

import shutil
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from peers.hdfs import HdfsPeer
from peers.s3 import S3Peer
from support.engines import new_lake
from support.events import store
from support.places import Place, hdfs, local, s3
from support.spark import shared

from svcctl.errors import UsageError
from svcctl.service import rendering
from svcctl.service.engines import Reader
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.engines.duckdb.lake_reader import LakeReader
from svcctl.service.engines.lake.folder import Folder
from svcctl.service.engines.lake.shared_tables import LakeTables
from svcctl.service.engines.lake.upkeep import vacuum
from svcctl.service.engines.spark import Server, SparkConnection, SparkReader
from svcctl.service.language import Column, Type, compile, parse

COLUMNS = (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8))
FIRST = datetime(2024, 1, 1)
EVERYWHERE = ["t~x", "it's", "a;b", "a&b", "a+b", "a=b", "a,b", "$a", "!a", "a|b", "a^b", "a@b", "(a)"]
"""Names of folders that can be used in each kind of place."""
NOT_IN_HDFS = ["a b", " a", "a ", "é", "e\u0301", "日本", 'a"b', "a`b", "a<b", "a>b"]
ON_DISK = ["a#b", "a:b"]
REFUSED = {
    "job%2Fmain": "'%'",
    "a%20b": "'%'",
    "per%cent": "'%'",
    "100%": "'%'",
    "a?b": "'?'",
    "a*": "'*'",
    "a[1]": "'['",
    "a]": "']'",
    "{a}": "'{'",
    "a\\b": "'\\'",
    "a\nb": "a control character",
    "a\tb": "a control character",
    "a\x7fb": "a control character",
}
"""Names that are refused everywhere, with what the error names."""


def numbers(lake: LakeTables, reader: Reader) -> list[int]:
    start, now = datetime(2023, 1, 1, tzinfo=UTC), datetime(2024, 5, 6, tzinfo=UTC)
    plan = compile(parse("from t select n"), lake.tables(), dialect=reader.dialect, start=start, end=None, now=now)
    with rendering.stream(reader, plan, ["c0"]) as stream:
        return [value for batch in stream for value in batch.column(0).to_pylist()]


def works(target: str, place: Place) -> None:
    """Store, read, merge and remove files, and read the table from another process's point of view."""
    with new_lake(target, place.environment) as lake:
        for n in (1, 2):
            store(lake, "t", COLUMNS, [(FIRST + timedelta(hours=n), n)])
        assert numbers(lake, LakeReader(lake)) == [1, 2]
        assert lake.compact("t") == (2, 1)
        lake.checkpoint("t")
        assert vacuum(lake, "t", timedelta(0)) == 2
    with LakeTables(target, place.environment) as lake:
        assert numbers(lake, LakeReader(lake)) == [1, 2]


def refusal(target: str, place: Place) -> str:
    with pytest.raises(UsageError) as caught:
        new_lake(target, place.environment)
    assert caught.value.hint == "paths of ASCII letters, digits and /._- always work"
    return caught.value.message


@pytest.mark.parametrize("name", [*EVERYWHERE, *NOT_IN_HDFS, *ON_DISK])
def test_a_folder_on_disk_with_an_unusual_name_is_read_and_written(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    works(str(tmp_path / name / "tables"), local(tmp_path))


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_a_library_takes_for_another_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    path = tmp_path / name / "tables"
    assert refusal(str(path), local(tmp_path)) == (
        f"the shared folder {path} cannot be used: the storage library misreads {REFUSED[name]} in {path}"
    )
    assert list((tmp_path / name).iterdir()) == []


def test_bytes_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    path = f"{tmp_path}/caf\udce9"
    assert refusal(path, local(tmp_path)) == f"the shared folder {path} cannot be used: {path} is not UTF-8"


@pytest.mark.parametrize("name", REFUSED)
def test_a_link_to_such_a_folder_is_refused(tmp_path: Path, name: str) -> None:
    """The libraries follow it, so that they misread what it names."""
    (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(name)
    message = refusal(str(tmp_path / "link"), local(tmp_path))
    assert message.startswith(f"the shared folder {tmp_path}/link cannot be used: the storage library misreads ")


@pytest.mark.parametrize("name", ["a#b", "a//b", "a/../b", "a/./b", "..", *REFUSED])
@pytest.mark.parametrize("url", ["s3://bucket/{name}/tables", "s3://bucket/{name}", "hdfs://[::1]:9000/{name}"])
def test_what_urls_misread_is_refused_before_anything_is_asked(name: str, url: str) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
    with pytest.raises(UsageError, match="the storage library misreads "):
        Folder(url.format(name=name), keys)


@pytest.mark.parametrize(
    "url", ["s3://bucket/a b/", "s3://bucket/é", "s3://b/.a/..b/a..", "hdfs://[::1]:9000/a", "hdfs://host:9000/a,b"]
)
def test_other_urls_are_not(url: str) -> None:
    Folder(url, {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"})


def test_a_neighbour_is_never_read(tmp_path: Path) -> None:
    """A copy of a folder has files of the same names."""
    for name in ("a b", "a ", "a+b", *ON_DISK):
        with new_lake(str(tmp_path / name)) as lake:
            store(lake, "t", COLUMNS, [(FIRST, 1)])
            for other in (name.replace(name[-1], "x"), name.replace(name[0], "x"), name.strip(), name[:1]):
                if not (tmp_path / other).exists():
                    shutil.copytree(tmp_path / name, tmp_path / other)
            assert numbers(lake, LakeReader(lake)) == [1]
        for path in tmp_path.iterdir():
            shutil.rmtree(path)


@pytest.mark.parametrize("name", [*EVERYWHERE, *NOT_IN_HDFS])
def test_a_folder_in_s3_with_an_unusual_name_is_read_and_written(ceph_peer: S3Peer, name: str) -> None:
    place = s3(ceph_peer)
    works(f"{place.target}/{name}/tables", place)


@pytest.mark.parametrize("name", EVERYWHERE)
def test_a_folder_in_hdfs_with_an_unusual_name_is_read_and_written(hdfs_peer: HdfsPeer, name: str) -> None:
    place = hdfs(hdfs_peer)
    works(f"{place.target}/{name}/tables", place)


@pytest.mark.parametrize("name", NOT_IN_HDFS)
def test_hdfs_does_not_take_what_a_url_escapes(hdfs_peer: HdfsPeer, name: str) -> None:
    place = hdfs(hdfs_peer)
    assert "the storage library misreads " in refusal(f"{place.target}/{name}/tables", place)


@pytest.mark.slow
@pytest.mark.parametrize("spilled_rows", [1, 1_000_000])
@pytest.mark.parametrize("server", ["sail", "spark"])
def test_spark_reads_folders_with_unusual_names(tmp_path: Path, server: str, spilled_rows: int) -> None:
    with ExitStack() as stack:
        connection = SparkConnection(Server(shared(server)))
        for name in (*EVERYWHERE, *NOT_IN_HDFS, *ON_DISK):
            lake = stack.enter_context(new_lake(str(tmp_path / name)))
            store(lake, "t", COLUMNS, [(FIRST, 1)])
            reader = stack.enter_context(closing(SparkReader(lake, connection, spilled_rows=spilled_rows)))
            assert numbers(lake, reader) == [1], name


@pytest.mark.parametrize(("name", "character"), [("a?b", "'?'"), ("a\\b", "'\\'")])
def test_a_file_of_events_whose_path_duckdb_misreads_is_refused(tmp_path: Path, name: str, character: str) -> None:
    path = tmp_path / name / "events.duckdb"
    (tmp_path / "a" / "b").mkdir(parents=True)
    with pytest.raises(UsageError) as caught:
        DuckDBEngine(path)
    assert (caught.value.message, caught.value.hint) == (
        f"the events file {path} cannot be used: the storage library misreads {character} in {path}",
        "set SVCCTL_DATA to another directory: paths of ASCII letters, digits and /._- always work",
    )
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "b"]


def test_a_file_of_events_whose_path_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not UTF-8"):
        DuckDBEngine(tmp_path / "caf\udce9" / "events.duckdb")


@pytest.mark.parametrize(
    "name", [*EVERYWHERE, *NOT_IN_HDFS, *ON_DISK, "per%cent", "a%20b", "a[1]", "{a}", "a*", "a\nb"]
)
def test_a_file_of_events_with_an_unusual_name_keeps_its_tables(tmp_path: Path, name: str) -> None:
    path = tmp_path / name / "events.duckdb"
    with DuckDBEngine(path) as engine:
        store(engine, "t", COLUMNS, [(FIRST, 1)])
    with DuckDBEngine(path) as engine:
        assert engine.events("t") == 1
    assert path.is_file()
