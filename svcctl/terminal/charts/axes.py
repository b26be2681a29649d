"""The value axis and the time axis of a chart. Ticks are at round numbers, and at round times in the style's zone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from operator import itemgetter

from svcctl.dates.epochs import MILLISECOND, from_ms
from svcctl.terminal.layout import Style

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_STEPS = (
    *(step * _SECOND for step in (1, 2, 5, 10, 15, 30)),
    *(step * _MINUTE for step in (1, 2, 5, 10, 15, 30)),
    *(step * _HOUR for step in (1, 2, 3, 6, 12)),
    *(step * _DAY for step in (1, 2, 7, 14, 28, 56, 112, 224, 448, 896, 3_584, 14_336, 57_344, 229_376)),
)
"""The possible distances between two ticks of the time axis, in milliseconds."""
_TICK_CELLS = 10


def value_axis(numbers: Sequence[float], rows: int) -> tuple[float, float, float]:
    """Return the lowest number and the highest number of the value axis, and the distance between ticks.

    All three are round numbers. The axis includes zero, except if all values are close together and far from zero.
    """
    low, high = min(numbers), max(numbers)
    spread = high - low > 1e-6 * max(abs(low), abs(high))
    far_above, far_below = spread and low > high / 2 > 0, spread and high < low / 2 < 0
    if not far_above:
        low = min(low, 0)
    if not far_below:
        high = max(high, 0)
    if low == high:
        high = 1
    rough = (high - low) / max(2, rows // 4)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    return math.floor(low / step) * step, math.ceil(high / step) * step, step


def value_rows(low: float, high: float, step: float, rows: int) -> Iterator[tuple[int, int]]:
    """Yield the index of each tick of the value axis, and the chart line of the tick."""
    for index in range(round((high - low) / step) + 1):
        yield index, round((high - low - index * step) / (high - low) * (4 * rows - 1)) // 4


def short(number: float) -> str:
    """Return a number as a short text: 1500, 20k, 1.5M."""
    if number and not 1e-3 <= abs(number) < 1e15:
        return f"{number:.2g}"
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= 10_000 and abs(number) >= size:
            return f"{number / size:.4g}{letter}"
    return f"{number:.4g}"


def time_axis(start: int, end: int, width: int, style: Style) -> Iterator[str]:
    """Yield the lines of the time axis: the ticks, their times, and a date at each tick where the date changes.

    Ticks that are more than an hour apart stay at round times after the clocks change, for example to summer time. If
    the style shows UTC offsets, a changed offset is written next to the date.
    """

    def moment(time: int) -> datetime:
        return from_ms(time).astimezone(style.zone)

    def column(time: int) -> int:
        return round((time - start) / ((end - start) or 1) * (2 * width - 1)) // 2 + 1

    span = (end - start) or 1
    step = next((step for step in _STEPS if step / span * width >= _TICK_CELLS), _STEPS[-1])
    fine, coarse = ("%m-%d", "%Y") if step >= _DAY else ("%H:%M" if step >= _MINUTE else "%H:%M:%S", "%Y-%m-%d")
    offset = "%z" if style.offsets and step < _DAY else ""

    def shift(time: int) -> int:
        return (moment(time).utcoffset() or timedelta()) // MILLISECOND

    ahead = shift(start)
    first = -(-(start + ahead) // step) * step - ahead

    def rounded(time: int) -> int:
        there = time + ahead - shift(time)
        return there if step > _HOUR and shift(there) == shift(time) else time  # not if the clocks skip the round time

    ticks = [(column(time), moment(time)) for time in map(rounded, range(first, end + 1, step)) if time <= end]
    if not ticks:
        ticks = [(1, moment(start))]
        fine = "%H:%M:%S"
    corner, line, tick = "└─┬" if style.glyphs else "+-+"
    rule = [line] * width
    for at, _ in ticks:
        rule[at - 1] = tick
    yield corner + "".join(rule)
    yield _placed(((at, time.strftime(fine)) for at, time in ticks), width + 1)
    days = [(time.strftime(coarse), time.strftime(offset)) for _, time in ticks]
    changes = (
        (at, " ".join(text for text, before in zip(day, earlier, strict=True) if text != before))
        for (at, _), earlier, day in zip(ticks, [("", days[0][1]), *days], days, strict=False)
    )
    yield _placed(filter(itemgetter(1), changes), width + 1)


def _placed(texts: Iterable[tuple[int, str]], width: int) -> str:
    """Return a line with each text at its column.

    A text that does not fit at its column is moved to the left, or omitted.
    """
    line = ""
    for (column, text), (after, _) in pairwise([*texts, (width + 1, "")]):
        at = min(column, after - len(text) - 1)
        if at > len(line) or (at >= 0 and not line):
            line = line.ljust(at) + text
    return line
