"""What is exported, and where to; and what a run of it came to.

The manifest and the parts of an export are in a folder beside its target, `.<target>.export`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from svcctl.api.outline import outline
from svcctl.errors import SvcctlError
from svcctl.exports.fetch import Task
from svcctl.exports.formats import Format
from svcctl.exports.manifest import About
from svcctl.exports.windows import Target, Window

if TYPE_CHECKING:
    from svcctl.api.query import QueryRequest
    from svcctl.storage import Storage


def folder_of(target: Target) -> str:
    """Where the manifest and the parts of an export are, with a slash at its end."""
    rest = target.rest
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", rest)
    if plain != rest:  # two targets never share a folder
        plain += f".{hashlib.sha256(rest.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"
    return f"{target.folder}.{plain}.export/"


def lock_of(target: Target) -> str:
    """What a run writes until it ends, which keeps other runs out where the storage has locks."""
    return f"{folder_of(target)}run"


@dataclass(frozen=True, slots=True)
class Export:
    """What is exported, and where to. `request` asks for the whole range, which `windows` cover.

    `storage` holds the target, whose names are relative to it. `distant` says that reading an object back costs a
    transfer: then a rerun compares sizes where it would compare hashes. `most` is Task's. The manifest describes as
    many windows or files of earlier runs as are `kept`, all if that is None. `clock` is the zone that was asked for.
    `owner` is the state whose runs write to the target, where this run is none of them.
    """

    request: QueryRequest
    about: About
    format: Format
    compression: str
    target: Target
    whole: Window
    windows: Sequence[Window]
    storage: Storage
    distant: bool = False
    most: int | None = None
    retries: int = 4
    overwrite: bool = False
    kept: int | None = None
    clock: str = ""
    owner: str | None = None

    @property
    def folder(self) -> str:
        """Where the manifest and the parts are, with a slash at its end."""
        return folder_of(self.target)

    @property
    def manifest(self) -> str:
        return f"{self.folder}manifest.json"

    @property
    def growing(self) -> str:
        """Where the merged file is while it grows."""
        return f"{self.folder}merged"

    @property
    def path(self) -> str:
        """The merged file of this run."""
        return self.target.path(self.whole)

    def part(self, window: Window) -> str:
        """Where a window is until the merged file has it."""
        return f"{self.folder}{window.name}.{self.format.name}{self.compression}"

    @property
    def joins_windows(self) -> bool:
        """Whether windows beside each other can be fetched as one: the file is the same, byte for byte.

        With a zone, each window has its own offset; compressed, each part is a member of its own.
        """
        alone = self.target.per_window or self.most is not None or self.request.time_zone is not None
        return not alone and not self.compression

    @property
    def plain(self) -> bool:
        """Whether the query gives rows of events, each by itself, and not of groups that reach over a window."""
        return not outline(self.request.query or "").has("group")

    def tasks(self) -> dict[Window, Task]:
        """The task of each window."""
        if self.target.per_window:
            paths = self.target.paths(self.whole, self.windows, self.about.window)
        else:
            paths = {window: self.part(window) for window in self.windows}
        plain = self.plain
        return {
            window: Task(
                window,
                self.request,
                self.format.name,
                path,
                self.compression,
                whole=self.target.per_window,
                most=self.most,
                retries=self.retries,
                plain=plain,
            )
            for window, path in paths.items()
        }


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run came to: totals over all windows of the range, and what this run did for them.

    `gaps` are the windows that are missing, each with its error; `until` is the end of what is in place without a gap
    before it: a merged file with a gap is not in place at all. `idle` says that all of it was in place before.
    `replaced` are the finished files that were replaced, each with what it was; `files` are those that are in place.
    """

    rows: int
    bytes: int
    windows: int
    fetched: int
    gaps: tuple[tuple[Window, SvcctlError], ...]
    until: int
    idle: bool = False
    replaced: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def kept(self) -> int:
        """The windows that earlier runs fetched."""
        return max(0, self.windows - self.fetched - len(self.gaps))
