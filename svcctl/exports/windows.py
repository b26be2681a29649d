"""Windows: how a range is cut, and the files that windows are written to.

A window is half-open, as the range is. Windows begin and end at UTC multiples of their length, counted from 1970, and
only the first and the last are cut to the range: so the same windows come out on every run, whatever the range.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from math import lcm
from string import Formatter

from svcctl.errors import UsageError

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
"""Seconds of the units in which a length is written."""

MAX_WINDOWS = 1_000_000
"""More windows than this are a mistake in the length."""

_SPANS = tuple(hours * 3600 for hours in (1, 12, 24, 7 * 24, 31 * 24, 366 * 24))
"""From the start of a leap year to another hour, half of a day, day, week, month and year with the rest the same."""

_LENGTH = re.compile(r"(\d{1,9})([smhd])", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """`start <= eventdate < end`, both in epoch seconds."""

    start: int
    end: int

    @property
    def name(self) -> str:
        """The window as part of a file name: 20240131T100000Z-20240131T110000Z."""
        return f"{_utc(self.start):%Y%m%dT%H%M%SZ}-{_utc(self.end):%Y%m%dT%H%M%SZ}"

    def __contains__(self, other: Window) -> bool:
        """Whether this window covers all of the other one."""
        return self.start <= other.start and other.end <= self.end

    def __str__(self) -> str:
        return f"{_utc(self.start):%Y-%m-%d %H:%M:%S} to {_utc(self.end):%Y-%m-%d %H:%M:%S} UTC"

    def count(self, length: int) -> int:
        """How many windows of this length a range has, the first and the last of them cut."""
        return -(-self.end // length) - self.start // length

    def halves(self) -> tuple[Window, Window]:
        """Two windows that share this one; ValueError for a window of one second."""
        if self.end - self.start < 2:
            raise ValueError(f"{self} is not longer than a second")
        middle = (self.start + self.end) // 2
        return Window(self.start, middle), Window(middle, self.end)


def parse_length(text: str) -> int:
    """Seconds of a length such as 30s, 5m, 1h or 1d; UsageError otherwise."""
    match = _LENGTH.fullmatch(text)
    if match is None or not int(match[1]):
        raise UsageError(f"'{text}' is not a valid length", hint="write it as 30s, 5m, 1h or 1d")
    return int(match[1]) * UNITS[match[2]]


def length_text(seconds: int) -> str:
    """A length in its largest unit: 3600 is 1h."""
    unit, size = max((one for one in UNITS.items() if seconds % one[1] == 0), key=lambda one: one[1])
    return f"{seconds // size}{unit}"


def common_length(length: int, periods: Sequence[int]) -> int:
    """The shortest multiple of `length` that no period crosses: a period that does not divide the window widens it."""
    return lcm(length, *periods)


def cut(start: int, end: int, length: int) -> tuple[Window, ...]:
    """The windows of a range, in order; none for an empty one. UsageError when they are too many."""
    if (end - start) // length > MAX_WINDOWS:
        raise UsageError(
            f"the range has {(end - start) // length} windows of {length_text(length)}",
            hint=f"an export has at most {MAX_WINDOWS}: give a longer --window",
        )
    edges = [start, *range(start - start % length + length, end, length), end]
    return tuple(Window(one, other) for one, other in pairwise(edges) if one < other)


@dataclass(frozen=True, slots=True)
class Target:
    """Where an export goes, as it was written: one file, or a pattern that names a file for each window.

    The fields of a pattern are `{start:…}` and `{end:…}`, a window's ends, and `{from:…}` and `{to:…}`, the run's. What
    follows the colon is a date format as of strftime; all times are UTC.
    """

    text: str

    def __post_init__(self) -> None:
        try:
            fields = set(self._fields())
        except ValueError as error:
            raise UsageError(f"'{self.text}' is not a pattern: {error}") from None
        if unknown := fields - {"start", "end", "from", "to"}:
            raise UsageError(
                f"unknown field {{{min(unknown)}}} in '{self.text}'", hint="fields are {start}, {end}, {from} and {to}"
            )

    def _fields(self) -> Iterator[str]:
        return (name for _, name, _, _ in Formatter().parse(self.text) if name is not None)

    @property
    def per_window(self) -> bool:
        """Whether each window is a file of its own."""
        return not {"start", "end"}.isdisjoint(self._fields())

    @property
    def per_run(self) -> bool:
        """Whether each run has a name of its own."""
        return not {"from", "to"}.isdisjoint(self._fields())

    @property
    def is_one_file(self) -> bool:
        """Whether all runs write the same file."""
        return not (self.per_window or self.per_run)

    @property
    def ends_with_run(self) -> bool:
        """Whether a name depends on where the run ends."""
        return "to" in self._fields()

    @property
    def folder(self) -> str:
        """The part of the path before the first field, up to a slash: what all files of a pattern have in common."""
        literal = next(iter(Formatter().parse(self.text)), ("",))[0]
        return literal[: literal.rfind("/") + 1]

    def path(self, whole: Window, window: Window | None = None) -> str:
        """The file of a run over `whole`, or that of one of its windows."""
        window = window or whole
        moments = {"start": window.start, "end": window.end, "from": whole.start, "to": whole.end}
        return self.text.format_map({name: _Moment(_utc(seconds)) for name, seconds in moments.items()})

    def check_repeats(self, length: int) -> None:
        """UsageError when the names of files, a window or a run each, repeat as time goes on.

        A name has to differ from that of the windows beside it, of the same time on other days, in other months, years.
        """
        first = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp())
        moments = {first + span - (first + span) % length for span in (*range(0, 60 * length, length), *_SPANS)}
        taken: dict[str, Window] = {}
        for window in (Window(start, start + length) for start in sorted(moments)):
            path = self.path(window)
            if (other := taken.setdefault(path, window)) is not window:
                raise UsageError(
                    f"the names in '{self.text}' repeat: {path} is that of {other} and of {window}",
                    hint="name more of the time in the pattern, as in {start:%Y%m%dT%H%M%S}",
                )

    def paths(self, whole: Window, windows: Sequence[Window]) -> dict[Window, str]:
        """The file of each window; UsageError when two windows would have the same."""
        taken: dict[str, Window] = {}
        for window in windows:
            path = self.path(whole, window)
            if (other := taken.get(path)) is not None:
                raise UsageError(
                    f"the windows {other} and {window} would both be written to {path}",
                    hint="name more of the time in the pattern, as in {start:%Y%m%dT%H%M%S}",
                )
            taken[path] = window
        return {window: path for path, window in taken.items()}


class _Moment:
    """A time in a pattern: as its format says, or compactly where there is none."""

    def __init__(self, moment: datetime) -> None:
        self._moment = moment

    def __format__(self, spec: str) -> str:
        return self._moment.strftime(spec or "%Y%m%dT%H%M%SZ")


def _utc(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
