"""Rows as csv in numbered files, for destinations that keep files: a file appears under its name when it is whole.

A file's name is made of the job and the file's number, and what is saved with the job is how many files are whole. So
a file whose completion was not saved is written again, from the same row on, and replaces itself. A part is complete
when it has its size, when it has its age, when the job is stopped, and when the job is complete.
"""

from __future__ import annotations

import importlib
import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, ClassVar, Protocol

import pyarrow as pa

from svcctl.errors import Unavailable
from svcctl.service.destinations import Destination, Memo
from svcctl.service.rendering import arrow
from svcctl.service.rendering.rows import CSV

MEGABYTE = 1_000_000
LEAST_ROOM = 64 * 1024
"""A part is full when less than this is left of its size: what a compressor still holds back is not known."""


class Sink(Protocol):
    """A file at the destination while it is written."""

    def write(self, data: bytes | memoryview, /) -> object: ...


class Counted(io.RawIOBase):
    """A sink that knows how much it was given."""

    def __init__(self, sink: Sink) -> None:
        self._sink: Sink | None = sink
        self.size = 0

    def abandon(self) -> None:
        """Let what is still written go nowhere: an archive writes its end when it is thrown away."""
        self._sink = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        if self._sink is not None:
            self._sink.write(data)
        size = memoryview(data).nbytes
        self.size += size
        return size


Writer = tuple[Callable[[bytes | memoryview], object], Callable[[], object]]
"""How the rows of a part are written, and how the part is ended, before the file that it is in is."""


def plain(sink: Counted, name: str, password: str) -> Writer:
    return sink.write, lambda: None


def gzipped(sink: Counted, name: str, password: str) -> Writer:
    compressor = zlib.compressobj(6, wbits=31)
    return lambda data: sink.write(compressor.compress(data)), lambda: sink.write(compressor.flush())


def zipped(sink: Counted, name: str, password: str) -> Writer:
    """One file in an archive, encrypted by AES when there is a password."""
    archive: Any
    if password:
        pyzipper = importlib.import_module("pyzipper")  # it has no types
        archive = pyzipper.AESZipFile(sink, "w", compression=pyzipper.ZIP_DEFLATED, encryption=pyzipper.WZ_AES)
        archive.setpassword(password.encode())
    else:
        archive = zipfile.ZipFile(sink, "w", compression=zipfile.ZIP_DEFLATED)
    inside: IO[bytes] = archive.open(name, "w", force_zip64=True)

    def end() -> None:
        inside.close()
        archive.close()

    return inside.write, end


FORMATS = {"plain": ("", plain), "gzip": (".gz", gzipped), "zip": (".zip", zipped)}
"""By format, what a file's name ends with, and how it is written."""


class Parts(Destination):
    """What destinations of files have in common; `create` and `complete` are a destination's own."""

    rows = CSV
    failures: ClassVar[tuple[type[Exception], ...]] = (OSError,)
    """What the destination's library raises when the destination is at fault."""

    def __init__(self, *, size: int, age: float, format: str = "plain", password: str = "") -> None:
        self._size = size
        self.patience = age
        self._suffix, self._format = FORMATS[format]
        self._password = password
        self._number = 0
        self._head = b""
        self._sink: Counted | None = None
        self._writer: Writer = (lambda data: None, lambda: None)

    def name(self, number: int) -> str:
        """A part's name, before what its format adds."""
        raise NotImplementedError

    def create(self, name: str) -> Sink:
        """Begin a file, in place of one that has been there."""
        raise NotImplementedError

    def complete(self, name: str) -> None:
        """End the file that was begun, and make it appear."""
        raise NotImplementedError

    def open(self, sent: int, memo: Memo, head: bytes) -> int:
        self._number = memo.get("parts", 0)
        self._head = head
        return sent

    def room(self) -> int:
        left = self._size - (self._sink.size if self._sink else len(self._head))
        return left if left >= LEAST_ROOM else 0

    def write(self, lines: pa.StringArray, row: int) -> None:
        with self._explained():
            if self._sink is None:
                name = self.name(self._number)
                self._sink = Counted(self.create(name + self._suffix))
                self._writer = self._format(self._sink, name.rpartition("/")[2], self._password)
                self._writer[0](self._head)
            self._writer[0](arrow.text(lines))

    def commit(self) -> Memo:
        if self._sink is not None:
            with self._explained():
                self._writer[1]()
                self.complete(self.name(self._number) + self._suffix)
            self._sink = None
            self._number += 1
        return {"parts": self._number}

    def close(self) -> None:
        if self._sink is not None:
            self._sink.abandon()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except self.failures as error:
            # One line, without the debugging that libraries put below it.
            reason = " ".join(str(error).partition("\n")[0].split())[:500]
            raise Unavailable(reason or type(error).__name__) from None
