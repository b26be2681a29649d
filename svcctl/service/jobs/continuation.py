"""The continuation of an old job by a new job.

The new job has its own query and destination, and begins at the point where the old job stopped.
"""

from __future__ import annotations

from dataclasses import replace

from svcctl.dates.epochs import from_ms
from svcctl.errors import ServiceError
from svcctl.service.jobs.checkpoint import JobProgress, StoredQuery
from svcctl.service.jobs.job_table import StoredJob
from svcctl.service.language import parse
from svcctl.service.queries.continuous import period_of
from svcctl.service.queries.schedule import CoveredEvents, covered_after


def follow(before: StoredJob, after: StoredJob) -> StoredJob:
    """Return a copy of the new job, `after`. The copy begins at the point where the old job, `before`, stopped.

    If both jobs read the same table, the new job reads exactly the events that the old job has not read. Otherwise the
    new job begins at the last date of the old job. Raises ServiceError if the new query cannot continue the old query.
    Also raises ServiceError if the stored query or progress of the old job cannot be read.
    """
    query, old = after.rest.request, before.rest
    rest = old.progress.before or (old if old.progress.saved is not None else None)
    covered, start = old.request.covered, old.request.asked.range.start
    if rest is old:
        checkpoint = old.progress.checkpoint
        step = checkpoint.batch.steps[-1] if checkpoint.batch else checkpoint.step
        covered = covered_after(covered, step) if step is not None else covered
    last_datetime = old.progress.last_datetime
    if parse(old.request.asked.query).table != parse(query.asked.query).table:
        covered, start = None, max(start, from_ms(last_datetime))
    _check_kinds(old.request, query, covered)
    asked = replace(query.asked, range=query.asked.range._replace(start=start))
    request = replace(query, asked=asked, covered=covered)
    return replace(after, request=request, progress=JobProgress(last_datetime=last_datetime, before=rest))


def _check_kinds(old: StoredQuery, new: StoredQuery, covered: CoveredEvents | None) -> None:
    """Raise ServiceError if the old query has an end, and only the new query groups by periods.

    The first groups of the new query would lack events that the old query has already read.
    """
    before, after = (period_of(parse(query.asked.query)) for query in (old, new))
    if covered is not None and covered.end is not None and before is None and after is not None:
        raise ServiceError("a query of groups cannot continue a query of single events that has an end")
