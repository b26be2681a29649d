"""The time windows of a range of dates, and the names of their files.

Ranges and windows include their start, but not their end. Windows begin and end at multiples of their length, counted
from 1970 in a time zone. By default, the time zone is UTC. Because of this rule, all runs have the same windows.
Windows of whole weeks normally begin on Monday. In a merged file, the first and the last window are shortened to fit
the range. All other windows are whole. Dates in file names are in the same zone as the windows.
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
"""The maximum number of windows of an export. A length that gives more windows is probably a mistake."""

FIRST_MONDAY = 4 * UNITS["d"]
"""The first Monday of 1970, in epoch seconds."""

_SPANS = tuple(hours * 3600 for hours in (1, 12, 24, 7 * 24, 31 * 24, 366 * 24))
"""Time spans in seconds: an hour, half a day, a day, a week, the longest month and the longest year.

A sample of windows has a window at each of these distances from its first window.
"""

_DIRECTIVE = r"%[-_0^#]?[aAbBcCdDeFgGhHIjklmMpPrRsSTuUVwWxXyYzZ]"
_DATE = re.compile(rf"(?:[^%{{}}]|%%)*{_DIRECTIVE}(?:[^%{{}}]|%%|{_DIRECTIVE})*")
"""A pattern for a strftime format with at least one directive. The function strftime itself accepts any text."""
_LITERAL = re.compile(rf"%%|({_DIRECTIVE})")
_EPOCH_SECONDS = re.compile(r"%%|%[-_0^#]?(s)")

_FIELD = re.compile(rf"\{{(?:start|end|from|to)(?::[^{{}}]*)?\}}|%%|{_DIRECTIVE}(?:[-_T:/]?{_DIRECTIVE})*")
"""A pattern for a field in braces, such as {from:%F}, and for a date format without braces, such as %F."""


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """A time window, which has the events with `start <= eventdate < end`. `start` and `end` are epoch seconds."""

    start: int
    end: int

    @property
    def name(self) -> str:
        """The text of the window in file names, such as 20240131T100000Z-20240131T110000Z."""
        return f"{_utc(self.start):%Y%m%dT%H%M%SZ}-{_utc(self.end):%Y%m%dT%H%M%SZ}"

    def __contains__(self, other: Window) -> bool:
        """Return whether the other window lies completely within this window."""
        return self.start <= other.start and other.end <= self.end

    def __str__(self) -> str:
        return f"{_utc(self.start):%Y-%m-%d %H:%M:%S} to {_utc(self.end):%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True, slots=True)
class WindowGrid:
    """The rule that says where time windows begin and end.

    Windows begin and end at multiples of `length`, in seconds, counted from `origin` in the time zone `zone`. `origin`
    is a local time of the zone, given as the number of seconds after 1970-01-01 00:00 local time.
    """

    length: int
    zone: tzinfo = UTC
    origin: int = 0

    def around(self, moment: int) -> Window:
        """Return the window that contains an epoch second.

        If the clocks of the zone change during the window, the window is longer or shorter than usual. If the clocks
        show the same hour twice, both hours are in the same window. So two windows never have the same name.
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
        """Cut a range into windows, and return the windows in order. An empty range has no windows.

        Raises UsageError if there are more than MAX_WINDOWS windows.
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
        """Return how many windows lie in a time range, either completely or partly. `window` is this range."""
        if self.zone is not UTC:
            return len(self.cut(window.start, window.end))
        return -(-(window.end - self.origin) // self.length) - (window.start - self.origin) // self.length


def _first(clock: int, zone: tzinfo) -> int:
    """Return the first epoch second at which the local time of a zone is `clock` or later.

    `clock` is the local time, given as the number of seconds after 1970-01-01 00:00 local time.
    """
    shown = datetime.fromtimestamp(clock, UTC).replace(tzinfo=zone)
    moment, other = (int(shown.replace(fold=fold).timestamp()) for fold in (0, 1))
    while moment - other > 1:  # the clocks skip this time, so search for the moment of the change
        middle = (moment + other) // 2
        skipped = datetime.fromtimestamp(middle, zone).replace(tzinfo=UTC).timestamp() >= clock
        moment, other = (middle, other) if skipped else (moment, middle)
    return moment


def filled_in(path: str) -> str | None:
    """Return the first field or date format in a path. Return None if the path has neither.

    An export writes a date in place of a field, such as {from:%F}. A date format outside of a field, such as %F, is a
    mistake.
    """
    return next((match[0] for match in _FIELD.finditer(path) if match[0] != "%%"), None)


@dataclass(frozen=True, slots=True)
class Target:
    """The path of one file, or a pattern that names a file for each window or each run.

    In a pattern, the fields `{start:…}` and `{end:…}` are replaced by the start and the end of a window. The fields
    `{from:…}` and `{to:…}` are replaced by the start and the end of a run's range. The text after the colon is a
    strftime format. All dates are in the time zone `zone`. Outside of fields, %% is a percent sign.
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
        """Raise UsageError for a date format outside of braces, and for an invalid date format in a field."""
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
        """Whether the names of files contain the start or the end of the run's range."""
        return not {"from", "to"}.isdisjoint(self._fields())

    @property
    def is_one_file(self) -> bool:
        """Whether all runs write the same file."""
        return not (self.per_window or self.per_run)

    @property
    def ends_with_run(self) -> bool:
        """Whether the names of files contain the end of the run's range."""
        return "to" in self._fields()

    @property
    def folder(self) -> str:
        """The directory part of the path before the first field, with a slash at its end."""
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
        """Return the path of a window's file, or of the merged file if `window` is None.

        `whole` is the range of the run.
        """
        window = window or whole
        moments = {"start": window.start, "end": window.end, "from": whole.start, "to": whole.end}
        return "".join(
            literal.replace("%%", "%") + ("" if name is None else self._written(moments[name], spec or ""))
            for literal, name, spec, _ in Formatter().parse(self.text)
        )

    def _written(self, seconds: int, spec: str) -> str:
        """Return an epoch second as text for a file name, in the format `spec`.

        If `spec` is empty, the text has a compact format. In UTC, this is 20240131T100000Z.
        """
        compact = "%Y%m%dT%H%M%SZ" if self.zone is UTC else "%Y%m%dT%H%M%S%z"
        # for %s, the C library would use the zone of the computer
        spec = _EPOCH_SECONDS.sub(lambda match: str(seconds) if match[1] else match[0], spec)
        return datetime.fromtimestamp(seconds, self.zone).strftime(spec or compact)

    def check_repeats(self, grid: WindowGrid) -> None:
        """Raise UsageError if the files of two windows, or of two runs, would have the same name.

        Only the names for a sample of windows are compared.
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
        """Return the path of each window's file. Raises UsageError if two windows would have the same path."""
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
        """Return the first path that two windows share, with these two windows. Return None if all paths differ.

        `owners` is a dictionary, to which this method adds each path with its window.
        """
        for window in windows:
            path = self.path(whole or window, window)
            if (other := owners.setdefault(path, window)) is not window:
                return path, other, window
        return None

    @property
    def _hint(self) -> str:
        """The hint for the error about two files with the same name."""
        field = "start" if self.per_window else "from"
        return f"give a longer --window, or write a more precise date into the pattern, as in {{{field}:%Y%m%dT%H%M%S}}"


def _samples(grid: WindowGrid) -> list[Window]:
    """Return a sample of windows: successive windows, and windows on other days, in other weeks, months and years."""
    first = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp())
    spans = (*range(0, 60 * grid.length, grid.length), *_SPANS)
    return sorted({grid.around(first + span) for span in spans})


def moment(seconds: int, zone: tzinfo = UTC) -> str:
    """Return an epoch second as a date in ISO 8601, in the form that export commands print."""
    return datetime.fromtimestamp(seconds, zone).isoformat().replace("+00:00", "Z")


def _utc(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
