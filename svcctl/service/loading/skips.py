"""The lines that a load skips, and what it changes in others: the reasons, their counts, and their sentences.

Each has a count, a first place and one sentence. This module imports no engine.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from svcctl.errors import UsageError
from svcctl.service.loading.limits import MAX_DEPTH
from svcctl.words import size_text, some

SHOWN = 60
"""The most characters that messages show of a value or a line."""
LONGEST_LINE = 1 << 24
"""The most bytes of a line, or of a record of csv; longer ones are skipped."""

NOT_UTF8 = "not-utf8"
"""The reason of errors about files in another encoding."""
NOTHING = "nothing was changed"


class Skip(StrEnum):
    """Why a line was skipped."""

    LONG = "too long"
    ENCODING = "not UTF-8"
    QUOTE = "open quote"
    CELLS = "too many cells"
    DEEP = "nested too deep"
    ENTRY = "no entry"
    NO_TIME = "no time"
    TIME = "unread time"
    EARLY = "before 1970"
    TYPE = "another type"


class Change(StrEnum):
    """What was changed in what was read, or chosen for the user."""

    COLUMN = "column of the time"
    SHORT = "short row"
    TEXT = "numbers as text"
    FINER = "finer time"
    ZONE = "assumed zone"
    INFINITE = "infinite number"
    REST = "rest of the line"


_SENTENCES: Mapping[Skip | Change, str] = {
    Skip.LONG: f"it is longer than {size_text(LONGEST_LINE)}",
    Skip.ENCODING: "it is not UTF-8: {value}",
    Skip.QUOTE: "a quote in it is not closed: {value}",
    Skip.CELLS: "it has too many cells: {value}",
    Skip.DEEP: f"values in it are nested more than {MAX_DEPTH} deep",
    Skip.ENTRY: "{value} is not an entry of the format {kind}",
    Skip.NO_TIME: "it has no {fields} that can be read",
    Skip.TIME: "{fields} {value} is not a time",
    Skip.EARLY: "{fields} {value} is before 1970, and events begin there",
    Skip.TYPE: "{fields} {value} is not {kind}",
    Change.COLUMN: "dates were read from the column {fields}; --time-field names another",
    Change.SHORT: "the last cells are missing, and null",
    Change.TEXT: "text, not numbers, because of other values in the column: {fields}; to change that, load "
    "again with --replace and --types {wish}, which skips lines without a number there, or --null, which names texts "
    "that mean null",
    Change.FINER: "times are kept to the millisecond",
    Change.ZONE: "times without a zone were read as UTC; --time-zone names their zone",
    Change.INFINITE: "NaN and infinite numbers are null: {fields}",
    Change.REST: "the ends of lines, which common and combined logs do not have, were left out",
}

_HINTS: Mapping[Skip, str] = {
    Skip.TIME: "describe how it is written with --time-format, such as '%d/%m/%Y %H:%M:%S', or name another column "
    "with --time-field, or two as DATE,TIME",
    Skip.TYPE: "read the column as another type, such as with --types {fields}=str",
}
"""What helps if no line of a file could be read."""


def sentence(what: Skip | Change, value: str | None, fields: Sequence[str], kind: str) -> str:
    """What happened, with the value and the columns; `kind` is the type or the format that the value does not have."""
    wish = ",".join(f"{name}=float8" for name in fields)
    return _SENTENCES[what].format(value=shown(value or ""), fields=some(fields), kind=kind, wish=shlex.quote(wish))


def shown(text: str) -> str:
    """A text in quotes and in one line, cut if it is long. Blanks inside stay, because they may be the mistake."""
    text = " ".join(filter(None, map(str.strip, text[: 1 << 12].splitlines())))
    return f"'{text}'" if len(text) <= SHOWN else f"'{text[: SHOWN - 1]}…'"


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
    def first_skip(self) -> Skip | None:
        """The skip of the first line that was skipped."""
        skips = {line: what for what, (_, line, *_) in self.found.items() if isinstance(what, Skip)}
        return skips[min(skips)] if skips else None


def unread(file: str, unit: str, tally: Tally, kind: str = "", hint: str = "") -> UsageError:
    """The error for the first line that was skipped. `kind` is as in `sentence`."""
    what = tally.first_skip
    assert what is not None
    _, line, value, column = tally.found[what]
    encoded = what is Skip.ENCODING and not hint
    return UsageError(
        f"{file} could not be read: {unit} {line}: {sentence(what, value, [column], kind)}",
        hint=None if encoded else hint or _HINTS.get(what, NOTHING).format(fields=column),
        reason=NOT_UTF8 if encoded else None,
    )
