"""API keys as administrators see them: the owner of each key, and the times of its creation, expiry and last use.

This module does not read secrets.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock

from sqlalchemy import bindparam, func, or_, select, update

from svcctl.dates.epochs import from_ms, seconds_to_ms
from svcctl.dates.operators import moment_text
from svcctl.service.accounts import accounts
from svcctl.service.accounts.accounts import Account
from svcctl.service.state import schema
from svcctl.service.state.database import StateUnavailable
from svcctl.service.state.store import Store

EXPIRING_MS = 7 * 86_400_000
"""A key that expires within this time, in milliseconds, has the status `expiring`."""
WRITE_SECONDS = 60.0
"""While the service runs, the last uses of keys are stored at most once in this number of seconds."""
LOG_SECONDS = 3600.0
"""The minimum interval, in seconds, between two log messages about the use of the same expired key."""

_ACCOUNTS = schema.accounts.c
_log = logging.getLogger("svcctl.service")


class KeyStatus(StrEnum):
    VALID = "valid"
    EXPIRING = "expiring"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Key:
    """An API key without its secrets. A key belongs to a domain or to a reseller. Moments are in epoch milliseconds.

    `created` is None if the key was created by a version that stored no dates. `expires` is None if the key does not
    expire. `last_used` is None if the key was never used.
    """

    api_key: str
    name: str | None
    domain: str | None
    reseller: str | None
    administrator: bool
    created: int | None
    expires: int | None
    last_used: int | None
    status: KeyStatus


def list_keys(store: Store) -> list[Key]:
    """List all keys, ordered by domain, reseller and name.

    The status of each key is computed with the clock of the database.
    """
    columns = ("api_key", "name", "reseller", "administrator", "created", "expires", "last_used")
    domain = schema.domains.c.name
    order = (func.coalesce(column, "") for column in (domain, _ACCOUNTS.reseller, _ACCOUNTS.name))
    with store.reading() as connection:
        now = connection.scalar(select(store.moment())) or 0
        rows = connection.execute(
            select(*(_ACCOUNTS[name] for name in columns), domain.label("domain"))
            .join_from(schema.accounts, schema.domains, isouter=True)
            .order_by(*order, _ACCOUNTS.api_key)
        )
        return [Key(**row, status=_status(row["expires"], now)) for row in rows.mappings()]


def _status(expires: int | None, now: int) -> KeyStatus:
    if expires is None or expires - EXPIRING_MS > now:
        return KeyStatus.VALID
    return KeyStatus.EXPIRING if expires > now else KeyStatus.EXPIRED


def describe(store: Store, key: str) -> str:
    """Return a text that describes a key. The text has the key, its name, its owner, and when the key was last used.

    Commands show this text when they ask the user to confirm. `key` is the key or the name of the key.
    """
    with store.reading() as connection:
        account = accounts.find(connection, key)
        used = connection.scalar(select(_ACCOUNTS.last_used).where(_ACCOUNTS.api_key == account.api_key))
    facts = [account.api_key] if account.name else []
    facts.append(f"of {account.domain or account.reseller}")
    facts += [f"last used {utc_text(used, 'UTC')}"] if used is not None else []
    return f"{account.name or account.api_key} ({', '.join(facts)})"


class KeyUses:
    """The moments at which keys were last used in this process. A thread stores the moments at most once a minute."""

    def __init__(self, store: Store, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._used: dict[str, int] = {}
        self._written = float("-inf")
        self._logged: dict[str, float] = {}
        self._lock = Lock()

    def note_use(self, account: Account, now: float) -> None:
        """Remember that a key was used at the moment `now`, in epoch seconds."""
        with self._lock:
            self._used[account.api_key] = seconds_to_ms(now)

    def note_refusal(self, account: Account) -> None:
        """Log that an expired key was used, at most once an hour for each key."""
        now = self._monotonic()
        with self._lock:
            if now - self._logged.get(account.api_key, float("-inf")) < LOG_SECONDS:
                return
            self._logged[account.api_key] = now
        name = f"'{account.name}' ({account.api_key})" if account.name else account.api_key
        _log.warning("refused a request: the key %s expired on %s", name, utc_text(account.expires or 0))

    def write_in_time(self) -> None:
        """Store the new uses of keys if the last write was at least WRITE_SECONDS ago. Raises the errors of `write`."""
        if self._used and self._monotonic() - self._written >= WRITE_SECONDS:
            self.write()

    def write(self) -> None:
        """Store new uses of keys.

        Raises StateUnavailable if the database cannot be written. The next call then also stores these uses.
        """
        with self._lock:
            used, self._used = self._used, {}
        later = or_(_ACCOUNTS.last_used.is_(None), _ACCOUNTS.last_used < bindparam("moment"))
        statement = update(schema.accounts).where(_ACCOUNTS.api_key == bindparam("key"), later)
        rows = [{"key": key, "moment": moment} for key, moment in used.items()]
        if not rows:
            return
        try:
            with self._store.transaction() as connection:
                connection.execute(statement.values(last_used=bindparam("moment")), rows)
        except StateUnavailable:
            with self._lock:
                self._used = used | self._used
            raise
        self._written = self._monotonic()


def utc_text(milliseconds: int, zone: str = "(UTC)") -> str:
    """Return a moment in UTC, to the second, as text for messages."""
    return f"{moment_text(from_ms(milliseconds))} {zone}"
