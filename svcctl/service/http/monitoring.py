"""The monitoring routes: a ping, the health of the service, and its metrics in Prometheus' text format.

Ping and health need no signature, because a load balancer cannot sign requests. Their answers contain no secrets. The
metrics contain names of jobs, so only administrators of the service may read the metrics. Prometheus must send a token.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from svcctl.api import models
from svcctl.api.models import JobStatus
from svcctl.errors import CredentialsError
from svcctl.service.accounts import keys
from svcctl.service.accounts.accounts import Account
from svcctl.service.http.access_log import HEALTH
from svcctl.service.http.auth import signed
from svcctl.service.http.context import Service
from svcctl.service.http.envelope import succeeded
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.process import PING_PATH

LOST = "events were lost"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Sample = tuple[Mapping[str, str], float]


async def _ping(request: Request) -> Response:
    """Answer a ping. The answer needs neither the database nor the tables."""
    return succeeded(request, None)


def _health(request: Request) -> Response:
    """Answer whether the service is healthy. The HTTP status is 503 if the service is not healthy.

    A healthy service can read its database and its tables, and can write to its disk. Lost events do not change the
    HTTP status. The answer reports lost events until somebody confirms the loss.
    """
    service: Service = request.app.state.service
    service.store.check()
    service.engines.check()
    if service.disk is not None:
        service.disk.check()
    return succeeded(request, {"status": "ok" if service.loss is None else LOST})


def _metrics(request: Request) -> Response:
    service: Service = request.app.state.service
    account: Account = request.state.account
    if not account.operates:
        raise CredentialsError("only an administrator of the service may read its metrics")
    return Response("".join(exposed(service, request.app.state.jobs)), media_type=CONTENT_TYPE)


def exposed(service: Service, running: Jobs) -> Iterator[str]:
    """Yield the metrics of a service as text.

    Requests and queries are counted for this process only. Jobs are counted for all processes that use the same
    database.
    """
    counts, load = service.counts, service.turns.load()
    answers = [({"method": method, "code": str(code)}, n) for (method, code), n in sorted(counts.answers.items())]
    yield from _metric("svcctl_requests_total", "counter", "Answers by method and HTTP status.", answers)
    yield from _metric("svcctl_sent_bytes_total", "counter", "Bytes of the bodies of answers.", [({}, counts.bytes)])
    queries = [({"state": state}, n) for state, n in load.items()]
    yield from _metric("svcctl_queries", "gauge", "Open queries: running, waiting for their turn, or idle.", queries)
    jobs = running.every()
    states = Counter(job.status for job in jobs)
    by_state = [({"state": str(state)}, states[state]) for state in JobStatus if state is not JobStatus.REMOVED]
    yield from _metric("svcctl_jobs", "gauge", "Jobs by state.", by_state)
    failing = [job for job in jobs if models.status_text(job) == models.FAILING]
    failed = [job for job in jobs if job.status is JobStatus.STOPPED and job.error]
    yield from _metric("svcctl_jobs_failing", "gauge", "Running jobs that have an error.", [({}, len(failing))])
    yield from _metric("svcctl_jobs_failed", "gauge", "Stopped jobs that have an error.", [({}, len(failed))])
    errors = [(_labels(job) | {"state": str(job.status)}, 1) for job in (*failing, *failed)]
    yield from _metric("svcctl_job_error", "gauge", "1 for each job that has an error.", errors)
    now = service.clock()
    lags = [
        (_labels(job), max(0.0, round(now - max(job.last_datetime, job.extra.get("acceptedUntil", 0)) / 1000, 3)))
        for job in jobs
        if job.status is JobStatus.RUNNING and job.last_datetime
    ]
    yield from _metric(
        "svcctl_job_lag_seconds", "gauge", "Age of the date up to which a running job has delivered its events.", lags
    )
    verified = [(_labels(job), job.extra["verified"] / 1000) for job in jobs if "verified" in job.extra]
    yield from _metric(
        "svcctl_job_verified_timestamp_seconds",
        "gauge",
        "Date up to which all rows of a job were found at its destination, in epoch seconds.",
        verified,
    )
    late = [(_labels(job), job.extra["late"]) for job in jobs if "late" in job.extra]
    yield from _metric("svcctl_job_late_events", "gauge", "Events that came too late for the groups of a job.", late)
    yield from _metric(
        "svcctl_late_events_total", "counter", "Events too late for the groups of answers.", [({}, counts.late)]
    )
    lost = [({"table": table}, events) for table, events in (service.loss.tables if service.loss else {}).items()]
    yield from _metric("svcctl_lost_events", "gauge", "Lost events, until the loss is confirmed.", lost)
    ends = [
        ({"key": key.api_key, "name": key.name or ""}, key.expires / 1000)
        for key in keys.list_keys(service.store)
        if key.expires is not None
    ]
    yield from _metric("svcctl_key_expires_timestamp_seconds", "gauge", "Expiry of an API key, in epoch seconds.", ends)
    if service.disk is not None:
        free, full = service.disk.free(), int(service.disk.failure is not None)
        yield from _metric("svcctl_disk_free_bytes", "gauge", "Free bytes of the disk of the data.", [({}, free)])
        yield from _metric("svcctl_disk_full", "gauge", "1 if the data cannot be written, otherwise 0.", [({}, full)])
    yield from _metric(
        "svcctl_start_time_seconds", "gauge", "Start of the process, in epoch seconds.", [({}, service.started)]
    )


def _labels(job: models.Job) -> dict[str, str]:
    return {"job": job.id, "name": job.friendly_name or "", "type": job.type or ""}


def _escaped(text: str) -> str:
    """Escape a text for use as the value of a label in Prometheus' text format."""
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _metric(name: str, kind: str, meaning: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n"
    for labels, value in samples:
        pairs = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield f"{name}{{{pairs}}} {value}\n" if pairs else f"{name} {value}\n"


ROUTES = [
    Route(PING_PATH, _ping, methods=["GET"]),
    Route(HEALTH, _health, methods=["GET"]),
    signed("GET", "/service/metrics", _metrics),
]
