"""Give each job a number for the order of launches, which was SQLite's rowid before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

TEXTS = ("owner", "status", "type", "friendly_name", "query", "request", "params")
SINCE = ("sent", "last_datetime", "checkpoint", "error")


def upgrade() -> None:
    op.rename_table("jobs", "unnumbered")
    op.drop_index("jobs_by_owner")
    op.create_table(
        "jobs",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in TEXTS),
        sa.Column("sent", sa.Integer, nullable=False),
        sa.Column("last_datetime", sa.Integer, nullable=False),
        sa.Column("checkpoint", sa.Text, nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sqlite_strict=True,
    )
    columns = ", ".join(("id", *TEXTS, *SINCE))
    op.execute(f"insert into jobs (number, {columns}) select rowid, {columns} from unnumbered")
    op.drop_table("unnumbered")
    op.create_index("jobs_by_owner", "jobs", ["owner"])
