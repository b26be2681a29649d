"""Four jobs in different states, and jobs that a test launches at the real service."""

from __future__ import annotations

from support.pseudo_terminal import Seen, on_terminal_of
from support.reseller import Done, Machine
from support.shells import Shell
from svcctl.service.jobs import job_table

NOWHERE = "00000000-0000-0000-0000-000000000000"
NIGHTLY, OTHER = "3f2a41c0-0000-4000-8000-000000000001", "3f2a41c0-0000-4000-8000-000000000002"
STOPPED, COMPLETED = "beef0000-0000-4000-8000-000000000003", "cafe0000-0000-4000-8000-000000000004"
UNKNOWN = "00000000-0000-4000-8000-000000000000"
REFUSED = "kafka: Connection refused"
VERBS = ("show", "stop", "start", "restart", "rm", "wait", "watch")
STOPS = f"GET /search/job/stop/{NIGHTLY}"


def launch(shell: Shell, *more: str, query: str = "from sample") -> str:
    """The ID of a new job, by default one without an end."""
    more = more or ("--follow",)
    [job] = shell.ndjson("query", query, "--from", "31/01/2024 00:00:00", "--dest", "donothing", *more)
    return str(job["id"])


def on_terminal(shell: Shell, arguments: list[str], typed: str = "", columns: int = 100) -> Seen:
    size = {"COLUMNS": str(columns), "LINES": "20"}
    return on_terminal_of(columns, shell, *arguments, typed=typed.encode(), NO_COLOR="1", **size)


def has_read_everything(place: Machine, job_id: str) -> None:
    """Make a job one that has read all events up to now, and long after that."""
    job = job_table.get(place.store, job_id)
    assert job is not None
    job_table.reach(place.store, job_id, job.fence, 4_102_444_800_000)


def requests(done: Done) -> list[str]:
    return [f"{method} {path}" for method, path, _ in done.sent]
