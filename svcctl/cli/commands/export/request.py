"""The requested export: the order (what to export, and to which files), the range, and the notes for the user.

The range begins at --from, or where the last run with the same --state ended.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from svcctl.api.query import outline
from svcctl.cli.commands.export.options import LAG_SECONDS, ExportOptions
from svcctl.cli.context import Context
from svcctl.cli.inputs import query_text
from svcctl.dates.range import RequestDates, dates_of, period_note
from svcctl.errors import UsageError
from svcctl.exports.state import placed
from svcctl.exports.windows import Target, moment

if TYPE_CHECKING:
    from svcctl.exports.export import Export, Order
    from svcctl.exports.state import State, States


def order_of(svc: Context, options: ExportOptions) -> Order:
    """Return the order of an export: what to export, and to which files. The order has no range yet.

    With --state, a relative target is made absolute, because the next run may start in another directory.
    """
    from svcctl.exports.export import Order
    from svcctl.exports.plan import check_target

    query = query_text.fill(query_text.read(options.text, options.file), options.var or [])
    # The workers of a cluster run in other directories, so they need an absolute path.
    target = options.path if options.scheduler is None else placed(options.path)
    incremental, profile, lag = options.state is not None, svc.profile, options.lag
    check_target(target, incremental=incremental)
    if lag is None:  # a file covers a whole window, so the window must have ended
        lag = LAG_SECONDS if incremental else 0.0 if Target(target).per_window else None
    return Order(
        query,
        placed(target) if incremental else target,
        0,
        0,
        int(options.window),
        profile.base_url,
        retries=profile.retries,
        incremental=incremental,
        settled=None if lag is None else math.floor(svc.clock() - lag),
        format=options.format,
        date_format=options.date_format,
        zone=options.time_zone,
        overwrite=options.force,
        state=options.state,
    )


def planned(svc: Context, states: States, order: Order, state: State | None, from_: Any, to: Any) -> Export:
    """Return the export of the requested range, with notes for the user.

    With a state, the range starts where the last run with this state ended.
    """
    from svcctl.exports.formats import format_of
    from svcctl.exports.plan import plan
    from svcctl.terminal.formats import FORMATS, check_file, refuse_packed

    refuse_packed(Path(order.target))
    format = format_of(order.target, order.format)[0]
    notes = list[str | None]()
    check_file(order.target, FORMATS[format.name], notes.append, by_user=True)
    if state is not None and state.target != order.target:
        raise UsageError(
            f"the state '{order.state}' belongs to the export to {state.target}",
            hint=f"give another name to --state, with --from {moment(state.until)}",
        )
    chosen = _dates(svc, order, None if state is None else state.until, from_, to, written=format.heading)
    assert chosen.range.end is not None
    start, end = int(chosen.range.start.timestamp()), int(chosen.range.end.timestamp())
    every = outline(order.query).every
    notes += [
        chosen.summary if svc.diagnostics.is_terminal and not chosen.plain else None,
        chosen.reading,
        chosen.slip if state is None else None,
        chosen.short,
        chosen.other_pair,
        period_note(chosen, every, formula=False) if every else None,  # exports cannot use the formula's groups
    ]
    owner = (order.state, state) if state is not None else states.writing(order.target)
    if order.incremental and owner is not None and owner[0] != order.state:
        raise UsageError(
            f"the state '{owner[0]}' already exports to {order.target}",
            hint="name that state, or write to another path",
        )
    order = replace(
        order,
        start=start,
        end=end,
        date_format=chosen.date_format,
        zone=chosen.zone,
        state=order.state if owner is None else owner[0],
        until=None if owner is None else owner[1].until,
    )
    export = plan(order, svc.environment)
    return replace(export, notes=tuple(filter(None, [*notes, *_about_windows(export, start, end)])))


def _dates(svc: Context, order: Order, until: int | None, from_: Any, to: Any, *, written: bool) -> RequestDates:
    """Return the range of an export, and the format of its dates.

    The range starts at `until`, where the last run ended. If `until` is None, the range starts at `from_`. `written`
    says whether the answer contains dates as texts. Raises UsageError if the range has no start.
    """
    if until is None and from_ is None:
        first = " for the first run" * order.incremental
        raise UsageError("the range has no start", hint=f"give --from{first}")
    now = svc.now()
    if until is not None:
        now = max(now, datetime.fromtimestamp(until, UTC))  # if the clock went back, there is nothing to export
    format = order.date_format or (svc.profile.date_format if written else None)
    zone = order.zone or svc.profile.time_zone
    chosen = dates_of(from_ if until is None else until, to, format, zone, now=now, written=written)
    end = chosen.range.end
    if end is not None and end > now and order.settled is None:
        raise UsageError(
            f"the range ends in the future, at {end:%Y-%m-%d %H:%M:%S} UTC",
            hint="give --to now, or add --lag 10m to leave out the windows that have not ended",
        )
    return chosen


def _about_windows(export: Export, start: int, end: int) -> Iterator[str]:
    """Yield notes on the time windows that a run exports, and on the part of the range that it cannot export yet.

    `start` and `end` are the requested range, in epoch seconds.
    """
    yield from export.notes
    whole, zone = export.whole, export.target.zone
    if not export.windows:
        yield f"nothing to export yet: no window of {moment(whole.start)} to {moment(end)} is ready"
        return
    if whole.start < start or whole.end > end:
        yield f"each file covers a whole window: exporting {moment(whole.start, zone)} to {moment(whole.end, zone)}"
    if not export.order.incremental and whole.end < end:
        windows = "these windows have not ended, or ended less than --lag ago"
        yield f"left out {moment(whole.end)} to {moment(end)}: {windows}"
