"""Queries of jobs, as the service stores them."""

from __future__ import annotations

from datetime import UTC, datetime

from svcctl.dates.range import Range
from svcctl.service.jobs.checkpoint import StoredQuery
from svcctl.service.queries.request import AskedQuery

FIRST = datetime(2024, 1, 1, tzinfo=UTC)
FIRST_MS = 1704067200000


def stored_query(text: str = "from t", *, launched: datetime = FIRST, continues: str | None = None) -> StoredQuery:
    """A query from 2024 on, without an end."""
    return StoredQuery(AskedQuery(text, Range(FIRST, None), continues=continues), launched)
