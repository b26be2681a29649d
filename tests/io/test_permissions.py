"""A file that replaces another has its permissions, and opens them to nobody."""

from __future__ import annotations

import os
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from itertools import product
from pathlib import Path

import pytest
from support.users import as_root, user

from svcctl.io.files import PartFile, write
from svcctl.io.permissions import mode_for_replacement

UMASK = 0o022
ANN, BOB = 4001, 4002
STAFF, TEAM = 4101, 4102
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="access control lists are read and set on Linux only")


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(UMASK)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def owners(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_uid, status.st_gid


def made(path: Path, mode: int, owner: int = -1, group: int = -1) -> Path:
    path.write_bytes(b"old")
    os.chown(path, owner, group)
    path.chmod(mode)
    return path


@contextmanager
def shared(folder: Path) -> Iterator[None]:
    """A directory in which everybody writes, and whose parents may be closed to them."""
    folder.chmod(0o777)
    with chdir(folder):
        yield


@pytest.mark.parametrize(
    "before", [0o600, 0o640, 0o644, 0o664, 0o666, 0o755, 0o400, 0o444, 0o000, 0o4755, 0o2755, 0o604]
)
def test_a_replaced_file_keeps_its_mode_and_its_part_never_has_more(tmp_path: Path, before: int) -> None:
    target = made(tmp_path / "rows.csv", before)
    with PartFile(target) as part:
        for _ in range(2):
            assert mode(tmp_path / "rows.csv.part") & ~before == 0
            part.write(b"new")
        part.publish()
    assert (mode(target), target.read_bytes()) == (before, b"newnew")


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077, 0o002])
def test_a_new_file_follows_the_umask(tmp_path: Path, umask: int) -> None:
    os.umask(umask)
    with PartFile(tmp_path / "rows.csv") as part:
        assert mode(tmp_path / "rows.csv.part") == 0o666 & ~umask
        part.publish()
    assert mode(tmp_path / "rows.csv") == 0o666 & ~umask


def test_a_link_keeps_the_mode_of_the_file_that_it_names(tmp_path: Path) -> None:
    made(tmp_path / "data.csv", 0o600)
    (tmp_path / "latest.csv").symlink_to("data.csv")
    write(tmp_path / "latest.csv", b"new")
    assert (mode(tmp_path / "data.csv"), (tmp_path / "latest.csv").is_symlink()) == (0o600, True)


@pytest.mark.parametrize(("before", "after"), [(None, 0o600), (0o644, 0o600), (0o600, 0o600), (0o400, 0o400)])
def test_a_private_file_is_for_its_owner_only(tmp_path: Path, before: int | None, after: int) -> None:
    path = tmp_path / "config.yaml"
    if before is not None:
        made(path, before)
    write(path, b"secret", private=True)
    assert mode(path) == after


def test_the_mode_at_the_end_counts_if_it_changes_while_the_file_is_written(tmp_path: Path) -> None:
    target = made(tmp_path / "rows.csv", 0o644)
    with PartFile(target) as part:
        target.chmod(0o600)
        part.publish()
    assert mode(target) == 0o600
    target.chmod(0o640)
    with PartFile(target) as part:
        target.unlink()
        part.publish()
    assert mode(target) == 0o640


def test_a_part_that_a_killed_writer_left_is_neither_written_nor_followed(tmp_path: Path) -> None:
    target = made(tmp_path / "rows.csv", 0o600)
    left = made(tmp_path / "rows.csv.part", 0o666)
    with left.open("rb") as reader:
        write(target, b"secret")
        assert reader.read() == b"old"
    theirs = made(tmp_path / "theirs", 0o644)
    left.symlink_to(theirs)
    write(target, b"secret")
    os.mkfifo(left)
    write(target, b"secret")
    assert (theirs.read_bytes(), target.read_bytes(), mode(target)) == (b"old", b"secret", 0o600)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.csv", "theirs"]


def test_a_kept_part_is_restricted_when_it_is_resumed(tmp_path: Path) -> None:
    target, kept = made(tmp_path / "rows.csv", 0o640), made(tmp_path / "growing", 0o666)
    with PartFile(target, growing=kept) as part:
        assert (mode(kept), part.size) == (0o640, 3)
        part.write(b"new")
        part.publish()
    assert (mode(target), target.read_bytes()) == (0o640, b"oldnew")


def test_a_part_of_another_file_has_the_permissions_of_that_file(tmp_path: Path) -> None:
    made(tmp_path / "all.csv", 0o600)
    with PartFile(tmp_path / "part.csv", like=tmp_path / "all.csv") as part:
        assert mode(tmp_path / "part.csv.part") == 0o600
        part.publish()
    assert mode(tmp_path / "part.csv") == 0o600


@as_root
@pytest.mark.parametrize("before", [0o600, 0o640, 0o4750, 0o6755, 0o400, 0o060])
def test_root_gives_the_new_file_to_the_owner_and_group_of_the_old(tmp_path: Path, before: int) -> None:
    target = made(tmp_path / "rows.csv", before, BOB, TEAM)
    with PartFile(target) as part:
        assert (owners(tmp_path / "rows.csv.part"), mode(tmp_path / "rows.csv.part")) == ((BOB, TEAM), before & 0o777)
        part.write(b"new")
        part.publish()
    assert (owners(target), mode(target)) == ((BOB, TEAM), before)


@as_root
@pytest.mark.parametrize("private", [True, False])
def test_a_user_resumes_and_replaces_parts_of_a_file_that_is_read_only(tmp_path: Path, private: bool) -> None:
    with shared(tmp_path):
        for before in (0o400, 0o000, 0o200):
            target, left = made(Path("rows.csv"), before, ANN, STAFF), made(Path("rows.csv.part"), before, ANN, STAFF)
            with user(ANN, STAFF):
                write(target, b"new", private=private)
            assert (mode(target), target.read_bytes()) == (before, b"new")
            kept = made(Path("growing"), before, ANN, STAFF)
            with user(ANN, STAFF), PartFile(target, growing=kept) as part:
                assert mode(kept) == before
                part.write(b"new")
                part.publish()
            assert (mode(target), target.read_bytes(), left.exists()) == (before, b"oldnew", False)


@as_root
@pytest.mark.parametrize(
    ("before", "groups", "owner", "group", "after"),
    [
        (0o600, [], BOB, TEAM, 0o600),
        (0o640, [], BOB, TEAM, 0o600),  # readable to her own group otherwise
        (0o644, [], BOB, TEAM, 0o644),
        (0o604, [], BOB, TEAM, 0o600),  # the team may not read, and counts as others now
        (0o664, [], BOB, TEAM, 0o644),
        (0o660, [TEAM], BOB, TEAM, 0o660),
        (0o6770, [TEAM], BOB, TEAM, 0o2770),
        (0o6775, [], BOB, TEAM, 0o755),
        (0o2750, [], ANN, TEAM, 0o700),
        (0o4750, [], ANN, STAFF, 0o4750),
        (0o640, [TEAM], ANN, TEAM, 0o640),
        (0o477, [], BOB, STAFF, 0o444),  # the former owner may not write
    ],
)
def test_what_an_owner_or_a_group_that_cannot_be_kept_would_open_is_dropped(
    tmp_path: Path, before: int, groups: list[int], owner: int, group: int, after: int
) -> None:
    with shared(tmp_path):
        target, part_path = made(Path("rows.csv"), before, owner, group), Path("rows.csv.part")
        with user(ANN, STAFF, groups), PartFile(target) as part:
            assert mode(part_path) & ~after == 0
            part.write(b"new")
            part.publish()
        assert (owners(target), mode(target)) == ((ANN, group if group in groups else STAFF), after)


def test_whatever_is_lost_nobody_gets_a_permission() -> None:
    """The classes are owner, group and others; the second writer is in neither class of the first."""
    for before, owner_kept, group_kept in product(range(0o1000), (True, False), (True, False)):
        owner, group, others = before >> 6 & 7, before >> 3 & 7, before & 7
        after = mode_for_replacement(before, owner_kept=owner_kept, group_kept=group_kept)
        assert after >> 6 == owner
        assert after >> 3 & 7 & ~(group if group_kept else others) == 0
        assert after & 7 & ~(others if group_kept else group & others) == 0
        if not owner_kept:
            assert after & 0o77 & ~(owner << 3 | owner) == 0


def acl(*entries: tuple[int, int, int]) -> bytes:
    """An access control list in the kernel's form: entries of tag, permissions and ID."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


NOBODY = 0xFFFFFFFF
FOR_BOB = acl((1, 6, NOBODY), (2, 4, BOB), (4, 0, NOBODY), (16, 4, NOBODY), (32, 0, NOBODY))
"""Read and write for the owner, read for Bob; the bits of the group are 4, though it may nothing."""


@on_linux
@as_root
@pytest.mark.parametrize("kept", [True, False])
def test_an_access_control_list_is_kept_or_nobody_but_the_owner_may_anything(tmp_path: Path, kept: bool) -> None:
    with shared(tmp_path):
        target = made(Path("rows.csv"), 0o600, ANN, STAFF if kept else TEAM)
        os.setxattr(target, "system.posix_acl_access", FOR_BOB)
        assert mode(target) == 0o640
        with user(ANN, STAFF):
            write(target, b"new")
        if kept:
            assert (mode(target), os.getxattr(target, "system.posix_acl_access")) == (0o640, FOR_BOB)
        else:
            assert (mode(target), os.listxattr(target)) == (0o600, [])


@on_linux
def test_the_list_that_a_directory_gives_to_new_files_does_not_open_a_replaced_one(tmp_path: Path) -> None:
    target = made(tmp_path / "rows.csv", 0o640)
    try:
        os.setxattr(tmp_path, "system.posix_acl_default", FOR_BOB)
    except OSError:
        pytest.skip("this file system has no access control lists")
    write(target, b"new")
    assert (mode(target), os.listxattr(target)) == (0o640, [])
