"""Reads csv files: the names of the columns, and the cells of each row. Each row has the number of its first line.

A file is read in blocks. This module splits a block into records, which are the texts of rows. Arrow splits the records
into cells. Only one block is in memory at a time, even if a quoted text is very long. A line ends with \\n, \\r\\n or
\\r. Text after a closing quote belongs to the cell, if the quoted text has no line end. Otherwise, the first quote is
probably not the beginning of a quoted text, so the first line is skipped.
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
from svcctl.service.loading.lines import BLOCK_BYTES, BOM, LINE_ENDS, blocks, is_text
from svcctl.service.loading.skips import LONGEST_LINE, NOT_UTF8, Aside, Skip, Tally, shown
from svcctl.words import counted

MAX_CELLS = 1 << 19
"""The maximum number of cells that are read at once if a record has several lines."""
HEAD = 1 << 17
"""The maximum number of bytes from the beginning of a file to the end of the heading."""
_COMMENT = re.compile(rb"(?m)^#[^\r\n]*")
_FIELDS = re.compile(rb"(?i)#fields\b")
_END = rb"(?:\r\n?|\n)"
_LINE = re.compile(rb"[^\r\n]*+%s?" % _END)
_END_OF_RECORD = re.compile(rb"%s\Z" % _END)
_LINE_END = re.compile(_END)
# Python 3.11.2 matches a group before *+ wrongly, so such a group is written (?>(?:…)*).
_QUOTED_TEXT = re.compile(r'"[^"]*+(?>(?:""[^"]*+)*)"')
_QUOTED = rb'"[^"]*+(?>(?:""[^"]*+)*)"'
_OPENED, _CLOSED = rb'"[^"\r\n]*+(?>(?:""[^"\r\n]*+)*)', rb'[\r\n][^"]*+(?>(?:""[^"]*+)*)"'
"""Match the first line of a quoted text, and all further lines up to the closing quote."""
_SEPARATORS = ",;\t|"
_SEPARATOR = re.compile(rb'(?i)("?)sep=([,;\t|])\1' + _END)
"""Matches a first line such as `sep=;`, which names the separator for spreadsheet programs."""


@dataclass(frozen=True, slots=True)
class CsvPatterns:
    """A separator of csv, and the patterns for csv with this separator.

    `record` matches one record, `records` matches several, and `filled` matches blank lines and the next record.
    `padded` matches a cell, the separator after the cell, and the blanks after the separator. `escaped` matches the
    beginning of a line up to a quote that ends a cell, if a backslash is before the quote and text is after it.
    `broken` matches the beginning of a record up to the text after a quoted text of several lines. If `is_quoted` is
    false, a quote has no special meaning.
    """

    separator: str
    is_quoted: bool
    record: re.Pattern[bytes]
    filled: re.Pattern[bytes]
    records: re.Pattern[bytes]
    padded: re.Pattern[bytes]
    escaped: re.Pattern[bytes]
    broken: re.Pattern[bytes]


def shape(separator: str, *, is_quoted: bool = True) -> CsvPatterns:
    by = re.escape(separator.encode())
    cell = rb"[^%s\r\n]*+" % by
    closed = _CLOSED + (b"" if separator == " " else b" *+")
    if is_quoted:
        cell = rb'(?:%s(?:"%s|%s(?=[%s\r\n]))|(?!")%s)' % (_OPENED, cell, closed, by, cell)
    cells = rb"(?>(?:%s%s)*)" % (cell, by)
    # Most lines have no quotes, so the first alternative is for such lines.
    record = rb'(?:[^"\r\n]*+%s|%s%s%s)' % (_END, cells, cell, _END)
    # A quote without an end in this block may end in the next block.
    open_ = rb'(?=%s[^%s\r\n"])[^\r\n]*+%s|(?s:".*\Z)' % (_OPENED + closed, by, _END)
    padded = rb"(%s(?:(%s)|%s)|%s)((?<=%s) *)?" % (cell, by, _END, open_, by)
    escaped = rb'(?:\A|[\r\n])(?:%s%s)*?%s(?<=\\")[^%s\r\n]' % (cell, by, _QUOTED, by)
    broken = rb'%s%s[^%s\r\n"]' % (cells, _OPENED + closed, by)
    patterns = record, b"([\r\n]*+)(%s)" % record, b"(?>(?:%s)*)" % record, padded, escaped, broken
    return CsvPatterns(separator, is_quoted, *map(re.compile, patterns))


@dataclass(frozen=True, slots=True)
class CsvHeading:
    """The heading of a csv file: the names of the columns, and the place where the rows begin.

    `shape` has the separator of the file. The rows begin at the byte `begin`, and at the line with the number
    `line`. `padded` is true if blanks follow all separators in the heading. Blanks after separators are then not part
    of cells. `is_read` is true if the names were read from the first row. `first` is the first line after blank lines
    and comments. `blank` and `comments` are the numbers of blank lines and of comments before this line.

    Some files name their fields in a comment. For such a file, `fields_line` is the comment, `null` has the texts that
    mean null, and `epochs` has the columns with times in epoch seconds.
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
    """Find the heading of a csv file. `head` has the first HEAD bytes of the file, or all bytes of a shorter file.

    If `separator` is None, a first line such as `sep=;` names the separator. Without such a line, the separator is the
    character that is most frequent in the heading: comma, semicolon, tab or |.

    If `header` is true, the first row is a header with the names of the columns. If `header` is false, the first row is
    data. If `header` is None, the first row is a header only if there are no `names`.

    The columns get the names in `names`. Without `names`, the columns get the names in the header. Without `names` and
    without a header, the columns are named column0, column1 and so on.

    Raises UsageError if the first row cannot be read as names, or if its number of cells does not fit the number of
    `names`.
    """
    head += b"\n" * (len(head) < HEAD)  # a file may end after the heading, without a line end
    start, comments = _first_row(head, _end(LINE_ENDS, head, len(BOM) if head.startswith(BOM) else 0))
    if declaration := _SEPARATOR.match(head, start):
        separator = separator or declaration[2].decode()
        start, more = _first_row(head, _end(LINE_ENDS, head, declaration.end()))
        comments += more
    first = head[start : _end(_LINE, head, start)]
    cut = shape(separator or frequent_separator(_text(first)))
    end = _end(cut.record, head, start)
    if end == start:
        raise UsageError(f"{name} has no names of columns: the first line is too long, or a quote in it is not closed")
    if not is_text(head[start:end]):
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
    """Return the separator that occurs most often outside of quotes in a line."""
    unquoted = _QUOTED_TEXT.sub("", line)
    return max(_SEPARATORS, key=unquoted.count)


def _first_row(head: bytes, start: int) -> tuple[int, int]:
    """Return the offset of the first line that is not a comment, and the number of comments before this line."""
    comments = 0
    while head.startswith(b"#", start):
        end = _end(_LINE, head, start)
        following = _end(LINE_ENDS, head, end)
        if not _is_comment(_text(head[start:end]), _text(head[following : _end(_LINE, head, following)])):
            break
        comments, start = comments + 1, following
    return start, comments


def _is_comment(line: str, following: str) -> bool:
    """Return whether a line before the rows is a comment. A comment begins with #, and is not the heading.

    A line is the heading if the next line has the same number of cells, and does not begin with #.
    """
    by = frequent_separator(line)
    names_cells = not following.startswith("#") and 0 < line.count(by) == following.count(by)
    return line.startswith("#") and bool(following.strip()) and not names_cells


def fitting_lines(lines: Sequence[str], separator: str | None) -> tuple[list[bool], Sequence[str]]:
    """Return for each line whether it belongs to a plausible row of csv. Also return the cells of the first row.

    A row may have several lines. A plausible row has at least two cells, and no more cells than the first row. If the
    first row is a single name and `separator` is None, rows with one cell are also plausible.
    """
    filled = [at for at, line in enumerate(lines) if line.strip()]
    pairs = zip(filled, [*filled[1:], None], strict=True)
    skipped = next(
        (at for at, following in pairs if not _is_comment(lines[at], "" if following is None else lines[following])),
        len(lines),
    )
    texts = ["" if at < skipped or (at > skipped and line.startswith("#")) else line for at, line in enumerate(lines)]
    declaration = _SEPARATOR.match(f"{lines[skipped]}\n".encode()) if skipped < len(lines) else None
    if declaration:
        texts[skipped] = ""
        separator = separator or declaration[2].decode()
    by = separator or frequent_separator(texts[skipped] if skipped < len(texts) else "")
    reader = csv.reader((f"{text}\n" for text in texts), delimiter=by, skipinitialspace=True)
    fit, number, first = [False] * len(lines), 0, list[str]()
    while number < len(lines):
        try:
            cells = next(reader)
        except csv.Error:  # for example, a cell is longer than 128 kB
            cells = []
        first = first or cells
        least = 1 if separator is None and len(first) == 1 and first[0].strip().isidentifier() else 2
        fit[number : reader.line_num] = [least <= len(cells) <= len(first)] * (reader.line_num - number)
        number = reader.line_num
    if declaration:
        fit[skipped] = True
    return fit, first


def batches(
    source: Source,
    head: CsvHeading,
    tally: Tally,
    watch: LoadWatch,
    block_size: int = BLOCK_BYTES,
    longest: int = LONGEST_LINE,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows after the heading of a file, in batches. `tally` counts blank lines, comments and skipped rows.

    The column SHORT_ROW is true in rows with too few cells.
    """
    rows = _Rows(source.name, head, tally, longest)
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
    """Replace the comments in a block of whole lines by empty lines. `tally` counts the comments.

    `number` is the number of the block's first line. Raises UsageError if a comment names different
    fields than the heading.
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
    """Return the end of the pattern's match at `start`. Return `start` if the pattern does not match there."""
    match = pattern.match(data, start)
    return match.end() if match else start


def _line_ends(data: bytes) -> int:
    return data.count(b"\n") + _lone_returns(data)


def _lone_returns(data: bytes) -> int:
    return data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else 0


class _Rows:
    """Splits blocks of whole lines into records, and the records into cells."""

    def __init__(self, name: str, head: CsvHeading, tally: Tally, longest: int) -> None:
        self._name = name
        self._head = head
        self._shape = head.shape
        self._tally = tally
        self._longest = longest
        self._number = head.line
        self._rest = b""
        """The beginning of a record that the next block will complete."""
        self._has_whole = self._has_short = False
        """`_has_whole` is true after a row with all cells, and `_has_short` after a row with too few cells."""

    def next_line(self) -> int:
        """Return the number of the line that follows the last block."""
        return self._number + _line_ends(self._rest)

    def of(self, block: bytes) -> Iterator[pa.RecordBatch]:
        """Yield the rows that end in a block. A row may begin in an earlier block."""
        yield from self._cut(self._rest + block, self._longest)

    def last(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that remain at the end of the file. A line with a quote that is not closed is skipped."""
        yield from self._cut(self._rest, 0)

    def _cut(self, data: bytes, most: int) -> Iterator[pa.RecordBatch]:
        """Yield the complete rows in `data`. Keep the rest, which is the beginning of a record, for the next block.

        If the rest is longer than `most` bytes, the first line of the rest is skipped. The lines after this line are
        then read as new records.
        """
        if LINE_ENDS.fullmatch(data):
            self._tally.add(Aside.BLANK, self._number, count=_line_ends(data))
            self._number += _line_ends(data)
            self._rest = b""
            return
        if self._head.padded:
            data = self._shape.padded.sub(rb"\1", data)
        if self._shape.is_quoted and b'\\"' in data and (match := self._shape.escaped.search(data)):
            raise self._escaped(self._number + _line_ends(data[: match.end()]), match[0])
        rows = self._lines(data)
        if rows is not None:
            yield rows
            self._number += rows.num_rows
            data = b""
        while data:
            end = _end(self._shape.records, data)
            yield from self._records(data[:end])
            self._number += _line_ends(data[:end])
            data = data[end:]
            if len(data) <= most and not (self._shape.is_quoted and self._shape.broken.match(data)):
                break
            line = data[: _end(_LINE, data)]
            self._tally.skip(Skip.QUOTE, self._number, _text(line))
            self._number += 1
            data = data[len(line) :]
        self._rest = data

    def _escaped(self, number: int, text: bytes) -> UsageError:
        """Return the error for a quote with a backslash before it. Without this error, the cell would be wrong."""
        return UsageError(
            f"line {number} of {self._name} has a quote with a backslash before it: {shown(_text(text))}; in csv, a "
            "quote inside quotes is doubled",
            reason="escaped-quote",
        )

    def _lines(self, data: bytes) -> pa.RecordBatch | None:
        """Return the rows in `data` if each line is a row. Otherwise, return None."""
        if len(data) > self._longest or _lone_returns(data) or not is_text(data):
            return None
        # If a quote is open at the end, an added line becomes part of the last row. Then the number of rows is wrong.
        added = b""
        if b'"' in data or not data.endswith(b"\n"):
            added = (self._shape.separator * (len(self._head.names) - 1) or "x").encode() + b"\n"
        cells, _ = _parsed(data + added, self._shape, self._head.names)
        lines = data.count(b"\n")
        if cells.num_rows != lines + bool(added):
            return None
        self._has_whole = self._has_whole or lines > 0
        return _numbered(cells.slice(0, lines), pa.arange(self._number, self._number + lines), self._head)

    def _records(self, data: bytes) -> Iterator[pa.RecordBatch]:
        """Yield the rows of records that may have several lines. At most about MAX_CELLS cells are read at once."""
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
            elif not is_text(record):
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
        """Return the cells of records, with the number of each record's first line.

        Missing cells at the end of a record are null. Records with too many cells are left out, and counted as skipped.
        """
        names = self._head.names
        cells, bad = _parsed(b"".join(record for _, record in records), self._shape, names)
        short = {at: row.expected_columns - row.actual_columns for at, row in bad.items()}
        self._has_whole = self._has_whole or len(bad) < len(records)
        if self._is_cut_off(records, short):
            number, record = records[-1]
            self._tally.skip(Skip.ENTRY, number, _text(record))
            return self._filled(records[:-1])
        self._has_short = self._has_short or any(missing > 0 for missing in short.values())
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

    def _is_cut_off(self, records: Sequence[tuple[int, bytes]], short: Mapping[int, int]) -> bool:
        """Return whether the last record is incomplete because the file was cut off.

        This record has no line end and too few cells. Before this record, at least one record had all cells, and none
        had too few cells. `short` maps the index of each invalid record to the number of its missing cells. The number
        is negative if the record has too many cells.
        """
        if not records or self._has_short or not self._has_whole:
            return False
        is_last = records[-1][0] == self._tally.unfinished
        return is_last and [at for at, missing in short.items() if missing > 0] == [len(records) - 1]


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _numbered(
    cells: pa.RecordBatch, numbers: pa.Int64Array, head: CsvHeading, short: Sequence[bool] | None = None
) -> pa.RecordBatch:
    shorts = pa.repeat(False, cells.num_rows) if short is None else pa.array(short, pa.bool_())
    return pa.RecordBatch.from_arrays([*cells.columns, numbers, shorts], schema=head.schema)


def _parsed(
    data: bytes, shape: CsvPatterns, names: Sequence[str]
) -> tuple[pa.RecordBatch, Mapping[int, pa_csv.InvalidRow]]:
    """Return the cells of records, and the invalid records by their index. Empty cells without quotes are null.

    A record with too few or too many cells is invalid, and its cells are left out. `data` must be UTF-8.
    """
    bad: dict[int, pa_csv.InvalidRow] = {}

    def left_out(row: pa_csv.InvalidRow) -> str:
        bad[row.number - 1] = row
        return "skip"

    empty = pa.RecordBatch.from_pylist([], pa.schema([(name, pa.string()) for name in names]))
    if not data:
        return empty, bad
    table = pa_csv.read_csv(
        pa.BufferReader(BOM + data if data.startswith(BOM) else data),  # Arrow removes the first byte order mark
        pa_csv.ReadOptions(use_threads=False, block_size=len(data) + 4, column_names=names),
        pa_csv.ParseOptions(
            delimiter=shape.separator,
            quote_char='"' if shape.is_quoted else False,
            newlines_in_values=b'"' in data,
            invalid_row_handler=left_out,
        ),
        pa_csv.ConvertOptions(
            check_utf8=False,
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return (table.combine_chunks().to_batches()[0] if table.num_rows else empty), bad
