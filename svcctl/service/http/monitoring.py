"""The monitoring routes: whether the service answers, its health, and its metrics in Prometheus' text format.

Ping and health need no signature: a load balancer cannot sign, and they are no secret. Metrics name jobs, so only
administrators of the service may read them; Prometheus sends a token.
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
from svcctl.service.accounts.accounts import Account
from svcctl.service.http.access_log import HEALTH
from svcctl.service.http.auth import signed
from svcctl.service.http.context import Service
from svcctl.service.http.envelope import succeeded
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.process import PING_PATH

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Sample = tuple[Mapping[str, str], float]


async def _ping(request: Request) -> Response:
    """Answer whatever the state and the tables are."""
    return succeeded(request, None)


def _health(request: Request) -> Response:
    """Answer that requests can be served; 503 when the state or the tables cannot be read."""
    service: Service = request.app.state.service
    service.store.check()
    service.engines.check()
    return succeeded(request, {"status": "ok"})


def _metrics(request: Request) -> Response:
    service: Service = request.app.state.service
    account: Account = request.state.account
    if not account.operates:
        raise CredentialsError("only an administrator of the service may read its metrics")
    return Response("".join(exposed(service, request.app.state.jobs)), media_type=CONTENT_TYPE)


def exposed(service: Service, running: Jobs) -> Iterator[str]:
    """The metrics of a service as text. Requests and queries are those of this process, jobs those of the state."""
    counts, load = service.counts, service.turns.load()
    answers = [({"method": method, "code": str(code)}, n) for (method, code), n in sorted(counts.answers.items())]
    yield from _metric("svcctl_requests_total", "counter", "Answers by method and HTTP status.", answers)
    yield from _metric("svcctl_sent_bytes_total", "counter", "Bytes of the bodies of answers.", [({}, counts.bytes)])
    queries = [({"state": state}, n) for state, n in load.items()]
    yield from _metric("svcctl_queries", "gauge", "Open queries: worked on, waiting for their turn, idle.", queries)
    jobs = running.every()
    states = Counter(job.status for job in jobs)
    by_state = [({"state": str(state)}, states[state]) for state in JobStatus if state is not JobStatus.REMOVED]
    yield from _metric("svcctl_jobs", "gauge", "Jobs by state.", by_state)
    failing = sum(models.status_text(job) == models.FAILING for job in jobs)
    yield from _metric("svcctl_jobs_failing", "gauge", "Running jobs that have an error.", [({}, failing)])
    now = service.clock()
    lags = [
        ({"job": job.id, "type": job.type or ""}, max(0.0, round(now - job.last_datetime / 1000, 3)))
        for job in jobs
        if job.status is JobStatus.RUNNING and job.last_datetime
    ]
    yield from _metric("svcctl_job_lag_seconds", "gauge", "Age of the last date that a running job has reached.", lags)
    late = [({"job": job.id, "type": job.type or ""}, job.extra["late"]) for job in jobs if "late" in job.extra]
    yield from _metric("svcctl_job_late_events", "gauge", "Events that came too late for the groups of a job.", late)
    yield from _metric(
        "svcctl_late_events_total", "counter", "Events too late for the groups of answers.", [({}, counts.late)]
    )
    yield from _metric("svcctl_start_time_seconds", "gauge", "When the process started.", [({}, service.started)])


def _metric(name: str, kind: str, meaning: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n"
    for labels, value in samples:
        told = ",".join(f'{label}="{text}"' for label, text in labels.items())
        yield f"{name}{{{told}}} {value}\n" if told else f"{name} {value}\n"


ROUTES = [
    Route(PING_PATH, _ping, methods=["GET"]),
    Route(HEALTH, _health, methods=["GET"]),
    signed("GET", "/service/metrics", _metrics),
]
