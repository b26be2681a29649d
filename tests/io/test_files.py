"""Files appear whole or not at all, and a lock has one holder."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from svcctl.errors import Locked
from svcctl.io.files import PartFile, derived_name, is_locked, lock, sync_directory, write


def test_a_written_file_replaces_the_old_one_and_leaves_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "state.json"
    write(target, b"old")
    write(target, b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("state.json", b"new")]


def test_a_private_file_is_private_even_where_a_part_that_was_not_lies_around(tmp_path: Path) -> None:
    (tmp_path / "key.part").write_bytes(b"left behind")
    (tmp_path / "key").touch(mode=0o644)
    write(tmp_path / "key", b"secret", private=True)
    assert (tmp_path / "key").read_bytes() == b"secret"
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_without_overwrite_the_file_that_exists_stays(tmp_path: Path) -> None:
    target = tmp_path / "credentials.json"
    target.write_bytes(b"theirs")
    with pytest.raises(FileExistsError):
        write(target, b"mine", overwrite=False)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("credentials.json", b"theirs")]


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_writer_that_was_killed_before_it_removed_its_part_has_written_the_file(
    tmp_path: Path, overwrite: bool
) -> None:
    target = tmp_path / "credentials.json"
    target.write_bytes(b"theirs")
    (tmp_path / "credentials.json.part").hardlink_to(target)
    with target.open("rb") as reader:
        if overwrite:
            write(target, b"mine")
        else:
            with pytest.raises(FileExistsError):
                write(target, b"mine", overwrite=False)
        assert reader.read() == b"theirs"
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [
        ("credentials.json", b"mine" if overwrite else b"theirs")
    ]


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_link_stays_and_the_file_that_it_names_is_written(tmp_path: Path, overwrite: bool) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "real.csv").symlink_to("data.csv")
    link = tmp_path / "latest.csv"
    link.symlink_to("far/real.csv")
    if overwrite:
        (tmp_path / "far" / "data.csv").write_bytes(b"old")
    with PartFile(link) as part:
        part.write(b"new")
        assert (tmp_path / "far" / "data.csv.part").read_bytes() == b"new"
        part.publish(overwrite=overwrite)
    assert [(str(path.readlink()), path.read_bytes()) for path in (link, tmp_path / "far" / "real.csv")] == [
        ("far/real.csv", b"new"),
        ("data.csv", b"new"),
    ]
    assert sorted(path.name for path in (tmp_path / "far").iterdir()) == ["data.csv", "real.csv"]
    with pytest.raises(FileExistsError):
        write(link, b"mine", overwrite=False)


def test_a_pipe_is_never_replaced_nor_a_link_to_itself(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        PartFile(loop)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is not a regular file"):
        PartFile(tmp_path / "pipe")


def test_a_part_that_is_not_published_disappears(tmp_path: Path) -> None:
    with PartFile(tmp_path / "rows.csv") as part:
        part.write(b"half")
        assert (tmp_path / "rows.csv.part").read_bytes() == b"half"
    assert list(tmp_path.iterdir()) == []


def test_a_second_writer_is_refused_or_waits_for_the_first(tmp_path: Path) -> None:
    target = tmp_path / "config.yaml"
    with PartFile(target) as part:
        part.write(b"first")
        with pytest.raises(Locked) as caught:
            PartFile(target)
        assert caught.value.message == f"another run is writing {target}"
        waiting = threading.Thread(target=write, args=(target, b"second"))
        waiting.start()
        part.publish()
    waiting.join()
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("config.yaml", b"second")]


def test_a_second_writer_may_take_the_file_over_and_the_first_cannot_publish_it(tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    with PartFile(target, take=True) as first:
        first.write(b"first")
        with PartFile(target, take=True) as second:
            second.write(b"second")
            with pytest.raises(OSError, match=r"another program removed or replaced rows\.csv\.part meanwhile"):
                first.publish()
            second.publish()
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("rows.csv", b"second")]


def test_many_writers_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    target = tmp_path / "config.yaml"
    contents = [bytes([65 + number]) * 100_000 for number in range(8)]
    threads = [threading.Thread(target=write, args=(target, content)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert target.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_system_without_the_sync_of_directories_is_used_as_it_is(tmp_path: Path) -> None:
    sync_directory(tmp_path)
    sync_directory(Path("/proc"))  # fsync(2) has the error EINVAL here
    with pytest.raises(FileNotFoundError):
        sync_directory(tmp_path / "none")


def test_a_file_that_cannot_be_made_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "none" / "file", b"x")


def test_a_lock_has_one_holder_and_ends_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "service.lock"
    assert not is_locked(path)
    script = (
        "import sys; from pathlib import Path; from svcctl.io.files import lock\n"
        f"lock(Path({str(path)!r}), 'busy'); print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    assert is_locked(path)
    with pytest.raises(Locked) as caught:
        lock(path, "the service already runs")
    assert caught.value.message == "the service already runs"
    holder.communicate()
    assert not is_locked(path)
    os.close(lock(path, "busy"))


@pytest.mark.parametrize("size", range(249, 256))
@pytest.mark.parametrize("letter", ["n", "é", "漢", "\udce9"])
def test_a_name_of_the_longest_size_has_a_part_that_a_rerun_finds(tmp_path: Path, size: int, letter: str) -> None:
    width = len(os.fsencode(letter))
    name = letter * ((size - 4) // width) + "x" * ((size - 4) % width) + ".csv"
    assert len(os.fsencode(name)) == size
    with PartFile(tmp_path / name, growing=tmp_path / "kept") as part:
        part.publish()
    (tmp_path / name).unlink()
    part_names: set[str] = set()
    for _ in range(2):
        with PartFile(tmp_path / name) as part:
            part_names.update(path.name for path in tmp_path.iterdir())
            with pytest.raises(Locked):
                PartFile(tmp_path / name)
            part.write(b"rows")
    (part_name,) = part_names
    assert (part_name == f"{name}.part") == (size <= 250)
    assert part_name.endswith(".part")
    assert len(os.fsencode(part_name)) <= 255
    (tmp_path / part_name).write_bytes(b"of a killed run")
    write(tmp_path / name, b"rows")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(name, b"rows")]


def test_long_names_that_differ_at_their_end_have_parts_of_their_own(tmp_path: Path) -> None:
    first, second = (tmp_path / ("n" * 254 + end) for end in "ab")
    with PartFile(first) as one, PartFile(second) as other:
        one.write(b"first")
        other.write(b"second")
        one.publish()
        other.publish()
    assert (first.read_bytes(), second.read_bytes()) == (b"first", b"second")


def test_a_shortened_name_is_the_same_in_every_version() -> None:
    """Else a newer program would not find the parts of an older one."""
    assert derived_name("a" * 255, prefix=".", suffix=".export") == ("." + "a" * 230 + ".b0f3323e7a3cad8a.export")
