"""The record of an export: a file with the identity of the export and an entry for each exported time window.

The record is the JSON document `.<target>.export/record.json`, next to the target. The document is replaced atomically.
Its first line has the hash of the other lines, so damage is always noticed.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from svcctl.errors import NotFound, UsageError
from svcctl.exports.identity import Identity
from svcctl.exports.windows import Target, Window, moment
from svcctl.io.files import derived_name
from svcctl.storage.targets import open_target
from svcctl.words import choices

if TYPE_CHECKING:
    from svcctl.exports.state import State, States
    from svcctl.storage import Storage

VERSION = 1
NAME = "record.json"

MAX_SINGLE_SIZES = 8
"""The maximum number of objects on a server whose sizes are requested one by one.

For more objects, all sizes are taken from a listing of the folder.
"""

PROFILE = "give the profile of that service with -p"
STARTS_OVER = "start over: 'svcctl export rm {state} --yes', then the same command with --from DATE --force"


class DamagedRecord(UsageError):
    """Raised if the record file of an export is damaged."""


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """An entry of an export's record, for a time window or for a merged file.

    `start` and `end` are the range in epoch seconds. `path` is the path of the file with the rows. `path` is empty for
    a window that has no events and no file. `bytes` and `sha256` are the size and the hash of the stored bytes. For a
    compressed file, these are the compressed bytes. If `offset` is a number, the bytes of the window are in an
    incomplete merged file, and begin at this position.

    `when` is the epoch second at which the rows were stored. For a merged file, `when` is 0 until the record says that
    the file is published. `changes` has an element for each time that a reconcile replaced the window. Each element has
    the epoch second, the old number of rows, and the new number of rows.
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
        """Whether the entry has a file of its own.

        An entry without its own file has no rows, or its rows are in an incomplete merged file.
        """
        return bool(self.path) and self.offset is None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary, without `offset` if it is None and without `changes` if it is empty."""
        return {name: value for name in _ENTRY if (value := getattr(self, name)) not in (None, ())}


_ENTRY = tuple(field.name for field in fields(ExportedFile))


@dataclass(frozen=True, slots=True)
class Record:
    """The record of an export. It lists the exported time windows and their files."""

    storage: Storage
    target: Target
    """The target of the export, as a path or pattern within the storage."""
    identity: Identity
    head: str | None = None
    """The heading of the latest csv or tsv file, or the columns of the latest parquet file.

    The value is None before the first window is fetched.
    """
    entries: Mapping[Window, ExportedFile] = field(default_factory=dict)
    """The entries of windows that are not in a finished merged file."""
    merged: tuple[ExportedFile, ...] = ()
    """The entries of merged files."""
    inside: tuple[ExportedFile, ...] = ()
    """The entries of the windows in finished merged files. The `path` of each entry is the path of the merged file."""
    replacing: tuple[ExportedFile, ...] = ()
    """The new entries that a reconcile saves while it replaces a merged file. The tuple is empty at all other times.

    The first entry describes the merged file. The other entries describe the changed windows in this file.
    """
    ranges: tuple[tuple[int, int], ...] = ()
    """The ranges that the files should cover, as pairs of start and end in epoch seconds, in order.

    If a window in these ranges has no entry, the window is a gap. If all runs write the same file, there is only the
    range of the latest run.
    """
    since: int = 0
    """The epoch second up to which old windows were removed from the record. It is 0 if no window was removed."""
    columns: tuple[str, ...] = ()
    """The columns of the first windows, if the query asks for all columns. For other queries, the tuple is empty.

    Later windows get the same columns, even if columns were added to the table.
    """
    verified: int = 0
    """The epoch second up to which the latest verification found all windows undamaged.

    The value is 0 before the first verification.
    """
    name: str | None = None
    """The name of the export's saved state. It is None if the export has no state. Only `find` sets the name."""
    state: State | None = None
    """The export's saved state, which says where the next run starts. It is None if the export has no state."""

    # The file

    @classmethod
    def find(cls, name: str, states: States, environment: Mapping[str, str]) -> Record:
        """Return the record of an export. `name` is the name of a state, or the path of a target.

        Raises NotFound if there is no such export. Raises UsageError if the record is damaged, or if the record of a
        state is missing or does not match the state.
        """
        owner = (name, states.need(name)) if name in states.names() else states.writing(name)
        storage, path = open_target(name if owner is None else owner[1].target, environment)
        target = Target(path)
        if owner is not None:
            name, state = owner
            return replace(cls.of_state(name, state.until, storage, target), name=name, state=state)
        if (record := cls.read(storage, target)) is not None:
            return record
        names = choices(states.names())
        raise NotFound(
            f"no export goes to '{name}', and no state has that name",
            hint="give the path as it was given to -o" + (f"; the states are: {names}" if names else ""),
        )

    @classmethod
    def read(cls, storage: Storage, target: Target) -> Record | None:
        """Return the record of a target. Return None if there is no record.

        Raises UsageError if the record is damaged or was written by a newer version.
        """
        name = path_of(target)
        if storage.size(name) is None:
            return None
        text = b"".join(storage.read(name)).decode("utf-8", "replace")
        return cls.from_text(text, storage, target)

    @classmethod
    def of_state(cls, name: str, until: int, storage: Storage, target: Target) -> Record:
        """Return the record of the export with the saved state `name`.

        `until` is the start of the next run's range, according to this state. Raises UsageError if the record is
        missing or damaged, or does not match `until`.
        """
        address = storage.address(path_of(target))
        hint = STARTS_OVER.format(state=name)
        try:
            record = cls.read(storage, target)
        except DamagedRecord as error:
            raise DamagedRecord(error.message, hint=hint) from None
        if record is None:
            raise UsageError(f"the record of the state '{name}' is missing: {address}", hint=hint)
        if not record.ends_at(until):
            ends = " and ".join(moment(end) for _, end in record.ranges)
            raise UsageError(
                f"the record {address} ends at {ends}, but the state '{name}' at {moment(until)}", hint=hint
            )
        return record

    def save(self) -> None:
        """Replace the record file atomically."""
        with self.storage.create(path_of(self.target), overwrite=True) as sink:
            sink.write(self.to_text().encode())
            sink.complete()

    def to_text(self) -> str:
        """Return the record as a JSON document with one line for each window."""
        members = {
            "key": self.identity.key,
            "directory": _directory(self.target),
            "about": self.identity.to_json(),
            "head": self.head,
            "columns": self.columns,
            "since": self.since,
            "verified": self.verified,
            "ranges": self.ranges,
            "replacing": [entry.to_dict() for entry in self.replacing],
            "merged": [entry.to_dict() for entry in self.merged],
        }
        windows = [entry for _, entry in sorted(self.entries.items())]
        body = f'{json.dumps(members)[1:-1]}, "inside": {_lines(self.inside)}, "windows": {_lines(windows)}}}\n'
        return f'{{"version": {VERSION}, "sha256": "{_sha256(body)}",\n{body}'

    @classmethod
    def from_text(cls, text: str, storage: Storage, target: Target) -> Record:
        """Make a record from a JSON document.

        If the directory of the target was renamed since the record was saved, the paths of all entries are changed to
        the new directory. Raises UsageError if the document is damaged or was written by a newer version.
        """
        address, directory = storage.address(path_of(target)), _directory(target)
        try:
            document = json.loads(text)
            version = document["version"]
            if isinstance(version, int) and version > VERSION:
                raise UsageError(
                    f"the record {address} was written by a newer svcctl (version {version})",
                    hint="install the newer svcctl",
                )
            if document["sha256"] != _sha256(text.partition("\n")[2]):
                raise ValueError("the document was changed")
            old_directory = document["directory"]

            def entries(member: str) -> tuple[ExportedFile, ...]:
                return tuple(_entry(values, old_directory, directory) for values in document[member])

            identity = Identity.from_json(**document["about"])
            return cls(
                storage,
                replace(target, zone=identity.clocks),
                identity,
                document["head"],
                {entry.window: entry for entry in entries("windows")},
                entries("merged"),
                entries("inside"),
                entries("replacing"),
                tuple((int(start), int(end)) for start, end in document["ranges"]),
                document["since"],
                tuple(map(str, document.get("columns", ()))),
                int(document.get("verified", 0)),
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            raise DamagedRecord(
                f"the record {address} is damaged", hint="start over: the same command with --force"
            ) from None

    # The export

    @property
    def is_distant(self) -> bool:
        """Whether the files are on a server."""
        return "://" in self.storage.address(self.target.text)

    @property
    def output(self) -> str:
        """The target as a user gives it with the option --output."""
        return self.storage.address(self.target.text) if self.is_distant else self.target.text

    @property
    def is_empty(self) -> bool:
        """Whether the record has no windows."""
        return not (self.entries or self.merged)

    def ends_at(self, until: int) -> bool:
        """Return whether the record matches a saved state in which the next run's range starts at `until`."""
        return until <= self.since or any(start <= until <= end for start, end in self.ranges)

    def is_past(self, window: Window) -> bool:
        """Return whether the window begins before the range of the next run. No later run fetches such a window.

        If the export has no saved state, return True.
        """
        return self.state is None or window.start < self.state.until

    def files(self) -> list[ExportedFile]:
        """Return the entries of all files that should exist: merged files, and separate files of windows."""
        return [*self.merged, *(entry for _, entry in sorted(self.entries.items()) if entry.is_file)]

    def naming_range(self, entry: ExportedFile) -> Window:
        """Return the range for a new run that writes the entry's file again, under the same name.

        Some file names contain the start of a run's range. For such a file, the new range starts at a date that gives
        the same name.
        """
        target = self.target
        if not (target.per_window and target.per_run):
            return entry.window
        starts = {window.start for window in self.entries if window.start <= entry.start}
        for start in sorted(starts, reverse=True):
            name = target.path(Window(start, entry.end), entry.window).removeprefix(target.folder)
            if f"/{entry.path}".endswith(f"/{name}"):  # the spelling of the directory may differ
                return Window(start, entry.end)
        return entry.window

    # Gaps and losses

    def gaps(self) -> list[Window]:
        """Return the time spans within `ranges` that no entry covers."""
        gaps = []
        windows = sorted([*self.entries, *(entry.window for entry in self.merged)])
        for start, end in self.ranges:
            at = start
            for window in windows:
                if window.end > at and window.start < end:
                    if window.start > at:
                        gaps.append(Window(at, window.start))
                    at = window.end
            if at < end:
                gaps.append(Window(at, end))
        return gaps

    def holdings(self) -> tuple[list[ExportedFile], list[tuple[str, ExportedFile]]]:
        """Return the entries without known damage, and the lost entries.

        The file of a lost entry is missing or damaged. A lost entry comes with the text `no file` or `damaged`. Damage
        is found only if the size of the file has changed. If a merged file is not published yet, the result has
        the entries of its windows instead of the entry of the file.
        """
        starts = sorted(window.start for window in self.entries)

        def has_entries(merged: ExportedFile) -> bool:
            """Return whether windows of the file have entries of their own. If so, the file is not published yet."""
            at = bisect_left(starts, merged.start)
            return at < len(starts) and starts[at] < merged.end

        merged = [file for file in self.merged if not has_entries(file)]
        entries = [*merged, *(entry for _, entry in sorted(self.entries.items()))]
        stored = {entry.path: entry for entry in entries if entry.is_file}
        sizes = sizes_of(self.storage, stored, distant=self.is_distant)
        lost = [
            ("no file" if path not in sizes else "damaged", entry)
            for path, entry in stored.items()
            if sizes.get(path) != entry.bytes
        ]
        missing = {entry for _, entry in lost}
        return [entry for entry in entries if entry not in missing], lost

    def count_missing(self, lost: Sequence[tuple[str, ExportedFile]]) -> int:
        """Return the number of windows in the gaps and in the lost entries.

        `lost` is the second result of `holdings`.
        """
        return self.identity.count([*self.gaps(), *(entry.window for _, entry in lost)])

    def still_verified(self, lost: Sequence[tuple[str, ExportedFile]] = ()) -> int:
        """Return the epoch second up to which all windows are known to be undamaged.

        The result is the earlier of two dates: the date that the latest verification has saved, and the start of the
        first gap or lost entry. The result is 0 before the first verification. `lost` is the second result of
        `holdings`.
        """
        starts = [*(gap.start for gap in self.gaps()), *(entry.start for _, entry in lost)]
        return min([self.verified, *starts, *(end for _, end in self.ranges[-1:])])

    # Changes

    def later(self, date: int) -> Record:
        """Return the record without the windows and files that end at or before `date`, in epoch seconds."""
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

    def settled(self) -> Record:
        """Return the record with an empty `replacing`. Only a killed reconcile leaves entries in `replacing`.

        If the reconcile had already replaced the merged file, the new entries are used. Otherwise the old entries are
        kept.
        """
        if not self.replacing:
            return self
        file = self.replacing[0]
        if self.storage.size(file.path) == file.bytes and self.storage.sha256(file.path) == file.sha256:
            return self.replaced()
        return replace(self, replacing=())

    def replaced(self) -> Record:
        """Return the record with the entries in `replacing` instead of the old entries."""
        file, *windows = self.replacing
        new = {entry.window: entry for entry in windows}
        merged = (*(other for other in self.merged if other.path != file.path), file)
        inside = tuple(new.get(entry.window, entry) if entry.path == file.path else entry for entry in self.inside)
        return replace(self, merged=merged, inside=inside, replacing=())


def folder_of(target: Target) -> str:
    """Return the path of the folder for the record and the unfinished files of an export, with a slash at its end."""
    rest = target.rest
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", rest)
    if plain != rest:  # so that two targets never share a folder
        plain += f".{_sha256(rest)[:8]}"
    return f"{target.folder}{derived_name(plain, prefix='.', suffix='.export')}/"


def path_of(target: Target) -> str:
    """Return the path of the record file of a target."""
    return f"{folder_of(target)}{NAME}"


def _directory(target: Target) -> str:
    """Return the path of the directory that contains the folder of the record.

    The paths of all entries begin with this path.
    """
    folder = folder_of(target)
    return folder[: folder.rstrip("/").rfind("/") + 1]


def _entry(values: Mapping[str, Any], old_directory: str, directory: str) -> ExportedFile:
    """Make an entry from an object of a JSON document.

    In the path of the entry, `old_directory` is replaced by `directory`.
    """
    entry = ExportedFile(**values)
    entry = replace(entry, changes=tuple((when, before, after) for when, before, after in entry.changes))
    if not entry.path or not entry.path.startswith(old_directory):
        return entry
    return replace(entry, path=directory + entry.path.removeprefix(old_directory))


def _lines(entries: Iterable[ExportedFile]) -> str:
    """Return a JSON list with a line for each entry."""
    lines = ",\n".join(json.dumps(entry.to_dict()) for entry in entries)
    return f"[\n{lines}\n]"


def sizes_of(storage: Storage, names: Collection[str], *, distant: bool) -> Mapping[str, int]:
    """Return the sizes of objects in bytes, by name. Missing objects are left out.

    `distant` is true if the storage is a server.
    """
    plain = all(posixpath.normpath(name) == name for name in names)
    if distant and len(names) > MAX_SINGLE_SIZES and plain:
        members = frozenset(names)
        folder = posixpath.commonprefix(list(names)).rpartition("/")[0]
        return {name: size for name, size in storage.sizes(folder) if name in members}
    return {name: size for name in names if (size := storage.size(name)) is not None}


def union(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the union of ranges, in order. Ranges that touch or overlap become one range."""
    result: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((start, end))
    return tuple(result)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
