"""The versions of the state's tables, and how a database gets from an older version to this one.

A new database starts with the tables of `schema`, at VERSION. An older one is upgraded by the scripts in `versions`,
which Alembic runs in one transaction. To change a table: change `schema`, add a script with the next number, and set
VERSION to it; a test holds an upgraded database against a new one. Versions up to 0002 were of SQLite files only, so
only later scripts need SQL that every database has.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, insert, inspect, select

from svcctl.service import schema

VERSION = "0002"
UNVERSIONED = "0000"
"""The tables as they were before they had a version, or some of them: the first start could be cut short."""


def version_of(connection: Connection) -> str | None:
    """The version of a database, None of one without tables."""
    tables = inspect(connection).get_table_names()
    if schema.version.name in tables:
        return connection.scalar(select(schema.version.c.version_num))
    return UNVERSIONED if tables else None


def create(connection: Connection) -> None:
    """The tables of VERSION, in an empty database."""
    schema.metadata.create_all(connection, checkfirst=False)
    connection.execute(insert(schema.version).values(version_num=VERSION))


def upgrade(connection: Connection) -> None:
    """The tables of an older version become those of VERSION, in the transaction that the connection has begun."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    command.upgrade(config, VERSION)
