"""Local files under a directory. While a file is written, it has the name `<name>.part`, and the writer locks it."""

from __future__ import annotations

import errno
import os
import stat
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from svcctl.errors import IncompleteResult, UsageError
from svcctl.io.compression import DamagedCompression, check
from svcctl.io.files import PART_SUFFIX, PartFile, derived_name, remove_abandoned, resolved_path, sync_directory, write
from svcctl.storage import GrowingObject, Sink, Storage, absent, exists

PIECE_BYTES = 1 << 20

_NO_FILE_ERRNOS = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""The error numbers for a path at which no file exists."""


class LocalStorage(Storage):
    """Files under `directory`. If `directory` is empty, the name of an object is a relative or absolute path.

    With `take`, the storage takes over objects that another process is writing. The other process can then no longer
    complete such an object.
    """

    def __init__(self, directory: Path = Path(), *, take: bool = False) -> None:
        self._directory = directory
        self._take = take
        self._made: set[Path] = set()
        self._there: set[str] = set()
        """The folders that are known to exist. The names of new folders were synced to the disk."""
        self._making = threading.Lock()

    def create(self, name: str, *, overwrite: bool, part_of: str | None = None) -> Sink:
        path = self._directory / name
        like = None if part_of is None else self._directory / part_of
        with _explained(path, "write"):
            _refuse_taken(path, overwrite=overwrite)
            if (folder := name.rpartition("/")[0]) not in self._there:
                self._make(path.parent)
                self._there.add(folder)
            try:
                part = PartFile(path, take=self._take, like=like)
            except FileNotFoundError:  # another run removed the empty folder at this moment
                self._make(path.parent)
                part = PartFile(path, take=self._take, like=like)
            return _File(part, overwrite=overwrite, durable=part_of is None)

    def complete_all(self, sinks: Sequence[Sink]) -> None:
        files = [sink for sink in sinks if isinstance(sink, _File)]
        for file in files:
            file.complete(syncs_name=False)
        for directory in {file.directory for file in files}:
            with _explained(directory, "write"):
                sync_directory(directory)

    def grow(self, name: str, part: str, *, overwrite: bool) -> GrowingObject | None:
        path, growing = self._directory / name, self._directory / f"{part}{PART_SUFFIX}"
        with _explained(path, "write"):
            _refuse_taken(path, overwrite=overwrite)
            self._make(path.parent)
            self._make(growing.parent)
            if resolved_path(path).parent.stat().st_dev != growing.parent.stat().st_dev:
                return None  # a file cannot be renamed to another file system
            return _Growing(PartFile(path, growing=growing), overwrite=overwrite)

    def size(self, name: str) -> int | None:
        path = self._directory / name
        with _explained(path, "read"):
            status = _status(path)
            return None if status is None or not stat.S_ISREG(status.st_mode) else status.st_size

    def read(self, name: str) -> Iterator[bytes]:
        path = self._directory / name
        with _explained(path, "read"), path.open("rb", buffering=0) as stream:
            while piece := stream.read(PIECE_BYTES):
                yield piece

    def sizes(self, folder: str = "") -> Iterator[tuple[str, int]]:
        top = self._directory / folder
        for directory, _, files in os.walk(top):
            for file in files:
                path = Path(directory, file)
                with suppress(FileNotFoundError):
                    if not file.endswith(PART_SUFFIX):
                        yield (folder / path.relative_to(top)).as_posix(), path.stat().st_size

    def remove(self, *names: str) -> None:
        for name in names:
            path = self._directory / name
            with _explained(path, "remove"):
                path.unlink(missing_ok=True)

    def folders(self, folder: str = "") -> Iterator[str]:
        path = self._directory / folder
        with _explained(path, "read"), suppress(FileNotFoundError), os.scandir(path) as entries:
            yield from (entry.name for entry in entries if entry.is_dir())

    def put_new(self, name: str, data: bytes) -> bool:
        path = self._directory / name
        # Each writer has its own part file, because the lock of a writer on another machine is not visible here.
        part = path.with_name(derived_name(f"{path.name}.{uuid.uuid4().hex}", prefix=".", suffix=PART_SUFFIX))
        with _explained(path, "write"):
            self._make(path.parent)
            write(part, data)
            try:
                os.link(part, path)
            except FileExistsError:
                return False
            finally:
                part.unlink(missing_ok=True)
            sync_directory(path.parent)
        return True

    def remove_folder(self, name: str) -> None:
        with suppress(OSError):
            (self._directory / name).rmdir()

    def remove_made_folders(self) -> None:
        for folder in sorted(self._made.copy(), reverse=True):  # inner folders first
            with suppress(OSError):
                folder.rmdir()

    def _make(self, folder: Path) -> None:
        """Make a folder if it does not exist, and sync the names of new folders to the disk.

        Files in a new folder are then not lost if the machine fails.
        """
        with self._making:
            if not folder.is_dir():
                missing = [path for path in (folder, *folder.parents) if not path.exists()]
                folder.mkdir(parents=True, exist_ok=True)
                self._made.update(missing)
                for path in missing:
                    sync_directory(path.parent)

    def remove_unfinished(self, folder: str) -> None:
        path = self._directory / folder
        with _explained(path, "remove"):
            remove_abandoned(path)

    def address(self, name: str) -> str:
        return str(self._directory / name)


class _File(Sink):
    """A file that is being written."""

    def __init__(self, part: PartFile, *, overwrite: bool, durable: bool = True) -> None:
        self._part = part
        self._overwrite = overwrite
        self._durable = durable

    def write(self, data: bytes | memoryview, /) -> None:
        with self._whole():
            self._part.write(data)

    def complete(self, *, syncs_name: bool = True) -> None:
        """Complete the file, see `Sink.complete`. If `syncs_name` is false, the caller must sync `directory`."""
        with self._whole():
            if self._durable:
                check(self._part.path.suffix, self._part.read())
            self._part.publish(overwrite=self._overwrite, durable=self._durable, syncs_name=syncs_name)
        self._part.close()

    @property
    def directory(self) -> Path:
        return self._part.directory

    def abandon(self) -> None:
        self._part.close()

    @contextmanager
    def _whole(self) -> Iterator[None]:
        try:
            yield
        except FileExistsError:
            raise exists(str(self._part.path)) from None
        except DamagedCompression as error:
            raise IncompleteResult(f"cannot write {self._part.path}: the written data {error}") from None
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            raise IncompleteResult(
                f"cannot write {self._part.path}: {error.strerror}",
                hint="make room on its disk, then run the same command again" if full else None,
            ) from None


class _Growing(_File, GrowingObject):
    """A file that may be written over several runs. Its bytes are in a part file until the file is complete."""

    def read(self, start: int, size: int) -> Iterator[bytes]:
        with self._whole():
            yield from self._part.read(start, size)

    def truncate(self, size: int) -> None:
        with self._whole():
            self._part.truncate(size)


def _refuse_taken(path: Path, *, overwrite: bool) -> None:
    status = _status(path)
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{path} is not a regular file")
    if status is not None and not overwrite:
        raise exists(str(path))


def _status(path: Path) -> os.stat_result | None:
    """Return the status of the file at a path. Return None if there is no file. Symbolic links are followed."""
    try:
        return path.stat()
    except OSError as error:
        if error.errno not in _NO_FILE_ERRNOS:
            raise
        return None


@contextmanager
def _explained(path: Path, verb: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        if verb == "read":
            raise absent(str(path)) from None
        raise UsageError(f"cannot {verb} {path}: {error.strerror}") from None
    except OSError as error:
        raise UsageError(f"cannot {verb} {path}: {error.strerror}") from None
