"""The versions of the state's tables, and the upgrade of a database from an older version.

A new database gets the tables of `schema` and VERSION. Alembic upgrades an older one with the scripts in `versions`, in
one transaction. To change a table, change `schema` and add a script with the next number; a test compares an upgraded
database with a new one. Versions up to 0002 existed as SQLite files only, so only later scripts need SQL that every
database understands.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, insert, inspect, select

from svcctl.service.state import schema

VERSION = max(script.name[1:5] for script in (Path(__file__).parent / "versions").glob("v*.py"))
"""The version of `schema`: the number of the last script, `0002` of `v0002_jobs_are_numbered.py`."""
UNVERSIONED = "0000"
"""Tables from before there were versions; some may be missing, when the first start was killed."""


def version_of(connection: Connection) -> str | None:
    """Return the version of a database; None when it has no tables."""
    tables = inspect(connection).get_table_names()
    if schema.version.name in tables:
        return connection.scalar(select(schema.version.c.version_num))
    return UNVERSIONED if tables else None


def create(connection: Connection) -> None:
    """Create the tables of VERSION in an empty database."""
    schema.metadata.create_all(connection, checkfirst=False)
    connection.execute(insert(schema.version).values(version_num=VERSION))


def upgrade(connection: Connection) -> None:
    """Upgrade an older database to VERSION, in the transaction that the connection has begun."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    command.upgrade(config, VERSION)
