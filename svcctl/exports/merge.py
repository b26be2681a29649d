"""The merged file: its heading, the parts behind it, each hashed again as it is read, and the hash of the whole.

Where the storage lets a file grow and its format is its parts, one behind the other, a part moves into the merged file
as soon as all windows before it are in there, and is removed. So the disk holds the rows once, what a run merged is not
merged again by the next run, and a killed run loses only the windows that were on their way. Elsewhere (on a server,
and in parquet) the file is written anew by each run, from parts that stay until the file is in place.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from svcctl.errors import UsageError
from svcctl.exports.record import ExportedFile
from svcctl.io.compression import COMPRESSIONS, Compressed

if TYPE_CHECKING:
    from svcctl.exports.export import Export
    from svcctl.exports.open_record import OpenRecord
    from svcctl.exports.windows import Window
    from svcctl.storage import GrowingObject, Sink, Storage


class DamagedPart(Exception):
    """A part is not as the record describes it."""

    def __init__(self, window: Window) -> None:
        super().__init__(str(window))
        self.window = window


class Hashed:
    """A sink that counts and hashes what it passes on."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._digest = hashlib.sha256()
        self.bytes = 0

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def write(self, data: bytes | memoryview, /) -> None:
        self._sink.write(data)
        self._digest.update(data)
        self.bytes += len(data)


class Merging(Hashed):
    """The merged file while it is written."""

    def __init__(self, sink: Sink, record: OpenRecord, *, grows: bool) -> None:
        super().__init__(sink)
        self._record = record
        self.grows = grows

    def moved(self, entry: ExportedFile, offset: int) -> None:
        """Note that a window has been written at this offset; its part is given up if this file can be resumed."""
        if self.grows:
            self._record.move(replace(entry, offset=offset))

    def publish(self) -> None:
        """Give the file its name. Its hash is noted before, so that a rerun can tell if the file appeared."""
        self._record.note_merged(self.bytes, self.sha256)
        self._sink.complete()

    def resume(self, growing: GrowingObject, export: Export) -> None:
        """Keep what earlier runs wrote, as far as it is what they noted and the beginning of this run's file.

        A window that is whole but has another place in this run's file becomes a part again.
        """
        record = self._record
        inside = sorted((entry for entry in record.entries.values() if entry.offset is not None), key=_offset)
        whole = list(_read_again(growing, inside, export, record.head))
        pairs = zip((entry for entry, _ in whole), _ordered(record), strict=False)
        stays = list(takewhile(lambda pair: pair[0] == pair[1], pairs))
        if stays:
            self._digest = whole[len(stays) - 1][1]
            last = stays[-1][0]
            self.bytes = _offset(last) + last.bytes
        record.drop(*(entry.window for entry in inside[len(whole) :]))
        for entry, _ in whole[len(stays) :]:
            record.entries[entry.start] = _taken_out(growing, entry, export)
        if len(stays) < len(inside):
            record.save()
        growing.truncate(self.bytes)


@contextmanager
def merging(export: Export, record: OpenRecord, *, overwrite: bool) -> Iterator[Merging]:
    """The merged file of an export, begun or resumed. Unless it is published, the next run resumes it."""
    storage = export.storage
    grows = export.format.joins
    growing = storage.grow(export.path, export.growing, overwrite=overwrite) if grows else None
    with growing or storage.create(export.path, overwrite=overwrite) as sink:
        file = Merging(sink, record, grows=growing is not None)
        if growing is not None:
            file.resume(growing, export)
        yield file


def heading_of(export: Export, head: str) -> bytes:
    """The heading of the merged file, compressed as a member of its own."""
    if not export.format.heading:
        return b""
    heading = head.encode("utf-8", "surrogateescape")
    if not export.compression:
        return heading
    packed = io.BytesIO()
    compressed = Compressed(packed, COMPRESSIONS[export.compression]())
    compressed.write(heading)
    compressed.end()
    return packed.getvalue()


def checked(storage: Storage, entry: ExportedFile) -> Iterator[bytes]:
    """The bytes of a part; Damaged when they are not those that were stored."""
    digest = hashlib.sha256()
    try:
        for piece in storage.read(entry.path):
            digest.update(piece)
            yield piece
    except UsageError:
        raise DamagedPart(entry.window) from None
    if digest.hexdigest() != entry.sha256:
        raise DamagedPart(entry.window)


def _offset(entry: ExportedFile) -> int:
    assert entry.offset is not None
    return entry.offset


def _read_again(
    growing: GrowingObject, inside: Sequence[ExportedFile], export: Export, head: str | None
) -> Iterator[tuple[ExportedFile, hashlib._Hash]]:
    """The windows of the file up to the first that is damaged, each with the hash of the file up to its end."""
    heading = heading_of(export, head or "")
    if b"".join(growing.read(0, len(heading))) != heading:
        return
    digest, at = hashlib.sha256(heading), len(heading)
    for entry in inside:
        own = hashlib.sha256()
        for piece in growing.read(at, entry.bytes):
            digest.update(piece)
            own.update(piece)
        if entry.offset != at or own.hexdigest() != entry.sha256:
            return
        at += entry.bytes
        yield entry, digest.copy()


def _ordered(record: OpenRecord) -> Iterator[ExportedFile]:
    """The windows that this run's file begins with, up to the first that is missing."""
    for window in record.windows():
        if (entry := record.at(window)) is None:
            return
        if entry.path:
            yield entry


def _taken_out(growing: GrowingObject, entry: ExportedFile, export: Export) -> ExportedFile:
    """Turn a window of the file into a part again."""
    with export.storage.create(entry.path, overwrite=True, part_of=export.path) as sink:
        for piece in growing.read(_offset(entry), entry.bytes):
            sink.write(piece)
        sink.complete()
    return replace(entry, offset=None)
