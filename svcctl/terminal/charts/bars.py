"""Bar charts. Each row has a line with its name, its number and a bar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from svcctl.terminal.charts.chart import CUT_SHORT, Chart, ChartRows, colored_text, fitted_text
from svcctl.terminal.escapes import joined
from svcctl.terminal.layout import COLUMN_GAP, cell_width, fill
from svcctl.words import counted, plural

NARROWEST_BAR = 10
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_FULL_CELLS, _CUT = {True: "█", False: "#"}, {True: "░", False: "-"}
"""The characters of bars, with Unicode glyphs (True) or without them (False).

_FULL_CELLS has the character for complete periods, and _CUT has the character for incomplete periods.
"""


def bars(chart: ChartRows) -> Chart:
    """Draw a bar chart.

    The chart has a line for each row, and a line for each gap. A gap is one or more periods without rows.
    """
    style, numbers = chart.style, chart.numbers()
    amounts = chart.texts(chart.measure)
    amount_width = max(map(cell_width, amounts), default=0)
    labels = _labels(chart)
    label_width = max(map(cell_width, labels), default=0)
    shortened = 0
    if style.width is not None:
        most = max(1, style.width - amount_width - 2 * len(COLUMN_GAP) - NARROWEST_BAR)
        shortened = sum(cell_width(label) > most for label in labels)
        label_width = min(label_width, most)
    room = max(NARROWEST_BAR, chart.width - label_width - amount_width - 2 * len(COLUMN_GAP))
    values = [number for number in numbers if number is not None]
    scale = _Scale(min((0, *values)), max((0, *values)), room)
    lines = [chart.title()]
    cut = [chart.cuts(row[0]) for row in chart.rows]
    if any(cut):
        lines.append(f"{_CUT[style.glyphs]} {CUT_SHORT}")
    silent = _silences(chart)
    for at, (label, amount, number) in enumerate(zip(labels, amounts, numbers, strict=True)):
        lines.extend(_silence(silent[at]))
        bar = "" if number is None else _bar(number, scale, fancy=style.glyphs)
        if cut[at]:
            bar = bar.replace("█", "░") if style.glyphs else bar.replace("#", "-")
        row_text = (
            f"{fill(fitted_text(label, label_width), label_width)}{COLUMN_GAP}{fill(amount, amount_width, right=True)}"
        )
        lines.append(joined(row_text, COLUMN_GAP, colored_text(bar, 0, style)) if bar else row_text.rstrip())
    lines.extend(_silence(silent[-1]))
    notes = chart.notes()
    if shortened:
        labels_cut = counted(shortened, "label was", "labels were")
        them = plural(shortened, "it", "them")
        notes.append(f"{labels_cut} cut to fit (--format vertical or csv shows {them} in full)")
    return Chart(lines, notes)


def _silences(chart: ChartRows) -> list[int]:
    """Return how many periods without rows precede each row of a chart, and how many follow the last row.

    All numbers are 0 if the length of the periods is not known, or if the rows are not in chronological order.
    """
    times = [row[0] for row in chart.rows]
    none = [0] * (len(times) + 1)
    span, every = chart.style.span, chart.every
    if span is None or every is None or not all(isinstance(time, int) for time in times) or times != sorted(times):
        return none
    begin, end = span.start // every * every - every, -(-min(span.end, span.now) // every) * every
    edges = zip([begin, *times], [*times, end], strict=True)
    return [max(0, (later - earlier) // every - 1) for earlier, later in edges]


def _silence(periods: int) -> Iterator[str]:
    """Yield a line that shows a gap of `periods` periods without rows. Yields nothing if `periods` is 0."""
    if periods:
        yield f"(no rows in {counted(periods, 'period')})"


def _labels(chart: ChartRows) -> list[str]:
    """Return the label of each row. The values in the labels are aligned in columns."""
    columns = [chart.texts(at) for at in chart.names]
    widths = [max(map(cell_width, texts), default=0) for texts in columns]
    return [
        COLUMN_GAP.join(fill(text, width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*columns, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Scale:
    """A scale that maps the numbers from `low` (at most 0) to `high` (at least 0) to `cells` terminal cells.

    The first `before` cells are for negative numbers.
    """

    low: float
    high: float
    cells: int

    @property
    def before(self) -> int:
        return min(round(self.length(self.low)), self.cells - (self.high > 0))

    def length(self, number: float) -> float:
        """Return the length of the bar from zero to a number, in cells."""
        return abs(number) / (self.high - self.low) * self.cells if number else 0.0


def _bar(number: float, scale: _Scale, *, fancy: bool) -> str:
    """Return the bar for a number.

    A bar starts at zero, and goes to the left for a negative number. Zero has no bar.
    """
    if not number:
        return ""
    if number < 0:
        cells = min(scale.before, max(1, round(scale.length(number))))
        return " " * (scale.before - cells) + (_FULL_CELLS[fancy]) * cells
    length = min(scale.length(number), scale.cells - scale.before)
    if not fancy:
        return " " * scale.before + "#" * max(1, round(length))
    whole, eighths = divmod(max(1, round(length * 8)), 8)
    return " " * scale.before + "█" * whole + _EIGHTHS[eighths]
