"""The script that Alembic runs to upgrade a database.

The script uses the connection and the transaction of `upgrade`.
"""

from __future__ import annotations

from alembic import context

from svcctl.service.state import schema

context.configure(connection=context.config.attributes["connection"], target_metadata=schema.metadata)
context.run_migrations()
