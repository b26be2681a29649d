"""A shared state knows the shared folder of its services."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from svcctl.service.state.schema import TEXT

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "folder",
        sa.Column("identity", TEXT, primary_key=True),
        sa.Column("uri", TEXT, nullable=False),
        sqlite_strict=True,
    )
