"""Temporary tables: who may load files for a query, and who may read them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.application import answered
from support.engines import chosen_engine

from svcctl.service.http.app import build
from svcctl.service.http.context import Service
from svcctl.service.language.types import Column, Type
from svcctl.service.loading.in_memory import engine_in_memory
from svcctl.service.queries.temporary_tables import MAX_TEMPORARY_TABLES, TemporaryTable
from svcctl.service.state.store import Store

PATH = "/service/temporary-table"
RANGE = {"query": "from file", "from": 0, "to": "now"}


@pytest.fixture
def service(store: Store) -> Iterator[Service]:
    with chosen_engine() as engines, ThreadPoolExecutor(2) as executor:
        yield Service(engines, store, executor)


@pytest.fixture
def table(service: Service) -> Iterator[TemporaryTable]:
    """The table of an administrator's request, without events."""
    table = service.temporary_tables.add("key")
    table.open(engine_in_memory()).create("file", [Column("eventdate", Type.TIMESTAMP)])
    yield table
    service.temporary_tables.remove(table)
    asyncio.run(closed(table))


async def closed(table: TemporaryTable) -> None:
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    done.set_result(None)
    await table.close(done)


def ask(service: Service, path: str, body: dict[str, Any], token: str = "operator") -> httpx.Response:
    headers = {"authorization": f"Bearer {token}"}
    return answered(build(service), "POST", path, json.dumps(body).encode(), headers)


def load(tmp_path: Path, text: str = "time,n\n2024-01-31,1\n", **members: Any) -> dict[str, Any]:
    (tmp_path / "a.csv").write_text(text)
    return {"files": [{"path": str(tmp_path / "a.csv"), "name": "a.csv"}], "query": "from file", **members}


@pytest.mark.parametrize(
    ("members", "token", "status", "said"),
    [
        ({}, "ordinary", 401, "only an administrator of the service may load events"),
        ({"query": None}, "operator", 400, "query is missing"),
        ({"query": "from other.table"}, "operator", 404, "a query of files reads the table file"),
        ({"query": "from file where"}, "operator", 400, "line 1"),
        ({"files": []}, "operator", 400, "files is not a list"),
        ({"emptyColumns": "n"}, "operator", 400, "emptyColumns is not a list"),
        ({"types": {"m": "int8"}}, "operator", 400, "--types names 'm', which is not a column"),
    ],
)
def test_a_refused_load_leaves_no_table(
    service: Service, tmp_path: Path, members: dict[str, Any], token: str, status: int, said: str
) -> None:
    answer = ask(service, PATH, load(tmp_path, **members), token)
    assert (answer.status_code, said in answer.json()["msg"]) == (status, True), answer.text
    for _ in range(MAX_TEMPORARY_TABLES):
        service.temporary_tables.add("key")


def test_one_table_too_many_is_refused_as_busy(service: Service, tmp_path: Path) -> None:
    for _ in range(MAX_TEMPORARY_TABLES):
        service.temporary_tables.add("key")
    answer = ask(service, PATH, load(tmp_path))
    assert (answer.status_code, answer.json()["reason"]) == (429, "service-busy")
    assert "retry-after" in answer.headers


@pytest.mark.parametrize(
    ("members", "token", "status", "said"),
    [
        ({}, "ordinary", 404, "not loaded, or their request has ended"),
        ({"temporaryTable": "0"}, "operator", 404, "not loaded, or their request has ended"),
        ({"to": None}, "operator", 400, "needs an end (to)"),
        ({"destination": {"type": "donothing"}}, "operator", 400, "has no destination"),
    ],
)
def test_a_temporary_table_is_read_by_queries_of_its_own_key_that_end(
    service: Service, table: TemporaryTable, members: dict[str, Any], token: str, status: int, said: str
) -> None:
    answer = ask(service, "/search/query", {**RANGE, "temporaryTable": table.id, **members}, token)
    assert (answer.status_code, said in answer.json()["msg"]) == (status, True), answer.text


def test_a_query_without_its_id_does_not_read_it(service: Service, table: TemporaryTable) -> None:
    assert ask(service, "/search/query", RANGE).json()["reason"] == "unknown-table"
    assert ask(service, "/search/query", {**RANGE, "temporaryTable": table.id}).json()["object"] == []
