"""Write files and lock them; every part of svcctl that does either does it here.

A file is written beside its name, brought to the disk and renamed, so a reader sees the old file or the whole new one,
even after a power failure. If the name is a link, the file that it points to is written, and the link stays.
The new file has the permissions of the one that it replaces, from its first byte on.
A lock is the kernel's: it ends with the process that holds it, however that process ends.
Failures are OSErrors, since only the caller knows what the file is for; a lock that somebody else holds is `Locked`.
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
"""The ending that is added to a file's name while the file is being written."""

MAX_NAME_BYTES = 255
"""The longest name of a file on the usual file systems, HDFS included."""

PIECE_BYTES = 1 << 18
"""Bytes that are read at once."""

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)
"""The errors of file systems that do not have hard links."""

_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,9})")
_MOST_LINKS = 40
"""The number of links that the kernel follows in one path."""


class Unbuffered(Protocol):
    """A stream whose `write` may take less than it is given, and says how much it took."""

    def write(self, data: memoryview, /) -> int | None: ...


def write_all(stream: Unbuffered, data: bytes | memoryview) -> int:
    """Write all bytes and return their number; a full disk takes the first of them and raises OSError at the rest."""
    rest = memoryview(data).cast("B")
    size = len(rest)
    while rest:
        rest = rest[stream.write(rest) :]
    return size


def derived_name(name: str, *, prefix: str = "", suffix: str) -> str:
    """The name of a file that belongs to another: the other's name with a prefix and a suffix.

    If that is too long for a file system, the name is shortened, and a hash of it keeps the names of two files apart.
    """
    whole = f"{prefix}{name}{suffix}"
    if len(os.fsencode(whole)) <= MAX_NAME_BYTES:
        return whole
    import hashlib  # loads OpenSSL, for long names only

    suffix = f".{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}{suffix}"
    while len(os.fsencode(f"{prefix}{name}{suffix}")) > MAX_NAME_BYTES:
        name = name[:-1]
    return f"{prefix}{name}{suffix}"


def part_name(name: str) -> str:
    """The name that a file has while it is being written."""
    return derived_name(name, suffix=PART_SUFFIX)


def followed(path: Path) -> Path:
    """The file that a path names: the end of a link, whether a file is there or not; else the path as it is."""
    return Path(os.path.realpath(path)) if _is_link(path) else path


def descriptor(path: Path) -> int | None:
    """The number of the open file that a path such as /dev/stdout, or a link to it, names; None for other paths."""
    for _ in range(_MOST_LINKS):
        if match := _DESCRIPTOR.fullmatch(str(path)):
            return int(match[1])
        if not _is_link(path):
            return None
        path = path.parent / path.readlink()
    return None


def _is_link(path: Path) -> bool:
    """Whether a path is a link; False for a path that cannot be looked at, which fails when it is opened."""
    try:
        return path.is_symlink()
    except OSError:
        return False


def is_direct(path: Path) -> bool:
    """Whether a path is written directly: a device, a pipe, or a file that this process was started with."""
    if descriptor(path) is not None:
        return True
    with suppress(FileNotFoundError):
        return stat.S_IFMT(path.stat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR)
    return False


def open_direct(path: Path) -> io.FileIO:
    """A stream to a path for which `is_direct` holds. A file that this process was started with stays open when the
    stream is closed; OSError if it was not started with that file.
    """
    if (number := descriptor(path)) is None:
        return path.open("wb", buffering=0)
    if not os.get_inheritable(number):  # opened here, for something else
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return io.FileIO(number, "w", closefd=False)


def remove_abandoned(folder: Path) -> None:
    """Remove the parts in a folder that no process is writing: those of writers that were killed."""
    for path in folder.glob(f"*{PART_SUFFIX}"):
        with suppress(FileNotFoundError, BlockingIOError), path.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


class Part:
    """A file being written: its bytes are in `<name>.part` until `publish` gives them their name.

    Use it in `with`: leaving the block without `publish` removes the part. A killed process leaves its part, and the
    next process to write the file replaces it. When another process is writing the same file, the constructor raises
    Locked; with `wait` it waits for the other to finish, and with `take` it takes the file over, so that the other's
    `publish` fails.

    The file that it replaces hands its owner, group and permissions on, to the part already; `like` is another file
    that does so instead. A new file has the permissions of the umask. A `private` file is for its owner only.

    With `growing`, a path on the same file system, the bytes are at that path instead and stay there until `publish`: a
    later Part with the same `growing` appends to them.

    OSError where the path names a device, a pipe or the like.

    A program that ignores the lock may still change, replace or remove the part: `publish` fails then.
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
        if is_direct(path):  # a directory cannot be replaced
            raise OSError(errno.EINVAL, "it is not a regular file")
        self.path = path
        self._target = followed(path)
        self._part = growing or self._target.with_name(part_name(self._target.name))
        self._grows = growing is not None
        self._private = private
        self._like = self._target if like is None else followed(like)
        self._replaced = self._permissions()
        self._published = False
        while (stream := self._open(wait)) is None:
            if take:
                self._part.unlink(missing_ok=True)
            elif not wait:
                raise Locked(f"another run is writing {self.path}")
        self.stream = stream
        if self._replaced is not None:
            self._replaced.give(stream.fileno(), all_bits=False)
        self.size = os.fstat(stream.fileno()).st_size

    def _permissions(self) -> Permissions | None:
        """The permissions that the file should have; None for those of the umask."""
        permissions = Permissions.of(self._like)
        if permissions is not None and self._private:
            return permissions._replace(mode=permissions.mode & 0o600, acl=None)
        return permissions

    def _open(self, wait: bool) -> io.FileIO | None:
        """Make and lock the part; None when another process has the lock, or had it until now."""
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
                # A part that a killed writer left may have readers, and one that it linked to the file is the file.
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
        """Open the part, or make it with no permission that the file will not have."""
        mode = 0o600 if self._private else 0o666
        if self._replaced is not None:
            mode = self._replaced.mode & 0o600
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | creating
        try:
            handle = os.open(self._part, flags, mode)
        except PermissionError:
            if creating or not self._part.exists():
                raise
            self._part.chmod(0o600)  # a killed writer left it, and the file is read-only
            handle = os.open(self._part, flags)
        return io.FileIO(handle, "r+")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._published and not (self._grows and self.size) and self._is(self.stream):
            self._part.unlink(missing_ok=True)
        self.stream.close()

    def _is(self, stream: io.FileIO, path: Path | None = None) -> bool:
        """Whether the file at `path`, by default the part's, is the one that was opened."""
        try:
            return os.path.samestat((path or self._part).stat(), os.fstat(stream.fileno()))
        except FileNotFoundError:
            return False

    def write(self, data: bytes | memoryview, /) -> int:
        """Append all bytes; returns their number."""
        size = write_all(self.stream, data)
        self.size += size
        return size

    def read(self, start: int = 0, size: int | None = None) -> Iterator[bytes]:
        """The bytes written so far, from `start` on, at most `size` of them, read back from the file."""
        end = self.size if size is None else start + size
        while piece := os.pread(self.stream.fileno(), min(PIECE_BYTES, end - start), start):
            yield piece
            start += len(piece)

    def truncate(self, size: int) -> None:
        """Forget all bytes behind the first `size`."""
        self.stream.truncate(size)
        self.size = size

    def publish(self, *, overwrite: bool = True, durable: bool = True) -> None:
        """Bring the bytes to the disk and give them their name; FileExistsError when it is taken, unless `overwrite`.

        Without `durable` they get their name before they are on the disk, so a failing machine may lose them.
        Without `overwrite`, a file system that has no hard links replaces a file that appears at that very moment.
        """
        if (permissions := self._permissions() or self._replaced) is not None:
            permissions.give(self.stream.fileno(), all_bits=True)
        if durable:
            os.fsync(self.stream.fileno())
        self._refuse_what_is_not_ours()
        if overwrite or not self._link():
            self._part.replace(self._target)
        self._published = True
        if durable:
            sync_directory(self._target.parent)

    def _refuse_what_is_not_ours(self) -> None:
        """OSError when the part is not what was written."""
        if not self._is(self.stream):
            raise OSError(errno.ESTALE, f"another program removed or replaced {self._part.name} meanwhile")
        if os.fstat(self.stream.fileno()).st_size != self.size:
            raise OSError(errno.ESTALE, f"another program wrote to {self._part.name} meanwhile")

    def _link(self) -> bool:
        """Whether the part got its name by a link, which never replaces a file."""
        try:
            os.link(self._part, self._target)
        except OSError as error:
            if error.errno in _NO_LINKS:
                return False
            raise
        self._part.unlink()
        return True


def write(path: Path, data: bytes, *, overwrite: bool = True, private: bool = False) -> None:
    """Write a whole file; FileExistsError when it exists, unless `overwrite`."""
    with Part(path, private=private, wait=True) as part:
        part.write(data)
        part.publish(overwrite=overwrite)


def sync_directory(directory: Path) -> None:
    """Bring new names in a directory to the disk; file systems that cannot sync a directory do it by themselves."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


def lock(path: Path, busy: str, *, hint: str | None = None, reason: str | None = None, patience: float = 0.0) -> int:
    """Lock a file, made with mode 0600 if needed, until the returned descriptor is closed or the process ends.

    Raises Locked with the message `busy`, the hint and the reason when another process still holds it after `patience`
    seconds.
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
    """Whether a process holds the lock on this file; it is held for an instant to find out."""
    try:
        with path.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
