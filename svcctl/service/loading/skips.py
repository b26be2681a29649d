"""Counts and describes the findings of a load: skipped lines, lines that are not events, and changed values.

Each kind of finding has a count, the place of its first occurrence, and a sentence that describes it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from svcctl.errors import UsageError
from svcctl.service.loading.limits import MAX_DEPTH
from svcctl.words import size_text, some

SHOWN = 60
"""The maximum number of characters of a value or a line in a message."""
LONGEST_LINE = 1 << 24
"""The maximum size, in bytes, of a line or of a csv record. Longer lines and records are skipped."""

DATE_OR_TIME = re.compile(r"\d:\d\d:\d\d|\d{4}-\d\d-\d\d")
"""Matches a part of a time. A comment with such a part may be an event."""
NOT_UTF8 = "not-utf8"
"""The `reason` of errors about files in an encoding other than UTF-8."""
NOTHING_CHANGED = "nothing was changed"


class Skip(StrEnum):
    """The reason why a line was skipped."""

    LONG = "too long"
    ENCODING = "not UTF-8"
    QUOTE = "open quote"
    CELLS = "too many cells"
    DEEP = "nested too deep"
    ENTRY = "no entry"
    NO_EVENTS = "no events"
    NO_TIME = "no time"
    TIME = "unread time"
    UNREAD_NUMBER = "unread number"
    SHORT_YEAR = "year of two digits"
    NO_YEAR = "no year"
    NO_DAY = "no date"
    EARLY = "before 1970"


class Change(StrEnum):
    """A kind of change that a load makes to values, or a choice that a load makes for the user."""

    COLUMN = "column of the time"
    SHORT = "short row"
    TEXT = "numbers as text"
    FINER = "finer time"
    ZONE = "assumed zone"
    INFINITE = "infinite number"
    ROUNDED = "rounded number"
    JSON = "JSON text"
    REPEATED = "repeated name"
    ENCODING = "replaced bytes"


class Aside(StrEnum):
    """A kind of line that is neither an event nor a skipped line, such as a blank line."""

    JOINED = "joined"
    COMMENT = "comment"
    BLANK = "blank"
    HEADING = "repeated heading"
    UNFINISHED = "unfinished"
    OUTSIDE = "outside the events"


NULLED = "another type"
"""The kind of finding for values that do not fit their column and become null."""

What = Skip | Change | Aside

_SENTENCES: Mapping[str, str] = {
    Skip.LONG: f"it is longer than {size_text(LONGEST_LINE)}",
    Skip.ENCODING: "it is not UTF-8: {value}",
    Skip.QUOTE: "a quote in it is not closed: {value}",
    Skip.CELLS: "it has too many cells: {value}",
    Skip.DEEP: f"values in it are nested more than {MAX_DEPTH} deep",
    Skip.ENTRY: "{value} is not an entry of the format {kind}",
    Skip.NO_EVENTS: "it has no array {fields}",
    Skip.NO_TIME: "it has no {fields} that can be read",
    Skip.TIME: "{fields} {value} is not a time",
    Skip.SHORT_YEAR: "{fields} {value} has a year of two digits",
    Skip.NO_YEAR: "{fields} {value} has no year",
    Skip.NO_DAY: "{fields} {value} has no date",
    Skip.UNREAD_NUMBER: "{fields} {value} is not an epoch between 2000 and tomorrow in the unit of the other "
    "numbers; for epochs of any year, name their unit as the time format: epoch, epoch_ms, epoch_us or epoch_ns",
    Skip.EARLY: "{fields} {value} is before 1970, the first year of events",
    NULLED: "{value} is not {kind}",
    Change.COLUMN: "dates were read from the column {fields}; --time-field names another",
    Change.SHORT: "the last cells are missing, and were read as null",
    Change.TEXT: "text, not numbers, because of other values in the column: {fields}; --types {wish} turns "
    "other values into null, and --null names texts that mean null (an existing table also needs --replace)",
    Change.FINER: "times are kept to the millisecond",
    Change.ZONE: "times without a zone were read as UTC; --time-zone names their zone",
    Change.JSON: "arrays, and objects that did not become columns, are JSON text: {fields}",
    Change.REPEATED: "a name occurs twice; its first value was loaded",
    Change.ENCODING: "bytes that are not UTF-8 were replaced by \N{REPLACEMENT CHARACTER}",
    Change.INFINITE: "NaN and infinite numbers are null: {fields}",
    Change.ROUNDED: "numbers of 16 digits and more may be rounded, because the column has float8: {fields}; "
    "the type str keeps their digits",
    Aside.JOINED: "it belongs to the entry above it",
    Aside.COMMENT: "it is a comment, and was left out",
    Aside.BLANK: "it is blank, and was left out",
    Aside.HEADING: "it is the heading again, and was left out",
    Aside.OUTSIDE: "members outside the events were left out: {value}",
    Aside.UNFINISHED: "it is the last line, is not finished, and was left out: {value}",
}

_HINTS: Mapping[Skip, str] = {
    Skip.TIME: "describe the time with --time-format, such as '%d/%m/%Y %H:%M:%S', or name another column "
    "with --time-field, or two as DATE,TIME",
}
"""Hints for files that could not be read, by the `Skip` of the first skipped line."""
REASONS: Mapping[Skip, str] = {
    Skip.ENCODING: NOT_UTF8,
    Skip.CELLS: "too-many-cells",
    Skip.SHORT_YEAR: "time-of-short-year",
    Skip.NO_YEAR: "time-without-year",
    Skip.NO_DAY: "time-without-day",
}
"""Codes of errors for files that could not be read, by the `Skip` of the first skipped line.

A code is the field `reason` of the error. The command line has the hints for these codes.
"""
_REASONS_BY_KIND: Mapping[tuple[Skip, str], str] = {
    (Skip.ENTRY, "log"): "no-time-in-line",
    (Skip.LONG, "ndjson"): "large-json-object",
}
"""Codes like those in REASONS, but for a single kind of file. The key also has the name of this kind."""


def sentence(what: str, value: str | None, fields: Sequence[str], kind: str) -> str:
    """Return the sentence that describes a finding, with a value and the names of columns.

    `what` is a Skip, a Change, an Aside, or NULLED. `kind` is the type of the column, or the format of the file.
    """
    wish = ",".join(f"{name}=float8" for name in fields)
    return _SENTENCES[what].format(value=shown(value or ""), fields=some(fields), kind=kind, wish=shlex.quote(wish))


def shown(text: str) -> str:
    """Return a text in quotes and on one line. A long text is cut off."""
    text = " ".join(filter(None, map(str.strip, text[: 1 << 12].splitlines())))
    return f"'{text}'" if len(text) <= SHOWN else f"'{text[: SHOWN - 1]}…'"


Found = tuple[int, int, str | None, str]
"""The count of a finding, and its first occurrence: the number of the line, the value and the column of the value."""
_WITH_LINE = (Skip.ENCODING, Skip.QUOTE, Skip.CELLS, Skip.ENTRY)
"""If a line is skipped for one of these reasons, the value of the finding is the whole line."""


@dataclass(slots=True)
class Tally:
    """Counts the findings in one file. Each kind of finding has a count, its first line, and the value in this line."""

    rows: int = 0
    """The number of rows that were loaded."""
    findings: dict[What, Found] = field(default_factory=dict)
    nulls: dict[str, Found] = field(default_factory=dict)
    """For each column, the number of values that do not fit the column, and the first of these values."""
    unfinished: int | None = field(default=None, compare=False)
    """The number of the last line if this line has no line end. Otherwise None."""
    emptied: int = field(default=0, compare=False)
    """The number of already counted lines that the reader has replaced by empty lines.

    These lines must not be counted again as blank lines.
    """
    strays: Found | None = field(default=None, compare=False)
    """The lines that were joined to the entry above them, but do not look like a part of it. None if there are none."""
    _last: tuple[Skip, str | None, str] | None = field(default=None, compare=False)
    _comment: tuple[Skip, int, str | None] | None = field(default=None, compare=False)
    """The first line that begins with `#` and has a date or a time of day, but does not fit the kind of the file."""

    def add(self, what: What, line: int, value: str | None = None, *, column: str = "", count: int = 1) -> None:
        if what is Aside.BLANK:
            hidden = min(count, self.emptied)
            self.emptied -= hidden
            count -= hidden
        if count:
            _count(self.findings, what, (count, line, value, column))

    def skip(
        self,
        what: Skip,
        line: int,
        value: str | None = None,
        *,
        column: str = "",
        begins: str | None = None,
        count: int = 1,
    ) -> None:
        """Count a line that cannot be read. `begins` is the beginning of the line.

        If the line is a comment, is blank, or repeats the heading, it is counted as an Aside instead.
        """
        begins = (value if what in _WITH_LINE else begins) or ""
        if begins.lstrip().startswith("#") and what is not Skip.EARLY:
            self.add(Aside.COMMENT, line, count=count)
            if what is Skip.ENTRY and self._comment is None and DATE_OR_TIME.search(begins):
                self._comment = what, line, value
        elif what in (Skip.ENTRY, Skip.NO_TIME) and begins.isspace():
            self.add(Aside.BLANK, line)
        elif what is Skip.TIME and value is not None and value.strip().casefold() == column.casefold():
            self.add(Aside.HEADING, line)
        elif line == self.unfinished:
            self._last = what, value, column
        else:
            self.add(what, line, value, column=column, count=count)

    def add_strays(self, line: int, lines: Sequence[str]) -> None:
        """Count the lines that do not look like a part of the entry above them. `line` is the number of the first line.

        Blank lines are not counted.
        """
        filled = [(at, text) for at, text in enumerate(lines, line) if text.strip()]
        if filled:
            total, first, value, _ = self.strays or (0, *filled[0], "")
            self.strays = total + len(filled), first, value, ""

    def null(self, column: str, line: int, value: str, *, count: int = 1) -> None:
        """Count values that do not fit their column."""
        _count(self.nulls, column, (count, line, value, column))

    def settle(self) -> None:
        """Count two lines whose meaning depends on the other lines of the file.

        The last line may be unfinished and impossible to read. It counts as unfinished if rows of the file were
        loaded, and as skipped if none were loaded. A comment with a date or a time of day counts as skipped if the
        file has no rows, because it may be an event.
        """
        if self._comment is not None and not self.rows:
            self.add(*self._comment)
            self._comment = None
        if self._last is not None and self.unfinished is not None:
            what, value, column = self._last
            self.add(Aside.UNFINISHED if self.rows else what, self.unfinished, value, column=column)
            self._last = None

    @property
    def skipped(self) -> int:
        """The number of skipped lines."""
        return sum(count for what, (count, *_) in self.findings.items() if isinstance(what, Skip))

    @property
    def lines(self) -> int:
        """The number of lines that were loaded or skipped. Lines that were joined to an entry are included."""
        return self.rows + self.skipped + self.findings.get(Aside.JOINED, (0,))[0]

    @property
    def first_skip(self) -> Skip | None:
        """The reason why the first skipped line was skipped."""
        skips = {line: what for what, (_, line, *_) in self.findings.items() if isinstance(what, Skip)}
        return skips[min(skips)] if skips else None


def incomplete(file: str, time: str, lack: Skip) -> UsageError:
    """Return the error for a log with times that lack a part. `lack` is the missing part."""
    return UsageError(f"{file} could not be read: {sentence(lack, time, ['the time'], '')}", reason=REASONS[lack])


def _count(counts: dict[Any, Found], key: object, new: Found) -> None:
    previous = counts.get(key)
    first = new if previous is None or new[1] < previous[1] else previous
    counts[key] = ((previous[0] if previous else 0) + new[0], *first[1:])


def unread(file: str, unit: str, tally: Tally, kind: str, hint: str = "") -> UsageError:
    """Return the error for the first line that was skipped. `kind` is the format of the file."""
    what = tally.first_skip
    assert what is not None
    _, line, value, column = tally.findings[what]
    reason = None if hint else _REASONS_BY_KIND.get((what, kind), REASONS.get(what))
    return UsageError(
        f"{file} could not be read: {unit} {line}: {sentence(what, value, [column], kind)}",
        hint=None if reason else hint or _HINTS.get(what, NOTHING_CHANGED).format(fields=column),
        reason=reason,
    )


def too_many(file: str, unit: str, tally: Tally, kind: str) -> UsageError:
    """Return the error for a file in which too many lines were skipped. The message shows the first skipped line."""
    what = tally.first_skip
    assert what is not None
    _, line, value, column = tally.findings[what]
    return UsageError(
        f"{tally.skipped:,} of {tally.skipped + tally.rows:,} {unit}s of {file} cannot be read; the first: "
        f"{unit} {line}: {sentence(what, value, [column], kind)}",
        hint=f"{NOTHING_CHANGED}; to load the others, add --max-skipped {tally.skipped}, or a share such as 50%",
    )


def too_many_strays(file: str, tally: Tally, kind: str) -> UsageError:
    """Return the error for a file with too many lines that may belong to no entry. `kind` is the format of the file."""
    assert tally.strays is not None
    count, line, value, _ = tally.strays
    return UsageError(
        f"{count:,} of {tally.lines:,} lines of {file} are not entries of the format {kind}, and "
        f"do not look like parts of the entries above them; the first: line {line}: {shown(value or '')}",
        reason="stray-lines",
        data={"format": kind},
    )


def unfit(
    file: str, unit: str, tally: Tally, types: Mapping[str, str], hint: str, wider: Mapping[str, str]
) -> UsageError:
    """Return the error for the first value that does not fit its column.

    `types` are the types of columns, and `wider` are the wider types that some columns could have.
    """
    column, (_, line, value, _) = min(tally.nulls.items(), key=lambda item: item[1][1])
    return UsageError(
        f"{file} could not be read: {unit} {line}: {column} {sentence(NULLED, value, [column], types[column])}",
        hint=hint,
        reason="value-unfit" if column in wider else None,
        data={"column": column, "type": wider.get(column)},
    )
