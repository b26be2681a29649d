"""Rows as csv in numbered files of a storage, each of which appears when it is whole.

A file's name follows from the job and the file's number, and the job saves how many files are whole, and before a file
is completed which rows it has. So a file whose completion was not saved is written again with the same rows, and
replaces itself, even when a process that was suspended completes it much later. A file is completed when it has its
size or its age, when the job is stopped, and when the job is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from svcctl.errors import SvcctlError, Unavailable
from svcctl.service.destinations import Destination, Memo
from svcctl.service.destinations.packing import PACKINGS, Counted, Packer
from svcctl.service.rendering import arrow
from svcctl.service.rendering.rows import CSV
from svcctl.storage import Sink, Storage

LEAST_ROOM = 64 * 1024
"""A file is full when it has less room than this, since a packer does not say how much it holds back."""


@dataclass(frozen=True, slots=True)
class _File:
    """The file being written: rows go through the packer and the counter into the sink."""

    sink: Sink
    counted: Counted
    packer: Packer


class Parts(Destination):
    """Files of a storage, called `name(0)`, `name(1)`, … and what the packing adds.

    A file has at most `size` bytes, unless a single row has more, and waits at most `age` seconds for its completion.
    """

    rows = CSV
    repeats = True

    def __init__(
        self,
        storage: Storage,
        name: Callable[[int], str],
        *,
        size: int,
        age: float,
        packing: str = "plain",
        password: str = "",
    ) -> None:
        self._storage = storage
        self._name = name
        self._size = size
        self.patience = age
        self._packing = PACKINGS[packing]
        self._password = password
        self._number = 0
        self._head = b""
        self._file: _File | None = None

    def open(self, sent: int, memo: Memo, head: bytes) -> int:
        self._number = memo.get("parts", 0)
        self._head = head
        return sent

    def room(self) -> int:
        left = self._size - (self._file.counted.size if self._file else len(self._head))
        return left if left >= LEAST_ROOM else 0

    def write(self, lines: pa.StringArray, row: int) -> None:
        with _retried():
            if self._file is None:
                self._file = self._create()
                self._file.packer.write(self._head)
            self._file.packer.write(arrow.text(lines))

    def _create(self) -> _File:
        name = self._name(self._number)
        sink = self._storage.create(name + self._packing.suffix, overwrite=True)
        counted = Counted(sink)
        return _File(sink, counted, self._packing.packer(counted, name.rpartition("/")[2], self._password))

    def commit(self) -> Memo:
        if self._file is not None:
            with _retried():
                self._file.packer.finish()
                self._file.sink.complete()
            self._file = None
            self._number += 1
        return {"parts": self._number}

    def close(self) -> None:
        if self._file is not None:
            self._file.counted.drop()
            self._file.sink.abandon()


@contextmanager
def _retried() -> Iterator[None]:
    """Make every error of the storage Unavailable: access to a bucket may be granted while the job keeps trying."""
    try:
        yield
    except SvcctlError as error:
        raise Unavailable(_reason_first(error.message)) from None


def _reason_first(message: str) -> str:
    """A failure of the storage with its address at the end, where narrow lists cut it."""
    address, colon, reason = message.partition(": ")
    return f"{reason} ({address})" if colon and "://" in address else message
