"""Writing and locking files, for all parts of svcctl.

A file is written under another name in the same folder, synced to the disk, and renamed. So readers see the old file or
the whole new file, even after a power failure. If the path is a symbolic link, the linked file is replaced, and the
link stays. The new file has the permissions of the replaced file from the first byte on.

A lock ends with the process that holds the lock, even if the process is killed. Failures raise OSError. If another
process holds a lock, `Locked` is raised.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from svcctl.errors import Locked
from svcctl.io.permissions import Permissions

PART_SUFFIX = ".part"
"""The suffix of a file's name while the file is being written."""

MAX_NAME_BYTES = 255
"""The maximum length of a file name, in bytes, on the usual file systems, including HDFS."""

PIECE_BYTES = 1 << 18
"""The maximum number of bytes that are read at once."""

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)
"""The error numbers that file systems without hard links return."""

_NO_DIRECTORY_SYNC = (errno.EACCES, errno.EBADF, errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)
"""The error numbers for a directory that cannot be synced, because of its file system or because it is unreadable."""

_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,9})")
_MOST_LINKS = 40
"""The maximum number of links in one path that the kernel follows."""


class Unbuffered(Protocol):
    """A stream with a method `write` that may accept only some of the bytes.

    The method returns the number of accepted bytes.
    """

    def write(self, data: memoryview, /) -> int | None: ...


def write_all(stream: Unbuffered, data: bytes | memoryview) -> int:
    """Write all bytes and return their number.

    If the disk is full, raise OSError after writing as many bytes as fit.
    """
    rest = memoryview(data).cast("B")
    size = len(rest)
    while rest:
        rest = rest[stream.write(rest) :]
    return size


def derived_name(name: str, *, prefix: str = "", suffix: str) -> str:
    """Return the name of a file that belongs to the file `name`: the same name with a prefix and a suffix.

    A name that is too long for a file system is shortened. A hash is added to the short name, so that different files
    have different names.
    """
    whole = f"{prefix}{name}{suffix}"
    if len(os.fsencode(whole)) <= MAX_NAME_BYTES:
        return whole
    import hashlib  # loads OpenSSL, which is needed only for long names

    suffix = f".{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}{suffix}"
    while len(os.fsencode(f"{prefix}{name}{suffix}")) > MAX_NAME_BYTES:
        name = name[:-1]
    return f"{prefix}{name}{suffix}"


def part_name(name: str) -> str:
    """Return the name of a file while the file is being written."""
    return derived_name(name, suffix=PART_SUFFIX)


def resolved_path(path: Path) -> Path:
    """Return the path of the file to which a link leads. All links in this path are resolved.

    If the path is not a link, it is returned unchanged, even if one of its folders is a link. The file need not exist.
    """
    return Path(os.path.realpath(path)) if _is_link(path) else path


def descriptor(path: Path) -> int | None:
    """Return the number in the path of a file descriptor: 1 for /dev/fd/1. Links such as /dev/stdout are followed.

    Returns None for other paths.
    """
    for _ in range(_MOST_LINKS):
        if match := _DESCRIPTOR.fullmatch(str(path)):
            return int(match[1])
        if not _is_link(path):
            return None
        path = path.parent / path.readlink()
    return None


def _status(path: Path) -> os.stat_result | None:
    """Return the status of a file, or of the link itself if the path is a link; None if the path does not exist."""
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def _is_link(path: Path) -> bool:
    """Return whether a path is a link. The result is False for a path that cannot be examined."""
    try:
        return path.is_symlink()
    except OSError:
        return False


def is_direct(path: Path) -> bool:
    """Return whether a path is a device, a pipe, or an open file of this process, such as /dev/stdout.

    Such a path is written directly, without a part file.
    """
    if descriptor(path) is not None:
        return True
    with suppress(FileNotFoundError):
        return stat.S_IFMT(path.stat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR)
    return False


def open_direct(path: Path) -> io.FileIO:
    """Open a device, a pipe or an open file of this process for writing. The path must satisfy `is_direct`.

    Closing the stream does not close files that the process inherited. Raises OSError for a descriptor that the process
    did not inherit.
    """
    if (number := descriptor(path)) is None:
        return path.open("wb", buffering=0)
    if not os.get_inheritable(number):  # this process has opened the descriptor for another purpose
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return io.FileIO(number, "w", closefd=False)


def remove_abandoned(folder: Path) -> None:
    """Remove the part files that killed writers left in a folder. A part that a process is writing stays."""
    for path in folder.glob(f"*{PART_SUFFIX}"):
        with suppress(FileNotFoundError, BlockingIOError), path.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


class PartFile:
    """A file that is being written. The bytes are in the part file `<name>.part`, which `publish` renames to `<name>`.

    Use the object in a `with` statement. Leaving the block without `publish` removes the part. A killed process leaves
    its part, and the next writer of the same file replaces this part.

    If another process is writing the same file, the constructor raises Locked. With `wait`, the constructor waits for
    the other process instead. With `take`, the constructor takes over the file, and `publish` fails in the other
    process.

    From the beginning, the part has the owner, group and permissions of the file `like`. Without `like`, the part has
    those of the file that it replaces. If this file does not exist, the umask decides the permissions. A `private` file
    can be read and written only by its owner.

    `growing` is another path for the part, on the same file system. Such a part stays until `publish`, and a later
    PartFile with the same `growing` appends to the part.

    Raises OSError if the path is a device, a pipe, or a path such as /dev/fd/3. `publish` raises OSError if
    another program has changed, replaced or removed the part.
    """

    def __init__(
        self,
        path: Path,
        *,
        private: bool = False,
        wait: bool = False,
        take: bool = False,
        growing: Path | None = None,
        like: Path | None = None,
    ) -> None:
        status = _status(path)
        if (
            status is not None and not stat.S_ISREG(status.st_mode) and is_direct(path)
        ):  # a directory is refused later, by `publish`
            raise OSError(errno.EINVAL, "it is not a regular file")
        self.path = path
        self._target = resolved_path(path) if status is not None and stat.S_ISLNK(status.st_mode) else path
        self._part = growing or self._target.with_name(part_name(self._target.name))
        self._grows = growing is not None
        self._private = private
        self._like = self._target if like is None else resolved_path(like)
        self._replaced = None if like is None and status is None else self._permissions()
        self._published = False
        while (stream := self._open(wait)) is None:
            if take:
                self._part.unlink(missing_ok=True)
            elif not wait:
                raise Locked(f"another run is writing {self.path}")
        self.stream = stream
        if self._replaced is not None:
            self._replaced.give(stream.fileno(), all_bits=False)
        self.size = os.fstat(stream.fileno()).st_size if self._grows else 0

    def _permissions(self) -> Permissions | None:
        """Return the permissions that the file will have; None if the umask decides."""
        permissions = Permissions.of(self._like)
        if permissions is not None and self._private:
            return permissions._replace(mode=permissions.mode & 0o600, acl=None)
        return permissions

    def _open(self, wait: bool) -> io.FileIO | None:
        """Create and lock the part file. Returns None if another process has the lock, or had the lock a moment ago."""
        new = True
        try:
            stream = self._opened(os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            new = False
            try:
                if _is_link(self._part):
                    self._part.unlink()
                stream = self._opened()
            except FileNotFoundError:
                return self._open(wait)
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if self._is(stream):
                # A killed writer may have left this part. It is not reused, because other processes may be reading it,
                # or because it may already be linked as the final file.
                if new or (self._grows and not self._is(stream, self._target)):
                    return stream
                self._part.unlink()
                stream.close()
                return self._open(wait)
        except BlockingIOError:
            pass
        except BaseException:
            stream.close()
            raise
        stream.close()
        return None

    def _opened(self, creating: int = 0) -> io.FileIO:
        """Open or create the part file. The permissions of a new part are at most those of the final file."""
        mode = 0o600 if self._private else 0o666
        if self._replaced is not None:
            mode = self._replaced.mode & 0o600
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | creating
        try:
            handle = os.open(self._part, flags, mode)
        except PermissionError:
            if creating or not self._part.exists():
                raise
            self._part.chmod(0o600)  # a killed writer left the part of a read-only file
            handle = os.open(self._part, flags)
        return io.FileIO(handle, "r+")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, and remove the part file.

        After `publish`, nothing is removed. A part with the path `growing` also stays if it is not empty. A second call
        does nothing.
        """
        if self.stream.closed:
            return
        if not self._published and not (self._grows and self.size) and self._is(self.stream):
            self._part.unlink(missing_ok=True)
        self.stream.close()

    def _is(self, stream: io.FileIO, path: Path | None = None) -> bool:
        """Return whether `path` leads to the open file `stream`. By default, `path` is the path of the part file."""
        try:
            return os.path.samestat((path or self._part).stat(), os.fstat(stream.fileno()))
        except FileNotFoundError:
            return False

    def write(self, data: bytes | memoryview, /) -> int:
        """Append all bytes and return their number."""
        size = write_all(self.stream, data)
        self.size += size
        return size

    def read(self, start: int = 0, size: int | None = None) -> Iterator[bytes]:
        """Yield bytes that were written before: at most `size` bytes, from the position `start`."""
        end = self.size if size is None else start + size
        while piece := os.pread(self.stream.fileno(), min(PIECE_BYTES, end - start), start):
            yield piece
            start += len(piece)

    def truncate(self, size: int) -> None:
        """Remove all bytes after the first `size` bytes."""
        self.stream.truncate(size)
        self.size = size

    def publish(self, *, overwrite: bool = True, durable: bool = True, syncs_name: bool = True) -> None:
        """Sync the bytes to the disk, and rename the part file to the file's name.

        Without `durable`, nothing is synced, so a failure of the machine may lose bytes. Without `syncs_name`, the new
        name is not synced, and the caller must sync the `directory`.

        If `overwrite` is false and the file exists, raises FileExistsError. On a file system without hard links, this
        check may miss a file that another program creates at the same moment.
        """
        if (permissions := self._permissions() or self._replaced) is not None:
            permissions.give(self.stream.fileno(), all_bits=True)
        if durable:
            os.fsync(self.stream.fileno())
        self._refuse_what_is_not_ours()
        if overwrite or not self._link():
            self._part.replace(self._target)
        self._published = True
        if durable and syncs_name:
            sync_directory(self.directory)

    @property
    def directory(self) -> Path:
        """The directory that contains the file after all links are followed."""
        return self._target.parent

    def _refuse_what_is_not_ours(self) -> None:
        """Raise OSError if another program has replaced or changed the part file."""
        written = os.fstat(self.stream.fileno())
        status = _status(self._part)
        if status is None or not os.path.samestat(status, written):
            raise OSError(errno.ESTALE, f"another program removed or replaced {self._part.name} meanwhile")
        if written.st_size != self.size:
            raise OSError(errno.ESTALE, f"another program wrote to {self._part.name} meanwhile")

    def _link(self) -> bool:
        """Give the part file its final name by a hard link, because creating a hard link never replaces a file.

        Returns False if the file system does not support hard links.
        """
        try:
            os.link(self._part, self._target)
        except OSError as error:
            if error.errno in _NO_LINKS:
                return False
            raise
        self._part.unlink()
        return True


def write(path: Path, data: bytes, *, overwrite: bool = True, private: bool = False) -> None:
    """Write a whole file. If `overwrite` is false and the file exists, raises FileExistsError."""
    with PartFile(path, private=private, wait=True) as part:
        part.write(data)
        part.publish(overwrite=overwrite)


def sync_directory(directory: Path) -> None:
    """Sync new names in a directory to the disk. Do nothing for a directory that cannot be synced.

    Such a directory is on a file system without this operation, or the user may only write in it.
    """
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _NO_DIRECTORY_SYNC:
            raise


def lock(path: Path, busy: str, *, hint: str | None = None, reason: str | None = None, patience: float = 0.0) -> int:
    """Lock a file until the returned descriptor is closed or the process ends.

    A missing file is created with mode 0600. If another process still holds the lock after `patience` seconds, raises
    Locked with the message `busy`, the hint `hint` and the reason `reason`.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(handle)
                raise Locked(busy, hint=hint, reason=reason) from None
        time.sleep(0.01)


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock on a file. The check itself holds a lock for a moment."""
    try:
        with path.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
