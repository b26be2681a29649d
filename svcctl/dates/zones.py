"""Time zones: the offsets in requests, the zone names that people type, and the clock changes of a zone."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from itertools import pairwise

from svcctl.dates.epochs import EPOCH
from svcctl.dates.lengths import UNITS
from svcctl.errors import UsageError

_ZONE = re.compile(r"GMT(?:([+-])(\d{1,2})(?:(?::|(?<=\d\d))([0-5]\d))?)?", re.ASCII)
"""A pattern for zones in requests, such as GMT+5:30.

If the hours have two digits, the colon may be omitted: GMT+0530.
"""


def parse_zone(text: str) -> timezone:
    """Convert `GMT`, `GMT+<n>` or `GMT-<n>` to a fixed offset. East of Greenwich is positive: GMT+2 is UTC+02:00.

    Minutes may follow the hours: GMT+5:30, GMT+05:30, GMT+0530. Raises UsageError for any other text, and for an offset
    of more than 14 hours.
    """
    match = _ZONE.fullmatch(text)
    if match is None:
        raise UsageError(
            f"time zone '{text}' is not of the form GMT+2",
            hint="write GMT, GMT+<hours>, GMT-<hours>, or GMT+<hours>:<minutes>",
        )
    sign, hours, minutes = match.groups()
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    if offset > timedelta(hours=14):
        raise UsageError(f"time zone '{text}' is more than 14 hours from GMT")
    return timezone(-offset if sign == "-" else offset)


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone. `name` is its name in a command or a file, and `clocks` is its tzinfo.

    Two zones with the same name are equal.
    """

    name: str
    clocks: tzinfo = field(compare=False)
    source: str = field(default="", compare=False)
    """The profile or variable that sets the zone; empty if the command names the zone."""

    @property
    def is_fixed(self) -> bool:
        """Whether the offset of the zone never changes."""
        return isinstance(self.clocks, timezone)

    @property
    def shared_name(self) -> str:
        """The zone's name for other programs, such as GMT+02:00 or Europe/Berlin. Raises UsageError for `local`."""
        if isinstance(self.clocks, LocalZone):
            raise UsageError("the time zone 'local' has no name", hint="name it, such as --time-zone Europe/Berlin")
        return f"GMT{EPOCH.astimezone(self.clocks).isoformat()[19:]}" if self.is_fixed else str(self.clocks)

    def offset_name(self, at: float) -> str:
        """Return the name of the zone's offset at a moment, such as GMT+2.

        The moment `at` is in epoch seconds. If the zone's name begins with GMT, the result is this name.
        """
        if self.name.startswith("GMT"):
            return self.name
        offset = datetime.fromtimestamp(at, self.clocks).utcoffset() or timedelta()
        hours, minutes = divmod(round(abs(offset) / timedelta(minutes=1)), 60)
        sign = "-" if offset < timedelta() else "+"
        return "GMT" + (f"{sign}{hours}" if offset else "") + (f":{minutes:02}" if minutes else "")

    def fixed(self, at: float) -> Zone:
        """Return a zone with a fixed offset, which is the offset of this zone at a moment. `at` is in epoch seconds."""
        return self if self.is_fixed else _fixed(self.offset_name(at))

    def change_note(self, when: str, offset: str, advice: bool) -> str:
        """Return a note that all dates have the same offset, although the clocks change.

        `when` is the time of the change in words, and `offset` is a sentence about the offset. With `advice`, the note
        recommends the date format iso.
        """
        iso = "; --date-format iso writes the offset with each date" if advice else ""
        return f"the clocks of {self.name} change {when}: {offset}{iso}"

    def spans(self, start: int, end: int) -> list[tuple[int, int]]:
        """Split a range in epoch seconds at the clock changes of the zone.

        Returns the start and the end of each part.
        """
        edges = [start]
        same, offset = start, self.offset_name(start)
        for moment in (*range(start + _SEARCH_SECONDS, end, _SEARCH_SECONDS), end - 1):
            if moment > same and self.offset_name(moment) != offset:
                other = moment
                while other - same > 1:
                    middle = (same + other) // 2
                    same, other = (middle, other) if self.offset_name(middle) == offset else (same, middle)
                edges.append(other)
                offset = self.offset_name(other)
            same = moment
        return list(pairwise((*edges, end)))


@lru_cache(64)
def _fixed(name: str) -> Zone:
    """Return a zone with a fixed offset. `name` is the name of the offset, such as GMT+2."""
    return Zone(name, parse_zone(name))


_SEARCH_SECONDS = 3 * UNITS["d"]
"""The interval at which a search for clock changes reads the offset.

The shortest time between two clock changes was 7 days (Brazil, 2000).
"""

GMT = Zone("GMT", UTC)
"""The zone of dates if no zone is given."""


def named_zone(text: str) -> Zone:
    """Return the zone that a text names, such as GMT+2, UTC, +2, Europe/Berlin or `local`.

    Names such as Europe/Berlin come from the IANA database. `local` is the zone of this computer. The offset of an IANA
    zone and of `local` may change. Raises UsageError for any other text.
    """
    if text.casefold() == "local":
        return Zone(text, LocalZone())
    offset = re.sub(r"^(?:UTC|GMT|Z$)?(?=$|[+-])", "GMT", text.upper()) if text else text
    if offset.startswith("GMT"):
        return Zone(text, parse_zone(offset))
    from zoneinfo import ZoneInfo

    try:
        return Zone(text, ZoneInfo(text))
    except (KeyError, ValueError, OSError):
        raise UsageError(f"there is no time zone '{text}'", hint=_nearest_zone(text)) from None


class LocalZone(tzinfo):
    """The time zone that is set on this computer, including the clock changes of the zone."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        if moment is None:
            return None
        # astimezone would give the wrong offset for a time that the clocks skip.
        clock_time = moment.replace(tzinfo=None, microsecond=0)
        return clock_time - datetime.fromtimestamp(clock_time.timestamp(), UTC).replace(tzinfo=None)

    def tzname(self, moment: datetime | None) -> str | None:
        return None if moment is None else moment.replace(tzinfo=None).astimezone().tzname()

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None

    def fromutc(self, moment: datetime) -> datetime:
        there = moment.replace(tzinfo=UTC).astimezone()
        here = there.replace(tzinfo=self)
        return here if here.utcoffset() == there.utcoffset() else here.replace(fold=1)


def _nearest_zone(text: str) -> str:
    from zoneinfo import available_timezones

    from svcctl.words import did_you_mean

    names = available_timezones()
    if not names:
        return "this computer has no zone names: install the package tzdata, or write GMT+2"
    return did_you_mean(text, sorted(names)) or "write GMT+2, UTC, or a name such as Europe/Berlin"
