"""Readers of json, json/compact and msgpack. In these formats, the rows are in the member `object` of an envelope.

The envelope is a JSON object or a MessagePack map. The body is read from front to back. One function reads the members
of the envelope for all three formats. A DocumentReader decodes one encoding, and takes further pieces of the body when
it needs more bytes. Only complete rows are delivered. An answer counts as a success only after its last byte was read,
because an error may follow the rows.

The member `object` is an array of records, or an object. Such an object has its columns in `m` or `metadata`, and its
rows as arrays in `d`. The form may differ from the form that the request asked for.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, Literal, NoReturn, Protocol

from svcctl.api.columns import METADATA
from svcctl.api.formats.lines import rows_of
from svcctl.api.formats.progress import BLOCK_BYTES, MAX_COLUMNS, MAX_ROW, NAMES_PER_COLUMN, Delivered
from svcctl.api.json_text import without_bytes
from svcctl.api.refusals import read_refusal
from svcctl.errors import IncompleteResult
from svcctl.words import json_text

Kind = Literal["map", "array", "value", "end"]
Batch = tuple[bytes, list[Any]]
Source = Callable[[Iterator[bytes], Delivered], "DocumentReader"]


class DocumentReader(Protocol):
    """A decoder of a body in one encoding, from front to back. Every method may wait for more bytes."""

    def kind(self) -> Kind:
        """Return the kind of the next value. At the end of the body, the kind is `end`."""
        ...

    def members(self) -> Iterator[str]:
        """Yield the keys of a map. The caller must read the value of a key before taking the next key."""
        ...

    def elements(self) -> Iterator[list[Any]]:
        """Yield the elements of an array in batches. A batch contains elements that have already arrived."""
        ...

    def value(self) -> Any: ...

    def taken(self) -> int:
        """Return the number of characters or bytes that were read since the last `take`."""
        ...

    def drained(self) -> bool:
        """Return whether all bytes that have arrived were read. The next read may then wait for the service."""
        ...

    def take(self) -> bytes:
        """Return the bytes of the body that were read since the last `take`, without keep-alive padding."""
        ...

    def end(self) -> None:
        """Raise IncompleteResult if anything follows the envelope."""
        ...


def raw(source: Source) -> Callable[[Iterable[bytes], Delivered], Iterator[bytes]]:
    """Return a function that yields the service's bytes.

    The bytes after the last row are yielded only if the envelope states success.
    """

    def read(chunks: Iterable[bytes], delivered: Delivered) -> Iterator[bytes]:
        return (data for data, _ in _walk(source(iter(chunks), delivered), delivered) if data)

    return read


def rows(source: Source) -> Callable[[Iterable[bytes], Delivered], Iterator[list[tuple[Any, ...]]]]:
    """Return a function that yields the rows.

    The columns are those in `m` or `metadata`. Without these members, the columns are the fields of the first record.
    """

    def read(chunks: Iterable[bytes], delivered: Delivered) -> Iterator[list[tuple[Any, ...]]]:
        for _, values in _walk(source(iter(chunks), delivered), delivered):
            records = bool(values) and isinstance(values[0], dict)
            yield rows_of(values, delivered) if records else [tuple(value) for value in values]

    return read


def _walk(reader: DocumentReader, delivered: Delivered) -> Iterator[Batch]:
    envelope: dict[str, Any] = {}
    has_rows = False
    if reader.kind() == "end":
        raise delivered.malformed("it is empty")
    if reader.kind() != "map":
        refusal = read_refusal(reader.value())
        raise refusal.as_error() if refusal else delivered.malformed("it is not an envelope")
    for key in reader.members():
        if key == "object" and reader.kind() == "array":
            has_rows = True
            envelope[key] = yield from _rows(reader, delivered, dict)
        elif key == "object" and reader.kind() == "map":
            has_rows, envelope[key] = yield from _compact(reader, delivered, envelope)
        else:
            envelope[key] = reader.value()
    reader.end()
    delivered.cid = json_text(envelope["cid"]) if envelope.get("cid") else delivered.cid
    if refusal := read_refusal(envelope):
        in_stream = delivered.rows or isinstance(envelope.get("error", envelope.get("e")), list)
        raise delivered.ended_in(refusal) if in_stream else refusal.as_error()
    if "object" not in envelope:
        raise delivered.malformed("its envelope has no member object")
    if not has_rows:
        raise delivered.malformed("its member object does not contain rows")
    if envelope["object"]:
        raise delivered.incomplete("its member object does not contain rows")
    yield reader.take(), []


def _compact(
    reader: DocumentReader, delivered: Delivered, envelope: dict[str, Any]
) -> Generator[Batch, None, tuple[bool, dict[str, Any]]]:
    """Read an object with its columns in `m` or `metadata` and its rows in `d`, and yield the rows.

    Returns two values. The first value says whether the object has an array `d`, which may be empty. The second value
    contains the other members of the object. An error in the object is stored in `envelope`.
    """
    other: dict[str, Any] = {}
    has_rows = False
    for key in reader.members():
        if key == "d" and reader.kind() == "array":
            has_rows = True
            other |= {key: strays} if (strays := (yield from _rows(reader, delivered, list))) else {}
        elif key in METADATA:
            described = reader.value()
            if delivered.columns is not None:
                continue
            try:
                delivered.columns = METADATA[key](described)
            except ValueError as error:
                raise delivered.incomplete(f"its column names are wrong: {error}") from None
            yield b"", []
        elif key in ("e", "error"):
            envelope[key] = reader.value()
        else:
            other[key] = reader.value()
    if has_rows and delivered.columns is None and not other:
        raise delivered.incomplete("its column names are missing")
    return has_rows, other


def _rows(reader: DocumentReader, delivered: Delivered, expected: type) -> Generator[Batch, None, list[Any]]:
    """Read an array, and yield its rows in batches. A row is an element of the type `expected`.

    Returns the elements of other types, such as the causes of an error.
    """
    batch: list[Any] = []
    strays: list[Any] = []
    try:
        for values in reader.elements():
            for value in values:
                if not isinstance(value, expected):
                    strays.append(value)
                    if len(strays) > _MOST_STRAYS:
                        raise delivered.incomplete("its member object does not contain rows")
                elif isinstance(value, list) and delivered.columns is not None and len(value) != len(delivered.columns):
                    number = (delivered.rows or 0) + len(batch) + 1
                    width = len(delivered.columns)
                    batch = []  # the bytes of these rows cannot be separated from the bytes of the wrong row
                    raise delivered.incomplete(f"row {number} has {len(value)} values for {width} columns")
                else:
                    batch.append(value)
            if batch and not strays and (len(values) > 1 or reader.drained() or reader.taken() >= BLOCK_BYTES):
                delivered.add(len(batch))
                yield reader.take(), batch
                batch = []
    except IncompleteResult:
        if batch and not strays:
            delivered.add(len(batch))
            yield reader.take(), batch
        raise
    if batch and not strays:
        delivered.add(len(batch))
        yield reader.take(), batch
    return strays


_MOST_STRAYS = 1000
"""An array of rows may contain at most this number of elements of other types, such as the causes of an error."""
_SPACE = re.compile(r"[ \t\n\r]*")
_GAPS = ("", " ", "\n", "\r\n")
"""The white space that the reader keeps between values. Any other white space between values is keep-alive padding."""
_BRACKETS: Mapping[str, Kind] = {"{": "map", "[": "array"}
# If a parser error is this close to the end of the text, in characters, the rest may not have arrived yet. The longest
# word that Python reads, -Infinity, and a pair of \u escapes are shorter.
_UNFINISHED_CHARS = 16
_MIN_ARRAY_CHARS = 1024
"""Elements of an array are parsed together only if their text has at least this number of characters."""


class JsonReader:
    """A decoder of JSON text. It drops keep-alive padding.

    A single blank or a single line break between two values is kept. Any other white space there is padding. Padding
    with a line break is replaced by one line break, and other padding is removed. Rows are not changed.
    """

    def __init__(self, chunks: Iterator[bytes], delivered: Delivered) -> None:
        self._chunks = chunks
        self._delivered = delivered
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self._parse = json.JSONDecoder(strict=False).raw_decode
        self._ended = False
        self._tried = False
        self._text = ""
        self._at = 0
        self._from = 0
        self._out: list[str] = []

    def kind(self) -> Kind:
        start = self._peek()
        return _BRACKETS.get(start, "value") if start else "end"

    def members(self) -> Iterator[str]:
        for _ in self._items("{", "}"):
            key = self.value()
            if not isinstance(key, str) or self._peek() != ":":
                self._wrong()
            self._at += 1
            yield key

    def elements(self) -> Iterator[list[Any]]:
        for _ in self._items("[", "]"):
            yield self._many() or [self.value()]

    def _many(self) -> list[Any]:
        """Parse the elements of an array that have arrived, and return them.

        The result is empty if the elements must be read one by one.
        """
        if self._tried or self._peek() not in _BRACKETS:
            return []
        self._tried = True
        # If the last bracket is in a string or in an inner value, parsing fails: the string or value is not closed.
        end = self._text.rfind("}," if self._peek() == "{" else "],", self._at) + 1
        text = self._text[self._at : end]
        if len(text) < _MIN_ARRAY_CHARS:
            return []
        try:
            values, parsed = self._parse(f"[{without_bytes(text)}]")
        except (ValueError, RecursionError):
            return []
        if parsed < len(text) + 2:  # the array ended before the last bracket
            return []
        last, first = text[-1], text[0]
        if sum(text.count(f"{last},{gap}{first}") for gap in _GAPS) != len(values) - 1:
            return []  # only reading one by one distinguishes the padding in this text from data
        self._at = end
        return list(values)

    def value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = self._parse(self._text, self._at)
                if (text := self._text[self._at : end]) != (other := without_bytes(text)):
                    value, _ = self._parse(other)
            except json.JSONDecodeError as error:
                near_end = error.pos > len(self._text) - _UNFINISHED_CHARS or error.msg.startswith(
                    "Unterminated string"
                )
                if not near_end:
                    self._wrong()
                self._more(len(self._text) - self._at)
            except (ValueError, RecursionError):
                self._wrong()
            else:
                # A number at the end of the text may have more digits to come.
                if end == len(self._text) and self._text[end - 1] not in '"}]' and self._fill():
                    continue
                self._at = end
                return value

    def taken(self) -> int:
        return self._at - self._from

    def drained(self) -> bool:
        return len(self._text) - self._at <= 1

    def take(self) -> bytes:
        text = "".join(self._out) + self._text[self._from : self._at]
        self._out.clear()
        self._from = self._at
        return text.encode("utf-8", "surrogateescape")

    def end(self) -> None:
        if self._peek():
            self._wrong()

    def _items(self, begin: str, end: str) -> Iterator[None]:
        if self._peek() != begin:
            self._wrong()
        self._at += 1
        if self._peek() == end:
            self._at += 1
            return
        while True:
            yield
            mark = self._peek()
            self._at += 1
            if mark == end:
                return
            if mark != ",":
                self._at -= 1
                self._wrong()

    def _peek(self) -> str:
        """Skip white space, and return the next character without reading it; empty at the end of the body."""
        while True:
            end = _space_end(self._text, self._at)
            if end == len(self._text) and self._fill(keep_space=True):
                continue
            if end > self._at and self._text[self._at : end] not in _GAPS:
                self._out += self._text[self._from : self._at], _without_padding(self._text[self._at : end])
                self._from = end
            self._at = end
            return self._text[end : end + 1]

    def _more(self, size: int) -> None:
        """Read more text of a value that is not complete. `size` is the number of characters that have arrived.

        Raises IncompleteResult at the end of the body, and for a value of more than MAX_ROW characters.
        """
        if size > MAX_ROW:
            raise self._delivered.too_long()
        if size > BLOCK_BYTES:
            names = self._text.count('":', self._at) - self._text.count('\\":', self._at)
            self._delivered.check_width(names // NAMES_PER_COLUMN)
        # A long value is parsed again only after it has grown by half, so that parsing is not slower than reading.
        if not self._fill(size // 2 if size > BLOCK_BYTES else 1):
            raise self._delivered.cut()

    def _fill(self, least: int = 1, *, keep_space: bool = False) -> bool:
        """Read at least `least` more characters of the body. At the end of the body, fewer characters are read.

        Returns False if nothing was read. The text that `take` has returned is dropped.
        """
        rest = self._text[self._from :]
        self._at -= self._from
        self._from = 0
        if keep_space and len(rest) > self._at + 2:  # padding must not fill the memory while a query is slow
            rest = rest[: self._at] + ("\n\n" if "\n" in rest[self._at :] else "  ")
        added: list[str] = []
        size = 0
        while size < least and not self._ended:
            chunk = next(self._chunks, None)
            self._ended = chunk is None
            added.append(self._decode(chunk or b"", self._ended))
            size += len(added[-1])
        self._tried = False
        self._text = "".join((rest, *added))
        return size > 0

    def _wrong(self) -> NoReturn:
        if self._ended and self._at >= len(self._text) - _UNFINISHED_CHARS:
            raise self._delivered.cut()
        raise self._delivered.incomplete("it is not valid JSON")


def _without_padding(space: str) -> str:
    """Return the white space between two values, without keep-alive padding."""
    return space if space in _GAPS else "\n" if "\n" in space else ""


def _space_end(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


class MsgpackReader:
    """A decoder of MessagePack.

    The unpacker of the msgpack library calls the method `read` to read the body. The decoder keeps the bytes until
    `take` returns them.
    """

    def __init__(self, chunks: Iterator[bytes], delivered: Delivered) -> None:
        self._chunks = chunks
        self._delivered = delivered
        self._ahead = b""
        self._kept = bytearray()
        self._base = 0
        import msgpack  # only this format needs the msgpack library

        self._errors = msgpack.exceptions
        self._unpacker = msgpack.Unpacker(
            self,
            raw=False,
            unicode_errors="surrogateescape",
            strict_map_key=False,
            max_buffer_size=MAX_ROW,
            max_map_len=MAX_COLUMNS,
        )

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes for the unpacker; empty at the end of the body."""
        piece = self._next()[:size]
        self._ahead = self._ahead[len(piece) :]
        self._kept += piece
        return piece

    def kind(self) -> Kind:
        at = self._unpacker.tell() - self._base
        ahead = self._kept[at : at + 1] or self._next()[:1]
        if not ahead:
            return "end"
        head = ahead[0]
        if 0x80 <= head <= 0x8F or head in (0xDE, 0xDF):
            return "map"
        return "array" if 0x90 <= head <= 0x9F or head in (0xDC, 0xDD) else "value"

    def members(self) -> Iterator[str]:
        for _ in range(self._read(self._unpacker.read_map_header)):
            yield str(self.value())

    def elements(self) -> Iterator[list[Any]]:
        for _ in range(self._read(self._unpacker.read_array_header)):
            yield [self.value()]

    def value(self) -> Any:
        return self._read(self._unpacker.unpack)

    def taken(self) -> int:
        return int(self._unpacker.tell()) - self._base

    def drained(self) -> bool:
        return not self._ahead and self.taken() == len(self._kept)

    def take(self) -> bytes:
        size = self.taken()
        data = bytes(self._kept[:size])
        del self._kept[:size]
        self._base += size
        return data

    def end(self) -> None:
        if self.taken() < len(self._kept) or self._next():
            raise self._delivered.incomplete("something follows its envelope")

    def _next(self) -> bytes:
        while not self._ahead and (chunk := next(self._chunks, None)) is not None:
            self._ahead = chunk
        return self._ahead

    def _read(self, part: Callable[[], Any]) -> Any:
        try:
            return part()
        except self._errors.OutOfData:
            raise self._delivered.cut() from None
        except self._errors.BufferFull:
            raise self._delivered.too_long() from None
        except (ValueError, self._errors.UnpackException):
            raise self._delivered.incomplete(f"it is not MessagePack of up to {MAX_COLUMNS} columns") from None
