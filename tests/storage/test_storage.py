"""What the protocol promises, of every storage: the same tests on local files, S3 and HDFS."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from os import environ
from pathlib import Path

import pytest
from support.places import Place

from svcctl.errors import SvcctlError, Unavailable, UsageError
from svcctl.storage import Storage

MEGABYTE = 1_000_000
SMALL, LARGE = b"a,b\n1,2\n", bytes(range(251)) * 80_000  # in several parts, each different


def store(storage: Storage, name: str, content: bytes, *, overwrite: bool = False) -> None:
    with storage.create(name, overwrite=overwrite) as sink:
        for start in range(0, len(content), 3 * MEGABYTE):
            sink.write(memoryview(content)[start : start + 3 * MEGABYTE])
        sink.complete()


def content(storage: Storage, name: str) -> bytes:
    return b"".join(storage.read(name))


@pytest.mark.parametrize("data", [b"", SMALL, LARGE], ids=["empty", "small", "large"])
def test_an_object_appears_whole_when_it_is_complete_and_not_before(place: Place, data: bytes) -> None:
    storage, name = place.open()
    folder = name.rpartition("/")[0]
    with storage.create(name, overwrite=False) as sink:
        sink.write(data)
        assert (storage.size(name), list(storage.names(folder))) == (None, [])
        sink.complete()
    assert (storage.size(name), list(storage.names(folder))) == (len(data), [name])
    assert content(storage, name) == data
    assert len(place.everything()) == 1


def test_objects_that_are_completed_together_appear_whole(place: Place) -> None:
    storage, name = place.open()
    folder = name.rpartition("/")[0]
    expected = {f"{folder}/{day}/{hour}": f"{day} {hour}".encode() for day in ("a", "b") for hour in range(3)}
    with ExitStack() as stack:
        sinks = [stack.enter_context(storage.create(name, overwrite=True)) for name in expected]
        for sink, data in zip(sinks, expected.values(), strict=True):
            sink.write(data)
        assert list(storage.names(folder)) == []
        storage.complete_all(sinks)
    assert {name: content(storage, name) for name in storage.names(folder)} == expected


@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["small", "large"])
def test_an_object_that_exists_is_not_overwritten_unless_told_to(place: Place, data: bytes) -> None:
    storage, name = place.open()
    store(storage, name, b"old")
    with pytest.raises(UsageError) as caught:
        storage.create(name, overwrite=False)
    assert caught.value.message == f"{storage.address(name)} already exists"
    with storage.create(name, overwrite=True) as sink:
        sink.write(data)
        assert content(storage, name) == b"old"
        sink.complete()
    assert content(storage, name) == data


@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["small", "large"])
def test_an_object_that_appeared_meanwhile_is_not_overwritten(place: Place, data: bytes) -> None:
    storage, name = place.open()
    other, _ = place.open("other.csv")
    with storage.create(name, overwrite=False) as sink:
        sink.write(data)
        appear(place, other, name)
        with pytest.raises(UsageError) as caught:
            sink.complete()
    assert caught.value.message == f"{storage.address(name)} already exists"
    assert content(storage, name) == b"theirs"
    assert len(place.everything()) == 1


def appear(place: Place, storage: Storage, name: str) -> None:
    """Somebody else's object, made without svcctl where svcctl would lock it."""
    if place.peer is None:
        Path(name).write_bytes(b"theirs")
    elif place.target.startswith("s3"):
        store(storage, name, b"theirs")
    else:
        store(storage, f"{name}.new", b"theirs")
        from hdfs_native import Client

        Client("hdfs://" + place.target.split("/")[2]).rename(f"/{name}.new", f"/{name}")


@pytest.mark.parametrize("data", [b"", SMALL, LARGE], ids=["empty", "small", "large"])
def test_an_abandoned_object_leaves_nothing(place: Place, data: bytes) -> None:
    storage, name = place.open()
    sink = storage.create(name, overwrite=False)
    sink.write(data)
    sink.abandon()
    sink.abandon()
    assert storage.size(name) is None
    assert place.everything() == []


def test_a_block_that_fails_abandons_the_object_and_the_old_one_stays(place: Place) -> None:
    storage, name = place.open()
    store(storage, name, b"old")
    with pytest.raises(ZeroDivisionError), storage.create(name, overwrite=True) as sink:
        sink.write(LARGE)
        raise ZeroDivisionError
    assert content(storage, name) == b"old"
    assert len(place.everything()) == 1


def test_abandoning_a_complete_object_changes_nothing(place: Place) -> None:
    storage, name = place.open()
    with storage.create(name, overwrite=False) as sink:
        sink.write(LARGE)
        sink.complete()
        sink.abandon()
    assert content(storage, name) == LARGE


WRITER = """
import os, sys
from svcctl.storage.targets import open_target
storage, name = open_target(sys.argv[1], os.environ)
sink = storage.create(name, overwrite=True)
for _ in range(20):
    sink.write(bytes(1_000_000))
print("written", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("before", [None, b"old"], ids=["new", "existing"])
def test_a_writer_that_is_killed_leaves_nothing_visible_and_nothing_in_the_way(
    place: Place, before: bytes | None
) -> None:
    storage, name = place.open()
    if before is not None:
        store(storage, name, before)
    command = [sys.executable, "-c", WRITER, f"{place.target}/rows.csv"]
    with subprocess.Popen(
        command, env={**environ, **place.environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"written\n"
        writer.kill()
    assert storage.size(name) == (None if before is None else len(before))
    assert list(storage.names(name.rpartition("/")[0])) == ([] if before is None else [name])
    store(storage, name, SMALL, overwrite=True)
    assert content(storage, name) == SMALL


BOUNDED = """
import hashlib, os, resource, sys
from svcctl.storage.targets import open_target
storage, name = open_target(sys.argv[1], os.environ)
piece = bytes(range(250)) * 4_000
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
with storage.create(name, overwrite=False) as sink:
    for _ in range(200):
        sink.write(piece)
    sink.complete()
read = hashlib.sha256()
for part in storage.read(name):
    read.update(part)
print(peak() - before, storage.size(name), read.hexdigest(), flush=True)
os._exit(0)  # as svcctl ends
"""


@pytest.mark.slow
def test_a_large_object_takes_little_memory_to_write_and_to_read(place: Place) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BOUNDED, f"{place.target}/rows.csv"],
        env={**environ, **place.environment},
        capture_output=True,
        text=True,
        check=True,
    )
    kilobytes, size, digest = done.stdout.split()
    assert (int(size), digest) == (200_000_000, hashlib.sha256(bytes(range(250)) * 800_000).hexdigest())
    assert int(kilobytes) < 64 * 1024


NAMES = ["a b+c.csv", "100%.csv", "{start}=é#?&.csv", "2024/01/31/10.csv", "2024/01/31/11.csv"]


def test_names_are_taken_literally_and_listed_below_their_folder(place: Place) -> None:
    storage, _ = place.open()
    top = place.open("x")[1].removesuffix("x")
    for name in NAMES:
        store(storage, top + name, name.encode())
    assert sorted(storage.names(top.rstrip("/"))) == sorted(top + name for name in NAMES)
    assert sorted(storage.names(f"{top}2024/01")) == [top + name for name in NAMES[3:]]
    assert sorted(storage.names(f"{top}2024/01/")) == [top + name for name in NAMES[3:]]
    assert [content(storage, top + name) for name in NAMES] == [name.encode() for name in NAMES]


def test_names_are_found_by_their_beginning_in_one_folder(place: Place) -> None:
    storage, _ = place.open()
    top = place.open("x")[1].removesuffix("x")
    for name in ("we_0.csv", "web", "web_0.csv", "web_1 é.csv", "web_2/3.csv", "xweb_4.csv", "in/web_5.csv"):
        store(storage, top + name, SMALL)
    assert sorted(storage.beginning(f"{top}web_")) == [f"{top}web_0.csv", f"{top}web_1 é.csv"]
    assert list(storage.beginning(f"{top}in/web_")) == [f"{top}in/web_5.csv"]
    assert list(storage.beginning(f"{top}nowhere/web_")) == []


def test_what_is_not_there_has_no_size_and_no_content_and_is_removed_already(place: Place) -> None:
    storage, name = place.open("nowhere/rows.csv")
    assert storage.size(name) is None
    assert list(storage.names(name.rpartition("/")[0])) == []
    storage.remove(name)
    with pytest.raises(UsageError) as caught:
        content(storage, name)
    assert caught.value.message == f"{storage.address(name)} does not exist"


def test_a_removed_object_is_gone(place: Place) -> None:
    storage, name = place.open()
    store(storage, name, SMALL)
    storage.remove(name)
    assert storage.size(name) is None
    assert place.everything() == []


def test_threads_share_a_storage(place: Place) -> None:
    storage, _ = place.open()
    names = [place.open(f"{number}.csv")[1] for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: store(storage, name, name.encode() * MEGABYTE), names))
        found = list(pool.map(lambda name: content(storage, name), names))
    assert found == [name.encode() * MEGABYTE for name in names]


@pytest.mark.slow
def test_a_server_that_is_down_is_reported_soon_by_every_call(remote: Place) -> None:
    storage, name = remote.open()
    assert remote.peer is not None
    calls: dict[str, Callable[[], object]] = {
        "create": lambda: storage.create(name, overwrite=False),
        "complete": lambda: store(storage, name, SMALL, overwrite=True),
        "size": lambda: storage.size(name),
        "read": lambda: content(storage, name),
        "names": lambda: list(storage.names()),
        "remove": lambda: storage.remove(name),
    }
    with remote.peer.down():
        for call in calls.values():
            started = time.monotonic()
            with pytest.raises(Unavailable) as caught:
                call()
            assert time.monotonic() - started < 10
            assert caught.value.message.startswith(storage.address("").rstrip("/"))


def test_a_server_that_goes_away_in_the_middle_leaves_nothing(remote: Place) -> None:
    storage, name = remote.open()
    assert remote.peer is not None
    with storage.create(name, overwrite=False) as sink:
        sink.write(LARGE)
        with remote.peer.down(), pytest.raises(SvcctlError) as caught:
            sink.write(LARGE)
            sink.complete()
    assert isinstance(caught.value, Unavailable)
    assert storage.size(name) is None
    store(storage, name, SMALL)
    assert content(storage, name) == SMALL


def test_of_writers_of_one_new_object_one_is_told_that_it_was_stored(place: Place) -> None:
    storage, name = place.open("log/1.json")
    with ThreadPoolExecutor(8) as threads:
        stored = list(threads.map(lambda number: storage.put_new(name, b"%d" % number), range(8)))
    if storage.put_new(name, b"late"):
        pytest.skip("this S3 service ignores the condition")
    assert (stored.count(True), content(storage, name)) == (1, b"%d" % stored.index(True))
    assert len(place.everything()) == 1


def test_folders_are_those_directly_in_a_folder(place: Place) -> None:
    storage, name = place.open("a/b.csv")
    folder = name.removesuffix("a/b.csv").rstrip("/")
    assert list(storage.folders(f"{folder}/none")) == []
    for each in ("a/b.csv", "a/c/d.csv", "e.f/g.csv", "h.csv"):
        store(storage, f"{folder}/{each}", SMALL)
    assert sorted(storage.folders(folder)) == ["a", "e.f"]
