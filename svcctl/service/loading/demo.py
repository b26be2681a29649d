"""Demo events: the requests of a web shop, its logins and its firewall.

The events of a second depend only on the date and time of this second. So new events can be added to a table at any
time, and all computers make the same events. DuckDB makes the events, see `engines/duckdb/demo_events.py`. This module
defines the tables, and decides for which period events are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from svcctl.dates.lengths import UNITS
from svcctl.service.engines import Tables
from svcctl.service.engines.duckdb.demo_events import made
from svcctl.service.language.types import Column, Type

TRANSACTION_SECONDS = 5 * UNITS["d"]
"""The length, in seconds, of the period whose events one transaction stores.

A longer period needs more memory, and an interruption loses more events.
"""
GROW_SECONDS = 1.0
"""The interval, in seconds, at which a service with recent requests extends the demo tables."""
QUIET_SECONDS, QUIET_GROW_SECONDS = 60.0, 60.0
"""A service without a request for QUIET_SECONDS extends the demo tables only every QUIET_GROW_SECONDS."""
SECONDS_AHEAD = 300
"""The length, in seconds, of the period whose events a running service makes in advance, with one query per table."""


def extend(engine: Tables, until: datetime, history: timedelta) -> Iterator[tuple[str, float, int]]:
    """Extend the demo tables up to `until`, rounded down to a second. `until` has a time zone.

    The first events of a missing or empty table are `history` earlier than `until`. If `history` is 0, no table is
    created or extended. After each transaction, yields the name of the table, the completed fraction of the table's new
    events, and the number of events that the transaction has added.
    """
    for table in TABLES if history else ():
        yield from _extend(engine, table, int(until.timestamp()), history)


def _extend(engine: Tables, table: str, end: int, history: timedelta) -> Iterator[tuple[str, float, int]]:
    if table not in engine.tables():
        engine.create(table, TABLES[table])
    newest = engine.newest(table)
    # Only whole seconds are made, so the second of the newest event is complete.
    start = int(newest.replace(tzinfo=UTC).timestamp()) + 1 if newest else end - int(history.total_seconds())
    if start >= end:
        return
    bounds = [*range(start, end, TRANSACTION_SECONDS), end]
    with ThreadPoolExecutor(1) as ahead:  # the next events are made while the previous events are stored
        coming = ahead.submit(made, table, *bounds[:2])
        for stop, after in zip(bounds[1:], [*bounds[2:], None], strict=True):
            events = coming.result()
            if after is not None:
                coming = ahead.submit(made, table, stop, after)
            yield table, (stop - start) / (end - start), engine.append(table, events.to_reader())


class GrowingTables:
    """The demo tables of a running service. Events are made in advance, so that calls of `extend` are fast."""

    def __init__(self, engine: Tables, history: timedelta) -> None:
        self._engine = engine
        self._history = history
        self._ahead: dict[str, tuple[pa.Table, int]] = {}
        """For each table, the events that are not stored yet, and the second at which these events end."""

    def extend(self, until: datetime) -> int:
        """Extend the demo tables up to `until`, rounded down to a second. Return the number of added events.

        Most calls only store events that were made in advance.
        """
        end = int(until.timestamp())
        return sum(self._extend(table, end) for table in TABLES) if self._history else 0

    def _extend(self, table: str, end: int) -> int:
        ahead, last = self._ahead.pop(table, (None, 0))
        if ahead is None or end > last:
            added = sum(count for *_, count in _extend(self._engine, table, end, self._history))
            ahead, last = made(table, end, end + SECONDS_AHEAD).sort_by("eventdate"), end + SECONDS_AHEAD
        else:
            moment = pa.scalar(datetime.fromtimestamp(end, UTC).replace(tzinfo=None), pa.timestamp("us"))
            is_due = pc.less(ahead["eventdate"], moment)
            due, ahead = ahead.filter(is_due), ahead.filter(pc.invert(is_due))
            added = self._engine.append(table, due.to_reader()) if due.num_rows else 0
        self._ahead[table] = ahead, last  # not set after a failure, so that the end of the table is read again
        return added


def _columns(text: str) -> tuple[Column, ...]:
    """Return the columns that a text such as `user str, srcIp ip4` describes."""
    pairs = (definition.split() for definition in text.split(", "))
    return tuple(Column(name, Type(type_)) for name, type_ in pairs)


TABLES: Mapping[str, tuple[Column, ...]] = {
    "demo.ecommerce.data": _columns(
        "eventdate timestamp, clientIpAddress ip4, clientPort int4, method str, uri str, protocol str, "
        "statusCode int4, bytesTransferred int8, timeTaken int4, referralUri str, userAgent str, userId str, "
        "country str"
    ),
    "auth.all": _columns("eventdate timestamp, user str, srcIp ip4, method str, result str, reason str"),
    "firewall.all": _columns(
        "eventdate timestamp, srcIp ip4, srcPort int4, dstIp ip4, dstPort int4, proto str, action str, bytesIn int8, "
        "bytesOut int8"
    ),
}
