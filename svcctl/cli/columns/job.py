"""The columns of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

from svcctl.api import models
from svcctl.api.job_watch import Watched
from svcctl.dates.lengths import rough_text
from svcctl.terminal.records import ListField, Listing

_ID = ListField[Watched]("id", attrgetter("job.id"), "id")
_STATUS = ListField[Watched]("status", attrgetter("job.status"), "id")
_TYPE = ListField[Watched]("type", attrgetter("job.type"), "id")
_NAME = ListField[Watched]("friendlyName", attrgetter("job.friendly_name"), least=18)
_GENERATED = ListField[Watched]("eventGenerated", attrgetter("job.event_generated"), "int8")
_SENT = ListField[Watched]("eventsSent", attrgetter("job.events_sent"), "int8")
_LAST_FIELD = ListField[Watched](
    "lastDatetime",
    attrgetter("job.last_datetime"),
    "int8",
    shown=lambda row: row.job.last_datetime or None,
    shown_type="timestamp",
)
_RATE = ListField[Watched]("rate", attrgetter("rate"), "float8")
_LAG_FIELD = ListField[Watched]("lag", attrgetter("lag"), "float8")
_ERROR = ListField[Watched](
    "error", lambda row: list(row.job.error), shown=lambda row: row.job.reason or None, below=True
)
_QUERY = ListField[Watched]("query", attrgetter("job.query"))
_IS_FAILING = ListField[Watched]("failing", lambda row: models.status_text(row.job) == models.FAILING, "bool")
"""A column of csv and other formats for programs, where the column `status` has RUNNING for a failing job."""

# A narrow terminal leaves out the last columns, so the most important columns come first.
_SHORT_ID = replace(_ID, value=attrgetter("short"))
_STATE = replace(_STATUS, value=lambda row: models.status_text(row.job), marks={models.FAILING: 31})
_LAG_IN_WORDS = replace(_LAG_FIELD, shown=lambda row: None if row.lag is None else rough_text(row.lag), shown_type="id")


def _only_generated(jobs: Sequence[Watched]) -> bool:
    """Return whether any job has a count of generated events, but no count of sent events."""
    return any(row.job.events_sent is None and row.job.event_generated is not None for row in jobs)


_INSTEAD_OF_SENT = replace(_GENERATED, needed=_only_generated)
_BESIDE_SENT = replace(_GENERATED, needed=lambda jobs: not _only_generated(jobs))

JOBS = Listing[Watched](
    (_ID, _STATUS, _IS_FAILING, _TYPE, _NAME, _GENERATED, _SENT, _LAST_FIELD, _ERROR, _QUERY),
    people=(_SHORT_ID, _STATE, _NAME, _LAG_IN_WORDS, _ERROR, _INSTEAD_OF_SENT, _SENT, _TYPE, _LAST_FIELD, _QUERY),
)
JOB = replace(
    JOBS,
    people=(_ID, _STATE, _TYPE, _NAME, _GENERATED, _SENT, _LAST_FIELD, _LAG_IN_WORDS, _ERROR, _QUERY),
    extra=attrgetter("job.extra"),
    moments=frozenset(("from", "to", "launched", "failingSince", "lastDelivered", "verified", "keptFrom")),
    whole=True,
)
"""The columns of a single job, with all fields that the service returned."""
WATCHED = Listing[Watched](
    (_ID, _STATUS, _IS_FAILING, _SENT, _RATE, _LAG_FIELD, _ERROR, _TYPE, _NAME, _GENERATED),
    people=(
        _SHORT_ID,
        _STATE,
        _NAME,
        _LAG_IN_WORDS,
        _ERROR,
        _INSTEAD_OF_SENT,
        _SENT,
        _RATE,
        _TYPE,
        _BESIDE_SENT,
    ),
)
