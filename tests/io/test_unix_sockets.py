"""Unix sockets at paths of any length, and which process listens."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from svcctl.io import unix_sockets


def open_descriptors() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


@pytest.mark.parametrize("length", [80, unix_sockets.MAX_PATH_BYTES, unix_sockets.MAX_PATH_BYTES + 1, 108, 250, 2000])
def test_a_socket_is_at_its_path_and_found_there_whatever_its_length(tmp_path: Path, length: int) -> None:
    path = tmp_path
    while (rest := length - len(os.fsencode(path)) - len("/é/s")) > 0:
        path /= "x" * min(rest, 200)
    path /= "é"
    path.mkdir(parents=True)
    path /= "s"
    before = open_descriptors()
    with unix_sockets.listen(path) as listener:
        assert stat.S_ISSOCK(path.stat().st_mode)
        assert path.stat().st_mode & 0o777 == 0o600
        with unix_sockets.connect(path, 5) as connection, listener.accept()[0] as accepted:
            connection.sendall(b"hello")
            assert accepted.recv(5) == b"hello"
    assert open_descriptors() == before


@pytest.mark.parametrize("directory", ["d", "d" * 200])
def test_nothing_listens_where_there_is_no_socket(tmp_path: Path, directory: str) -> None:
    path = tmp_path / directory / "service.sock"
    with pytest.raises(FileNotFoundError):
        unix_sockets.connect(path, 5)
    path.parent.mkdir()
    with pytest.raises(FileNotFoundError):
        unix_sockets.connect(path, 5)


def test_a_file_at_the_path_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("a file")
    with unix_sockets.listen(path), unix_sockets.connect(path, 5):
        pass


def test_the_peer_is_the_process_that_listens(tmp_path: Path) -> None:
    with unix_sockets.listen(tmp_path / "own"), unix_sockets.connect(tmp_path / "own", 5) as connection:
        assert unix_sockets.peer_process(connection) == os.getpid()
    script = (
        "import sys; from pathlib import Path; from svcctl.io import unix_sockets\n"
        "listener = unix_sockets.listen(Path(sys.argv[1])); print('listens', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "other")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"listens\n"
        with unix_sockets.connect(tmp_path / "other", 5) as connection:
            assert unix_sockets.peer_process(connection) == process.pid
