"""The library against the real service, and against scripted answers where the service would not send them."""

from __future__ import annotations

import asyncio
import doctest
import gc
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy
import pandas
import pyarrow as pa
import pytest
from support.scripted import Serve, head, http, ok
from support.shells import Shell

import svcctl
from svcctl import errors, library

MODE = "Content-Type: application/json"
TYPED = b'{"m":{"t":{"type":"timestamp","index":0},"s":{"type":"str","index":1},"n":{"type":"int4","index":2}}}\n'
ROWS = b'{"d":[1706695200000,"a",1]}\n{"d":[null,null,null]}\n'
CUT = head("200 OK", MODE, "Content-Length: 1000") + TYPED + ROWS
FAILED = head("200 OK", MODE) + TYPED + ROWS + b'{"e":[500,"out of memory"]}\n'


@pytest.fixture
def local(service: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The environment of this process is that of a shell with a running service."""
    for name, value in service.environment.items():
        monkeypatch.setenv(name, value)
    return service


@pytest.fixture
def client(local: Shell) -> Iterator[svcctl.ServiceClient]:
    with svcctl.connect("local") as client:
        yield client


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment without profiles and without a service; returns the home directory."""
    for name in [name for name in os.environ if name.startswith("SVCCTL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SVCCTL_DATA", str(tmp_path / "data"))
    return tmp_path


def scripted(serve: Serve, *answers: Any) -> svcctl.ServiceClient:
    return svcctl.connect(base_url=serve(*answers).url, token="t", retries=0)


SIGNATURES = {
    "connect": "profile, *, base_url, token, api_key, api_secret, auth, provisioning_url, socket, ca_bundle, "
    "tls_close, timeout, retries, time_zone, read_only, max_rows, headers, paths, config",
    "ServiceClient.close": "",
    "ServiceClient.domains": "property",
    "ServiceClient.jobs": "property",
    "ServiceClient.query": "query, *, from_, to, time_zone, limit, skip, query_id",
    "ServiceClient.roles": "property",
    "QueryAnswer.arrow": "",
    "QueryAnswer.batches": "",
    "QueryAnswer.close": "",
    "QueryAnswer.columns": "property",
    "QueryAnswer.row_count": "property",
    "JobOperations.get": "job_id",
    "JobOperations.launch": "query, destination, params, *, from_, to, time_zone, date_format, query_id",
    "JobOperations.list": "",
    "JobOperations.remove": "job_id",
    "JobOperations.start": "job_id",
    "JobOperations.stop": "job_id",
    "JobOperations.verify": "job_id, *, from_, keep",
    "DomainOperations.create": "name, plan, *, time, volume",
    "DomainOperations.delete": "name",
    "DomainOperations.disable": "name",
    "DomainOperations.enable": "name",
    "DomainOperations.get": "name",
    "DomainOperations.list": "",
    "RoleOperations.create": "domain, name, *, description, policies, applications, resource_ids, finder_name, "
    "default_application_name",
    "RoleOperations.delete": "domain, name",
    "RoleOperations.get": "domain, name",
    "RoleOperations.list": "domain",
    "RoleOperations.update": "domain, name, *, new_name, description, policies, applications, resource_ids, "
    "finder_name, default_application_name",
}
"""What is promised: the names of parameters, in order."""


def parameters(function: Callable[..., Any]) -> str:
    names: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in names:
            names.append("*")
        names += [name] if name != "self" else []
    return ", ".join(names)


def promised() -> Iterator[tuple[str, str]]:
    yield "connect", parameters(library.connect)
    operations = (library.JobOperations, library.DomainOperations, library.RoleOperations)
    for kind in (library.ServiceClient, library.QueryAnswer, *operations):
        for name, member in vars(kind).items():
            if not name.startswith("_"):
                yield f"{kind.__name__}.{name}", "property" if isinstance(member, property) else parameters(member)


def test_the_names_and_the_signatures_are_those_that_are_promised() -> None:
    public = ["Domain", "Job", "QueryAnswer", "ResultColumn", "Role", "ServiceClient", "connect", "errors"]
    assert svcctl.__all__ == public
    assert {name for name in svcctl.__all__ if getattr(svcctl, name) is None} == set()
    assert dict(promised()) == SIGNATURES
    assert set(svcctl.__all__) <= set(dir(svcctl))
    with pytest.raises(AttributeError):
        getattr(svcctl, "conect")  # noqa: B009


GUEST = """
import locale, logging, os, signal, sys, threading, warnings
import pyarrow.csv  # it loads numpy, which adds a filter of warnings
def state():
    umask = os.umask(0o22)
    os.umask(umask)
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    return (handlers, warnings.filters[:], umask, locale.setlocale(locale.LC_ALL), logging.root.handlers[:],
        logging.root.level, dict(os.environ), sys.meta_path[:], sys.path[:], sys.excepthook, os.getcwd(),
        threading.excepthook, sys.getswitchinterval(), [name for name, found in sys.modules.items() if found is None])
before = state()
import svcctl
assert "httpx" not in sys.modules
with svcctl.connect("local") as client:
    client.query("from sample", from_="2024-01-31").arrow()
    list(client.query("from sample", from_="2024-01-31"))
    client.jobs.list()
after = state()
assert after == before, [pair for pair in zip(before, after) if pair[0] != pair[1]]
assert {name.split(".")[0] for name in sys.modules} & {"typer", "duckdb", "uvicorn", "sqlalchemy"} == set()
"""


def test_a_program_is_the_same_after_it_has_used_the_library(local: Shell) -> None:
    command = [sys.executable, "-W", "error", "-X", "dev", "-c", GUEST]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import svcctl", {"importlib", "re", "datetime", "svcctl.library"}),
        ("from svcctl import ServiceClient, connect", {"re", "typing", "dataclasses", "pathlib", "httpx", "pyarrow"}),
    ],
)
def test_importing_loads_little(statement: str, absent: set[str]) -> None:
    loaded = "set(sys.modules)"
    script = f"import sys; before = {loaded}; {statement}; print(*{loaded} - before)"
    added = set(subprocess.check_output([sys.executable, "-I", "-c", script], text=True).split())
    assert ("svcctl" in added, added & absent) == (True, set())


def test_an_answer_is_tuples_with_the_types_of_python(client: svcctl.ServiceClient) -> None:
    answer = client.query("from sample", from_="2024-01-31", to="2024-02-01")
    assert [(column.name, column.type) for column in answer.columns] == [
        ("eventdate", "timestamp"),
        ("name", "str"),
        ("n", "int8"),
        ("x", "float8"),
        ("ok", "bool"),
    ]
    assert list(answer) == [
        (datetime(2024, 1, 31, 10, 0, 0, tzinfo=UTC), "plain", 1, 0.5, True),
        (datetime(2024, 1, 31, 10, 0, 1, tzinfo=UTC), 'comma, "quote"', 9007199254740993, None, False),
        (datetime(2024, 1, 31, 10, 0, 2, 7000, tzinfo=UTC), "[brackets] 漢字 😀", -3, 1e10, None),
        (datetime(2024, 1, 31, 10, 0, 3, tzinfo=UTC), "two\nlines", None, 2.25, True),
    ]
    assert answer.row_count == 4


SCHEMA = pa.schema(
    [
        ("eventdate", pa.timestamp("ms", "UTC")),
        ("name", pa.string()),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("ok", pa.bool_()),
    ]
)


def test_a_table_of_arrow_has_the_types_and_the_nulls_also_without_rows(client: svcctl.ServiceClient) -> None:
    span: dict[str, Any] = {"from_": date(2024, 1, 31), "to": "2024-02-01"}
    rows = list(client.query("from sample", **span))
    table = client.query("from sample", **span).arrow()
    assert table.schema == SCHEMA
    assert [tuple(row.values()) for row in table.to_pylist()] == rows
    assert client.query("from sample where false", **span).arrow() == SCHEMA.empty_table()
    with client.query("from sample", **span) as answer:
        reader = answer.batches()
        assert (reader.schema, sum(batch.num_rows for batch in reader)) == (SCHEMA, 4)


@pytest.mark.parametrize(
    ("from_", "to"),
    [
        ("2024-01-31", "2024-01-31 10:00:01"),
        (date(2024, 1, 31), 1706695201),
        (1706659200.0, datetime(2024, 1, 31, 11, 0, 1, tzinfo=timezone(timedelta(hours=1)))),
        (datetime(2024, 1, 31, tzinfo=UTC), "1706695201"),
        ("2024-01-30 23:00+00:00", "2024-01-31T10:00:01Z"),
        (pandas.Timestamp("2024-01-31", tz="UTC"), numpy.int64(1706695201)),
        (numpy.float64(1706659200), numpy.float64(1706695201)),
    ],
)
def test_dates_are_texts_seconds_dates_or_datetimes(client: svcctl.ServiceClient, from_: Any, to: Any) -> None:
    assert [name for (name,) in client.query("from sample select name", from_=from_, to=to)] == ["plain"]


def test_a_day_without_an_offset_is_one_of_the_time_zone(client: svcctl.ServiceClient) -> None:
    span: dict[str, Any] = {"from_": "2024-01-31 11:00", "to": "2024-01-31 11:00:01", "time_zone": "Europe/Berlin"}
    assert len(list(client.query("from sample", **span))) == 1
    assert len(list(client.query("from sample", from_="2024-01-31", skip=1, limit=2))) == 2


@pytest.mark.parametrize(
    "from_",
    [
        datetime(2024, 1, 31),
        True,
        pandas.Timestamp("2024-01-31"),
        pandas.NaT,
        float("nan"),
        None,
        b"1h",
        1706695200000,
        "soon",
    ],
)
def test_what_is_no_date_is_refused(client: svcctl.ServiceClient, from_: Any) -> None:
    with pytest.raises(errors.UsageError) as caught:
        client.query("from sample", from_=from_)
    assert "svcctl" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize("answer", [CUT, FAILED], ids=["cut", "ended in an error"])
@pytest.mark.usefixtures("alone")
def test_an_answer_that_is_not_whole_raises_at_its_end_and_makes_no_table(serve: Serve, answer: bytes) -> None:
    with scripted(serve, answer) as client:
        rows = client.query("from t", from_="1h")
        assert next(rows) == (datetime(2024, 1, 31, 10, tzinfo=UTC), "a", 1)
        assert next(rows) == (None, None, None)
        with pytest.raises(errors.IncompleteResult) as caught:
            next(rows)
        assert caught.value.rows == 2
        with pytest.raises(errors.IncompleteResult):
            client.query("from t", from_="1h").arrow()
        with pytest.raises(errors.IncompleteResult):
            list(client.query("from t", from_="1h").batches())


LATE_DATES = b'{"d":[81957744000000,"4567",1]}\n{"d":[253402300799999,"9999",2]}\n'
TOO_LATE = b'{"d":[253402300800000,"10000",3]}\n'


@pytest.mark.usefixtures("alone")
def test_dates_of_any_year_stay_those_dates_or_are_refused(serve: Serve) -> None:
    whole = head("200 OK", MODE) + TYPED + LATE_DATES
    with scripted(serve, whole, whole, whole + TOO_LATE, whole + TOO_LATE) as client:
        assert [when.year for when, _, _ in client.query("from t", from_="1h")] == [4567, 9999]
        frame = client.query("from t", from_="1h").arrow().to_pandas()
        assert [when.year for when in frame["t"].dt.to_pydatetime()] == [4567, 9999]
        assert client.query("from t", from_="1h").arrow()["t"].cast("int64").to_pylist()[-1] == 253402300800000
        with pytest.raises(errors.IncompleteResult) as caught:
            list(client.query("from t", from_="1h"))
        assert "Arrow" in str(caught.value.hint)


@pytest.mark.usefixtures("alone")
def test_clients_with_other_credentials_share_nothing(serve: Serve) -> None:
    service = serve(ok('{"status":0,"object":[]}'))
    clients = [svcctl.connect(base_url=service.url, token=f"t{number}") for number in range(4)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda client: [client.jobs.list() for _ in range(5)], clients))
    sent = sorted(headers["authorization"] for _, headers, _ in service.requests)
    assert sent == sorted(f"Bearer t{number}" for number in range(4) for _ in range(5))
    for client in clients:
        client.close()


WRONG_TYPES: list[Callable[[Any], object]] = [
    lambda client: client.query(b"from sample", from_="1h"),
    lambda client: client.query(query_id=5, from_="1h"),
    lambda client: client.query("from sample", from_="today", time_zone=UTC),
    lambda client: client.query("from sample", from_="1h", limit="3"),
    lambda client: client.query("from sample", from_="1h", skip=True),
    lambda client: client.jobs.get(None),
    lambda client: client.jobs.launch("from auth.all", 5, from_="now"),
    lambda client: client.jobs.launch("from auth.all", params=["a"], from_="now"),
    lambda client: client.jobs.launch("from auth.all", params={"friendlyName": b"a"}, from_="now"),
    lambda client: client.domains.create("acme", "basic", time="14"),
    lambda client: client.domains.create("acme", "basic", volume=True),
    lambda client: client.roles.create("acme", "night", resource_ids={"tables": {1, 2}}),
]


@pytest.mark.parametrize("call", WRONG_TYPES)
@pytest.mark.usefixtures("alone")
def test_an_argument_of_another_type_is_refused_before_anything_is_sent(
    call: Callable[[Any], object], serve: Serve
) -> None:
    service = serve()
    with svcctl.connect(base_url=service.url, token="t") as client, pytest.raises(errors.UsageError):
        call(client)
    assert service.requests == []


def test_numbers_of_numpy_are_limits(client: svcctl.ServiceClient) -> None:
    answer: Any = client.query("from sample", from_="2024-01-31", limit=numpy.int64(2))  # type: ignore[arg-type]
    assert len(list(answer)) == 2


def test_an_answer_is_read_once(client: svcctl.ServiceClient) -> None:
    answer = client.query("from sample", from_="2024-01-31")
    assert len(list(answer)) == 4
    for read in (answer.arrow, answer.batches, lambda: list(answer)):
        with pytest.raises(errors.UsageError, match="read only once"):
            read()
    begun = client.query("from sample", from_="2024-01-31")
    next(begun)
    with pytest.raises(errors.UsageError, match="as tuples"):
        begun.arrow()
    assert len(list(begun)) == 3


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("leave", ["drop", "close", "with", "client"])
def test_an_answer_that_nobody_reads_to_its_end_frees_its_connection(local: Shell, leave: str) -> None:
    client = svcctl.connect("local")
    list(client.query("from sample", from_="2024-01-31"))
    before = descriptors()
    gc.disable()  # what is dropped must not wait for it
    try:
        answers = [client.query("from demo.ecommerce.data", from_="5d") for _ in range(5)]
        assert next(answers[0])[0] is not None
        assert descriptors() > before
        if leave == "client":
            client.close()
        for answer in answers:
            if leave == "close":
                answer.close()
            elif leave == "with":
                with answer:
                    pass
        del answer, answers
    finally:
        gc.enable()
    assert descriptors() <= before
    client.close()


def test_nothing_is_read_after_the_end_of_a_client(client: svcctl.ServiceClient) -> None:
    answer = client.query("from demo.ecommerce.data", from_="5d")
    client.close()
    client.close()
    for use in (lambda: next(answer), client.jobs.list, lambda: client.query("from sample", from_="1h")):
        with pytest.raises(errors.UsageError, match="is closed"):
            use()


def test_sixteen_threads_share_a_client(client: svcctl.ServiceClient) -> None:
    def ask(number: int) -> tuple[int, int, int]:
        rows = client.query("from sample select name", from_="2024-01-31", limit=number % 4 + 1)
        return number % 4 + 1, sum(1 for _ in rows), client.query("from sample", from_="2024-01-31").arrow().num_rows

    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(ask, range(64)))
    assert [(rows, table) for _, rows, table in answers] == [(limit, 4) for limit, _, _ in answers]


def test_it_works_in_an_executor_of_asyncio(client: svcctl.ServiceClient) -> None:
    async def ask() -> list[int]:
        def count() -> int:
            return len(list(client.query("from sample", from_="2024-01-31")))

        return await asyncio.gather(*(asyncio.to_thread(count) for _ in range(4)))

    assert asyncio.run(ask()) == [4] * 4


FORK = """
import os, sys, svcctl
client = svcctl.connect("local")
mine = client.query("from sample", from_="2024-01-31")
assert len(list(client.query("from sample", from_="2024-01-31"))) == 4
if (child := os.fork()) == 0:
    try:
        next(mine)
    except svcctl.errors.UsageError as error:
        print(error, flush=True)
    os._exit(len(list(client.query("from sample", from_="2024-01-31"))))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
assert len(list(mine)) == len(list(client.query("from sample", from_="2024-01-31"))) == 4
"""


def test_after_a_fork_the_child_has_its_own_connections_and_the_parent_its_answers(local: Shell) -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", FORK], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "another process" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        {"profile": "local", "base_url": "https://a.example"},
        {"base_url": "https://a.example", "token": "t", "api_key": "k", "api_secret": "s"},
        {"base_url": "https://a.example", "api_key": "k"},
        {"base_url": "https://a.example"},
        {"base_url": "a.example", "token": "t"},
        {"base_url": "https://a.example", "token": ""},
        {"base_url": "https://a.example", "token": "t", "timeout": -1},
        {"base_url": "https://a.example", "token": "t", "retries": "many"},
        {"base_url": "https://a.example", "token": "t", "headers": {"key": "x"}},
        {"base_url": b"https://a.example", "token": "t"},
        {"base_url": "https://a.example", "token": 5},
        {"base_url": "https://a.example", "token": "t", "time_zone": UTC},
        {"base_url": "https://a.example", "token": "t", "paths": {"query": 5}},
        {"base_url": "https://a.example", "token": "t", "paths": ["query"]},
        {"base_url": "https://a.example", "token": "t", "read_only": "yes"},
        {"base_url": "https://a.example", "token": "t", "max_rows": True},
        {"profile": "none"},
        {"config": "/none.yaml"},
    ],
)
@pytest.mark.usefixtures("alone")
def test_arguments_that_cannot_be_used_are_refused_without_naming_commands(arguments: dict[str, Any]) -> None:
    with pytest.raises(errors.UsageError) as caught:
        svcctl.connect(**arguments)
    assert not re.search("svcctl [a-z]|--", f"{caught.value} {caught.value.hint}")


PROFILES = """
profiles:
  prod:
    base_url: {url}
    api_key: stored
    api_secret: hush
"""


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ({}, {"x-svc-apikey": "stored", "authorization": None}),
        ({"token": "t"}, {"x-svc-apikey": None, "authorization": "Bearer t"}),
        ({"token": "t", "auth": "jwt"}, {"x-svc-apikey": None, "authorization": "jwt t"}),
        ({"api_key": "k", "api_secret": "s"}, {"x-svc-apikey": "k", "authorization": None}),
        ({"headers": {"apikey": "x-key"}}, {"x-svc-apikey": None, "x-key": "stored"}),
    ],
)
def test_credentials_replace_those_of_the_profile_and_of_the_environment(
    arguments: dict[str, Any],
    sent: dict[str, str | None],
    serve: Serve,
    alone: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = serve(ok('{"status":0,"object":[]}'))
    file = alone / "profiles.yaml"
    file.write_text(PROFILES.format(url=service.url))
    file.chmod(0o600)
    monkeypatch.setenv("SVCCTL_TOKEN", "of the environment")
    with svcctl.connect("prod", config=file, **arguments) as client:
        assert client.jobs.list() == ()
    _, headers, _ = service.requests[0]
    assert {name: headers.get(name) for name in sent} == sent


@pytest.mark.usefixtures("alone")
def test_a_base_url_never_gets_the_credentials_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVCCTL_BASE_URL", "https://prod.example")
    monkeypatch.setenv("SVCCTL_TOKEN", "of prod")
    with pytest.raises(errors.ProfileError):
        svcctl.connect(base_url="https://other.example")


def test_a_read_only_environment_refuses_changes_before_they_are_sent(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVCCTL_READ_ONLY", "true")
    with scripted(serve) as client, pytest.raises(errors.UsageError) as error:
        client.jobs.stop("3f2a")
    assert error.value.reason == "read-only"


@pytest.mark.usefixtures("alone")
def test_the_arguments_guard_a_client_and_do_not_loosen_a_guard(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    service = serve(head("200 OK", MODE) + TYPED + ROWS)
    with svcctl.connect(base_url=service.url, token="t", read_only=True, max_rows=1) as client:
        with pytest.raises(errors.UsageError, match="argument read_only"):
            client.jobs.remove("3f2a")
        assert service.requests == []
        with pytest.raises(errors.TooManyRows):
            client.query("from t", from_="1h").arrow()
    monkeypatch.setenv("SVCCTL_READ_ONLY", "true")
    client = svcctl.connect(base_url=service.url, token="t", read_only=False)
    with client, pytest.raises(errors.UsageError, match="environment SVCCTL_READ_ONLY"):
        client.jobs.remove("3f2a")


@pytest.mark.parametrize("read", [list, svcctl.QueryAnswer.arrow])
def test_an_answer_with_more_rows_than_max_rows_is_not_whole(
    read: Callable[[svcctl.QueryAnswer], Any], serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = head("200 OK", MODE) + TYPED + ROWS
    monkeypatch.setenv("SVCCTL_MAX_ROWS", "1")
    with scripted(serve, answer, answer) as client:
        cut = client.query("from t", from_="1h")
        with pytest.raises(errors.TooManyRows) as error:
            read(cut)
        assert error.value.data == {"max_rows": 1}
        assert cut.row_count == 1
    monkeypatch.setenv("SVCCTL_MAX_ROWS", "2")
    with scripted(serve, answer) as client:
        assert len(read(client.query("from t", from_="1h"))) == 2


def test_jobs_are_launched_and_changed(client: svcctl.ServiceClient) -> None:
    job = client.jobs.launch("from auth.all", "DoNothing", {"friendlyname": "library"}, from_="now")
    try:
        assert (job.status, job.friendly_name, job.query) == ("RUNNING", "library", "from auth.all")
        assert client.jobs.stop(job.id).status == "STOPPED"
        assert client.jobs.start(job.id).status == "RUNNING"
        assert job.id in {listed.id for listed in client.jobs.list()}
    finally:
        assert client.jobs.remove(job.id).status == "REMOVED"
    with pytest.raises(errors.NotFound):
        client.jobs.get(job.id)


@pytest.mark.usefixtures("alone")
def test_a_job_is_verified(serve: Serve) -> None:
    result = {"job": "3f2a", "rows": 4, "missing": 0}
    service = serve(http("200 OK", json.dumps({"result": result}) + "\n", "X-Svc-Errors: exact"))
    with svcctl.connect(base_url=service.url, token="t") as client:
        found = client.jobs.verify("3f2a", from_=datetime(2024, 1, 31, tzinfo=UTC), keep=True)
        assert list(found) == [("result", result)]
        with pytest.raises(errors.Unavailable):
            list(client.jobs.verify("4f2a"))
    assert service.lines[0].endswith("/3f2a/verify?from=1706659200000&keep=true")


@pytest.mark.parametrize(
    ("destination", "params"),
    [("kafak", {}), ("kafka", {"topic": "t"}), ("s3", {"aws.bucket": "b", "format": "rar"})],
)
def test_a_destination_that_cannot_be_used_is_refused(
    client: svcctl.ServiceClient, destination: str, params: dict[str, str]
) -> None:
    with pytest.raises(errors.UsageError):
        client.jobs.launch("from auth.all", destination, params, from_="now")


def test_domains_and_roles_are_created_changed_and_deleted(local: Shell) -> None:
    with svcctl.connect("local-reseller") as reseller:
        domain = reseller.domains.create("library", "basic")
        try:
            assert reseller.domains.get(domain.name).name in {listed.name for listed in reseller.domains.list()}
            reseller.domains.disable(domain.name)
            with pytest.raises(errors.Conflict):
                reseller.domains.disable(domain.name)
            reseller.domains.enable(domain.name)
            owned = local("service", "accounts", "user", "owner@library.example", domain.name, "--role", "OWNER")
            assert owned.returncode == 0, owned.stderr
            role = reseller.roles.create(domain.name, "night", policies="*", applications=[])
            assert (role.name, role.policies) == ("night", ("*",))
            changed = reseller.roles.update(domain.name, "night", description="at night", policies=("*",))
            assert reseller.roles.get(domain.name, "night").description == changed.description == "at night"
            assert "night" in {listed.name for listed in reseller.roles.list(domain.name)}
            reseller.roles.delete(domain.name, "night")
        finally:
            reseller.domains.delete(domain.name)


def test_the_examples_of_docstrings_run(client: svcctl.ServiceClient) -> None:
    failed, tried = doctest.testmod(library, extraglobs={"svcctl": svcctl, "client": client})
    assert (failed, tried > 5) == (0, True)


STRICT = """
import svcctl
from datetime import datetime, UTC

def report(client: svcctl.ServiceClient) -> dict[str, int]:
    answer: svcctl.QueryAnswer = client.query("from t", from_=datetime.now(UTC), to=None, time_zone="UTC")
    names: list[tuple[str, str | None]] = [(column.name, column.type) for column in answer.columns]
    return {str(row[0]): len(names) for row in answer}

with svcctl.connect(base_url="https://a.example", token="t", timeout=3) as client:
    try:
        job: svcctl.Job = client.jobs.launch("from t", "kafka", {"topic": "t"}, from_="now")
        roles: tuple[svcctl.Role, ...] = client.roles.list("a@b")
        domain: svcctl.Domain = client.domains.create("a", "p", volume=1.5)
        report(client)
    except svcctl.errors.NotFound as error:
        print(error.hint, error.code)
"""


@pytest.mark.slow
def test_a_script_passes_the_strict_checks_of_mypy(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(STRICT)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "script.py"]
    environment = os.environ | {"MYPYPATH": str(Path(svcctl.__file__).parents[1])}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("Success: no issues found in 1 source file\n", 0)
