"""Plans on servers of Spark Connect, beyond what every engine does: patterns, large answers, servers that go away."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import certifi
import pyarrow as pa
import pytest
from peers.processes import HOST, free_port, running
from support.engines import on_connect, own_folder
from support.events import selected, store
from support.spark import sail, shared

from svcctl.errors import ServiceError, Unavailable, UsageError
from svcctl.service.engines import Engine
from svcctl.service.engines.duckdb.opening import scratch
from svcctl.service.engines.lake.shared_tables import LakeTables
from svcctl.service.engines.spark import Server, SparkConnection, SparkReader
from svcctl.service.engines.spark.patterns import Matcher, pattern_for
from svcctl.service.engines.spark.session import Session
from svcctl.service.engines.spark.spill import Spills
from svcctl.service.language import Column, Plan, QueryError, Type, compile, parse

COLUMNS = (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8), Column("s", Type.STR))
GONE = r"^Spark at 127\.0\.0\.1:\d+ does not answer(, or has ended|: connection refused)$"


def plan(engine: Engine, query: str) -> Plan:
    start, now = datetime(2023, 1, 1, tzinfo=UTC), datetime(2024, 5, 6, tzinfo=UTC)
    return compile(parse(query), engine.stored.tables(), dialect=engine.reader.dialect, start=start, end=None, now=now)


def many(engine: Engine, rows: int) -> None:
    events = selected(
        "SELECT TIMESTAMP '2024-01-01' + to_seconds(i // 3) AS eventdate, i AS n, 'text ' || i AS s "
        f"FROM range({rows}) r(i)"
    )
    engine.stored.append("t", events, create=COLUMNS)


def session_of(engine: Engine) -> Session:
    assert isinstance(engine.reader, SparkReader)
    return engine.reader.connection.session()


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with on_connect(shared("sail")) as engine:
        many(engine, 300_000)
        yield engine


TEXTS = (
    "",
    "a",
    "A",
    "ab\n",
    "é",
    "É",
    "1٣",
    "a_b",
    "a-b",
    "x\r",
    "x\ny",
    "\x0b",
    "\u2028",
    "[a]",
    "a&&b",
    "{1}",
    "K",
    "ſ",
)
PATTERNS = (
    *(r"\d", r"\w+$", r"\W", r"^\s", r"\bb", r"a\b", "a$", "(?m)x$", "(?m)^y", "x.", "(?s)x.y", "(?i)é", "(?i)k"),
    *(r"[\w-]b", r"[^\d]", "[[:alpha:]]", "[[:^alpha:]]", "[]a]", "[a&&b]+", "[[]", "a{1}", "a{,2}", r"\x41"),
    *(r"\Qa&&b\E", r"\pL", r"\p{Greek}", r"\P{L}", r"(?P<a_b>a)", r"\v", r"\x{e9}", r"\0", "(?i:A)b", "[^a]$", r"\z"),
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_what_it_matches_in_the_embedded_engine(pattern: str, engine: Engine) -> None:
    with scratch() as connection:
        found = [connection.execute("SELECT regexp_matches($1, $2)", [text, pattern]).fetchone() for text in TEXTS]
    session = session_of(engine)
    values = ", ".join(f"({index}, {quoted(text)})" for index, text in enumerate(TEXTS))
    translated = quoted(pattern_for(pattern, session.matcher))
    query = f"SELECT s RLIKE {translated} AS m FROM VALUES {values} AS t(i, s) ORDER BY i"
    relation = session.proto.Relation(sql=session.proto.SQL(query=query))
    answers = session.start(session.proto.Plan(root=relation), "svcctl-test")
    tables = [pa.ipc.open_stream(each.arrow_batch.data).read_all() for each in answers if each.HasField("arrow_batch")]
    assert pa.concat_tables(tables)["m"].to_pylist() == [row[0] for row in found if row]


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def test_a_pattern_is_written_for_java() -> None:
    assert pattern_for(r"^\w(?i)é$", Matcher.JAVA) == r"(?d)^[0-9A-Za-z_](?iu)é\z"
    assert pattern_for(r"a\b(?P<x_y>[[:alpha:]])", Matcher.JAVA) == (
        "(?d)a(?:(?<=[0-9A-Za-z_])(?![0-9A-Za-z_])|(?<![0-9A-Za-z_])(?=[0-9A-Za-z_]))([A-Za-z])"
    )


@pytest.mark.slow
def test_a_large_answer_is_whole_in_order_and_leaves_no_files() -> None:
    with on_connect(shared("sail"), spilled_rows=100_000) as engine:
        many(engine, 300_000)
        with engine.reader.stream(plan(engine, "from t select n, s")) as stream:
            batches = list(stream)
            [own] = [folder for folder in spilled(engine) if any(folder.rglob("*.parquet"))]
        assert [n for batch in batches for n in batch.column(0).to_pylist()] == list(range(300_000))
        assert batches[-1].column(1)[-1].as_py() == "text 299999"
        assert max(batch.num_rows for batch in batches) <= 8192
        assert [path.name for path in own.iterdir()] == ["alive"]
        with engine.reader.stream(plan(engine, "from t")) as stream:
            next(iter(stream))
        assert [path.name for path in own.iterdir()] == ["alive"]


def spilled(engine: Engine) -> list[Path]:
    assert isinstance(engine.stored, LakeTables)
    local = engine.stored.folder.local
    assert local is not None
    return list((local / ".spill").iterdir())


def test_files_of_a_process_that_was_killed_are_removed_by_another() -> None:
    with own_folder() as lake:
        local = lake.folder.local
        assert local is not None
        dead = local / ".spill" / "dead"
        dead.mkdir(parents=True)
        (dead / "alive").write_text("7", encoding="ascii")
        one, other = (Spills(lake, beat_seconds=0.05, dead_seconds=0.5) for _ in range(2))
        name = one.begin()
        deadline = time.monotonic() + 20
        while dead.exists() and time.monotonic() < deadline:
            time.sleep(0.05)  # the files of others are looked at again and again; no event tells that they were
        assert [path.name for path in dead.parent.iterdir()] == [name.partition("/")[0]]
        other.close()
        one.close()
        assert list(dead.parent.iterdir()) == []


@pytest.mark.slow
def test_a_server_that_dies_within_an_answer_ends_it_as_incomplete_and_is_used_again_when_it_is_back(
    tmp_path: Path,
) -> None:
    server = sail(port := free_port(), tmp_path)
    with on_connect(f"sc://{HOST}:{port}") as engine:
        with running(server):
            many(engine, 900_000)
            with engine.reader.stream(plan(engine, "from t")) as stream:
                batches = iter(stream)
                next(batches)
                server.kill()
                started = time.monotonic()
                with pytest.raises(Unavailable, match=GONE):
                    list(batches)
            with pytest.raises(Unavailable, match=GONE), engine.reader.stream(plan(engine, "from t")) as stream:
                list(stream)
            assert time.monotonic() - started < 10
        with running(server), engine.reader.stream(plan(engine, "from t group select count() as n")) as stream:
            assert [batch.column(0).to_pylist() for batch in stream] == [[900_000]]


@pytest.mark.parametrize("spilled_rows", [1_000_000, 100])
def test_a_session_that_the_server_has_ended_is_replaced_within_the_statement(spilled_rows: int) -> None:
    with on_connect(shared("sail"), spilled_rows=spilled_rows) as engine:
        many(engine, 1000)
        lost = session_of(engine)
        lost.release()
        with engine.reader.stream(plan(engine, "from t select n")) as stream:
            assert [n for batch in stream for n in batch.column(0).to_pylist()] == list(range(1000))
        assert session_of(engine) is not lost


@pytest.mark.slow
def test_a_session_that_was_idle_for_too_long_is_replaced_within_the_statement(tmp_path: Path) -> None:
    server = sail(port := free_port(), tmp_path, session_seconds=1)
    with running(server), on_connect(f"sc://{HOST}:{port}") as engine:
        many(engine, 10)
        idle = session_of(engine)
        time.sleep(4)  # nothing but time makes a session idle, and looking at it would end that
        with engine.reader.stream(plan(engine, "from t group select count() as n")) as stream:
            assert [batch.column(0).to_pylist() for batch in stream] == [[10]]
        assert session_of(engine) is not idle


@pytest.mark.slow
def test_an_answer_that_outlives_its_session_ends_as_incomplete(tmp_path: Path) -> None:
    server = sail(port := free_port(), tmp_path, session_seconds=4)
    with running(server), on_connect(f"sc://{HOST}:{port}", spilled_rows=10_000_000) as engine:
        many(engine, 1_500_000)
        with engine.reader.stream(plan(engine, "from t")) as stream:
            batches = iter(stream)
            next(batches)
            time.sleep(8)  # nothing but time ends the session
            with pytest.raises(Unavailable, match="has ended the session"):
                list(batches)


def test_an_interrupt_ends_the_statement_and_not_the_session(engine: Engine) -> None:
    session = session_of(engine)
    with engine.reader.stream(plan(engine, "from t")) as stream:
        batches = iter(stream)
        next(batches)
        stream.interrupt(ServiceError("enough", code=503))
        with pytest.raises(ServiceError, match=r"^enough$"):
            list(batches)
    assert session_of(engine) is session


def test_an_interrupt_may_come_after_the_end_of_the_session() -> None:
    with on_connect(shared("sail")) as engine:
        session = session_of(engine)
    session.interrupt("any")


@pytest.mark.parametrize(
    "uri",
    ["spark:15002", "sc://", "sc://host:0", "sc://host:x", "http://host", "sc://host/;token=secret", "sc://a@host"],
)
def test_what_is_no_address_of_a_server_is_refused_and_not_repeated(uri: str) -> None:
    with pytest.raises(UsageError) as caught:
        Server(uri)
    assert caught.value.message == "this is not the address of a Spark Connect server"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "ca_bundle", "why"),
    [
        ("svcctl.invalid:15002", None, "its host cannot be found"),
        ("{closed}", None, "connection refused"),
        ("{http}", None, "the server there does not speak Spark Connect, or requires TLS"),
        (
            "{http}",
            Path(certifi.where()),
            "the server there does not speak TLS, which a token or SVCCTL_SPARK_CA_BUNDLE requires",
        ),
    ],
)
def test_a_server_that_cannot_be_reached_is_told_with_the_reason(
    address: str, ca_bundle: Path | None, why: str
) -> None:
    with ThreadingHTTPServer((HOST, 0), BaseHTTPRequestHandler) as http:
        threading.Thread(target=http.serve_forever, args=(0.02,)).start()
        address = address.format(closed=f"{HOST}:{free_port()}", http=f"{HOST}:{http.server_port}")
        connection = SparkConnection(Server(f"sc://{address}", ca_bundle=ca_bundle))
        with closing(connection), pytest.raises(Unavailable) as caught:
            connection.session()
        http.shutdown()
    assert caught.value.message == f"Spark at {address} does not answer: {why}"


def test_a_token_travels_encrypted_and_shows_in_no_text() -> None:
    server = Server("sc://spark.example:15002", "secret")
    assert (server.encrypted, "secret" in repr(server)) == (True, False)
    assert not Server("sc://127.0.0.1:15002", "secret").encrypted
    assert Server("sc://[::1]").address == "[::1]:15002"


def test_old_and_new_events_have_their_years(engine: Engine) -> None:
    days = [datetime(1, 1, 1), datetime(9999, 12, 31), datetime(1969, 12, 31, 23, 59, 59, 999_000)]
    store(engine.stored, "old", COLUMNS[:2], [(day, n) for n, day in enumerate(days)])
    query = (
        "from old select formatdate(eventdate) as d, epoch(eventdate) as e, formatdate(timestamp(253402300800000)) as x"
    )
    start = datetime(1, 1, 1, tzinfo=UTC)
    made = compile(
        parse(query), engine.stored.tables(), dialect=engine.reader.dialect, start=start, end=None, now=start
    )
    with engine.reader.stream(made) as stream:
        rows = [tuple(row.values()) for batch in stream for row in batch.to_pylist()]
    texts = ("0001-01-01 00:00:00.000", "1969-12-31 23:59:59.999", "9999-12-31 00:00:00.000")
    milliseconds = (-62135596800000, -1, 253402214400000)
    assert rows == [(*each, "10000-01-01 00:00:00.000") for each in zip(texts, milliseconds, strict=True)]


DIFFERENCES = {
    'select upper("ß") as x limit 1': ["SS"],
    "group select hllppcount(n) as x": [300_000],
}


@pytest.mark.parametrize("clauses", DIFFERENCES)
def test_what_the_page_of_clusters_says_is_different_on_spark(clauses: str, engine: Engine) -> None:
    with engine.reader.stream(plan(engine, f"from t {clauses}")) as stream:
        assert [value for batch in stream for value in batch.column(0).to_pylist()] == DIFFERENCES[clauses]


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ("limit 2147483648", "LIMIT can be at most 2147483647"),
        ("offset 2147483648", "OFFSET can be at most 2147483647"),
        (f"select {'round(' * 15}n{')' * 15} as x", "more than 12 of its functions are nested in each other"),
    ],
)
def test_what_spark_cannot_run_is_refused(clauses: str, message: str, engine: Engine) -> None:
    with pytest.raises(QueryError, match=f"this engine cannot run the query: {message}"):
        plan(engine, f"from t {clauses}")
