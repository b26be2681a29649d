"""The databases that hold the state of the service, each behind one protocol.

    sqlite.py       a file, for one service process and the commands beside it
    postgresql.py   a server, for several service processes

A database opens connections and has what differs between SQL databases. The tables are in `schema`, and the queries on
them in the module of each noun.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Engine

from svcctl.errors import Unavailable


@dataclass(frozen=True, slots=True)
class Failure:
    """A way in which a state fails: its reason, the HTTP status, message and hint for clients, and advice for the
    operator.
    """

    reason: str
    status: int
    message: str
    hint: str
    refused: str
    """The word after `cannot be` in the operator's message: read, written or reached."""
    advice: str


STATE_FULL = Failure(
    "state-full",
    507,
    "no space left for the state of the service",
    "try again when there is room on its disk",
    "written",
    "make room on its disk",
)
STATE_READ_ONLY = Failure(
    "state-read-only",
    503,
    "the state of the service is read-only",
    "try again when it can be written",
    "written",
    "make it writable",
)
STATE_LOCKED = Failure(
    "state-locked",
    503,
    "the state of the service is locked by another process",
    "try again soon",
    "written",
    "end the process that holds the lock",
)
STATE_DAMAGED = Failure(
    "state-damaged",
    503,
    "the state of the service is damaged",
    "try again when it is restored",
    "read",
    "restore it from a backup",
)
STATE_AWAY = Failure(
    "state-away",
    503,
    "the service cannot reach its state",
    "try again soon",
    "reached",
    "start the database, or check its address",
)


class StateUnavailable(Unavailable):
    """The state cannot be used at present. The operation may be done or not; it can be repeated.

    The message is for clients. For the operator, `detail` names the database and the reason, `advice` what to do.
    """

    def __init__(self, failure: Failure, database: str, reason: str, advice: str | None = None) -> None:
        super().__init__(failure.message, hint=failure.hint, reason=failure.reason)
        self.failure = failure
        self.detail = f"the state in {database} cannot be {failure.refused}: {reason}"
        self.advice = advice or failure.advice


class Database(Protocol):
    """A database that holds a state."""

    name: str
    """Its name in messages: `file /x/state.db`, `postgresql://host/name`, never with a password."""
    shared: bool
    """Whether several service processes use it at once, over a network."""
    reading: Sequence[str]
    """The statements that begin a transaction which sees one state of the database."""
    writing: Sequence[str]
    """The statements that begin a transaction in which nobody else writes."""
    lock_wait_seconds: float = 0
    """Seconds for which a transaction that writes is retried while the database is locked; 0 where the server waits."""
    foreign: str
    """What to do when there are tables of other programs."""

    @property
    @abstractmethod
    def engine(self) -> Engine:
        """Connections whose driver begins no transaction by itself."""

    @abstractmethod
    def version(self, driver: Any) -> Hashable:
        """A value that differs after another process has changed the database."""

    @abstractmethod
    def translate_errors(self) -> AbstractContextManager[None]:
        """Raise the driver's errors in the block as StateUnavailable, or as ServiceError for a value that the database
        cannot hold. Defects pass through.
        """

    @abstractmethod
    def upgrading(self, driver: Any) -> AbstractContextManager[None]:
        """Wraps the transaction of an upgrade. Locked if others use the tables of an older version."""

    @abstractmethod
    def keep_copy(self, driver: Any, version: str) -> str:
        """Keep what the upgrade to a version changes, and say where."""

    @abstractmethod
    def mark_version(self, driver: Any, version: str) -> None:
        """Called when the tables have the version that this process reads."""

    @abstractmethod
    def moment(self) -> ColumnElement[int]:
        """The present in epoch milliseconds, by a clock that all processes share."""
