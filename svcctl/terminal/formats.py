"""The output formats. `FORMATS` has an entry for each format.

The service itself writes many formats. The parameter `mode.type` of a request names such a format, and svcctl passes on
the service's bytes unchanged. svcctl itself writes the formats `table`, `vertical`, `chart` and `parquet`. It also
writes lists, the rows of followed queries, and rows that the user has selected or sorted.

svcctl writes a text format with a function that is called its layout, and a binary format with a function that is
called its packing. Values that a format cannot hold are replaced and counted.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

from svcctl.api.formats.batches import Batches, batches_of
from svcctl.errors import UsageError
from svcctl.io import extras
from svcctl.io.compression import COMPRESSIONS, ByteSink
from svcctl.io.losses import MAX_SHEET_COLUMNS, Losses
from svcctl.terminal import layout
from svcctl.terminal.layout import Style, TableColumn
from svcctl.terminal.notes import loss_notes
from svcctl.terminal.selection import Selection
from svcctl.words import FORMAT_NAMES, counted, did_you_mean, format_name, json_text

Note = Callable[[str], None]
Layout = Callable[[Sequence[TableColumn], Iterable[Sequence[Any]], Style, Note], Iterator[list[str]]]
"""A function that formats columns and rows as lines of text.

The lines of rows that arrive together are yielded together. The last argument of a layout is a function that receives
notes, for example on cut cells.
"""
Packing = Callable[[Sequence[TableColumn], Iterable[Sequence[Any]], Style, Losses, ByteSink], None]
"""A function that writes columns and rows as binary data, and counts the values that the format cannot hold."""


class OutputFormat(NamedTuple):
    """An output format: its name, the `mode.type` to request from the service, and the function that writes rows.

    The function is a layout for a text format, and a packing for a binary format. If a format has neither, only the
    service can write it.
    """

    name: str
    mode: str
    meaning: str
    layout: Layout | None = None
    packing: Packing | None = None
    whole: Layout | None = None
    """The layout for the rows of a query, if it differs from the layout for lists."""
    endings: tuple[str, ...] = ()
    """The endings of file names in this format."""
    compresses: bool = False
    """Whether the format compresses its content, so that its files must not be compressed again."""
    heading: bool = False
    """Whether the output begins with the names of the columns."""
    raw: bool = True
    """Whether svcctl passes on the service's bytes unchanged, unless the user selects columns or sorts rows."""
    binary: bool = False
    lists: bool = False
    """Whether lists (jobs, domains, roles, profiles) can be printed in this format, too."""
    counted: bool = True
    """Whether the rows of an answer are counted even if the answer is passed on unchanged."""
    dates: bool = False
    """Whether the service writes dates as texts in this format.

    Then the parameters dateFormat and timeZone of the request set the form of the dates.
    """
    lines: bool = False
    """Whether rows can be printed as they arrive, even for a query that never ends."""
    by_row: bool = False
    """Whether each row is one line that depends on no other row. A heading may come before the lines."""
    keyed: bool = False
    """Whether the names of columns are keys of objects, so that they must be unique."""
    widest: int | None = None
    """The maximum number of columns that the format can write; None for no limit."""
    keeps_bytes: bool = False
    """Whether bytes that are not UTF-8 are written unchanged. In other formats, each such byte becomes U+FFFD."""
    finite: bool = False
    """Whether numbers must be finite. In such a format, infinite numbers and NaN become null."""
    extra: str | None = None
    """The extra of the svcctl package that installs the libraries for the packing; None if no extra is needed."""

    @property
    def arranges(self) -> bool:
        """Whether selected or sorted rows can be written in this format."""
        return self.layout is not None or self.packing is not None

    def writes(self, selection: Selection) -> bool:
        """Return whether svcctl decodes the rows and writes them itself.

        Otherwise, the service's bytes are passed on.
        """
        return not self.raw or selection.of_rows or (self.packing is not None and not selection.header)

    def counts(self, selection: Selection) -> bool:
        """Return whether the rows of an answer are counted."""
        return self.counted or self.writes(selection)

    def mode_of(self, selection: Selection) -> str:
        """Return the `mode.type` to request.

        The type is ROWS if svcctl writes the rows itself, and otherwise the type of the format.
        """
        return ROWS if self.writes(selection) else self.mode

    def check(self, selection: Selection, *, follow: bool = False) -> None:
        """Check that a selection can be used with the format.

        Raises UsageError if the selection cannot be used, and MissingExtra if the packages of the format are not
        installed.
        """
        if selection.option_names and not self.arranges:
            can = ", ".join(row.name for row in FORMATS.values() if row.arranges)
            raise UsageError(
                f"{selection.option_names[0]} cannot be used with format {self.name}, which the service writes",
                hint=f"use one of: {can}",
            )
        if self.keyed and (twice := [name for name in selection.columns if selection.columns.count(name) > 1]):
            raise UsageError(
                f"--columns names '{twice[0]}' twice, but {self.name} needs different names",
                hint="name it once, or use --format csv or table",
            )
        if self.extra is not None and self.writes(selection):
            feature = f"{selection.option_names[0]} with format {self.name}" if self.raw else f"the format {self.name}"
            extras.need(self.extra, feature)
        if follow and selection.sort:
            raise UsageError("--follow and --sort exclude each other: endless rows cannot be sorted")

    def write(
        self, columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, note: Note
    ) -> Iterator[str]:
        """Return rows as lines in this format."""
        return chain.from_iterable(self.blocks(columns, rows, style, note))

    def blocks(
        self, columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, note: Note
    ) -> Iterator[list[str]]:
        """Return rows as lines in this format. The lines of rows that arrive together are yielded together.

        After the last line, `note` is called with notes on lost values.
        """
        if self.layout is None:
            raise UsageError(f"only a service writes {self.name}")
        losses = self._losses()
        columns = self._writable_columns(columns, losses)
        return _with_loss_notes(losses, note, self.layout(columns, _writable_rows(rows, losses), style, note))

    def pack(
        self, columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, sink: ByteSink, note: Note
    ) -> None:
        """Write rows as binary data, and then call `note` with notes on lost values."""
        assert self.packing is not None
        losses = self._losses()
        columns = self._writable_columns(columns, losses)
        self.packing(columns, _writable_rows(rows, losses), style, losses, sink)
        for text in loss_notes(losses):
            note(text)

    def _losses(self) -> Losses:
        return Losses(keeps_bytes=self.keeps_bytes, finite=self.finite)

    def _writable_columns(self, columns: Sequence[TableColumn], losses: Losses) -> Sequence[TableColumn]:
        """Return the columns of a result, with names that the format can write.

        Raises UsageError for too many columns. In a format that uses names as keys, two columns with the same name also
        raise UsageError.
        """
        if self.widest is not None and len(columns) > self.widest:
            raise UsageError(
                f"format {self.name} has at most {self.widest} columns, and this result has {len(columns)}",
                hint="name some with --columns, select fewer in the query, or use --format csv or vertical",
            )
        columns = [column._replace(name=losses.text(column.name)) for column in columns]
        twice = [name for name, count in Counter(column.name for column in columns).items() if count > 1]
        if self.keyed and twice:
            raise UsageError(
                f"two columns are called '{twice[0]}', but {self.name} needs different names",
                hint="name one in the query with 'as', or use --format csv or table",
            )
        return columns


def _writable_rows(rows: Iterable[Sequence[Any]], losses: Losses) -> Iterator[Sequence[Any]]:
    """Return the rows of a result. Values that the format cannot hold are replaced."""
    return Batches(map(losses.rows, batches_of(rows)))


def _with_loss_notes(losses: Losses, note: Note, blocks: Iterator[list[str]]) -> Iterator[list[str]]:
    """Yield blocks of lines unchanged, and then call `note` with notes on lost values, even after an interruption."""
    try:
        yield from blocks
    finally:
        for text in loss_notes(losses):
            note(text)


def sorted_blocks(
    format: OutputFormat,
    columns: Sequence[TableColumn],
    rows: Iterable[Sequence[Any]],
    selection: Selection,
    style: Style,
    note: Note,
) -> Iterator[list[str]]:
    """Yield rows as lines, in the order that a selection asks for.

    The format must write each row as one line (`by_row`). The lines are sorted instead of the rows, because lines take
    less memory.
    """
    from svcctl.terminal.external_sort import in_order

    keys_of, waiting = selection.keys(columns), deque[list[Any]]()

    def noted() -> Iterator[Sequence[Sequence[Any]]]:
        for batch in batches_of(rows):
            waiting.append(keys_of(batch))
            yield batch

    blocks = format.blocks(*selection.pick(columns, Batches(noted())), style, note)
    if format.heading and style.header:
        yield next(blocks)
    yield from map(list, batches_of(in_order(Batches(blocks), lambda lines: waiting.popleft(), selection.top)))


def _table(
    columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, note: Note
) -> Iterator[list[str]]:
    cuts = layout.Cuts()

    def tell_columns() -> None:
        if cuts.columns:
            note(f"left out columns that do not fit: {', '.join(cuts.columns)} (--format vertical shows them)")
            cuts.columns = []

    try:
        for lines in layout.table(columns, rows, style, cuts):
            tell_columns()  # before the first line: rows may never end, and a pager shows this note first
            yield lines
    finally:  # a followed query ends with Ctrl-C
        if cuts.cells:
            cells = counted(cuts.cells, "cell was", "cells were")
            note(f"{cells} cut to fit (--format vertical or csv shows them in full)")


def _vertical(
    columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, note: Note
) -> Iterator[list[str]]:
    return ([line] for line in layout.vertical(columns, rows, style))


def _chart(
    columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, note: Note
) -> Iterator[list[str]]:
    from svcctl.terminal import charts

    chart = charts.draw(columns, rows, style)
    yield chart.lines
    for text in chart.notes:
        note(text)


def _separated(delimiter: str) -> Layout:
    """Return a layout that writes csv or tsv as the service does: null is an empty cell, an empty string is `""`."""
    marks = (delimiter, '"', "\r", "\n")

    def lines(
        columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, note: Note
    ) -> Iterator[list[str]]:
        def cell(value: Any, kind: str | None) -> str:
            if value is None:
                return ""
            text = value if isinstance(value, str) else _plain(value, kind, style)
            return '"' + text.replace('"', '""') + '"' if not text or any(map(text.__contains__, marks)) else text

        def cells(values: Sequence[Any], kind: str | None) -> Sequence[str]:
            """Return the values of a column as cells of csv or tsv."""
            types = set(map(type, values))
            if types == {int}:
                return layout.format_cells(values, kind, style)
            if types == {float}:
                return list(map(repr, values))
            if not types <= {str, NoneType}:
                return [cell(value, kind) for value in values]
            text = "".join(filter(None, values))
            if "" not in values and not any(map(text.__contains__, marks)):
                return [value or "" for value in values] if NoneType in types else values
            texts = {value: cell(value, kind) for value in set(values)}  # values with commas often repeat
            return [texts[value] for value in values]

        padding = delimiter * (len(columns) - 1)
        """A line of delimiters, which a service may send to keep a connection alive.

        A row of nulls must not look like this line.
        """
        if style.header:
            yield [delimiter.join(cell(column.name, None) for column in columns)]
        for batch in batches_of(rows):
            by_column = map(cells, zip(*batch, strict=True), (column.type for column in columns))
            lines = list(map(delimiter.join, zip(*by_column, strict=True)))
            if padding in lines:
                lines = ['""' + line if line == padding else line for line in lines]
            yield lines

    return lines


def _plain(value: Any, kind: str | None, style: Style) -> str:
    """Return a value as text for programs. Numbers are not rounded, unlike numbers in a table."""
    if isinstance(value, Mapping | list | tuple):
        return _json(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else json_text(value)
    return layout.format_cell(value, kind, style)


def _objects(
    columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, note: Note
) -> Iterator[list[str]]:
    """Format each row as one JSON object on its own line."""
    names = [column.name for column in columns]
    return ([_json(dict(zip(names, row, strict=True))) for row in batch] for batch in batches_of(rows))


def _array(
    columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, note: Note
) -> Iterator[list[str]]:
    """Format all rows as one JSON array of objects."""
    names = [column.name for column in columns]
    yield [_json([dict(zip(names, row, strict=True)) for row in rows])]


def _envelope(
    columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, note: Note
) -> Iterator[list[str]]:
    """Format all rows as a JSON document like an answer of the service, with one row on each line."""
    yield ['{"success":true,"msg":"","status":0,"object":[']
    before = ""
    for lines in _objects(columns, rows, style, note):
        yield [f"{line}," for line in [before, *lines[:-1]] if line]
        before = lines[-1]
    yield [before, "]}"] if before else ["]}"]


def _parquet(
    columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, losses: Losses, sink: ByteSink
) -> None:
    from svcctl.io import parquet

    typed = [(column.name, column.type or "str") for column in columns]
    parquet.write(parquet.batches(rows, typed), typed, sink)


def _spreadsheet(
    columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, losses: Losses, sink: ByteSink
) -> None:
    from svcctl.io.spreadsheet import Spreadsheet

    typed = [(column.name, column.type) for column in columns]
    with Spreadsheet(typed, losses, date_format=style.date_format, zone=style.zone, heading=style.header) as sheet:
        for batch in batches_of(rows):
            sheet.add(batch)
        for block in sheet.end():
            sink.write(block)


def _compact(
    columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, note: Note
) -> Iterator[list[str]]:
    """Format rows as lines of the format json/simple/compact."""
    yield [_json({"m": {column.name: {"type": column.type, "index": at} for at, column in enumerate(columns)}})]
    for batch in batches_of(rows):
        yield [_json({"d": row}) for row in batch]


def _as_mapping(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(type(value).__name__)


_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_as_mapping).encode


ROWS = "json/simple/compact"
"""The `mode.type` of a request if svcctl writes the rows itself.

An answer of this type contains the types of the columns, and has one line for each row.
"""

FORMATS = {
    row.name: row
    for row in (
        OutputFormat(
            "table",
            ROWS,
            "columns that fit the terminal",
            _table,
            heading=True,
            raw=False,
            lists=True,
            lines=True,
            widest=500,
        ),
        OutputFormat(
            "vertical", ROWS, "each value on its own line, for wide rows", _vertical, raw=False, lists=True, lines=True
        ),
        OutputFormat("chart", ROWS, "a bar per row, or a line over time", _chart, raw=False, widest=50),
        OutputFormat(
            "csv",
            "csv",
            "comma-separated, with the column names first; null is an empty cell",
            _separated(","),
            endings=("csv",),
            heading=True,
            lists=True,
            dates=True,
            lines=True,
            by_row=True,
            keeps_bytes=True,
        ),
        OutputFormat(
            "tsv",
            "tsv",
            "the same as csv, separated by tabs",
            _separated("\t"),
            endings=("tsv",),
            heading=True,
            lists=True,
            dates=True,
            lines=True,
            by_row=True,
            keeps_bytes=True,
        ),
        OutputFormat(
            "ndjson",
            "json/simple",
            "one JSON object per line",
            _objects,
            endings=("ndjson", "jsonl"),
            lists=True,
            lines=True,
            by_row=True,
            keyed=True,
            finite=True,
        ),
        OutputFormat(
            "json",
            "json",
            "one JSON document, with the rows in the member 'object'",
            _array,
            whole=_envelope,
            endings=("json",),
            lists=True,
            keyed=True,
            finite=True,
        ),
        OutputFormat(
            "json/compact",
            "json/compact",
            "one JSON document, with the columns in object.m and an array per row in object.d",
        ),
        OutputFormat("json/simple", "json/simple", "the same as ndjson", _objects, lines=True, keyed=True, finite=True),
        OutputFormat(
            ROWS,
            ROWS,
            "one line with the columns, then one array of values per row",
            _compact,
            lines=True,
            keyed=True,
            finite=True,
        ),
        OutputFormat(
            "msgpack", "msgpack", "the same document as json, in MessagePack", endings=("msgpack",), binary=True
        ),
        OutputFormat("xml", "xml", "one <event> element per row", endings=("xml",), counted=False, dates=True),
        OutputFormat(
            "xls",
            "xls",
            "a spreadsheet (.xlsx)",
            packing=_spreadsheet,
            endings=("xlsx",),
            counted=False,
            binary=True,
            dates=True,
            widest=MAX_SHEET_COLUMNS,
            finite=True,
            extra="xlsx",
        ),
        OutputFormat(
            "parquet",
            ROWS,
            "typed columns, compressed",
            packing=_parquet,
            endings=("parquet",),
            compresses=True,
            raw=False,
            binary=True,
            keyed=True,
            extra="parquet",
        ),
    )
}
AUTO = "auto"
PACKED = frozenset(("7z", "bz2", "gzip", "lz4", "rar", "xz", "zip", "zstd"))
"""Endings of compressed files that svcctl does not write."""
UNWRITTEN = frozenset(
    ("arrow", "avro", "db", "feather", "html", "md", "ods", "orc", "parq", "pdf", "pq", "sqlite", "xls", "yaml", "yml")
) | {"gif", "jpeg", "jpg", "png", "svg", "webp"}
"""Endings of file types that svcctl does not write. Without --format, a file name with such an ending is refused."""


def alone(format: OutputFormat, *, keyed: bool = False) -> OutputFormat:
    """Return the format for a single object. In json, the output is then an object instead of a list.

    With `keyed`, this JSON object has a member for each row.
    """
    return format._replace(layout=_members if keyed else _objects) if format is FORMATS["json"] else format


def _members(
    columns: Sequence[TableColumn], rows: Iterable[Sequence[Any]], style: Style, note: Note
) -> Iterator[list[str]]:
    """Format all rows as one JSON object.

    Each row is a member. The value in the first column is the name of the member.
    """
    names = [column.name for column in columns[1:]]
    yield [_json({row[0]: dict(zip(names, row[1:], strict=True)) for row in rows})]


def find_format(name: str, *, is_terminal: bool, lists: bool = False) -> OutputFormat:
    """Return the format with a name. The name `auto` means a table on a terminal, and csv elsewhere.

    For an unknown name, raises UsageError with a list of the known names.
    """
    name, typed_name = format_name(name), name
    if name == AUTO:
        name = "table" if is_terminal else "csv"
    names = [row.name for row in FORMATS.values() if row.lists or not lists]
    if name not in names:
        advice = did_you_mean(
            typed_name, [*names, *(spelling for spelling, name in FORMAT_NAMES.items() if name in names)]
        )
        raise UsageError(
            f"unknown format '{typed_name}'",
            hint=f"{advice + ' ' if advice else ''}formats are: {AUTO}, {', '.join(names)}",
        )
    return FORMATS[name]


def of_file(path: Path) -> OutputFormat | None:
    """Return the format for the ending of a path; None if the ending does not name a format.

    Raises UsageError for an ending that svcctl does not write.
    """
    ending = _ending(path)
    for row in FORMATS.values():
        if ending in row.endings:
            return row
    refuse_packed(path)
    if ending not in UNWRITTEN:
        return None
    if ending == "xls":
        raise UsageError(f"{path} would contain a spreadsheet in the format .xlsx", hint="name it .xlsx")
    endings = ", ".join(f".{ending}" for row in FORMATS.values() for ending in row.endings)
    raise UsageError(
        f"svcctl cannot write .{ending} files",
        hint=f"endings that name a format are {endings}, each with .gz or .zst; --format names one for any file",
    )


def refuse_packed(path: Path) -> None:
    """Raise UsageError if the ending of a file names a compression that svcctl does not write."""
    if (ending := _ending(path)) in PACKED:
        raise UsageError(f"svcctl cannot write .{ending} files", hint="write .gz or .zst instead")


def check_file(name: Path | str, chosen: OutputFormat, note: Note, *, by_user: bool) -> None:
    """Check that the ending of a file name fits the format `chosen`. If it does not fit, call `note` with a note.

    `by_user` says whether the user has chosen the format. If not, `note` is also called for an ending that names no
    format, except .txt. Raises UsageError if the content would be compressed twice, or if svcctl cannot write files
    with this ending, for example a chart as .png.
    """
    path = Path(name)
    refuse_packed(path)
    if chosen.compresses and path.suffix in COMPRESSIONS:
        raise UsageError(f"{chosen.name} compresses by itself", hint=f"leave out {path.suffix}")
    ending = _ending(path)
    if chosen.name == "chart" and ending in UNWRITTEN:
        raise UsageError(f"a chart is text: svcctl cannot write .{ending} files", hint="name the file .txt")
    implied = next((row for row in FORMATS.values() if ending in row.endings), None)
    same = implied in (None, chosen) or (implied is not None and implied.raw and implied.mode == chosen.mode)
    if not same or ending in UNWRITTEN:
        content = chosen.endings[0] if ending == chosen.name else chosen.name  # the format xls is written as .xlsx
        note(f"{name} contains {content}, not {ending}")
    elif implied is None and not by_user and ending not in ("", "txt"):
        note(f"{name} contains {chosen.name}, because its ending does not name a format")


def _ending(path: Path) -> str:
    name = path.with_suffix("") if path.suffix in COMPRESSIONS else path
    return name.suffix[1:].lower()
