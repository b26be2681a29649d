"""The plan of a run: the query and the target are checked, and the range is cut into time windows.

Planning writes nothing. For windows of whole weeks, the record of earlier runs is read, because the weeks of earlier
runs may begin on another day.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from math import lcm
from pathlib import Path

from svcctl.api.query import one_line, outline
from svcctl.dates.lengths import UNITS, length_text
from svcctl.dates.zones import GMT, Zone
from svcctl.errors import Advice, CommandLine, UsageError
from svcctl.exports.export import Export, Order
from svcctl.exports.formats import format_of
from svcctl.exports.identity import Identity
from svcctl.exports.record import DamagedRecord, Record
from svcctl.exports.windows import FIRST_MONDAY, Target, Window, WindowGrid
from svcctl.io import files, home
from svcctl.storage import Storage
from svcctl.storage.targets import open_target


def check_window(query: str, length: int) -> int:
    """Return the shortest window length, in seconds, that is a multiple of `length` and of each period of the query.

    A period is the length of time by which the query groups events, such as an hour. With the returned length, each
    period lies in one window. Raises UsageError if the query cannot be cut into windows, for example because it has a
    limit.
    """
    return lcm(length, *_periods(query))


def _periods(query: str) -> list[int]:
    periods = []
    for clause in outline(query).clauses:
        if clause.keyword in ("limit", "offset"):
            raise UsageError(
                f"a query with {clause.keyword} cannot be exported: the {clause.keyword} would apply to each window",
                hint=f"leave out the {clause.keyword}, or run it once with 'svcctl query … -o FILE'",
            )
        if clause.keyword == "group":
            if clause.unread:
                raise UsageError(
                    f"'{clause.unread}' is not the period of a group, which is a number with s, m, h or d",
                    hint="write group every 1h, for example, or every 7d for weeks",
                )
            if clause.every is None:
                raise UsageError(
                    "a query that groups without every cannot be exported: its groups span all windows",
                    hint="group every 1h by …, or run it once with 'svcctl query … -o FILE'",
                )
            periods.append(clause.every)
    return periods


def check_target(target: str, *, incremental: bool) -> None:
    """Raise UsageError if an export cannot be written to a target.

    A target is refused in these cases:
    - It is not a file, or it has a date format outside of braces.
    - It is the path of one file, and the folder of this file is missing. Missing folders of a pattern are created
      later.
    - `incremental` is true, and all runs would write the same file.
    - `incremental` is true, and the file names contain the end of the run's range.
    """
    if not target:
        raise UsageError("--output is empty", hint="name a file, as in -o events.csv")
    if target == "-" or files.descriptor(Path(target)) is not None:
        raise UsageError("an export is written to files", hint=Advice("to print rows: ", CommandLine("svcctl query")))
    if "://" not in target and (error := home.unexpanded_error(target)) is not None:
        raise error
    named = Target(target)
    named.check_dates()
    if incremental and named.is_one_file:
        raise UsageError(
            f"every run of a state needs a file of its own, and all runs would write {target}",
            hint="name a file for each window, out/{start:%Y%m%dT%H}.csv, or for each run, out/{from:%Y%m%dT%H}.csv",
        )
    if incremental and named.ends_with_run:
        # If a run of a state is killed, the next run has a later end, so the file would get another name.
        raise UsageError(
            f"{target} contains the end of the run, but a repeated run of a state has a later end",
            hint="use its start instead, as in out/{from:%Y%m%dT%H}.csv",
        )
    if "://" in target:
        return
    if target.endswith("/"):
        raise UsageError(
            f"{target} ends with /, so it is not a file", hint=f"name a file in it, as in -o {target}events.csv"
        )
    if not named.is_one_file:
        return
    path = Path(named.path(Window(0, 0)))
    if path.is_dir():
        raise UsageError(f"{target} is a directory", hint=f"name a file in it, as in -o {path / 'events.csv'}")
    folder = files.resolved_path(path).parent
    if not folder.exists():
        make = CommandLine(f"mkdir -p {shlex.quote(str(folder))}")
        raise UsageError(f"the directory {folder} does not exist", hint=Advice("make it with: ", make))


def plan(order: Order, environment: Mapping[str, str]) -> Export:
    """Return the plan for an order, including notes for the user.

    Raises UsageError if the query, the target or the format cannot be used in an export.
    """
    notes = []
    length = check_window(order.query, order.window)
    if length != order.window:
        notes.append(
            f"windows are {length_text(length)} long: the query's periods do not divide {length_text(order.window)}"
        )
    format, compression = format_of(order.target, order.format)
    if format.mode not in ("csv", "tsv") and order.date_format:
        raise UsageError(f"--date-format works only with csv and tsv, not with {format.name}")
    storage, name = open_target(order.target, environment)
    target = Target(name)
    identity = Identity(
        one_line(order.query),
        format.name + compression,
        length,
        order.service,
        order.date_format,
        order.zone if format.heading else None,  # the service writes no dates in the other formats
    )
    if order.zone is not None and _offsets(order) != {0} and not target.is_one_file:
        if _clashes(order):
            notes.append(f"the names of files are in UTC, like the periods of the query, and not in {order.zone.name}")
        else:
            identity = replace(identity, window_zone=order.zone)
            target = replace(target, zone=identity.clocks)
    if length % UNITS["w"] == 0:
        if FIRST_MONDAY % lcm(*_periods(order.query)):
            notes.append("weeks begin on Thursday, like the periods of the query")
        elif not _counts_from_1970(identity, storage, target):
            identity = replace(identity, window_origin=FIRST_MONDAY)
    if order.incremental:
        target.check_repeats(identity.grid)
    whole, distant = _whole(order, target, identity.grid), "://" in order.target
    if identity.time_zone is not None and order.date_format != "iso":
        notes += _about_offsets(identity.time_zone, whole, target)
    windows = identity.grid.cut(whole.start, whole.end)
    return Export(order, identity, format, compression, target, whole, windows, storage, distant, tuple(notes))


def _counts_from_1970(identity: Identity, storage: Storage, target: Target) -> bool:
    """Return whether earlier runs counted their windows from 1970-01-01, so that weeks begin on Thursday."""
    with suppress(DamagedRecord):  # `claim` refuses or replaces a damaged record
        record = Record.read(storage, target)
        return record is not None and record.identity == identity
    return False


def _whole(order: Order, target: Target, grid: WindowGrid) -> Window:
    """Return the range of a run.

    If each window has its own file, the range is extended to whole windows. If the order has a date `settled`, the
    range contains no window that ends after this date.
    """
    start, end = order.start, order.end
    if target.per_window:
        start = grid.around(start).start
        end = grid.around(end - 1).end if end > order.start else start
    if order.settled is not None:
        end = min(end, grid.around(order.settled).start)
    return Window(start, max(start, end))


def _about_offsets(zone: Zone, whole: Window, target: Target) -> Iterator[str]:
    """Yield a note for the user if the UTC offset of the zone changes within the range."""
    if len(zone.spans(whole.start, whole.end)) > 1:
        offset = f"all dates are written in {zone.offset_name(whole.start)}"
        if target.per_window:
            offset = "the dates of a file are written with the offset at its start"
        yield zone.change_note("within the range", offset, advice=True)


def _offsets(order: Order) -> set[int]:
    """Return the UTC offsets of the order's time zone in January and in July, in seconds."""
    clocks = (order.zone or GMT).clocks
    return {(clocks.utcoffset(datetime(2024, month, 1)) or timedelta()) // timedelta(seconds=1) for month in (1, 7)}


def _clashes(order: Order) -> bool:
    """Return whether a window in the order's time zone could begin or end within a period of the query.

    A period is the length of time by which the query groups events. Periods are counted in UTC.
    """
    return any(offset % period for offset in _offsets(order) for period in _periods(order.query))
