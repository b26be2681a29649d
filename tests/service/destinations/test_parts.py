"""Rows in files of a storage: what the files are called, what is in them, and what happens to one that is not whole."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
import pyzipper

from svcctl.errors import Unavailable, UsageError
from svcctl.service.destinations.parts import Parts
from svcctl.storage import Sink
from svcctl.storage.local import Local

HEAD = b"n\n"


def parts(folder: Path, packing: str = "plain", password: str = "", size: int = 1_000_000) -> Parts:
    return Parts(
        Local(folder), lambda number: f"out/n_{number}.csv", size=size, age=1.0, packing=packing, password=password
    )


def rows(*numbers: int) -> pa.StringArray:
    return pa.array([f"{number}\n" for number in numbers])


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_each_commit_is_a_file_with_the_head(tmp_path: Path) -> None:
    written = parts(tmp_path)
    assert written.open(0, {}, HEAD) == 0
    written.write(rows(1, 2), 0)
    written.write(rows(3), 2)
    assert written.commit() == {"parts": 1}
    written.write(rows(4), 3)
    assert written.commit() == {"parts": 2}
    written.close()
    assert files(tmp_path) == {"n_0.csv": b"n\n1\n2\n3\n", "n_1.csv": b"n\n4\n"}


def test_a_file_whose_commit_was_not_saved_is_written_again(tmp_path: Path) -> None:
    for last in (2, 3):
        written = parts(tmp_path)
        written.open(0, {"parts": 5}, HEAD)
        written.write(rows(1, last), 0)
        assert written.commit() == {"parts": 6}
        written.close()
    assert files(tmp_path) == {"n_5.csv": b"n\n1\n3\n"}


@pytest.mark.parametrize(("packing", "password"), [("plain", ""), ("gzip", ""), ("zip", ""), ("zip", "secret")])
def test_a_file_that_is_not_committed_is_not_there(tmp_path: Path, packing: str, password: str) -> None:
    written = parts(tmp_path, packing, password)
    written.open(0, {}, HEAD)
    written.write(rows(1), 0)
    written.close()
    del written
    assert files(tmp_path) == {}


def test_files_are_packed(tmp_path: Path) -> None:
    for packing, password in (("gzip", ""), ("zip", "")):
        written = parts(tmp_path, packing, password)
        written.open(0, {}, HEAD)
        written.write(rows(1), 0)
        written.commit()
        written.close()
    assert gzip.decompress((tmp_path / "out/n_0.csv.gz").read_bytes()) == b"n\n1\n"
    with zipfile.ZipFile(tmp_path / "out/n_0.csv.zip") as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {"n_0.csv": b"n\n1\n"}


def test_a_zip_with_a_password_opens_with_it_only(tmp_path: Path) -> None:
    written = parts(tmp_path, "zip", "secret")
    written.open(0, {}, HEAD)
    written.write(rows(1), 0)
    written.commit()
    written.close()
    with pyzipper.AESZipFile(tmp_path / "out/n_0.csv.zip") as archive:
        with pytest.raises(RuntimeError):
            archive.read("n_0.csv")
        archive.setpassword(b"secret")
        assert archive.read("n_0.csv") == b"n\n1\n"


def test_a_full_file_has_no_room_and_an_empty_one_has(tmp_path: Path) -> None:
    written = parts(tmp_path, size=200_000)
    written.open(0, {}, HEAD)
    assert written.room() == 200_000 - len(HEAD)
    written.write(pa.array(["x" * 140_000]), 0)
    assert written.room() == 0
    written.commit()
    assert written.room() == 200_000 - len(HEAD)
    written.close()


def test_the_reason_of_a_failure_comes_before_the_address_which_narrow_lists_cut(tmp_path: Path) -> None:
    class Refusing(Local):
        def create(self, name: str, *, overwrite: bool, durable: bool = True) -> Sink:
            raise UsageError(f"s3://bucket/{name}: Access Denied")

    written = Parts(Refusing(tmp_path), lambda number: "n.csv", size=9, age=1.0, packing="plain", password="")
    written.open(0, {}, HEAD)
    with pytest.raises(Unavailable) as caught:
        written.write(rows(1), 0)
    assert caught.value.message == "Access Denied (s3://bucket/n.csv)"
    written.close()


def test_what_the_storage_refuses_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("in the way of the folder")
    written = parts(tmp_path)
    written.open(0, {}, HEAD)
    with pytest.raises(Unavailable) as caught:
        written.write(rows(1), 0)
    assert caught.value.message == f"cannot write {tmp_path}/out/n_0.csv: File exists"
    written.close()
    (tmp_path / "out").unlink()
    written.write(rows(1), 0)
    written.commit()
    written.close()
    assert files(tmp_path) == {"n_0.csv": b"n\n1\n"}
