"""Reads events from an array inside JSON objects. The user names the array, such as `Records` or `result.items`.

A name with dots is first looked up as the name of a single member, and then as a path. For ndjson, SQL reads the events
from the table `objects`, which has the number and the text of each line. In a JSON document, the array may be large, so
the array is copied to a file.
"""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import duckdb

from svcctl.errors import UsageError
from svcctl.service.engines.duckdb.syntax import literal
from svcctl.service.loading.skips import NOTHING_CHANGED, Aside, Skip, Tally, sentence

_SHOWN = 200
"""The maximum number of characters of an object that a message shows."""


def events_query(member: str) -> str:
    """Return SQL for the events in the objects of ndjson. Each event has the line number of its object."""
    return (
        "SELECT number, coalesce(unnest(events::JSON[])::VARCHAR, 'null') AS line "
        f"FROM ({_objects(member)}) WHERE json_type(events) = 'ARRAY'"
    )


def count(cursor: duckdb.DuckDBPyConnection, member: str, tally: Tally) -> None:
    """Count the lines without events, and the objects that have members other than the events.

    Lines without events are skipped. Members other than the events are not loaded.
    """
    unread = (
        f"SELECT number, left(text, {_SHOWN}), line IS NOT NULL FROM ({_objects(member)}) "
        "WHERE coalesce(json_type(events), '') <> 'ARRAY'"
    )
    for number, text, is_object in cursor.execute(unread).fetchall():
        if is_object:
            tally.skip(Skip.NO_EVENTS, number, text, column=member)
        else:
            tally.skip(Skip.ENTRY, number, text)
    other_names = []
    path = ""
    for name in member.split("."):
        keys = f"coalesce(json_keys(line, {literal(path)}), [])"
        other_names.append(f"list_filter({keys}, lambda key: key NOT IN ({literal(name)}, {literal(member)}))")
        path += f"/{_escaped(name)}"
    others = (
        f"SELECT number, flatten([{', '.join(other_names)}]) AS names FROM ({_objects(member)}) "
        "WHERE json_type(events) = 'ARRAY'"
    )
    first = "arg_min(array_to_string(names, ', '), number)"
    [(rows, number, names)] = cursor.execute(
        f"SELECT count(*), min(number), {first} FROM ({others}) WHERE len(names) > 0"
    ).fetchall()
    if rows:
        tally.add(Aside.OUTSIDE, number, names, count=rows)


def _objects(member: str) -> str:
    """Return SQL that parses the lines in the table `objects`.

    The columns are `number`, `text`, `line` and `events`. `line` is the text if the text is a JSON object, otherwise
    null. `events` is the value of the member with the name or the path `member`.
    """
    paths = dict.fromkeys((f"/{_escaped(member)}", "".join(f"/{_escaped(name)}" for name in member.split("."))))
    events = ", ".join(f"json_extract(line, {literal(path)})" for path in paths)
    valid = "CASE WHEN json_valid(line) THEN json_type(line) END = 'OBJECT'"
    objects = f"SELECT number, line AS text, CASE WHEN {valid} THEN line END AS line FROM objects"
    return f"SELECT *, coalesce({events}) AS events FROM ({objects})"


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


_STRING = re.compile(rb'"(?>(?:[^"\\]++|\\.)*)"', re.DOTALL)
_SCALAR = re.compile(rb'[^\s,\[\]{}":]++')
_BETWEEN = re.compile(rb"[\s,]*+")
_COLON = re.compile(rb"\s*+:\s*+")
_BOM = b"\xef\xbb\xbf"
_SEARCHED_BYTES = 1 << 20
"""The number of bytes that are searched at once. Other threads must wait until the search ends."""
_SEARCHED_DEPTH = 8


def _nested(depth: int) -> bytes:
    """Return a pattern for text with values that are nested at most `depth` levels deep."""
    flat = rb'[^"\[\]{}]++|' + _STRING.pattern
    pattern = rb"(?>(?:" + flat + rb")*)"
    for _ in range(depth):
        pattern = rb"(?>(?:" + flat + rb"|[\[{]" + pattern + rb"[\]}])*)"
    return pattern


_WHOLE_VALUES = re.compile(_nested(_SEARCHED_DEPTH), re.DOTALL)


class _Unreadable(Exception):
    """Raised for a text that is not JSON."""


@dataclass(frozen=True, slots=True)
class _JsonText:
    """The text of JSON values. The methods find where values begin and end, without parsing the values.

    All positions are offsets in bytes. The methods raise _Unreadable if the text is not JSON. `check` is called
    repeatedly, and may raise an error to stop the search.
    """

    data: mmap.mmap
    check: Callable[[], None]

    def end(self, at: int) -> int:
        """Return the end of the value that begins at byte `at`."""
        if self.data[at : at + 1] not in (b"[", b"{"):
            value = _STRING.match(self.data, at) or _SCALAR.match(self.data, at)
            if value is None:
                raise _Unreadable
            return value.end()
        at, depth = at + 1, 1
        while depth:
            self.check()
            limit = at + _SEARCHED_BYTES
            at = _WHOLE_VALUES.match(self.data, at, limit).end()  # type: ignore[union-attr]  # it matches any text
            byte = self.data[at : at + 1]
            if byte == b'"' and at < limit:
                at = self.end(at)
            elif byte and byte in b"[{]}" and at < limit:
                depth += 1 if byte in b"[{" else -1
                at += 1
            elif not byte:
                raise _Unreadable
        return at

    def values(self, at: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the beginning and the end of each value between the bytes `at` and `end`."""
        while (at := _BETWEEN.match(self.data, at, end).end()) < end:  # type: ignore[union-attr]  # it matches any text
            yield at, (at := self.end(at))

    def members(self, at: int, end: int) -> Iterator[tuple[str, int, int]]:
        """Yield the name of each member of an object, and the beginning and the end of the member's value."""
        at += 1
        while (at := _BETWEEN.match(self.data, at, end).end()) < end - 1:  # type: ignore[union-attr]
            colon = _COLON.match(self.data, name_end := self.end(at))
            if colon is None or self.data[at : at + 1] != b'"':
                raise _Unreadable
            name = str(json.loads(self.data[at:name_end]))
            at = self.end(colon.end())
            yield name, colon.end(), at

    def array(self, begin: int, end: int, member: str) -> tuple[int, int, list[str]] | None:
        """Find the array `member` in the object between the bytes `begin` and `end`.

        Returns the beginning and the end of the array, and the names of all other members. Returns None if the object
        has no such array.
        """
        if self.data[begin : begin + 1] != b"{":
            return None
        first, _, rest = member.partition(".")
        places: dict[str, tuple[int, int]] = {}
        for name, value_begin, value_end in self.members(begin, end):
            places.setdefault(name, (value_begin, value_end))
        for name, inner in ((member, ""), (first, rest)):
            others = [other for other in places if other != name]
            if name in places and not inner and self.data[places[name][0]] == ord("["):
                return *places[name], others
            if name in places and inner and (place := self.array(*places[name], inner)):
                return *place[:2], [*others, *place[2]]
        return None


def copy_events(source: Path, target: Path, member: str, name: str, check: Callable[[], None]) -> str:
    """Copy the events of a JSON document to a file, as one array. Each event keeps its line number.

    The events are in the array `member` of each object. Returns the names of all other members of the objects. `name`
    is the name of the file in messages, and `check` is called repeatedly. Raises UsageError if an object has no such
    array, or if the document is not JSON.
    """
    left_out: dict[str, None] = {}
    written, separator = 0, b"["
    with (
        source.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        target.open("wb") as events,
    ):
        try:
            for number, document in enumerate(_values(text := _JsonText(data, check)), 1):
                if (place := text.array(*document, member)) is None:
                    why = sentence(Skip.NO_EVENTS, None, [member], "json")
                    raise UsageError(f"{name} could not be read: element {number}: {why}", hint=NOTHING_CHANGED)
                begin, end, others = place
                left_out |= dict.fromkeys(others)
                events.write(b"\n" * data[written:begin].count(b"\n"))
                if _BETWEEN.match(data, begin + 1).end() < end - 1:  # type: ignore[union-attr]  # it matches any text
                    events.write(separator)
                    separator = b","
                    _copy(data, events, begin + 1, end - 1)
                written = end
        except (_Unreadable, ValueError):
            raise UsageError(f"{name} could not be read: it is not JSON", hint=NOTHING_CHANGED) from None
        events.write(b"]" if separator == b"," else b"[]")
    return ", ".join(left_out)


def _values(text: _JsonText) -> Iterator[tuple[int, int]]:
    """Yield the beginning and the end of each element of an array, or of each value in a sequence of values."""
    data = text.data
    begin = _BETWEEN.match(data, len(_BOM) if data[: len(_BOM)] == _BOM else 0).end()  # type: ignore[union-attr]
    if data[begin : begin + 1] == b"[":
        return text.values(begin + 1, data.rfind(b"]"))
    return text.values(begin, len(data))


def _copy(data: mmap.mmap, target: BinaryIO, begin: int, end: int) -> None:
    for at in range(begin, end, _SEARCHED_BYTES):
        target.write(data[at : min(at + _SEARCHED_BYTES, end)])
