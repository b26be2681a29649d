"""Windows of a range, and the names of their files.

Ranges and windows are half-open. Windows begin and end at multiples of their length, counted from 1970 in a time zone,
by default UTC. So all runs have the same windows. Windows of whole weeks begin on Monday. In a merged file, the first
and the last window are cut to the range; all other windows are whole. Dates in file names are in the same zone as the
windows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from itertools import pairwise
from string import Formatter

from svcctl.dates.lengths import UNITS, length_text
from svcctl.errors import UsageError

MAX_WINDOWS = 1_000_000
"""The maximum number of windows of an export. If there are more, the length of the windows is probably a mistake."""

FIRST_MONDAY = 4 * UNITS["d"]
"""The first Monday of 1970, in epoch seconds."""

_SPANS = tuple(hours * 3600 for hours in (1, 12, 24, 7 * 24, 31 * 24, 366 * 24))
"""Distances in seconds from the start of a leap year.

After each, another part of the date has changed: the hour, the half of the day, the day, the week, the month or the
year.
"""

_DIRECTIVE = r"%[-_0^#]?[aAbBcCdDeFgGhHIjklmMpPrRsSTuUVwWxXyYzZ]"
_DATE = re.compile(rf"(?:[^%{{}}]|%%)*{_DIRECTIVE}(?:[^%{{}}]|%%|{_DIRECTIVE})*")
"""A pattern for a format of strftime with at least one directive. (The function strftime accepts any text.)"""
_LITERAL = re.compile(rf"%%|({_DIRECTIVE})")
_EPOCH_SECONDS = re.compile(r"%%|%[-_0^#]?(s)")

_FIELD = re.compile(rf"\{{(?:start|end|from|to)(?::[^{{}}]*)?\}}|%%|{_DIRECTIVE}(?:[-_T:/]?{_DIRECTIVE})*")
"""A pattern for a field in braces, and for a date that lacks its braces."""


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """A window: the events with `start <= eventdate < end`. Both are in epoch seconds."""

    start: int
    end: int

    @property
    def name(self) -> str:
        """The text of the window in file names: 20240131T100000Z-20240131T110000Z."""
        return f"{_utc(self.start):%Y%m%dT%H%M%SZ}-{_utc(self.end):%Y%m%dT%H%M%SZ}"

    def __contains__(self, other: Window) -> bool:
        """Return whether this window contains all of the other window."""
        return self.start <= other.start and other.end <= self.end

    def __str__(self) -> str:
        return f"{_utc(self.start):%Y-%m-%d %H:%M:%S} to {_utc(self.end):%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True, slots=True)
class WindowGrid:
    """The edges of windows. They are multiples of `length`, in seconds, counted from `origin` in the time zone `zone`.

    `origin` is a local time of the zone. It is given as the epoch seconds of the same date and time in UTC.
    """

    length: int
    zone: tzinfo = UTC
    origin: int = 0

    def around(self, moment: int) -> Window:
        """Return the window that contains an epoch second.

        If the clocks of the zone change in it, it is longer or shorter. If the clocks show an hour twice, both hours
        are in the same window, so that no two windows have the same name.
        """
        clock = moment
        if self.zone is not UTC:
            clock = int(datetime.fromtimestamp(moment, self.zone).replace(tzinfo=UTC, fold=0).timestamp())
        start = clock - (clock - self.origin) % self.length
        if self.zone is UTC:
            return Window(start, start + self.length)
        while (end := _first(start + self.length, self.zone)) <= moment:
            start += self.length
        return Window(_first(start, self.zone), end)

    def cut(self, start: int, end: int) -> tuple[Window, ...]:
        """Cut a range into windows. The result is in order, and empty for an empty range.

        Raises UsageError for more than MAX_WINDOWS windows.
        """
        if (end - start) // self.length > MAX_WINDOWS:
            raise UsageError(
                f"the range has {(end - start) // self.length} windows of {length_text(self.length)}",
                hint=f"an export has at most {MAX_WINDOWS}: give a longer --window",
            )
        edges = [start]
        while edges[-1] < end:
            edges.append(min(self.around(edges[-1]).end, end))
        return tuple(Window(first, last) for first, last in pairwise(edges))

    def count(self, window: Window) -> int:
        """Return the number of windows of a range. A first or last window that is cut short counts, too."""
        if self.zone is not UTC:
            return len(self.cut(window.start, window.end))
        return -(-(window.end - self.origin) // self.length) - (window.start - self.origin) // self.length


def _first(clock: int, zone: tzinfo) -> int:
    """Return the first epoch second at which the local time of a zone is `clock` or later.

    `clock` is the local time, given as the epoch seconds of the same date and time in UTC.
    """
    shown = datetime.fromtimestamp(clock, UTC).replace(tzinfo=zone)
    moment, other = (int(shown.replace(fold=fold).timestamp()) for fold in (0, 1))
    while moment - other > 1:  # the clocks skip this time: search for the moment of the change
        middle = (moment + other) // 2
        skipped = datetime.fromtimestamp(middle, zone).replace(tzinfo=UTC).timestamp() >= clock
        moment, other = (middle, other) if skipped else (moment, middle)
    return moment


def filled_in(path: str) -> str | None:
    """Return the first field of a path, such as {from:%F}, or its first date outside of braces; None for neither."""
    return next((match[0] for match in _FIELD.finditer(path) if match[0] != "%%"), None)


@dataclass(frozen=True, slots=True)
class Target:
    """The path of one file, or a pattern that names a file for each window or each run.

    The fields `{start:…}` and `{end:…}` are the start and the end of a window; `{from:…}` and `{to:…}` are the start
    and the end of a run. The text after the colon is a date format of strftime. All dates are in `zone`. Outside of
    fields, %% is a percent sign.
    """

    text: str
    zone: tzinfo = UTC

    def __post_init__(self) -> None:
        try:
            fields = set(self._fields())
        except ValueError as error:
            cut = re.search(r"{\w+:[^}%]*$", self.text)
            hint = r"in a crontab, write \% for %: cron ends the command at %" if cut else None
            raise UsageError(f"'{self.text}' is not a pattern: {error}", hint=hint) from None
        if unknown := fields - {"start", "end", "from", "to"}:
            raise UsageError(
                f"unknown field {{{min(unknown)}}} in '{self.text}'", hint="fields are {start}, {end}, {from} and {to}"
            )

    def check_dates(self) -> None:
        """Raise UsageError for a date outside of braces or a wrong date format: the name would contain %F itself."""
        for literal, name, spec, _ in Formatter().parse(self.text):
            if matches := [match for match in _LITERAL.finditer(literal) if match[1]]:
                date = literal[matches[0].start() : matches[-1].end()]
                raise UsageError(
                    f"'{self.text}' has {date} outside of braces, where no date is filled in",
                    hint=f"write {{start:{date}}} for a file per window, {{from:{date}}} for a file per run; "
                    "%% is a percent sign",
                )
            if name is not None and spec and not _DATE.fullmatch(spec):
                raise UsageError(
                    f"'{spec}' in '{self.text}' is not a date format",
                    hint=f"write {{{name}:%F}} for a date such as 2024-01-31, {{{name}:%F/%H}} for one with the hour",
                )

    def _fields(self) -> Iterator[str]:
        return (name for _, name, _, _ in Formatter().parse(self.text) if name is not None)

    @property
    def per_window(self) -> bool:
        """Whether each window has its own file."""
        return not {"start", "end"}.isdisjoint(self._fields())

    @property
    def per_run(self) -> bool:
        """Whether names contain the start or the end of the run."""
        return not {"from", "to"}.isdisjoint(self._fields())

    @property
    def is_one_file(self) -> bool:
        """Whether all runs write the same file."""
        return not (self.per_window or self.per_run)

    @property
    def ends_with_run(self) -> bool:
        """Whether names contain the end of the run."""
        return "to" in self._fields()

    @property
    def folder(self) -> str:
        """The directory that all files share, with a slash at its end: the path before the first field."""
        return self._folder.replace("%%", "%")

    @property
    def rest(self) -> str:
        """The path after `folder`, with its fields."""
        return self.text.removeprefix(self._folder)

    @property
    def _folder(self) -> str:
        literal = next(iter(Formatter().parse(self.text)), ("",))[0]
        return literal[: literal.rfind("/") + 1]

    def path(self, whole: Window, window: Window | None = None) -> str:
        """Return the path of the file of a run over the range `whole`, or of the file of a window of this run."""
        window = window or whole
        moments = {"start": window.start, "end": window.end, "from": whole.start, "to": whole.end}
        return "".join(
            literal.replace("%%", "%") + ("" if name is None else self._written(moments[name], spec or ""))
            for literal, name, spec, _ in Formatter().parse(self.text)
        )

    def _written(self, seconds: int, spec: str) -> str:
        """Return an epoch second as a name has it: in the format `spec`, or in a compact format if `spec` is empty."""
        compact = "%Y%m%dT%H%M%SZ" if self.zone is UTC else "%Y%m%dT%H%M%S%z"
        # for %s, the C library would use the zone of the computer
        spec = _EPOCH_SECONDS.sub(lambda match: str(seconds) if match[1] else match[0], spec)
        return datetime.fromtimestamp(seconds, self.zone).strftime(spec or compact)

    def check_repeats(self, grid: WindowGrid) -> None:
        """Raise UsageError if two windows, or two runs, at different times have the same name.

        The names of a sample are compared: windows that follow each other, and windows on other days, in other months
        and in other years.
        """
        repeated = self._repeated(_samples(grid), {})
        if repeated is not None:
            path, first, second = repeated
            example = f"the windows {first} and {second} would both be written to {path}"
            if not self.per_window:
                runs = (f"{_utc(window.start):%Y-%m-%d %H:%M:%S} UTC" for window in (first, second))
                example = f"runs from {' and from '.join(runs)} would both write {path}"
            length = length_text(grid.length)
            raise UsageError(
                f"with windows of {length}, the names in '{self.text}' repeat: for example, {example}",
                hint=self._hint,
            )

    def paths(self, whole: Window, windows: Sequence[Window]) -> dict[Window, str]:
        """Return the path of each window. Raises UsageError if two windows have the same path."""
        owners: dict[str, Window] = {}
        repeated = self._repeated(windows, owners, whole)
        if repeated is not None:
            path, first, second = repeated
            raise UsageError(
                f"the windows {first} and {second} would both be written to {path}",
                hint=self._hint,
            )
        return {window: path for path, window in owners.items()}

    def _repeated(
        self, windows: Iterable[Window], owners: dict[str, Window], whole: Window | None = None
    ) -> tuple[str, Window, Window] | None:
        """Return the first path that two windows share, with these windows; None if all paths differ.

        Fills `owners` with the window of each path.
        """
        for window in windows:
            path = self.path(whole or window, window)
            if (other := owners.setdefault(path, window)) is not window:
                return path, other, window
        return None

    @property
    def _hint(self) -> str:
        """The hint for names that repeat."""
        field = "start" if self.per_window else "from"
        return f"give a longer --window, or write a more precise date into the pattern, as in {{{field}:%Y%m%dT%H%M%S}}"


def _samples(grid: WindowGrid) -> list[Window]:
    """Return windows that follow each other, and windows on other days, in other weeks, months and years."""
    first = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp())
    spans = (*range(0, 60 * grid.length, grid.length), *_SPANS)
    return sorted({grid.around(first + span) for span in spans})


def moment(seconds: int, zone: tzinfo = UTC) -> str:
    """Return an epoch second in ISO 8601, as export commands print it."""
    return datetime.fromtimestamp(seconds, zone).isoformat().replace("+00:00", "Z")


def _utc(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
