"""Run by Alembic: upgrades the database of the connection that `upgrade` passes on, inside its transaction."""

from __future__ import annotations

from alembic import context

from svcctl.service.state import schema

context.configure(connection=context.config.attributes["connection"], target_metadata=schema.metadata)
context.run_migrations()
