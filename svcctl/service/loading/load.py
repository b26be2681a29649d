"""Loading files into a table, in one transaction: a load that fails leaves nothing, however many files it has.

A row whose time cannot be read, or that does not fit the table, is skipped and counted, and the first such row is
reported with its place and the reason. `files.py` reads files and decides the types of their columns.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from svcctl.errors import ServiceError, SvcctlError, UsageError
from svcctl.service.engines import ARROW, AlreadyLoaded, TableExists, Tables, check_table_name
from svcctl.service.engines.duckdb.text import LINE, UNCLEAR
from svcctl.service.language.printer import name_text
from svcctl.service.language.types import Column, Type
from svcctl.service.loading.csv import NOT_UTF8
from svcctl.service.loading.decompression import ENDINGS
from svcctl.service.loading.fields import (
    DAY,
    EITHER,
    MONTH,
    first_of,
    merged,
    slashed_pattern,
    strptime_format,
    written_as,
)
from svcctl.service.loading.fields import UTC as UTC_ZONE
from svcctl.service.loading.files import (
    EventFile,
    FileReader,
    GivenFile,
    Skipped,
    first_lines,
    named,
    readable,
    reading,
)
from svcctl.service.loading.kinds import FILE_KINDS, FileKind, LogTime, known_kind, log_time, looks_log, unread
from svcctl.service.loading.lines import shown
from svcctl.service.loading.readers import NoEvents, Odd
from svcctl.words import counted

TIME_NAMES = ("timestamp", "@timestamp", "time", "date", "datetime", "ts", "epoch", "__realtime_timestamp")
"""Names of columns with the event's time, the likeliest first; `eventdate` comes before all of them."""
MOST_NOTED = 3
"""How many columns of text get a note of their own, if they are text because of a few values."""
AHEAD = timedelta(minutes=1)
"""An event later than this from now is in the future; clocks differ by less."""
_FRAMED = ("csv", "tsv", "json", "parquet")
"""Kinds of file that have a heading or brackets even without events."""
_DATED = re.compile(r"\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}\b|[A-Z][a-z]{2,8}\.? \d{1,2},? (\d{4}\b|\d{1,2}:\d\d)")
"""The beginning of dates that are not read without a format, such as those with the month first."""
_NUMBERS = (Type.INT4, Type.INT8, Type.FLOAT8)
_ODD = "odd "
_DESCRIBE = "describe how it is written with --time-format, such as 'dd/MM/yyyy HH:mm:ss'"
_PUT_TIME = 'put one before each: sed "s/^/$(date -u +%FT%TZ) /" FILE | svcctl service load - -t …'
_MEMBERS = (
    """jq -c 'reduce (to_entries[] | select(.value|type=="object")) as $o (.; del(.[$o.key]) + ($o.value | """
    """with_entries(.key |= $o.key+"_"+.)))' FILE | svcctl service load - -t …"""
)
"""Turns {"http": {"status": 200}} into a member http_status; each further level needs another jq."""
_CONVERT = "convert the text to UTF-8: iconv -f latin1 -t utf-8 FILE | svcctl service load - -t …"


@dataclass(frozen=True, slots=True)
class Source:
    """A file to load, and how messages name it."""

    path: Path
    name: str


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


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The result of a load: rows added and skipped, and the first skipped row with the reason.

    `oldest` and `newest` are the first and last date of the added rows, in epoch milliseconds. `before` is how many
    events the table had before, and `empty` names the files without events. `notes` tell how files were read, where
    this may be wrong.
    """

    table: str
    columns: tuple[Column, ...]
    rows: int
    skipped: int = 0
    first_skipped: str | None = None
    oldest: int | None = None
    newest: int | None = None
    before: int = 0
    empty: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def load(
    engine: Tables,
    sources: Sequence[Source],
    table: str,
    wishes: Wishes,
    go_on: Callable[[], None] = lambda: None,
    *,
    load_id: str | None = None,
) -> LoadResult | None:
    """Add the events of files to a table, which is made if necessary. None when the table has a load with this ID.

    `go_on` is called while files are read, and before others see the events; if it raises an error, the load ends with
    this error and changes nothing. When another load makes the table meanwhile, this one begins again and adds to it.
    Raises UsageError when a file, its format, its time or its columns cannot be used, or there are no events. Files
    that are complete without events, such as a heading, load nothing and change nothing.
    """
    check_table_name(table)
    if table not in engine.tables():
        _check_plain(table)
    if load_id is not None and engine.has_load(table, load_id):
        return None
    try:
        try:
            return _load(engine, sources, table, wishes, go_on, load_id)
        except TableExists:
            return _load(engine, sources, table, wishes, go_on, load_id)
    except AlreadyLoaded:
        return None


def _opened(
    reader: FileReader,
    source: Source,
    given: GivenFile,
    wishes: Wishes,
    spec: str | None,
    held: Mapping[str, Type],
    *,
    is_alone: bool,
) -> tuple[EventFile, str] | None:
    """Open a file. Returns it with its column of the time; None if the file is complete and has no events."""
    try:
        file = reader.open(given)
    except NoEvents:
        return None
    if file.is_empty:
        _check_heading(file, spec)
        for name in file.columns:
            _check_is_name(file, name, spec)
        return None
    _check_text(file)
    wished = _wished_time(file, wishes.time_field)
    time = _time_field(file, wished, spec, is_alone=is_alone)
    if given.kind == "logfmt" and wishes.format is None and _holds_lines(held, file, time):
        file = reader.open(_given(source, "log", spec) or given)
        time = _time_field(file, wishes.time_field, spec)
    if file.clock is None:
        file.find_clock(time, spec, guessed=wished is None)
    return file, time


def _check_plain(table: str) -> None:
    """Raise UsageError if queries could name the table only in back quotes."""
    for part in table.split("."):
        if name_text(part) != part:
            why = "begins with a digit" if part[0].isdigit() else "is a word of the query language"
            plain = table.replace(part, f"t{part}" if part[0].isdigit() else f"{part}_")
            raise UsageError(f"'{table}' cannot name a table: {part} {why}", hint=f"use another name, such as {plain}")


def _load(
    engine: Tables,
    sources: Sequence[Source],
    table: str,
    wishes: Wishes,
    go_on: Callable[[], None],
    load_id: str | None,
) -> LoadResult:
    spec = _spec(wishes.time_format)
    there = table in engine.tables()
    made = not there or wishes.replace
    before = engine.events(table) if there else 0
    held = {} if made else {column.name: column.type for column in engine.table(table).columns}
    stored = _Stored(table, held, before, None if made else engine.newest(table), load_id)
    with reading(wishes.zone or UTC_ZONE, go_on) as reader:
        files: list[tuple[EventFile, str]] = []
        empty: list[str] = []
        whole: list[str] = []
        alone = len(sources) == 1
        for source in sources:
            given = _given(source, wishes.format, spec)
            opened = None if given is None else _opened(reader, source, given, wishes, spec, held, is_alone=alone)
            if opened is not None:
                files.append(opened)
            elif given is None and not _is_of_lines(source, wishes.format):
                empty.append(source.name)
            else:
                whole.append(source.name)
        if whole and not (files or empty or wishes.replace):
            return LoadResult(table, (), 0, before=before, empty=tuple(whole))
        if empty and not files:
            raise UsageError(f"no events in {_some(empty)}, and not even a heading", hint="nothing was changed")
        empty += whole
        if spec is not None and (dated := [file for file, _ in files if file.is_dated]):
            raise UsageError(f"--time-format does not apply to {dated[0].given.name}: its format has its own")
        types = _types(files, wishes.types)
        if not made:
            types = _fitting(stored, types, wishes)
        rows = _Rows(files, empty, types, spec, wishes, go_on, None if made else stored)
        rows.check()
        columns = tuple(Column(name, type_) for name, type_ in types.items())
        try:
            create = columns if made else None
            added = engine.append(
                table, rows.batches(), create=create, replace=wishes.replace, load_id=load_id, go_on=go_on
            )
        except ServiceError:
            if rows.failure is None:
                raise
            raise rows.failure from None
    kept = engine.table(table).columns
    oldest, newest = _ms(rows.oldest), _ms(rows.newest)
    return LoadResult(table, kept, added, rows.count, rows.first, oldest, newest, before, tuple(empty), rows.told())


@dataclass(frozen=True, slots=True)
class _Stored:
    """The table that files are added to, with hints for rebuilding it with other columns or types."""

    table: str
    types: Mapping[str, Type]
    events: int
    newest: datetime | None
    load_id: str | None
    """The ID of the load. If there is one, earlier loads may have had IDs, which a rebuilt table does not know."""

    def retyped(self, name: str, type_: Type) -> str:
        """The hint when a column needs another type."""
        making = f"change {name} to {type_} and load again{self._forgetting}: "
        return f"load into another table, or {self._anew(making, {**self.types, name: type_}, {name}, '', ' --strict')}"

    def widened(self, wishes: Wishes) -> str:
        """The hint when files have columns that the table lacks; `wishes` are the options of the load."""
        if wishes.format is not None:  # --format would apply to the copy of the table, too
            return "load into another table"
        making = f"make this one anew with its events and the file{self._forgetting}: "
        how = {
            "--id": self.load_id,
            "--time-field": wishes.time_field,
            "--time-format": wishes.time_format,
            "--time-zone": wishes.zone,
        }
        options = "".join(f" {option} {shlex.quote(value)}" for option, value in how.items() if value)
        anew = self._anew(making, {**self.types, **wishes.types}, set(wishes.types), " FILE", options)
        return f"load into another table, or {anew}"

    @property
    def _forgetting(self) -> str:
        return "" if self.load_id is None else " (the table forgets the IDs of its loads)"

    def _anew(self, making: str, types: Mapping[str, str], changed: set[str], file: str, options: str) -> str:
        """The commands that rebuild the table with its events, unless some are in the future: a query ends now."""
        if self.newest is not None and self.newest >= datetime.now(UTC).replace(tzinfo=None):
            held = f"{counted(self.events, 'event')}"
            return f"load all files of this one with --replace, which drops its {held}"
        # A parquet file keeps all types but ip4.
        given = ",".join(f"{name}={type_}" for name, type_ in types.items() if type_ is Type.IP4 or name in changed)
        wished = f" --types {shlex.quote(given)}" if given else ""
        copy = f"{self.table}.parquet"
        query = f"svcctl -p local query 'from {self.table}' --from 1970-01-01 -f parquet -o {copy}"
        return f"{making}{query} && svcctl service load {copy}{file} -t {self.table} --replace{options}{wished}"


class _Rows:
    """The rows of files, one file after the other. Rows without an eventdate are left out and counted."""

    def __init__(
        self,
        files: Sequence[tuple[EventFile, str]],
        empty: list[str],
        types: Mapping[str, Type],
        spec: str | None,
        wishes: Wishes,
        go_on: Callable[[], None],
        stored: _Stored | None,
    ) -> None:
        self._go_on = go_on
        self._stored = stored
        self._files = files
        self._empty = empty
        self._types = types
        self._spec = spec
        self._wishes = wishes
        self.kept = self.early = self.count = 0
        self._soon = pa.scalar(datetime.now(UTC).replace(tzinfo=None) + AHEAD, pa.timestamp("us"))
        self.first: str | None = None
        self.oldest: datetime | None = None
        self.newest: datetime | None = None
        self.failure: SvcctlError | None = None
        self.notes: dict[str, str] = {}
        """One note for each subject: the first file that has something to note."""

    def check(self) -> None:
        """Raise UsageError if the first rows of a file cannot be used, before all of it is read."""
        wished = self._wishes.time_field
        if wished not in (None, "eventdate") and self._files and all(time == "eventdate" for _, time in self._files):
            raise UsageError(f"no file has a column '{wished}'", hint="leave out --time-field: all have eventdate")
        for file, time in self._files:
            seen, usable, begins = file.usable(time, self._types, self._spec)
            if begin := _orders(begins).get(MONTH):
                raise _month_first(file, time, begin)
            if seen and not usable:
                raise self._refused(file, file.skipped(time, self._types, self._spec, seen, (0, file.first_line())))
            if file.clock is not None:
                self.notes["time"] = f"dates were read from two columns: {time} and {file.clock}"
            elif file.clocks:
                self.notes["time"] = _midnight(time, file.clocks)
            elif self._wishes.time_field is None and "time" not in self.notes and (note := self._of_time(file, time)):
                self.notes["time"] = note

    def _of_time(self, file: EventFile, time: str) -> str | None:
        """The note about the column of the time if it could be another column, or if its name is unusual; else None."""
        if time.casefold() == "eventdate":
            return None
        others = [name for name in file.times(self._spec) if name != time]
        if not others and time.casefold() in TIME_NAMES:
            return None
        return f"dates were read from the column {time}{f', not from {_some(others)}' if others else ''}"

    def told(self) -> tuple[str, ...]:
        """All notes. Columns that are text because of a few values share a last note if they are many."""
        if self.early:
            zone = "" if self._wishes.zone else "; if the times are local ones, name their zone with --time-zone"
            early = counted(self.early, "event is", "events are")
            self.notes["future"] = f"{early} in the future: a query that ends now does not have them{zone}"
        odd = [about for about in self.notes if about.startswith(_ODD)]
        if len(odd) <= MOST_NOTED + 1:
            return tuple(self.notes.values())
        more = _some([about.removeprefix(_ODD) for about in odd[MOST_NOTED:]])
        last = f"{len(odd) - MOST_NOTED} more columns are text, not numbers, because of a few values: {more}"
        return *(note for about, note in self.notes.items() if about not in odd[MOST_NOTED:]), last

    def batches(self) -> pa.RecordBatchReader:
        """The rows in the form in which they are stored."""
        names = list(self._types)
        if self._files and len(self._files) == 1:
            file, time = self._files[0]
            names = ["eventdate", *(name for name in file.columns if name != time)]
        schema = pa.schema([(name, ARROW[self._types[name]]) for name in names])
        return pa.RecordBatchReader.from_batches(schema, self._kept(schema))

    def _kept(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            for file, time in self._files:
                with readable(file.given):
                    yield from self._of(file, time, schema)
            if not self.kept:
                raise self._none()
        except SvcctlError as error:  # DuckDB reads the rows, and would pass on only the error's text
            self.failure = error
            raise

    def _of(self, file: EventFile, time: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        seen = dropped = 0
        first: tuple[int, int | None] | None = None
        orders: dict[str | None, str] = {}
        """For each of DAY, MONTH and EITHER, the beginning of the first such date."""
        zones: dict[str, None] = {}
        with file.events(time, self._types, self._spec) as batches:
            for batch in batches:
                self._go_on()
                dates = batch.column("eventdate")
                if dates.null_count:
                    if begin := _orders(_unclear(batch.filter(dates.is_null()))).get(MONTH):
                        orders[MONTH] = begin
                        break
                    if first is None:
                        row = dates.is_null().index(True).as_py()
                        line = batch.column(LINE)[row].as_py() if LINE in batch.schema.names else None
                        first = seen + row, line
                    dropped += dates.null_count
                seen += batch.num_rows
                kept = batch.filter(dates.is_valid()) if dates.null_count else batch
                unclear = _unclear(kept)
                orders = _orders(unclear) | orders
                zones |= dict.fromkeys(found for found in unclear if found and found.isalpha())
                self._note(kept)
                yield _shaped(kept, schema)
        self._go_on()
        if MONTH in orders:
            raise _month_first(file, time, orders[MONTH])
        skipped = file.skipped(time, self._types, self._spec, dropped, first)
        if not seen and not skipped.count:
            self._empty.append(file.given.name)
        if self._wishes.strict and skipped.first is not None:
            raise UsageError(
                f"{file.given.name} could not be read: {skipped.first}",
                hint=_CONVERT
                if NOT_UTF8 in skipped.first
                else "nothing was changed; without --strict such lines are skipped",
            )
        self.count += skipped.count
        if self.first is None and skipped.first is not None:
            self.first = skipped.first if len(self._files) == 1 else f"{file.given.name}, {skipped.first}"
        if EITHER in orders and DAY not in orders and "order" not in self.notes:
            self.notes["order"] = _day_first(file, time, orders[EITHER])
        if self._stored is None:
            self._note_types(file, time, skipped)
        self._note_unread(file, time, list(zones))
        if NOT_UTF8 in (skipped.first or ""):
            self.notes["text"] = _CONVERT

    def _note_unread(self, file: EventFile, time: str, zones: Sequence[str]) -> None:
        """Note values that became null, fields of lines that were left out, and zones that mean several."""
        if names := sorted(file.infinite):
            self.notes.setdefault("infinite", f"NaN and infinite values of {_some(names)} were read as null")
        if file.given.rest:
            self.notes.setdefault("rest", _left_out(file.given))
        if file.given.kind != "log":
            for zone in zones:
                if f"zone {zone}" not in self.notes:
                    self.notes[f"zone {zone}"] = _read_zone(file, time, zone)
        elif zones and self._wishes.zone is None:
            self.notes.setdefault("zone", f"the zone {zones[0]}, which names several, was not read; give --time-zone")

    def _note_types(self, file: EventFile, time: str, skipped: Skipped) -> None:
        """Note columns whose types may not be what the user expects.

        These are columns of times, which stay text without --types, columns of JSON objects, types that skipped lines
        would fit, commas in numbers, and columns of numbers that are text because of a few values.
        """
        dated = [name for name in file.times(None) if name != time and name not in self._wishes.types]
        if dated := [name for name in dated if self._types[name] is Type.STR]:
            wish = shlex.quote(",".join(f"{name}={Type.TIMESTAMP}" for name in dated))
            are, them = ("is", "it") if len(dated) == 1 else ("are", "them")
            self.notes.setdefault("times", f"{_some(dated)} {are} text; --types {wish} makes times of {them}")
        if inside := [name for name in file.objects if name != time and name not in self._wishes.types]:
            are = "is" if len(inside) == 1 else "are"
            self.notes.setdefault("objects", f"{_some(inside)} {are} JSON text; for columns of the members: {_MEMBERS}")
        if skipped.types is not None and skipped.types.rpartition("=")[0] not in self._wishes.types:
            self.notes.setdefault("types", f"--types {shlex.quote(skipped.types)} keeps such values")
        read = [name for name in file.commas if name != time and name not in self._wishes.types]
        if read := [name for name in read if self._types[name] in _NUMBERS]:
            self.notes.setdefault("commas", _read_commas(file, read))
        for name, odd in file.odd.items():
            if name != time and name not in self._wishes.types:
                self._note_odd(file, name, odd)
        for name, type_ in file.columns.items():
            if type_ in _NUMBERS and self._types.get(name) is Type.STR and name not in self._wishes.types:
                having = (other for other, _ in self._files if name in other.columns and name not in other.blank)
                other = next(other for other in having if other.columns[name] not in _NUMBERS)
                self._note_text(name, type_, f"its values in {other.given.name}", "takes lines with numbers only")

    def _note_odd(self, file: EventFile, name: str, odd: Odd) -> None:
        """Note the value by which a column of numbers is text, or a number whose dot may separate thousands."""
        if odd.decimal_comma and odd.whole and self._types[name] is Type.FLOAT8:
            keep = f"--types {shlex.quote(f'{name}={Type.STR}')} keeps the text"
            said = f"{shown(odd.value)} of {name} in {odd.place} is {float(odd.value):.15g}"
            self.notes.setdefault("dots", f"{said}; if dots separate thousands there, {keep}")
        if self._types[name] is not Type.STR or (odd.value.isdigit() and not odd.strings):
            return
        place = f"{file.given.name}, {odd.place}" if len(self._files) > 1 else odd.place
        type_ = Type.INT8 if odd.whole else Type.FLOAT8
        if odd.decimal_comma or odd.thousands:
            commas = "decimal commas" if odd.decimal_comma else "commas between thousands"
            remedy = f"in a query, {_number(name, odd.value, decimal=odd.decimal_comma)} makes numbers of it"
            self._note_as_text(name, f"{commas} such as {shown(odd.value)} in {place}", remedy)
        elif odd.strings:
            wish = Type.FLOAT8 if "." in odd.value else type_
            remedy = f"--types {shlex.quote(f'{name}={wish}')} makes numbers of them"
            self._note_as_text(name, f"strings such as {json.dumps(odd.value)} in {place}", remedy)
        else:
            others = f" and {counted(odd.count - 1, 'other value')}" if odd.count > 1 else ""
            self._note_text(name, type_, f"{shown(odd.value)} in {place}{others}", "skips such lines")

    def _note_text(self, name: str, number: Type, why: str, effect: str) -> None:
        """Note that a column is text, although it has numbers."""
        self._note_as_text(
            name,
            why,
            f"in a query, {number}({name_text(name)}) is null there; "
            f"--types {shlex.quote(f'{name}={number}')} {effect}",
        )

    def _note_as_text(self, name: str, why: str, remedy: str) -> None:
        self.notes.setdefault(_ODD + name, f"{name} is text, not numbers, because of {why}; {remedy}")

    def _note(self, kept: pa.RecordBatch) -> None:
        if not kept.num_rows:
            return
        self.kept += kept.num_rows
        self.early += pc.sum(pc.greater(kept.column("eventdate"), self._soon)).as_py() or 0
        ends = pc.min_max(kept.column("eventdate")).as_py()
        self.oldest = min(filter(None, (self.oldest, ends["min"])))
        self.newest = max(filter(None, (self.newest, ends["max"])))
        for name in kept.schema.names if "finer" not in self.notes else ():
            if note := _cut_to_milliseconds(name, kept.column(name)):
                self.notes["finer"] = note
                return

    def _none(self) -> UsageError:
        files = [file.given.name for file, _ in self._files] or self._empty
        hint = _CONVERT if NOT_UTF8 in (self.first or "") else "nothing was changed"
        if self.first is None:
            return UsageError(f"no events in {_some(files)}", hint="nothing was changed")
        return UsageError(f"no line of {_some(files)} could be read; the first: {self.first}", hint=hint)

    def _refused(self, file: EventFile, skipped: Skipped) -> UsageError:
        log = file.given.kind == "log"
        if skipped.types is not None:
            name, _, type_ = skipped.types.rpartition("=")
            odd = file.odd.get(name)
            if self._stored is None and odd is not None and (odd.decimal_comma or odd.thousands):
                number = _number(name, odd.value, decimal=odd.decimal_comma)
                hint = f"load it as text, without --types; in a query, {number} makes numbers of it"
            elif self._stored is None:
                hint = f"read it as another type, such as with --types {shlex.quote(skipped.types)}"
            else:
                hint = self._stored.retyped(name, Type(type_))
        elif (skipped.first or "").endswith(" has no day"):
            hint = (
                "name the column of the day too, as in --time-field DATE,TIME; without one, write it before each time"
            )
        elif not (skipped.first or "").endswith(" is not a line with a time" if log else " is not a time"):
            hint = "nothing was changed"
        elif self._wishes.time_format is not None:
            hint = f"it is not written as in --time-format '{self._wishes.time_format}'"
        elif log:
            hint = f"{_DESCRIBE}; if there is none, {_PUT_TIME}"
        elif self._wishes.time_field is not None:
            hint = _DESCRIBE
        else:
            hint = f"{_DESCRIBE}, or name another field with --time-field"
        return UsageError(f"{file.given.name} could not be read: {skipped.first}", hint=hint)


def _some(names: Sequence[str]) -> str:
    """The first three names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _midnight(time: str, clocks: Sequence[str]) -> str:
    """The note about dates without a time of day, when columns have times of day that may belong to them."""
    hold, each = ("holds", "reads both") if len(clocks) == 1 else ("hold", "reads one of them, too")
    wish = shlex.quote(f"{time},{clocks[0]}")
    return (
        f"dates were read from the column {time} and all are at midnight; {_some(clocks)} {hold} times of day: "
        f"--time-field {wish} {each}"
    )


def _left_out(given: GivenFile) -> str:
    """The note about fields at the end of lines that are not read."""
    return f"{given.name} has fields that common and combined logs do not have; they were left out: {shown(given.rest)}"


def _cut_to_milliseconds(name: str, times: pa.Array) -> str | None:
    """The note about a column with times finer than a millisecond; None for other columns."""
    if not pa.types.is_timestamp(times.type):
        return None
    finer = pc.index(pc.not_equal(times, pc.floor_temporal(times, unit="millisecond")), True).as_py()
    if finer < 0:
        return None
    time = times[finer].cast(pa.string()).as_py()
    whole, point, fraction = time.partition(".")
    return f"times are kept to the millisecond: {time} of {name} is {whole}{point}{fraction[:3]}"


def _unclear(batch: pa.RecordBatch) -> list[str | None]:
    """The distinct values of the column UNCLEAR: beginnings of dates with slashes, and zones that mean several."""
    return list(batch.column(UNCLEAR).unique().to_pylist())


def _orders(begins: Sequence[str | None]) -> dict[str | None, str]:
    """For each of DAY, MONTH and EITHER, the first of the beginnings of dates that has it."""
    return {first_of(begin): begin for begin in reversed(begins) if begin is not None}


def _read_commas(file: EventFile, names: Sequence[str]) -> str:
    """The note about columns whose numbers have decimal commas, or commas between thousands."""
    first = file.commas[names[0]]
    if first.thousands:
        commas, number = "commas between thousands", float(first.value.replace(",", ""))
    else:
        commas, number = "decimal commas", float(first.value.replace(".", "").replace(",", "."))
    return (
        f"{commas} were read in {_some(names)}: {shown(first.value)} in {first.place} is {number:.15g}; "
        f"--types {shlex.quote(f'{names[0]}={Type.STR}')} keeps the text"
    )


def _number(name: str, value: str, *, decimal: bool) -> str:
    """The expression of a query that makes numbers of a text column with commas as in `value`."""
    text = name_text(name)
    if not decimal:
        return f'float8(replaceall({text}, ",", ""))'
    without = f'replaceall({text}, ".", "")' if "." in value else text
    return f'float8(replaceall({without}, ",", "."))'


def _day_first(file: EventFile, time: str, begin: str) -> str:
    """The note about dates that could have the month first, such as the date that begins with `begin`."""
    date, *_ = file.dated(time, begin)
    return (
        f"dates such as '{date}' were read as day/month; as month/day they are read with "
        f"--time-format 'MM/dd{slashed_pattern(date)}'"
    )


def _read_zone(file: EventFile, time: str, zone: str) -> str:
    """The note about an abbreviation that means several zones and was read as one of them."""
    text, _, read = file.dated(time, zone)
    return (
        f"the zone {zone}, which names several, was read so that '{text}' is {read} in UTC; for another one, write its "
        f"offset: sed 's/ {zone}/+HH:MM/' FILE | svcctl service load - -t …"
    )


def _month_first(file: EventFile, time: str, begin: str) -> UsageError:
    """The error for a file with a date that has the month first."""
    date, line, _ = file.dated(time, begin)
    place = "" if line is None else f"line {line}: "
    rest = slashed_pattern(date)
    return UsageError(
        f"{file.given.name} could not be read: {place}{time} '{date}' has the month first, and such dates are read as "
        "day/month",
        hint=f"give --time-format 'MM/dd{rest}'; 'dd/MM{rest}' skips such lines",
    )


def _shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with the columns of all files; columns that its own file lacks are null."""
    batch = batch.drop_columns([name for name in batch.schema.names[-2:] if name in (UNCLEAR, LINE)])
    if batch.schema.equals(schema):
        return batch
    own = set(batch.schema.names)
    columns = [
        batch.column(field.name).cast(field.type) if field.name in own else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.replace(tzinfo=UTC).timestamp() * 1000)


def _spec(pattern: str | None) -> str | None:
    """The format of strptime for a pattern of letters. Raises UsageError for a text that is neither."""
    if pattern is None:
        return None
    spec = strptime_format(pattern)
    if spec is None:
        raise UsageError(
            f"'{pattern}' is not a format of times", hint="write it as in dd/MM/yyyy HH:mm:ss, with text in '…'"
        )
    return spec


def _given(source: Source, format: str | None, spec: str | None) -> GivenFile | None:
    """A file with its kind: `format`, or found by its ending and its first lines. None if the file is empty.

    With `spec`, the lines of a log have times in this format.
    """
    plain = GivenFile(source.path, source.name, "")
    with named(plain):
        found = first_lines(source.path)
    if not found:
        return None
    written = written_as(spec or "")
    if spec is not None and format is None and looks_log(found[0], written):
        format = "log"
    kind = _kind(source, format, found)
    if kind.name in ("csv", "tsv") and "\0" in found[0]:
        raise UsageError(f"the first line of {source.name} has the character NUL: it is not a text file in UTF-8")
    if kind.name == "log":
        time = log_time(found, written) or (LogTime(written, written) if written else LogTime())
        if not time.is_usual:
            return GivenFile(source.path, source.name, kind.name, time.pattern, time.continuation, has_format=True)
        kind = replace(kind, pattern=time.pattern, continuation=time.continuation)
    matched = [entry for line in found if kind.pattern and (entry := re.match(kind.pattern, line))]
    rests = [rest for entry in matched if (rest := entry.string[entry.end() :].strip())]
    return GivenFile(source.path, source.name, kind.name, kind.pattern, kind.continuation, "".join(rests[:1]))


def _is_of_lines(source: Source, format: str | None) -> bool:
    """Whether an empty file is complete: a file of lines, which has neither a heading nor brackets."""
    if format is not None:
        return format not in _FRAMED
    kind = known_kind(_ending(source), ())
    return ".log" in source.path.suffixes or (kind is not None and kind.name not in _FRAMED)


def _ending(source: Source) -> str:
    """The ending of a file's name, without the ending of a compression."""
    path = source.path
    return path.with_suffix("").suffix if path.suffix in ENDINGS else path.suffix


def _kind(source: Source, name: str | None, lines: Sequence[str]) -> FileKind:
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


def _types(files: Sequence[tuple[EventFile, str]], wished: Mapping[str, str]) -> dict[str, Type]:
    """The columns of all files, eventdate first, with the wished types, or else types that hold all values."""
    found: dict[str, list[Type]] = {}
    for file, time in files:
        for name, type_ in file.columns.items():
            if name != time:
                found.setdefault(name, []).extend(() if name in file.blank else (type_,))
    for name, word in wished.items():
        if name not in found:
            raise UsageError(f"--types names no column '{name}'", hint=f"the columns are {', '.join(found)}")
        if word not in set(Type):
            raise UsageError(f"column '{name}' has no type '{word}'", hint=f"types are {', '.join(Type)}")
    types = {name: Type(wished[name]) if name in wished else merged(types) for name, types in found.items()}
    return {"eventdate": Type.TIMESTAMP, **types}


def _fitting(stored: _Stored, types: Mapping[str, Type], wishes: Wishes) -> dict[str, Type]:
    """The table's types for the columns of files. Raises UsageError if it lacks a column, or a wished type differs."""
    for name, word in wishes.types.items():
        if name in stored.types and stored.types[name] != word:
            raise UsageError(
                f"column '{name}' of table '{stored.table}' is {stored.types[name]} already, not {word}",
                hint=stored.retyped(name, Type(word)),
            )
    if unknown := [name for name in types if name not in stored.types]:
        raise UsageError(
            f"table '{stored.table}' has no column {', '.join(map(repr, unknown))}",
            hint=f"it has {', '.join(stored.types)}; {stored.widened(wishes)}",
        )
    return {name: stored.types[name] for name in types}


def _holds_lines(stored: Mapping[str, Type], file: EventFile, time: str) -> bool:
    """Whether a table has only lines of a log as text, so that it lacks columns for the keys in this file."""
    return set(stored) == {"eventdate", "message"} and not set(file.columns) <= {time, *stored}


def _wished_time(file: EventFile, wished: str | None) -> str | None:
    """The wished column of the time. If it is DATE,TIME, for two columns, the second becomes the file's clock."""
    if wished is None or wished in file.columns:
        return wished
    for comma in re.finditer(",", wished):
        day, clock = wished[: comma.start()], wished[comma.end() :].strip()
        if day in file.columns and clock in file.columns:
            if not file.has_clocks(clock):
                raise UsageError(
                    f"column '{clock}' of {file.given.name} has values that are no times of day",
                    hint=f"they are written as 10:00 or 10:00:00; --time-field {shlex.quote(day)} reads the days alone",
                )
            file.clock = clock
            return day
    return wished


def _time_field(file: EventFile, wished: str | None, spec: str | None, *, is_alone: bool = True) -> str:
    """The column of the time: `wished`, or else eventdate, the only column of times, or a column with a usual name.

    With `spec`, columns of times are those in this format. One of several files may have eventdate instead of `wished`.
    """
    if wished is not None:
        if wished not in file.columns:
            if "eventdate" in file.columns and not is_alone:
                return "eventdate"
            _check_heading(file, spec)
            raise UsageError(
                f"{file.given.name} has no column '{wished}'", hint=f"its columns are {', '.join(file.columns)}"
            )
        if wished != "eventdate" and "eventdate" in file.columns:
            raise UsageError(f"{file.given.name} has a column eventdate, so '{wished}' cannot take its place")
        return wished
    if found := [name for name in file.columns if name.casefold() == "eventdate"]:
        return found[0]
    times = file.times(spec)
    if len(times) == 1:
        _check_is_name(file, times[0], spec)
        return times[0]
    if usual := [name for word in TIME_NAMES for name in file.columns if name.casefold() == word]:
        return next((name for name in usual if not file.has_clocks(name)), usual[0])
    # If these dates have the month first, a later error tells how to read them.
    if len(slashed := [] if times or spec is not None else file.texts_of_slashed_dates()) == 1:
        _check_is_name(file, slashed[0], spec)
        return slashed[0]
    if rows := file.wrapper():
        inside = f".{rows}" if re.fullmatch(r"[A-Za-z_]\w*", rows) else f".[{json.dumps(rows)}]"
        raise UsageError(
            f"{file.given.name} is one object, and its rows are inside '{rows}'",
            hint=f"jq {shlex.quote(inside)} FILE | svcctl service load - -t …",
        )
    _check_heading(file, spec)
    several = ", ".join(times or slashed)
    if not several and spec is None and (mixed := next(file.mixed_times(), None)) is not None:
        raise _mixed(file, *mixed)
    raise UsageError(
        f"each event needs a time, and it is not clear which column of {file.given.name} has it",
        hint=f"name one of those with times with --time-field: {several}"
        if several
        else f"name it with --time-field: {', '.join(file.columns)}; if none has it, add a column of times",
    )


def _mixed(file: EventFile, name: str, other: str, line: int | None) -> UsageError:
    """The error for a column that has times and other values, of which `other` is the first."""
    place = "" if line is None else f" in line {line}"
    is_date = _DATED.match(other) is not None
    wish = "write all in one way" if is_date else f"--time-field {shlex.quote(name)} skips such lines"
    return UsageError(
        f"each event needs a time, and the column {name} of {file.given.name} has times and others: "
        f"{shown(other)}{place} is not read as one",
        hint=f"{wish}; or name another column with --time-field: {', '.join(file.columns)}",
    )


def _check_text(file: EventFile) -> None:
    """Raise UsageError if no line of csv is UTF-8: then columns have no values, and other errors would mislead."""
    if file.given.kind in ("csv", "tsv") and file.blank == set(file.columns):
        wrong = [line for line in first_lines(file.given.path)[1:] if "\N{REPLACEMENT CHARACTER}" in line]
        if wrong:
            raise UsageError(
                f"no line of {file.given.name} could be read: {NOT_UTF8}, as in {shown(wrong[0])}", hint=_CONVERT
            )


def _check_heading(file: EventFile, spec: str | None) -> None:
    """Raise UsageError if the first line of csv is a comment (`# made by …`), a title or data, not names of columns."""
    first = next(iter(file.columns))
    if file.given.kind in ("csv", "tsv") and re.match(r"#.*\s", first):
        raise UsageError(
            f"{file.given.name} begins with a comment, not with the names of its columns: {shown(first)}",
            hint="leave the comments out: grep -v '^#' FILE | svcctl service load - -t …",
        )
    lines = first_lines(file.given.path)
    if file.given.kind in ("csv", "tsv") and len(file.columns) == 1 and re.search("[,;|\t]", "".join(lines[1:])):
        raise UsageError(
            f"{file.given.name} begins with a title, not with the names of its columns: {shown(first)}",
            hint="begin with the line of the names, the Nth: tail -n +N FILE | svcctl service load - -t …",
        )
    _check_is_name(file, first, spec, numbers=True)


def _check_is_name(file: EventFile, name: str, spec: str | None, *, numbers: bool = False) -> None:
    """Raise UsageError if the name of a column of csv is a time or, with `numbers`, a number."""
    is_number = numbers and name.isdecimal()
    # DuckDB reads the words epoch and infinity as times, but they may be names.
    is_time = re.search(r"\d", name) and (_DATED.match(name) or file.is_time(name, spec))
    if file.given.kind in ("csv", "tsv") and (is_number or is_time):
        raise UsageError(
            f"the first line of {file.given.name} looks like data: {shown(name)}; it must name the columns",
            hint="put a line of names before it: (echo time,…; cat FILE) | svcctl service load - -t …",
        )
