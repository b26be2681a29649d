"""The services of a shared state have one shared folder, whatever its address."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from peers.postgresql import PASSWORD, PostgreSQLPeer
from support.places import Place, hdfs, local, s3

from svcctl.errors import Unavailable, UsageError
from svcctl.service.databases.postgresql import PostgreSQL
from svcctl.service.engines.lake.folder import Folder
from svcctl.service.events.same_folder import require_same
from svcctl.service.store import Store

STORES: Mapping[str, Callable[[Any], Place]] = {"tmp_path": local, "ceph_peer": s3, "hdfs_peer": hdfs}


@pytest.fixture
def state(postgresql_peer: PostgreSQLPeer) -> Iterator[Store]:
    with closing(Store(PostgreSQL(postgresql_peer.fresh_database(), password=PASSWORD))) as store:
        yield store


def test_a_service_with_another_folder_than_that_of_the_state_does_not_start(state: Store, tmp_path: Path) -> None:
    first, other = (Folder(str(tmp_path / name), {}) for name in ("first", "other"))
    require_same(state, None)
    require_same(state, first)
    require_same(state, first)
    identity = (tmp_path / "first" / ".svcctl").read_text()
    (tmp_path / "other").mkdir()
    belongs = f"the state is that of services with the shared folder {first.uri}"
    for folder, message, hint in (
        (None, f"{belongs}, and this one has none", f"start it with --tables {first.uri}"),
        (
            other,
            f"{belongs}, and {other.uri} is another one",
            f"start it with --tables {first.uri}; for {other.uri} to take its place, its file .svcctl must hold"
            f" {identity}",
        ),
    ):
        with pytest.raises(UsageError) as caught:
            require_same(state, folder)
        assert (caught.value.message, caught.value.hint) == (message, hint)
    shutil.move(tmp_path / "first", tmp_path / "moved")
    with pytest.raises(Unavailable, match=r"it is not there$"):
        require_same(state, first)
    require_same(state, moved := Folder(str(tmp_path / "moved"), {}))
    with pytest.raises(UsageError) as caught:
        require_same(state, None)
    assert caught.value.hint == f"start it with --tables {moved.uri}"


@pytest.fixture(params=["tmp_path", "ceph_peer", "hdfs_peer"])
def place(request: pytest.FixtureRequest) -> Place:
    return STORES[request.param](request.getfixturevalue(request.param))


def test_services_that_start_at_once_give_a_folder_one_identity_on_every_store(state: Store, place: Place) -> None:
    def folder(name: str = "tables") -> Folder:
        return Folder(f"{place.target}/{name}", place.environment)

    folder().make()
    assert folder().identity() is None
    with ThreadPoolExecutor(4) as services:
        [identity] = set(services.map(Folder.identify, (folder() for _ in range(4))))
    assert (folder().identity(), folder().names()) == (identity, [])
    assert [name.rpartition("tables/")[2] for name in place.everything()] == [".svcctl"]
    require_same(state, folder())
    require_same(state, folder("tables/"))
    other = folder("other")
    other.make()
    with pytest.raises(UsageError) as caught:
        require_same(state, other)
    assert caught.value.message == (
        f"the state is that of services with the shared folder {folder().uri}, and {other.uri} is another one"
    )
    with other.writing():
        assert other.put_new(Folder.IDENTITY, identity.encode())
    require_same(state, other)
    with pytest.raises(UsageError) as caught:
        require_same(state, None)
    assert caught.value.hint == f"start it with --tables {other.uri}"


def test_the_state_of_one_service_belongs_to_no_folder(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "state.db")) as store:
        require_same(store, Folder(str(tmp_path / "tables"), {}))
        require_same(store, None)
    assert not (tmp_path / "tables").exists()
