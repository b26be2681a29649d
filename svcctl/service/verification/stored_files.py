"""The check of files on S3 or HDFS: each file is read back and compared with the rows that a job delivered.

The SHA-256 hash of each file is also compared with the hash in the log. So the check can prove that a file is correct
even if the rows of the file cannot be produced again.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import tempfile
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import wait
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from svcctl.api.destinations import Destination, text_of
from svcctl.errors import CredentialsError, Unavailable, UsageError
from svcctl.io.request_threads import in_thread
from svcctl.service.hosts.allowed_hosts import AllowedHosts
from svcctl.service.hosts.proxy import CheckingProxy
from svcctl.service.verification import DeliveredJob, DeliveryFinding, FaultKind
from svcctl.service.verification.comparison import ExpectedCursor
from svcctl.service.verification.file_rows import FileComparison, FileText
from svcctl.service.verification.findings import FaultLog
from svcctl.storage import ACCESS_DENIED, Storage

if TYPE_CHECKING:
    from svcctl.service.jobs.step_log import FileEntry

T = TypeVar("T")
PIECE_BYTES = 1 << 20
POLL_SECONDS = 0.1
"""The maximum number of seconds that a check still waits for the storage after the check was stopped."""
SUFFIXES = {"plain": "", "gzip": ".gz", "zip": ".zip"}
"""The endings of file names, by the value of the destination's parameter `format`."""


@dataclass(frozen=True, slots=True)
class FilesOfJob:
    """The storage that a job writes to, and the parts of its file names.

    For example, `web_000.csv` has the stem `web` and the extension `.csv`.
    """

    storage: Storage
    stem: str
    extension: str
    packing: str = "plain"
    password: str = field(default="", repr=False)
    single: bool = False
    proxy: CheckingProxy | None = None

    def name(self, number: int) -> str:
        of_number = "" if self.single and not number else f"_{number:03}"
        return f"{self.stem}{of_number}{self.extension}{SUFFIXES[self.packing]}"

    def numbered(self) -> Iterator[tuple[str, int]]:
        """Yield the name and the number of each numbered file in the storage, whether packed or not."""
        ending = f"{re.escape(self.extension)}(?:{'|'.join(map(re.escape, SUFFIXES.values()))})"
        pattern = re.compile(rf"{re.escape(self.stem)}_([0-9]{{3,}}){ending}")
        for name in self.storage.beginning(f"{self.stem}_"):
            if match := pattern.fullmatch(name):
                yield name, int(match[1])

    def close(self) -> None:
        if self.proxy is not None:
            self.proxy.close()


def of_s3(job: DeliveredJob, allowed: AllowedHosts) -> FilesOfJob:
    from svcctl.storage.s3 import DEFAULT_REGION, S3, Keys, endpoint_of

    destination = Destination(job.type, job.params)
    key, region = text_of(destination, "aws.accesskey"), text_of(destination, "aws.region", DEFAULT_REGION)
    endpoint = text_of(destination, "aws.endpoint") or endpoint_of(region)
    proxy = None if allowed.unlimited else CheckingProxy(allowed)
    keys = Keys(key, text_of(destination, "aws.secretkey")) if key else None
    return FilesOfJob(
        S3(text_of(destination, "aws.bucket"), keys=keys, region=region, endpoint=endpoint, proxy=proxy),
        text_of(destination, "s3.fileName", job.job_id),
        ".csv",
        text_of(destination, "format"),
        text_of(destination, "file.password"),
        text_of(destination, "multiplefile") == "false",
        proxy,
    )


def of_hdfs(job: DeliveredJob, allowed: AllowedHosts) -> FilesOfJob:
    """Return the files of a job with the destination HDFS.

    If the allowed hosts are limited, the NameNode must be listed by name or address.
    """
    from svcctl.storage.hdfs import Hdfs

    destination = Destination(job.type, job.params)
    url, address = text_of(destination, "fs.defaultFS"), None
    if not allowed.unlimited:
        host = urlsplit(url)
        addresses = allowed.addresses(host.hostname or "", host.port or 0, listed=True)
        address = min(addresses, key=lambda text: ":" in text)
    return FilesOfJob(Hdfs(url, address=address), *posixpath.splitext(text_of(destination, "file").lstrip("/")))


def files_of(job: DeliveredJob, allowed: AllowedHosts) -> FilesOfJob:
    return of_s3(job, allowed) if job.type == "s3" else of_hdfs(job, allowed)


def check_files(
    job: DeliveredJob, cursor: ExpectedCursor, log: FaultLog, allowed: AllowedHosts, stopped: Callable[[], bool]
) -> Generator[None]:
    """Compare the files of a job with its expected rows. Yields from time to time.

    Raises Unavailable if the storage does not answer. Raises CredentialsError if the storage denies access.
    """
    with _explained(), closing(files_of(job, allowed)) as files:
        check = _Check(job, files, cursor, log, stopped)
        for file in job.files:
            yield from check.compare(file)
        check.pass_unfiled(job.sent)
        check.find_foreign()


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (UsageError, Unavailable) as error:
        if error.reason == ACCESS_DENIED:
            raise CredentialsError(error.message) from None
        raise Unavailable(error.message) from None


class _Check:
    """The check of a job's files. The files are checked one after another."""

    def __init__(
        self,
        job: DeliveredJob,
        files: FilesOfJob,
        cursor: ExpectedCursor,
        log: FaultLog,
        stopped: Callable[[], bool],
    ) -> None:
        self._job = job
        self._files = files
        self._cursor = cursor
        self._log = log
        self._stopped = stopped
        self._expected_hashes = job.expected_hashes()

    def compare(self, file: FileEntry) -> Iterator[None]:
        """Compare a file with its expected rows. Yields from time to time."""
        self.pass_unfiled(file.first)
        name = self._files.name(file.number)
        if self._answer(lambda: self._files.storage.size(name)) is None or self._is_of_other_job(file, name):
            self._miss(file, name)
            return
        date_before = self._cursor.last_date
        self._cursor.begin()
        sha256, comparison = hashlib.sha256(), FileComparison(file, name, self._cursor, self._log, self._job.header)
        stored = self._hashed(name, sha256.update)
        with closing(stored), closing(self._unpacked(stored)) as pieces:
            yield from comparison.compare(FileText(pieces))
            deque(stored, maxlen=0)  # reads the rest of the file, so that it is hashed too
        if sha256.hexdigest() not in file.sha256:
            self._log.tally.not_reproducible += comparison.not_reproducible
            if not comparison.has_faults:
                rows = "but its rows cannot be compared" if comparison.not_reproducible else "with the same rows"
                self._log.tally.notes.append(f"{name} has other bytes than were delivered, {rows}")
                dates = self._cursor.passed_dates
                self._fault(FaultKind.ALTERED, file.first, file.end, name, *dates, before=date_before)

    def _is_of_other_job(self, file: FileEntry, name: str) -> bool:
        """Whether another job has written the file.

        After the file of this job was removed, another job may write a file with the same number.
        """
        hashes = self._expected_hashes.get(file.number, ())
        return len(hashes) > 0 and self._answer(lambda: self._files.storage.sha256(name)) in hashes

    def _miss(self, file: FileEntry, name: str) -> None:
        """Count the rows of a file that does not exist.

        Old rows are counted as no longer there. All other rows are counted as missing.
        """
        for rows in self._cursor.take(file.end):
            for part, is_old in self._cursor.by_age(rows):
                if is_old:
                    self._log.tally.no_longer_there += part.end - part.first
                else:
                    self._fault(FaultKind.MISSING, part.first, part.end, name, *part.range_of_dates())

    def pass_unfiled(self, row: int) -> None:
        """Move past the expected rows before the row number `row`.

        These rows are not in any file of the log, so they cannot be checked.
        """
        if row > self._cursor.row:
            self._log.tally.not_reproducible += row - self._cursor.row
            self._log.tally.notes.append(f"rows {self._cursor.row} to {row - 1} are not in any logged file")
        deque(self._cursor.take(row), maxlen=0)

    def find_foreign(self) -> None:
        """Find foreign files. A foreign file has a name like the files of this job, but is not in the log of any job.

        While the job is running, files with higher numbers than all logged files are not foreign, because they may be
        logged later.
        """
        own = {self._files.name(file.number): file.number for file in self._job.files}
        # The storage is asked even if the job has no files, so that refused credentials are noticed.
        files = self._answer(lambda: sorted(self._files.numbered(), key=itemgetter(1)))
        if not own:
            return
        # This must come after the list of files, because the database knows each file before it is stored.
        expected_hashes = self._job.expected_hashes()
        first, last = min(own.values()), max([*own.values(), *expected_hashes])
        for name, number in files:
            if number < first or name in own or number in expected_hashes:
                continue
            if number > last and self._job.running():
                self._log.tally.not_yet += 1
            else:
                self._fault(FaultKind.FOREIGN, self._job.sent, self._job.sent, name)

    def _fault(
        self, kind: FaultKind, first: int, end: int, name: str, *dates: int | None, before: int | None = None
    ) -> None:
        self._log.add(DeliveryFinding(kind, first, end, None, None, name, *dates), date=before)

    def _hashed(self, name: str, update: Callable[[bytes], object]) -> Generator[bytes]:
        """Yield the bytes of a file in pieces. Each piece is also passed to `update`, which hashes it."""
        pieces = self._files.storage.read(name)
        while (piece := self._answer(lambda: next(pieces, None))) is not None:
            update(piece)
            yield piece

    def _answer(self, request: Callable[[], T]) -> T:
        """Run a request to the storage in a thread, and return its result.

        Raises Unavailable soon after the check is stopped. The request itself may go on for up to a minute.
        """
        answer = in_thread(request, "verify storage")
        while not self._stopped():
            if wait([answer], POLL_SECONDS).done:
                return answer.result()
        raise Unavailable("the check is stopped")

    def _unpacked(self, stored: Generator[bytes]) -> Generator[bytes]:
        """Yield the csv text of a file. Raises EOFError if the file is cut off, and another error if it is damaged."""
        match self._files.packing:
            case "gzip":
                return _gunzipped(stored)
            case "zip":
                return _unzipped(stored, self._files.password)
        return stored


def _gunzipped(stored: Iterable[bytes]) -> Generator[bytes]:
    unpacker = zlib.decompressobj(wbits=31)
    for piece in stored:
        rest = piece
        while rest:
            if unpacker.eof:
                unpacker = zlib.decompressobj(wbits=31)
            if data := unpacker.decompress(rest, PIECE_BYTES):
                yield data
            rest = unpacker.unconsumed_tail or unpacker.unused_data
    if not unpacker.eof:
        raise EOFError


def _unzipped(stored: Iterable[bytes], password: str) -> Generator[bytes]:
    """Yield the bytes of the first file in a zip archive.

    The directory of an archive is at its end. So the archive is first copied to a temporary file.
    """
    import pyzipper

    with tempfile.TemporaryFile() as copy:
        for piece in stored:
            copy.write(piece)
        copy.seek(0)
        start = copy.read(4)
        try:
            archive: Any = pyzipper.AESZipFile(copy)
        except pyzipper.BadZipFile:
            if b"PK\x03\x04".startswith(start):
                raise EOFError from None
            raise
        archive.setpassword(password.encode() or None)
        with archive.open(archive.namelist()[0]) as file:
            yield from iter(partial(file.read, PIECE_BYTES), b"")
