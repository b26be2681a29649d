"""The databases that store the state of the service, such as its accounts and jobs. The state contains no events.

    sqlite.py       a file, for one service process and the commands that run at the same time
    postgresql.py   a server, for several service processes

Each of the two modules has a class that implements `Database`. The class opens connections, and hides the differences
between SQLite and PostgreSQL. The module `schema` defines the tables. The queries are in other modules, such as
`accounts`.
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
    """A kind of failure of the database. It has a message and a hint for clients, and advice for the operator."""

    reason: str
    status: int
    message: str
    hint: str
    action: str
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
    """The error that is raised while the service cannot use its state.

    The failed operation may or may not have changed the state, and can be repeated. The message is for clients.
    The operator gets `detail`, which names the database and the reason, and `advice`, which says what to do.
    """

    def __init__(self, failure: Failure, database: str, reason: str, advice: str | None = None) -> None:
        super().__init__(failure.message, hint=failure.hint, reason=failure.reason)
        self.failure = failure
        self.detail = f"the state in {database} cannot be {failure.action}: {reason}"
        self.advice = advice or failure.advice


class Database(Protocol):
    """The protocol of a database that stores the state of the service."""

    name: str
    """The name of the database in messages, such as `file /x/state.db` or `postgresql://host/name`.

    The name never contains a password.
    """
    shared: bool
    """Whether several service processes can use the database at once, over a network."""
    reading: Sequence[str]
    """The SQL statements that begin a transaction for reading. The transaction reads one snapshot of the database."""
    writing: Sequence[str]
    """The SQL statements that begin a transaction for writing. Other processes cannot write during the transaction."""
    lock_wait_seconds: float = 0
    """The number of seconds for which the service repeats attempts to write while the database is locked.

    The number is 0 if the database server itself waits for the lock.
    """
    foreign: str
    """The advice for the operator if the database has tables of other programs."""

    @property
    @abstractmethod
    def engine(self) -> Engine:
        """The engine that opens connections. The driver of a connection must not begin transactions automatically."""

    @abstractmethod
    def version(self, driver: Any) -> Hashable:
        """Return a value that changes whenever another process changes the database."""

    @abstractmethod
    def translate_errors(self) -> AbstractContextManager[None]:
        """Turn the driver's errors in the block into StateUnavailable.

        Errors that show a defect of svcctl stay unchanged. Raises ServiceError for a value that the database cannot
        store.
        """

    @abstractmethod
    def upgrading(self, driver: Any) -> AbstractContextManager[None]:
        """Prepare the connection for an upgrade in the block, and restore the connection after the block."""

    @abstractmethod
    def keep_copy(self, driver: Any, version: str) -> str:
        """Keep a copy of the tables before the upgrade to `version`. Return a text that says where the copy is.

        Raises Locked if other processes use the tables of an older version.
        """

    @abstractmethod
    def mark_version(self, driver: Any, version: str) -> None:
        """Record that the connection uses the tables of `version`. Other processes read this record in `keep_copy`."""

    @abstractmethod
    def moment(self) -> ColumnElement[int]:
        """Return SQL for the present time in epoch milliseconds, by a clock that all processes share."""
