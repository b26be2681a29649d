"""Storage: places that hold named objects, behind one protocol.

    local.py    files under a directory
    s3.py       objects in a bucket of S3, or of a service with the same interface
    hdfs.py     files in a Hadoop file system; hdfs_probe.py finds out whether it answers
    targets.py  opens the place that `out/a.csv`, `s3://bucket/a.csv` or `hdfs://host/a.csv` names

An object appears under its name when it is complete, and never before:

    with storage.create("2024/01/31.csv", overwrite=False) as sink:
        for chunk in chunks:
            sink.write(chunk)
        sink.complete()

A writer that abandons the object, fails or is killed leaves no object under the name, or the old one if there was one.
What a killed writer leaves behind (a part file, an unfinished upload) is hidden and does not block the next writer.

A name is a path with `/` between its folders: `2024/01/31.csv`. Folders are made as needed. Sizes are in bytes.

Errors, with the object's address (`address`) in the message:

    UsageError         the request cannot be carried out as given: the name is taken, the bucket does not exist,
                       access is denied. The same request fails again.
    Locked             another process is writing the object (local files only).
    Unavailable        the storage does not answer, or fails. The same request may succeed later.
    IncompleteResult   a local file cannot be written to its end, because the disk is full for example.

A storage that cannot be reached is reported within about ten seconds. A storage may be used by several threads at once;
a sink, or an iterator that reads, by one thread at a time.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterator
from types import TracebackType
from typing import Protocol, Self

from svcctl.errors import Unavailable, UsageError


class Sink(Protocol):
    """An object being written. Leaving a `with` block abandons the object, unless it is complete."""

    @abstractmethod
    def write(self, data: bytes | memoryview, /) -> None:
        """Append bytes. The buffer may be reused afterwards. Memory is bounded, whatever the size of the object.

        An error may be that of an earlier write; the object cannot be completed then.
        """

    @abstractmethod
    def complete(self) -> None:
        """Make the object appear whole under its name, on durable storage. The last call but for `abandon`.

        Raises UsageError when the name was taken meanwhile and `overwrite` was not given. After Unavailable the object
        is there whole or not at all.
        """

    @abstractmethod
    def abandon(self) -> None:
        """Give up the object and clean up behind it. Raises nothing; does nothing after `complete` or `abandon`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()


class Growing(Sink, Protocol):
    """An object whose bytes so far outlive their writer: `abandon`, a failure and a kill keep what was written.

    A failing machine may lose bytes, since only `complete` brings them to durable storage: check them by their hash.
    """

    @abstractmethod
    def read(self, start: int, size: int) -> Iterator[bytes]:
        """`size` bytes from `start`, or as many as there are, in pieces."""

    @abstractmethod
    def truncate(self, size: int) -> None:
        """Forget all bytes behind the first `size`."""


class Storage(Protocol):
    """A place that holds named objects. The constructor connects to nothing."""

    @abstractmethod
    def create(self, name: str, *, overwrite: bool, part_of: str | None = None) -> Sink:
        """Begin an object. UsageError when it exists, unless `overwrite`; then the old one stays until `complete`.

        In a file system the object gets the owner, group and permissions of the old one, as far as the process may set
        them; what it cannot set opens the object to nobody. A part of another object, `part_of`, has those of that one
        instead, if it exists. A part may be damaged when the machine fails: local parts are not fsynced.

        Two writers of one name never mix their bytes. Without `overwrite`, of two that complete at the same moment
        only one succeeds. S3 can promise that only for small objects, and if the service heeds conditions; otherwise
        it only checks before it completes an object, so the last of the two wins.
        """

    def grow(self, name: str, part: str, *, overwrite: bool) -> Growing | None:
        """Begin an object, or resume one, whose bytes so far are in `part`, a name that `names` never lists.

        None where objects cannot grow: only local files can.
        """
        return None

    @abstractmethod
    def size(self, name: str) -> int | None:
        """The size of an object; None when there is none."""

    @abstractmethod
    def read(self, name: str) -> Iterator[bytes]:
        """The content of an object in pieces of at most a few MiB. UsageError when there is none."""

    def sha256(self, name: str) -> str:
        """The hash of an object's content, in hexadecimal."""
        digest = hashlib.sha256()
        for piece in self.read(name):
            digest.update(piece)
        return digest.hexdigest()

    @abstractmethod
    def sizes(self, folder: str = "") -> Iterator[tuple[str, int]]:
        """The names and sizes of the complete objects below a folder, at any depth, in no particular order.

        Yields nothing if there is no such folder.
        """

    def names(self, folder: str = "") -> Iterator[str]:
        """The names of the complete objects below a folder, at any depth, in no particular order."""
        return (name for name, _ in self.sizes(folder))

    def beginning(self, prefix: str) -> Iterator[str]:
        """The names of the complete objects that begin with `prefix`, in its folder and none below."""
        folder = prefix.rpartition("/")[0]
        return (name for name in self.names(folder) if name.startswith(prefix) and "/" not in name[len(prefix) :])

    @abstractmethod
    def remove(self, *names: str) -> None:
        """Remove objects; those that are not there do not matter. Folders stay."""

    @abstractmethod
    def folders(self, folder: str = "") -> Iterator[str]:
        """The names, without their paths, of the folders directly in a folder; nothing if there is no such folder."""

    @abstractmethod
    def put_new(self, name: str, data: bytes) -> bool:
        """Store a small object whole unless there is one of that name; returns whether it was stored.

        Of several writers at one moment, on any machines, only one gets True: on S3 that is up to the service, which
        may ignore the condition. After Unavailable the object is there whole or not at all.
        """

    def remove_folder(self, name: str) -> None:
        """Remove a folder if nothing is in it, where storage has folders; raises nothing."""
        return

    def remove_made_folders(self) -> None:
        """Remove the folders that were made for objects, where nothing is in them; raises nothing."""
        return

    def remove_unfinished(self, folder: str) -> None:
        """Remove what killed writers left directly in a folder, where storage shows it."""
        return

    @abstractmethod
    def address(self, name: str) -> str:
        """How a person writes the object: `out/a.csv`, `s3://bucket/a.csv`, `hdfs://host/a.csv`."""


def exists(address: str, held: object = None) -> UsageError:
    """The error of every storage when a name is taken, with what the file holds if that is known."""
    what = "" if held is None else f" and holds {held}"
    return UsageError(f"{address} already exists{what}", hint="move it away, or overwrite it with --force")


class AddressedFailure(Unavailable):
    """An operation on an object failed: the `address` of the object, and the `cause` in words."""

    def __init__(self, address: str, cause: str, *, hint: str | None = None) -> None:
        super().__init__(f"{address}: {cause}", hint=hint)
        self.address = address
        self.cause = cause


class Absent(UsageError):
    """There is no such object."""


def absent(address: str) -> Absent:
    """The error of every storage when there is nothing to read."""
    return Absent(f"{address} does not exist")
