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
from svcctl.service.engines.lake.folder import Folder
from svcctl.service.state.folder_identity import join
from svcctl.service.state.postgresql import PostgreSQL
from svcctl.service.state.store import Store

STORES: Mapping[str, Callable[[Any], Place]] = {"tmp_path": local, "ceph_peer": s3, "hdfs_peer": hdfs}


@pytest.fixture
def state(postgresql_peer: PostgreSQLPeer) -> Iterator[Store]:
    with closing(Store(PostgreSQL(postgresql_peer.fresh_database(), password=PASSWORD))) as store:
        yield store


def test_a_service_with_another_folder_than_that_of_the_state_does_not_start(state: Store, tmp_path: Path) -> None:
    first, other = (Folder(str(tmp_path / name), {}) for name in ("first", "other"))
    join(state, None)
    with pytest.raises(Unavailable):
        join(state, first)
    join(state, first, create=True)
    join(state, first, create=True)
    join(state, first)
    identity = (tmp_path / "first" / ".svcctl").read_text()
    other.create()
    belongs = f"the state belongs to services with the shared folder {first.uri}"
    for folder, kind, message, hint in (
        (None, UsageError, f"{belongs}, but this service has no shared folder", f"start it with --tables {first.uri}"),
        (
            other,
            Unavailable,
            f"{belongs}, but {other.uri} is another folder",
            f"start it with --tables {first.uri}; to use {other.uri} in its place, write {identity} into its"
            " file .svcctl",
        ),
    ):
        with pytest.raises(kind) as caught:
            join(state, folder, create=True)
        assert (caught.value.message, caught.value.hint) == (message, hint)
    shutil.move(tmp_path / "first", tmp_path / "moved")
    with pytest.raises(Unavailable, match=r"it does not exist$"):
        join(state, first, create=True)
    assert not (tmp_path / "first").exists()
    join(state, moved := Folder(str(tmp_path / "moved"), {}))
    with pytest.raises(UsageError) as caught:
        join(state, None)
    assert moved.uri in (caught.value.hint or "")


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest) -> Place:
    return STORES[request.param](request.getfixturevalue(request.param))


def test_services_that_start_at_once_give_a_folder_one_identity_on_every_store(state: Store, place: Place) -> None:
    def folder(name: str = "tables") -> Folder:
        return Folder(f"{place.target}/{name}", place.environment)

    with ThreadPoolExecutor(4) as services:
        made = list(services.map(Folder.create, (folder() for _ in range(4))))
    assert made.count(True) == 1
    identity = folder().identity()
    assert folder().names() == []
    assert [name.rpartition("tables/")[2] for name in place.everything()] == [".svcctl"]
    join(state, folder())
    join(state, folder("tables/"))
    other = folder("other")
    other.create()
    with pytest.raises(Unavailable) as caught:
        join(state, other)
    assert f"{other.uri} is another folder" in caught.value.message
    other.storage.remove(other.name(Folder.IDENTITY))
    assert identity is not None
    assert other.put_new(Folder.IDENTITY, identity.encode())
    join(state, folder("other"))
    with pytest.raises(UsageError) as refused:
        join(state, None)
    assert other.uri in (refused.value.hint or "")


def test_the_state_of_one_service_may_get_another_folder_at_another_address_and_at_no_other(tmp_path: Path) -> None:
    def folder(name: str) -> Folder:
        return Folder(str(tmp_path / name), {})

    with closing(Store(tmp_path / "state.db")) as store:
        assert join(store, None) is None
        assert join(store, folder("one"), create=True) == "none"
        assert join(store, folder("one")) is None
        (tmp_path / "one").rename(tmp_path / "away")
        for instead in ("it does not exist", "it has no file .svcctl"):
            with pytest.raises(Unavailable, match=f"{instead}$"):
                join(store, folder("one"), create=True)
            (tmp_path / "one").mkdir(exist_ok=True)
        folder("one").create()
        with pytest.raises(Unavailable, match=r"one is another folder$"):
            join(store, folder("one"))
        assert join(store, folder("away")) == str(tmp_path / "one")
        assert join(store, None) == str(tmp_path / "away")
