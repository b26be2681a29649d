"""What happened to the lines of a load: why one was skipped, and what was changed in what was read.

Each has a count, a first place and one sentence. This module imports no engine.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from svcctl.service.language.types import Column
from svcctl.words import counted

SHOWN = 60
"""The most characters that messages show of a value or a line."""
LONGEST_LINE = 1 << 24
"""The most bytes of a line, or of a record of csv; longer ones are skipped."""


class Skip(StrEnum):
    """Why a line was skipped."""

    LONG = "too long"
    ENCODING = "not UTF-8"
    QUOTE = "open quote"
    CELLS = "too many cells"
    ENTRY = "no entry"
    NO_TIME = "no time"
    TIME = "unread time"
    EARLY = "before 1970"
    TYPE = "another type"


class Change(StrEnum):
    """What was changed in what was read, or may be read otherwise than the user expects."""

    COLUMN = "column of the time"
    SHORT = "short row"
    TEXT = "numbers as text"
    MIXED = "several types"
    COMMAS = "commas in numbers"
    FINER = "finer time"
    ZONE = "assumed zone"
    NAMED_ZONE = "zone with several meanings"
    INFINITE = "infinite number"
    OBJECTS = "objects as text"
    TIMES = "times as text"
    REST = "rest of the line"
    FUTURE = "in the future"


_SKIPPED: Mapping[Skip, str] = {
    Skip.LONG: f"it is longer than {LONGEST_LINE >> 20} MiB",
    Skip.ENCODING: "it is not UTF-8: {value}",
    Skip.QUOTE: "a quote in it is not closed: {value}",
    Skip.CELLS: "it has too many cells: {value}",
    Skip.ENTRY: "{value} is not {remedy}",
    Skip.NO_TIME: "it has no {field}",
    Skip.TIME: "{field} {value} is not a time",
    Skip.EARLY: "{field} {value} is before 1970, where no query begins",
    Skip.TYPE: "{field} {value} is not {remedy}",
}
_MEMBERS = (
    """jq -c 'reduce (to_entries[] | select(.value|type=="object")) as $o (.; del(.[$o.key]) + ($o.value | """
    """with_entries(.key |= $o.key+"_"+.)))' FILE | svcctl service load - -t …"""
)
"""Turns {"http": {"status": 200}} into a member http_status; each further level needs another jq."""
_CHANGED: Mapping[Change, str] = {
    Change.COLUMN: "dates were read from the column {field}{remedy}; --time-field names another",
    Change.SHORT: "the last cells are missing, and null: {rows}; the first: {place}",
    Change.TEXT: "text, not numbers: {fields}, because of {rows} such as {example}; --types {remedy} skips "
    "lines without a number, and --null names texts that stand for nothing",
    Change.MIXED: "text, not numbers: {fields}, because of their values in {place}; --types {remedy} skips lines "
    "without a number",
    Change.COMMAS: "{remedy} in numbers of {fields}: {rows} such as {value} in {place}; --types {types} keeps the text",
    Change.FINER: "times are kept to the millisecond: {rows} such as {value} of {field} in {place}",
    Change.ZONE: "times without a zone were read as UTC: {rows}; --time-zone names their zone",
    Change.NAMED_ZONE: "times with a zone that means several were read in --time-zone: {rows}; the first: {place}",
    Change.INFINITE: "NaN and infinite numbers of {fields} are null: {rows}; the first: {place}",
    Change.OBJECTS: f"JSON text: {{fields}}; for columns of the members: {_MEMBERS}",
    Change.TIMES: "text: {fields}; --types {types} makes times of them",
    Change.REST: "the ends of {rows} were left out, as common and combined logs do not have them: {value} in {place}",
    Change.FUTURE: "events in the future, which a query that ends now does not have: {count}; the first: {place}",
}
_TYPES = {Change.COMMAS: "str", Change.TIMES: "timestamp"}
"""The type that --types has to give in a sentence."""


def shown(text: str) -> str:
    """A text in quotes and in one line, cut if it is long. Blanks inside stay, because they may be the mistake."""
    text = " ".join(filter(None, map(str.strip, text[: 1 << 12].splitlines())))
    return f"'{text}'" if len(text) <= SHOWN else f"'{text[: SHOWN - 1]}…'"


def some(names: Sequence[str]) -> str:
    """The first three names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that happened `count` times, first at `place`, with the value there and the columns it concerns.

    `remedy` completes the sentence: the type that a value does not have, or what --types should say.
    """

    what: Skip | Change
    count: int
    place: str
    value: str | None = None
    fields: tuple[str, ...] = ()
    remedy: str = ""

    @property
    def sentence(self) -> str:
        value = "" if self.value is None else shown(self.value)
        one = self.fields[0] if self.fields else ""
        if isinstance(self.what, Skip):
            return _SKIPPED[self.what].format(field=one, value=value, remedy=self.remedy)
        wish = ",".join(f"{name}={_TYPES[self.what]}" for name in self.fields) if self.what in _TYPES else ""
        return _CHANGED[self.what].format(
            field=one,
            fields=some(self.fields),
            value=value,
            place=self.place,
            example=f"{value} in {self.place}" if value else f"that in {self.place}",
            remedy=self.remedy,
            types=shlex.quote(wish),
            count=self.count,
            rows=counted(self.count, "row"),
        )


@dataclass(slots=True)
class Tally:
    """Counts what happens in one file: for each kind, how often, and the first line with the value there."""

    rows: int = 0
    """How many rows were loaded."""
    found: dict[Skip | Change, tuple[int, int, str | None, str]] = field(default_factory=dict)
    """Count, first line, the value there, and its column."""

    def add(
        self, what: Skip | Change, line: int, value: str | None = None, *, column: str = "", count: int = 1
    ) -> None:
        had = self.found.get(what)
        if had is None or line < had[1]:
            self.found[what] = ((had[0] if had else 0) + count, line, value, column)
        else:
            self.found[what] = (had[0] + count, *had[1:])

    @property
    def skipped(self) -> int:
        return sum(count for what, (count, *_) in self.found.items() if isinstance(what, Skip))

    @property
    def first_skip(self) -> Skip | None:
        """The skip of the first line that was skipped."""
        skips = {line: what for what, (_, line, *_) in self.found.items() if isinstance(what, Skip)}
        return skips[min(skips)] if skips else None


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The result of a load: rows added, lines skipped, and what happened to them.

    `oldest` and `newest` are the first and last date of the added rows, in epoch milliseconds. `before` is how many
    events the table had before, and `empty` names the files without events.
    """

    table: str
    columns: tuple[Column, ...]
    rows: int
    skipped: int = 0
    oldest: int | None = None
    newest: int | None = None
    before: int = 0
    empty: tuple[str, ...] = ()
    skips: tuple[Finding, ...] = ()
    changes: tuple[Finding, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The members of the answer to a load; a finding has its sentence, too."""
        told = ("skips", "changes")
        found = {kind: [asdict(one) | {"sentence": one.sentence} for one in getattr(self, kind)] for kind in told}
        return asdict(self) | found
