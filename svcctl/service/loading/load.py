"""Loading files into a table, in one transaction: a load that fails leaves nothing, however many files it has.

Each file is recognised from its head, and then read once. A row whose time cannot be read, or that does not fit the
table, is skipped and counted.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from svcctl.errors import SvcctlError, UsageError
from svcctl.service.engines import ARROW, AlreadyLoaded, TableExists, Tables, check_table_name
from svcctl.service.engines.duckdb.text import LINE
from svcctl.service.language.printer import name_text
from svcctl.service.language.types import Column, Type
from svcctl.service.loading.decompression import Source
from svcctl.service.loading.events import BITS, MARKS, MISFIT, SKIPPED, UNCLEAR, select
from svcctl.service.loading.files import FileReader, reading
from svcctl.service.loading.outcome import Change, Finding, LoadResult, Skip, Tally, some
from svcctl.service.loading.readers import Misfit
from svcctl.service.loading.recognition import CONVERT, LOOKED_AT, TIME_NAMES, Layout, Recogniser, Unframed, Wishes
from svcctl.service.loading.times import DAY, EITHER, MONTH, comes_first
from svcctl.service.loading.values import merged

ENTRIES: Mapping[str, str] = {
    "ndjson": "a JSON object",
    "json": "a JSON object",
    "access": "a line of an access log",
    "log": "a line with a time",
    "syslog": "a line of syslog",
    "logfmt": "a line of key=value",
}
"""What messages call an entry of each kind of file."""
_DESCRIBE = (
    "describe how it is written with --time-format, such as 'dd/MM/yyyy HH:mm:ss', or name another column with "
    "--time-field, or two as DATE,TIME"
)
_PUT_TIME = 'put one before each: sed "s/^/$(date -u +%FT%TZ) /" FILE | svcctl service load - -t …'
_NOTHING = "nothing was changed"
_NUMBERS = (Type.INT4, Type.INT8, Type.FLOAT8)


def load(
    engine: Tables,
    sources: Sequence[Source],
    table: str,
    wishes: Wishes,
    go_on: Callable[[], None],
    *,
    load_id: str | None = None,
) -> LoadResult | None:
    """Add the events of files to a table, which is made if necessary. None when the table has a load with this ID.

    `go_on` is called while files are read, and before others see the events; if it raises an error, the load ends with
    this error and changes nothing. When another load makes the table meanwhile, this one begins again and adds to it.
    It also begins again when the columns or types of a file turn out to be others than in its head.
    Raises UsageError when a file, its format, its time or its columns cannot be used, or there are no events. Files
    that are complete without events, such as a heading, load nothing and change nothing.
    """
    check_table_name(table)
    if table not in engine.tables():
        _check_plain(table)
    if load_id is not None and engine.has_load(table, load_id):
        return None
    whole = False
    try:
        while True:
            try:
                return _load(engine, sources, table, wishes, go_on, load_id, whole=whole)
            except TableExists:
                continue
            except Misfit:
                whole = True
    except AlreadyLoaded:
        return None


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
    *,
    whole: bool,
) -> LoadResult:
    there = table in engine.tables()
    made = not there or wishes.replace
    before = engine.events(table) if there else 0
    held = {} if made else {column.name: column.type for column in engine.table(table).columns}
    with reading(wishes.zone or "UTC", go_on) as reader:
        recogniser = Recogniser(reader, wishes, held, len(sources) == 1, whole)
        layouts, empty = _recognised(recogniser, sources)
        if not layouts and not wishes.replace:
            return LoadResult(table, (), 0, before=before, empty=tuple(empty))
        types = _types(layouts, wishes.types)
        if not made:
            types = _fitting(table, held, types, wishes)
        rows = _Rows(reader, layouts, types, wishes, empty, go_on, made=made)
        columns = tuple(Column(name, type_) for name, type_ in types.items())
        try:
            create = columns if made else None
            added = engine.append(
                table, rows.batches(), create=create, replace=wishes.replace, load_id=load_id, go_on=go_on
            )
        except (SvcctlError, Misfit):
            if rows.failure is None:
                raise
            raise rows.failure from None
    kept = engine.table(table).columns
    oldest, newest = _ms(rows.oldest), _ms(rows.newest)
    skips, changes = rows.findings()
    skipped = sum(finding.count for finding in skips)
    return LoadResult(table, kept, added, skipped, oldest, newest, before, tuple(empty), skips, changes)


def _recognised(recogniser: Recogniser, sources: Sequence[Source]) -> tuple[list[Layout], list[str]]:
    """The layouts of files that have events, and the names of the others.

    Raises UsageError if none has events and one is empty although its kind has a heading or brackets even then.
    """
    layouts, empty = [], []
    unframed: list[Unframed] = []
    for source in sources:
        try:
            layout = recogniser.layout(source)
        except Unframed as error:
            unframed.append(error)
            layout = None
        if layout is None:
            empty.append(source.name)
        else:
            layouts.append(layout)
    if unframed and not layouts:
        raise unframed[0]
    wished = recogniser.wishes.time_field
    if layouts and wished not in (None, "eventdate") and all(layout.time == "eventdate" for layout in layouts):
        raise UsageError(f"no file has a column '{wished}'", hint="leave out --time-field: all have eventdate")
    return layouts, empty


def _types(layouts: Sequence[Layout], wished: Mapping[str, str]) -> dict[str, Type]:
    """The columns of all files, eventdate first, with the wished types, or else types that hold all values."""
    found: dict[str, list[Type]] = {}
    for layout in layouts:
        for name, type_ in layout.types.items():
            found.setdefault(name, []).extend(() if name in layout.columns.blank else (type_,))
    for name, word in wished.items():
        if name not in found:
            raise UsageError(f"--types names no column '{name}'", hint=f"the columns are {', '.join(found)}")
        if word not in set(Type):
            raise UsageError(f"column '{name}' has no type '{word}'", hint=f"types are {', '.join(Type)}")
    types = {name: Type(wished[name]) if name in wished else merged(types) for name, types in found.items()}
    return {"eventdate": Type.TIMESTAMP, **types}


def _fitting(table: str, held: Mapping[str, Type], types: Mapping[str, Type], wishes: Wishes) -> dict[str, Type]:
    """The table's types for the columns of files. Raises UsageError if it lacks a column, or a wished type differs."""
    for name, word in wishes.types.items():
        if name in held and held[name] != word:
            raise UsageError(
                f"column '{name}' of table '{table}' is {held[name]} already, not {word}", hint=_retyped(name, word)
            )
    if unknown := [name for name in types if name not in held]:
        raise UsageError(
            f"table '{table}' has no column {', '.join(map(repr, unknown))}",
            hint=f"it has {', '.join(held)}; load into another table, or all files of this one with --replace "
            "('svcctl help loading' says how to add a column)",
        )
    return {name: held[name] for name in types}


def _retyped(name: str, type_: str) -> str:
    """The hint when a column of a table needs another type."""
    return (
        f"load into another table, or all files of this one with --replace --types {shlex.quote(f'{name}={type_}')} "
        "('svcctl help loading' says how to change a column)"
    )


class _Rows:
    """The rows of files, one file after the other. Rows without an eventdate are left out and counted."""

    def __init__(
        self,
        reader: FileReader,
        layouts: Sequence[Layout],
        types: Mapping[str, Type],
        wishes: Wishes,
        empty: list[str],
        go_on: Callable[[], None],
        *,
        made: bool,
    ) -> None:
        self._reader = reader
        self._layouts = layouts
        self._types = types
        self._wishes = wishes
        self._empty = empty
        self._go_on = go_on
        self._made = made
        self._now = datetime.now(UTC)
        self._tallies: list[tuple[Layout, Tally]] = []
        self.oldest: datetime | None = None
        self.newest: datetime | None = None
        self.failure: Exception | None = None

    def batches(self) -> pa.RecordBatchReader:
        """The rows in the form in which they are stored."""
        names = list(self._types)
        if len(self._layouts) == 1:
            names = ["eventdate", *self._layouts[0].types]
        schema = pa.schema([(name, ARROW[self._types[name]]) for name in names])
        return pa.RecordBatchReader.from_batches(schema, self._kept(schema))

    def _kept(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            for layout in self._layouts:
                yield from self._of(layout, schema)
            if self.oldest is None:
                raise UsageError(f"no events in {some(self._empty)}", hint=_NOTHING)
        except (SvcctlError, Misfit) as error:  # DuckDB reads the rows, and would pass on only the error's text
            self.failure = error
            raise

    def _of(self, layout: Layout, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        tally = Tally()
        self._tallies.append((layout, tally))
        doubts = _Doubts(layout)
        seen = 0
        self._reader.stream(layout.file, tally)
        for batch in self._reader.batches(layout.file, select(layout, self._types, self._now)):
            self._go_on()
            for structure in batch.column(MISFIT).unique().to_pylist():
                if structure is not None and not layout.columns.fits(structure):
                    raise Misfit
            dates = batch.column("eventdate")
            _count_skips(tally, batch.filter(dates.is_null()) if dates.null_count else batch.slice(0, 0))
            kept = batch.filter(dates.is_valid()) if dates.null_count else batch
            doubts.see(batch, kept)
            _count_changes(tally, kept)
            self._extend(kept)
            seen += batch.num_rows
            tally.rows += kept.num_rows
            if seen >= LOOKED_AT and not tally.rows:
                break
            yield _shaped(kept, schema)
        self._go_on()
        doubts.settle()
        self._check(layout, tally, seen)

    def _check(self, layout: Layout, tally: Tally, seen: int) -> None:
        """Raise UsageError if no row of a file could be read or, with --strict, if one could not."""
        if not seen and not tally.skipped:
            self._empty.append(layout.file.source.name)
        what = tally.first_skip
        if what is None or (tally.rows and not self._wishes.strict):
            return
        finding = self._finding(layout, tally, what)
        hint = (
            self._remedy(layout, finding) if not tally.rows else f"{_NOTHING}; without --strict such lines are skipped"
        )
        if what is Skip.ENCODING:
            hint = CONVERT
        raise UsageError(f"{layout.file.source.name} could not be read: {finding.place}: {finding.sentence}", hint=hint)

    def _remedy(self, layout: Layout, finding: Finding) -> str:
        """The hint for a file of which no row could be read."""
        log = layout.file.kind.name == "log"
        if finding.what is Skip.TYPE:
            (name,) = finding.fields
            is_number = re.fullmatch(r"-?\d+(\.\d+)?", finding.value or "") and self._types[name] is not Type.FLOAT8
            type_ = Type.FLOAT8 if is_number else Type.STR
            if not self._made:
                return _retyped(name, type_)
            return f"read it as another type, such as with --types {shlex.quote(f'{name}={type_}')}"
        if finding.what is not Skip.TIME and not (log and finding.what is Skip.ENTRY):
            return _NOTHING
        if self._wishes.time_format is not None:
            return f"it is not written as in --time-format '{self._wishes.time_format}'"
        return f"{_DESCRIBE}; if there is none, {_PUT_TIME}" if log else _DESCRIBE

    def _extend(self, kept: pa.RecordBatch) -> None:
        if kept.num_rows:
            ends = pc.min_max(kept.column("eventdate")).as_py()
            self.oldest = min(filter(None, (self.oldest, ends["min"])))
            self.newest = max(filter(None, (self.newest, ends["max"])))

    def findings(self) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
        """What was skipped and what was changed in all files, each with the place in the first file that has it."""
        found: dict[Skip | Change, Finding] = {}
        for layout, tally in self._tallies:
            one_of = f"{layout.file.source.name}, " if len(self._layouts) > 1 else ""
            met = [self._finding(layout, tally, what) for what in tally.found]
            for finding in (*(replace(one, place=one_of + one.place) for one in met), *self._chosen(layout, tally)):
                if not self._is_told(finding):
                    continue
                had = found.get(finding.what)
                found[finding.what] = finding if had is None else replace(had, count=had.count + finding.count)
        skips = tuple(found[what] for what in Skip if what in found)
        return skips, tuple(found[what] for what in Change if what in found)

    def _is_told(self, finding: Finding) -> bool:
        """Whether a change concerns types that the user or the table has not chosen."""
        if finding.what not in (Change.TEXT, Change.MIXED, Change.COMMAS, Change.OBJECTS, Change.TIMES):
            return True
        return self._made and any(name not in self._wishes.types for name in finding.fields)

    def _finding(self, layout: Layout, tally: Tally, what: Skip | Change) -> Finding:
        count, line, value, name = tally.found[what]
        fields: tuple[str, ...] = (name,) if name else ()
        place, remedy = f"{layout.file.unit} {line}", ""
        if isinstance(what, Change):
            columns = layout.marks(what)
            examples = [layout.columns.examples[what, one] for one in columns if (what, one) in layout.columns.examples]
            fields = tuple(filter(None, columns)) or fields
            if examples:
                value, place, remedy = examples[0].value, examples[0].place, examples[0].remedy
            if what is Change.TEXT:
                remedy = shlex.quote(",".join(example.remedy for example in examples))
            elif what is Change.TIMES:
                fields = tuple(one for one in layout.others if self._types.get(one) is Type.STR)
        elif what is Skip.TYPE:
            remedy = str(self._types[name])
        elif what is Skip.ENTRY:
            remedy = ENTRIES[layout.file.kind.name]
        return Finding(what, count, place, value, fields, remedy)

    def _chosen(self, layout: Layout, tally: Tally) -> Iterator[Finding]:
        """What was decided for a whole file: the column of the time, and columns that another file makes text."""
        time, others = layout.time, layout.others
        is_usual = time.casefold() == "eventdate" or (not others and time.casefold() in TIME_NAMES)
        if not (layout.is_named or is_usual):
            rest = f", not from {some(others)}" if others else ""
            yield Finding(Change.COLUMN, tally.rows, layout.file.source.name, None, (time, *others), rest)
        numbers = {name: type_ for name, type_ in layout.types.items() if type_ in _NUMBERS}
        mixed = tuple(name for name in numbers if self._types[name] is Type.STR)
        for other in self._layouts if mixed else ():
            if other.types.get(mixed[0], Type.INT8) not in _NUMBERS and mixed[0] not in other.columns.blank:
                wish = ",".join(f"{name}={numbers[name]}" for name in mixed)
                yield Finding(Change.MIXED, tally.rows, other.file.source.name, None, mixed, shlex.quote(wish))
                return


class _Doubts:
    """What the dates of a file leave open: which of day and month comes first, and zones with several meanings."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._either: str | None = None
        self._has_day = False
        self._zones: dict[str, None] = {}

    def see(self, batch: pa.RecordBatch, kept: pa.RecordBatch) -> None:
        """Look at the dates of a batch. Raises UsageError for a date that has the month first."""
        if batch.column(UNCLEAR).null_count == batch.num_rows:
            return
        if kept.num_rows < batch.num_rows:
            left = batch.filter(batch.column("eventdate").is_null())
            for date, line in zip(left.column(UNCLEAR).to_pylist(), left.column(LINE).to_pylist(), strict=True):
                first = None if date is None else comes_first(date)
                self._has_day |= first == DAY
                if first == MONTH:
                    raise self._month_first(date, line)
        for date in kept.column(UNCLEAR).unique().to_pylist():
            if date is not None and date.isalpha():
                self._zones[date] = None
            elif date is not None and not self._has_day:
                first = comes_first(date)
                self._has_day = first == DAY
                if first == EITHER and self._either is None:
                    self._either = date

    def settle(self) -> None:
        """Raise UsageError if the dates of the file can be read in several ways."""
        name = self._layout.file.source.name
        if self._either is not None and not self._has_day:
            raise UsageError(
                f"dates of {name} such as '{self._either}' may have the day or the month first",
                hint="say which with --time-format dd/MM or --time-format MM/dd",
            )
        if self._zones and (self._layout.times.zone is None or len(self._zones) > 1):
            zones, several = some(list(self._zones)), len(self._zones) > 1
            raise UsageError(
                f"times of {name} have the zone{'s' * several} {zones}, which {'mean' if several else 'means'} several",
                hint="write their offsets, such as +08:00, in the file"
                if several
                else "name the one that it means with --time-zone, such as America/Chicago",
            )

    def _month_first(self, date: str, line: int) -> UsageError:
        layout = self._layout
        return UsageError(
            f"{layout.file.source.name} could not be read: {layout.file.unit} {line}: {layout.time} '{date}' has the "
            "month first, and such dates are read as day/month",
            hint="give --time-format MM/dd; with dd/MM such lines are skipped",
        )


def _count_skips(tally: Tally, left: pa.RecordBatch) -> None:
    for reason, line in zip(left.column(SKIPPED).to_pylist(), left.column(LINE).to_pylist(), strict=True):
        tally.add(Skip(reason["what"]), line, reason["value"], column=reason["name"])


def _count_changes(tally: Tally, kept: pa.RecordBatch) -> None:
    marks = kept.column(MARKS)
    for found in pc.value_counts(marks).to_pylist():
        for change, bit in BITS.items():
            if found["values"] & bit:
                value, name, row = None, "", 0
                if change not in tally.found:
                    row = pc.index(marks, found["values"]).as_py()
                    value, name = _finer(kept, row) if change is Change.FINER else (None, "")
                line = kept.column(LINE)[row].as_py() if change not in tally.found else tally.found[change][1]
                tally.add(change, line, value, column=name, count=found["counts"])


def _finer(kept: pa.RecordBatch, row: int) -> tuple[str, str]:
    """The first time of a row that is finer than a millisecond, and its column."""
    for name in kept.schema.names:
        time = kept.column(name)[row].as_py() if pa.types.is_timestamp(kept.schema.field(name).type) else None
        if time is not None and time.microsecond % 1000:
            return str(time), name
    return "", ""


def _shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with the columns of all files; columns that its own file lacks are null."""
    own = set(batch.schema.names)
    columns = [
        batch.column(field.name).cast(field.type) if field.name in own else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.replace(tzinfo=UTC).timestamp() * 1000)
