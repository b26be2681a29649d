"""The reason and the data of refusals, which programs read, and how the client reads them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.application import answered
from support.engines import chosen_engine
from support.state import with_catalog

from svcctl.api.refusals import error_of
from svcctl.errors import SvcctlError
from svcctl.service.accounts import accounts, domains, seed
from svcctl.service.accounts.accounts import Account
from svcctl.service.accounts.codes import Reason
from svcctl.service.http.app import build
from svcctl.service.http.context import Service
from svcctl.service.jobs.jobs import Jobs
from svcctl.service.language.types import Column, Type

Ask = Callable[..., httpx.Response]
JOB = {"query": "from t", "from": 1, "destination": {"type": "donothing"}}
LIMIT = {"running": 1, "limit": 1, "setting": "SVCCTL_RUNNING_JOBS"}


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    """Sends a request with the token of an account of the local domain, or of the domain's reseller."""
    with chosen_engine() as engines, ThreadPoolExecutor(2) as executor:
        store = with_catalog(tmp_path / "state.db")
        accounts.put(store, Account("key", "secret", "mine", seed.LOCAL_DOMAIN, administrator=True))
        accounts.put(store, Account("other", "secret", "reseller", "", reseller=seed.RESELLER))
        domains.create(store, seed.RESELLER, {"name": "acme", "plan": "basic"})
        engines.of("t").stored.create("t", (Column("eventdate", Type.TIMESTAMP), Column("n", Type.INT8)))
        jobs = Jobs(store, lambda job, run: run.stopping.wait() and False, share=1)
        app = build(Service(engines, store, executor), jobs)

        def ask(method: str, path: str, body: Any = None, token: str = "mine") -> httpx.Response:
            content = b"" if body is None else json.dumps(body).encode()
            return answered(app, method, path, content, {"authorization": f"Bearer {token}"})

        yield ask
        jobs.close()
        store.close()


REFUSED: list[tuple[tuple[Any, ...], str, dict[str, Any]]] = [
    (("GET", "/nowhere"), "no-route", {}),
    (("GET", "/search/jobs", None, "nobody"), "credentials-refused", {}),
    (("POST", "/search/query", {"query": "from t"}), "dates-refused", {}),
    (("POST", "/search/query", {"query": "from t wher", "from": 1}), "query-refused", {}),
    (("POST", "/search/query", {"query": "from u", "from": 1}), "unknown-table", {"table": "u"}),
    (("GET", "/search/job/x"), "no-job", {"job": "x"}),
    (("GET", "/service/tables/u"), "unknown-table", {"table": "u"}),
    (("GET", "/domain"), "not-reseller", {"command": "domain"}),
    (("GET", "/domain/none", None, "reseller"), "no-domain", {}),
    (("GET", "/domain/acme/roles", None, "reseller"), "no-owner", {"domain": "acme@demo"}),
    (("GET", "/domain/other/roles"), "not-administrator", {"command": "role"}),
]


@pytest.mark.parametrize(("request_", "reason", "data"), REFUSED)
def test_a_refusal_has_a_reason_and_data(ask: Ask, request_: tuple[Any, ...], reason: str, data: Any) -> None:
    answer = ask(*request_)
    assert (answer.is_error, answer.json()["reason"], answer.json()["data"]) == (True, reason, data)
    assert "svcctl" not in answer.text.replace("svcctl_", "")
    error = error_of(answer.status_code, "application/json", answer.content)
    assert (error.reason, error.data) == (reason, data)


def test_a_job_that_cannot_start_says_why(ask: Ask) -> None:
    job = ask("POST", "/search/query", JOB).json()["object"]["id"]
    for method, path, body, reason, data in (
        ("GET", f"/search/job/start/{job}", None, "job-running", {"job": job}),
        ("POST", "/search/query", JOB, "too-many-jobs", LIMIT),
    ):
        answer = ask(method, path, body).json()
        assert (answer["reason"], answer["data"]) == (reason, data)
    ask("GET", f"/search/job/stop/{job}")
    answer = ask("GET", f"/search/job/stop/{job}").json()
    assert (answer["reason"], answer["data"]) == ("job-not-running", {"job": job, "status": "STOPPED"})


def test_every_reason_of_domains_and_roles_is_an_identifier_of_its_own() -> None:
    assert len({reason.identifier for reason in Reason}) == len(Reason)


@pytest.mark.parametrize(
    ("members", "reason", "data"),
    [
        ('"reason":"no-job","data":{"job":"j"}', "no-job", {"job": "j"}),
        ('"reason":"no-job","data":[1]', "no-job", {}),
        ('"reason":"no-job"', "no-job", {}),
        ('"reason":"No such job","data":{"job":"j"}', "not-found", {"job": "j"}),
        ('"reason":404', "not-found", {}),
        ('"x":1', "not-found", {}),
    ],
)
def test_a_client_takes_only_identifiers_for_reasons(members: str, reason: str, data: Any) -> None:
    body = '{"error":{"code":100,"message":"m"},' + members + "}"
    error: SvcctlError = error_of(404, "application/json", body.encode())
    assert (error.reason, dict(error.data)) == (reason, data)
