"""The versions of the state's tables, and the upgrade of a database from an older version.

A new database gets the tables of `schema` and the newest version number. Alembic is not imported for a new database,
because the import takes long. For an older database, Alembic runs the scripts in `versions`, in one transaction. To
change a table, change `schema`, and add a script that makes the same change in older databases.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, insert, inspect, select

from svcctl.service.state import schema

SCRIPTS = Path(__file__).parent
"""The folder with Alembic's script `env.py` and the folder `versions`."""
FOREIGN = ""
"""The result of `version_of` for a database that has only tables of other programs."""


def newest(scripts: Path) -> str:
    """Return the newest version: the number of the last script, such as `0001` of `v0001_first_tables.py`."""
    return max(script.name[1:5] for script in (scripts / "versions").glob("v*.py"))


def version_of(connection: Connection) -> str | None:
    """Return the version of a database.

    Return None if the database has no tables. Return FOREIGN if all tables belong to other programs.
    """
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
    """Upgrade an older database to the newest version, in the transaction that has already begun on the connection."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(scripts))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
