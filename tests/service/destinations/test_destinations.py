"""Destinations on real peers: what arrives is the query's own answer, once, whatever happens on the way."""

from __future__ import annotations

import csv
import gzip
import io
import json
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
import pyzipper
from peers.hdfs import HdfsPeer
from peers.kafka import KafkaPeer
from peers.s3 import S3Peer
from support.engines import engines_of
from support.events import selected

from svcctl.api.destinations import Destination
from svcctl.api.models import Job
from svcctl.dates.range import Range
from svcctl.errors import Unavailable
from svcctl.service import rendering
from svcctl.service.accounts.accounts import Account
from svcctl.service.destinations import Memo
from svcctl.service.destinations.kinds import destination
from svcctl.service.destinations.numbered_files import LEAST_ROOM
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.jobs import delivery
from svcctl.service.jobs.checkpoint import StoredQuery
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.language import compile, parse
from svcctl.service.language.types import Column, Type
from svcctl.service.queries.request import AskedQuery
from svcctl.service.rendering import ENCODERS, Rendering
from svcctl.service.state.store import Store

ME = Account("key", "secret", None, "local", administrator=True)
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
NOW = datetime(2024, 2, 1, tzinfo=UTC)
COLUMNS = (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8), Column("text", Type.STR))
# Later events first, so that the plan has to sort; four of each date, so that the order within a date shows.
EVENTS = """
    SELECT TIMESTAMP '2024-01-01' + to_seconds((i * 7919) % {rows} // 4) AS eventdate, i AS n,
        CASE WHEN i % 5 = 0 THEN NULL ELSE 'é, "' || i || chr(10) || '" ' || repeat('x', i % 50) END AS text
    FROM range({rows}) r(i)
"""


@dataclass
class Site:
    """A service without its network: events, jobs and their threads; `events` arrived in two halves, out of order."""

    engine: DuckDBEngine
    store: Store
    jobs: Jobs = field(init=False)

    def __post_init__(self) -> None:
        self.jobs = Jobs(self.store, partial(delivery.deliver, engines_of(self.engine), lambda: NOW))

    def launch(
        self, type_: str, params: Mapping[str, str], query: str = "from t", *, until: datetime | None = NOW
    ) -> str:
        asked = AskedQuery(query, Range(FIRST, until), "csv", destination=Destination(type_, params))
        destination = delivery.check(engines_of(self.engine), asked, NOW)
        request = StoredQuery(asked, NOW)
        return self.jobs.launch(ME, type=destination.type, request=request, params=destination.params).id

    def wait(self, job_id: str, until: Callable[[Job], object] = lambda job: job.status != "RUNNING") -> Job:
        """The job once it is so; nothing tells when a store changes, so it is looked at again and again."""
        patience = threading.Event()
        while not until(job := self.jobs.get(ME, job_id)):
            patience.wait(0.02)
        return job

    def answer(self, query: str, mode: str) -> list[bytes]:
        """The rows of the query's own answer as a client gets them, those of one date in the order of their arrival."""
        plan = compile(parse(query), self.engine.tables(), dialect=self.engine.dialect, start=FIRST, end=NOW, now=NOW)
        encoder = ENCODERS[mode](plan.columns, Rendering("", 0))
        with rendering.stream(self.engine, plan, encoder.expressions()) as stream:
            return [row.encode() for batch in stream for row in batch.column(0).to_pylist()]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with DuckDBEngine() as engine:
        store = Store(tmp_path / "state.db")
        engine.create("t", COLUMNS)
        engine.append("t", selected(EVENTS.format(rows=20_000)))
        engine.append("t", selected(EVENTS.format(rows=20_000)))
        assert not engine.table("t").ordered
        site = Site(engine, store)
        yield site
        site.jobs.close()
        store.close()


def kafka(peer: KafkaPeer, topic: str, **more: str) -> Mapping[str, str]:
    return {"topic": topic, "bootstrap.servers": peer.bootstrap_servers, **peer.settings, **more}


def s3(peer: S3Peer, **more: str) -> Mapping[str, str]:
    return {
        "aws.bucket": peer.bucket,
        "aws.endpoint": peer.endpoint,
        "aws.region": peer.region,
        "aws.accesskey": peer.key,
        "aws.secretkey": peer.secret,
        **more,
    }


def hdfs(peer: HdfsPeer, folder: str, **more: str) -> Mapping[str, str]:
    return {"fs.defaultFS": peer.default_fs, "file": f"{folder}/web.csv", **more}


QUERIES = [
    "from t",
    "from t where n > 100 select n, text",
    "from t group every 10m by n % 3 as third every 10m select count() as count, max(text) as most",
    "from t select n offset 10 limit 3333",
]


@pytest.mark.parametrize("query", QUERIES)
def test_kafka_holds_the_rows_of_the_query_in_its_order(site: Site, kafka_peer: KafkaPeer, query: str) -> None:
    topic = kafka_peer.fresh_topic(partitions=3)
    job = site.wait(site.launch("Kafka", kafka(kafka_peer, topic, maxBytesPerCommit="100000"), query))
    expected = [row.rstrip(b"\n") for row in site.answer(query, "json/simple")]
    assert (job.status, job.events_sent, job.event_generated, job.error) == ("COMPLETED", *[len(expected)] * 2, ())
    assert kafka_peer.values(topic) == expected


@pytest.mark.parametrize("most", ["1", "10000000"])
def test_an_event_larger_than_a_batch_becomes_a_batch_of_its_own(site: Site, kafka_peer: KafkaPeer, most: str) -> None:
    sizes = [10, 1_500_000, 7, 10_000_000, 20]
    site.engine.create("large", COLUMNS)
    dates = "TIMESTAMP '2024-01-01' + to_seconds(i) AS eventdate, i AS n"
    texts = f"repeat('x', {sizes}[i + 1]) AS text"
    site.engine.append("large", selected(f"SELECT {dates}, {texts} FROM range({len(sizes)}) r(i)"))
    topic = kafka_peer.fresh_topic()
    job = site.wait(site.launch("kafka", kafka(kafka_peer, topic, maxBytesPerCommit=most), "from large select text"))
    assert (job.status, job.error) == ("COMPLETED", ())
    assert [len(json.loads(value or b"")["text"]) for value in kafka_peer.values(topic)] == sizes


def test_kafka_takes_arrays_too(site: Site, kafka_peer: KafkaPeer) -> None:
    topic = kafka_peer.fresh_topic()
    site.wait(site.launch("kafka", kafka(kafka_peer, topic, mode="array"), "from t where n in {0, 39} select n, text"))
    values = [json.loads(value or b"") for value in kafka_peer.values(topic)]
    assert values == [[0, None], [0, None], *[[39, 'é, "39\n" ' + "x" * 39]] * 2]


def test_a_slower_broker_without_transactions_holds_every_row_once(site: Site, old_kafka_peer: KafkaPeer) -> None:
    topic = old_kafka_peer.fresh_topic()
    job = site.wait(site.launch("kafka", kafka(old_kafka_peer, topic, maxBytesPerCommit="100000")))
    expected = [row.rstrip(b"\n") for row in site.answer("from t", "json/simple")]
    assert (job.status, job.events_sent, job.error) == ("COMPLETED", 40_000, ())
    rows = old_kafka_peer.rows(topic)
    assert [row.value for row in rows] == expected
    assert [row.key for row in rows] == [f"{job.id}/{n}".encode() for n in range(40_000)]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("format", ["plain", "gzip", "zip"])
def test_s3_holds_the_csv_of_the_query(site: Site, s3_peer: S3Peer, query: str, format: str) -> None:
    bucket = s3_peer.fresh_bucket()
    job = site.wait(site.launch("s3", s3(bucket, format=format), query))
    [(name, content)] = bucket.objects().items()
    unpack: dict[str, Callable[[bytes], bytes]] = {
        "plain": lambda data: data,
        "gzip": gzip.decompress,
        "zip": lambda data: zipfile.ZipFile(io.BytesIO(data)).read(f"{job.id}_000.csv"),
    }
    assert name == f"{job.id}_000.csv" + {"plain": "", "gzip": ".gz", "zip": ".zip"}[format]
    header, *rows = io.BytesIO(unpack[format](content)).getvalue().partition(b"\n")
    assert header == ",".join(column for column in columns_of(site, query)).encode()
    assert rows[1] == b"".join(site.answer(query, "csv"))
    assert (job.status, job.events_sent) == ("COMPLETED", len(site.answer(query, "csv")))


def columns_of(site: Site, query: str) -> list[str]:
    plan = compile(parse(query), site.engine.tables(), dialect=site.engine.dialect, start=FIRST, end=NOW, now=NOW)
    return [column.name for column in plan.columns]


def test_a_zip_is_locked_with_the_password(site: Site, s3_peer: S3Peer) -> None:
    bucket = s3_peer.fresh_bucket()
    params = s3(bucket, format="zip", **{"file.password": "open sesame", "s3.fileName": "in/a/events"})
    site.wait(site.launch("s3", params, "from t where n = 7 select n"))
    [(name, content)] = bucket.objects().items()
    assert name == "in/a/events_000.csv.zip"
    with pyzipper.AESZipFile(io.BytesIO(content)) as archive:
        with pytest.raises(RuntimeError):
            archive.read("events_000.csv")
        archive.setpassword(b"open sesame")
        assert archive.read("events_000.csv") == b"n\n7\n7\n"


def test_a_part_has_at_most_its_size_and_the_next_goes_on_behind_it(site: Site, hdfs_peer: HdfsPeer) -> None:
    folder = hdfs_peer.fresh_directory()
    site.wait(site.launch("hdfs", hdfs(hdfs_peer, folder, **{"retention.size": "1"})))
    found = hdfs_peer.files(folder)
    assert list(found) == [f"web_{number:03}.csv" for number in range(len(found))]
    sizes = [len(part) for part in found.values()]
    assert len(sizes) > 2
    assert max(sizes) <= 1_000_000
    assert min(sizes[:-1]) > 1_000_000 - LEAST_ROOM
    tables = [list(csv.reader(io.StringIO(part.decode(), newline=""))) for part in found.values()]
    assert all(table[0] == ["eventdate", "n", "text"] for table in tables)
    whole = list(csv.reader(io.StringIO(b"".join(site.answer("from t", "csv")).decode(), newline="")))
    assert [row for table in tables for row in table[1:]] == whole


def test_one_file_has_the_plain_name(site: Site, s3_peer: S3Peer) -> None:
    bucket = s3_peer.fresh_bucket()
    site.wait(site.launch("s3", s3(bucket, multiplefile="false", **{"s3.fileName": "all"}), "from t limit 1 "))
    assert list(bucket.objects()) == ["all.csv"]


def test_hdfs_holds_the_csv_of_the_query(site: Site, hdfs_peer: HdfsPeer) -> None:
    folder = hdfs_peer.fresh_directory()
    job = site.wait(site.launch("hdfs", hdfs(hdfs_peer, folder, **{"dfs.replication": "1"})))
    assert (job.status, job.events_sent, job.error) == ("COMPLETED", 40_000, ())
    assert hdfs_peer.files(folder) == {"web_000.csv": b"eventdate,n,text\n" + b"".join(site.answer("from t", "csv"))}
    assert hdfs_peer.status(f"{folder}/web_000.csv")["replication"] == 1


@dataclass(frozen=True)
class Shelf:
    """Where several jobs with the same names deliver files: the parameters, and what is there."""

    type: str
    params: Mapping[str, str]
    files: Callable[[], Mapping[str, bytes]]


@pytest.fixture(params=["s3_peer", "ceph_peer", "hdfs_peer"])
def shelf(request: pytest.FixtureRequest) -> Shelf:
    peer = request.getfixturevalue(request.param)
    if isinstance(peer, HdfsPeer):
        folder = peer.fresh_directory()
        return Shelf("hdfs", hdfs(peer, folder), lambda: peer.files(folder))
    bucket = peer.fresh_bucket()
    return Shelf("s3", s3(bucket, **{"s3.fileName": "in/web"}), lambda: bucket.objects("in/"))


def names(count: int, shelf: Shelf) -> list[str]:
    return [f"{'' if shelf.type == 'hdfs' else 'in/'}web_{number:03}.csv" for number in range(count)]


def test_jobs_with_the_same_names_at_the_same_time_leave_the_files_of_each(site: Site, shelf: Shelf) -> None:
    jobs = [site.launch(shelf.type, shelf.params, f"from t select n, '{number}' as job") for number in (0, 1, 2, 2)]
    assert [site.wait(job).events_sent for job in jobs] == [40_000] * 4
    found = shelf.files()
    assert list(found) == names(4, shelf)
    answers = [b"n,job\n" + b"".join(site.answer(f"from t select n, '{n}' as job", "csv")) for n in (0, 1, 2, 2)]
    assert sorted(found.values()) == sorted(answers)


def test_jobs_with_the_same_names_one_after_the_other_leave_the_files_of_each(site: Site, shelf: Shelf) -> None:
    for number in (0, 1):
        site.wait(site.launch(shelf.type, shelf.params, f"from t where n = {number} select n limit 1"))
    assert shelf.files() == dict(zip(names(2, shelf), [b"n\n0\n", b"n\n1\n"], strict=True))


def test_a_job_goes_on_behind_what_another_delivered_while_it_was_stopped(site: Site, shelf: Shelf) -> None:
    job = site.launch(shelf.type, shelf.params, "from t where n = 7 select n limit 3", until=None)
    site.wait(job, lambda job: job.event_generated == 2)
    site.jobs.stop(ME, job)
    site.wait(site.launch(shelf.type, shelf.params, "from t where n = 8 select n limit 1"))
    site.engine.append("t", selected("SELECT TIMESTAMP '2024-01-31' AS eventdate, 7 AS n, NULL AS text"))
    site.jobs.start(ME, job)
    site.wait(job)
    assert shelf.files() == dict(zip(names(3, shelf), [b"n\n7\n7\n", b"n\n8\n", b"n\n7\n"], strict=True))


@pytest.mark.parametrize("rows", [10, 200_000])
@pytest.mark.parametrize("peer", ["s3_peer", "ceph_peer"])
def test_a_process_that_wakes_up_when_another_has_its_file_complete_changes_nothing(
    request: pytest.FixtureRequest, peer: str, rows: int
) -> None:
    bucket = request.getfixturevalue(peer).fresh_bucket()
    suspended, successor = (destination("s3", "job", s3(bucket)) for _ in range(2))
    memo: Memo = {}
    for each in (suspended, successor):
        each.open(0, memo, b"n\n")
        each.write(pa.array([f"{'x' * 99}\n"] * rows), 0, pa.array([None] * rows, pa.int64()))
        memo = each.prepare()
    assert successor.commit() == {"parts": 1}
    there = bucket.objects()
    with pytest.raises(Unavailable):
        suspended.commit()
    suspended.close()
    assert (bucket.objects(), bucket.uploads()) == (there, [])


@pytest.mark.slow
def test_a_destination_that_is_down_is_tried_until_it_is_up(site: Site, s3_peer: S3Peer) -> None:
    bucket = s3_peer.fresh_bucket()
    with bucket.down():
        job_id = site.launch("s3", s3(bucket), "from t select n limit 5")
        down = site.wait(job_id, lambda job: job.error)
        assert (down.status, down.events_sent) == ("RUNNING", 0)
        assert len(down.error) == 1
        assert bucket.endpoint in down.error[0]
    job = site.wait(job_id)
    assert (job.status, job.events_sent, job.error) == ("COMPLETED", 5, ())
    assert list(bucket.objects().values()) == [b"n\n" + b"".join(site.answer("from t select n limit 5", "csv"))]


@pytest.mark.slow
def test_a_broker_that_is_down_is_tried_until_it_is_up(site: Site, kafka_peer: KafkaPeer) -> None:
    topic = kafka_peer.fresh_topic()
    with kafka_peer.down():
        job_id = site.launch("kafka", kafka(kafka_peer, topic))
        assert site.wait(job_id, lambda job: job.error).status == "RUNNING"
    job = site.wait(job_id)
    assert (job.status, job.events_sent, job.error) == ("COMPLETED", 40_000, ())
    assert len(kafka_peer.values(topic)) == 40_000


@pytest.mark.parametrize("format", ["plain", "gzip", "zip"])
def test_a_part_that_is_not_committed_is_not_there(site: Site, s3_peer: S3Peer, format: str) -> None:
    bucket = s3_peer.fresh_bucket()
    for password in ("", "p") if format == "zip" else ("",):
        part = destination("s3", "job", s3(bucket, format=format, **{"file.password": password}))
        part.open(0, {}, b"n\n")
        part.write(pa.array(["1\n"]), 0, pa.array([None], pa.int64()))
        part.close()
        del part
    assert bucket.objects() == {}
