"""Layouts of rows for people: a table that fits the terminal, or a block of lines for each row.

Events contain text from strangers, so the function `visible` escapes the control characters in every cell.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from functools import lru_cache
from itertools import chain, islice, repeat
from types import NoneType
from typing import Any, NamedTuple

from svcctl.api.formats.batches import batches_of
from svcctl.dates.epochs import from_ms
from svcctl.terminal.escapes import joined, styled, visible
from svcctl.words import json_text

Row = Sequence[Any]
NUMERIC = frozenset({"int4", "int8", "float8"})
COLUMN_GAP = "  "
TEXT = frozenset({"str", None})
MIN_TEXT_CELLS = 12
"""The smallest width, in cells, to which a text is cut. If the columns still do not fit, the last columns are omitted.

Other values, such as dates, are never cut.
"""
SAMPLE_ROWS = 500
"""The number of rows that are read before the first row is printed. These rows decide the widths of the columns."""
SAMPLE_BYTES = 1 << 24
"""The maximum size, in bytes, of the rows that are read before the first row is printed."""
GROWTH_CELLS = 6
"""The number of cells by which a column of numbers is widened if possible, because later numbers may be larger."""

_USUAL = {"ip4": 15, "int4": 10, "int8": 12, "float8": 12, "bool": 5}
"""The usual widths of values in cells, by type. Dates are missing here, because their width depends on the style."""


_NO_MARKS: Mapping[str, int] = {}


class TableColumn(NamedTuple):
    """A column of a table: its heading, and the type of its values.

    The type is a type of the service, or `id`. Values of the type `timestamp` are epoch milliseconds. A column of the
    type `str` or None has texts, which may be cut to fit. An `id` is never cut, so that people can copy it.
    """

    name: str
    type: str | None = None
    least: int = MIN_TEXT_CELLS
    """The smallest width, in cells, to which a text is cut. If the columns still do not fit, the last ones are omitted.
    """
    marks: Mapping[str, int] = _NO_MARKS
    """The values that are shown in colour, each with the code of its colour."""
    below: bool = False
    """Whether each value is shown in full, on its own line below its row.

    In a table of unlimited width, the values are in their rows.
    """


class Span(NamedTuple):
    """The time range of a query, for a chart.

    `start`, `end` and `now` are epoch milliseconds. `every` is the length, in milliseconds, of the periods by which
    rows are grouped; None if the length is not known.
    """

    start: int
    end: int
    every: int | None
    now: int


class Style(NamedTuple):
    """The style of a layout: its width in cells (None for unlimited), its colours, and the format of dates."""

    width: int | None = None
    color: bool = False
    glyphs: bool = False
    """Whether the output can show Unicode lines, blocks and Braille characters."""
    span: Span | None = None
    """The range that a chart over time covers."""
    keys: tuple[str, ...] = ()
    """The names of the columns by which rows are grouped; empty if these names are not known.

    If possible, a chart draws another column.
    """
    zone: tzinfo | None = UTC
    """The zone of dates; None for the local time of this machine."""
    zone_label: str = ""
    offsets: bool = False
    """Whether tables show the UTC offset of each date, because the offset changes within the range."""
    date_format: str = "default"
    null: str = "null"
    header: bool = True
    """Whether a table, csv or tsv begins with the names of the columns."""
    ellipsis: str = "…"
    """The mark at the end of a text that is cut."""
    sample: int = SAMPLE_ROWS
    """The number of rows that a table reads before it prints the first row. With 0, each row is printed at once."""


@dataclass
class Cuts:
    """The number of cells that a table has cut, and the names of the columns that it omits.

    Both values change while the table is written.
    """

    cells: int = 0
    columns: list[str] = field(default_factory=list)


def format_moment(milliseconds: int, style: Style, *, fraction: bool = True) -> str:
    """Return epoch milliseconds as text: `2026-01-31 10:00:00.000`, or in the format iso `2026-01-31T10:00:00.000Z`.

    In the format iso, an offset other than 0 replaces the Z, such as `+0200`. In other formats, a style with `offsets`
    appends the offset: `2026-01-31 10:00:00.000 +0200`. A number outside the calendar is written as digits.
    """
    try:
        moment = from_ms(milliseconds).astimezone(style.zone)
    except OverflowError:
        return str(milliseconds)
    precision = "milliseconds" if fraction else "seconds"
    if style.date_format == "iso":
        text = moment.replace(tzinfo=None).isoformat("T", precision)
        return f"{text}{moment:%z}" if moment.utcoffset() else f"{text}Z"
    return moment.replace(tzinfo=None).isoformat(" ", precision) + (f" {moment:%z}" if style.offsets else "")


def iso_text(milliseconds: int | None) -> str | None:
    """Return a time as text for programs, in UTC: `2026-01-31T10:00:00.000Z`; None stays None."""
    return None if milliseconds is None else format_moment(milliseconds, Style(date_format="iso"))


def second_text(milliseconds: int | None) -> str | None:
    """Return a time as text for people, in UTC and without milliseconds: `2026-01-31 10:00:00`; None stays None."""
    return None if milliseconds is None else format_moment(milliseconds, Style(), fraction=False)


def format_cell(value: Any, kind: str | None, style: Style, *, fraction: bool = True) -> str:
    """Return a value as the text of a cell."""
    if value is None:
        return style.null
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if kind == "timestamp":
            return format_moment(value, style, fraction=fraction)
        if kind == "ip4" and 0 <= value < 2**32:
            return ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0))
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return str(round(value, 4)) if abs(value) >= 0.001 or value == 0 else f"{value:.4g}"
    return visible(json_text(value))


def format_cells(values: Sequence[Any], kind: str | None, style: Style, *, fraction: bool = True) -> list[str]:
    """Return the values of a column as texts of cells.

    One call is faster than a call of `format_cell` for each value.
    """
    types = set(map(type, values))
    if types <= {str, NoneType}:
        if "".join(filter(None, values)).isprintable():
            return [style.null if value is None else value for value in values] if NoneType in types else list(values)
        return [style.null if value is None else visible(value) for value in values]
    if types == {int} and kind == "timestamp":
        return format_moments(values, style, fraction=fraction)
    if types == {int} and kind != "ip4":
        return list(map(str, values))
    return [format_cell(value, kind, style, fraction=fraction) for value in values]


def format_moments(values: Sequence[int], style: Style, *, fraction: bool = True) -> list[str]:
    """Return the texts of many moments. This is faster than a call of `format_moment` for each moment.

    Most of the text is the same for all moments of a quarter of an hour, and is kept in memory. Only the minutes,
    seconds and fraction of each moment are computed.
    """
    quarters, seconds, fractions = _quarters(style.zone, style.date_format, style.offsets, fraction)
    parted = list(map(divmod, values, repeat(_QUARTER)))
    for quarter in {quarter for quarter, _ in parted}:
        if quarter not in quarters:
            quarters[quarter] = _around_minutes(quarter * _QUARTER, style, fraction)
    texts = [
        f"{parts[0]}{seconds[parts[1] + rest // 1000]}{fractions[rest % 1000]}{parts[2]}"
        if (parts := quarters[quarter])
        else format_moment(quarter * _QUARTER + rest, style, fraction=fraction)
        for quarter, rest in parted
    ]
    if len(quarters) > MOST_QUARTERS:
        quarters.clear()
    return texts


_QUARTER = 900_000
"""The number of milliseconds of a quarter of an hour.

The offsets of time zones are multiples of a quarter of an hour, except some historical offsets.
"""
MOST_QUARTERS = 1 << 16
"""The maximum number of quarters of an hour that are kept in memory."""
Quarter = tuple[str, int, str]
"""The parts of a text that all moments of a quarter of an hour have in common.

The members are the text before the minutes, the start of the quarter in seconds since the full hour, and the text after
the fraction.
"""


@lru_cache(8)
def _quarters(
    zone: tzinfo | None, date_format: str, offsets: bool, fraction: bool
) -> tuple[dict[int, Quarter | None], list[str], list[str]]:
    """Return the three values from which `format_moments` makes texts.

    The first value is a cache, which the caller fills. It maps the number of a quarter of an hour to a Quarter. The
    second value has the texts of all minutes and seconds of an hour, such as `59:59`. The third value has the texts of
    all fractions of a second, such as `.999`.
    """
    seconds = [f"{minute:02}:{second:02}" for minute in range(60) for second in range(60)]
    return {}, seconds, [f".{at:03}" if fraction else "" for at in range(1000)]


def _around_minutes(start: int, style: Style, fraction: bool) -> Quarter | None:
    """Return the parts of a text that are the same for all moments in the quarter of an hour that begins at `start`.

    Returns None if the texts of the moments differ in more than minutes, seconds and fraction.
    """
    point = ".000" if fraction else ""
    first, last = (format_moment(start + more, style, fraction=fraction) for more in (0, _QUARTER - 1000))
    begin, zeros, end = first.rpartition(f":00{point}")
    if not zeros:
        return None
    begin, minute = begin[:-2], int(begin[-2:])
    return (begin, minute * 60, end) if last == f"{begin}{minute + 14:02}:59{point}{end}" else None


def vertical(columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style) -> Iterator[str]:
    """Yield a block of lines for each row: the number of the row, and then a line for each column."""
    names = [visible(column.name) for column in columns]
    longest = max((cell_width(name) for name in names), default=0)
    for number, row in enumerate(rows, 1):
        yield bold(f"row {number}", style)
        for column, name, value in zip(columns, names, row, strict=True):
            yield f"{fill(name, longest)}{COLUMN_GAP}{format_cell(value, column.type, style)}"


def table(
    columns: Sequence[TableColumn],
    rows: Iterable[Sequence[Any]],
    style: Style,
    cuts: Cuts,
) -> Iterator[list[str]]:
    """Yield the lines of a table as the rows arrive: a heading, a rule, and the lines of each row.

    The lines of rows that arrive together are yielded together. The values of columns with `below` are on lines below
    their row. These lines are not broken, even if they are longer than the terminal is wide, so that people can copy
    them. If the width is unlimited, or if all columns have `below`, all values are in the line of the row.
    """
    beside = [at for at, column in enumerate(columns) if style.width is None or not column.below]
    if not beside:
        columns, beside = [column._replace(type="id") for column in columns], list(range(len(columns)))
    under = [at for at in range(len(columns)) if at not in beside]
    if not under:
        yield from _aligned(columns, rows, style, cuts)
        return
    waiting: deque[list[str]] = deque()

    def row_without_below(row: Sequence[Any]) -> Sequence[Any]:
        below_values = ((columns[at], row[at]) for at in under if row[at] is not None)
        waiting.append(
            [
                f"{COLUMN_GAP}{visible(column.name)}: {format_cell(value, column.type, style)}"
                for column, value in below_values
            ]
        )
        return [row[at] for at in beside]

    lines = chain.from_iterable(_aligned([columns[at] for at in beside], map(row_without_below, rows), style, cuts))
    yield list(islice(lines, 2 if style.header else 0))
    for line in lines:
        yield [line, *waiting.popleft()]


def _aligned(
    columns: Sequence[TableColumn],
    rows: Iterable[Sequence[Any]],
    style: Style,
    cuts: Cuts,
) -> Iterator[list[str]]:
    """Yield a heading, a rule and one line for each row, as the rows arrive."""
    source = batches_of(rows)
    first, rest = _sampled(source, style.sample or int(style.width is not None))
    full = style.width is not None and 0 < style.sample == len(first)
    if full and not rest:
        rest = [*next(source, [])]
    layout = _Layout(columns, first, style, cuts, grows=full and bool(rest))
    if style.header:
        yield layout.heading()
    for batch in chain(filter(None, (first, rest)), source):
        yield layout.rows(batch)


def _sampled(batches: Iterator[Sequence[Row]], count: int) -> tuple[list[Row], list[Row]]:
    """Return a sample of at most `count` rows, and the remaining rows of the last batch that was read.

    Reading stops early if the rows exceed SAMPLE_BYTES.
    """
    rows, size = list[Row](), 0
    while len(rows) < count and size < SAMPLE_BYTES and (batch := next(batches, None)) is not None:
        rows += batch
        size += sum(map(sys.getsizeof, chain.from_iterable(batch)))
    return rows[:count], rows[count:]


class _Layout:
    """The layout of a table. It chooses the widths of the columns from a sample of rows, and makes the lines of rows.

    If the style asks for no sample, the widths depend on the types of the columns and on the first row. If the width of
    the line is unlimited, the first row is not used. Only texts are cut. With `grows`, the columns are widened to the
    width of the line, because later rows may need more room.
    """

    def __init__(
        self, columns: Sequence[TableColumn], sample: Sequence[Row], style: Style, cuts: Cuts, *, grows: bool
    ) -> None:
        self._columns, self._style, self._cuts = columns, style, cuts
        measured = bool(sample and style.sample)
        # Milliseconds are omitted if no date in the sample has any, because zeros in every row would be noise.
        self._fractions = [
            not measured or any(isinstance(row[at], int) and row[at] % 1000 for row in sample)
            for at in range(len(columns))
        ]
        self._points = [0] * len(columns)
        cells = self._cells(sample)
        if measured:
            self._points = [
                max(len(_fraction(cell)) for cell in of) if column.type == "float8" else 0
                for column, of in zip(columns, cells, strict=True)
            ]
            cells = self._cells(sample)
        if not style.sample:
            cells = [[cell] for cell in _usual(columns, style, [of[0] for of in cells] if sample else None)]
        self._headings = [heading(column, style) if style.header else "" for column in columns]
        full_widths = [max(map(cell_width, [name, *of])) for name, of in zip(self._headings, cells, strict=True)]
        least = [
            min(width, column.least) if column.type in TEXT else width
            for column, width in zip(columns, full_widths, strict=True)
        ]
        self._widths = _fit(full_widths, least, style.width)
        if grows and style.width is not None:
            _grow(self._widths, columns, style.width)
        self._columns = columns[: len(self._widths)]
        cuts.columns = [column.name for column in columns[len(self._widths) :]]
        self._numeric = [column.type in NUMERIC for column in self._columns]
        self._marked = style.color and any(column.marks for column in self._columns)

    def heading(self) -> list[str]:
        """Return the line with the names of the columns, and the rule below this line.

        A name that is cut does not count as a cut cell.
        """
        [line], self._cuts.cells = self._lines([[name] for name in self._headings[: len(self._widths)]]), 0
        return [bold(line.rstrip(), self._style), COLUMN_GAP.join("-" * width for width in self._widths)]

    def rows(self, rows: Sequence[Row]) -> list[str]:
        return self._lines(self._cells(rows))

    def _lines(self, cells: Sequence[Sequence[str]]) -> list[str]:
        laid = [self._laid(at, of) for at, of in enumerate(cells)]
        if self._marked:
            colored = (self._colored(at, pad, of) for at, (pad, of) in enumerate(laid))
            return [joined(*line, between=COLUMN_GAP) for line in zip(*colored, strict=True)]
        template = COLUMN_GAP.join(pad for pad, _ in laid)
        lines = map(template.__mod__, zip(*(of for _, of in laid), strict=True))
        return [line.rstrip() for line in lines] if self._numeric[-1] else list(lines)

    def _colored(self, at: int, pad: str, cells: Iterable[str]) -> list[str]:
        """Return the padded cells of a column. Cells with a value that is in the column's `marks` are in colour."""
        marks = self._columns[at].marks
        codes = [marks.get(cell.strip()) for cell in cells]
        padded = (pad % cell for cell in cells)
        return [text if code is None else styled(code, text) for text, code in zip(padded, codes, strict=True)]

    def _cells(self, rows: Sequence[Row]) -> list[list[str]]:
        """Return the cells of rows as texts, by column.

        Blanks are added after short fractions, so that decimal points line up.
        """
        values = zip(*rows, strict=True) if rows else [()] * len(self._columns)
        by_column = []
        for of, column, fraction, most in zip(values, self._columns, self._fractions, self._points, strict=False):
            cells = format_cells(of, column.type, self._style, fraction=fraction)
            if most:
                cells = [cell + " " * (most - len(_fraction(cell))) if cell[-1:].isdigit() else cell for cell in cells]
            by_column.append(cells)
        return by_column

    def _laid(self, at: int, cells: Sequence[str]) -> tuple[str, Sequence[str]]:
        """Cut the wide cells of a column.

        Returns two values: a printf-style format that pads the cells, and the list of the cells.
        """
        width, last, numeric = self._widths[at], at == len(self._widths) - 1, self._numeric[at]
        plain = "".join(cells).isascii()
        if self._style.width is not None and self._columns[at].type in TEXT:
            room = max(width, self._style.width - sum(self._widths[:-1]) - len(COLUMN_GAP) * at) if last else width
            measured = list(map(len if plain else cell_width, cells))
            if max(measured) > room:
                self._cuts.cells += sum(size > room for size in measured)
                ellipsis = self._style.ellipsis
                cells = [
                    cut(text, room, ellipsis) if size > room else text
                    for text, size in zip(cells, measured, strict=True)
                ]
        if last and not numeric:
            return "%s", cells
        if not plain:
            return "%s", [fill(text, width, right=numeric) for text in cells]
        return (f"%{width}s" if numeric else f"%-{width}s"), cells


def _fraction(cell: str) -> str:
    """Return the decimal point of a number and the digits after the point."""
    return "".join(cell.partition(".")[1:])


def _usual(columns: Sequence[TableColumn], style: Style, first: list[str] | None) -> list[str]:
    """Return a placeholder for each column: a text that is as wide as usual values of the column.

    `first` has the cells of the first row, if they are known. The placeholder of a text column is wider than the first
    cell, because later texts may be longer. If the line has cells left, the placeholders of the text columns share
    them.
    """
    kinds = _USUAL | {"timestamp": len(format_moment(0, style))}
    widths = [kinds.get(column.type or "") for column in columns]
    samples = first or [style.null] * len(columns)
    cells = [
        max(
            usual or (8 if cell.isalnum() and cell != style.null else MIN_TEXT_CELLS),
            cell_width(cell) * (2 if usual else 3) // 2,
        )
        for usual, cell in zip(widths, samples, strict=True)
    ]
    room = (style.width or 0) - len(COLUMN_GAP) * (len(columns) - 1) - sum(cells)
    spare = max(0, room) // max(1, widths.count(None))
    return ["x" * (cell + spare * (usual is None)) for cell, usual in zip(cells, widths, strict=True)]


def heading(column: TableColumn, style: Style) -> str:
    name = visible(column.name)
    return f"{name} ({style.zone_label})" if column.type == "timestamp" and style.zone_label else name


def _fit(full_widths: list[int], least: list[int], width: int | None) -> list[int]:
    """Return widths of columns that fit in a line.

    All columns of texts have the same maximum width, and longer texts are cut to this width. If the line is still too
    long, the last columns are omitted. `least` is the smallest useful width of each column.
    """
    if width is None:
        return full_widths
    for count in range(len(full_widths), 0, -1):
        room = width - len(COLUMN_GAP) * (count - 1)
        bounds = list(zip(full_widths[:count], least[:count], strict=True))
        if sum(least[:count]) > room:
            continue

        def widths_at(cap: int, bounds: list[tuple[int, int]] = bounds) -> list[int]:
            return [max(narrow, min(cells, cap)) for cells, narrow in bounds]

        cap = bisect_right(range(room + 1), room, key=lambda cap: sum(widths_at(cap))) - 1  # the largest cap that fits
        fitted = widths_at(cap)
        spare = room - sum(fitted)
        for at, (cells, _) in enumerate(bounds):  # spare cells go to the first columns that were cut
            if spare and fitted[at] < cells and cap >= fitted[at]:
                fitted[at] += 1
                spare -= 1
        return fitted
    return [width]


def _grow(widths: list[int], columns: Sequence[TableColumn], width: int) -> None:
    """Distribute the unused cells of a line to the columns.

    Each column of numbers gets up to GROWTH_CELLS more cells. The text columns share the rest, and become at most three
    times as wide.
    """
    spare = width - sum(widths) - len(COLUMN_GAP) * (len(widths) - 1)
    for at, column in enumerate(columns[: len(widths)]):
        if column.type in NUMERIC:
            more = min(GROWTH_CELLS, spare)
            widths[at] += more
            spare -= more
    texts = [at for at, column in enumerate(columns[: len(widths)]) if column.type in TEXT]
    for at in texts:
        widths[at] += min(2 * widths[at], spare // len(texts))


def cell_width(text: str) -> int:
    """Return the width of a text in terminal cells."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int, ellipsis: str) -> str:
    """Cut a text to a width in cells, and put an ellipsis at its end."""
    if text.isascii():
        return text[: max(0, width - len(ellipsis))] + ellipsis[:width]
    from rich.cells import set_cell_size

    return set_cell_size(text, max(0, width - len(ellipsis))) + ellipsis[:width]


def folded_lines(text: str, width: int) -> list[str]:
    """Break a text into lines of at most `width` cells. A line may be broken at any character."""
    if cell_width(text) <= width:
        return [text]
    if text.isascii():
        return [text[at : at + width] for at in range(0, len(text), width)]
    from rich.cells import chop_cells

    return chop_cells(text, width)


def fill(text: str, width: int, *, right: bool = False) -> str:
    """Pad a text with blanks to a width in cells. The blanks are after the text, or before the text if `right`."""
    room = " " * (width - cell_width(text))
    return room + text if right else text + room


def bold(text: str, style: Style) -> str:
    return styled(1, text) if style.color else text
