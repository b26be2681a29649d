"""Reads csv files: the names of the columns, and rows of cells, each row with the number of its first line.

Records are split here and their cells are parsed by Arrow, a block at a time, so memory is bounded however long a
quoted text is. A line ends with \\n, \\r\\n or \\r. Text after a closing quote belongs to the cell.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.csv as pa_csv

from svcctl.errors import UsageError
from svcctl.service.engines.duckdb.syntax import LINE, SHORT_ROW, distinct
from svcctl.service.loading.decompression import Source, opened
from svcctl.service.loading.limits import MAX_FIELDS, LoadWatch
from svcctl.service.loading.lines import BLOCK_BYTES, BOM, blocks
from svcctl.service.loading.skips import LONGEST_LINE, NOT_UTF8, Aside, Skip, Tally, shown
from svcctl.words import counted

MAX_CELLS = 1 << 19
"""The most cells that are read at once from records with several lines."""
HEAD = 1 << 17
"""The heading must end within this many bytes."""
_COMMENT = re.compile(rb"(?m)^#[^\r\n]*")
_FIELDS = re.compile(rb"(?i)#fields\b")
_END = rb"(?:\r\n?|\n)"
_LINE = re.compile(rb"[^\r\n]*+%s?" % _END)
_END_OF_RECORD = re.compile(rb"%s\Z" % _END)
_LINE_END = re.compile(_END)
_BLANK = re.compile(rb"[\r\n]*")
_QUOTED_TEXT = re.compile(r'"[^"]*+(?:""[^"]*+)*+"')
_QUOTED = rb'"[^"]*+(?:""[^"]*+)*+"'
_SEPARATORS = ",;\t|"
_SEPARATOR = re.compile(rb"sep=([,;\t|])" + _END)
"""A first line such as `sep=;`, which names the separator for spreadsheets."""


@dataclass(frozen=True, slots=True)
class CsvPatterns:
    """A separator, with the patterns of a record, a record after blank lines, several records, and a cell.

    The cell's pattern, `padded`, includes the separator after the cell and the blanks after that. Without `is_quoted`,
    a quote is a character like others.
    """

    separator: str
    is_quoted: bool
    record: re.Pattern[bytes]
    filled: re.Pattern[bytes]
    records: re.Pattern[bytes]
    padded: re.Pattern[bytes]


def shape(separator: str, *, is_quoted: bool = True) -> CsvPatterns:
    by = re.escape(separator.encode())
    cell = rb'(?:%s|(?!"))[^%s\r\n]*+' % (_QUOTED, by) if is_quoted else rb"[^%s\r\n]*+" % by
    cells = rb"(?:%s%s)*+" % (cell, by)
    # Most lines have no quotes.
    record = rb'(?:[^"\r\n]*+%s|%s%s%s)' % (_END, cells, cell, _END)
    # A quote that is still open may be closed in the next block.
    padded = rb'(%s(?:(%s)|%s)|(?s:".*\Z))((?<=%s) *)?' % (cell, by, _END, by)
    patterns = record, b"([\r\n]*+)(%s)" % record, b"(?:%s)*+" % record, padded
    return CsvPatterns(separator, is_quoted, *map(re.compile, patterns))


@dataclass(frozen=True, slots=True)
class CsvHeading:
    """The columns' names, their separator, and the byte and the line where the rows begin.

    `padded` is true if there are blanks before all names; then blanks after separators are not part of cells. The names
    are those of the first row if `is_read`; `first` is the first line; `blank` and `comments` count the lines before.
    If the file names its fields in a comment, `fields_line` is that comment, `null` are its texts for null, and
    `epochs` are the columns that it calls times in epoch seconds.
    """

    names: tuple[str, ...]
    shape: CsvPatterns
    padded: bool
    begin: int
    line: int
    is_read: bool
    first: str
    blank: int = 0
    comments: int = 0
    fields_line: bytes = b""
    null: tuple[str, ...] = ()
    epochs: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*((name, pa.string()) for name in self.names), (LINE, pa.int64()), (SHORT_ROW, pa.bool_())])


def heading(
    name: str, head: bytes, separator: str | None, *, header: bool | None = None, names: Sequence[str] = ()
) -> CsvHeading:
    """The heading of a csv file. `head` has the first HEAD bytes of the file, or all of a shorter one.

    If `separator` is None, it is that of a first line such as `sep=;`, or else the most frequent of comma, semicolon,
    tab and | in the heading. `header` says whether the first row has names of columns; if it is None, the row has them
    unless `names` are given. Otherwise the first row is data, and the columns are called by `names`, or else by
    numbers. Raises UsageError if the first row cannot be read as names, or does not have as many cells as there are
    `names`.
    """
    head += b"\n" * (len(head) < HEAD)  # the file may end with the heading, without a line end
    start, comments = _first_row(head, _end(_BLANK, head, len(BOM) if head.startswith(BOM) else 0))
    if declaration := _SEPARATOR.match(head, start):
        separator, start = separator or declaration[1].decode(), declaration.end()
    first = head[start : _end(_LINE, head, start)]
    cut = shape(separator or frequent_separator(_text(first)))
    end = _end(cut.record, head, start)
    if end == start:
        raise UsageError(f"{name} has no names of columns: the first line is too long, or a quote in it is not closed")
    if not _is_text(head[start:end]):
        raise UsageError(f"the names of columns of {name} are not UTF-8: {shown(_text(first))}", reason=NOT_UTF8)
    blanks = [match[3] for match in cut.padded.finditer(head[start:end]) if match[2]]
    padded = bool(blanks) and all(blanks)
    text = io.StringIO(_text(head[start:end]), newline="")
    [cells] = csv.reader(text, delimiter=cut.separator, skipinitialspace=padded)
    if len(cells) > MAX_FIELDS:
        raise UsageError(f"{name} has more than {MAX_FIELDS} fields")
    if names and (len(names) < len(cells) or (len(names) > len(cells) and not header)):
        raise UsageError(
            f"{counted(len(names), 'name')} for columns, but the first row of {name} has "
            f"{counted(len(cells), 'cell')}: {shown(_text(first))}"
        )
    is_header = not names if header is None else header
    column_names = names or ([cell.strip() for cell in cells] if is_header else [""] * len(cells))
    before = _line_ends(head[:start])
    return CsvHeading(
        tuple(distinct(column_names)),
        cut,
        padded,
        end if is_header else start,
        1 + (_line_ends(head[:end]) if is_header else before),
        is_header and not names,
        _text(first).rstrip("\r\n"),
        before - comments - (declaration is not None),
        comments,
    )


def frequent_separator(line: str) -> str:
    """The separator that a line has most often outside of quotes."""
    unquoted = _QUOTED_TEXT.sub("", line)
    return max(_SEPARATORS, key=unquoted.count)


def _first_row(head: bytes, start: int) -> tuple[int, int]:
    """The offset of the first line that is not a comment, and the number of comments before it."""
    comments = 0
    while head.startswith(b"#", start):
        end = _end(_LINE, head, start)
        following = _end(_BLANK, head, end)
        if not _is_comment(_text(head[start:end]), _text(head[following : _end(_LINE, head, following)])):
            break
        comments, start = comments + 1, following
    return start, comments


def _is_comment(line: str, following: str) -> bool:
    """Whether a line before the rows is a comment: it begins with #, and is not the heading.

    It is the heading if the following line has as many cells and does not begin with #.
    """
    by = frequent_separator(line)
    names_cells = not following.startswith("#") and 0 < line.count(by) == following.count(by)
    return line.startswith("#") and bool(following.strip()) and not names_cells


def fitting_lines(lines: Sequence[str], separator: str | None) -> tuple[list[bool], Sequence[str]]:
    """For each line, whether its row has at least two cells and no more than the first row; and the first row's cells.

    If the first row is a single name, rows of one cell fit, unless cells have a known separator.
    """
    filled = [at for at, line in enumerate(lines) if line.strip()]
    pairs = zip(filled, [*filled[1:], None], strict=True)
    skipped = next(
        (at for at, following in pairs if not _is_comment(lines[at], "" if following is None else lines[following])),
        len(lines),
    )
    texts = ["" if at < skipped or (at > skipped and line.startswith("#")) else line for at, line in enumerate(lines)]
    by = separator or frequent_separator(texts[skipped] if skipped < len(texts) else "")
    reader = csv.reader((f"{text}\n" for text in texts), delimiter=by, skipinitialspace=True)
    fit, number, first = [False] * len(lines), 0, list[str]()
    while number < len(lines):
        try:
            cells = next(reader)
        except csv.Error:  # such as a cell of more than 128 kB
            cells = []
        first = first or cells
        least = 1 if separator is None and len(first) == 1 and first[0].strip().isidentifier() else 2
        fit[number : reader.line_num] = [least <= len(cells) <= len(first)] * (reader.line_num - number)
        number = reader.line_num
    return fit, first


def batches(
    source: Source,
    head: CsvHeading,
    tally: Tally,
    watch: LoadWatch,
    block_size: int = BLOCK_BYTES,
    longest: int = LONGEST_LINE,
) -> Iterator[pa.RecordBatch]:
    """The rows after the heading of a file. `tally` counts other lines. SHORT_ROW is true in short rows."""
    rows = _Rows(head, tally, longest)
    tally.add(Aside.BLANK, 1, count=head.blank)
    tally.add(Aside.COMMENT, 1, count=head.comments)
    with opened(source, watch) as file:
        file.read(head.begin)
        number = head.line
        for block in blocks(file, tally, block_size, longest, rows.next_line):
            if head.fields_line:
                yield from rows.of(_without_comments(block, source.name, head, number, tally))
                number += block.count(b"\n")
            else:
                yield from rows.of(block)
        yield from rows.last()


def _without_comments(block: bytes, name: str, head: CsvHeading, number: int, tally: Tally) -> bytes:
    """Make the comments in a block of whole lines empty, and count them. `number` is that of its first line.

    Raises UsageError for a comment that names other fields.
    """
    if not (block.startswith(b"#") or b"\n#" in block):
        return block
    for comment in _COMMENT.finditer(block):
        line = number + block.count(b"\n", 0, comment.start())
        tally.add(Aside.COMMENT, line)
        tally.emptied += 1
        if _FIELDS.match(comment[0]) and comment[0].rstrip() != head.fields_line.rstrip():
            raise UsageError(
                f"line {line} of {name} names other fields than the lines above: {shown(_text(comment[0]))}",
                hint="split the file there, and load its parts",
            )
    return _COMMENT.sub(b"", block)


def _end(pattern: re.Pattern[bytes], data: bytes, start: int = 0) -> int:
    """The end of the pattern's match at `start`, or `start` if it does not match."""
    match = pattern.match(data, start)
    return match.end() if match else start


def _line_ends(data: bytes) -> int:
    return data.count(b"\n") + _lone_returns(data)


def _lone_returns(data: bytes) -> int:
    return data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else 0


class _Rows:
    """Splits blocks of whole lines into records, and the records into cells."""

    def __init__(self, head: CsvHeading, tally: Tally, longest: int) -> None:
        self._head = head
        self._shape = head.shape
        self._tally = tally
        self._longest = longest
        self._number = head.line
        self._rest = b""
        """The beginning of a record, which the next block completes."""

    def next_line(self) -> int:
        """The number of the line after the blocks so far."""
        return self._number + _line_ends(self._rest)

    def of(self, block: bytes) -> Iterator[pa.RecordBatch]:
        """The rows whose records end in a block."""
        yield from self._cut(self._rest + block, self._longest)

    def last(self) -> Iterator[pa.RecordBatch]:
        """The rows in the data that is left at the end of the file, after a record that does not end."""
        yield from self._cut(self._rest, 0)

    def _cut(self, data: bytes, most: int) -> Iterator[pa.RecordBatch]:
        """The rows of some data. The first line of a record longer than `most` bytes that does not end is skipped."""
        if not data.strip(b"\r\n"):
            self._tally.add(Aside.BLANK, self._number, count=_line_ends(data))
            self._number += _line_ends(data)
            self._rest = b""
            return
        if self._head.padded:
            data = self._shape.padded.sub(rb"\1", data)
        while data:
            rows = self._lines(data)
            if rows is not None:
                yield rows
                self._number += rows.num_rows
                data = b""
                break
            end = _end(self._shape.records, data)
            yield from self._records(data[:end])
            self._number += _line_ends(data[:end])
            data = data[end:]
            if len(data) <= most:
                break
            line = data[: _end(_LINE, data)]
            self._tally.skip(Skip.QUOTE, self._number, _text(line))
            self._number += 1
            data = data[len(line) :]
        self._rest = data

    def _lines(self, data: bytes) -> pa.RecordBatch | None:
        """The rows of some data if each line is a row; otherwise None."""
        if len(data) > self._longest or _lone_returns(data) or not _is_text(data):
            return None
        # If a quote is open at the end, the added line becomes part of the last row, and the number of rows is wrong.
        one_more = (self._shape.separator * (len(self._head.names) - 1) or "x").encode() + b"\n"
        cells, _ = _parsed(data + one_more, self._shape, self._head.names)
        lines = data.count(b"\n")
        if cells.num_rows != lines + 1:
            return None
        return _numbered(cells.slice(0, lines), pa.arange(self._number, self._number + lines), self._head)

    def _records(self, data: bytes) -> Iterator[pa.RecordBatch]:
        """The rows of records that may have several lines, with at most about MAX_CELLS cells at once."""
        number = self._number
        records: list[tuple[int, bytes]] = []
        most = max(1, MAX_CELLS // len(self._head.names))
        last = len(data.rstrip(b"\r\n"))
        for match in self._shape.filled.finditer(data, 0, last and _end(_LINE_END, data, last)):
            blank, record = match.groups()
            self._tally.add(Aside.BLANK, number, count=_line_ends(blank))
            number += _line_ends(blank)
            if len(record) > self._longest:
                self._tally.add(Skip.LONG, number, count=_line_ends(record))
            elif not _is_text(record):
                self._tally.skip(Skip.ENCODING, number, _text(record), count=_line_ends(record))
            else:
                records.append((number, record))
            number += _line_ends(record)
            if len(records) == most:
                yield self._filled(records)
                records = []
        if records:
            yield self._filled(records)
        self._tally.add(Aside.BLANK, number, count=_line_ends(data) - (number - self._number))

    def _filled(self, records: Sequence[tuple[int, bytes]]) -> pa.RecordBatch:
        """The cells of records with the numbers of their lines. Records that are not rows are left out."""
        names = self._head.names
        cells, bad = _parsed(b"".join(record for _, record in records), self._shape, names)
        short = {at: row.expected_columns - row.actual_columns for at, row in bad.items()}
        if any(missing > 0 for missing in short.values()):
            by = self._shape.separator.encode()
            whole = (_END_OF_RECORD.sub(by * short.get(at, 0) + b"\n", text) for at, (_, text) in enumerate(records))
            cells, bad = _parsed(b"".join(whole), self._shape, names)
        for at in bad:
            number, record = records[at]
            self._tally.skip(Skip.CELLS, number, _text(record), count=_line_ends(record))
        numbers = [number for at, (number, _) in enumerate(records) if at not in bad]
        return _numbered(
            cells,
            pa.array(numbers, pa.int64()),
            self._head,
            [at in short for at in range(len(records)) if at not in bad],
        )


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _numbered(
    cells: pa.RecordBatch, numbers: pa.Int64Array, head: CsvHeading, short: Sequence[bool] | None = None
) -> pa.RecordBatch:
    shorts = pa.repeat(False, cells.num_rows) if short is None else pa.array(short, pa.bool_())
    return pa.RecordBatch.from_arrays([*cells.columns, numbers, shorts], schema=head.schema)


def _parsed(
    data: bytes, shape: CsvPatterns, names: Sequence[str]
) -> tuple[pa.RecordBatch, Mapping[int, pa_csv.InvalidRow]]:
    """The cells of records; empty cells without quotes are null. Records with too few or too many cells are left out.

    The second result has the records that were left out, by their index.
    """
    bad: dict[int, pa_csv.InvalidRow] = {}

    def left_out(row: pa_csv.InvalidRow) -> str:
        bad[row.number - 1] = row
        return "skip"

    empty = pa.RecordBatch.from_pylist([], pa.schema([(name, pa.string()) for name in names]))
    if not data:
        return empty, bad
    table = pa_csv.read_csv(
        pa.BufferReader(BOM + data if data.startswith(BOM) else data),  # Arrow removes one mark
        pa_csv.ReadOptions(use_threads=False, block_size=len(data) + 4, column_names=names),
        pa_csv.ParseOptions(
            delimiter=shape.separator,
            quote_char='"' if shape.is_quoted else False,
            newlines_in_values=True,
            invalid_row_handler=left_out,
        ),
        pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return (table.combine_chunks().to_batches()[0] if table.num_rows else empty), bad
