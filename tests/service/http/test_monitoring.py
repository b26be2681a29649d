"""Health and metrics: who may ask, and what is told."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from sqlalchemy import insert
from support.application import answered
from support.engines import chosen_engine, engines_of, new_lake
from support.stored_queries import stored_query

from svcctl.api.models import JobStatus
from svcctl.api.transport import LOST_TABLES
from svcctl.service.accounts import accounts, keys
from svcctl.service.accounts.accounts import Account, Owner
from svcctl.service.disk import PROBE_SECONDS, Disk, reserve
from svcctl.service.http.access_log import TABLE, AccessLog
from svcctl.service.http.app import build
from svcctl.service.http.context import Service
from svcctl.service.http.monitoring import exposed
from svcctl.service.jobs import job_table
from svcctl.service.jobs.checkpoint import Checkpoint, JobProgress
from svcctl.service.jobs.job_table import StoredJob
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.language.types import Column, Type
from svcctl.service.queries.schedule import LateEvents
from svcctl.service.server import settle_repeatedly
from svcctl.service.state.database import STATE_AWAY, StateUnavailable
from svcctl.service.state.events_record import EventsRecord
from svcctl.service.state.schema import events_files
from svcctl.service.state.store import Store

NOW = 1_700_000_000.0


@pytest.fixture
def service(store: Store) -> Iterator[Service]:
    with chosen_engine() as engine, ThreadPoolExecutor(1) as executor:
        yield Service(engine, store, executor, clock=lambda: NOW, started=NOW - 60)


def test_health_is_told_to_everybody_and_not_logged(service: Service) -> None:
    log = AccessLog(build(service), service.engines.of(TABLE).stored)
    answer = answered(log, "GET", "/service/health")
    assert (answer.status_code, answer.json()["object"]) == (200, {"status": "ok"})
    assert answered(log, "GET", "/service/nothing").status_code == 404
    log.flush()
    assert service.engines.of(TABLE).stored.extent(TABLE).events == 1


def test_everybody_may_ping_and_that_is_not_logged(service: Service) -> None:
    log = AccessLog(build(service), service.engines.of(TABLE).stored)
    assert answered(log, "GET", "/service/ping").status_code == 200
    log.flush()
    assert service.engines.of(TABLE).stored.extent(TABLE).events == 0


def test_metrics_are_for_administrators(service: Service) -> None:
    app = build(service)
    refused = answered(app, "GET", "/service/metrics", headers={"authorization": "Bearer ordinary"})
    assert (refused.status_code, refused.json()["msg"]) == (
        401,
        "only an administrator of the service may read its metrics",
    )
    told = answered(app, "GET", "/service/metrics", headers={"authorization": "Bearer operator"})
    assert (told.status_code, told.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert 'svcctl_requests_total{method="GET",code="401"} 1\n' in told.text
    assert f"svcctl_sent_bytes_total {len(refused.content)}\n" in told.text


def test_metrics_count_answers_bytes_queries_and_jobs(service: Service) -> None:
    app = build(service)
    sent = sum(len(answered(app, method, "/nothing").content) for method in ("GET", "GET", "BREW"))
    owner = Owner(None, "north")
    for number, (status, last) in enumerate(
        ((JobStatus.RUNNING, NOW - 2.5), (JobStatus.RUNNING, 0), (JobStatus.STOPPED, 1))
    ):
        job = StoredJob(
            f"j{number}", owner, status, "kafka", "", "from t", stored_query(), {}, JobProgress(0, int(last * 1000))
        )
        if number == 2:
            job = replace(
                job, progress=JobProgress(0, 1000, Checkpoint(late=LateEvents(4, 9))), friendly_name='a "b" \\ c'
            )
        job_table.add(service.store, replace(job, error=("no broker",) * (number > 0)))

    async def asked() -> str:
        with service.turns.open(owner):
            return "".join(exposed(service, Jobs(service.store, lambda job, run: True)))

    values = [line for line in asyncio.run(asked()).splitlines() if not line.startswith("#")]
    assert values == [
        'svcctl_requests_total{method="GET",code="404"} 2',
        'svcctl_requests_total{method="other",code="404"} 1',
        f"svcctl_sent_bytes_total {sent}",
        'svcctl_queries{state="running"} 0',
        'svcctl_queries{state="waiting"} 0',
        'svcctl_queries{state="idle"} 1',
        'svcctl_jobs{state="RUNNING"} 2',
        'svcctl_jobs{state="STOPPED"} 1',
        'svcctl_jobs{state="COMPLETED"} 0',
        "svcctl_jobs_failing 1",
        "svcctl_jobs_failed 1",
        'svcctl_job_error{job="j1",name="",type="kafka",state="RUNNING"} 1',
        'svcctl_job_error{job="j2",name="a \\"b\\" \\\\ c",type="kafka",state="STOPPED"} 1',
        'svcctl_job_lag_seconds{job="j0",name="",type="kafka"} 2.5',
        'svcctl_job_late_events{job="j2",name="a \\"b\\" \\\\ c",type="kafka"} 4',
        "svcctl_late_events_total 0",
        "svcctl_start_time_seconds 1699999940.0",
    ]


def test_metrics_tell_when_keys_expire(service: Service) -> None:
    ann = accounts.issue(service.store, domain="local", name='a"nn', expires=1_700_000_000_500).api_key
    samples = "".join(exposed(service, Jobs(service.store, lambda job, run: True))).splitlines()
    assert [line for line in samples if line.startswith("svcctl_key_")] == [
        f'svcctl_key_expires_timestamp_seconds{{key="{ann}",name="a\\"nn"}} 1700000000.5'
    ]


def test_the_last_use_of_a_key_is_stored_while_the_service_settles_and_at_its_end(service: Service) -> None:
    stopping, seen = Event(), list[set[str]]()

    def used() -> set[str]:
        return {key.api_key for key in keys.list_keys(service.store) if key.last_used == int(NOW * 1000)}

    class Watched(Jobs):
        def renew(self) -> None:
            seen.append(used())
            if len(seen) == 3:
                answered(build(service), "GET", "/search/jobs", headers={"authorization": "Bearer late"})
                stopping.set()

    accounts.put(service.store, Account("unused", "secret", None, "local"))
    accounts.put(service.store, Account("late", "secret", "late", "local"))
    for token, path in (("operator", "/service/metrics"), ("ordinary", "/service/metrics"), ("nobody", "/search/jobs")):
        answered(build(service), "GET", path, headers={"authorization": f"Bearer {token}"})
    settle_repeatedly(service, Watched(service.store, lambda job, run: True), 0.0, stopping)
    assert (seen[0], seen[2], used()) == (set(), {"key", "other"}, {"key", "other", "late"})


class Away(Store):
    """A state whose database answers no more once it is `gone`."""

    gone = False

    @contextmanager
    def reading(self) -> Iterator[Any]:
        if self.gone:
            raise StateUnavailable(STATE_AWAY, "postgresql://db/svcctl", "connection refused")
        with super().reading() as connection:
            yield connection


def test_the_status_is_told_on_the_own_socket_while_the_state_and_the_tables_are_away(
    service: Service, tmp_path: Path
) -> None:
    folder = tmp_path / "tables"
    with closing(Away(tmp_path / "away.db")) as store, new_lake(str(folder)) as lake:
        for name in ("t", "u"):
            lake.create(name, (Column("eventdate", Type.TIMESTAMP),))
        folder.rename(tmp_path / "elsewhere")
        app = build(replace(service, engines=engines_of(lake), store=store, uses={"folder": str(folder)}))
        store.gone = True
        signed = {"authorization": "Bearer operator"}
        told = answered(app, "GET", "/service/status", headers=signed, client=None).json()["object"]
        over_tcp = answered(app, "GET", "/service/status", headers=signed)
    assert (told["tables"], told["uses"], told["problems"]) == (
        [],
        {"folder": str(folder)},
        [
            "the state in postgresql://db/svcctl cannot be reached: connection refused",
            f"cannot read the shared folder {folder}: it does not exist",
        ],
    )
    assert (over_tcp.status_code, over_tcp.json()["msg"]) == (
        503,
        "the service cannot reach its state; try again soon",
    )


def test_the_log_says_when_the_state_is_away_and_when_it_is_back(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    stopping, answers = Event(), iter([False, True])

    class Renewed(Jobs):
        def renew(self) -> None:
            if not next(answers, True):
                raise StateUnavailable(STATE_AWAY, "postgresql://db/svcctl", "connection refused")

        def settle(self) -> None:
            stopping.set()

    with caplog.at_level("INFO", "svcctl.service"):
        settle_repeatedly(service, Renewed(service.store, lambda job, run: True), 0.0, stopping)
    assert caplog.messages == [
        "the state in postgresql://db/svcctl cannot be reached: connection refused",
        "the state can be reached again",
    ]


class Recorded:
    """A file of events with one table, which was there once."""

    identity, writes = "other", 0

    def ends(self) -> dict[str, tuple[int, int]]:
        return {}

    def settle_losses(self, ends: Mapping[str, int]) -> dict[str, int]:
        return {}


def test_lost_events_are_reported_until_an_administrator_confirms_it(service: Service) -> None:
    with service.store.transaction() as connection:
        row = {"place": "here", "identity": "first", "tables": {"shop.o": (9, 5)}, "loss": {}}
        connection.execute(insert(events_files).values(row))
    record = EventsRecord(service.store, "here", Recorded())
    record.check()
    app = build(replace(service, record=record))
    token = {"authorization": "Bearer operator"}

    def told(client: tuple[str, int] | None) -> tuple[str, str | None, bool]:
        health = answered(app, "GET", "/service/health", client=client)
        status = answered(app, "GET", "/service/status", headers=token, client=client).json()["object"]
        return health.json()["object"]["status"], health.headers.get(LOST_TABLES), "lost" in status

    assert told(None) == ("events were lost", "1", True)
    assert told(("192.0.2.1", 7)) == ("events were lost", None, True)
    assert 'svcctl_lost_events{table="shop.o"} 5\n' in answered(app, "GET", "/service/metrics", headers=token).text
    refused = answered(app, "POST", "/service/confirm-loss", headers={"authorization": "Bearer ordinary"})
    assert refused.status_code == 401
    lost = answered(app, "POST", "/service/confirm-loss", headers=token).json()["object"]["lost"]
    assert (lost["tables"], lost["text"].partition(";")[0]) == (
        {"shop.o": 5},
        "the service's file of events was missing or replaced",
    )
    assert answered(app, "POST", "/service/confirm-loss", headers=token).json()["object"] == {"lost": None}
    assert told(None) == ("ok", None, False)


def test_a_full_disk_shows_in_health_status_metrics_and_log_until_it_has_room(
    service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    errors: Iterator[int | None] = iter([errno.ENOSPC, errno.ENOSPC, None])

    def probe(directory: Path) -> None:
        if (number := next(errors)) is not None:
            raise OSError(number, os.strerror(number))

    moments = count(0, PROBE_SECONDS)
    disk = Disk(tmp_path, probe=probe, monotonic=lambda: float(next(moments)))
    app = build(replace(service, disk=disk))
    token = {"authorization": "Bearer operator"}
    seen = []
    with caplog.at_level("INFO", "svcctl.service"):
        for _ in range(3):
            disk.look()
            health = answered(app, "GET", "/service/health")
            status = answered(app, "GET", "/service/status", headers=token).json()["object"]
            gauge = f"svcctl_disk_full {int(disk.failure is not None)}\n"
            assert gauge in answered(app, "GET", "/service/metrics", headers=token).text
            seen.append((health.status_code, status.get("problems")))
    full = f"directory {tmp_path} cannot be written: less than 1 MB of its disk is free"
    assert seen == [(503, [full]), (503, [full]), (200, None)]
    assert [text for text in caplog.messages if "directory" in text] == [
        full,
        f"directory {tmp_path} can be written again",
    ]


def test_a_directory_with_room_can_be_written(tmp_path: Path) -> None:
    reserve(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        reserve(tmp_path / "gone")
