"""The job that `svcctl query --dest` launches."""

from __future__ import annotations

from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING

from svcctl.api import jobs
from svcctl.api.job_names import namesakes
from svcctl.cli.commands.query.result import show
from svcctl.cli.context import Context
from svcctl.errors import SvcctlError
from svcctl.terminal.records import ListField, Listing, attributes
from svcctl.terminal.selection import Selection

if TYPE_CHECKING:
    from svcctl.api.models import Job
    from svcctl.api.query import QueryRequest
    from svcctl.cli.commands.query.options import QueryOptions

LAUNCHED: Listing[Job] = Listing(
    (*attributes("id", "status", "type"), ListField("friendlyName", attrgetter("friendly_name")))
)


def launch(svc: Context, request: QueryRequest, options: QueryOptions) -> None:
    """Launch a job and print it."""
    chosen = svc.format(options.format, lists=True)
    if options.dry_run:
        show(svc, request)
        return
    job = jobs.launch(svc.client, request, svc.diagnostics.note)
    svc.output.records(LAUNCHED, [job], chosen, Selection(header=not options.no_header))
    if request.destination is not None and "friendlyname" in map(str.lower, request.destination.params):
        with suppress(SvcctlError):  # the job runs even if its name cannot be compared with others
            if (others := namesakes(job, svc.client.jobs())) is not None:
                svc.diagnostics.note(others)
