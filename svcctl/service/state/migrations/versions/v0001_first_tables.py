"""Create the tables of `schema`."""

from __future__ import annotations

from alembic import op

from svcctl.service.state import schema

revision = "0001"
down_revision = None


def upgrade() -> None:
    schema.metadata.create_all(op.get_bind())
