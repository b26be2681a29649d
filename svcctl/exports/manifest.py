"""The manifest: what an export has fetched, so that a rerun fetches only what is missing.

It is one JSON document beside the target, replaced in one step. Its key is a hash of the query, the format, the length
of a window and the service: an export that asks something else never takes a part of this one for its own. Its first
line holds the hash of the other lines, so that a damaged digit cannot turn a window with events into an empty one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any

from svcctl.dates.lengths import length_text
from svcctl.dates.shorthand import named_zone
from svcctl.errors import UsageError
from svcctl.exports.windows import Window

if TYPE_CHECKING:
    from svcctl.storage import Storage

VERSION = 1

_NAMES = {"most": "limit per window", "clock": "time zone"}
"""Options whose names here differ from those on the command line."""


@dataclass(frozen=True, slots=True)
class About:
    """What an export asks, of which service, and in which form: two exports that agree in it share their parts."""

    query: str
    """The query in one line, without comments."""
    format: str
    window: int
    """The length of a window in seconds."""
    service: str
    """The base URL of the service, without credentials."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What else decides the bytes: date format, zone, compression, rows a window, and the zone `clock` of windows."""

    @property
    def zone(self) -> tzinfo:
        """The zone of windows and names."""
        return named_zone(self.options["clock"]) if "clock" in self.options else UTC

    @property
    def named(self) -> Mapping[str, str]:
        """All fields as users know them: options by their names on the command line, the zone among them."""
        fixed = {"query": self.query, "format": self.format, "service": self.service}
        options = {_NAMES.get(name, name.replace("_", " ")): str(value) for name, value in self.options.items()}
        return {**fixed, "window": length_text(self.window), **options}

    @property
    def key(self) -> str:
        """64 hexadecimal characters that differ whenever a field does."""
        text = json.dumps(asdict(self), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return _sha256(text)


def difference(one: About, other: About) -> str:
    """The difference between two exports in words, with the options of the first one."""
    before, now = one.named, other.named
    differing = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return " and ".join(f"another {name}{_value(name, before.get(name))}" for name in differing)


def _value(name: str, value: str | None) -> str:
    """A value in which exports differ, in words; a query is too long to be repeated."""
    if name == "query":
        return ""
    option = f"--{name.replace(' ', '-')}"
    if value is None:
        return f" (without {option})"
    return f" ({value})" if name in ("format", "service") else f" ({option} {value})"


class Damaged(UsageError):
    """The manifest is not what was written."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A window that was fetched, checked and stored whole.

    `bytes` and `sha256` are those of the stored part or file, compressed as it is stored; `path` is empty for a window
    without events that has no part. With an `offset`, its bytes are not in a part but in the merged file that is being
    written: they begin at that byte, and `sha256` is that of the file up to their end. A merged file has 0 attempts
    until it is certain to have its name.
    """

    start: int
    end: int
    path: str
    rows: int
    bytes: int
    sha256: str
    seconds: float
    attempts: int
    offset: int | None = None
    removed: bool = False
    """Whether the file may be missing: the user has said that it was removed on purpose."""

    @property
    def window(self) -> Window:
        return Window(self.start, self.end)

    def to_dict(self) -> dict[str, Any]:
        """The fields by name; `removed` only when it is true."""
        return {name: value for name, value in asdict(self).items() if name != "removed" or value}


@dataclass(frozen=True, slots=True)
class Manifest:
    """The entries of an export by window; `merged` are the files that the windows of whole runs became.

    The windows of a merged file have no entries of their own. `head` is what every window begins with: the
    heading of csv and tsv, the columns of parquet as JSON, empty for ndjson; None before the first window. `claimed`
    are the ranges of all runs so far, as (start, end) in order: files of windows in them were written by this export,
    whatever ended its run. Where all runs write the same file, it is the range of the last one. `target` is what was
    exported to, without its directory.
    """

    about: About
    head: str | None = None
    entries: Mapping[Window, Entry] = field(default_factory=dict)
    merged: tuple[Entry, ...] = ()
    claimed: tuple[tuple[int, int], ...] = ()
    target: str = ""

    def to_text(self, directory: str = "") -> str:
        """The document, one line an entry. `directory` is what the paths of all entries begin with."""
        members = {
            "key": self.about.key,
            "directory": directory,
            "target": self.target,
            "about": asdict(self.about),
            "head": self.head,
            "merged": [entry.to_dict() for entry in self.merged],
            "claimed": self.claimed,
        }
        entries = ",\n".join(json.dumps(self.entries[window].to_dict()) for window in sorted(self.entries))
        body = f'{json.dumps(members)[1:-1]}, "windows": [\n{entries}\n]}}\n'
        return f'{{"version": {VERSION}, "sha256": "{_sha256(body)}",\n{body}'

    @classmethod
    def from_text(cls, text: str, path: str, directory: str = "") -> Manifest:
        """The manifest in a document that was read from `path`. UsageError when it is damaged or of a newer version.

        The paths of entries begin with `directory`, whatever name it had when they were written.
        """
        try:
            document = json.loads(text)
            version = document["version"]
            if isinstance(version, int) and version > VERSION:
                raise UsageError(
                    f"manifest {path} was written by a newer svcctl (version {version})", hint="install that one"
                )
            if document["sha256"] != _sha256(text.partition("\n")[2]):
                raise ValueError("the document is not what was written")
            about = About(**document["about"])
            written_as = document["directory"]

            def entry(given: Mapping[str, Any]) -> Entry:
                read = Entry(**given)
                if not read.path or not read.path.startswith(written_as):
                    return read
                return replace(read, path=directory + read.path.removeprefix(written_as))

            entries = {one.window: one for one in map(entry, document["windows"])}
            merged = tuple(map(entry, document["merged"]))
            claimed = tuple((int(start), int(end)) for start, end in document["claimed"])
            return cls(about, document["head"], entries, merged, claimed, document["target"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Damaged(
                f"manifest {path} is damaged",
                hint="export all of it again with --force, and with --from and --to instead of --state",
            ) from None


def stored(storage: Storage, folder: str) -> Manifest | None:
    """The manifest in an export's folder, None when there is none. UsageError when it cannot be used."""
    name = f"{folder}manifest.json"
    if storage.size(name) is None:
        return None
    text = b"".join(storage.read(name)).decode("utf-8", "replace")
    return Manifest.from_text(text, storage.address(name), _directory(folder))


def _directory(folder: str) -> str:
    """The beginning of the paths of all entries: the directory in which the folder is."""
    return folder[: folder.rstrip("/").rfind("/") + 1]


def store(storage: Storage, folder: str, manifest: Manifest) -> None:
    """Replace the manifest in an export's folder."""
    with storage.create(f"{folder}manifest.json", overwrite=True) as sink:
        sink.write(manifest.to_text(_directory(folder)).encode())
        sink.complete()


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
