"""Add the names of API keys, and the moments of a key's creation, expiry and last use."""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import Column, inspect
from sqlalchemy.types import TypeEngine

from svcctl.service.state import schema

revision = "0003"
down_revision = "0002"

COLUMNS: dict[str, TypeEngine[Any]] = {
    "name": schema.TEXT,
    "created": schema.INTEGER,
    "expires": schema.INTEGER,
    "last_used": schema.INTEGER,
}


def upgrade() -> None:
    existing = {column["name"] for column in inspect(op.get_bind()).get_columns(schema.accounts.name)}
    for name, type_ in COLUMNS.items():
        if name not in existing:
            op.add_column(schema.accounts.name, Column(name, type_))
