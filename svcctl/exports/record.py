"""The record of an export: a file next to its target with the identity of the export and a line for each window.

The record is one JSON document, `.<target>.export/record.json`, replaced in one step. Its first line holds the hash of
the other lines, so that a damaged digit cannot turn a window with events into an empty one.
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
"""The most objects on a server whose sizes are requested one by one; the sizes of more come from one listing."""

PROFILE = "give the profile of that service with -p"
STARTS_OVER = "start over: 'svcctl export rm {state} --yes', then the same command with --from DATE --force"


class DamagedRecord(UsageError):
    """A record whose bytes have changed since it was written."""


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A stored window, or the merged file of a run: an entry of the record.

    `bytes` and `sha256` are those of the stored part or file, after compression. `path` is empty for a window without
    events that has no part. With an `offset`, the bytes of the window begin there in the merged file. `when` is the
    epoch second of the storing; 0 for a merged file that may not have its name yet. `changes` are the replacements by
    reconcile: the epoch second, the rows before and the rows after.
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
        """Whether the entry has an object of its own in the storage."""
        return bool(self.path) and self.offset is None

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, without an empty offset or empty changes."""
        return {name: value for name in _ENTRY if (value := getattr(self, name)) not in (None, ())}


_ENTRY = tuple(field.name for field in fields(ExportedFile))


@dataclass(frozen=True, slots=True)
class Record:
    """The windows and files of an export."""

    storage: Storage
    target: Target
    """The target by its name in the storage."""
    identity: Identity
    head: str | None = None
    """The head that all windows share, see ExportFormat; None before the first window."""
    entries: Mapping[Window, ExportedFile] = field(default_factory=dict)
    """The files of windows, or the parts of a run without a merged file yet."""
    merged: tuple[ExportedFile, ...] = ()
    """The merged files."""
    inside: tuple[ExportedFile, ...] = ()
    """The windows in merged files, under the paths of these files."""
    replacing: tuple[ExportedFile, ...] = ()
    """The merged file that a reconcile is replacing, followed by the changed windows in it."""
    ranges: tuple[tuple[int, int], ...] = ()
    """The ranges of all runs, as (start, end) in order; only of the last run if all runs write the same file.

    A window in a range and without an entry is a gap.
    """
    since: int = 0
    """The end of the windows that the record has dropped."""
    columns: tuple[str, ...] = ()
    """The columns of the first windows of a query for all columns. Later windows keep them."""
    verified: int = 0
    """The epoch second up to which the last verify found all windows; 0 before the first verify."""
    name: str | None = None
    """The name of the state that writes to the target; None without one, and unless the record is from `find`."""
    state: State | None = None
    """The state of this name."""

    # The file

    @classmethod
    def find(cls, name: str, states: States, environment: Mapping[str, str]) -> Record:
        """The record of the export with this state, or to this path.

        NotFound without such an export. UsageError when a state's record is missing, damaged or not that of the state.
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
        """The record of a target, None without one. UsageError when it is damaged or of a newer version."""
        name = path_of(target)
        if storage.size(name) is None:
            return None
        text = b"".join(storage.read(name)).decode("utf-8", "replace")
        return cls.from_text(text, storage, target)

    @classmethod
    def of_state(cls, name: str, until: int, storage: Storage, target: Target) -> Record:
        """The record of a state that has come to `until`. UsageError when it is missing, damaged or ends elsewhere."""
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
        """Replace the record on the disk."""
        with self.storage.create(path_of(self.target), overwrite=True) as sink:
            sink.write(self.to_text().encode())
            sink.complete()

    def to_text(self) -> str:
        """The document, with one line per window."""
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
        """The record in a document. UsageError when it is damaged or of a newer version.

        The paths of entries begin with the target's directory, which may have had another name when they were written.
        """
        address, directory = storage.address(path_of(target)), _directory(target)
        try:
            document = json.loads(text)
            version = document["version"]
            if isinstance(version, int) and version > VERSION:
                raise UsageError(
                    f"the record {address} was written by a newer svcctl (version {version})", hint="install that one"
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
        """The target as it was given to --output."""
        return self.storage.address(self.target.text) if self.is_distant else self.target.text

    @property
    def is_empty(self) -> bool:
        """Whether no window was ever exported."""
        return not (self.entries or self.merged)

    def ends_at(self, until: int) -> bool:
        """Whether a state that has come to `until` can belong to these runs."""
        return until <= self.since or any(start <= until <= end for start, end in self.ranges)

    def is_past(self, window: Window) -> bool:
        """Whether no later run of the state fetches this window again; True without a state."""
        return self.state is None or window.start < self.state.until

    def files(self) -> list[ExportedFile]:
        """The files that the storage should have: of windows, of runs, and the parts of an unfinished run."""
        return [*self.merged, *(entry for _, entry in sorted(self.entries.items()) if entry.is_file)]

    def naming_range(self, entry: ExportedFile) -> Window:
        """The range of a run that writes this file under the same name again.

        The range starts with the file's old run if the name contains the start of the run.
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
        """The parts of the ranges without an entry."""
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
        """The entries whose files exist, each window once, and the lost entries: each with `no file` or `damaged`.

        Only sizes are compared, so damage that keeps the size is not found.
        """
        starts = sorted(window.start for window in self.entries)

        def has_entries(merged: ExportedFile) -> bool:
            """Whether the windows of the file have entries: it does not have its name yet, or is being replaced."""
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
        """The number of windows in gaps, and in the lost entries of `holdings`."""
        return self.identity.count([*self.gaps(), *(entry.window for _, entry in lost)])

    def still_verified(self, lost: Sequence[tuple[str, ExportedFile]] = ()) -> int:
        """The epoch second up to which the last verify found all windows, 0 before the first verify.

        It is earlier if a gap, or a lost entry of `holdings`, begins before it.
        """
        starts = [*(gap.start for gap in self.gaps()), *(entry.start for _, entry in lost)]
        return min([self.verified, *starts, *(end for _, end in self.ranges[-1:])])

    # Changes

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

    def settled(self) -> Record:
        """The record after a reconcile that was killed while it replaced a merged file."""
        if not self.replacing:
            return self
        file = self.replacing[0]
        if self.storage.size(file.path) == file.bytes and self.storage.sha256(file.path) == file.sha256:
            return self.replaced()
        return replace(self, replacing=())

    def replaced(self) -> Record:
        """The record after a reconcile has replaced a merged file."""
        file, *windows = self.replacing
        new = {entry.window: entry for entry in windows}
        merged = (*(other for other in self.merged if other.path != file.path), file)
        inside = tuple(new.get(entry.window, entry) if entry.path == file.path else entry for entry in self.inside)
        return replace(self, merged=merged, inside=inside, replacing=())


def folder_of(target: Target) -> str:
    """The folder of an export's record and parts, with a slash at its end."""
    rest = target.rest
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", rest)
    if plain != rest:  # two targets never share a folder
        plain += f".{_sha256(rest)[:8]}"
    return f"{target.folder}{derived_name(plain, prefix='.', suffix='.export')}/"


def path_of(target: Target) -> str:
    """The path of the record of a target."""
    return f"{folder_of(target)}{NAME}"


def _directory(target: Target) -> str:
    """The directory of the record's folder, with which the paths of all entries begin."""
    folder = folder_of(target)
    return folder[: folder.rstrip("/").rfind("/") + 1]


def _entry(values: Mapping[str, Any], old_directory: str, directory: str) -> ExportedFile:
    """An entry of a document whose paths began with `old_directory`."""
    entry = ExportedFile(**values)
    entry = replace(entry, changes=tuple((when, before, after) for when, before, after in entry.changes))
    if not entry.path or not entry.path.startswith(old_directory):
        return entry
    return replace(entry, path=directory + entry.path.removeprefix(old_directory))


def _lines(entries: Iterable[ExportedFile]) -> str:
    """A list with a line for each entry."""
    lines = ",\n".join(json.dumps(entry.to_dict()) for entry in entries)
    return f"[\n{lines}\n]"


def sizes_of(storage: Storage, names: Collection[str], *, distant: bool) -> Mapping[str, int]:
    """The sizes of the objects that exist."""
    plain = all(posixpath.normpath(name) == name for name in names)
    if distant and len(names) > MAX_SINGLE_SIZES and plain:
        members = frozenset(names)
        folder = posixpath.commonprefix(list(names)).rpartition("/")[0]
        return {name: size for name, size in storage.sizes(folder) if name in members}
    return {name: size for name in names if (size := storage.size(name)) is not None}


def union(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The union of ranges, in order; ranges that touch become one."""
    result: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((start, end))
    return tuple(result)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
