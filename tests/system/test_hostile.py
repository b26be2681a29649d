"""Requests of someone who means harm, sent to a whole service: each gets a whole answer that is not a failure of it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from random import Random
from urllib.parse import quote

import httpx
import pytest
from support.hostile import Hostile, tables
from support.shells import TESTED, Shell

from svcctl.api.response import MODES, QueryResponse
from svcctl.errors import IncompleteResult

CLIENTS = 4
QUERIES = 400 if TESTED == "spark" else 3_000
"""A query takes Apache Spark some tenths of a second."""
UNABLE = "Spark cannot run the query: "
"""Of Sail alone, this is no failure: it lacks dates after the year 262142, and columns in some conditions."""


class Attacked:
    """A service with the tables of hostile events, and connections to it."""

    def __init__(self, shell: Shell, file: Path) -> None:
        self.file = file
        """A file that can be loaded."""
        self._shell = shell
        self._credentials = json.loads((shell.home / "data" / "credentials.json").read_text())

    def client(self, profile: str = "local") -> httpx.Client:
        return httpx.Client(
            transport=httpx.HTTPTransport(verify=False, uds=str(self._shell.home / "data" / "service.sock")),
            base_url="http://service",
            headers={"authorization": f"Bearer {self._credentials[profile]['token']}"},
            timeout=30,
        )

    def defects(self) -> list[str]:
        """The lines of the service's log that report a defect."""
        log = (self._shell.home / "data" / "service.log").read_text(encoding="utf-8").splitlines()
        return [line for line in log if " ERROR " in line]


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    shell = Shell(tmp_path_factory.mktemp("hostile"), {"SVCCTL_DEMO": "0", "SVCCTL_QUERY_TIME": "20"})
    assert shell("service", "start").returncode == 0
    try:
        files = tables(shell.home)
        for name, path in files.items():
            loaded = shell("service", "load", str(path), "--table", name)
            assert loaded.returncode == 0, loaded.stderr
        yield Attacked(shell, files["odd"])
    finally:
        shell("service", "stop")


def checked(answer: httpx.Response, case: str) -> None:
    """Check that an answer is not the service's failure, and that a refusal is one line that can be read."""
    if TESTED == "sail" and answer.status_code == 500 and answer.json()["msg"].startswith(UNABLE):
        return
    assert answer.status_code < 500, f"{case}: {answer.status_code} {answer.text[:300]}"
    if answer.status_code == 200:
        return
    told = answer.json()
    if isinstance(told.get("error"), dict):
        assert told["error"].keys() >= {"code", "message"}, case
        message = told["error"]["message"]
    else:
        assert (told["success"], told["cid"]) == (False, answer.headers["x-svc-cid"]), case
        message = told["msg"]
    assert 0 < len(message) <= 2000, case


def whole(answer: httpx.Response, mode: str, case: str) -> None:
    """Check that the rows of an answer are whole, or end in an error that is the query's."""
    chunks = (answer.content[at : at + 65_536] for at in range(0, len(answer.content), 65_536))
    response = QueryResponse(MODES[mode], answer.headers["content-type"], chunks)
    rows = response.rows() if MODES[mode].counts else response.raw()
    error = None
    try:
        for _ in rows:
            pass
    except IncompleteResult as incomplete:
        error = incomplete.message
    known = error is None or "(code 400, cid " in error or (TESTED == "sail" and UNABLE in error)
    assert known, f"{case}: {error}"
    if mode == "xls":
        assert zipfile.ZipFile(BytesIO(answer.content)).testzip() is None, case


def ended(body: bytes) -> bytes:
    """The body of a query, without rows where its range may end in the future, as that would be waited for."""
    with suppress(ValueError, RecursionError):
        asked = json.loads(body)
        if isinstance(asked, dict) and asked.get("to") != 1706788800:
            return json.dumps(asked | {"limit": 0, "to": asked.get("to") or 0}).encode()
    return body


def queries(attacked: Attacked, seed: int, count: int) -> None:
    with attacked.client() as client:
        for number in range(count):
            hostile = Hostile(f"{seed}/{number}")
            fields = hostile.asked()
            case = f"Hostile('{seed}/{number}').asked(): {json.dumps(fields)}"
            body = ended(hostile.body(fields))
            answer = client.post("/search/query", content=body)
            checked(answer, case)
            asked = json.loads(body) if answer.status_code == 200 else {}
            if asked:
                mode = asked.get("mode") or "json"
                whole(answer, (mode if isinstance(mode, str) else mode.get("type", "json")).lower(), case)


def routes(attacked: Attacked, seed: int, count: int) -> None:
    """Every route but that of queries, with paths and bodies that are nearly right."""
    with attacked.client() as operator, attacked.client("local-reseller") as reseller:
        for number in range(count):
            case = f"{seed}/{number}"
            hostile, random = Hostile(case), Random(case)
            name, role = hostile.path(), random.choice(("ops", hostile.path()))
            load = hostile.nearly(
                files=[{"path": str(attacked.file)}], table="loaded", timeField="eventdate", format="parquet"
            )
            domain = hostile.nearly(name="acme", plan="basic", time=3, volume=1.5)
            fields = hostile.nearly(
                name=role, description="x", policies=["*"], applications="*", resourceIds={"a": [1]}, finderName="f"
            )
            job, other, role = (quote(part, safe="") for part in (name, random.choice(("local", name)), role))
            client, method, path, sent = random.choice(
                (
                    (operator, "GET", f"/search/job/{job}", {}),
                    (operator, "GET", f"/search/job/stop/{job}", {}),
                    (operator, "GET", f"/search/job/start/{job}", {}),
                    (operator, "DELETE", f"/search/job/remove/{job}", {}),
                    (operator, "GET", f"/{job}/{other}", {}),
                    (operator, "POST", "/service/load", load),
                    (operator, "POST", "/service/load", load),
                    (reseller, "POST", "/domain", domain),
                    (reseller, "POST", f"/domain/{random.choice(('acme', job))}/disable", {}),
                    (reseller, "POST", f"/domain/{random.choice(('acme', job))}/enable", {}),
                    (reseller, "DELETE", f"/domain/{random.choice(('acme', job))}", {}),
                    (operator, "POST", f"/domain/{other}/roles", fields),
                    (operator, "PUT", f"/domain/{other}/roles/{role}", fields),
                    (operator, "GET", f"/domain/{other}/roles/{role}", {}),
                    (operator, "DELETE", f"/domain/{other}/roles/{role}", {}),
                )
            )
            checked(client.request(method, path, content=hostile.body(sent)), f"{case}: {method} {path} {sent}")


def jobs(attacked: Attacked, seed: int, count: int) -> None:
    """Queries with destinations; those that are launched end by themselves or are removed."""
    with attacked.client() as client:
        for number in range(count):
            hostile = Hostile(f"{seed}/{number}")
            fields = hostile.asked() | {"destination": hostile.destination()}
            case = f"Hostile('{seed}/{number}'): {json.dumps(fields)}"
            answer = client.post("/search/query", content=hostile.body(fields))
            checked(answer, case)
            if answer.status_code != 200 or fields["destination"] is None:
                continue
            path = answer.json()["object"]["id"]
            state = client.get(f"/search/job/{path}").json()["object"]
            while state["type"] == "donothing" and state["status"] == "RUNNING" and fields["to"] == 1706788800:
                state = client.get(f"/search/job/{path}").json()["object"]
            removed = client.delete(f"/search/job/remove/{path}")
            checked(removed, case)
            assert "its log has the reason" not in removed.text, case


@pytest.mark.parametrize("work", [queries, routes, jobs])
def test_some_hostile_requests_are_answered_or_refused(attacked: Attacked, work: object) -> None:
    assert callable(work)
    work(attacked, 1, 30)
    assert attacked.defects() == []


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_many_hostile_queries_are_answered_or_refused(attacked: Attacked) -> None:
    with ThreadPoolExecutor(CLIENTS) as clients:
        runs = [clients.submit(queries, attacked, seed, QUERIES // CLIENTS) for seed in range(100, 100 + CLIENTS)]
        runs += [clients.submit(routes, attacked, 200, 500), clients.submit(jobs, attacked, 201, 200)]
        for run in runs:
            run.result()
    assert attacked.defects() == []
