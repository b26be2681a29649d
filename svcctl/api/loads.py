"""What a load is asked, and what it answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from svcctl.api.refusals import records
from svcctl.dates.zones import named_zone
from svcctl.errors import UsageError
from svcctl.io.json_members import flag, members, optional_text, texts

_TABLE_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How files are read; an option that is not given is detected."""

    time_field: str | None = None
    time_format: str | None = None
    time_zone: str | None = None
    """The zone of dates that name none; UTC if not given."""
    format: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    null: Sequence[str] = ()
    """Texts that are read as null."""
    replace: bool = False
    strict: bool = False
    """Whether a line that would be skipped makes the load fail."""

    def to_json(self) -> dict[str, Any]:
        return {
            "timeField": self.time_field,
            "timeFormat": self.time_format,
            "timeZone": self.time_zone,
            "format": self.format,
            "types": self.types,
            "null": list(self.null),
            "replace": self.replace,
            "strict": self.strict,
        }

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> LoadOptions:
        """ServiceError for a member of another type, UsageError for an unknown zone."""
        zone = optional_text(source, "timeZone")
        return cls(
            time_field=optional_text(source, "timeField"),
            time_format=optional_text(source, "timeFormat"),
            time_zone=None if zone is None else named_zone(zone).shared_name,
            format=optional_text(source, "format"),
            types=members(source, "types"),
            null=texts(source, "null"),
            replace=flag(source, "replace", False),
            strict=flag(source, "strict", False),
        )


LOAD_OPTIONS = tuple(LoadOptions().to_json())
"""The names of the options in JSON."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a load found `count` times, first at `place`: `what` is its kind, and `sentence` tells it.

    `value` is the value at that place, and `fields` are the columns that it concerns.
    """

    what: str
    count: int
    place: str
    sentence: str
    value: str | None = None
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of a load. `skips` tell why lines were skipped, and `changes` what was changed in others.

    `oldest` and `newest` are the dates of the events, in epoch milliseconds; `before` counts the events that the table
    held before the load, and `empty` names the files without events.
    """

    table: str
    rows: int
    oldest: int | None = None
    newest: int | None = None
    before: int = 0
    empty: tuple[str, ...] = ()
    skips: tuple[Finding, ...] = ()
    changes: tuple[Finding, ...] = ()
    jobs: tuple[str, ...] = ()
    """The names of the jobs that read the table when it was replaced, as far as they are known."""

    @property
    def skipped(self) -> int:
        """How many lines were skipped."""
        return sum(skip.count for skip in self.skips)

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Loaded:
        return cls(
            str(source["table"]),
            int(source["rows"]),
            source["oldest"],
            source["newest"],
            int(source["before"]),
            tuple(source["empty"]),
            _findings(source, "skips"),
            _findings(source, "changes"),
            tuple(str(job["friendlyName"]) for job in records(source.get("jobs") or [])),
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def _findings(source: Mapping[str, Any], kind: str) -> tuple[Finding, ...]:
    return tuple(Finding(**{**one, "fields": tuple(one["fields"])}) for one in records(source.get(kind) or []))


def check_table_name(name: str) -> None:
    """Raise UsageError for a name that needs back quotes in a query because of its characters."""
    if not _TABLE_NAME.fullmatch(name):
        raise UsageError(
            f"'{name}' cannot name a table",
            hint="use letters, digits and _ in parts joined by dots, which begin with no digit, as in web.access",
        )
