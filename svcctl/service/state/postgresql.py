"""The state in a PostgreSQL database (13 or newer). Several service processes can use this database at once.

An advisory lock lets only one process write at a time. So a transaction can safely read before it writes, as in SQLite.
If a process hangs during a transaction, the server ends the transaction and the connection after IDLE_MS.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import BigInteger, ColumnElement, Engine, cast, create_engine, event, func
from sqlalchemy.exc import DataError, DBAPIError
from sqlalchemy.pool import NullPool

from svcctl.api.destinations import without_secret
from svcctl.errors import Locked, ServiceError, UsageError, reason
from svcctl.service.settings import STATE, STATE_PASSWORD_FILE
from svcctl.service.state.database import (
    STATE_AWAY,
    STATE_DAMAGED,
    STATE_FULL,
    STATE_LOCKED,
    STATE_READ_ONLY,
    Database,
    Failure,
    StateUnavailable,
)

LOCK = 0x73766363746C
"""The number of the advisory lock that a process holds while it writes."""
IDLE_MS, WAIT_MS = 2000, 15_000
"""The maximum time between two statements of a transaction, and the maximum time of a statement.

Both are in milliseconds. The time of a statement includes its wait for the lock.
"""
PAUSE_SECONDS = 0.5
"""For this number of seconds after a failed attempt to connect, the process does not contact the server again.

An operation that needs a new connection during this time fails at once.
"""
CONNECTION: Mapping[str, Any] = {
    "connect_timeout": 3,
    "tcp_user_timeout": 5000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 2,
}
"""The connection parameters that detect a lost server within seconds. Parameters in the URL take precedence."""
SESSION = (
    f"set idle_in_transaction_session_timeout = {IDLE_MS}; set statement_timeout = {WAIT_MS};"
    " set standard_conforming_strings = on; set client_encoding = 'UTF8'"
)
ADVICE = {
    "password": f"set {STATE_PASSWORD_FILE.environment} to a file with its password, or PGPASSWORD",
    "does not exist": "create it on the server, or check its name",
}
"""The advice for the operator if a connection is refused. Each key is a part of the server's message.

The text of the message is compared because the driver gives no error code.
"""
FAILURES: Mapping[type[psycopg.Error], tuple[Failure, str | None]] = {
    errors.DiskFull: (STATE_FULL, None),
    errors.ReadOnlySqlTransaction: (STATE_READ_ONLY, None),
    errors.InsufficientPrivilege: (
        STATE_READ_ONLY,
        "let the user create tables there: grant create on schema public to …",
    ),
    errors.QueryCanceled: (STATE_LOCKED, None),
    errors.LockNotAvailable: (STATE_LOCKED, None),
    errors.DataCorrupted: (STATE_DAMAGED, None),
    errors.IndexCorrupted: (STATE_DAMAGED, None),
    psycopg.OperationalError: (STATE_AWAY, None),
}
"""Maps each class of errors to a failure and to advice for the operator. The first class that matches is used.

An error of another class is a defect of svcctl, except if the error reports a lost connection.
"""
OPEN = "svcctl state "
"""The beginning of the name of a session in pg_stat_activity. The version of the session's tables follows."""


class PostgreSQL(Database):
    """A state in a PostgreSQL database. The password comes from the URL, PGPASSWORD, a file, or ~/.pgpass."""

    shared = True
    reading = ("begin isolation level repeatable read read only",)
    writing = ("begin", f"select pg_advisory_xact_lock({LOCK})")
    foreign = "give svcctl a database of its own"

    def __init__(self, url: str, *, password: str | None = None, password_file: str | None = None) -> None:
        """Set the connection parameters. The password file is read again before each connection.

        Raises UsageError if the URL is wrong, or if the password file cannot be read.
        """
        self._parameters: dict[str, Any] = {**CONNECTION, **_parameters(url)}
        self._password_file = password_file
        if password_file:
            password = _password(password_file)
        if password:
            self._parameters["password"] = password
        self.name = _public_url(self._parameters)
        self._open_as = OPEN.strip()
        self._failed: tuple[float, str] = (0.0, "")

    @cached_property
    def engine(self) -> Engine:
        engine = create_engine("postgresql+psycopg://", creator=self._connect, poolclass=NullPool)
        # SQLAlchemy runs unneeded queries on a new connection, outside of its own transactions.
        event.listen(engine, "connect", lambda driver, _: driver.execute(SESSION))
        return engine

    def _connect(self) -> psycopg.Connection[Any]:
        until, why = self._failed
        if time.monotonic() < until:
            raise psycopg.OperationalError(why)
        if self._password_file:
            with suppress(UsageError):  # the previous password may still be correct
                self._parameters["password"] = _password(self._password_file)
        try:
            return psycopg.connect(**self._parameters, autocommit=True, application_name=self._open_as)
        except psycopg.OperationalError as error:
            self._failed = time.monotonic() + PAUSE_SECONDS, str(error)
            raise

    def version(self, driver: Any) -> Hashable:
        # The snapshot lists the transactions that are visible. Two snapshots are equal only if no transaction was
        # committed between them.
        with self._translate_driver_errors():
            [version] = driver.execute("select pg_current_snapshot()::text").fetchone()
        return str(version)

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        try:
            yield
        except DataError as error:
            raise ServiceError(f"the state cannot hold this value: {_line(error.orig)}") from None
        except DBAPIError as error:
            failure = _failure(error.orig) or ((STATE_AWAY, None) if error.connection_invalidated else None)
            if failure is None:
                raise
            raise self._unavailable(*failure, error.orig) from None

    @contextmanager
    def _translate_driver_errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.OperationalError as error:
            raise self._unavailable(*(_failure(error) or (STATE_AWAY, None)), error) from None

    def _unavailable(self, failure: Failure, advice: str | None, error: BaseException | None) -> StateUnavailable:
        said = _line(error, str(self._parameters.get("password", "")))
        if failure is STATE_AWAY:
            advice = next((advice for part, advice in ADVICE.items() if part in said), advice)
        return StateUnavailable(failure, self.name, said, advice)

    @contextmanager
    def upgrading(self, driver: Any) -> Iterator[None]:
        """Lift the time limits during an upgrade. Other processes wait until the upgrade is complete."""
        driver.execute("set statement_timeout = 0; set idle_in_transaction_session_timeout = 0")
        yield
        driver.execute(SESSION)

    def keep_copy(self, driver: Any, version: str) -> str:
        """Make no copy, because the upgrade is one transaction. The returned text refers to the backups of the server.

        Raises Locked if processes of an older svcctl use the database.
        """
        users = driver.execute(
            "select count(*) from pg_stat_activity where datname = current_database()"
            f" and application_name ~ '^{OPEN}\\d' and application_name <> %s",
            (f"{OPEN}{version}",),
        ).fetchone()[0]
        if users:
            raise Locked(
                f"the state in {self.name} needs an upgrade, and processes of an older svcctl use it ({users})",
                hint="stop them first",
            )
        return "only a backup of the server has the old tables"

    def mark_version(self, driver: Any, version: str) -> None:
        self._open_as = f"{OPEN}{version}"
        driver.execute("select set_config('application_name', %s, false)", (self._open_as,))

    def moment(self) -> ColumnElement[int]:
        return cast(func.floor(func.extract("epoch", func.clock_timestamp()) * 1000), BigInteger)


def database_of(url: str, password_file: str | None, *, may_hold_password: bool) -> PostgreSQL:
    """Return the database at a URL.

    `may_hold_password` is False for a URL from the command line, which other users can see. Raises UsageError if such
    a URL has a password, or if the password file cannot be read.
    """
    if "password" in _parameters(url) and not may_hold_password:
        raise UsageError(
            "--state has a password, which everybody on this machine can see in the list of processes",
            hint=f"set PGPASSWORD or {STATE_PASSWORD_FILE.environment}, or the whole URL as {STATE.environment}",
        )
    return PostgreSQL(url, password_file=password_file)


def _failure(error: BaseException | None) -> tuple[Failure, str | None] | None:
    return next((failure for kind, failure in FAILURES.items() if isinstance(error, kind)), None)


def _password(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the file of the state's password, {file}, cannot be read: {reason(error)}") from None


def _parameters(url: str) -> dict[str, Any]:
    """Parse a URL. Raises UsageError for a wrong URL.

    The message omits the URL, because any part of a wrong URL may contain the password.
    """
    try:
        parameters = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        parameters = {}
    # A host or a database name that contains @ or / may contain a part of the password.
    spilled = any(re.search("[@/]", str(parameters.get(key, ""))) for key in ("host", "dbname"))
    if not parameters or spilled or not re.fullmatch(r"[\d,]*", str(parameters.get("port", ""))):
        raise UsageError(
            "the address of the state is not a URL of PostgreSQL",
            hint="write postgresql://user@host:5432/name; in a password, @ is %40, / is %2F and % is %25",
        )
    return parameters


def _public_url(parameters: Mapping[str, Any]) -> str:
    host = parameters.get("host") or os.environ.get("PGHOST") or "localhost"
    port = f":{parameters['port']}" if "port" in parameters else ""
    return f"postgresql://{host}{port}/{parameters.get('dbname') or os.environ.get('PGDATABASE') or ''}"


def _line(error: BaseException | None, secret: str = "") -> str:
    """Return the driver's error message in one line, without the password."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = re.sub(r"^connection failed: ", "", lines[0]) if lines else type(error).__name__
    return without_secret(text, secret)
