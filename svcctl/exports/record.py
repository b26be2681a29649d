"""The record of an export, a file next to its target: the query, the service, and a line for each exported window.

It is one JSON document, replaced in one step. Its key is a hash of the query, the format, the length of a window and
the service: an export that asks something else never uses its windows. Its first line holds the
hash of the other lines, so that a damaged digit cannot turn a window with events into an empty one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from svcctl.errors import UsageError
from svcctl.exports.identity import Identity
from svcctl.exports.windows import Window, moment

if TYPE_CHECKING:
    from svcctl.storage import Storage

VERSION = 1
NAME = "record.json"


class DamagedRecord(UsageError):
    """The record is not what was written."""


PROFILE = "give the profile of that service with -p"
STARTS_OVER = "start over: 'svcctl export rm {state} --yes', then the same command with --from DATE --force"


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A window that was fetched, checked and stored whole, or the merged file of a run.

    `bytes` and `sha256` are those of the stored part or file, compressed as it is stored; `path` is empty for a window
    without events that has no part. With an `offset`, its bytes begin there in the merged file. `when` is the epoch
    second in which it was stored; it is 0 for a merged file until that is certain to have its name. `changes` are those
    that reconcile found: when, from how many rows, to how many.
    """

    start: int
    end: int
    path: str
    rows: int
    bytes: int
    sha256: str
    when: int
    offset: int | None = None
    changes: tuple[tuple[int, int, int], ...] = ()

    @property
    def window(self) -> Window:
        return Window(self.start, self.end)

    @property
    def is_file(self) -> bool:
        """Whether its bytes are an object of their own."""
        return bool(self.path) and self.offset is None

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, without an offset or changes if it has none."""
        return {name: value for name in _ENTRY if (value := getattr(self, name)) not in (None, ())}


_ENTRY = tuple(field.name for field in fields(ExportedFile))


@dataclass(frozen=True, slots=True)
class Record:
    """What is there of an export.

    `entries` are the files of windows, or the parts of a run that has no merged file yet; `merged` are the files that
    the windows of whole runs became, and `inside` the windows in these, under the paths of the files. `replacing` is
    the file that reconcile is about to put in the place of a merged one, and the windows that differ in it. `head` is
    what every window begins with: the heading of csv and tsv, the columns of parquet as JSON, empty for ndjson; None
    before the first window. `columns` are those of the first windows of a query for all columns, which later ones keep.

    `ranges` are those of all runs so far, as (start, end) in order: files of windows in them were written by this
    export, whatever ended its run, and what is missing of them is a gap. Where all runs write the same file, it is the
    range of the last one. Nothing is recorded of windows that ended by `since`. A verify has found all there up to
    `verified`; it is 0 before the first one.
    """

    identity: Identity
    head: str | None = None
    entries: Mapping[Window, ExportedFile] = field(default_factory=dict)
    merged: tuple[ExportedFile, ...] = ()
    inside: tuple[ExportedFile, ...] = ()
    replacing: tuple[ExportedFile, ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()
    since: int = 0
    columns: tuple[str, ...] = ()
    verified: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether no window was ever exported."""
        return not (self.entries or self.merged)

    def later(self, date: int) -> Record:
        """The record without the windows and files that ended by a date."""
        merged = tuple(file for file in self.merged if file.end > date)
        files = {file.path for file in merged}
        return replace(
            self,
            entries={window: entry for window, entry in self.entries.items() if window.end > date},
            merged=merged,
            inside=tuple(entry for entry in self.inside if entry.path in files),
            ranges=tuple((max(start, date), end) for start, end in self.ranges if end > date),
            since=max(self.since, date),
        )

    def settled(self, storage: Storage) -> Record:
        """The record after a reconcile that was killed while it replaced a merged file."""
        if not self.replacing:
            return self
        file = self.replacing[0]
        if storage.size(file.path) == file.bytes and storage.sha256(file.path) == file.sha256:
            return self.replaced()
        return replace(self, replacing=())

    def replaced(self) -> Record:
        """The record once the file that reconcile makes is in place."""
        file, *windows = self.replacing
        now = {entry.window: entry for entry in windows}
        merged = (*(one for one in self.merged if one.path != file.path), file)
        inside = tuple(now.get(one.window, one) if one.path == file.path else one for one in self.inside)
        return replace(self, merged=merged, inside=inside, replacing=())

    def ends_at(self, until: int) -> bool:
        """Whether a state that has come to this moment can be one of these runs."""
        return until <= self.since or any(start <= until <= end for start, end in self.ranges)

    def to_text(self, directory: str = "") -> str:
        """The document, one line a window. `directory` is what the paths of all entries begin with."""
        members = {
            "key": self.identity.key,
            "directory": directory,
            "about": self.identity.to_json(),
            "head": self.head,
            "columns": self.columns,
            "since": self.since,
            "verified": self.verified,
            "ranges": self.ranges,
            "replacing": [entry.to_dict() for entry in self.replacing],
            "merged": [entry.to_dict() for entry in self.merged],
        }
        entries = [entry for _, entry in sorted(self.entries.items())]
        body = f'{json.dumps(members)[1:-1]}, "inside": {_lines(self.inside)}, "windows": {_lines(entries)}}}\n'
        return f'{{"version": {VERSION}, "sha256": "{_sha256(body)}",\n{body}'

    @classmethod
    def from_text(cls, text: str, path: str, directory: str = "") -> Record:
        """The record in a document that was read from `path`. UsageError when it is damaged or of a newer version.

        The paths of entries begin with `directory`, whatever name it had when they were written.
        """
        try:
            document = json.loads(text)
            version = document["version"]
            if isinstance(version, int) and version > VERSION:
                raise UsageError(
                    f"the record {path} was written by a newer svcctl (version {version})", hint="install that one"
                )
            if document["sha256"] != _sha256(text.partition("\n")[2]):
                raise ValueError("the document is not what was written")
            written_as = document["directory"]

            def entry(given: Mapping[str, Any]) -> ExportedFile:
                read = ExportedFile(**given)
                read = replace(read, changes=tuple((when, before, now) for when, before, now in read.changes))
                if not read.path or not read.path.startswith(written_as):
                    return read
                return replace(read, path=directory + read.path.removeprefix(written_as))

            return cls(
                Identity.from_json(**document["about"]),
                document["head"],
                {one.window: one for one in map(entry, document["windows"])},
                tuple(map(entry, document["merged"])),
                tuple(map(entry, document["inside"])),
                tuple(map(entry, document["replacing"])),
                tuple((int(start), int(end)) for start, end in document["ranges"]),
                document["since"],
                tuple(map(str, document.get("columns", ()))),
                int(document.get("verified", 0)),
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            raise DamagedRecord(
                f"the record {path} is damaged", hint="start over: the same command with --force"
            ) from None


def read(storage: Storage, folder: str) -> Record | None:
    """The record in an export's folder, None when there is none. UsageError when it cannot be used."""
    name = f"{folder}{NAME}"
    if storage.size(name) is None:
        return None
    text = b"".join(storage.read(name)).decode("utf-8", "replace")
    return Record.from_text(text, storage.address(name), _directory(folder))


def read_for(state: str, until: int, storage: Storage, folder: str) -> Record:
    """The record of a state's export. UsageError when it is missing, damaged or ends elsewhere than the state."""
    address = storage.address(f"{folder}{NAME}")
    begin = STARTS_OVER.format(state=state)
    try:
        found = read(storage, folder)
    except DamagedRecord as error:
        raise DamagedRecord(error.message, hint=begin) from None
    if found is None:
        raise UsageError(f"the record of the state '{state}' is missing: {address}", hint=begin)
    if not found.ends_at(until):
        ends = " and ".join(moment(end) for _, end in found.ranges)
        raise UsageError(f"the record {address} ends at {ends}, but the state '{state}' at {moment(until)}", hint=begin)
    return found


def write(storage: Storage, folder: str, record: Record) -> None:
    """Replace the record in an export's folder."""
    with storage.create(f"{folder}{NAME}", overwrite=True) as sink:
        sink.write(record.to_text(_directory(folder)).encode())
        sink.complete()


def _lines(entries: Iterable[ExportedFile]) -> str:
    """A list with a line for each entry."""
    lines = ",\n".join(json.dumps(entry.to_dict()) for entry in entries)
    return f"[\n{lines}\n]"


def _directory(folder: str) -> str:
    """The beginning of the paths of all entries: the directory in which the folder is."""
    return folder[: folder.rstrip("/").rfind("/") + 1]


def union(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Ranges over the same time as the given ones, in order, with those that touch as one."""
    result: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((start, end))
    return tuple(result)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
