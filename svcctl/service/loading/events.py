"""SQL that turns the rows of a file into events.

The SQL returns the columns of the events, and these additional columns:

- the number of the row's line
- the reason why the row is skipped, or null for a row that is not skipped
- the values that do not fit their columns
- a number with a bit for each kind of change that the load makes in the row
- a text if the row does not fit the columns of the file, otherwise null
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from svcctl.service.engines.duckdb.syntax import LINE, literal, quote
from svcctl.service.language.types import Type
from svcctl.service.loading.recognition import Layout
from svcctl.service.loading.skips import Change, Skip
from svcctl.service.loading.times import LACKING, as_time, has_no_zone
from svcctl.service.loading.values import NUMBERS, LoadedField, converted

MIN_DATE = "epoch_ms(0)"
"""SQL for the earliest date that a stored event can have."""
MARKS, MISFIT, SKIPPED, NULLS = "(marks)", "(misfit)", "(skipped)", "(nulls)"
"""The names of the additional columns.

MARKS has a bit for each kind of change in the row (see BITS). MISFIT is null if the row fits the columns of the file.
SKIPPED has the reason why a row is skipped. NULLS has the values that do not fit their columns.
"""
BITS: Mapping[Change, int] = {change: 1 << at for at, change in enumerate(Change)}
_WHEN, _TEXT = "(when)", "(text)"
_LONGEST_SHOWN = 200


def select(layout: Layout, types: Mapping[str, Type]) -> str:
    """Return SQL for the rows of a file as events. `types` has the types to which columns are converted.

    The column eventdate is the time of the event. In a skipped row, eventdate is null. SKIPPED then has the reason, the
    beginning of the line, and the column that causes the skip, with its value. NULLS has each value that does not fit
    its column, with the name of the column.
    """
    columns = layout.columns
    inner = [f"{sql} AS {quote(name)}" for name, sql in columns.sql.items()]
    inner += [f"{columns.line} AS {quote(LINE)}", f"{columns.text} AS {quote(_TEXT)}"]
    marks = {
        change: " OR ".join(f"({condition})" for condition in layout.marks(change).values()) for change in columns.marks
    }
    inner += [f"{columns.misfit} AS {quote(MISFIT)}", f"{_bits(marks)} AS {quote(MARKS)}"]
    rows = f"SELECT {', '.join(inner)} FROM {columns.table}"
    times = replace(layout.times, format=layout.times.format if layout.times.spec is None else None)
    fields = {
        name: converted(
            field,
            types.get(name, field.type),
            replace(times, numbers=layout.numbers.get(name)),
            has_decimal_commas=not layout.file.has_commas_between_cells,
        )
        for name, field in layout.fields.items()
        if name != layout.time
    }
    outer = [f"CASE WHEN {quote(SKIPPED)} IS NULL THEN {quote(_WHEN)} END AS eventdate"]
    outer += [f"{field.stored} AS {quote(name)}" for name, field in fields.items()]
    outer += [f"{quote(SKIPPED)}", f"{quote(MARKS)} | {_bits(_marks(layout, fields))} AS {quote(MARKS)}"]
    outer += [f"{_nulls(fields)} AS {quote(NULLS)}", quote(MISFIT), quote(LINE)]
    dated = f"SELECT *, {_when(layout)} AS {quote(_WHEN)} FROM ({rows})"
    judged = f"SELECT *, {_skip(layout)} AS {quote(SKIPPED)} FROM ({dated})"
    return f"SELECT {', '.join(outer)} FROM ({judged})"


def _bits(conditions: Mapping[Change, str]) -> str:
    bits = (
        f"CASE WHEN {condition} THEN {BITS[change]} ELSE 0 END" for change, condition in conditions.items() if condition
    )
    return f"({' | '.join(bits) or '0'})"


def _when(layout: Layout) -> str:
    """Return SQL for the time of a row. The time may be earlier than MIN_DATE."""
    time, times = layout.fields[layout.time], layout.times
    if layout.clock is None:
        return as_time(time.stored, time.type, times)
    day = time.stored if time.type is Type.STR else f"{time.raw}::VARCHAR"
    if times.clock_digits:
        clock = f"{layout.fields[layout.clock].stored}::VARCHAR"
        digits = f"lpad({clock}, greatest(strlen({clock}), {times.clock_digits})::INTEGER, '0')"
        clock = f"CASE WHEN regexp_full_match({clock}, '[0-9]+') THEN {digits} ELSE {clock} END"
        return as_time(f"({day} || ' ' || {clock})", Type.STR, times)
    clock = _time_of_day(layout.fields[layout.clock])
    text = f"({day} || ' ' || strftime(DATE '1970-01-01' + {clock}, '%H:%M:%S.%f'))"
    return as_time(text, Type.STR, replace(times, format=f"{times.spec} %H:%M:%S.%f") if times.spec else times)


def _time_of_day(clock: LoadedField) -> str:
    """Return SQL for the time of day of a row. A missing time means midnight.

    The time 24:00 gives null, because it belongs to the next day.
    """
    text = f"coalesce(nullif({clock.stored}::VARCHAR, ''), '00:00')"
    digits = f"try_strptime(lpad({text}, 6, '0'), '%H%M%S')::TIME"
    return f"nullif(coalesce(TRY_CAST({text} AS TIME), {digits}), TIME '24:00')"


def _skip(layout: Layout) -> str:
    """Return SQL for the reason why a row is skipped. The SQL gives null for a row that is not skipped.

    The reason includes the name and the value of the column that causes the skip.
    """
    time, text, when = layout.fields[layout.time], quote(_TEXT), quote(_WHEN)
    value = f"({time.raw})::VARCHAR"
    cells = ", ".join(f"nullif({quote(name)}::VARCHAR, '')" for name in layout.fields)
    begins = text
    if layout.file.heading is not None:
        first = layout.fields[layout.file.heading.names[0]]
        begins = f"CASE WHEN {quote(MARKS)} & {BITS[Change.SHORT]} <> 0 THEN ({first.raw})::VARCHAR ELSE {value} END"
    missing = _reason(Skip.NO_TIME, layout.time, begins=begins)
    if layout.columns.text != "NULL::VARCHAR":
        missing = f"CASE WHEN coalesce({cells}) IS NULL THEN {_reason(Skip.ENTRY, '', text)} ELSE {missing} END"
    unread = _reason(Skip.TIME, layout.time, value, begins)
    has_any_year = layout.times.numbers is not None and layout.times.numbers.has_any_year
    if layout.times.spec is None and layout.clock is None and not has_any_year:
        number = _reason(Skip.UNREAD_NUMBER, layout.time, value, begins)
        unread = f"CASE WHEN TRY_CAST({value} AS DOUBLE) IS NOT NULL THEN {number} ELSE {unread} END"
    early = _reason(Skip.EARLY, layout.time, value)
    if layout.fields[layout.time].type is Type.STR and layout.times.spec is None:
        for lack, pattern in LACKING.items():
            reason = _reason(lack, layout.time, value, begins)
            is_lacking = f"regexp_matches({value}, {literal(pattern)})"
            unread, early = (f"CASE WHEN {is_lacking} THEN {reason} ELSE {other} END" for other in (unread, early))
    if layout.clock is not None and not layout.times.clock_digits:
        clock = layout.fields[layout.clock]
        unclear = _reason(Skip.TIME, layout.clock, f"({clock.raw})::VARCHAR", begins)
        unread = f"CASE WHEN {_time_of_day(clock)} IS NULL THEN {unclear} ELSE {unread} END"
    cases = [
        f"WHEN {time.raw} IS NULL THEN {missing}",
        f"WHEN {when} IS NULL THEN {unread}",
        f"WHEN {when} < {MIN_DATE} THEN {early}",
    ]
    return f"CASE {' '.join(cases)} END"


def _reason(skip: Skip, name: str, value: str = "NULL::VARCHAR", begins: str = "NULL::VARCHAR") -> str:
    texts = f"'value': left({value}, {_LONGEST_SHOWN}), 'begins': left({begins}, {_LONGEST_SHOWN})"
    return f"{{'what': {literal(skip)}, 'name': {literal(name)}, {texts}}}"


def _nulls(fields: Mapping[str, LoadedField]) -> str:
    """Return SQL for a list of the values that do not fit their columns, each with the name of its column.

    The list has null in place of each value that fits. The whole list is null if all values fit.
    """
    bad = {name: field for name, field in fields.items() if field.raw != field.stored}
    values = (
        f"CASE WHEN {field.is_bad} THEN {{'name': {literal(name)}, "
        f"'value': left(({field.raw})::VARCHAR, {_LONGEST_SHOWN})}} END"
        for name, field in bad.items()
    )
    nulls = f"[{', '.join(values)}]" if bad else "NULL::STRUCT(name VARCHAR, value VARCHAR)[]"
    return f"CASE WHEN {' OR '.join(field.is_bad for field in bad.values()) or 'false'} THEN {nulls} END"


def _marks(layout: Layout, fields: Mapping[str, LoadedField]) -> dict[Change, str]:
    """Return SQL conditions for the changes FINER, COLUMN and ZONE, which depend on the event's time or stored times.

    A condition is true for a row to which the change applies. COLUMN and ZONE are left out if they cannot apply.
    """
    event_time, time = layout.fields[layout.time], quote(layout.time)
    times = [quote(_WHEN), *(field.stored for field in fields.values() if field.type is Type.TIMESTAMP)]
    marks = {Change.FINER: " OR ".join(f"epoch_us({sql}) % 1000 <> 0" for sql in times)}
    if layout.is_chosen:
        marks[Change.COLUMN] = "true"
    if layout.times.zone is None and Change.ZONE not in layout.columns.marks and not layout.columns.is_dated:
        is_zoned = "ZONE" in layout.columns.types[layout.time]
        is_local = layout.times.has_local_numbers if event_time.type in NUMBERS else not is_zoned
        if layout.clock is not None or (event_time.type is not Type.STR and is_local):
            marks[Change.ZONE] = "true"
        elif event_time.type is Type.STR:
            marks[Change.ZONE] = has_no_zone(time)
    return marks
