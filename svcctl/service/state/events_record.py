"""Detects that the service's own file of events has lost events.

The state of the service has a record of the file: the identity of the file, and the position at which each table ends.
Without a loss, this position never becomes smaller. At its start, the service compares the file with the record.

Events are lost if the file has another identity, or if a table ends at a smaller position. For example, the file may
have been replaced by an older copy, or its write-ahead log may have been removed. A loss is stored until an operator
confirms the loss. If the state has no record, the present file is accepted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Any, Protocol

from sqlalchemy import select

from svcctl.dates.epochs import from_ms, seconds_to_ms
from svcctl.service.state import schema
from svcctl.service.state.database import StateUnavailable
from svcctl.service.state.store import Store, replace
from svcctl.words import counted

LIVE_SECONDS = 60.0
"""While tables grow, the record of the events file is written at most once in this number of seconds.

After a load, the record is written at once.
"""

_COLUMNS = schema.events_files.c


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss of events.

    `tables` has the maximum number of events that each table can have lost. `since` is the moment, in epoch
    milliseconds, at which the loss was first noticed. `whole` is True if the whole file was missing or replaced.
    """

    since: int
    whole: bool
    tables: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """Return the loss as JSON for clients.

        The members are the moment, the tables, and a text that describes the loss.
        """
        return {"since": self.since, "tables": self.tables, "text": self.text}

    @property
    def text(self) -> str:
        moment = from_ms(self.since).strftime("%Y-%m-%d %H:%M:%S")
        cause = (
            "the service's file of events was missing or replaced"
            if self.whole
            else "the service's file of events lacks the latest changes"
        )
        tables = ", ".join(f"{name} ({counted(events, 'event')})" for name, events in self.tables.items())
        return f"{cause}; lost before {moment} (UTC): {tables or 'no tables'}"


class EventsFile(Protocol):
    """The protocol of a file of events. `DuckDBEngine` implements this protocol."""

    identity: str
    writes: int

    def ends(self) -> dict[str, tuple[int, int]]: ...
    def settle_losses(self, ends: Mapping[str, int]) -> dict[str, int]: ...


class EventsRecord:
    """The state's record of one file of events: the file's identity, and the position at which each table ends."""

    def __init__(self, store: Store, place: str, file: EventsFile) -> None:
        self._store = store
        self._place = place
        self._file = file
        self._recorded: dict[str, tuple[int, int]] = {}
        self._writes = -1
        self._moment = 0.0
        self._lock = Lock()
        self.loss: Loss | None = None
        """The loss that no operator has confirmed yet, or None if there is no such loss."""

    def check(self, *, adopts: bool = False) -> Loss | None:
        """Compare the file of events with the record when the service starts, and write a new record.

        Return a new loss, or None if there is no new loss. With `adopts`, the record is replaced without a comparison.
        Use `adopts` at the first start after a reset, because the reset has deleted the events.
        """
        with self._store.reading() as connection:
            row = connection.execute(select(schema.events_files).where(_COLUMNS.place == self._place)).first()
        if row is None or adopts:
            self.record()
            return None
        self.loss = Loss(**row.loss) if row.loss else None
        before: Mapping[str, tuple[int, int]] = row.tables
        whole = row.identity != self._file.identity
        missing = self._file.settle_losses({name: end for name, (end, _) in before.items()})
        lost = {
            name: events if whole else min(events, missing[name])
            for name, (_, events) in before.items()
            if whole or name in missing
        }
        new = Loss(seconds_to_ms(time.time()), whole, lost) if lost else None
        if new is not None:
            self.loss = new if self.loss is None else _merge_losses(self.loss, new)
        self.record()
        return new

    def record_in_time(self) -> None:
        """Call `record` if the file has changed, and the latest call was at least LIVE_SECONDS ago.

        Raises the errors of `record`.
        """
        if self._file.writes != self._writes and time.monotonic() - self._moment >= LIVE_SECONDS:
            self.record()

    def record(self) -> None:
        """Record where each table ends: the position after its last row, and its number of rows.

        Raises StateUnavailable if the state cannot be written.
        """
        with self._lock:
            writes, ends = self._file.writes, self._file.ends()
            self._save(ends)
            self._recorded, self._writes, self._moment = ends, writes, time.monotonic()

    def confirm(self) -> Loss | None:
        """Delete a confirmed loss from the record. Return the loss, or None if there is no loss.

        Raises StateUnavailable if the state cannot be written.
        """
        with self._lock:
            loss, self.loss = self.loss, None
            try:
                self._save(self._recorded)
            except StateUnavailable:
                self.loss = loss
                raise
            return loss

    def _save(self, tables: Mapping[str, tuple[int, int]]) -> None:
        loss: dict[str, Any] = asdict(self.loss) if self.loss else {}
        row = {"place": self._place, "identity": self._file.identity, "tables": tables, "loss": loss}
        with self._store.transaction() as connection:
            replace(connection, schema.events_files, **row)


def loss_of(store: Store, place: str) -> Loss | None:
    """Return the loss of events that the operator has not confirmed yet. Return None if there is no such loss.

    `place` is the identifier of the service, which `process.place` returns.
    """
    with store.reading() as connection:
        loss = connection.scalar(select(_COLUMNS.loss).where(_COLUMNS.place == place))
    return Loss(**loss) if loss else None


def _merge_losses(before: Loss, new: Loss) -> Loss:
    tables = {name: max(loss.tables.get(name, 0) for loss in (before, new)) for name in {**before.tables, **new.tables}}
    return Loss(before.since, before.whole or new.whole, tables)
