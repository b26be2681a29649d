"""Storage: places that hold named objects, behind one protocol.

    local.py    files under a directory
    s3.py       objects in a bucket of S3, or of a service with the same interface
    hdfs.py     files in a Hadoop file system; hdfs_probe.py checks whether it answers
    targets.py  opens the place of a target such as `out/a.csv`, `s3://bucket/a.csv` or `hdfs://host/a.csv`

An object appears under its name only when it is complete:

    with storage.create("2024/01/31.csv", overwrite=False) as sink:
        for chunk in chunks:
            sink.write(chunk)
        sink.complete()

A writer that abandons the object, fails or is killed leaves the name as it was before. A killed writer may leave a part
file or an unfinished upload, which is hidden and does not block the next writer.

A name is a path with `/` between its folders: `2024/01/31.csv`. Folders are created as needed. Sizes are in bytes.

Errors, with the object's address (`address`) in the message:

    UsageError         the request is impossible: the name is taken, the bucket does not exist, access is denied.
                       The same request will fail again.
    Locked             another process is writing the object (local files only).
    Unavailable        the storage does not answer, or fails. The same request may succeed later.
    IncompleteResult   a local file cannot be written completely, for example because the disk is full.

An unreachable storage is reported within about ten seconds. Several threads may use a storage at the same time. A sink,
and an iterator that reads, may be used by one thread at a time.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self

from svcctl.errors import Unavailable, UsageError

ACCESS_DENIED = "access-denied"
"""The reason of a UsageError when the storage refuses the credentials, or they are not enough."""


class Sink(Protocol):
    """An object being written. Leaving its `with` block abandons the object, unless it is complete."""

    @abstractmethod
    def write(self, data: bytes | memoryview, /) -> None:
        """Append bytes. The buffer may be reused afterwards. Memory is bounded, whatever the size of the object.

        An error may belong to an earlier write; the object cannot be completed then.
        """

    @abstractmethod
    def complete(self) -> None:
        """Make the whole object appear under its name, on durable storage. Only `abandon` may be called afterwards.

        UsageError if the name was taken in the meantime, without `overwrite`. After Unavailable, the object either
        exists as a whole or not at all.
        """

    @abstractmethod
    def abandon(self) -> None:
        """Give up the object and remove its bytes. Raises nothing; does nothing after `complete` or `abandon`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()


class GrowingObject(Sink, Protocol):
    """An object being written whose bytes survive its writer, whether that abandons the object, fails or is killed.

    Only `complete` makes the bytes durable. If the machine fails before, some may be lost, so check them by their hash.
    """

    @abstractmethod
    def read(self, start: int, size: int) -> Iterator[bytes]:
        """`size` bytes from `start`, or fewer at the end of the object, in pieces."""

    @abstractmethod
    def truncate(self, size: int) -> None:
        """Drop all bytes after the first `size`."""


class Storage(Protocol):
    """A place that holds named objects. The constructor does not connect to it."""

    @abstractmethod
    def create(self, name: str, *, overwrite: bool, part_of: str | None = None) -> Sink:
        """Begin to write an object. UsageError if it exists, unless `overwrite`.

        With `overwrite`, an existing object stays until `complete`. In a file system, the new object gets the owner,
        group and permissions of the old one, as far as the process may set them; what it cannot set never gives access
        to others. A part of another object, named by `part_of`, takes these from that object instead, if it exists. A
        failing machine may damage a part: local parts are not fsynced.

        Two writers of one name never mix their bytes. Without `overwrite`, only one of two writers that complete at the
        same moment succeeds. On S3, this is guaranteed only for small objects, and only if the service supports
        conditional requests. Otherwise the name is checked just before the object is completed, so the last of two
        writers wins.
        """

    def complete_all(self, sinks: Sequence[Sink]) -> None:
        """Complete objects of this storage. When it returns, all of them are whole under their names, on durable
        storage; after an error, each of them is there whole or not at all. It may cost less than one `complete` each.
        """
        for sink in sinks:
            sink.complete()

    def grow(self, name: str, part: str, *, overwrite: bool) -> GrowingObject | None:
        """Begin or resume an object whose bytes are kept in `part`, a name that `names` never lists.

        None if objects of this storage cannot grow; only local files can.
        """
        return None

    @abstractmethod
    def size(self, name: str) -> int | None:
        """The size of an object in bytes; None if it does not exist."""

    @abstractmethod
    def read(self, name: str) -> Iterator[bytes]:
        """The content of an object, in pieces of at most a few MiB. UsageError if it does not exist."""

    def sha256(self, name: str, read: Callable[[int], None] | None = None) -> str:
        """The SHA-256 hash of an object's content, in hexadecimal. `read` is called with the bytes of each piece."""
        digest = hashlib.sha256()
        for piece in self.read(name):
            digest.update(piece)
            if read is not None:
                read(len(piece))
        return digest.hexdigest()

    @abstractmethod
    def sizes(self, folder: str = "") -> Iterator[tuple[str, int]]:
        """The names and sizes of the complete objects in a folder and its subfolders, in no particular order.

        Yields nothing if the folder does not exist.
        """

    def names(self, folder: str = "") -> Iterator[str]:
        """The names of the complete objects in a folder and its subfolders, in no particular order."""
        return (name for name, _ in self.sizes(folder))

    def beginning(self, prefix: str) -> Iterator[str]:
        """The names of the complete objects that begin with `prefix`, without those in subfolders."""
        folder = prefix.rpartition("/")[0]
        return (name for name in self.names(folder) if name.startswith(prefix) and "/" not in name[len(prefix) :])

    @abstractmethod
    def remove(self, *names: str) -> None:
        """Remove objects. Names that do not exist are ignored. Folders stay."""

    @abstractmethod
    def folders(self, folder: str = "") -> Iterator[str]:
        """The names, without paths, of the folders directly in a folder; none if it does not exist."""

    @abstractmethod
    def put_new(self, name: str, data: bytes) -> bool:
        """Store a small object as a whole, unless its name is taken; returns whether it was stored.

        If several writers do this at the same moment, on any machines, only one gets True. On S3, this depends on the
        service, which may ignore the condition. After Unavailable, the object either exists as a whole or not at all.
        """

    def remove_folder(self, name: str) -> None:
        """Remove an empty folder, if this storage has folders. Raises nothing."""
        return

    def remove_made_folders(self) -> None:
        """Remove the empty folders that were created for objects. Raises nothing."""
        return

    def remove_unfinished(self, folder: str) -> None:
        """Remove the parts that killed writers left directly in a folder, if this storage shows them."""
        return

    @abstractmethod
    def address(self, name: str) -> str:
        """The address of an object for people: `out/a.csv`, `s3://bucket/a.csv` or `hdfs://host/a.csv`."""


def exists(address: str, held: object = None) -> UsageError:
    """The error of every storage for a name that is taken; `held` says what the file holds, if known."""
    what = "" if held is None else f" and holds {held}"
    return UsageError(f"{address} already exists{what}", hint="move it away, or overwrite it with --force")


class AddressedFailure(Unavailable):
    """A failed operation on an object: the `address` of the object, and the `cause` in words."""

    def __init__(self, address: str, cause: str, *, hint: str | None = None) -> None:
        super().__init__(f"{address}: {cause}", hint=hint)
        self.address = address
        self.cause = cause


class Absent(UsageError):
    """An object that does not exist."""


def absent(address: str) -> Absent:
    """The error of every storage for reading an object that does not exist."""
    return Absent(f"{address} does not exist")
