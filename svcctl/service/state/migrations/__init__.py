"""The versions of the state's tables, and the upgrade of a database from an older version.

A new database gets the tables of `schema` and the newest version, without Alembic, which takes long to load. Alembic
upgrades an older one with the scripts in `versions`, in one transaction. Before the first release, a change of a table
is a change of `schema`; after it, the first script gets the released tables, and the change a script of its own.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, insert, inspect, select

from svcctl.service.state import schema

SCRIPTS = Path(__file__).parent
"""The folder of the scripts, as Alembic expects it."""
FOREIGN = ""
"""Stands for the version of a database that has tables of other programs only."""


def newest(scripts: Path) -> str:
    """Return the version that scripts lead to: the number of the last one, `0001` of `v0001_first_tables.py`."""
    return max(script.name[1:5] for script in (scripts / "versions").glob("v*.py"))


def version_of(connection: Connection) -> str | None:
    """Return the version of a database; None when it has no tables."""
    tables = inspect(connection).get_table_names()
    if schema.version.name in tables:
        version = connection.scalar(select(schema.version.c.version_num)) or FOREIGN
        return version if version.isdigit() else FOREIGN
    return FOREIGN if tables else None


def create(connection: Connection, version: str) -> None:
    """Create the tables of the newest version in an empty database."""
    schema.metadata.create_all(connection, checkfirst=False)
    connection.execute(insert(schema.version).values(version_num=version))


def upgrade(connection: Connection, scripts: Path) -> None:
    """Upgrade an older database to the newest version, in the transaction that the connection has begun."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(scripts))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
