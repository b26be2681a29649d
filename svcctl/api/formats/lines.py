"""Readers of json/simple and json/simple/compact. These formats have one JSON value per line. Lines end in LF or CRLF.

The result ends when the connection closes. A result without a newline after its last row was cut off.

The method `raw` parses only the first line of the answer and the last row of each block. The other lines are only
checked: each line must begin and end like a row. If a line of a block begins or ends differently, all lines of this
block are parsed. Such a line may be keep-alive padding or an error. The method `rows` parses all rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from svcctl.api.columns import METADATA, ResultColumn
from svcctl.api.formats.progress import MAX_ROW, NAMES_PER_COLUMN, Delivered
from svcctl.api.json_text import without_bytes
from svcctl.api.refusals import is_error_line, lone_refusal, read_refusal
from svcctl.errors import IncompleteResult

T = TypeVar("T")

_UNREADABLE = object()
AT_ONCE = 64 * 1024
"""The maximum number of bytes of lines that are parsed together. Parsed values take ten times as much memory."""
_LONG_KEY = 64
_MEMBERS = {"d", *METADATA}
"""The members in which a line can contain values (`d`) or metadata (`m` and `metadata`)."""
_SHOWN = 40
"""The maximum number of characters of a line that are quoted in an error."""


class LineFormat(NamedTuple):
    """A reader of a line format: the bytes that begin and end each row, and the function that checks a parsed row.

    `metadata` says that the first line contains metadata.
    """

    begin: bytes
    end: bytes
    is_row: Callable[[Any, Delivered], bool]
    metadata: bool

    def raw(self, chunks: Iterable[bytes], delivered: Delivered) -> Iterator[bytes]:
        """Yield the checked lines without keep-alive padding, in blocks of whole lines."""
        first = True
        pending = b""
        for block in _whole_lines(chunks, delivered, self.metadata):
            rows = pending + block
            if first:
                line, rows = _first_line(block)
                if not line:
                    continue
                first = False
                value = self._first_value(line, rows, delivered)
                if self.metadata:
                    delivered.columns = _columns(value, delivered)
                    yield line
                elif not delivered.exact and is_error_line(value) and not rows.strip():
                    pending = line  # the line is an error if no line follows, otherwise a row
                    continue
                else:
                    rows = line + rows
            elif pending and not block.strip():
                continue
            pending = b""
            count = self._count_if_plain(rows)
            if count and self._last_is_row(rows, delivered):
                delivered.add(count)
                yield rows
            else:
                yield from self._one_by_one(rows, delivered)
        if pending and (refusal := read_refusal(_parse(pending))):
            raise refusal.as_error()
        if first and self.metadata:
            raise delivered.malformed("it is empty")

    def rows(self, chunks: Iterable[bytes], delivered: Delivered) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows in batches. The columns are those of the metadata or of the first row."""
        blocks = self.raw(chunks, delivered)
        if self.metadata:
            next(blocks, None)
            yield []
        yield from self._decoded(blocks, delivered, 0)

    def packed(
        self, chunks: Iterable[bytes], delivered: Delivered, pack: Callable[[bytes], T | None], size: Callable[[], int]
    ) -> Iterator[T | list[tuple[Any, ...]]]:
        """Yield the rows in blocks, converted by `pack`.

        The format must have metadata. `pack` is called with the lines of each block, and its result is yielded. If the
        result is None, a list of decoded rows is yielded. `size` returns the minimum size of the next block in bytes.
        Only the last block may be smaller. The columns are known before the first call of `pack` or `size`.
        """
        blocks = self.raw(chunks, delivered)
        next(blocks, None)
        yield []
        counted = 0
        for block in _gathered(blocks, size):
            if (part := pack(block)) is not None:
                counted += block.count(b"\n")
                delivered.rows = counted
                yield part
                continue
            for rows in self._decoded((block,), delivered, counted):
                yield rows
                counted += len(rows)

    def values(self, lines: bytes) -> bytes | None:
        """Return lines without the bytes that begin and end every row, so that only the values remain.

        Returns None if a line may begin or end differently.
        """
        end = self.end + (b"\r\n" if lines.endswith(b"\r\n") else b"\n")
        if not (lines.startswith(self.begin) and lines.endswith(end)):
            return None
        values = lines[len(self.begin) : -len(end)].replace(end + self.begin, b"\n") + b"\n"
        return None if self.begin in values or b'],"' in values else values

    def _decoded(self, blocks: Iterable[bytes], delivered: Delivered, counted: int) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the decoded rows of blocks. `counted` is the number of rows that came before these blocks."""
        for lines in _pieces(blocks):
            if (rows := self._arrays(lines, delivered)) is not None:
                counted += len(rows)
                delivered.rows = counted
                yield rows
                continue
            split = lines.split(b"\n")[:-1]
            values = _parse(b"[" + b",".join(split) + b"]")
            if not isinstance(values, list) or len(values) != len(split):
                values = [_parse(line) for line in split]
            good = next((at for at, value in enumerate(values) if not self.is_row(value, delivered)), len(values))
            counted += good
            delivered.rows = counted
            yield [tuple(value["d"]) for value in values[:good]] if self.metadata else rows_of(values[:good], delivered)
            if good < len(values):
                raise delivered.incomplete(f"line {counted + 1} is not a row")

    @staticmethod
    def first_rows(block: bytes, count: int) -> bytes:
        """Return the first `count` rows of a block. Each row is a line."""
        return b"".join(line + b"\n" for line in block.split(b"\n", count)[:count])

    def _arrays(self, lines: bytes, delivered: Delivered) -> list[tuple[Any, ...]] | None:
        """Parse lines together as one array, and return the rows.

        Returns None if a line does not begin and end like a row.
        """
        end = self.end + (b"\r\n" if lines.endswith(b"\r\n") else b"\n")
        if not (self.metadata and lines.startswith(self.begin) and lines.endswith(end)):
            return None
        arrays = lines[len(self.begin) : -len(end)].replace(end + self.begin, b"],[")
        rows = _parse(b"[[" + arrays + b"]]")
        if not isinstance(rows, list) or len(rows) != lines.count(b"\n") or set(map(type, rows)) != {list}:
            return None
        return list(map(tuple, rows)) if set(map(len, rows)) == {len(delivered.columns or ())} else None

    def _count_if_plain(self, rows: bytes) -> int:
        """Return the number of rows in a block if all its lines begin and end like a row. Otherwise, return 0."""
        # Removing the newlines is four times as fast as counting them with `count`, because Python searches with the C
        # library, but counts byte by byte.
        count = len(rows) - len(rows.replace(b"\n", b""))
        end = self.end + (b"\r\n" if rows.endswith(b"\r\n") else b"\n")
        if not (rows.startswith(self.begin) and rows.endswith(end)):
            return 0
        last = rows.rfind(b"\n", 0, -1) + 1
        lead = rows[last : rows.find(b":", last, last + _LONG_KEY) + 1]
        begins = (lead, self.begin) if len(lead) > len(self.begin) and lead.startswith(self.begin) else (self.begin,)
        return count if any(rows.count(end + begin) == count - 1 for begin in begins) else 0

    def _last_is_row(self, rows: bytes, delivered: Delivered) -> bool:
        return self.is_row(_parse(rows[rows.rfind(b"\n", 0, -1) + 1 :]), delivered)

    def _first_value(self, line: bytes, others: bytes, delivered: Delivered) -> Any:
        """Parse the first line of an answer. If the line states an error, raise the error.

        `others` are the lines after the first line, because an error may have several lines. Raises MalformedAnswer for
        JSON that is neither an error, nor a row, nor metadata.
        """
        value = _parse(line)
        if value is _UNREADABLE and not delivered.exact and is_error_line(_parse(line + others)):
            value = _parse(line + others)  # the error has several lines
        elif not self.metadata and isinstance(value, dict) and value:
            return value
        if refusal := read_refusal(value):
            raise delivered.ended_in(refusal) if _is_in_stream(value) else refusal.as_error()
        _check_first(value, line, delivered, self.metadata)
        return value

    def _one_by_one(self, block: bytes, delivered: Delivered) -> Iterator[bytes]:
        """Parse the rows of a block one by one, and yield them without keep-alive padding.

        Raises IncompleteResult for a line that is an error or not a row. The rows before this line are yielded first.
        """
        good: list[bytes] = []
        failure: IncompleteResult | None = None
        for line in block.split(b"\n")[:-1]:
            row = line.strip(b" ")
            if row in (b"", b"\r"):
                continue
            value = _parse(row)
            if not self.is_row(value, delivered):
                if _is_late(value, delivered):
                    continue
                refusal = None if value is _UNREADABLE else read_refusal(value)
                delivered.add(len(good))
                if refusal:
                    failure = delivered.ended_in(refusal)
                else:
                    failure = delivered.incomplete(f"line {(delivered.rows or 0) + 1} is not a row")
                break
            good.append(row + b"\n")
        else:
            delivered.add(len(good))
        if good:
            yield b"".join(good)
        if failure:
            raise failure


def _gathered(blocks: Iterable[bytes], size: Callable[[], int]) -> Iterator[bytes]:
    """Join blocks of lines into larger blocks of at least `size()` bytes. Only the last block may be smaller."""
    gathered: list[bytes] = []
    count = 0
    for block in blocks:
        gathered.append(block)
        count += len(block)
        if count >= size():
            yield b"".join(gathered)
            gathered, count = [], 0
    if gathered:
        yield b"".join(gathered)


def _pieces(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Split blocks of lines into blocks of at most AT_ONCE bytes, to save memory. A longer line is a separate block."""
    for block in blocks:
        start = 0
        while start < len(block):
            end = block.rfind(b"\n", start, start + AT_ONCE) + 1 or block.index(b"\n", start) + 1
            yield block[start:end]
            start = end


def rows_of(records: list[dict[str, Any]], delivered: Delivered) -> list[tuple[Any, ...]]:
    """Convert records to tuples. The first record of the result determines the columns and their order."""
    if delivered.columns is None and records:
        delivered.columns = tuple(ResultColumn(name) for name in records[0])
    names = [column.name for column in delivered.columns or ()]
    rows = []
    for record in records:
        if list(record) == names:
            rows.append(tuple(record.values()))
            continue
        if other := record.keys() - names:
            delivered.add(-len(records))
            raise IncompleteResult(
                f"the result cannot be laid out in columns: a row has the field '{min(other)}', which the first row "
                "lacks",
                hint="use json/simple/compact, which names all columns first",
            )
        rows.append(tuple([record.get(name) for name in names]))
    return rows


def _whole_lines(chunks: Iterable[bytes], delivered: Delivered, metadata: bool) -> Iterator[bytes]:
    """Yield the body in blocks that end with a newline. Raises an error if the last line has no newline."""
    pending: list[bytes | memoryview] = []
    size = names = 0
    for chunk in chunks:
        end = chunk.rfind(b"\n") + 1
        if end:
            pending.append(memoryview(chunk)[:end])
            yield b"".join(pending)
            pending, size, names, chunk = [], 0, 0, chunk[end:]  # noqa: PLW2901
        if chunk:
            pending.append(chunk)
            size += len(chunk)
            if delivered.columns is None and not delivered.rows:
                names += chunk.count(b'":') - chunk.count(b'\\":')
                columns = names // (NAMES_PER_COLUMN if metadata else 1)
                delivered.check_width(columns, size if metadata else 0)
            if size > MAX_ROW:
                raise delivered.too_long()
    rest = b"".join(pending).strip(b" \r")
    if not rest:
        return
    value = _parse(rest)
    refusal = read_refusal(value) if metadata else lone_refusal(value, exact=delivered.exact)
    if not refusal and not delivered.rows and delivered.columns is None:
        _check_first(value, rest, delivered, metadata)
    if refusal and (_is_in_stream(value) or (delivered.rows and is_error_line(value))):
        raise delivered.ended_in(refusal)
    raise refusal.as_error() if refusal and not delivered.rows else delivered.cut()


def _check_first(value: Any, line: bytes, delivered: Delivered, metadata: bool) -> None:
    """Raise MalformedAnswer for a first line that is JSON, but neither a row nor metadata."""
    begins = isinstance(value, dict) and (value.keys() & _MEMBERS if metadata else value)
    if not begins and value is not _UNREADABLE:
        raise delivered.malformed(f"its first line is {line.strip().decode('utf-8', 'replace')[:_SHOWN]}")


def _is_in_stream(value: Any) -> bool:
    """Return whether an error has one of the two forms that a service sends in the middle of a result.

    The forms are `["error", …]`, and an object with a member `e`.
    """
    return isinstance(value, list) or (isinstance(value, dict) and "e" in value)


def _is_late(value: Any, delivered: Delivered) -> bool:
    """Return whether a line is a report of late events. If the line is such a report, call `delivered.late`.

    The service sends such reports only if the request asked for them.
    """
    members = value if isinstance(value, dict) else {}
    count, lag = members.get("late"), members.get("lag")
    if delivered.late is None or not isinstance(count, int) or not isinstance(lag, int | float):
        return False
    delivered.late(count, lag)
    return True


def _columns(value: Any, delivered: Delivered) -> tuple[ResultColumn, ...]:
    members = value if isinstance(value, dict) else {}
    name = "metadata" if "metadata" in members and "m" not in members else "m"
    try:
        return METADATA[name](members.get(name))
    except ValueError as error:
        raise delivered.incomplete(f"the line of column names is missing or wrong: {error}") from None


def _first_line(block: bytes) -> tuple[bytes, bytes]:
    """Return the first line that is not keep-alive padding, and the rest of the block."""
    start = 0
    while end := block.find(b"\n", start) + 1:
        if (line := block[start : end - 1].strip(b" ")) not in (b"", b"\r"):
            return line + b"\n", block[end:]
        start = end
    return b"", b""


def _parse(line: bytes) -> Any:
    try:
        return json.loads(without_bytes(line.decode("utf-8", "surrogateescape")), strict=False)
    except (ValueError, RecursionError):
        return _UNREADABLE


def _is_record(value: Any, delivered: Delivered) -> bool:
    return isinstance(value, dict)


def _is_values(value: Any, delivered: Delivered) -> bool:
    if not isinstance(value, dict) or "e" in value or not isinstance(value.get("d"), list):
        return False
    return len(value["d"]) == len(delivered.columns or ())


RECORDS = LineFormat(b"{", b"}", _is_record, metadata=False)
VALUES = LineFormat(b'{"d":[', b"]}", _is_values, metadata=True)
