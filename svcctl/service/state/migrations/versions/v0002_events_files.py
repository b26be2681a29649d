"""Add the table of events files. Also add the date up to which a job's destination has all events."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, inspect

from svcctl.service.state import schema

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    connection = op.get_bind()
    schema.events_files.create(connection, checkfirst=True)
    if not any(column["name"] == "accepted" for column in inspect(connection).get_columns(schema.jobs.name)):
        op.add_column(schema.jobs.name, Column("accepted", schema.INTEGER, nullable=False, server_default="0"))
