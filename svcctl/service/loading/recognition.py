"""Recognises files: the kind, the columns and their types, and where the time is and how it is written.

All of it is decided once, from a head of bounded size, and handed on as a Layout. What is unsure is refused with the
option that decides it.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from svcctl.errors import UsageError
from svcctl.service.engines.duckdb.text import LINE, literal, quote
from svcctl.service.language.types import Type
from svcctl.service.loading.decompression import ENDINGS, Source
from svcctl.service.loading.files import FileReader, KnownFile, first_lines
from svcctl.service.loading.kinds import FILE_KINDS, FileKind, LogTime, known_kind, log_time, looks_log, unread
from svcctl.service.loading.outcome import Change, Skip, Tally, shown, some
from svcctl.service.loading.readers import READERS, Columns, Misfit, NoEvents, Wanted
from svcctl.service.loading.times import TimeFormat, as_time, slashed, text_as_time, time_format, written_as
from svcctl.service.loading.values import DECIMALS, THOUSANDS, Field, Written
from svcctl.service.loading.values import field as value_field

TIME_NAMES = ("timestamp", "@timestamp", "time", "date", "datetime", "ts", "epoch", "__realtime_timestamp")
"""Names of columns with the event's time, the likeliest first; `eventdate` comes before all of them."""
LOOKED_AT = 1000
"""How many rows decide whether a column has times: the first rows."""
CONVERT = "convert the text to UTF-8: iconv -f latin1 -t utf-8 FILE | svcctl service load - -t …"
_FRAMED = ("csv", "tsv", "json", "parquet")
"""Kinds of file that have a heading or brackets even without events."""
_DATED = re.compile(r"\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}\b|[A-Z][a-z]{2,8}\.? \d{1,2},? (\d{4}\b|\d{1,2}:\d\d)")
"""The beginning of dates that are not read without a format, such as those with the month first."""
_DAY = r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}"
_SLASHED = r"^\d{1,2}/\d{1,2}/\d{4}"
_CLOCK = r"([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?"


@dataclass(frozen=True, slots=True)
class Wishes:
    """How to read files, by the options of the user: see `svcctl service load --help`."""

    time_field: str | None = None
    time_format: str | None = None
    format: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    replace: bool = False
    zone: str | None = None
    """The zone of times without a zone; UTC if None."""
    strict: bool = False
    """Whether the load fails at a line that would be skipped otherwise."""
    null: Sequence[str] = ()
    """Texts that stand for nothing."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What was decided about a file.

    `fields` are the columns of the file as SQL with the types of their stored values, and `time` is the column of the
    event's time; `clock` has the times of day, if that column has only days. `times` is what was said of them, `others`
    are further columns of times, and `is_named` tells that the user named `time`. Numbers with
    commas are written as in `numbers` where their type was named.
    """

    file: KnownFile
    columns: Columns
    fields: Mapping[str, Field]
    time: str
    clock: str | None
    times: TimeFormat
    others: tuple[str, ...]
    is_named: bool
    numbers: Written

    @property
    def types(self) -> Mapping[str, Type]:
        """The types of all columns but that of the time."""
        return {name: one.type for name, one in self.fields.items() if name != self.time}

    def marks(self, change: Change) -> Mapping[str, str]:
        """The conditions of a change by column, but for that of the time; "" is the row."""
        return {name: one for name, one in self.columns.marks.get(change, {}).items() if name != self.time}


@dataclass(frozen=True, slots=True)
class _Profile:
    """What the first values of a column look like: how many there are, and how many are times, dates, clocks, days.

    `other` is the first value that is no time, with its line. `is_time` tells that all values are times.
    """

    values: int
    times: int
    is_late: bool
    slashed: int
    clocks: int
    days: int
    other: str | None
    line: int

    @property
    def is_time(self) -> bool:
        # Versions such as 5.10.1 look like dates of the first years.
        return self.times == self.values > 0 and self.is_late

    @property
    def is_clock(self) -> bool:
        return self.clocks == self.values > 0


@dataclass(frozen=True, slots=True)
class Recogniser:
    """Recognises the files of a load. `held` are the columns of the table, if events are added to it.

    With `whole`, the types of columns are found in whole files.
    """

    reader: FileReader
    wishes: Wishes
    held: Mapping[str, Type]
    is_alone: bool
    whole: bool

    def layout(self, source: Source) -> Layout | None:
        """The layout of a file; None if it is complete without events. Raises UsageError if something is not clear."""
        times = time_format(self.wishes.zone, self.wishes.time_format)
        kind = self._kind(source, times.spec)
        if kind is None:
            return None
        if times.spec is not None and kind.pattern and kind.time_is_usual:
            raise UsageError(f"--time-format does not apply to {source.name}: its format has its own")
        file = self.reader.open(source, kind)
        declared = {name: type_ for name, type_ in self.held.items() if name != "eventdate"}
        declared |= {name: Type(word) for name, word in self.wishes.types.items() if word in set(Type)}
        tally = self.reader.head(file)
        columns = self._columns(file, declared)
        if columns is None:
            return None
        if self.whole:
            self.reader.head(file)
        zone = "UTC" if columns.is_dated else times.in_zone
        fields = {name: value_field(quote(name), type_, zone) for name, type_ in columns.types.items()}
        rows = self.reader.row(file, f"SELECT count(*) FROM (SELECT 1 FROM {columns.table} LIMIT 1)")[0]
        chosen = _Choice(self, file, columns, fields, times)
        if not rows:
            chosen.check_heading()
            if tally.first_skip is not None:
                raise _unreadable(source, tally)
            return None
        time, clock, others = chosen.time()
        named = self.wishes.time_field is not None
        numbers = THOUSANDS if file.heading is not None and file.heading.shape.separator == "," else DECIMALS
        return Layout(file, columns, fields, time, clock, times, others, named, numbers)

    def _columns(self, file: KnownFile, declared: Mapping[str, Type]) -> Columns | None:
        def fill() -> None:
            self.reader.stream(file, Tally())

        zone = self.wishes.zone
        wanted = Wanted(declared, self.wishes.null, zone or "UTC", zone is not None, not self.whole, fill)
        try:
            return READERS[file.kind.name](self.reader, file, wanted)
        except NoEvents:
            return None
        except Misfit:
            return READERS[file.kind.name](self.reader, file, replace(wanted, head=False))

    def _kind(self, source: Source, spec: str | None) -> FileKind | None:
        """The kind of a file: the named one, or found by its ending and its first lines. None if the file is empty.

        With `spec`, the lines of a log have times in this format.
        """
        format, found = self.wishes.format, first_lines(source)
        if not found:
            if format in _FRAMED or (format is None and not _is_of_lines(source)):
                raise Unframed(source.name)
            return None
        written = written_as(spec or "")
        if spec is not None and format is None and looks_log(found[0], written):
            format = "log"
        kind = _known(source, format, found)
        if kind.name in ("csv", "tsv") and "\0" in found[0]:
            raise UsageError(f"the first line of {source.name} has the character NUL: it is not a text file in UTF-8")
        if kind.name == "logfmt" and self.wishes.format is None and set(self.held) == {"eventdate", "message"}:
            kind = FILE_KINDS["log"]  # a table of log lines has no columns for the keys
        if kind.name == "log":
            time = log_time(found, written) or (LogTime(written, written) if written else LogTime())
            return replace(kind, pattern=time.pattern, continuation=time.continuation, time_is_usual=time.is_usual)
        return kind


class Unframed(UsageError):
    """The file is empty, although its kind has a heading or brackets even without events."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no events in {name}, and not even a heading", hint="nothing was changed")
        self.name = name


def _unreadable(source: Source, tally: Tally) -> UsageError:
    """The error for a file without a line that can be read."""
    what = tally.first_skip
    assert what is not None
    _, line, value, _ = tally.found[what]
    why = {Skip.ENCODING: "it is not UTF-8", Skip.QUOTE: "a quote is not closed", Skip.CELLS: "it has too many cells"}
    return UsageError(
        f"no line of {source.name} could be read: {why.get(what, what.value)}, as in line {line}: {shown(value or '')}",
        hint=CONVERT if what is Skip.ENCODING else "nothing was changed",
    )


def _is_of_lines(source: Source) -> bool:
    """Whether an empty file is complete: a file of lines, which has neither a heading nor brackets."""
    kind = known_kind(_ending(source), ())
    return ".log" in source.path.suffixes or (kind is not None and kind.name not in _FRAMED)


def _ending(source: Source) -> str:
    """The ending of a file's name, without the ending of a compression."""
    path = source.path
    return path.with_suffix("").suffix if path.suffix in ENDINGS else path.suffix


def _known(source: Source, name: str | None, lines: Sequence[str]) -> FileKind:
    if name in (None, "json", "ndjson") and (other := unread(lines[0])):
        raise UsageError(f"{source.name} is {other[0]}, which is not read as it is", hint=other[1])
    if name is not None:
        if name not in FILE_KINDS:
            raise UsageError(f"unknown format '{name}'", hint=f"formats are {', '.join(FILE_KINDS)}")
        return FILE_KINDS[name]
    kind = known_kind(_ending(source), lines)
    if kind is None:
        raise UsageError(
            f"the format of {source.name} is not clear",
            hint=f"name it with --format: {', '.join(FILE_KINDS)}; or how the times of a log are written with "
            "--time-format, such as 'yy/MM/dd HH:mm:ss'",
        )
    return kind


class _Choice:
    """Chooses the column of the time of a file."""

    def __init__(
        self,
        recogniser: Recogniser,
        file: KnownFile,
        columns: Columns,
        fields: Mapping[str, Field],
        times: TimeFormat,
    ) -> None:
        self._recogniser, self._reader = recogniser, recogniser.reader
        self._file, self._columns, self._fields, self._times = file, columns, fields, times
        self._name = file.source.name
        self._spec = times.spec
        self._is_csv = file.heading is not None

    def time(self) -> tuple[str, str | None, tuple[str, ...]]:
        """The column of the time, the column of the times of day if there is one, and further columns of times."""
        profiles = self._profiles()
        times = [name for name, profile in profiles.items() if profile.is_time]
        if self._spec is None or not times:
            times += [name for name, one in self._fields.items() if one.type is Type.TIMESTAMP]
        wished = self._recogniser.wishes.time_field
        if wished is not None:
            time, clock = self._named(wished, profiles)
        else:
            time, clock = self._found(times, profiles), None
            self._check_clock(time, profiles)
        return time, clock, tuple(name for name in times if name != time)

    def _profiles(self) -> dict[str, _Profile]:
        """The columns of text and, with a format of times, of whole numbers."""
        types = (Type.STR,) if self._spec is None else (Type.STR, Type.INT4, Type.INT8)
        fields = {name: one for name, one in self._fields.items() if one.type in types}
        if not fields:
            return {}
        asked = []
        for one in fields.values():
            value = f"nullif({one.stored}::VARCHAR, '')"
            if self._spec is None:
                time = text_as_time(value, self._times)
            else:
                time = as_time(one.stored, one.type, self._times)
            other = f"FILTER ({time} IS NULL AND {value} IS NOT NULL)"
            asked += [
                f"count({value})",
                f"count({time})",
                f"coalesce(max({time}) >= '1970-01-01', false)",
                f"count(*) FILTER (regexp_matches({slashed(value)}, '{_SLASHED}'))",
                f"count(*) FILTER (regexp_full_match({value}, '{_CLOCK}'))",
                f"count(*) FILTER (regexp_full_match({value}, '{_DAY}'))",
                f"first({value}) {other}",
                f"first({quote(LINE)}) {other}",
            ]
        columns = ", ".join(f"{sql} AS {quote(name)}" for name, sql in self._columns.sql.items())
        head = f"SELECT {columns}, {self._columns.line} AS {quote(LINE)} FROM {self._columns.table} LIMIT {LOOKED_AT}"
        found = iter(self._reader.row(self._file, f"SELECT {', '.join(asked)} FROM ({head})"))
        return {name: _Profile(*(next(found) for _ in range(8))) for name in fields}

    def _named(self, wished: str, profiles: Mapping[str, _Profile]) -> tuple[str, str | None]:
        """The column that the user names, or two as DATE,TIME; one of several files may have eventdate instead."""
        if wished in self._fields:
            if wished != "eventdate" and "eventdate" in self._fields:
                raise UsageError(f"{self._name} has a column eventdate, so '{wished}' cannot take its place")
            return wished, None
        for comma in re.finditer(",", wished):
            day, clock = wished[: comma.start()], wished[comma.end() :].strip()
            if day in self._fields and clock in self._fields:
                if clock not in profiles or not profiles[clock].is_clock:
                    raise UsageError(
                        f"column '{clock}' of {self._name} has values that are no times of day",
                        hint=f"they are written as 10:00 or 10:00:00; --time-field {shlex.quote(day)} reads the days "
                        "alone",
                    )
                return day, clock
        if "eventdate" in self._fields and not self._recogniser.is_alone:
            return "eventdate", None
        self.check_heading()
        raise UsageError(f"{self._name} has no column '{wished}'", hint=f"its columns are {', '.join(self._fields)}")

    def _found(self, times: Sequence[str], profiles: Mapping[str, _Profile]) -> str:
        """The column eventdate, the only column of times, or one with a usual name."""
        if found := [name for name in self._fields if name.casefold() == "eventdate"]:
            return found[0]
        if len(times) == 1:
            self._check_is_name(times[0])
            return times[0]
        usual = [name for word in TIME_NAMES for name in self._fields if name.casefold() == word]
        if usual:
            return next((name for name in usual if name not in profiles or not profiles[name].is_clock), usual[0])
        # If these dates have the month first, a later error tells how to read them.
        none = bool(times) or self._spec is not None
        months = [] if none else [name for name, one in profiles.items() if one.slashed == one.values > 0]
        if len(months) == 1:
            self._check_is_name(months[0])
            return months[0]
        raise self._unclear(", ".join(times or months), profiles)

    def _unclear(self, several: str, profiles: Mapping[str, _Profile]) -> UsageError:
        """The error for a file whose column of the time is not clear."""
        if rows := self._wrapper():
            inside = f".{rows}" if re.fullmatch(r"[A-Za-z_]\w*", rows) else f".[{json.dumps(rows)}]"
            return UsageError(
                f"{self._name} is one object, and its rows are inside '{rows}'",
                hint=f"jq {shlex.quote(inside)} FILE | svcctl service load - -t …",
            )
        self.check_heading()
        names = ", ".join(self._fields)
        for name, one in profiles.items() if not several and self._spec is None else ():
            if one.is_late and 2 * one.times >= one.values and one.other is not None:
                is_date = _DATED.match(one.other) is not None
                wish = "write all in one way" if is_date else f"--time-field {shlex.quote(name)} skips such lines"
                return UsageError(
                    f"each event needs a time, and the column {name} of {self._name} has times and others: "
                    f"{shown(one.other)} in {self._file.unit} {one.line} is not read as one",
                    hint=f"{wish}; or name another column with --time-field: {names}",
                )
        return UsageError(
            f"each event needs a time, and it is not clear which column of {self._name} has it",
            hint=f"name one of those with times with --time-field: {several}"
            if several
            else f"name it with --time-field: {names}; if none has it, add a column of times",
        )

    def _check_clock(self, time: str, profiles: Mapping[str, _Profile]) -> None:
        """Raise UsageError if the column of the time has only days, and another column has times of day."""
        profile = profiles.get(time)
        is_day = self._columns.types[time] == "DATE" if profile is None else profile.days >= profile.times > 0
        has_clock = self._spec is not None and re.search(r"%-?[HIscX]", self._spec)
        clocks = [name for name, one in profiles.items() if one.is_clock and name != time]
        if clocks and not has_clock and (is_day or self._spec is not None):
            each = " or ".join(f"--time-field {shlex.quote(f'{time},{clock}')}" for clock in clocks[:3])
            raise UsageError(
                f"the column {time} of {self._name} has days, and {some(clocks)} {'have' if clocks[1:] else 'has'} "
                "times of day",
                hint=f"read both with {each}; or the days alone with --time-field {shlex.quote(time)}",
            )

    def _wrapper(self) -> str | None:
        """The member that is an array of objects, if a file of JSON is a single object with such a member."""
        if self._file.kind.name not in ("json", "ndjson"):
            return None
        tests = (
            f"bool_and(json_type(CASE WHEN json_valid({sql}) THEN {sql} END, '$[0]') = 'OBJECT')"
            if self._columns.types[name] == "VARCHAR"
            else "false"
            for name, sql in self._columns.sql.items()
        )
        count, *wraps = self._reader.row(self._file, f"SELECT count(*), {', '.join(tests)} FROM {self._columns.table}")
        found = [name for name, is_wrapper in zip(self._fields, wraps, strict=True) if is_wrapper]
        return found[0] if found and count == 1 else None

    def check_heading(self) -> None:
        """Raise UsageError if the first line of csv is a comment (`# made by …`), a title or data, not names."""
        if not self._is_csv:
            return
        first, lines = next(iter(self._fields)), first_lines(self._file.source)
        if re.match(r"#.*\s", first):
            raise UsageError(
                f"{self._name} begins with a comment, not with the names of its columns: {shown(first)}",
                hint="leave the comments out: grep -v '^#' FILE | svcctl service load - -t …",
            )
        if len(self._fields) == 1 and re.search("[,;|\t]", "".join(lines[1:])):
            raise UsageError(
                f"{self._name} begins with a title, not with the names of its columns: {shown(first)}",
                hint="begin with the line of the names, the Nth: tail -n +N FILE | svcctl service load - -t …",
            )
        for name in self._fields:
            self._check_is_name(name, numbers=name == first)

    def _check_is_name(self, name: str, *, numbers: bool = False) -> None:
        """Raise UsageError if the name of a column of csv is a time or, with `numbers`, a number."""
        if not self._is_csv or not re.search(r"\d", name):
            return  # DuckDB reads the words epoch and infinity as times, but they may be names
        time = as_time(literal(name), Type.STR, self._times)
        if self._spec is None:
            time = text_as_time(literal(name), self._times)
        is_time = _DATED.match(name) or self._reader.row(self._file, f"SELECT {time} IS NOT NULL")[0]
        if is_time or (numbers and name.isdecimal()):
            raise UsageError(
                f"the first line of {self._name} looks like data: {shown(name)}; it must name the columns",
                hint="put a line of names before it: (echo time,…; cat FILE) | svcctl service load - -t …",
            )
