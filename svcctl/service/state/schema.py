"""The tables of the service's state, with column types that both SQLite and PostgreSQL have.

The SQLite tables are strict: SQLite checks types as PostgreSQL does, and allows only INTEGER, REAL, TEXT and BLOB. The
module `migrations` describes how to change a table.
"""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import (
    DDL,
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Dialect,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    event,
    false,
    true,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import TypeEngine


class Flag(Boolean):
    """A boolean column. Strict tables of SQLite store a boolean as 1 or 0."""


@compiles(Flag, "sqlite")
def _integer(*_: Any, **__: Any) -> str:
    return "INTEGER"


class JsonText(TypeDecorator[Any]):
    """A value that is stored as JSON text. None is stored as `null`."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:
        return json.dumps(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)


TEXT = Text().with_variant(Text(collation="C"), "postgresql")
"""The type of text columns, which both databases order by code point. SQLite always orders text by code point."""
INTEGER = BigInteger().with_variant(Integer(), "sqlite")
"""The type of integer columns with 64 bits, such as a count, a key, or a moment in epoch milliseconds."""
DOUBLE: TypeEngine[float] = Double().with_variant(REAL(), "sqlite")

metadata = MetaData()


def _table(name: str, *parts: Any) -> Table:
    return Table(name, metadata, *parts, sqlite_strict=True)


version = Table("alembic_version", metadata, Column("version_num", String(32), primary_key=True))
"""A table with a single row. This row has the version of all tables.

Alembic defines the name of the table and of its column.
"""

resellers = _table(
    "resellers",
    Column("name", TEXT, primary_key=True),
    Column("include_all_available_apps", Flag, nullable=False, server_default=true()),
)
features = _table(
    "features",
    Column("kind", TEXT, primary_key=True),
    Column("name", TEXT, primary_key=True),
    Column("generic", Flag, nullable=False, server_default=false()),
    CheckConstraint("kind in ('policy', 'application')"),
)
plans = _table(
    "plans",
    Column("reseller", ForeignKey("resellers.name"), primary_key=True),
    Column("name", TEXT, primary_key=True),
    Column("time", DOUBLE),
    Column("volume", DOUBLE),
)
plan_features = _table(
    "plan_features",
    Column("reseller", TEXT, primary_key=True),
    Column("plan", TEXT, primary_key=True),
    Column("kind", TEXT, primary_key=True),
    Column("name", TEXT, primary_key=True),
    ForeignKeyConstraint(["reseller", "plan"], ["plans.reseller", "plans.name"], ondelete="CASCADE"),
    ForeignKeyConstraint(["kind", "name"], ["features.kind", "features.name"], ondelete="CASCADE"),
)

domains = _table(
    "domains",
    Column("id", INTEGER, primary_key=True),
    Column("name", TEXT, nullable=False),
    Column("reseller", ForeignKey("resellers.name")),
    Column("plan", TEXT),
    Column("time", DOUBLE),
    Column("volume", DOUBLE),
    Column("status", TEXT, nullable=False),
    Column("deleted_at", INTEGER),
)
"""The table of domains.

Other tables refer to a domain by its identity, `id`. The row of a deleted domain is kept, so that its identity is never
given to another domain. A new domain can take the name of a deleted domain.
"""
# The index is created by SQL text. SQLAlchemy would load the dialect of PostgreSQL for a partial index, which takes 80
# ms.
_ONE_LIVING = DDL("create unique index one_living_domain_per_name on domains (name) where deleted_at is null")
event.listen(domains, "after_create", _ONE_LIVING)
domain_applications = _table(
    "domain_applications",
    Column("domain", ForeignKey("domains.id"), primary_key=True),
    Column("name", TEXT, primary_key=True),
)
accounts = _table(
    "accounts",
    Column("api_key", TEXT, primary_key=True),
    Column("api_secret", TEXT, nullable=False),
    Column("token", TEXT, unique=True),
    Column("domain", ForeignKey("domains.id")),
    Column("administrator", Flag, nullable=False, server_default=false()),
    Column("reseller", TEXT),
    Column("name", TEXT),
    Column("created", INTEGER),
    Column("expires", INTEGER),
    Column("last_used", INTEGER),
)
"""The table of accounts.

An account belongs to a domain or to a reseller. `name` says who uses the account's API key. `created` is null for a key
that was created before version 0003.
"""
users = _table("users", Column("email", TEXT, primary_key=True))
members = _table(
    "members",
    Column("domain", ForeignKey("domains.id"), primary_key=True),
    Column("user", ForeignKey("users.email"), primary_key=True),
    Column("role", TEXT, nullable=False),
    Column("owner", Flag, nullable=False),
)

roles = _table(
    "roles",
    Column("domain", ForeignKey("domains.id"), primary_key=True),
    Column("name", TEXT, primary_key=True),
    Column("description", TEXT),
    Column("policies", JsonText, nullable=False),
    Column("applications", JsonText, nullable=False),
    Column("resource_ids", JsonText, nullable=False),
    Column("finder_name", TEXT),
    Column("default_application", TEXT),
)

queries = _table(
    "queries",
    Column("id", TEXT, primary_key=True),
    Column("text", TEXT, nullable=False),
)

jobs = _table(
    "jobs",
    Column("number", INTEGER, primary_key=True),
    Column("id", TEXT, nullable=False, unique=True),
    Column("domain", ForeignKey("domains.id")),
    Column("reseller", TEXT),
    Column("status", TEXT, nullable=False),
    Column("type", TEXT, nullable=False),
    Column("friendly_name", TEXT, nullable=False),
    Column("query", TEXT, nullable=False),
    Column("request", JsonText, nullable=False),
    Column("params", JsonText, nullable=False),
    Column("sent", INTEGER, nullable=False),
    Column("last_datetime", INTEGER, nullable=False),
    Column("checkpoint", JsonText, nullable=False),
    Column("error", JsonText, nullable=False),
    Column("place", TEXT),
    Column("holder", TEXT),
    Column("fence", INTEGER, nullable=False, server_default="0"),
    Column("expires", INTEGER, nullable=False, server_default="0"),
    Column("generated", INTEGER, nullable=False, server_default="0"),
    Column("reached", INTEGER, nullable=False, server_default="0"),
    Column("failing_since", INTEGER),
    Column("delivered", INTEGER),
    Column("accepted", INTEGER, nullable=False, server_default="0"),
    Column("verified", INTEGER),
    Column("kept_from", INTEGER),
)
"""The table of jobs.

A job belongs to a domain or to a reseller. A job that was launched later has a higher `number`. `place` is the
identifier of the service that has the job's events. `place` is null if every service process has these events.

`holder`, `fence` and `expires` are the lease of the process that runs the job. This process reports the progress of the
job in `generated`, `reached` and `accepted`. `failing_since` is the moment at which the job began to fail. `delivered`
is the moment at which rows of the job were last delivered. `verified` is the date up to which the destination was found
to have all rows. `kept_from` is the date from which the destination keeps rows.
"""
Index("jobs_by_domain", jobs.c.domain)
job_steps = _table(
    "job_steps",
    Column("job", ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("first", INTEGER, primary_key=True),
    Column("step", JsonText, nullable=False),
    Column("offset", INTEGER),
)
job_files = _table(
    "job_files",
    Column("job", ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", INTEGER, primary_key=True),
    Column("first", INTEGER, nullable=False),
    Column("end", INTEGER, nullable=False),
    Column("sha256", JsonText, nullable=False),
)
"""The files in the log of each job. The module `jobs.step_log` describes the log."""

folder = _table(
    "folder",
    Column("identity", TEXT, primary_key=True),
    Column("uri", TEXT, nullable=False),
)
"""The state's shared folder: at most one row with the identity and the latest address of the folder.

For a service without a shared folder, the identity is empty and the address is `none`.
"""

events_files = _table(
    "events_files",
    Column("place", TEXT, primary_key=True),
    Column("identity", TEXT, nullable=False),
    Column("tables", JsonText, nullable=False),
    Column("loss", JsonText, nullable=False),
)
"""The table of events files, with one row for each service.

`place` is the identifier of the service (see `process.place`). `identity` is the identity of the file. `tables` has the
position of the end of each table, and the number of events in the table. `loss` is the loss of events, until an
operator confirms the loss.
"""
