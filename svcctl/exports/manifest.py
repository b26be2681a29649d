"""The manifest: what an export has fetched, so that a rerun fetches only what is missing.

It is one JSON document beside the target, replaced in one step. Its key is a hash of the query, the format, the length
of a window and the service: an export that asks something else never takes a part of this one for its own. Its first
line holds the hash of the others, so that no damaged digit makes a window of events one without any.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from svcctl.errors import UsageError
from svcctl.exports.windows import Window

VERSION = 1


@dataclass(frozen=True, slots=True)
class About:
    """What an export asks, of whom, and in which form: two exports with the same share their parts."""

    query: str
    format: str
    window: int
    """Seconds."""
    service: str
    """The base URL, without credentials."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What else decides the bytes: date format, zone, compression, rows a window."""

    @property
    def key(self) -> str:
        """64 hexadecimal characters that differ whenever a field does."""
        text = json.dumps(asdict(self), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return _sha256(text)


@dataclass(frozen=True, slots=True)
class Entry:
    """A window that was fetched, checked and stored whole.

    `bytes` and `sha256` are those of the stored part or file, compressed as it is stored; `path` is empty for a window
    without events that has no part. A merged file has no attempts until it surely has its name.
    """

    start: int
    end: int
    path: str
    rows: int
    bytes: int
    sha256: str
    seconds: float
    attempts: int

    @property
    def window(self) -> Window:
        return Window(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The entries of an export by window; `merged` describes the one file that all of them became.

    `head` is what every window begins with: the heading of csv and tsv, the columns of parquet as JSON, empty for
    ndjson; None before the first window. `claimed` are the ranges of all runs so far, as (start, end) in order: files
    of windows in them were written by this export, whatever ended its run.
    """

    about: About
    head: str | None = None
    entries: Mapping[Window, Entry] = field(default_factory=dict)
    merged: Entry | None = None
    claimed: tuple[tuple[int, int], ...] = ()

    def having(self, *entries: Entry) -> Manifest:
        """The manifest with these entries too, in place of others of the same windows."""
        return replace(self, entries={**self.entries, **{entry.window: entry for entry in entries}})

    def without(self, windows: Iterable[Window]) -> Manifest:
        gone = set(windows)
        return replace(self, entries={window: entry for window, entry in self.entries.items() if window not in gone})

    def claiming(self, start: int, end: int) -> Manifest:
        """The manifest of one more run, over this range."""
        ranges: list[tuple[int, int]] = []
        for one, other in sorted([*self.claimed, (start, end)]):
            if ranges and one <= ranges[-1][1]:
                ranges[-1] = (ranges[-1][0], max(ranges[-1][1], other))
            else:
                ranges.append((one, other))
        return replace(self, claimed=tuple(ranges))

    def claims(self, window: Window) -> bool:
        """Whether a run so far covered this window."""
        return any(start <= window.start and window.end <= end for start, end in self.claimed)

    def to_text(self) -> str:
        """The document, one line an entry."""
        members = {
            "key": self.about.key,
            "about": asdict(self.about),
            "head": self.head,
            "merged": self.merged and asdict(self.merged),
            "claimed": self.claimed,
        }
        entries = ",\n".join(json.dumps(asdict(self.entries[window])) for window in sorted(self.entries))
        body = f'{json.dumps(members)[1:-1]}, "windows": [\n{entries}\n]}}\n'
        return f'{{"version": {VERSION}, "sha256": "{_sha256(body)}",\n{body}'

    @classmethod
    def from_text(cls, text: str, path: str) -> Manifest:
        """The manifest in a document that was read from `path`. UsageError when it is damaged or of a newer version."""
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
            entries = {entry.window: entry for entry in (Entry(**given) for given in document["windows"])}
            merged = document["merged"] and Entry(**document["merged"])
            claimed = tuple((int(start), int(end)) for start, end in document["claimed"])
            return cls(about, document["head"], entries, merged, claimed)
        except (ValueError, KeyError, TypeError, RecursionError):
            raise UsageError(
                f"manifest {path} is damaged", hint="remove it to begin the export again, or give --force"
            ) from None


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
