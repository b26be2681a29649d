"""Loads of events: the options and results of loads in JSON, and the rule for the names of tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from svcctl.api.refusals import records
from svcctl.dates.zones import named_zone
from svcctl.errors import UsageError
from svcctl.io.json_members import flag, members, optional_flag, optional_text, texts

_SKIP_LIMIT = re.compile(r"(\d+|\d+\.\d+(?=%))(%?)", re.ASCII)
_TABLE_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class SkipLimit:
    """The maximum number of lines of a file that may be skipped.

    The limit is the larger of two numbers: `lines`, and `percent` of all lines of the file.
    """

    lines: int = 1
    percent: float = 10.0

    @classmethod
    def parse(cls, text: str) -> SkipLimit:
        """Parse a limit such as 20 or 5%. Raises UsageError for any other text."""
        match = _SKIP_LIMIT.fullmatch(text.strip())
        if match is None or float(match[1]) > (100 if match[2] else 1e15):
            raise UsageError(
                f"'{text}' is not a number of lines", hint="write a number such as 20, or a share such as 5%"
            )
        return cls(0, float(match[1])) if match[2] else cls(int(match[1]), 0.0)

    def allows(self, skipped: int, lines: int) -> bool:
        """Return whether the limit allows `skipped` skipped lines in a file of `lines` lines."""
        return skipped <= self.lines or 100 * skipped <= self.percent * lines

    def __str__(self) -> str:
        return f"{self.percent:g}%" if not self.lines and self.percent else str(self.lines)


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The options of a load, which describe how to read the files.

    If an option is not set, the service detects its value from the files.
    """

    time_field: str | None = None
    time_format: str | None = None
    time_zone: str | None = None
    """The time zone of dates without a zone. If the option is not set, the zone is UTC."""
    format: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    null: Sequence[str] = ()
    """Texts that are read as null."""
    replace: bool = False
    strict: bool = False
    """Whether the load fails if a line would be skipped, or if a value would become null."""
    max_skipped: SkipLimit | None = None
    """The maximum number of skipped lines in each file; None if the user has not set a limit."""
    header: bool | None = None
    """Whether the first row of a csv file contains the names of its columns."""
    names: Sequence[str] = ()
    """The names of the columns of csv files. These names replace the names in the files."""
    events_in: str | None = None
    """The member of JSON objects that contains an array of events, such as `Records` or `result.items`."""
    fixed_columns: bool = False
    """Whether the load fails if the files need a new column of the table, or a more general type of a column."""

    @property
    def skip_limit(self) -> SkipLimit:
        """The limit of skipped lines in each file.

        With `strict`, the limit is zero. Otherwise, the limit is `max_skipped`. If `max_skipped` is None, the default
        limit applies.
        """
        return SkipLimit(0, 0.0) if self.strict else self.max_skipped or SkipLimit()

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
            "maxSkipped": None if self.max_skipped is None else str(self.max_skipped),
            "header": self.header,
            "names": list(self.names),
            "eventsIn": self.events_in,
            "fixedColumns": self.fixed_columns,
        }

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> LoadOptions:
        """Read the options of a load from JSON.

        Raises ServiceError for a member of a wrong type, and UsageError for an invalid zone or limit.
        """
        zone, limit = optional_text(source, "timeZone"), optional_text(source, "maxSkipped")
        return cls(
            time_field=optional_text(source, "timeField"),
            time_format=optional_text(source, "timeFormat"),
            time_zone=None if zone is None else named_zone(zone).shared_name,
            format=optional_text(source, "format"),
            types=members(source, "types"),
            null=texts(source, "null"),
            replace=flag(source, "replace", False),
            strict=flag(source, "strict", False),
            max_skipped=None if limit is None else SkipLimit.parse(limit),
            header=optional_flag(source, "header"),
            names=texts(source, "names"),
            events_in=optional_text(source, "eventsIn"),
            fixed_columns=flag(source, "fixedColumns", False),
        )


FILE_TABLE = "file"
"""The name of the temporary table into which files are loaded for one query."""

LOAD_OPTIONS = tuple(LoadOptions().to_json())
"""The names of the options of a load in JSON."""


@dataclass(frozen=True, slots=True)
class LoadFinding:
    """A fact that a load noticed in the files, such as a reason for skipped lines.

    `count` is the number of times that the load noticed the fact, and `place` is the place where it was first noticed.
    `what` is the kind of the fact, and `sentence` describes the fact in words. `value` is the value at `place`.
    `fields` are the columns to which the fact refers.
    """

    what: str
    count: int
    place: str
    sentence: str
    value: str | None = None
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of a load.

    `skips` are the reasons for skipped lines. `nulls` are the columns with values that did not fit and became null.
    `changes` are the changes that the load made to lines before it stored them. `asides` are lines that are not events,
    such as comments. `oldest` and `newest` are dates of events, in epoch milliseconds. `before` is the number of events
    in the table before the load. `empty` names the files without events. `added` are the new columns of the table with
    their types, and `widened` are the columns with a new type. `left` names the members of JSON objects that got no
    column, because the table has no room for more columns. `wider` maps a column in `nulls` to a type that can hold
    the first value that did not fit. `arrays` names the members of JSON objects that contain arrays of objects. Such
    objects may be events.
    """

    table: str
    rows: int
    oldest: int | None = None
    newest: int | None = None
    before: int = 0
    empty: tuple[str, ...] = ()
    skips: tuple[LoadFinding, ...] = ()
    changes: tuple[LoadFinding, ...] = ()
    jobs: tuple[str, ...] = ()
    """The friendly names of the jobs that read the table, if the load replaced the events of the table."""
    nulls: tuple[LoadFinding, ...] = ()
    asides: tuple[LoadFinding, ...] = ()
    added: tuple[str, ...] = ()
    widened: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    wider: Mapping[str, str] = field(default_factory=dict)
    arrays: tuple[str, ...] = ()

    @property
    def end(self) -> int | None:
        """The millisecond after the newest event; None if there are no events."""
        return None if self.newest is None else self.newest + 1

    @property
    def skipped(self) -> int:
        """The number of skipped lines."""
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
            _findings(source, "nulls"),
            _findings(source, "asides"),
            added=texts(source, "added"),
            widened=texts(source, "widened"),
            left=texts(source, "left"),
            wider=members(source, "wider"),
            arrays=texts(source, "arrays"),
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def _findings(source: Mapping[str, Any], kind: str) -> tuple[LoadFinding, ...]:
    return tuple(LoadFinding(**{**item, "fields": tuple(item["fields"])}) for item in records(source.get(kind) or []))


def check_table_name(name: str) -> None:
    """Raise UsageError if the name of a table would need back quotes in a query."""
    if not _TABLE_NAME.fullmatch(name):
        raise UsageError(
            f"'{name}' cannot be the name of a table",
            hint="join parts of letters, digits and _ with dots, as in web.access; a part cannot begin with a digit",
        )
