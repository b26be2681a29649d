"""Rows in files of a storage: what the files are called, what is in them, and what happens to one that is not whole."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
import pyzipper
from hypothesis import given, settings
from hypothesis import strategies as st

from svcctl.errors import Unavailable
from svcctl.service.destinations import Memo
from svcctl.service.destinations.numbered_files import Names, NumberedFiles
from svcctl.storage import AddressedFailure, Sink, Storage, exists
from svcctl.storage.local import LocalStorage

NO_DATES = pa.array([], pa.int64())
HEAD = b"n\n"
NAMES = Names("out/n", ".csv")


def parts(
    folder: Path, packing: str = "plain", password: str = "", size: int = 1_000_000, job: str = "job"
) -> NumberedFiles:
    return NumberedFiles(job, LocalStorage(folder), NAMES, size=size, age=1.0, packing=packing, password=password)


def deliver(storage: Storage, job: str, *numbers: int, memo: Memo | None = None, names: Names = NAMES) -> Memo:
    """One file of a job that goes on from a memo, and the memo after it."""
    written = NumberedFiles(job, storage, names, size=1_000_000, age=1.0)
    written.open(0, memo or {}, HEAD)
    written.write(rows(*numbers), 0, NO_DATES)
    after = written.commit()
    written.close()
    return after


def rows(*numbers: int) -> pa.StringArray:
    return pa.array([f"{number}\n" for number in numbers])


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_each_commit_is_a_file_with_the_head(tmp_path: Path) -> None:
    written = parts(tmp_path)
    assert written.open(0, {}, HEAD) == 0
    written.write(rows(1, 2), 0, NO_DATES)
    written.write(rows(3), 2, NO_DATES)
    assert written.commit() == {"parts": 1}
    written.write(rows(4), 3, NO_DATES)
    assert written.commit() == {"parts": 2}
    written.close()
    assert files(tmp_path) == {"n_000.csv": b"n\n1\n2\n3\n", "n_001.csv": b"n\n4\n"}


def test_a_file_whose_commit_was_not_saved_is_recognised(tmp_path: Path) -> None:
    saved: Memo = {"parts": 5}
    for _ in range(2):
        written = parts(tmp_path)
        written.open(0, saved, HEAD)
        written.write(rows(1, 2), 0, NO_DATES)
        saved = written.prepare()
        assert written.commit() == {"parts": 6}
        written.close()
    assert files(tmp_path) == {"n_005.csv": b"n\n1\n2\n"}


def test_a_prepared_file_that_is_not_there_is_written_with_its_number(tmp_path: Path) -> None:
    written = parts(tmp_path)
    written.open(0, {}, HEAD)
    written.write(rows(1, 2), 0, NO_DATES)
    saved = written.prepare()
    written.close()
    assert deliver(LocalStorage(tmp_path), "other", 9) == {"parts": 2}
    assert deliver(LocalStorage(tmp_path), "job", 1, 2, memo=saved) == {"parts": 1}
    assert files(tmp_path) == {"n_000.csv": b"n\n1\n2\n", "n_001.csv": b"n\n9\n"}


def test_a_prepared_file_whose_name_is_taken_gets_the_next_number(tmp_path: Path) -> None:
    written = parts(tmp_path)
    written.open(0, {}, HEAD)
    written.write(rows(1, 2), 0, NO_DATES)
    saved = written.prepare()
    (tmp_path / "out/n_000.csv").write_bytes(b"their\n")
    with pytest.raises(Unavailable):
        written.commit()
    written.close()
    assert deliver(LocalStorage(tmp_path), "job", 1, 2, memo=saved) == {"parts": 2}
    assert files(tmp_path) == {"n_000.csv": b"their\n", "n_001.csv": b"n\n1\n2\n"}


def test_numbers_go_on_behind_the_highest_that_is_there_however_it_is_packed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name in ("n_002.csv", "n_007.csv.zip", "n_x.csv", "n_9.csv", "n_010.json", "nn_011.csv"):
        (tmp_path / "out" / name).write_bytes(b"their\n")
    assert deliver(LocalStorage(tmp_path), "job", 1) == {"parts": 9}
    assert deliver(LocalStorage(tmp_path), "other", 2) == {"parts": 10}
    assert deliver(LocalStorage(tmp_path), "job", 3, memo={"parts": 9}) == {"parts": 11}
    found = files(tmp_path)
    assert {name: content for name, content in found.items() if content != b"their\n"} == {
        "n_008.csv": b"n\n1\n",
        "n_009.csv": b"n\n2\n",
        "n_010.csv": b"n\n3\n",
    }
    assert len(found) == 9


def test_the_only_file_of_a_job_has_the_plain_name_unless_it_is_taken(tmp_path: Path) -> None:
    for number in range(3):
        deliver(LocalStorage(tmp_path), "job", number, names=Names("all", ".csv", plain=True))
    assert files(tmp_path) == {"all.csv": b"n\n0\n", "all_001.csv": b"n\n1\n", "all_002.csv": b"n\n2\n"}


def test_a_number_that_another_job_has_begun_is_left_to_it(tmp_path: Path) -> None:
    first, second = parts(tmp_path, job="first"), parts(tmp_path, job="second")
    for written in (first, second):
        written.open(0, {}, HEAD)
        written.write(rows(1), 0, NO_DATES)
    assert [second.commit(), first.commit()] == [{"parts": 2}, {"parts": 1}]
    assert list(files(tmp_path)) == ["n_000.csv", "n_001.csv"]


class Killed(BaseException):
    """The process is gone in this moment: nothing that comes after it happens."""


class Mortal(Storage):
    """A bucket in memory whose user dies before or after some operations that change it."""

    def __init__(self, deaths: list[int]) -> None:
        self.objects: dict[str, bytes] = {}
        self._deaths = deaths

    def danger(self) -> None:
        if self._deaths:
            self._deaths[0] -= 1
            if self._deaths[0] < 0:
                self._deaths.pop(0)
                raise Killed

    def create(self, name: str, *, overwrite: bool, part_of: str | None = None) -> Sink:
        return MortalSink(self, name)

    def size(self, name: str) -> int | None:
        return len(self.objects[name]) if name in self.objects else None

    def read(self, name: str) -> Iterator[bytes]:
        yield self.objects[name]

    def sizes(self, folder: str = "") -> Iterator[tuple[str, int]]:
        return ((name, len(content)) for name, content in self.objects.items() if name.startswith(folder))

    def remove(self, *names: str) -> None:
        self.danger()
        for name in names:
            self.objects.pop(name, None)
        self.danger()

    def folders(self, folder: str = "") -> Iterator[str]:
        return iter(())

    def put_new(self, name: str, data: bytes) -> bool:
        self.danger()
        new = name not in self.objects
        self.objects.setdefault(name, data)
        self.danger()
        return new

    def address(self, name: str) -> str:
        return name


class MortalSink(Sink):
    """An object of a Mortal that is written."""

    def __init__(self, storage: Mortal, name: str) -> None:
        self._storage = storage
        self._name = name
        self._content = b""

    def write(self, data: bytes | memoryview, /) -> None:
        self._content += data

    def complete(self) -> None:
        if not self._storage.put_new(self._name, self._content):
            raise exists(self._name)

    def abandon(self) -> None:
        pass


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize(("packing", "password"), [("gzip", ""), ("zip", ""), ("zip", "secret")])
def test_of_two_processes_with_the_same_job_one_completes_the_file(packing: str, password: str, late: int) -> None:
    """One was suspended. What it has packed may differ, by the salt of an archive, from what the other has."""
    storage = Mortal([])
    saved: Memo = {}
    processes: list[NumberedFiles] = []
    for _ in range(3):
        written = NumberedFiles("job", storage, NAMES, size=1_000_000, age=1.0, packing=packing, password=password)
        written.open(0, saved, HEAD)
        written.write(rows(1, 2), 0, NO_DATES)
        saved = written.prepare()
        processes.append(written)
        if len(processes) == 2:
            assert processes[1 - late].commit() == {"parts": 1}
            [content] = storage.objects.values()
            with pytest.raises(Unavailable):
                processes[late].commit()
    assert processes[2].commit() == {"parts": 1}
    assert list(storage.objects.values()) == [content]


@settings(max_examples=60, deadline=None)
@given(turns=st.lists(st.booleans(), max_size=20), deaths=st.lists(st.integers(0, 12), max_size=12))
def test_each_of_two_jobs_with_the_same_rows_delivers_them_once_wherever_they_die(
    turns: list[bool], deaths: list[int]
) -> None:
    storage = Mortal(deaths)
    left = {job: [[1], [2, 3], [4]] for job in ("first", "second")}
    saved: dict[str, Memo] = {job: {} for job in left}

    def attempt(job: str) -> None:
        written = NumberedFiles(job, storage, NAMES, size=1_000_000, age=1.0)
        written.open(0, saved[job], HEAD)
        written.write(rows(*left[job][0]), 0, NO_DATES)
        saved[job] = {**saved[job], **written.prepare()}
        saved[job] = written.commit()
        left[job].pop(0)

    for turn in [*turns, *[False, True] * 40]:
        job = "second" if turn else "first"
        with suppress(Killed):
            if left[job]:
                attempt(job)
    contents = [content for name, content in storage.objects.items() if not name.startswith("out/.")]
    assert sorted(contents) == sorted([b"n\n1\n", b"n\n2\n3\n", b"n\n4\n"] * 2)


@pytest.mark.parametrize(("packing", "password"), [("plain", ""), ("gzip", ""), ("zip", ""), ("zip", "secret")])
def test_a_file_that_is_not_committed_is_not_there(tmp_path: Path, packing: str, password: str) -> None:
    written = parts(tmp_path, packing, password)
    written.open(0, {}, HEAD)
    written.write(rows(1), 0, NO_DATES)
    written.close()
    del written
    assert files(tmp_path) == {}


def test_files_are_packed(tmp_path: Path) -> None:
    for packing in ("gzip", "zip"):
        written = parts(tmp_path / packing, packing)
        written.open(0, {}, HEAD)
        written.write(rows(1), 0, NO_DATES)
        written.commit()
        written.close()
    assert gzip.decompress((tmp_path / "gzip/out/n_000.csv.gz").read_bytes()) == b"n\n1\n"
    with zipfile.ZipFile(tmp_path / "zip/out/n_000.csv.zip") as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {"n_000.csv": b"n\n1\n"}


def test_a_zip_with_a_password_opens_with_it_only(tmp_path: Path) -> None:
    written = parts(tmp_path, "zip", "secret")
    written.open(0, {}, HEAD)
    written.write(rows(1), 0, NO_DATES)
    written.commit()
    written.close()
    with pyzipper.AESZipFile(tmp_path / "out/n_000.csv.zip") as archive:
        with pytest.raises(RuntimeError):
            archive.read("n_000.csv")
        archive.setpassword(b"secret")
        assert archive.read("n_000.csv") == b"n\n1\n"


def test_a_full_file_has_no_room_and_an_empty_one_has(tmp_path: Path) -> None:
    written = parts(tmp_path, size=200_000)
    written.open(0, {}, HEAD)
    assert written.room() == 200_000 - len(HEAD)
    written.write(pa.array(["x" * 140_000]), 0, NO_DATES)
    assert written.room() == 0
    written.commit()
    assert written.room() == 200_000 - len(HEAD)
    written.close()


def test_the_reason_of_a_failure_comes_before_the_address_which_narrow_lists_cut(tmp_path: Path) -> None:
    class Refusing(LocalStorage):
        def create(self, name: str, *, overwrite: bool, part_of: str | None = None) -> Sink:
            raise AddressedFailure(f"s3://bucket/{name}", "no connection")

    written = NumberedFiles("job", Refusing(tmp_path), Names("n", ".csv"), size=9, age=1.0)
    written.open(0, {}, HEAD)
    with pytest.raises(Unavailable) as caught:
        written.write(rows(1), 0, NO_DATES)
    assert caught.value.message == "no connection (s3://bucket/n_000.csv)"
    written.close()


def test_what_the_storage_refuses_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("in the way of the folder")
    written = parts(tmp_path)
    written.open(0, {}, HEAD)
    with pytest.raises(Unavailable) as caught:
        written.write(rows(1), 0, NO_DATES)
    assert caught.value.message == f"cannot write {tmp_path}/out/.n_000.csv.claim.part: File exists"
    written.close()
    (tmp_path / "out").unlink()
    written.write(rows(1), 0, NO_DATES)
    written.commit()
    written.close()
    assert files(tmp_path) == {"n_000.csv": b"n\n1\n"}
