"""The checked request for a query."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, timezone
from typing import TYPE_CHECKING

from svcctl.api.destinations import Destination
from svcctl.dates.range import Range

if TYPE_CHECKING:
    from svcctl.service.rendering.keep_alive import KeepAlive


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """The checked fields of a request for a query (POST /query).

    If the request has a destination, the query becomes a job.
    """

    query: str
    range: Range
    mode: str = "json"
    date_format: str = "default"
    zone: timezone = UTC
    skip: int = 0
    limit: int | None = None
    destination: Destination | None = None
    continues: str | None = None
    """The ID of the earlier job that the new job continues. The value is None if the new job continues no other job."""
    temporary_table: str | None = None
    """The ID of the temporary table that the query reads. The value is None if the query reads a stored table."""
    ip_as_string: bool | None = None
    keep_alive: KeepAlive | None = None
