"""The types of the tables, in the two databases that they are for."""

from __future__ import annotations

import pytest
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable

from svcctl.service.state.schema import metadata


@pytest.mark.parametrize(
    ("table", "in_sqlite", "in_postgresql"),
    [
        (
            "accounts",
            [
                "api_key TEXT",
                "api_secret TEXT",
                "token TEXT",
                "domain INTEGER",
                "administrator INTEGER",
                "reseller TEXT",
                "name TEXT",
                "created INTEGER",
                "expires INTEGER",
                "last_used INTEGER",
            ],
            [
                'api_key TEXT COLLATE "C"',
                'api_secret TEXT COLLATE "C"',
                'token TEXT COLLATE "C"',
                "domain BIGINT",
                "administrator BOOLEAN",
                'reseller TEXT COLLATE "C"',
                'name TEXT COLLATE "C"',
                "created BIGINT",
                "expires BIGINT",
                "last_used BIGINT",
            ],
        ),
        (
            "plans",
            ["reseller TEXT", "name TEXT", "time REAL", "volume REAL"],
            [
                'reseller TEXT COLLATE "C"',
                'name TEXT COLLATE "C"',
                "time DOUBLE PRECISION",
                "volume DOUBLE PRECISION",
            ],
        ),
        (
            "jobs",
            [
                "number INTEGER",
                "id TEXT",
                "domain INTEGER",
                "reseller TEXT",
                "status TEXT",
                "type TEXT",
                "friendly_name TEXT",
                '"query" TEXT',
                "request TEXT",
                "params TEXT",
                "sent INTEGER",
                "last_datetime INTEGER",
                "checkpoint TEXT",
                "error TEXT",
                "place TEXT",
                "holder TEXT",
                "fence INTEGER",
                "expires INTEGER",
                "generated INTEGER",
                "reached INTEGER",
                "failing_since INTEGER",
                "delivered INTEGER",
                "accepted INTEGER",
                "verified INTEGER",
                "kept_from INTEGER",
            ],
            [
                "number BIGSERIAL",
                'id TEXT COLLATE "C"',
                "domain BIGINT",
                'reseller TEXT COLLATE "C"',
                'status TEXT COLLATE "C"',
                'type TEXT COLLATE "C"',
                'friendly_name TEXT COLLATE "C"',
                'query TEXT COLLATE "C"',
                "request TEXT",
                "params TEXT",
                "sent BIGINT",
                "last_datetime BIGINT",
                "checkpoint TEXT",
                "error TEXT",
                'place TEXT COLLATE "C"',
                'holder TEXT COLLATE "C"',
                "fence BIGINT",
                "expires BIGINT",
                "generated BIGINT",
                "reached BIGINT",
                "failing_since BIGINT",
                "delivered BIGINT",
                "accepted BIGINT",
                "verified BIGINT",
                "kept_from BIGINT",
            ],
        ),
    ],
)
def test_a_column_has_the_type_that_each_database_checks(
    table: str, in_sqlite: list[str], in_postgresql: list[str]
) -> None:
    found = []
    for dialect in (sqlite.dialect(), postgresql.dialect()):
        lines = str(CreateTable(metadata.tables[table]).compile(dialect=dialect)).splitlines()
        columns = [line.strip().rstrip(", ") for line in lines if line.startswith("\t")]
        columns = [column.removesuffix(" NOT NULL").split(" DEFAULT ")[0] for column in columns]
        found.append([column for column in columns if not column.startswith(("PRIMARY KEY", "UNIQUE", "FOREIGN KEY"))])
    assert found == [in_sqlite, in_postgresql]


def test_every_table_of_a_noun_is_strict_in_sqlite() -> None:
    strict = {name for name, table in metadata.tables.items() if table.dialect_options["sqlite"]["strict"]}
    assert set(metadata.tables) - strict == {"alembic_version"}
