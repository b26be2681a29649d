"""Loads files into a table in one transaction. A load that fails changes nothing, even if it has several files.

Each file is recognised from its first rows (the head), and then read once. A row with a time that cannot be read is
skipped and counted. A file with too many skipped rows is refused. A value that does not fit its column becomes null and
is counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from svcctl.api.loads import Loaded, LoadFinding, LoadOptions
from svcctl.dates.epochs import seconds_to_ms, to_ms
from svcctl.errors import SvcctlError, UsageError
from svcctl.service.engines import ARROW, Tables
from svcctl.service.engines.duckdb.syntax import LINE
from svcctl.service.engines.table_rules import AlreadyLoaded, ColumnsChanged, TableExists
from svcctl.service.language.types import Column, Type
from svcctl.service.loading.decompression import Source
from svcctl.service.loading.events import BITS, MARKS, MISFIT, NULLS, SKIPPED, select
from svcctl.service.loading.files import FileReader, reading
from svcctl.service.loading.growth import Growth, check_number, growth, wider_type
from svcctl.service.loading.limits import LoadLimits, LoadWatch
from svcctl.service.loading.recognition import LOOKED_AT, Layout, Recogniser
from svcctl.service.loading.skips import (
    NOTHING_CHANGED,
    NULLED,
    Aside,
    Change,
    Skip,
    Tally,
    sentence,
    too_many,
    too_many_strays,
    unfit,
    unread,
)
from svcctl.service.loading.values import NUMBERS, merged
from svcctl.words import choices, some


class Misfit(Exception):
    """Raised if a row of a file does not fit the columns and types of the file's first rows.

    The load then begins again, and finds the columns and types in the whole file.
    """


def load(
    engine: Tables,
    sources: Sequence[Source],
    table: str,
    options: LoadOptions,
    go_on: Callable[[], None],
    *,
    load_id: str | None = None,
    limits: LoadLimits | None = None,
    clock: Callable[[], float] = time.time,
) -> Loaded | None:
    """Add the events of files to a table. Return None if the table already has a load with this ID.

    A missing table is created. `go_on` is called while files are read, and before others can see the events. If `go_on`
    raises an error, the load ends with this error and changes nothing. A load that reaches one of the `limits` ends
    with a ServiceError.

    Another load may create the table or change its columns at the same time. Then this load begins again, and adds its
    events to the changed table. This load also begins again if a row does not fit the columns or types that were found
    in the first rows of its file.

    Raises UsageError if a file, its format, its time or its columns cannot be used. Files without events change
    nothing. With --replace, at least one file must have events.
    """
    if load_id is not None and engine.has_load(table, load_id):
        return None
    watch = LoadWatch(go_on, limits)
    now_ms, whole = seconds_to_ms(clock()), False
    while True:
        try:
            return _load(engine, sources, table, options, watch, load_id, now_ms, whole=whole)
        except AlreadyLoaded:
            return None
        except (TableExists, ColumnsChanged):
            continue
        except Misfit:
            whole = True


def _load(
    engine: Tables,
    sources: Sequence[Source],
    table: str,
    options: LoadOptions,
    watch: LoadWatch,
    load_id: str | None,
    now_ms: int,
    *,
    whole: bool,
) -> Loaded:
    exists = table in engine.tables()
    before = engine.events(table) if exists else 0
    present = engine.table(table) if exists and not options.replace else None
    held = {column.name: column.type for column in present.columns} if present else {}
    with reading(options.time_zone or "UTC", watch) as reader:
        recogniser = Recogniser(reader, options, held, len(sources) == 1, whole, now_ms, watch.limits)
        file_layouts = _layouts(recogniser, sources)
        layouts = [layout for _, layout in file_layouts if layout is not None]
        empty = [name for name, layout in file_layouts if layout is None]
        if not layouts and options.replace:
            raise UsageError(f"no events in {some(empty)}", hint=NOTHING_CHANGED)
        if not layouts:
            return Loaded(table, 0, before=before, empty=tuple(empty))
        types = _types(layouts, options.types)
        layouts = _with_texts_marked(layouts, types, {*held, *options.types})
        check_number(table, len(types))
        grown = Growth(layouts, types)
        if present is not None:
            grown = growth(present, layouts, types, options, watch.limits.added_columns)
        rows = _Rows(reader, grown.layouts, grown.types, options, held)
        columns = tuple(Column(name, type_) for name, type_ in grown.types.items())
        try:
            added = engine.append(
                table,
                rows.batches(),
                create=columns if present is None else None,
                replace=options.replace,
                change=grown.change,
                load_id=load_id,
                go_on=watch.check,
            )
        except (SvcctlError, Misfit):
            if rows.failure is None:
                raise
            raise rows.failure from None
    oldest, newest = (None if date is None else to_ms(date) for date in (rows.oldest, rows.newest))
    return Loaded(
        table,
        added,
        oldest,
        newest,
        before,
        tuple(empty),
        rows.findings(Skip),
        rows.findings(Change),
        nulls=rows.nulls(),
        asides=rows.findings(Aside),
        added=grown.added,
        widened=grown.widened,
        left=grown.left,
        wider=rows.wider(),
        arrays=tuple(dict.fromkeys(name for layout in layouts for name in layout.arrays)),
    )


def _layouts(recogniser: Recogniser, sources: Sequence[Source]) -> list[tuple[str, Layout | None]]:
    """Return the name of each file, and its Layout: the columns of the file and the format of its times.

    An object that is JSON text in one file is JSON text in all files.
    """
    while True:
        layouts = [(source.name, recogniser.layout(source)) for source in sources]
        flat = [layout.columns.flat for _, layout in layouts if layout is not None and layout.columns.flat is not None]
        opened = {name for flattened in flat for name in flattened.opened.values()}
        texts = opened & {name for flattened in flat for name in flattened.texts}
        if not texts:
            return layouts
        recogniser = replace(recogniser, texts=recogniser.texts | texts)


def _types(layouts: Sequence[Layout], chosen_types: Mapping[str, str]) -> dict[str, Type]:
    """Return the columns of all files, eventdate first, with their types.

    The user may choose the type of a column. Any other column gets a type that can hold the column's values in all
    files. Raises UsageError for names that differ only in case, because engines treat such names as equal.
    """
    types_of: dict[str, list[Type]] = {}
    known: dict[str, tuple[str, str]] = {}
    for layout in layouts:
        for name, type_ in layout.types.items():
            file = layout.file.source.name
            other, first = known.setdefault(name.casefold(), (name, file))
            if other != name:
                raise UsageError(
                    f"column '{name}' of {file} differs from column '{other}' of {first} only in case",
                    hint=f"name it '{other}' in all files",
                )
            types_of.setdefault(name, []).extend(() if name in layout.columns.blank else (type_,))
    for name, word in chosen_types.items():
        if name not in types_of:
            raise UsageError(
                f"--types names '{name}', which is not a column", hint=f"the columns are {choices(types_of)}"
            )
        if word not in set(Type):
            raise UsageError(f"column '{name}' has no type '{word}'", hint=f"types are {', '.join(Type)}")
    types = {
        name: Type(chosen_types[name]) if name in chosen_types else merged(types) for name, types in types_of.items()
    }
    return {"eventdate": Type.TIMESTAMP, **types}


def _with_texts_marked(layouts: Sequence[Layout], types: Mapping[str, Type], named: Collection[str]) -> list[Layout]:
    """Return the layouts with a Change.TEXT for columns that have numbers in some files, and text in other files.

    The load makes such a column text in all files. In the files in which the column has text, each of its values counts
    as a Change.TEXT. If the layout already has a condition for Change.TEXT of this column, the condition is kept.
    Columns in `named` are left out, because the table or the user decides their types.
    """
    numbers = {name for layout in layouts for name, type_ in layout.types.items() if type_ in NUMBERS}
    mixed = {name for name in numbers.difference(named) if types[name] is Type.STR}
    marked = []
    for layout in layouts:
        texts = {
            name: f"({layout.columns.sql[name]}) IS NOT NULL"
            for name, type_ in layout.types.items()
            if name in mixed and type_ not in NUMBERS
        }
        marks = {**layout.columns.marks, Change.TEXT: texts | dict(layout.columns.marks.get(Change.TEXT, {}))}
        marked.append(replace(layout, columns=replace(layout.columns, marks=marks)))
    return marked


@dataclass
class _Rows:
    """The rows of files, one file after the other. Rows without an eventdate are left out and counted."""

    reader: FileReader
    layouts: Sequence[Layout]
    types: Mapping[str, Type]
    options: LoadOptions
    held: Mapping[str, Type]
    """The columns that the table has before the load, with their types."""
    tallies: list[tuple[Layout, Tally]] = field(default_factory=list)
    oldest: datetime | None = None
    newest: datetime | None = None
    failure: Exception | None = None

    def batches(self) -> pa.RecordBatchReader:
        """Return the rows, with the columns and types of the stored table."""
        schema = pa.schema([(name, ARROW[type_]) for name, type_ in self.types.items()])
        return pa.RecordBatchReader.from_batches(schema, self._kept(schema))

    def _kept(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            for layout in self.layouts:
                yield from self._of(layout, schema)
        except (SvcctlError, Misfit) as error:  # DuckDB reads the rows, and would only pass on the text of the error
            self.failure = error
            raise

    def _of(self, layout: Layout, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        tally = Tally()
        self.tallies.append((layout, tally))
        seen = 0
        self.reader.stream(layout.file, tally)
        for batch in self.reader.batches(layout.file, select(layout, self.types)):
            for structure in batch.column(MISFIT).unique().to_pylist():
                if structure is not None and not layout.columns.fits(structure):
                    raise Misfit
            dates = batch.column("eventdate")
            _count_skips(tally, batch.filter(dates.is_null()) if dates.null_count else batch.slice(0, 0))
            rows = batch.filter(dates.is_valid()) if dates.null_count else batch
            _count_changes(tally, rows)
            _count_nulls(tally, rows)
            self._extend(rows)
            seen += batch.num_rows
            tally.rows += rows.num_rows
            if seen >= LOOKED_AT and not tally.rows:
                break
            yield _shaped(rows, schema)
        self._check(layout, tally)

    def _check(self, layout: Layout, tally: Tally) -> None:
        """Raise UsageError if no row of a file could be read, if too many rows were skipped, or for too many strays.

        With --strict, the error is raised for a single skipped row, and for a single value that does not fit.
        """
        tally.settle()
        file, skipped = layout.file, tally.skipped
        about = (file.source.name, file.unit, tally)
        if self.options.strict and (skipped or tally.nulls) and tally.rows:
            hint = f"{NOTHING_CHANGED}; without --strict such {{}}"
            if skipped:
                raise unread(*about, file.kind.name, hint.format("lines are skipped"))
            raise unfit(*about, self.types, hint.format("values are null"), self.wider())
        if skipped and not tally.rows:
            raise unread(*about, file.kind.name)
        if not self.options.skip_limit.allows(skipped, skipped + tally.rows):
            raise too_many(*about, file.kind.name)
        strays = tally.strays[0] if tally.strays and self.options.format is None else 0
        if not self.options.skip_limit.allows(strays, tally.lines):
            raise too_many_strays(file.source.name, tally, file.kind.name)

    def _extend(self, rows: pa.RecordBatch) -> None:
        if rows.num_rows:
            ends = pc.min_max(rows.column("eventdate")).as_py()
            self.oldest = min(filter(None, (self.oldest, ends["min"])))
            self.newest = max(filter(None, (self.newest, ends["max"])))

    def findings(self, kinds: type[Skip] | type[Change] | type[Aside]) -> tuple[LoadFinding, ...]:
        """Return the findings of all files. `kinds` is the class of findings: Skip, Change or Aside.

        Each finding has a count, and the place of its first occurrence.
        """
        findings: dict[str, LoadFinding] = {}
        for layout, tally in self.tallies:
            for what, (count, line, value, column) in tally.findings.items():
                fields = (column,) if column else layout.fields_of(what)
                text = sentence(what, value, fields, layout.file.kind.name)
                finding = LoadFinding(what, count, self._place(layout, line), text, value, fields)
                earlier = findings.get(what)
                findings[what] = finding if earlier is None else replace(earlier, count=earlier.count + count)
        return tuple(findings[what] for what in kinds if what in findings)

    def nulls(self) -> tuple[LoadFinding, ...]:
        """Return a finding for each column with values that did not fit and became null.

        Each finding has the place of the first such value.
        """
        findings: dict[str, LoadFinding] = {}
        for layout, tally in self.tallies:
            for column, (count, line, value, _) in tally.nulls.items():
                text = sentence(NULLED, value, [column], self.types[column])
                finding = LoadFinding(NULLED, count, self._place(layout, line), text, value, (column,))
                earlier = findings.get(column)
                findings[column] = finding if earlier is None else replace(earlier, count=earlier.count + count)
        return tuple(findings[column] for column in self.types if column in findings)

    def wider(self) -> dict[str, str]:
        """Return wider types for columns with values that do not fit.

        The wider type of a column can hold the first value that does not fit. A column is left out if there is no such
        type.
        """
        types: dict[str, str] = {}
        for _, tally in self.tallies:
            for column, (_, _, value, _) in tally.nulls.items():
                type_ = self.types[column] if column in self.held else Type.STR
                if column not in types and (wider := wider_type(type_, value or "")):
                    types[column] = wider
        return types

    def _place(self, layout: Layout, line: int) -> str:
        name = f"{layout.file.source.name}, " if len(self.layouts) > 1 else ""
        return f"{name}{layout.file.unit} {line}"


def _count_skips(tally: Tally, left: pa.RecordBatch) -> None:
    for reason, line in zip(left.column(SKIPPED).to_pylist(), left.column(LINE).to_pylist(), strict=True):
        tally.skip(Skip(reason["what"]), line, reason["value"], column=reason["name"], begins=reason["begins"])


def _count_nulls(tally: Tally, rows: pa.RecordBatch) -> None:
    values = rows.column(NULLS)
    if values.null_count == rows.num_rows:
        return
    misfits, lines = pc.list_flatten(values), rows.column(LINE).take(pc.list_parent_indices(values))
    is_misfit = misfits.is_valid()
    misfits, lines = misfits.filter(is_misfit), lines.filter(is_misfit)
    names, texts = pc.struct_field(misfits, "name"), pc.struct_field(misfits, "value")
    for name in names.unique():
        first = pc.index(names, name).as_py()
        count = pc.sum(pc.equal(names, name)).as_py()
        tally.null(name.as_py(), lines[first].as_py(), texts[first].as_py(), count=count)


def _count_changes(tally: Tally, rows: pa.RecordBatch) -> None:
    marks = rows.column(MARKS)
    for group in pc.value_counts(marks).to_pylist():
        first = rows.column(LINE)[pc.index(marks, group["values"]).as_py()].as_py() if group["values"] else 0
        for change, bit in BITS.items():
            if group["values"] & bit:
                tally.add(change, first, count=group["counts"])


def _shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the columns of all files. Columns that are missing in the batch are null."""
    own = set(batch.schema.names)
    columns = [
        batch.column(field.name).cast(field.type) if field.name in own else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
