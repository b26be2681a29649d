"""The services of a shared state have one shared folder, whatever its address."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from peers.postgresql import PASSWORD, PostgreSQLPeer

from svcctl.errors import Unavailable, UsageError
from svcctl.service.databases.postgresql import PostgreSQL
from svcctl.service.engines.lake.folder import Folder
from svcctl.service.events.same_folder import require_same
from svcctl.service.store import Store


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


def test_the_state_of_one_service_belongs_to_no_folder(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "state.db")) as store:
        require_same(store, Folder(str(tmp_path / "tables"), {}))
        require_same(store, None)
    assert not (tmp_path / "tables").exists()
