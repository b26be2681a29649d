"""A service in this process with a table of events, and destinations in memory, over which requests can be lost."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa

from support.engines import engines_of
from support.events import selected
from support.over_httpx import OverHttpx
from support.reseller import InProcess
from support.state import with_catalog
from svcctl.api.auth import Bearer
from svcctl.api.client import Client
from svcctl.api.job_names import split_name
from svcctl.errors import Unavailable
from svcctl.service.accounts import accounts, seed
from svcctl.service.accounts.accounts import Account
from svcctl.service.destinations import JobDestination, Memo
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.http.app import build
from svcctl.service.http.context import Service
from svcctl.service.jobs import delivery
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.language.types import Column, Type
from svcctl.service.rendering import arrow
from svcctl.service.rendering.rows import CSV

FIRST = 1_704_067_200
"""The epoch second of the first event."""


class Killed(BaseException):
    """The command is killed."""


class Kept(JobDestination):
    """Appends a batch whole to what it holds of its job, and counts, as Kafka does; the topic `down` is not there."""

    rows = CSV
    counts = True
    patience = 0.02

    def __init__(self, there: list[bytes], topic: str, size: int) -> None:
        self.there, self.topic, self.size = there, topic, size
        self.batch: list[bytes] = []

    def open(self, sent: int, memo: Memo, head: bytes) -> int:
        if self.topic == "down":
            raise Unavailable("no such topic")
        return len(self.there)

    def room(self) -> int:
        return self.size - sum(map(len, self.batch))

    def write(self, lines: pa.StringArray, row: int, dates: pa.Int64Array) -> None:
        self.batch += arrow.row_bytes(lines)

    def commit(self) -> Memo:
        self.there += self.batch
        self.batch = []
        return {}


@dataclass
class Faults(httpx.BaseTransport):
    """Passes requests to the service. At each fault it counts down, and then loses the answer, or kills the command.

    Another service than svcctl's own has no `continues` and no other paths than those of the interface.
    """

    app: Any
    is_own: bool = True
    due: list[tuple[int, str]] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    names: str | None = None
    """The name that the service gives to jobs instead of that which is asked for."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        fault = ""
        if self.due:
            count, kind = self.due.pop(0)
            fault = "" if count else kind
            if count:
                self.due.insert(0, (count - 1, kind))
        if fault == "kill before":
            raise Killed
        content = request.read()
        self.sent.append(f"{request.method} {request.url.path}")
        if not self.is_own and request.url.path.startswith("/service/"):
            return httpx.Response(404, json={"msg": "no such path", "status": 1})
        if request.url.path == "/search/query":
            body = json.loads(content)
            if not self.is_own:
                body.pop("continues", None)
            if self.names and "destination" in body:
                body["destination"]["params"]["friendlyName"] = self.names
            content = json.dumps(body).encode()
        headers = {"authorization": request.headers["authorization"]}
        answer = InProcess(self.app).handle_request(
            httpx.Request(request.method, request.url, headers=headers, content=content)
        )
        if not self.is_own:
            answer = httpx.Response(answer.status_code, json=_plain(answer.json()))
        if fault == "kill behind":
            raise Killed
        if fault == "lost":
            raise httpx.ReadError("the connection broke")
        return answer


def _plain(answer: Any) -> Any:
    """The answer of a service that shows nothing of a job that the interface does not have."""
    if isinstance(answer, list):
        return [_plain(one) for one in answer]
    if not isinstance(answer, dict):
        return answer
    return {key: _plain(value) for key, value in answer.items() if key not in ("from", "to", "params", "continues")}


@dataclass
class World:
    """A service, and what its destinations hold by the names and IDs of their jobs."""

    engine: DuckDBEngine
    jobs: Jobs
    wire: Faults
    held: dict[tuple[str, str], list[bytes]]
    events: int = 0

    @property
    def client(self) -> Client:
        return Client("http://localhost", Bearer("token"), transport=OverHttpx(self.wire), retries=0)

    def append(self, seconds: Sequence[int]) -> None:
        """Store an event for each second after FIRST; they are numbered in this order."""
        values = ", ".join(f"({second}, {self.events + at})" for at, second in enumerate(seconds))
        self.events += len(seconds)
        start = "TIMESTAMP '2024-01-01'"
        self.engine.append(
            "t", selected(f"SELECT {start} + to_seconds(s) AS eventdate, n FROM (VALUES {values}) v(s, n)")
        )

    def rows(self, name: str) -> list[int]:
        """The numbers of the events that the jobs of a name have delivered, in order."""
        return sorted(int(row.split(b",")[0]) for rows in self.deliveries(name) for row in rows)

    def deliveries(self, name: str) -> list[list[bytes]]:
        """What each job of a name has delivered."""
        return [rows for (one, _), rows in list(self.held.items()) if one == name]

    def settle(self, *names: str) -> None:
        """Wait until the jobs of each name have delivered as many events as are stored, and end all threads."""
        seen, deadline = -1, 0.0
        while any(sum(map(len, self.deliveries(name))) < self.events for name in names):
            if (count := sum(map(len, list(self.held.values())))) > seen:
                seen, deadline = count, time.monotonic() + 20
            assert time.monotonic() < deadline, (count, self.events, self.jobs.every())
            threading.Event().wait(0.02)
        self.jobs.close()  # nothing is delivered behind that


@contextmanager
def opened(directory: Path, *, is_own: bool = True, batch: int = 400) -> Iterator[World]:
    """A world whose destinations take batches of so many bytes."""
    held: dict[tuple[str, str], list[bytes]] = {}

    def connect(type_: str, job_id: str, params: Mapping[str, Any], /, *, endless: bool) -> JobDestination:
        name = split_name(str(params.get("friendlyName")))[0]
        return Kept(held.setdefault((name, job_id), []), str(params.get("topic")), batch)

    with (
        DuckDBEngine() as engine,
        ThreadPoolExecutor(2) as executor,
        closing(with_catalog(directory / "state.db")) as store,
    ):
        engine.create("t", (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8)))
        accounts.put(store, Account("key", "secret", "token", seed.LOCAL_DOMAIN, administrator=True))
        service = Service(engines_of(engine), store, executor)
        with closing(Jobs(store, partial(delivery.deliver, service.engines, service.now, connect=connect))) as jobs:
            yield World(engine, jobs, Faults(build(service, jobs), is_own), held)
