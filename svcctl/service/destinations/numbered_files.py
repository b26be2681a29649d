"""Delivery of rows as csv in numbered files of a storage. A file appears in the storage only when it is complete.

A file is completed when it reaches its maximum size or age, when the job is stopped, or when the job is complete. A new
file gets the number after the highest number in the storage. A new file never replaces another file.

Several jobs may use the same file names, even jobs of different services. So a job first claims the number of a file.
The claim for number 7 is the hidden file `.web_007.csv.claim.part`, which contains the ID of the job. The claim is
removed when the file `web_007.csv` is complete. Some storages accept the same claim from two writers. In such a
storage, claims work only between jobs of one process.

Before a file is completed, the job saves the number and the hash of the file, and the number of the file's last row. If
the service then dies, the next run of the job looks for a file with this number and hash. If such a file exists, it is
complete. Otherwise, the next run writes the file again with the same rows. A process that was suspended may try to
complete the file much later. This process then finds the file in the storage, and changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from threading import Lock
from weakref import WeakValueDictionary

import pyarrow as pa

from svcctl.errors import SvcctlError, Unavailable
from svcctl.io.files import PART_SUFFIX, derived_name
from svcctl.service.destinations import JobDestination, Memo
from svcctl.service.destinations.gzip_and_zip import PACKINGS, Counted, Packer
from svcctl.service.hosts.proxy import CheckingProxy
from svcctl.service.rendering import arrow
from svcctl.service.rendering.rows import CSV
from svcctl.storage import AddressedFailure, Sink, Storage

LEAST_ROOM = 64 * 1024
"""A file counts as full if fewer than this number of bytes are left until its maximum size.

The packer may hold back some bytes, which are added to the file later.
"""


MOST_PREPARED = 8
"""The maximum number of hashes that are saved for a file. Older hashes are dropped."""
_CLAIMS: WeakValueDictionary[str, Lock] = WeakValueDictionary()
"""The locks for claims. A claim is a hidden file that reserves a number for one job.

The keys are the addresses of the claims. A thread of this process holds the lock while it claims the number.
"""
_CLAIMS_LOCK = Lock()


@dataclass(frozen=True, slots=True)
class Names:
    """The names of files: `web_000.csv`, `web_001.csv`, … for the stem `web` and the extension `.csv`.

    With `plain`, file number 0 is named `web.csv`. Jobs that write a single file use this option.
    """

    stem: str
    extension: str
    plain: bool = False

    def name(self, number: int) -> str:
        return (
            f"{self.stem}{self.extension}" if self.plain and not number else f"{self.stem}_{number:03}{self.extension}"
        )

    def claim(self, number: int) -> str:
        folder, slash, file = self.name(number).rpartition("/")
        return f"{folder}{slash}{derived_name(file, prefix='.', suffix=f'.claim{PART_SUFFIX}')}"

    def next(self, storage: Storage) -> int:
        """Return the number after the highest file number in the storage. Packed and unpacked files both count."""
        suffixes = "|".join(re.escape(packing.suffix) for packing in PACKINGS.values())
        numbered = re.compile(rf"{re.escape(self.stem)}_([0-9]{{3,}}){re.escape(self.extension)}(?:{suffixes})")
        matches = map(numbered.fullmatch, storage.beginning(f"{self.stem}_"))
        return 1 + max((int(match[1]) for match in matches if match), default=-1)


@dataclass(frozen=True, slots=True)
class _File:
    """The file that is being written. Rows go through `packer` and `counted` to `sink`.

    `counted` counts and hashes the packed bytes. `sink` writes them to the storage. If `sink` is None, the storage
    already has the file, and the rows are dropped. `finished` is true if all bytes of the file are written.
    """

    sink: Sink | None
    counted: Counted
    packer: Packer
    finished: bool = False


class NumberedFiles(JobDestination):
    """Writes rows to files in a storage. The name of a file comes from `names`, followed by the suffix of the packing.

    A file has at most `size` bytes. Only a file with a single row may be larger. Each file is completed within `age`
    seconds. `proxy` is the proxy through which the storage connects. It is None if there is no such proxy.
    """

    rows = CSV
    repeats = True

    def __init__(
        self,
        job_id: str,
        storage: Storage,
        names: Names,
        *,
        size: int,
        age: float,
        packing: str = "plain",
        password: str = "",
        proxy: CheckingProxy | None = None,
    ) -> None:
        self._owner = job_id
        self._storage = storage
        self._names = names
        self._size = size
        self.patience = age
        self._packing = PACKINGS[packing]
        self._password = password
        self._proxy = proxy
        self._number = 0
        self._prepared: Sequence[str] = ()
        """The hashes that the current file may have. The list is empty if no commit of the file was prepared.

        An encrypted archive has different bytes each time it is written. So a file that was prepared several times has
        several hashes.
        """
        self._head = b""
        self._file: _File | None = None

    def open(self, sent: int, memo: Memo, head: bytes) -> int:
        self._number = memo.get("parts", 0)
        self._prepared = memo.get("sha256", ())
        self._owner = memo.get("owner", self._owner)
        self._head = head
        return sent

    def room(self) -> int:
        room = self._size - (self._file.counted.size if self._file else len(self._head))
        return room if room >= LEAST_ROOM else 0

    def write(self, lines: pa.StringArray, row: int, dates: pa.Int64Array) -> None:
        with _retried():
            if self._file is None:
                self._file = self._create()
                self._file.packer.write(self._head)
            self._file.packer.write(arrow.text(lines))

    def _create(self) -> _File:
        sink = None
        if not (is_stored := self._is_stored()):
            number, self._number = self._number, self._reserved_number()
            if number != self._number:
                self._prepared = ()
            sink = self._storage.create(self._path, overwrite=False)
        counted = Counted(sink)
        inner = self._names.name(self._number).rpartition("/")[2]
        return _File(sink, counted, self._packing.packer(counted, inner, self._password), finished=is_stored)

    def _is_stored(self) -> bool:
        """Return whether the storage has a file with the current number and with one of the hashes in `_prepared`."""
        if not self._prepared or self._storage.size(self._path) is None:
            return False
        return self._storage.sha256(self._path) in self._prepared

    @property
    def _path(self) -> str:
        return self._names.name(self._number) + self._packing.suffix

    def _reserved_number(self) -> int:
        """Reserve a number that no file has, and return the number.

        A file for which `prepare` was called keeps its number. A new file gets the number after the highest number in
        the storage.
        """
        number = self._number
        if not self._prepared and not (self._names.plain and number == 0):
            number = max(number, self._names.next(self._storage))
        while not self._claim(number):
            number = max(number + 1, self._names.next(self._storage))
        return number

    def _claim(self, number: int) -> bool:
        """Try to reserve a number with a claim, which is a hidden file.

        Return True if this job has the claim, and the storage has no file with this number.
        """
        claim = self._names.claim(number)
        with _CLAIMS_LOCK:
            lock = _CLAIMS.setdefault(self._storage.address(claim), Lock())
        with lock:
            if self._storage.size(claim) is None:
                self._storage.put_new(claim, self._owner.encode())
            is_mine = b"".join(self._storage.read(claim)) == self._owner.encode()
        if is_mine and self._storage.size(self._names.name(number) + self._packing.suffix) is not None:
            self._storage.remove(claim)
            return False
        return is_mine

    def prepare(self) -> Memo:
        if self._file is None:
            return {}
        if not self._file.finished:
            with _retried():
                self._file.packer.finish()
            self._file = replace(self._file, finished=True)
            digest = self._file.counted.sha256.hexdigest()
            if digest not in self._prepared:
                self._prepared = [*self._prepared, digest][-MOST_PREPARED:]
        return {"parts": self._number, "sha256": self._prepared, "owner": self._owner}

    def commit(self) -> Memo:
        self.prepare()
        if self._file is not None:
            if self._file.sink is not None:
                with _retried():
                    self._file.sink.complete()
            with suppress(SvcctlError):  # a claim that remains next to its complete file does no harm
                self._storage.remove(self._names.claim(self._number))
            self._file, self._prepared = None, ()
            self._number += 1
        return {"parts": self._number}

    def close(self) -> None:
        if self._file is not None and self._file.sink is not None:
            self._file.counted.drop()
            self._file.sink.abandon()
            if not self._prepared:
                with suppress(SvcctlError):
                    self._storage.remove(self._names.claim(self._number))
        if self._proxy is not None:
            self._proxy.close()


@contextmanager
def _retried() -> Iterator[None]:
    """Turn every error of the storage into Unavailable, so that the job retries.

    The job also retries if the storage refuses access, because access may be granted later. The message ends with the
    address. A narrow table on a terminal cuts off the end of the message, and the address is the least important part.
    """
    try:
        yield
    except AddressedFailure as error:
        raise Unavailable(f"{error.cause} ({error.address})") from None
    except SvcctlError as error:
        raise Unavailable(error.message) from None
