"""The columns of domains."""

from __future__ import annotations

from operator import attrgetter

from svcctl.api.models import Domain
from svcctl.terminal.records import Listing, attributes

DOMAINS = Listing[Domain](
    attributes("name", "plan", "time", "volume", "status", time="float8", volume="float8"), extra=attrgetter("extra")
)
