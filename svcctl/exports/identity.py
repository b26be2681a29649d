"""The identity of an export: its query, format, window length, service, date format and time zone.

Exports with the same identity can share files. An export never uses the files of an export with another identity.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any

from svcctl.dates.lengths import length_text
from svcctl.dates.zones import Zone, named_zone
from svcctl.exports.windows import Window, WindowGrid


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of an export: its query, format, window length, service, date format and time zone."""

    query: str
    """The query in one line, without comments."""
    format: str
    window: int
    """The length of a time window in seconds."""
    service: str
    """The base URL of the service, without credentials."""
    date_format: str | None = None
    time_zone: Zone | None = None
    """The time zone of the dates in the rows. It is None if no zone is requested."""
    window_zone: Zone | None = None
    """The time zone of the time windows and of the dates in file names. It is None for UTC."""
    window_origin: int = 0
    """The local time from which windows are counted, in seconds after 1970-01-01 00:00 local time."""

    @property
    def clocks(self) -> tzinfo:
        """The time zone of the windows and of the dates in file names, as a tzinfo object."""
        return UTC if self.window_zone is None else self.window_zone.clocks

    @property
    def grid(self) -> WindowGrid:
        """The rule that says where all windows begin and end."""
        return WindowGrid(self.window, self.clocks, self.window_origin)

    def count(self, windows: Iterable[Window]) -> int:
        """Return how many windows of this export lie in several time ranges, either completely or partly.

        The parameter `windows` contains these time ranges.
        """
        return sum(map(self.grid.count, windows))

    @property
    def named(self) -> Mapping[str, str]:
        """The fields as texts, by their names in messages. The option of the field `time zone` is --time-zone."""
        members = {"query": self.query, "format": self.format, "service": self.service}
        zone = self.window_zone or self.time_zone
        options = {"date format": self.date_format, "time zone": zone.name if zone else None}
        members["window"] = length_text(self.window)
        return members | {name: value for name, value in options.items() if value is not None}

    def difference(self, other: Identity) -> tuple[str, str]:
        """Return two texts about the fields in which this identity and `other` differ.

        The first text lists these fields, with the values of this identity. The second text lists the options that a
        user must give for an export with this identity.
        """
        own, others = self.named, other.named
        differences, options = [], []
        for name in {**own, **others}:
            value = own.get(name)
            if value == others.get(name):
                continue
            if name == "query":
                differences.append("another query")
                options.append("the same query")
                continue
            option = f"--{name.replace(' ', '-')}"
            differences.append(f"another {name}" + f" ({value})" * (value is not None))
            options.append(f"no {option}" if value is None else f"{option} {shlex.quote(value.partition('.')[0])}")
        return " and ".join(differences), " and ".join(options)

    @property
    def key(self) -> str:
        """The SHA-256 hash of all fields, in hexadecimal. Equal identities have the same key."""
        text = json.dumps(self.to_json(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the identity as JSON, for the member `about` of a record file.

        Time zones are written by name. The member `clock` is the time zone of the windows.
        """
        options = {
            "date_format": self.date_format,
            "time_zone": self.time_zone.name if self.time_zone else None,
            "clock": self.window_zone.name if self.window_zone else None,
            "origin": self.window_origin or None,
        }
        return {
            "query": self.query,
            "format": self.format,
            "window": self.window,
            "service": self.service,
            "options": {name: value for name, value in options.items() if value is not None},
        }

    @classmethod
    def from_json(cls, query: str, format: str, window: int, service: str, options: Mapping[str, Any]) -> Identity:
        """Make an identity from the member `about` of a record file.

        Raises TypeError for unknown members. Raises UsageError for an unknown time zone.
        """
        zones = {name: named_zone(options[name]) if name in options else None for name in ("time_zone", "clock")}
        if unknown := options.keys() - {"date_format", "origin", *zones}:
            raise TypeError(f"unknown options: {unknown}")
        return cls(
            query,
            format,
            window,
            service,
            options.get("date_format"),
            zones["time_zone"],
            zones["clock"],
            options.get("origin", 0),
        )
