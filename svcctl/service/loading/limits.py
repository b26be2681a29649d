"""The limits of a load: time, unpacked bytes of the files, memory, and added columns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Self

from svcctl.dates.lengths import length_text
from svcctl.errors import ServiceError
from svcctl.service.settings import (
    LOAD_BYTES,
    LOAD_COLUMNS,
    LOAD_DEPTH,
    LOAD_MEMORY,
    LOAD_NESTED_COLUMNS,
    LOAD_RATIO,
    LOAD_TIME,
)
from svcctl.words import size_text

MAX_FIELDS = 1000
"""The maximum number of columns of a file. A heading with more names is probably data."""
MAX_FREE_BYTES = 500_000_000
"""A file that unpacks to at most this many bytes may have any ratio of unpacked size to packed size.

Small files with many equal rows have a high ratio, too.
"""
MAX_DEPTH = 200
"""The maximum depth to which the values of a JSON object may be nested."""
_UNCHANGED = "nothing was changed"


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """The limits of a load that operators can set."""

    seconds: float = LOAD_TIME.default_value
    unpacked_bytes: int = LOAD_BYTES.default_value
    """The maximum unpacked size, in bytes, of all files of a load together."""
    ratio: int = LOAD_RATIO.default_value
    """The maximum ratio of a file's unpacked size to its packed size.

    This limit applies to files that unpack to more than MAX_FREE_BYTES.
    """
    memory_bytes: int = LOAD_MEMORY.default_value
    """The maximum memory, in bytes, of the engine that reads the files."""
    depth: int = LOAD_DEPTH.default_value
    """The maximum depth of members that become columns. The member `a.b` has the depth 2.

    With the limit 1, all objects stay JSON text.
    """
    nested_columns: int = LOAD_NESTED_COLUMNS.default_value
    """The maximum number of columns that a file may have for members of nested objects."""
    added_columns: int = LOAD_COLUMNS.default_value
    """The maximum number of columns that all loads together may add to a table."""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        settings = (LOAD_TIME, LOAD_BYTES, LOAD_RATIO, LOAD_MEMORY, LOAD_DEPTH, LOAD_NESTED_COLUMNS, LOAD_COLUMNS)
        return cls(*(setting.read(environment) for setting in settings))


class LoadWatch:
    """Ends a load that has reached a limit or has lost its client.

    `check` and `unpacked` raise the error that ends the load. `go_on` raises an error when the client is gone.
    """

    def __init__(
        self,
        go_on: Callable[[], None],
        limits: LoadLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits or LoadLimits()
        self._go_on = go_on
        self._clock = clock
        self._end = clock() + self.limits.seconds
        self._unpacked: dict[Path, int] = {}
        self._checking = Lock()

    def check(self) -> None:
        """Raise an error if the client is gone or the load has taken too long."""
        with self._checking:  # several threads call this method
            self._go_on()
        if self._clock() >= self._end:
            raise ServiceError(
                f"the load took longer than {length_text(self.limits.seconds)}",
                code=422,
                hint=f"{_UNCHANGED}; load less at a time, or set {LOAD_TIME.name} for the service",
            )

    def unpacked(self, path: Path, name: str, size: int) -> None:
        """Record that a file unpacks to at least `size` bytes. Raises ServiceError if a limit is exceeded."""
        self._unpacked[path] = max(size, self._unpacked.get(path, 0))
        if sum(self._unpacked.values()) > self.limits.unpacked_bytes:
            raise ServiceError(
                f"{name} unpacks to too many bytes: a load may unpack at most {size_text(self.limits.unpacked_bytes)}",
                code=413,
                hint=f"{_UNCHANGED}; load less at a time, or set {LOAD_BYTES.name} for the service",
            )
        if size > MAX_FREE_BYTES and size > self.limits.ratio * path.stat().st_size:
            raise ServiceError(
                f"{name} unpacks to more than {self.limits.ratio:,} times its size",
                code=413,
                hint=f"{_UNCHANGED}; if the file is not a mistake, set {LOAD_RATIO.name} for the service",
            )

    def out_of_memory(self, name: str, kind: str) -> ServiceError:
        """Return the error for a file that needs more memory than a load may use."""
        return ServiceError(
            f"cannot read {name} as {kind}: it needs more memory than the {size_text(self.limits.memory_bytes)} that a "
            "load may use",
            code=422,
            hint=f"{_UNCHANGED}; leave out the largest lines or values, or set {LOAD_MEMORY.name} for the service",
        )
