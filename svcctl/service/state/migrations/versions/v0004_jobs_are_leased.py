"""Jobs are leased to the process that runs them, which tells the others how far it is."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    for name in ("place", "holder"):
        op.add_column("jobs", sa.Column(name, sa.Text))
    for name in ("fence", "expires", "generated", "reached"):
        integer = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
        op.add_column("jobs", sa.Column(name, integer, nullable=False, server_default="0"))
