"""The service's Unix socket: whether clients reach it at its path."""

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from svcctl.errors import UsageError
from svcctl.io import unix_sockets
from svcctl.service.listeners import UnixListener


def replaced_by_a_file(path: Path) -> None:
    path.unlink()
    path.write_text("")


def replaced_by_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def linked_back(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


def listened_at_by_another(path: Path) -> None:
    unix_sockets.listen(path).close()


CHANGES: dict[str, tuple[Callable[[Path], object], bool]] = {
    "nothing": (lambda path: None, True),
    "deleted": (Path.unlink, False),
    "replaced by a file": (replaced_by_a_file, False),
    "replaced by a directory": (replaced_by_a_directory, False),
    "replaced by another socket": (listened_at_by_another, False),
    "moved": (lambda path: path.rename(path.with_name("moved")), False),
    "moved and linked": (linked_back, True),
    "its directory deleted": (lambda path: shutil.rmtree(path.parent), False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_socket_knows_whether_it_can_be_found(tmp_path: Path, change: str) -> None:
    path = tmp_path / "data" / "service.sock"
    path.parent.mkdir()
    act, found = CHANGES[change]
    with closing(UnixListener(path)) as listener:
        act(path)
        assert listener.is_found() == found


@pytest.mark.parametrize("change", ["deleted", "replaced by a file", "replaced by another socket", "moved"])
def test_a_lost_socket_is_made_again(tmp_path: Path, change: str) -> None:
    path = tmp_path / "service.sock"
    with closing(UnixListener(path)) as listener, listener.socket:
        CHANGES[change][0](path)
        listener.listen()
        assert listener.is_found()
        unix_sockets.connect(path, 5).close()


def test_a_socket_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    path = tmp_path / "service.sock"
    path.mkdir()
    with pytest.raises(UsageError, match=f"cannot listen on {path}: Is a directory"):
        UnixListener(path)
