"""The merged file of an export: a heading, followed by the rows of all time windows in order.

The rows of each window are first stored in a file of their own, which is called a part. There are two ways to merge the
parts:
- A local file grows during the run. A part is appended as soon as all earlier windows are in the file, and the part is
  then removed. So the disk holds each row only once. The next run appends only new windows. A killed run loses only the
  windows that were just being fetched.
- On a server, and in the format parquet, each run writes the whole file from the parts. The parts are kept until the
  file is complete.

When a part is read, its hash is compared with the hash in the record of the export.
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
    """Raised if a part does not match its hash in the record. A part is a file with the rows of a time window."""

    def __init__(self, window: Window) -> None:
        super().__init__(str(window))
        self.window = window


class Hashed:
    """A sink that counts and hashes bytes, and writes the bytes to another sink."""

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


class MergedFile(Hashed):
    """The file with the rows of all windows, while it is being written."""

    def __init__(self, sink: Sink, record: OpenRecord, *, grows: bool) -> None:
        super().__init__(sink)
        self._record = record
        self.grows = grows

    def note_moved(self, entry: ExportedFile, offset: int) -> None:
        """Note in the record of the export that the rows of a window begin at the byte `offset` of the merged file.

        The window's separate file is removed when the record is saved. If the merged file cannot be resumed by another
        run, this method does nothing.
        """
        if self.grows:
            self._record.move(replace(entry, offset=offset))

    def publish(self) -> None:
        """Complete the file and give it its final name.

        The hash of the file is saved in the record first. If this run is then killed, the next run can check the file.
        """
        self._record.note_merged(self.bytes, self.sha256)
        self._sink.complete()

    def resume(self, growing: GrowingObject, export: Export) -> None:
        """Continue the incomplete file of an earlier run.

        The first damaged window of the file and all later windows are dropped from the record. The windows before it
        are compared, in order, with the windows of this run. Up to the first difference, the windows stay in the file.
        From there on, they are copied into separate files. Then the file is truncated after the windows that stay.
        """
        record = self._record
        inside = sorted((entry for entry in record.entries.values() if entry.offset is not None), key=_offset)
        sound = list(_sound_windows(growing, inside, export, record.head))
        pairs = zip((entry for entry, _ in sound), _first_windows(record), strict=False)
        count = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if count:
            last, self._digest = sound[count - 1]
            self.bytes = _offset(last) + last.bytes
        record.drop(*(entry.window for entry in inside[len(sound) :]))
        for entry, _ in sound[count:]:
            record.entries[entry.start] = _as_part(growing, entry, export)
        if count < len(inside):
            record.save()
        growing.truncate(self.bytes)


@contextmanager
def merged_file(export: Export, record: OpenRecord, *, overwrite: bool) -> Iterator[MergedFile]:
    """Begin the merged file of an export, or resume the incomplete file of an earlier run."""
    storage = export.storage
    grows = export.format.joins
    growing = storage.grow(export.path, export.growing, overwrite=overwrite) if grows else None
    with growing or storage.create(export.path, overwrite=overwrite) as sink:
        file = MergedFile(sink, record, grows=growing is not None)
        if growing is not None:
            file.resume(growing, export)
        yield file


def heading_of(export: Export, head: str) -> bytes:
    """Return the bytes of the heading of the merged file.

    In a compressed file, the heading is compressed separately. If the format of the export has no heading, return no
    bytes.
    """
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
    """Yield the bytes of a part, which is the file with the rows of a window.

    Raises DamagedPart if the part cannot be read or does not match its hash in the record.
    """
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


def _sound_windows(
    growing: GrowingObject, inside: Sequence[ExportedFile], export: Export, head: str | None
) -> Iterator[tuple[ExportedFile, hashlib._Hash]]:
    """Yield the undamaged windows at the beginning of an incomplete merged file, in order.

    The iteration ends before the first damaged window. Each window comes with the hash of all bytes of the file up
    to the end of the window.
    """
    heading = heading_of(export, head or "")
    if b"".join(growing.read(0, len(heading))) != heading:
        return
    digest, at = hashlib.sha256(heading), len(heading)
    for entry in inside:
        window_digest = hashlib.sha256()
        for piece in growing.read(at, entry.bytes):
            digest.update(piece)
            window_digest.update(piece)
        if entry.offset != at or window_digest.hexdigest() != entry.sha256:
            return
        at += entry.bytes
        yield entry, digest.copy()


def _first_windows(record: OpenRecord) -> Iterator[ExportedFile]:
    """Yield the record's entries for the windows of this run, in order, up to the first missing window.

    Windows without events are left out.
    """
    for window in record.windows():
        if (entry := record.at(window)) is None:
            return
        if entry.path:
            yield entry


def _as_part(growing: GrowingObject, entry: ExportedFile, export: Export) -> ExportedFile:
    """Copy the rows of a window from the merged file back into a separate file. Return the new entry for the record."""
    with export.storage.create(entry.path, overwrite=True, part_of=export.path) as sink:
        for piece in growing.read(_offset(entry), entry.bytes):
            sink.write(piece)
        sink.complete()
    return replace(entry, offset=None)
