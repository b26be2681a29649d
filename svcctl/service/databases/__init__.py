"""The databases that hold the state of the service, each behind one protocol.

    sqlite.py       a file, for one service process and the commands beside it
    postgresql.py   a server, for several service processes

A database opens connections and knows what SQL does not have in common. What the tables are is in `schema`, and what is
done with them in the module of each noun.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Engine

from svcctl.errors import ServiceError


class StateUnavailable(ServiceError):
    """The database of the state does not answer. What was asked of it is done or not; it can be asked again.

    The message is for anybody who may connect; `detail` says which database it is, and why, and `advice` what to do.
    """

    def __init__(self, database: str, reason: str, advice: str = "start the database, or check its address") -> None:
        super().__init__("the service cannot reach its state", code=503, hint="try again soon")
        self.detail = f"the state in {database} cannot be reached: {reason}"
        self.advice = advice


class Database(Protocol):
    """Where a state is kept."""

    name: str
    """How a person writes it: `file /x/state.db`, `postgresql://host/name`, never with a password."""
    shared: bool
    """Whether several service processes use it at once, over a network."""
    reading: str
    """The statement that begins a transaction which sees one state of the database."""
    writing: str
    """The statement that begins a transaction in which nobody else writes."""
    foreign: str | None = None
    """What to do when there are tables of other programs; None when such a database is upgraded as an old one."""

    @property
    @abstractmethod
    def engine(self) -> Engine:
        """Connections whose driver begins no transaction by itself."""

    @abstractmethod
    def version(self, driver: Any) -> Hashable:
        """A value that differs after another process has changed the database."""

    @abstractmethod
    def explained(self) -> AbstractContextManager[None]:
        """The driver's errors as ours, as far as they are no defects: StateUnavailable, ServiceError."""

    @abstractmethod
    def upgrading(self, driver: Any) -> AbstractContextManager[None]:
        """Wraps the transaction of an upgrade. Locked if others use the tables of an older version."""

    @abstractmethod
    def keep_copy(self, driver: Any, version: str) -> str:
        """Keep what the upgrade to a version changes, and say where."""

    @abstractmethod
    def opened(self, driver: Any, version: str) -> None:
        """Called when the tables have the version that this process reads."""

    @abstractmethod
    def moment(self) -> ColumnElement[int]:
        """The present in epoch milliseconds, by a clock that all processes share."""
