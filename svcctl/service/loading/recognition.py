"""Recognises files: the kind, the columns with their types, the column of the event's time, and the format of times.

The beginning of a file decides all of these, and the result is a Layout. If something is not clear, the file is
refused. The error names the option that the user needs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from svcctl.api.loads import LoadOptions
from svcctl.errors import UsageError
from svcctl.service.engines.duckdb.syntax import literal, quote
from svcctl.service.language.types import Type
from svcctl.service.loading.columns import COLUMNS_OF, Columns, Wanted
from svcctl.service.loading.decompression import ENDINGS, Source
from svcctl.service.loading.files import FileReader, KnownFile
from svcctl.service.loading.flattening import Flattening
from svcctl.service.loading.heads import HEAD_BYTES, FileHead, best_log, head_of, kind_of
from svcctl.service.loading.kinds import FILE_KINDS, FileKind
from svcctl.service.loading.limits import LoadLimits
from svcctl.service.loading.number_times import (
    NUMBER_UNITS,
    NumberTimes,
    detected,
    numbers_among,
    own_times,
    unclear,
)
from svcctl.service.loading.skips import Change, Tally, What, shown, unread
from svcctl.service.loading.times import (
    ORDERS,
    SLASHED,
    TimeFormat,
    as_time,
    is_abbreviated,
    may_be_time,
    text_as_time,
    time_format,
    unclear_zone,
    written_as,
)
from svcctl.service.loading.values import WHOLE_TYPES, LoadedField
from svcctl.service.loading.values import field as value_field
from svcctl.words import choices

TIME_NAMES = ("eventdate", "timestamp", "@timestamp", "time", "date", "datetime", "ts", "epoch", "__realtime_timestamp")
"""The usual names of columns with the event's time, the most likely name first."""
LOOKED_AT = 1000
"""The number of rows at the beginning of a file that decide whether a column has times."""
_NEEDS_LINE_FEEDS = ("ndjson", "access", "log", "syslog", "logfmt")
"""The kinds of files whose lines must end with a line feed."""
_CLOCK = r"([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?"
_DATA = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:\D|$)|\d{8,}(?:\.\d+)?$")
"""Matches a date or a number that is in the place of a column's name."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The result of recognising a file.

    `fields` has the columns of the file as SQL, with the types of their stored values. `time` is the column of the
    event's time. If `time` has only days, `clock` is the column with the times of day. `times` is the format of the
    event's time. `numbers` has the units of numbers in other columns of times. `is_chosen` means that the column `time`
    was chosen because of its values. In this case, the column has no usual name, and the user named no column.
    """

    file: KnownFile
    columns: Columns
    fields: Mapping[str, LoadedField]
    time: str
    clock: str | None
    times: TimeFormat
    numbers: Mapping[str, NumberTimes]
    is_chosen: bool

    @property
    def types(self) -> Mapping[str, Type]:
        """The types of all columns except the column of the event's time."""
        return {name: field.type for name, field in self.fields.items() if name != self.time}

    @property
    def arrays(self) -> tuple[str, ...]:
        """The names of JSON members that are arrays of objects."""
        return self.columns.flat.lists if self.columns.flat else ()

    def fields_of(self, what: What) -> tuple[str, ...]:
        """Return the columns to which a finding applies. The result is empty unless the finding is a Change."""
        if what is Change.COLUMN:
            return (self.time,)
        return tuple(filter(None, self.marks(what))) if isinstance(what, Change) else ()

    def marks(self, change: Change) -> Mapping[str, str]:
        """Return the SQL conditions for a kind of change, by column. The column name "" means the whole row.

        The column of the event's time is left out.
        """
        return {name: condition for name, condition in self.columns.marks.get(change, {}).items() if name != self.time}


@dataclass(frozen=True, slots=True)
class _Profile:
    """A summary of the first values of a column. All fields are None for a column without values.

    `is_time` means that all values are times, and that at least one time is in 1970 or later. `is_clock` means that at
    least half of the values are times of day. `are_days` means that all times are whole days. `slashed` is the first
    date with slashes. `abbreviated` is the first value that ends with the abbreviation of a zone.
    """

    is_time: bool | None
    is_clock: bool | None
    are_days: bool | None
    slashed: str | None
    abbreviated: str | None


@dataclass(frozen=True, slots=True)
class Recogniser:
    """Recognises the files of a load.

    `held` has the columns of the table if events are added to an existing table. `is_alone` means that the load has a
    single file. With `whole`, the types of columns are found in whole files. `now_ms` is the present time in epoch
    milliseconds. `texts` has the names of objects that become JSON text in every file.
    """

    reader: FileReader
    options: LoadOptions
    held: Mapping[str, Type]
    is_alone: bool
    whole: bool
    now_ms: int
    limits: LoadLimits
    texts: frozenset[str] = frozenset()

    def layout(self, source: Source) -> Layout | None:
        """Find the layout of a file. Return None for a file without events.

        Raises UsageError if the layout is not clear.
        """
        user_times = time_format(self.options.time_zone, self.options.time_format)
        data = self.reader.first_bytes(source, HEAD_BYTES)
        head = head_of(source.name, data)
        if not self._may_have_events(head):
            return None
        kind = self._kind(source, head, written_as(user_times))
        _check_line_ends(head, kind)
        file = self.reader.open(source, kind, data, self.options)
        times = replace(user_times, newest=file.newest)
        is_unsure = (
            file.heading is not None
            and file.heading.is_read
            and self.options.header is None
            and not any(name.casefold() in self._time_names for name in file.names)
        )
        if is_unsure:
            _check_heading(self.reader, file, times)
        tally = self.reader.head(file)
        if not self.reader.rows(file, f"SELECT 1 FROM {file.table} LIMIT 1"):
            tally.settle()
            if tally.first_skip is not None:
                raise unread(source.name, file.unit, tally, kind.name)
            if is_unsure:
                raise _single_line(file)
            return None
        columns = self._columns(file)
        if columns.is_dated and (times.spec or times.numbers):
            raise UsageError(f"--time-format does not apply to {source.name}: its format defines how times are written")
        zone = "UTC" if columns.is_dated else times.in_zone
        fields = {name: value_field(quote(name), type_, zone) for name, type_ in columns.types.items()}
        if self.whole:
            self.reader.head(file)
        profiles, time_field = _profiles(self.reader, file, columns, fields, times), self.options.time_field
        if time_field is not None:
            time, clock = _named(file, columns, time_field, is_alone=self.is_alone)
            if clock is not None and not times.clock_digits:
                _check_digits(self.reader, file, columns, clock)
        elif file.kind.name == "fields" and {"date", "time"} <= {*fields}:
            time, clock = "date", "time"
        else:
            time, clock = _time_column(file, columns, profiles, is_named=self.options.format is not None), None
            _check_clocks(file, time, profiles)
        if time in profiles:
            _check_times(file, profiles[time], times)
        is_chosen = time_field is None and time.casefold() not in TIME_NAMES
        numbers = self._numbers(file, columns, fields, time, times, is_day=clock is not None)
        times = replace(times, numbers=numbers.pop(time, times.numbers))
        return Layout(file, columns, fields, time, clock, times, numbers, is_chosen)

    def _may_have_events(self, head: FileHead) -> bool:
        """Return whether a file may have events.

        Raises UsageError if the file has only comments, but one of them may be an event. This error is not raised if
        the user names the format.
        """
        if self.options.format is not None or head.has_events:
            return any(map(str.strip, head.lines))
        if head.comment_with_time:
            raise UsageError(
                f"{head.name} has only comments, but they may be events: {shown(head.comment_with_time)}",
                reason="events-in-comments",
            )
        return False

    def _numbers(
        self,
        file: KnownFile,
        columns: Columns,
        fields: Mapping[str, LoadedField],
        time: str,
        times: TimeFormat,
        *,
        is_day: bool,
    ) -> dict[str, NumberTimes]:
        """Return the units of the numbers in columns of times.

        A column of times is the column of the event's time, or a column that gets the type timestamp. Raises UsageError
        if most values of the event's time are numbers in a unit that is not clear.
        """
        named = {name for name, type_ in {**self.held, **self.options.types}.items() if type_ == Type.TIMESTAMP}
        names = [name for name in fields if name in named - {time} and fields[name].type is not Type.TIMESTAMP]
        if fields[time].type is not Type.TIMESTAMP and not (columns.is_dated or times.spec or times.numbers):
            names.insert(0, time)
        formats: dict[str, NumberTimes] = {}
        is_own = (
            file.kind.name in ("ndjson", "json") and "eventdate" in fields and fields["eventdate"].type in WHOLE_TYPES
        )
        for name in names:
            rows = self.reader.rows(
                file, f"SELECT ({columns.sql[name]})::VARCHAR FROM {columns.table} LIMIT {LOOKED_AT}"
            )
            values = [value for (value,) in rows if value]
            numbers = numbers_among(values)
            if file.heading and name in file.heading.epochs:
                formats[name] = NumberTimes(NUMBER_UNITS["epoch"])
            elif is_own and name == "eventdate":
                formats[name] = own_times(file.source.name, numbers, self.now_ms)
            elif is_own and not times.numbers:
                formats[name] = NumberTimes(NUMBER_UNITS["epoch_ms"])
            elif numbers and (unit := detected(numbers, self.now_ms)):
                formats[name] = unit
            elif name == time and 2 * len(numbers) > len(values):
                raise unclear(file.source.name, name, numbers, self.now_ms, is_day=is_day)
        return formats

    def _columns(self, file: KnownFile) -> Columns:
        def rows(sql: str) -> list[tuple[Any, ...]]:
            if self.whole:
                self.reader.stream(file, Tally())
            return self.reader.rows(file, sql)

        types = {name: type_ for name, type_ in self.held.items() if name != "eventdate"}
        types |= {name: Type(word) for name, word in self.options.types.items() if word in set(Type)}
        flattening = Flattening(self.limits, self.held, types, self.texts, self.options.time_field)
        wanted = Wanted(flattening, self.options.null, self.options.time_zone, rows)
        return COLUMNS_OF[file.kind.name](file, wanted)

    def _kind(self, source: Source, head: FileHead, written: str) -> FileKind:
        """Return the kind of a file. If the user does not name the kind, the first lines of the file decide.

        `written` is the pattern of times in a log, or an empty text.
        """
        name, path = self.options.format, source.path
        if name is not None and name not in FILE_KINDS:
            raise UsageError(f"unknown format '{name}'", hint=f"formats are {', '.join(FILE_KINDS)}")
        ending = path.with_suffix("").suffix if path.suffix in ENDINGS else path.suffix
        if self.options.header is not None or self.options.names:
            if name not in (None, "csv", "tsv"):
                raise UsageError(f"--header and --names are for csv and tsv, not for {name}")
            return FILE_KINDS[name or ("tsv" if ending.lower() in FILE_KINDS["tsv"].endings else "csv")]
        if name is None:
            kind = kind_of(head, ending, written, self._time_names)
        else:
            kind = best_log(head, written) if name == "log" else FILE_KINDS[name]
        if self.options.events_in is None:
            return kind
        if kind.name not in ("ndjson", "json"):
            raise UsageError(
                f"only ndjson and json can have events in a member, but the format of {source.name} is {kind.name}",
                reason="no-members",
            )
        return FILE_KINDS["json"] if name is None and head.has_one_line else kind

    @property
    def _time_names(self) -> Sequence[str]:
        """The usual names of columns of times, in lower case. A line with one of these names is a heading of csv."""
        return (*TIME_NAMES, *filter(None, (self.options.time_field or "").casefold().split(",")))


def _profiles(
    reader: FileReader, file: KnownFile, columns: Columns, fields: Mapping[str, LoadedField], times: TimeFormat
) -> dict[str, _Profile]:
    """Return a summary (`_Profile`) of each column that may have times.

    Without a given strptime format, columns of text and of timestamps may have times. With a given strptime format,
    columns of text and of whole numbers may have times. Times without a zone are in the zone of DuckDB's session.
    """
    types = (Type.STR, Type.TIMESTAMP) if times.spec is None else (Type.STR, Type.INT4, Type.INT8)
    candidates = {name: field for name, field in fields.items() if field.type in types}
    if not candidates:
        return {}
    known = replace(times, zone="UTC", numbers=None)
    orders = [known] if times.format else [replace(known, format=order) for order in ORDERS]
    time = f"coalesce({', '.join(text_as_time('v', order) for order in orders)})"
    time = f"CASE WHEN {may_be_time('v')} THEN {time} END" if times.spec is None else as_time("v", Type.STR, known)
    values = [f"nullif({field.stored}::VARCHAR, '')" for field in candidates.values()]
    dates = [
        f"TRY_CAST({field.raw} AS TIMESTAMP)" if field.type is Type.TIMESTAMP else "NULL::TIMESTAMP"
        for field in candidates.values()
    ]
    aggregates = (
        # Version numbers such as 5.10.1 look like dates of the first years.
        "count(t) = count(v) AND max(t) >= '1970-01-01'",
        f"2 * count(*) FILTER (regexp_full_match(v, '{_CLOCK}')) >= nullif(count(v), 0)",
        "bool_and(t = date_trunc('day', t))",
        f"arg_min(v, row) FILTER (regexp_matches(v, '{SLASHED}'))",
        f"arg_min(v, row) FILTER ({is_abbreviated('v')})",
    )
    named = ", ".join(f"{sql} AS {quote(name)}" for name, sql in columns.sql.items())
    head = f"(SELECT {named} FROM {columns.table} LIMIT {LOOKED_AT})"
    lists = f"row_number() OVER () AS row, [{', '.join(values)}] AS texts, [{', '.join(dates)}] AS dates"
    # There is one row for each value, because a statement that tries all forms of a time for each column takes long.
    cells = (
        f"SELECT row, unnest(range({len(candidates)})) AS place, unnest(texts) AS v, unnest(dates) AS date "
        f"FROM (SELECT {lists} FROM {head})"
    )
    dated = f"SELECT place, row, v, CASE WHEN date IS NOT NULL THEN date ELSE {time} END AS t FROM ({cells})"
    profiles = {
        place: _Profile(*profile)
        for place, *profile in reader.rows(file, f"SELECT place, {', '.join(aggregates)} FROM ({dated}) GROUP BY place")
    }
    return {name: profiles.get(at, _Profile(None, None, None, None, None)) for at, name in enumerate(candidates)}


def _named(file: KnownFile, columns: Columns, time_field: str, *, is_alone: bool) -> tuple[str, str | None]:
    """Return the column of the event's time and the column of the times of day, as the user names them.

    With two names such as DATE,TIME, the first column has the days. With a single name, the second value is None. If
    the load has several files, a file without the named column may have eventdate instead.
    """
    name, fields = file.source.name, columns.types
    if time_field in fields:
        if time_field != "eventdate" and "eventdate" in fields:
            raise UsageError(f"{name} has a column eventdate, so '{time_field}' cannot take its place")
        return time_field, None
    for comma in re.finditer(",", time_field):
        day, clock = time_field[: comma.start()], time_field[comma.end() :]
        if day in fields and clock in fields:
            return day, clock
    if "eventdate" in fields and not is_alone:
        return "eventdate", None
    _check_lists(file, columns)
    raise UsageError(f"{name} has no column '{time_field}'", hint=f"its columns are {choices(fields)}")


def _check_lists(file: KnownFile, columns: Columns) -> None:
    """Raise UsageError if JSON without a time has an array of objects, because these objects may be the events."""
    if columns.flat is not None and (lists := columns.flat.lists):
        raise UsageError(
            f"each event needs a time, but {file.source.name} has no time outside the array {lists[0]}",
            reason="events-in-array",
            data={"member": lists[0]},
        )


def _time_column(file: KnownFile, columns: Columns, profiles: Mapping[str, _Profile], *, is_named: bool) -> str:
    """Return the column of the event's time.

    Columns outside of objects are preferred, and then columns near the top of the event. `is_named` means that the user
    named the format of the file. Raises UsageError if the column is not clear.
    """
    levels: dict[int, dict[str, str]] = {}
    for name, path in columns.paths.items():
        levels.setdefault(len(path), {})[name] = path[-1].casefold()
    for level, names in sorted(levels.items()):
        time = _likeliest(names, profiles, is_nested=level > 1)
        if time is not None:
            return time
        if any(profiles[name].is_time for name in names if name in profiles):
            break
    times = [name for name, profile in profiles.items() if profile.is_time]
    if not times:
        _check_lists(file, columns)
    if clocks := [name for name, profile in profiles.items() if profile.is_clock]:
        raise UsageError(
            f"the column {clocks[0]} of {file.source.name} has times of day, but no column has the days",
            reason="no-column-of-days",
            data={"column": clocks[0]},
        )
    hint = f"choose a column of times with --time-field: {', '.join(times)}" if times else None
    raise UsageError(
        f"each event needs a time, and it is not clear which column of {file.source.name} has the time",
        hint=hint,
        reason=None if times else "no-column-of-times",
        data={"columns": list(columns.types), "format": None if is_named else file.kind.name},
    )


def _likeliest(names: Mapping[str, str], profiles: Mapping[str, _Profile], *, is_nested: bool) -> str | None:
    """Return the column that most likely has the time of the event. Return None if this column is not clear.

    `names` maps each column to the last part of its name, in lower case.

    Outside of objects, the first choice is eventdate, the second is the only column of times, and the third is a column
    with a usual name for a time. Inside objects (`is_nested`), the first choice is the only column of times. The second
    choice is a column with a usual name, such as eventdate, if no other column has this name.
    """
    times = [name for name in names if name in profiles and profiles[name].is_time]
    usual: dict[str, list[str]] = {}
    for name, word in names.items():
        if name not in profiles or not profiles[name].is_clock:
            usual.setdefault(word, []).append(name)
    known = [usual[word] for word in TIME_NAMES if word in usual]
    if known and not is_nested and (names[known[0][-1]] == "eventdate" or len(times) != 1):
        return known[0][-1]
    if len(times) == 1:
        return times[0]
    return known[0][0] if known and len(known[0]) == 1 else None


def _check_clocks(file: KnownFile, time: str, profiles: Mapping[str, _Profile]) -> None:
    """Raise UsageError if the event's times are whole days, and another column has times of day."""
    clocks = [name for name, profile in profiles.items() if profile.is_clock]
    if clocks and time in profiles and profiles[time].are_days:
        choice = " or ".join(f"--time-field {shlex.quote(f'{time},{clock}')}" for clock in clocks[:3])
        raise UsageError(
            f"the column {time} of {file.source.name} has days, and times of day are in {', '.join(clocks)}",
            hint=f"read both with {choice}; or the days alone with --time-field {shlex.quote(time)}",
        )


def _check_line_ends(head: FileHead, kind: FileKind) -> None:
    """Raise UsageError if the lines of a file end with carriage returns alone, and its kind needs line feeds."""
    if head.has_returns and kind.name in _NEEDS_LINE_FEEDS:
        raise UsageError(f"lines of {head.name} end with carriage returns alone", reason="carriage-returns")


def _check_digits(reader: FileReader, file: KnownFile, columns: Columns, clock: str) -> None:
    """Raise UsageError if the times of day are numbers of at most four digits, which may be hours or minutes."""
    rows = reader.rows(file, f"SELECT ({columns.sql[clock]})::VARCHAR FROM {columns.table} LIMIT {LOOKED_AT}")
    times = [value for (value,) in rows if value]
    if times and all(re.fullmatch(r"\d{1,4}", value) for value in times):
        raise UsageError(
            f"times of day in {clock} of {file.source.name} such as {shown(times[0])} may be hours, minutes or seconds",
            reason="unclear-times-of-day",
        )


def _check_times(file: KnownFile, profile: _Profile, times: TimeFormat) -> None:
    """Raise UsageError if the times of the file's events are ambiguous."""
    if profile.slashed is not None and times.format is None:
        raise UsageError(
            f"dates of {file.source.name} such as {shown(profile.slashed)} may have the day or the month first",
            hint="add --time-format %d/%m if the day is first, or --time-format %m/%d if the month is first",
        )
    if profile.abbreviated is not None and times.zone is None and times.spec is None:
        raise unclear_zone(file.source.name, profile.abbreviated)


def _check_heading(reader: FileReader, file: KnownFile, times: TimeFormat) -> None:
    """Raise UsageError if the name of a csv column is a time or a number. The first line is then not a heading."""
    names = [name for name in file.names if re.search(r"\d", name)]
    orders = [times.format] if times.spec is None and times.format is not None else ORDERS
    read = [text_as_time("name", TimeFormat("UTC", order)) for order in orders]
    if times.spec is not None:
        read.append(as_time("name", Type.STR, times))
    values = f"(SELECT unnest([{', '.join(map(literal, names))}]) AS name)"
    sql = f"SELECT name FROM {values} WHERE coalesce({', '.join(read)}) IS NOT NULL"
    dates = {str(name) for (name,) in reader.rows(file, sql)} if names else set()
    data = [name for name in names if name in dates or _DATA.match(name)]
    if data:
        raise UsageError(
            f"the first line of {file.source.name} looks like data: {shown(data[0])}; it must name the columns",
            reason="no-column-names",
        )


def _single_line(file: KnownFile) -> UsageError:
    """Return the error for a csv file with only one line, which may be data or the names of columns."""
    line = shown(file.heading.first if file.heading else "")
    return UsageError(
        f"{file.source.name} has only one line, and it is not clear whether it names columns: {line}",
        reason="no-column-names",
    )
