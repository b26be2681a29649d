"""Accounts and jobs refer to their domain by its identity, and no longer by its name, which a new domain may take.

A job belongs to the domain that had the name when the job was launched. The jobs of deleted domains are deleted, as a
deletion does now, and so are accounts without a domain.
"""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

ACCOUNT = ("api_key", "api_secret", "token")
JOB = ("id", "status", "type", "friendly_name", "query", "request", "params", "sent", "last_datetime", "checkpoint")


def upgrade() -> None:
    _accounts()
    _jobs()


def _accounts() -> None:
    op.rename_table("accounts", "named_accounts")
    op.create_table(
        "accounts",
        sa.Column("api_key", sa.Text, primary_key=True),
        sa.Column("api_secret", sa.Text, nullable=False),
        sa.Column("token", sa.Text, unique=True),
        sa.Column("domain", sa.Integer, sa.ForeignKey("domains.id")),
        sa.Column("administrator", sa.Integer, nullable=False, server_default=sa.false()),
        sa.Column("reseller", sa.Text),
        sqlite_strict=True,
    )
    columns = ", ".join(ACCOUNT)
    op.execute(
        f"insert into accounts ({columns}, domain, administrator, reseller)"
        f" select {columns}, domains.id, administrator, named.reseller from named_accounts as named"
        " left join domains on domains.name = named.domain and domains.deleted_at is null and named.reseller is null"
        " where named.reseller is not null or domains.id is not null"
    )
    op.drop_table("named_accounts")


def _jobs() -> None:
    op.rename_table("jobs", "named_jobs")
    op.drop_index("jobs_by_owner", "named_jobs")
    op.create_table(
        "jobs",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("domain", sa.Integer, sa.ForeignKey("domains.id")),
        sa.Column("reseller", sa.Text),
        *(sa.Column(name, sa.Text, nullable=False) for name in JOB[1:7]),
        *(sa.Column(name, sa.Integer, nullable=False) for name in JOB[7:9]),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("checkpoint", "error")),
        sqlite_strict=True,
    )
    op.create_index("jobs_by_domain", "jobs", ["domain"])
    columns = ", ".join((*JOB, "error"))
    copied = (
        f"insert into jobs (number, domain, reseller, {columns})"
        f" select number, :domain, :reseller, {columns} from named_jobs where number = :number"
    )
    for number, domain, reseller in _owners():
        op.execute(sa.text(copied).bindparams(number=number, domain=domain, reseller=reseller))
    op.drop_table("named_jobs")


def _owners() -> list[tuple[int, int | None, str | None]]:
    """The number of each job that has a living owner, and its domain or reseller."""
    connection = op.get_bind()
    living: dict[str, int] = {}
    last_deletion: dict[str, int] = {}
    for id, name, deleted_at in connection.execute(sa.text("select id, name, deleted_at from domains")):
        if deleted_at is None:
            living[name] = id
        else:
            last_deletion[name] = max(deleted_at, last_deletion.get(name, 0))
    owners: list[tuple[int, int | None, str | None]] = []
    for number, owner, request in connection.execute(sa.text("select number, owner, request from named_jobs")):
        if owner.startswith("@"):
            owners.append((number, None, owner[1:]))
        elif owner in living and json.loads(request).get("launched", 0) >= last_deletion.get(owner, 0):
            owners.append((number, living[owner], None))
    return owners
