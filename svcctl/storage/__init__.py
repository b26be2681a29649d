"""Storages, which hold named objects: local directories, S3 buckets and Hadoop file systems.

All storages have the same methods, which the protocol `Storage` describes.

    local.py    files under a directory
    s3.py       objects in a bucket of S3, or of a service with the same interface
    hdfs.py     files in a Hadoop file system; hdfs_probe.py checks whether the file system answers
    targets.py  opens the storage of a target such as `out/a.csv`, `s3://bucket/a.csv` or `hdfs://host/a.csv`

An object appears under its name only when it is complete:

    with storage.create("2024/01/31.csv", overwrite=False) as sink:
        for chunk in chunks:
            sink.write(chunk)
        sink.complete()

If a writer abandons the object, fails or is killed, an older object with the same name stays unchanged. A killed writer
may leave an incomplete file or an unfinished upload. Such leftovers are hidden, and do not block the next writer.

A name is a path with `/` between its folders, such as `2024/01/31.csv`. Missing folders are created. Sizes are in
bytes.

The methods raise these errors, with the object's address (see `address`) in the message:

    UsageError         the request is impossible: the name is taken, the bucket does not exist, access is denied.
                       The same request will fail again.
    Locked             another process is writing the object (local files only).
    Unavailable        the storage does not answer, or fails. The same request may succeed later.
    IncompleteResult   a local file cannot be written completely, for example because the disk is full.

If a storage cannot be reached, the error is raised within about ten seconds. Several threads may use a storage at the
same time. A sink, and an iterator that `read` has returned, may be used by only one thread at a time.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self

from svcctl.errors import Unavailable, UsageError

ACCESS_DENIED = "access-denied"
"""The `reason` of an error if the storage refuses the credentials, or denies access to an object."""


class Sink(Protocol):
    """An object that is being written. At the end of the `with` block, an incomplete object is abandoned."""

    @abstractmethod
    def write(self, data: bytes | memoryview, /) -> None:
        """Append bytes to the object. The caller may reuse the buffer after the call.

        The memory use does not grow with the size of the object. An error may be caused by the data of an earlier call.
        After an error, the object cannot be completed.
        """

    @abstractmethod
    def complete(self) -> None:
        """Store the whole object safely under its name. After this call, only `abandon` may be called.

        Raises UsageError if the object was created without `overwrite`, and another writer has taken the name since
        then. If Unavailable is raised, the object exists either completely or not at all.
        """

    @abstractmethod
    def abandon(self) -> None:
        """Remove the bytes of the incomplete object. Never raises an error.

        Does nothing after `complete` or after an earlier call of `abandon`.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()


class GrowingObject(Sink, Protocol):
    """An object that is being written over several runs.

    The bytes of the object are kept even if the writer abandons the object, fails or is killed. If the machine fails
    before `complete`, bytes may be lost. So a writer that resumes the object must check the hash of the bytes.
    """

    @abstractmethod
    def read(self, start: int, size: int) -> Iterator[bytes]:
        """Yield `size` bytes in pieces, beginning at the position `start`.

        If the object has fewer bytes, yield the bytes up to its end.
        """

    @abstractmethod
    def truncate(self, size: int) -> None:
        """Remove all bytes after the first `size` bytes."""


class Storage(Protocol):
    """A storage, which holds named objects. The constructor does not open a connection."""

    @abstractmethod
    def create(self, name: str, *, overwrite: bool, part_of: str | None = None) -> Sink:
        """Begin to write an object. Without `overwrite`, raises UsageError if the object exists.

        With `overwrite`, an existing object is kept until the new object is complete. In a file system, the new object
        gets the owner, group and permissions of the old object. If the process may not set all three, it reduces the
        permissions, so that no other user gets new access.

        `part_of` is the name of another object, into which this object will be copied later. If the other object
        exists, this object gets the owner, group and permissions of the other object. An object with `part_of` may be
        damaged if the machine fails, because local files of this kind are not fsynced.

        Two writers of the same name never mix their bytes. If both complete at the same moment without `overwrite`,
        only one writer succeeds. S3 guarantees this only for small objects, and only if the service supports
        conditional requests. Without this guarantee, a writer may overwrite an object that was completed at the same
        moment.
        """

    def complete_all(self, sinks: Sequence[Sink]) -> None:
        """Complete several objects of this storage. This may be faster than one call of `complete` for each object.

        After this call, all objects are safely stored under their names. After an error, each object exists either
        completely or not at all.
        """
        for sink in sinks:
            sink.complete()

    def grow(self, name: str, part: str, *, overwrite: bool) -> GrowingObject | None:
        """Begin or resume an object that may be written over several runs.

        The bytes are kept under the name `part` until the object is complete. The method `names` never returns `part`.
        Only local files can be written in this way. Return None if the storage cannot do this.
        """
        return None

    @abstractmethod
    def size(self, name: str) -> int | None:
        """Return the size of an object in bytes. Return None if the object does not exist."""

    @abstractmethod
    def read(self, name: str) -> Iterator[bytes]:
        """Yield the content of an object, in pieces of at most a few MiB.

        Raises UsageError if the object does not exist.
        """

    def sha256(self, name: str, read: Callable[[int], None] | None = None) -> str:
        """Return the SHA-256 hash of an object's content, in hexadecimal.

        The function `read`, if given, reports the progress: it is called with the size of each piece of the content.
        """
        digest = hashlib.sha256()
        for piece in self.read(name):
            digest.update(piece)
            if read is not None:
                read(len(piece))
        return digest.hexdigest()

    @abstractmethod
    def sizes(self, folder: str = "") -> Iterator[tuple[str, int]]:
        """Yield the name and the size of each complete object in a folder and its subfolders, in any order.

        Yields nothing if the folder does not exist.
        """

    def names(self, folder: str = "") -> Iterator[str]:
        """Return the names of the complete objects in a folder and its subfolders, in any order."""
        return (name for name, _ in self.sizes(folder))

    def beginning(self, prefix: str) -> Iterator[str]:
        """Return the names that begin with `prefix`. Only complete objects are included.

        `prefix` may contain a folder, as in `logs/2024`. Objects in subfolders of this folder are left out.
        """
        folder = prefix.rpartition("/")[0]
        return (name for name in self.names(folder) if name.startswith(prefix) and "/" not in name[len(prefix) :])

    @abstractmethod
    def remove(self, *names: str) -> None:
        """Remove objects. Missing objects are ignored. Folders are not removed."""

    @abstractmethod
    def folders(self, folder: str = "") -> Iterator[str]:
        """Return the names of the direct subfolders of a folder, without paths. A missing folder has no subfolders."""

    @abstractmethod
    def put_new(self, name: str, data: bytes) -> bool:
        """Store a small object in one step, if there is no object with this name. Return whether the object was stored.

        If several writers call this method at the same moment, on any machines, only one of them gets True. An S3
        service that ignores conditional requests does not guarantee this. If Unavailable is raised, the object exists
        either completely or not at all.
        """

    def remove_folder(self, name: str) -> None:
        """Remove a folder if it is empty. Never raises an error. Does nothing in a storage without folders."""
        return

    def remove_made_folders(self) -> None:
        """Remove the folders that this storage has created and that are empty now. Never raises an error."""
        return

    def remove_unfinished(self, folder: str) -> None:
        """Remove the incomplete files that killed writers left in a folder, but not in its subfolders.

        Only the storage of local files needs this method.
        """
        return

    @abstractmethod
    def address(self, name: str) -> str:
        """Return the address of an object for messages: `out/a.csv`, `s3://bucket/a.csv` or `hdfs://host/a.csv`."""


def exists(address: str, held: object = None) -> UsageError:
    """Return the error for an object that already exists. `address` is the address of the object.

    `held` describes the content of the object. It is None if the content is not known.
    """
    what = "" if held is None else f" and holds {held}"
    return UsageError(f"{address} already exists{what}", hint="move it away, or overwrite it with --force")


class AddressedFailure(Unavailable):
    """Raised if an operation on an object fails.

    `address` is the address of the object, and `cause` is the cause in words.
    """

    def __init__(self, address: str, cause: str, *, hint: str | None = None) -> None:
        super().__init__(f"{address}: {cause}", hint=hint)
        self.address = address
        self.cause = cause


class Absent(UsageError):
    """Raised if an object does not exist."""


def absent(address: str) -> Absent:
    """Return the error for an object that does not exist. `address` is the address of the object."""
    return Absent(f"{address} does not exist")
