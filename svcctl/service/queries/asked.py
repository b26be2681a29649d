"""The query as it was asked: what a response, a continuous query and a job are made from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, timezone

from svcctl.api.dates import Range
from svcctl.api.destinations import Destination


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """A query as it was asked, with its dates resolved; with a destination it is a job."""

    query: str
    range: Range
    mode: str = "json"
    date_format: str = "default"
    zone: timezone = UTC
    skip: int = 0
    limit: int | None = None
    destination: Destination | None = None
