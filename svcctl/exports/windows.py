"""Windows of a range, and the names of their files.

Ranges and windows are half-open. Windows begin and end at multiples of their length, counted from 1970 in a time zone,
by default UTC. So all runs cut time into the same windows. Weeks begin on Monday. Only the first and the last window of
a merged file are cut to the range. The dates in the names of files are of the same zone.
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
"""The most windows of an export; more are taken for a mistake in the length."""

FIRST_MONDAY = 4 * UNITS["d"]
"""The first Monday after 1970 began, in epoch seconds."""

_SPANS = tuple(hours * 3600 for hours in (1, 12, 24, 7 * 24, 31 * 24, 366 * 24))
"""Seconds after the start of a leap year at which only the hour, half day, day, week, month or year differs."""

_DIRECTIVE = r"%[-_0^#]?[aAbBcCdDeFgGhHIjklmMpPrRsSTuUVwWxXyYzZ]"
_DATE = re.compile(rf"(?:[^%{{}}]|%%)*{_DIRECTIVE}(?:[^%{{}}]|%%|{_DIRECTIVE})*")
"""A format of strftime with at least one directive; strftime itself accepts any text."""
_LITERAL = re.compile(rf"%%|({_DIRECTIVE})")
_EPOCH_SECONDS = re.compile(r"%%|%[-_0^#]?(s)")

_FIELD = re.compile(rf"\{{(?:start|end|from|to)(?::[^{{}}]*)?\}}|%%|{_DIRECTIVE}(?:[-_T:/]?{_DIRECTIVE})*")
"""The fields of a pattern, and dates that would be fields in braces."""


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
        """Whether this window covers the whole other window."""
        return self.start <= other.start and other.end <= self.end

    def __str__(self) -> str:
        return f"{_utc(self.start):%Y-%m-%d %H:%M:%S} to {_utc(self.end):%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True, slots=True)
class WindowGrid:
    """The edges of windows: multiples of a length in seconds, counted from `origin` in a zone.

    `origin` is a local time of the zone, given as the epoch seconds of the same time in UTC.
    """

    length: int
    zone: tzinfo = UTC
    origin: int = 0

    def around(self, moment: int) -> Window:
        """The window around an epoch second. A window in which the clocks of the zone change is longer or shorter.

        When an hour repeats, both passes are in the same window, so that no two windows have the same name.
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
        """The windows of a range, in order; none for an empty range. UsageError for more than MAX_WINDOWS."""
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
        """The number of windows of a range, including a first and a last window that are cut."""
        if self.zone is not UTC:
            return len(self.cut(window.start, window.end))
        return -(-(window.end - self.origin) // self.length) - (window.start - self.origin) // self.length


def _first(clock: int, zone: tzinfo) -> int:
    """The first epoch second at which the zone's local time is `clock` or later; `clock` is read as if in UTC."""
    shown = datetime.fromtimestamp(clock, UTC).replace(tzinfo=zone)
    moment, other = (int(shown.replace(fold=fold).timestamp()) for fold in (0, 1))
    while moment - other > 1:  # the clocks skip this time: search for the moment of the change
        middle = (moment + other) // 2
        skipped = datetime.fromtimestamp(middle, zone).replace(tzinfo=UTC).timestamp() >= clock
        moment, other = (middle, other) if skipped else (moment, middle)
    return moment


def filled_in(path: str) -> str | None:
    """The first field of a path, such as {from:%F}, or the first date outside of braces; None for a plain path."""
    return next((match[0] for match in _FIELD.finditer(path) if match[0] != "%%"), None)


@dataclass(frozen=True, slots=True)
class Target:
    """The path of one file, or a pattern that names a file for each window or each run.

    The fields `{start:…}` and `{end:…}` are the edges of a window, `{from:…}` and `{to:…}` those of a run. The text
    after the colon is a date format of strftime. All dates are in `zone`. Outside of fields, %% is a percent sign.
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
        """UsageError for a date outside of braces, or a wrong date format: the name would contain %F itself."""
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
        """Whether each run has its own name."""
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
        """The directory before the first field, with a slash at its end: the one that all files share."""
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
        """The path of the file of a run over `whole`, or of a window of this run."""
        window = window or whole
        moments = {"start": window.start, "end": window.end, "from": whole.start, "to": whole.end}
        return "".join(
            literal.replace("%%", "%") + ("" if name is None else self._written(moments[name], spec or ""))
            for literal, name, spec, _ in Formatter().parse(self.text)
        )

    def _written(self, seconds: int, spec: str) -> str:
        """An epoch second in a name: in the format `spec`, or compactly without one."""
        compact = "%Y%m%dT%H%M%SZ" if self.zone is UTC else "%Y%m%dT%H%M%S%z"
        # the C library fills in %s by the zone of the computer
        spec = _EPOCH_SECONDS.sub(lambda match: str(seconds) if match[1] else match[0], spec)
        return datetime.fromtimestamp(seconds, self.zone).strftime(spec or compact)

    def check_repeats(self, grid: WindowGrid) -> None:
        """UsageError when two windows, or two runs, at different times have the same name.

        Names are compared with those of the next windows, and of the same time on other days, months and years.
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
        """The path of each window; UsageError when two windows have the same path."""
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
        """The first path that two windows share, with both windows; fills `owners` with the window of each path."""
        for window in windows:
            path = self.path(whole or window, window)
            if (other := owners.setdefault(path, window)) is not window:
                return path, other, window
        return None

    @property
    def _hint(self) -> str:
        """The hint against repeated names."""
        field = "start" if self.per_window else "from"
        return f"give a longer --window, or write a more precise date into the pattern, as in {{{field}:%Y%m%dT%H%M%S}}"


def _samples(grid: WindowGrid) -> list[Window]:
    """Windows in a row, and windows at the same time on other days, in other months and years."""
    first = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp())
    spans = (*range(0, 60 * grid.length, grid.length), *_SPANS)
    return sorted({grid.around(first + span) for span in spans})


def moment(seconds: int, zone: tzinfo = UTC) -> str:
    """An epoch second in ISO 8601, as an export prints it."""
    return datetime.fromtimestamp(seconds, zone).isoformat().replace("+00:00", "Z")


def _utc(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
