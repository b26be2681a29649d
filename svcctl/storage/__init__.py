"""Storage: places that hold named objects. One protocol has the methods of all places.

    local.py    files under a directory
    s3.py       objects in a bucket of S3, or of a service with the same interface
    hdfs.py     files in a Hadoop file system; hdfs_probe.py checks whether it answers
    targets.py  opens the place of a target such as `out/a.csv`, `s3://bucket/a.csv` or `hdfs://host/a.csv`

An object appears under its name only when it is complete:

    with storage.create("2024/01/31.csv", overwrite=False) as sink:
        for chunk in chunks:
            sink.write(chunk)
        sink.complete()

If a writer abandons the object, fails or is killed, nothing changes under the name. A killed writer may leave a part
file or an unfinished upload. Both are hidden, and neither blocks the next writer.

A name is a path with `/` between its folders: `2024/01/31.csv`. Folders are created as needed. Sizes are in bytes.

Errors, with the object's address (`address`) in the message:

    UsageError         the request is impossible: the name is taken, the bucket does not exist, access is denied.
                       The same request will fail again.
    Locked             another process is writing the object (local files only).
    Unavailable        the storage does not answer, or fails. The same request may succeed later.
    IncompleteResult   a local file cannot be written completely, for example because the disk is full.

If a storage cannot be reached, the error is raised within about ten seconds. Several threads may use a storage at the
same time. Only one thread at a time may use a sink, or an iterator returned by `read`.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self

from svcctl.errors import Unavailable, UsageError

ACCESS_DENIED = "access-denied"
"""The `reason` of the UsageError if the storage refuses the credentials, or if their permissions are not enough."""


class Sink(Protocol):
    """An object that is being written. Leaving its `with` block abandons the object, unless the object is complete."""

    @abstractmethod
    def write(self, data: bytes | memoryview, /) -> None:
        """Append bytes. The caller may reuse the buffer afterwards. The use of memory does not grow with the object.

        An error may come from an earlier write. After an error, the object cannot be completed.
        """

    @abstractmethod
    def complete(self) -> None:
        """Make the whole object appear under its name, on durable storage. Afterwards, only `abandon` may be called.

        Without `overwrite`, raises UsageError if the name was taken in the meantime. If Unavailable is raised, the
        object exists either completely or not at all.
        """

    @abstractmethod
    def abandon(self) -> None:
        """Give up the object and remove its bytes. Never raises an error.

        Does nothing after `complete` or `abandon`.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()


class GrowingObject(Sink, Protocol):
    """An object that is being written, and whose bytes stay even if the writer abandons it, fails or is killed.

    Only `complete` makes the bytes durable. If the machine fails before that, bytes may be lost, so check their hash.
    """

    @abstractmethod
    def read(self, start: int, size: int) -> Iterator[bytes]:
        """Yield `size` bytes from the position `start`, in pieces.

        Near the end of the object, there may be fewer bytes.
        """

    @abstractmethod
    def truncate(self, size: int) -> None:
        """Drop all bytes after the first `size`."""


class Storage(Protocol):
    """A place that holds named objects. The constructor does not connect to the place."""

    @abstractmethod
    def create(self, name: str, *, overwrite: bool, part_of: str | None = None) -> Sink:
        """Begin to write an object. Without `overwrite`, raises UsageError if the object exists.

        With `overwrite`, an existing object stays until `complete`. In a file system, the new object gets the owner,
        group and permissions of the old one, as far as the process may set them. If the process cannot set all of them,
        nobody else gets access because of that. `part_of` names another object, of which this object is a part. If that
        object exists, the part gets the owner, group and permissions of that object. If the machine fails, a part may
        be damaged, because local parts are not fsynced.

        The bytes of two writers of the same name are never mixed. Without `overwrite`, if two writers complete at the
        same moment, only one succeeds. On S3, this is guaranteed only for small objects, and only if the service
        supports conditional requests. Otherwise the name is checked just before the object is completed, so the later
        of two writers may overwrite the object of the other.
        """

    def complete_all(self, sinks: Sequence[Sink]) -> None:
        """Complete several objects of this storage, which may cost less than one `complete` for each object.

        Afterwards, all objects are complete under their names, on durable storage. After an error, each object exists
        either completely or not at all.
        """
        for sink in sinks:
            sink.complete()

    def grow(self, name: str, part: str, *, overwrite: bool) -> GrowingObject | None:
        """Begin or resume an object whose bytes are kept under the name `part`.

        The method `names` never lists that name. Returns None if objects of this storage cannot grow. Only local files
        can grow.
        """
        return None

    @abstractmethod
    def size(self, name: str) -> int | None:
        """Return the size of an object in bytes; None if the object does not exist."""

    @abstractmethod
    def read(self, name: str) -> Iterator[bytes]:
        """Yield the content of an object, in pieces of at most a few MiB.

        Raises UsageError if the object does not exist.
        """

    def sha256(self, name: str, read: Callable[[int], None] | None = None) -> str:
        """Return the SHA-256 hash of an object's content, in hexadecimal.

        `read` is called with the size of each piece.
        """
        digest = hashlib.sha256()
        for piece in self.read(name):
            digest.update(piece)
            if read is not None:
                read(len(piece))
        return digest.hexdigest()

    @abstractmethod
    def sizes(self, folder: str = "") -> Iterator[tuple[str, int]]:
        """Yield the name and the size of each complete object in a folder and its subfolders, in no particular order.

        Yields nothing if the folder does not exist.
        """

    def names(self, folder: str = "") -> Iterator[str]:
        """Return the names of the complete objects in a folder and its subfolders, in no particular order."""
        return (name for name, _ in self.sizes(folder))

    def beginning(self, prefix: str) -> Iterator[str]:
        """Return the names of the complete objects that begin with `prefix`. Objects in subfolders are left out."""
        folder = prefix.rpartition("/")[0]
        return (name for name in self.names(folder) if name.startswith(prefix) and "/" not in name[len(prefix) :])

    @abstractmethod
    def remove(self, *names: str) -> None:
        """Remove objects. Names that do not exist are ignored. Folders stay."""

    @abstractmethod
    def folders(self, folder: str = "") -> Iterator[str]:
        """Return the names of the folders directly in a folder, without paths. A missing folder gives no names."""

    @abstractmethod
    def put_new(self, name: str, data: bytes) -> bool:
        """Store a small object in one step, unless its name is taken. Returns whether the object was stored.

        If several writers do this at the same moment, on any machines, only one gets True. On S3, this depends on the
        service, which may ignore the condition. If Unavailable is raised, the object exists either completely or not at
        all.
        """

    def remove_folder(self, name: str) -> None:
        """Remove an empty folder, if this storage has folders. Never raises an error."""
        return

    def remove_made_folders(self) -> None:
        """Remove the empty folders that were created for objects. Never raises an error."""
        return

    def remove_unfinished(self, folder: str) -> None:
        """Remove the part files that killed writers left directly in a folder. Only local files need this."""
        return

    @abstractmethod
    def address(self, name: str) -> str:
        """Return an object's address, as messages show it: `out/a.csv`, `s3://bucket/a.csv` or `hdfs://host/a.csv`."""


def exists(address: str, held: object = None) -> UsageError:
    """Return the error that every storage raises for a name that is taken.

    `held` is the content of the file, if known.
    """
    what = "" if held is None else f" and holds {held}"
    return UsageError(f"{address} already exists{what}", hint="move it away, or overwrite it with --force")


class AddressedFailure(Unavailable):
    """A failed operation on an object. `address` is the address of the object, and `cause` is the cause in words."""

    def __init__(self, address: str, cause: str, *, hint: str | None = None) -> None:
        super().__init__(f"{address}: {cause}", hint=hint)
        self.address = address
        self.cause = cause


class Absent(UsageError):
    """An object that does not exist."""


def absent(address: str) -> Absent:
    """Return the error that every storage raises if an object that is read does not exist."""
    return Absent(f"{address} does not exist")
