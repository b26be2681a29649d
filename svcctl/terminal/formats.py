"""The output formats: a row each, with the function that writes it.

A format that is a `mode.type` of the interface is the service's own bytes, passed on as they come; its row has a layout
only where lists and followed queries are printed in it too. `table`, `vertical` and `chart` are laid out here, always.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from svcctl.errors import UsageError
from svcctl.terminal import tables
from svcctl.terminal.tables import Style, TableColumn

Note = Callable[[str], None]
Layout = Callable[[Sequence[TableColumn], Iterable[Sequence[Any]], Style, Note], Iterator[str]]
"""Lines of text from columns and rows, each as soon as it is known; the last argument receives remarks on the whole,
such as what was cut."""


@dataclass(frozen=True, slots=True)
class Format:
    """One output format: the mode.type that is asked for, and the layout that writes rows in it.

    Without a layout only a service can write the format, and a query's bytes are all that can be printed.
    """

    name: str
    mode: str
    meaning: str
    layout: Layout | None = None
    raw: bool = True
    """Whether a query's answer is passed on unchanged instead of laid out."""
    binary: bool = False
    lists: bool = False
    """Whether lists (jobs, domains, roles, profiles) can be printed in it too."""
    dates: bool = False
    """Whether the service formats dates in it (dateFormat and timeZone apply)."""
    lines: bool = False
    """Whether a row is a line, so that a query without an end can be printed in it."""
    widest: int | None = None
    """The most columns that it is laid out with, where rows are held until their columns are measured."""

    def write(
        self, columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, note: Note
    ) -> Iterator[str]:
        """Lines of rows in this format."""
        if self.layout is None:
            raise UsageError(f"only a service writes {self.name}")
        if self.widest is not None and len(columns) > self.widest:
            raise UsageError(
                f"a {self.name} has at most {self.widest} columns, and this result has {len(columns)}",
                hint="name some with --columns, select fewer in the query, or use --format csv or vertical",
            )
        return self.layout(columns, rows, style, note)


def _table(columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, note: Note) -> Iterator[str]:
    cuts = tables.Cuts()
    yield from tables.table(columns, rows, style, cuts)
    if cuts.columns:
        note(f"left out columns that do not fit: {', '.join(cuts.columns)} (--format vertical shows them)")
    if cuts.cells:
        cells = "1 cell was" if cuts.cells == 1 else f"{cuts.cells} cells were"
        note(f"{cells} cut to fit (--format vertical or csv shows them whole)")


def _vertical(columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, note: Note) -> Iterator[str]:
    return tables.vertical(columns, rows, style)


def _chart(columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, note: Note) -> Iterator[str]:
    from svcctl.terminal import charts

    chart = charts.draw(columns, rows, style)
    yield from chart.lines
    for text in chart.notes:
        note(text)


def _separated(delimiter: str) -> Layout:
    """Lines of csv or tsv as the service writes them: null is empty, an empty string is `""`."""
    special = {delimiter, '"', "\r", "\n"}

    def lines(columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, note: Note) -> Iterator[str]:
        def cell(value: Any, kind: str | None) -> str:
            if value is None:
                return ""
            text = value if isinstance(value, str) else _plain(value, kind, style)
            return '"' + text.replace('"', '""') + '"' if not text or special & set(text) else text

        yield delimiter.join(cell(column.name, None) for column in columns)
        for row in rows:
            line = delimiter.join(cell(value, column.type) for value, column in zip(row, columns, strict=True))
            yield line if line.strip(delimiter) else '""' + line  # a row of nulls would pass for keep-alive padding

    return lines


def _plain(value: Any, kind: str | None, style: Style) -> str:
    """A value as data: exact, where a table rounds."""
    if isinstance(value, Mapping | list | tuple):
        return _json(value)
    if isinstance(value, float):
        return repr(value)
    return tables.format_cell(value, kind, style)


def _objects(columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, note: Note) -> Iterator[str]:
    """A JSON object per line."""
    names = [column.name for column in columns]
    return (_json(dict(zip(names, row, strict=True))) for row in rows)


def _array(columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, note: Note) -> Iterator[str]:
    """All rows as one JSON array of objects."""
    names = [column.name for column in columns]
    yield _json([dict(zip(names, row, strict=True)) for row in rows])


def _compact(columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, note: Note) -> Iterator[str]:
    """The lines of json/simple/compact."""
    yield _json({"m": {column.name: {"type": column.type, "index": at} for at, column in enumerate(columns)}})
    for row in rows:
        yield _json({"d": row})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_as_mapping)


def _as_mapping(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(type(value).__name__)


_ROWS = "json/simple/compact"
"""The mode.type that layouts are made from: it has the columns' types, and a row is a line."""

FORMATS = {
    row.name: row
    for row in (
        Format("table", _ROWS, "columns that fit the terminal", _table, raw=False, lists=True, lines=True, widest=500),
        Format("vertical", _ROWS, "one line per column, for wide rows", _vertical, raw=False, lists=True, lines=True),
        Format("chart", _ROWS, "a bar per row, or a line over time", _chart, raw=False, widest=50),
        Format(
            "csv",
            "csv",
            "comma-separated, with a heading; null is an empty cell",
            _separated(","),
            lists=True,
            dates=True,
            lines=True,
        ),
        Format("tsv", "tsv", "the same, separated by tabs", _separated("\t"), lists=True, dates=True, lines=True),
        Format("ndjson", "json/simple", "one JSON object per line", _objects, lists=True, lines=True),
        Format("json", "json", "one JSON document: the envelope, rows in object", _array, lists=True),
        Format("json/compact", "json/compact", "one JSON document: columns in object.m, value arrays in object.d"),
        Format("json/simple", "json/simple", "the same as ndjson", _objects, lines=True),
        Format(_ROWS, _ROWS, "one line with the columns, then one array of values per row", _compact, lines=True),
        Format("msgpack", "msgpack", "the json document in MessagePack", binary=True),
        Format("xml", "xml", "one <event> element per row", dates=True),
        Format("xls", "xls", "a spreadsheet", binary=True, dates=True),
    )
}
AUTO = "auto"


def find_format(name: str, *, is_terminal: bool, lists: bool = False) -> Format:
    """The format of a name; `auto` is a table on a terminal and csv elsewhere. UsageError lists the known names."""
    if name == AUTO:
        name = "table" if is_terminal else "csv"
    known = [row.name for row in FORMATS.values() if row.lists or not lists]
    if name not in known:
        raise UsageError(f"unknown format '{name}'", hint=f"formats are: {AUTO}, {', '.join(known)}")
    return FORMATS[name]
