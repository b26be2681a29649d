"""A query request: its fields, and the body that is signed and sent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from svcctl.api.destinations import Destination
from svcctl.api.events import MODES
from svcctl.dates.operators import DATE_FORMATS, Moment
from svcctl.errors import UsageError
from svcctl.words import did_you_mean


@dataclass(frozen=True)
class QueryRequest:
    """A query to run, by its text or by the ID of a saved query; without `to` it is continuous and never ends.

    Dates are epoch seconds, or text as `svcctl.dates.operators` lists it. UsageError when fields contradict each other.
    """

    from_: Moment
    to: Moment | None = None
    query: str | None = None
    query_id: str | None = None
    mode: str = "json"
    destination: Destination | None = None
    date_format: str | None = None
    time_zone: str | None = None
    skip: int | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if (self.query is None) == (self.query_id is None):
            raise UsageError("a request has either a query or the ID of a saved query")
        _known("format", self.mode, tuple(MODES))
        if self.date_format is not None:
            _known("date format", self.date_format, DATE_FORMATS)
        for name, number in (("skip", self.skip), ("limit", self.limit)):
            if number is not None and number < 0:
                raise UsageError(f"{name} {number} is below 0")

    @property
    def streams(self) -> bool:
        """Whether the answer begins before the service has all of its rows."""
        return MODES[self.mode].streams

    @property
    def continuous(self) -> bool:
        return self.to is None

    def body(self) -> bytes:
        """The JSON to send, in UTF-8; the same bytes every time."""
        return self._body

    @cached_property
    def _body(self) -> bytes:
        try:
            return json.dumps(self._fields(), ensure_ascii=False, separators=(",", ":")).encode("utf-8")
        except UnicodeEncodeError:
            raise UsageError("the query or a parameter holds bytes that are not UTF-8") from None

    def _fields(self) -> dict[str, Any]:
        fields = {
            "query": self.query,
            "queryId": self.query_id,
            "from": self.from_,
            "to": self.to,
            "mode": {"type": self.mode},
            "destination": self.destination and self.destination.to_json(),
            "dateFormat": self.date_format,
            "timeZone": self.time_zone,
            "skip": self.skip,
            "limit": self.limit,
        }
        return {name: value for name, value in fields.items() if value is not None}


def _known(what: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        raise UsageError(f"there is no {what} '{name}'", hint=did_you_mean(name, names) or f"one of {', '.join(names)}")
