"""The answer to a query: `MODES` is the table of response formats, and `QueryResponse` reads an answer in one format.

This module does not depend on HTTP. Its input is a content type and a body in pieces, from any source of bytes.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from svcctl.api.columns import ResultColumn
from svcctl.api.formats.batches import Batches
from svcctl.api.formats.progress import Delivered, Late
from svcctl.api.guard import UNGUARDED, Guard
from svcctl.api.json_text import value_of
from svcctl.api.refusals import MAX_BODY, is_page, page_line, read_refusal
from svcctl.errors import IncompleteResult, ServiceError, TooManyRows, Unavailable, UnprovenEnd, UsageError

T = TypeVar("T")


class Readers(NamedTuple):
    """The functions that read an answer in one format. `rows` is None if the rows of the format cannot be decoded."""

    raw: Callable[[Iterable[bytes], Delivered], Iterator[bytes]]
    rows: Callable[[Iterable[bytes], Delivered], Iterator[list[tuple[Any, ...]]]] | None = None
    first_rows: Callable[[bytes, int], bytes] | None = None
    """A function that returns the first rows of a block that `raw` yields; None if such blocks cannot be divided."""


class Mode(NamedTuple):
    """A response format: its name, the function that imports its readers, and its properties.

    The name is the value of `mode.type` in a request.

    `json` says that the format is JSON. `padding` contains the characters that a service may send before an answer to
    keep the connection alive.
    """

    name: str
    readers: Callable[[], Readers]
    counts: bool = True
    """Whether the rows of an answer can be counted and decoded."""
    json: bool = False
    padding: bytes = b" \t\r\n"
    streams: bool = True
    """Whether an answer begins before the service has computed all rows."""
    keep_alive: bool = False
    """Whether a service sends keep-alive padding only if the request asks for it."""
    marks_end: bool = True
    """Whether the format itself shows where an answer ends.

    Otherwise, an answer may end when its connection closes.
    """


def _json() -> Readers:
    from svcctl.api.formats import documents

    return Readers(documents.raw(documents.JsonReader), documents.rows(documents.JsonReader))


def _msgpack() -> Readers:
    from svcctl.api.formats import documents

    return Readers(documents.raw(documents.MsgpackReader), documents.rows(documents.MsgpackReader))


def _records() -> Readers:
    from svcctl.api.formats.lines import RECORDS

    return Readers(RECORDS.raw, RECORDS.rows, RECORDS.first_rows)


def _values() -> Readers:
    from svcctl.api.formats.lines import VALUES

    return Readers(VALUES.raw, VALUES.rows, VALUES.first_rows)


def _csv() -> Readers:
    from svcctl.api.formats.delimited import CSV

    return Readers(CSV.raw, CSV.rows, CSV.first_rows)


def _tsv() -> Readers:
    from svcctl.api.formats.delimited import TSV

    return Readers(TSV.raw, TSV.rows, TSV.first_rows)


def _xml() -> Readers:
    from svcctl.api.formats.markup import xml

    return Readers(xml)


def _xls() -> Readers:
    from svcctl.api.formats.markup import xls

    return Readers(xls)


MODES: Mapping[str, Mode] = {
    mode.name: mode
    for mode in (
        Mode("json", _json, json=True),
        Mode("json/compact", _json, json=True),
        Mode("json/simple", _records, json=True, marks_end=False),
        Mode("json/simple/compact", _values, json=True, marks_end=False),
        Mode("msgpack", _msgpack, streams=False),
        Mode("csv", _csv, padding=b"\n", keep_alive=True, marks_end=False),
        Mode("tsv", _tsv, padding=b"\n", keep_alive=True, marks_end=False),
        Mode("xml", _xml, counts=False),
        Mode("xls", _xls, counts=False, streams=False),
    )
}


def counted_body(mode: Mode, content_type: str, body: Iterator[bytes], guard: Guard) -> Iterator[bytes]:
    """Yield the body of a query's answer in blocks of whole rows.

    If there are more rows than the guard allows, raises TooManyRows after the last allowed row. An answer that is not a
    result, such as an error, is yielded unchanged.
    """
    start: list[bytes] | None = []

    def chunks() -> Iterator[bytes]:
        for chunk in body:
            if start is not None:
                start.append(chunk)
            yield chunk

    try:
        for block in QueryResponse(mode, content_type, chunks(), guard=guard).raw():
            start = None
            yield block
    except (ServiceError, Unavailable, IncompleteResult) as error:
        if start is None or isinstance(error, TooManyRows):
            raise
        yield from start
        yield from body


class QueryResponse:
    """The answer to a query. It can be read once, with `raw()` or with `rows()`.

    Both methods raise IncompleteResult if the answer is incomplete, perhaps after some rows were delivered. If there
    are more rows than `guard` allows, TooManyRows is raised after the last allowed row. All other errors are raised
    before the first row.

    If the connection did not end properly, but the answer has no other fault, `accepts` is called with an UnprovenEnd.
    `accepts` returns whether the answer counts as complete.
    """

    def __init__(
        self,
        mode: Mode,
        content_type: str,
        body: Iterable[bytes],
        cid: str | None = None,
        date: Callable[[], float | None] | None = None,
        late: Late | None = None,
        length: int | None = None,
        cut_texts: int = 0,
        accepts: Callable[[UnprovenEnd], bool] = lambda error: False,
        *,
        exact: bool = False,
        guard: Guard = UNGUARDED,
    ) -> None:
        self.mode = mode
        self._readers = mode.readers()
        self._guard = guard
        self.cut_texts = cut_texts
        """The number of texts that the service has shortened to fit into spreadsheet cells, as its answer states."""
        self.length = length
        """The number of bytes of the whole body; None if the service did not state the number."""
        self._date = date
        self.bytes = 0
        """The number of bytes of the body that were received so far."""
        self._delivered = Delivered(cid=cid, late=late, marks_end=mode.marks_end, exact=exact)
        self._accepts = accepts
        self._unproven: UnprovenEnd | None = None
        self._body = _without_page_or_error(self._counted(body), content_type, mode, self._delivered)
        self._batches: Iterator[Any] = iter(())
        self._ahead: list[Any] = []

    @property
    def date(self) -> float | None:
        """The service's time at the beginning of the answer, in epoch seconds; None if the answer has no date."""
        return None if self._date is None else self._date()

    @property
    def row_count(self) -> int | None:
        """The number of rows that were delivered so far; None for xml and xls, because their rows are not counted."""
        return self._delivered.rows

    @property
    def cid(self) -> str | None:
        """The ID of the request; None until the headers or the body of the answer have stated the ID."""
        return self._delivered.cid

    @property
    def exact(self) -> bool:
        """Whether the answer states errors only in a form that no row can have, as svcctl's own service does."""
        return self._delivered.exact

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        """The columns of the answer; empty if the answer names no columns.

        If `rows()` was called before, this property waits until the columns have arrived.
        """
        while self._delivered.columns is None and (batch := next(self._batches, None)) is not None:
            self._ahead.append(batch)
        return self._delivered.columns or ()

    def raw(self) -> Iterator[bytes]:
        """Yield the service's bytes in blocks of whole, checked rows, without keep-alive padding."""
        return self._with_facts(self._allowed_blocks(self._readers.raw(self._body, self._delivered)))

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the decoded rows. A row is a tuple with one value per column.

        Raises UsageError if the rows of the format cannot be decoded.
        """
        if self._readers.rows is None:
            raise UsageError(f"the rows of {self.mode.name} cannot be read", hint="use csv or json/simple/compact")
        self._batches = self._with_facts(self._allowed_batches(self._readers.rows(self._body, self._delivered)))
        return Batches(self._all())

    def packed(self, pack: Callable[[bytes], T | None], size: Callable[[], int]) -> Iterator[T | list[tuple[Any, ...]]]:
        """Yield the rows in batches, as `LineFormat.packed` does. The answer must be in json/simple/compact.

        `pack` is called with the lines of each batch, and its result is yielded. If `pack` returns None, the decoded
        rows are yielded.
        """
        from svcctl.api.formats.lines import VALUES

        self._batches = self._with_facts(self._allowed_batches(VALUES.packed(self._body, self._delivered, pack, size)))
        return self._all()

    def _allowed_blocks(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the blocks up to the last row that the guard allows.

        If there are more rows, raises TooManyRows after the last allowed row.
        """
        most, count = self._guard.max_rows, 0
        for block in blocks:
            rows = self._delivered.rows or 0
            if most is not None and rows > most:
                first_rows = self._readers.first_rows
                self._delivered.rows = count if first_rows is None else most
                if first_rows is not None and most > count:
                    yield first_rows(block, most - count)
                raise self._guard.too_many_rows()
            count = rows
            yield block

    def _allowed_batches(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield the batches up to the last row that the guard allows.

        If there are more rows, raises TooManyRows after the last allowed row. A batch has a length and can be sliced.
        """
        most, count = self._guard.max_rows, 0
        for batch in batches:
            if most is not None and count + len(batch) > most:
                self._delivered.rows = most
                if most > count:
                    yield batch[: most - count]
                raise self._guard.too_many_rows()
            count += len(batch)
            yield batch

    def _all(self) -> Iterator[Any]:
        while self._ahead:
            yield self._ahead.pop(0)
        yield from self._batches

    def _counted(self, body: Iterable[bytes]) -> Iterator[bytes]:
        try:
            for chunk in body:
                self.bytes += len(chunk)
                yield chunk
        except UnprovenEnd as error:
            self._unproven = error

    def _with_facts(self, parts: Iterator[T]) -> Iterator[T]:
        """Yield the parts of the answer unchanged. If reading raises an error, add facts to the error.

        An IncompleteResult gets the number of delivered rows, and a ServiceError gets the ID of the request.
        """
        try:
            yield from parts
            if self._unproven is not None and not (self._delivered.marks_end or self._accepts(self._unproven)):
                raise self._unproven
        except IncompleteResult as error:
            error.rows = self._delivered.rows
            raise
        except ServiceError as error:
            error.cid = error.cid or self._delivered.cid
            raise


def _without_page_or_error(
    body: Iterator[bytes], content_type: str, mode: Mode, delivered: Delivered
) -> Iterator[bytes]:
    """Yield the body without keep-alive padding at its beginning, and without a byte order mark before JSON.

    Raises an error if the body is a web page. In a format other than JSON, also raises an error if the body is an error
    in JSON.
    """
    head = b""
    mark = BOM_UTF8 if mode.json else b""
    while mark.startswith(start := head.lstrip(b" \t\r\n,")) and len(head) < MAX_BODY:
        chunk = next(body, None)
        if chunk is None:
            break
        head = (head + chunk).lstrip(mode.padding)
        if mark and head.startswith(mark):
            head, mark = head.removeprefix(mark).lstrip(mode.padding), b""
    says_html, says_json = "html" in content_type.lower(), "json" in content_type.lower()
    # The first column of a csv may have any name, so an exact answer may begin like a web page.
    perhaps_page = start.startswith(b"<") and (says_html or not (mode.name == "xml" or delivered.exact))
    perhaps_error = start.startswith(b"{") and not mode.json and (says_json or not delivered.exact)
    if says_html or perhaps_page or perhaps_error:
        while len(head) < MAX_BODY and (chunk := next(body, None)) is not None:
            head += chunk
        if perhaps_error:
            _raise_error(head, says_json, mode, delivered)
        elif is_page(content_type, head):
            line = page_line(head)
            raise Unavailable("the service answered with a web page" + (f": {line}" if line else ""))
    yield from chain((head,) if head else (), body)


def _raise_error(head: bytes, says_json: bool, mode: Mode, delivered: Delivered) -> None:
    try:
        payload = value_of(head)
    except (ValueError, RecursionError):
        if says_json:
            raise delivered.cut() from None
        return
    if refusal := read_refusal(payload):
        raise refusal.as_error()
    if says_json:
        raise ServiceError(f"the service answered in JSON instead of {mode.name}")
