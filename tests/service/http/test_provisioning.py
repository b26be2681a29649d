"""The routes of domains and roles: who may, what is answered, and with which HTTP status and error object."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from support.application import answered
from support.state import read_only, with_catalog

from svcctl.api.models import DomainStatus
from svcctl.service.accounts import accounts, domains, price_plans, users
from svcctl.service.accounts.accounts import Account
from svcctl.service.http.app import build
from svcctl.service.http.context import Service
from svcctl.service.state.store import Store

NOW = 1_700_000_000.0
ACCOUNTS = {
    "reseller": Account("reseller-key", "reseller-secret", "reseller-token", "", reseller="demo"),
    "other": Account("other-key", "other-secret", None, "", reseller="other"),
    "admin": Account("admin-key", "admin-secret", None, "acme@demo", administrator=True),
    "ordinary": Account("user-key", "user-secret", None, "acme@demo"),
    "unknown": Account("unknown-key", "unknown-secret", None, ""),
    "local": Account("local-key", "local-secret", None, "local", administrator=True),
}
ACME = {"name": "acme@demo", "plan": "basic", "time": 14.0, "volume": 10.0, "status": "Active"}
ANN = {"email": "ann@acme.example", "role": "ADMIN", "owner": True, "lastDomain": True}

Ask = Callable[..., tuple[int, Any]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = with_catalog(tmp_path / "state.db")
    price_plans.put_reseller(store, price_plans.Reseller("other"))
    for who in ("reseller", "other", "local"):
        accounts.put(store, ACCOUNTS[who])
    yield store
    store.close()


@pytest.fixture
def ask(store: Store) -> Ask:
    """Sends a request signed by one of the accounts; returns HTTP status and decoded body."""
    # Nothing here asks the engine anything.
    app = build(Service(cast(Any, None), store, cast(Any, None), clock=lambda: NOW))

    def ask(who: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        account = ACCOUNTS[who]
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        stamp = str(int(NOW * 1000))
        message = account.api_key.encode() + content + stamp.encode()
        headers = {
            "content-type": "application/json",
            "x-svc-apikey": account.api_key,
            "x-svc-timestamp": stamp,
            "x-svc-sign": hmac.new(account.api_secret.encode(), message, hashlib.sha256).hexdigest(),
        }

        response = answered(app, method, path, content, headers)
        assert response.headers["content-type"] == "application/json"
        content = response.json()
        if response.is_error:
            del content["reason"], content["data"]
        return response.status_code, content

    return ask


@pytest.fixture
def acme(store: Store) -> None:
    """A domain with an owner."""
    domains.create(store, "demo", {"name": "acme", "plan": "basic", "time": 14})
    users.assign(store, "acme@demo", "ann@acme.example", "OWNER")
    give_keys(store)


def give_keys(store: Store) -> None:
    """The accounts of acme, which the provider makes for a new domain."""
    for who in ("admin", "ordinary"):
        accounts.put(store, ACCOUNTS[who])


NOT_RESELLER = "domain operations need the credentials of a reseller"


def error(code: int, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}


def test_a_domain_lives_through_the_routes(ask: Ask, store: Store) -> None:
    assert ask("reseller", "GET", "/domain") == (200, [])
    assert ask("reseller", "POST", "/domain", {"name": "acme", "plan": "basic", "time": 14}) == (200, ACME)
    assert ask("reseller", "GET", "/domain") == (200, [ACME])
    assert ask("reseller", "GET", "/domain/acme%40demo") == (200, ACME | {"users": []})
    users.assign(store, "acme@demo", "ann@acme.example", "OWNER")
    assert ask("reseller", "GET", "/domain/acme") == (200, ACME | {"users": [ANN]})
    assert ask("reseller", "POST", "/domain/acme/disable") == (200, ACME | {"status": "Disabled"})
    assert ask("reseller", "POST", "/domain/acme/enable") == (200, ACME)
    assert ask("reseller", "DELETE", "/domain/acme") == (200, ACME | {"status": "Deleted"})
    assert ask("reseller", "GET", "/domain") == (200, [])


@pytest.mark.parametrize(
    ("fields", "key", "message"),
    [
        ({"name": "beta", "plan": "basic", "time": 14}, None, None),
        ({"name": "beta@other", "plan": "basic"}, "name", "domain name 'beta@other' must end in @demo"),
        ({"name": "acme", "plan": "basic"}, "name", "domain acme@demo already exists"),
        ({"name": "beta", "plan": "x"}, "plan", "reseller 'demo' has no plan 'x'"),
        ({"name": "beta", "plan": "trial", "time": 1}, "time", "plan 'trial' does not accept time"),
        ({"name": "beta", "plan": "trial", "volume": 1}, "volume", "plan 'trial' does not accept volume"),
    ],
)
def test_a_check_of_a_new_domain_names_the_key_that_would_be_refused_and_creates_nothing(
    ask: Ask, fields: dict[str, Any], key: str | None, message: str | None
) -> None:
    ask("reseller", "POST", "/domain", {"name": "acme", "plan": "basic"})
    status, checked = ask("reseller", "POST", "/service/domain/check", fields)
    assert (status, checked["key"], checked.get("message")) == (200, key, message)
    assert len(ask("reseller", "GET", "/domain")[1]) == 1


HALF = "contains half of a surrogate pair, which is not a character"
REFUSALS: list[tuple[str, str, Any, int, dict[str, Any]]] = [
    ("GET", "/domain/nemo", None, 404, error(106, "no domain nemo@demo")),
    ("GET", "/domain/acme%40other", None, 404, error(106, "no domain acme@other")),
    ("POST", "/domain/nemo/enable", None, 404, error(106, "no domain nemo@demo")),
    ("POST", "/domain/acme/enable", None, 409, error(117, "domain acme@demo is already enabled")),
    (
        "POST",
        "/domain",
        {"name": "A", "plan": "basic"},
        400,
        error(121, "invalid domain name 'A': use a-z, 0-9, '.', '_' and '-', and start with a letter or digit"),
    ),
    ("POST", "/domain", {"name": "acme", "plan": "basic"}, 409, error(122, "domain acme@demo already exists")),
    (
        "POST",
        "/domain",
        {"name": "b", "plan": "x"},
        400,
        error(123, "reseller 'demo' has no plan 'x'; its plans are basic, full, trial"),
    ),
    (
        "POST",
        "/domain",
        {"name": "b", "plan": "trial", "time": 1},
        400,
        error(124, "plan 'trial' does not accept time"),
    ),
    ("POST", "/domain", {"plan": "basic"}, 400, error(125, "name is missing")),
    ("POST", "/domain", {"id": 1}, 400, error(125, "unknown field 'id'")),
    ("POST", "/domain", {"name": "new", "plan": "basic", "volumne": 1}, 400, error(125, "unknown field 'volumne'")),
    ("POST", "/domain", {"name": "new", "plan": "basic", "Time": 14}, 400, error(125, "unknown field 'Time'")),
    (
        "POST",
        "/domain",
        {"name": "new", "plan": "basic", "x" * 300: 1},
        400,
        error(125, f"unknown field '{'x' * 100}…'"),
    ),
    ("POST", "/domain", b"{", 400, error(125, "the body is not JSON")),
    ("POST", "/domain", b"", 400, error(125, "the body is not JSON")),
    ("POST", "/domain", b"\xff", 400, error(125, "the body is not JSON")),
    ("POST", "/domain", b'{"name": "\\ud800"}', 400, error(125, f"name {HALF}")),
    ("POST", "/domain", b"[" * 100_000, 400, error(125, "the body is nested deeper than 16 levels")),
    ("POST", "/domain", [], 400, error(125, "the body is not a JSON object")),
    ("GET", "/domain/acme/roles/nemo", None, 404, error(140, "domain acme@demo has no role 'nemo'")),
    ("PUT", "/domain/acme/roles/nemo", {}, 404, error(140, "domain acme@demo has no role 'nemo'")),
    ("GET", "/domain/nemo/roles", None, 404, error(106, "no domain nemo@demo")),
    (
        "POST",
        "/domain/acme/roles",
        {"name": "ops", "policies": [], "applications": []},
        400,
        error(134, "role 'ops' would grant nothing: it needs at least one policy or application"),
    ),
    ("POST", "/domain/acme/roles", {"name": "ops", "maxVault": 2}, 400, error(139, "maxVault cannot be set")),
]


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize(("method", "path", "body", "status", "answer"), REFUSALS)
def test_a_refusal_is_the_interfaces_error_object(
    ask: Ask, method: str, path: str, body: Any, status: int, answer: Any
) -> None:
    assert ask("reseller", method, path, body) == (status, answer)


def test_pending_disabled_and_ownerless_have_errors_of_their_own(ask: Ask, store: Store) -> None:
    ask("reseller", "POST", "/domain", {"name": "acme", "plan": "basic"})
    assert ask("reseller", "GET", "/domain/acme/roles") == (
        409,
        error(
            119,
            "domain acme@demo has no owner and cannot be accessed until one is assigned",
        ),
    )
    ask("reseller", "POST", "/domain/acme/disable")
    assert ask("reseller", "POST", "/domain/acme/disable") == (
        409,
        error(117, "domain acme@demo is already disabled"),
    )
    assert ask("reseller", "GET", "/domain/acme/roles") == (
        409,
        error(
            127,
            "domain acme@demo is disabled and cannot be accessed; its reseller can enable it",
        ),
    )
    domains.set_status(store, "acme@demo", DomainStatus.PENDING)
    assert ask("reseller", "POST", "/domain/acme/enable") == (
        409,
        error(118, "domain acme@demo is pending and cannot be enabled"),
    )


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/domain"),
        ("POST", "/domain"),
        ("GET", "/domain/acme"),
        ("POST", "/domain/acme/enable"),
        ("POST", "/domain/acme/disable"),
        ("DELETE", "/domain/acme"),
    ],
)
@pytest.mark.parametrize("who", ["admin", "ordinary", "local"])
def test_domain_operations_need_reseller_credentials(ask: Ask, who: str, method: str, path: str) -> None:
    body = {"name": "b", "plan": "basic"} if path == "/domain" else None
    assert ask(who, method, path, body) == (403, error(120, NOT_RESELLER))


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("who", ["reseller", "admin"])
def test_a_role_lives_through_the_routes(ask: Ask, who: str) -> None:
    read_only = {"alertPermissions": [], "defVault": 1, "maxVault": 1}
    role = {"name": "Day/Night é", "policies": ["Search"], "applications": [], "resourceIds": {"ids": []}} | read_only
    path = "/domain/acme@demo/roles/Day%2FNight%20%C3%A9"
    assert ask(who, "POST", "/domain/acme/roles", {"name": "Day/Night é", "policies": "Search"}) == (200, role)
    assert ask(who, "GET", path) == (200, role | {"users": []})
    assert ask(who, "GET", "/domain/acme/roles") == (200, [role])
    changed = role | {"resourceIds": {"ids": [1, 2]}}
    assert ask(who, "PUT", path, {"resourceIds": {"a": [2], "b": [1]}}) == (200, changed)
    assert ask(who, "DELETE", path) == (200, changed)
    assert ask(who, "GET", "/domain/acme/roles") == (200, [])


@pytest.mark.usefixtures("acme")
def test_an_ordinary_account_administrates_nothing(ask: Ask) -> None:
    assert ask("ordinary", "GET", "/domain/acme/roles") == (
        403,
        error(126, "the account is not an administrator of domain acme@demo"),
    )


def test_the_account_of_the_local_profile_administrates_the_local_domain(ask: Ask) -> None:
    assert ask("local", "GET", "/domain/local/roles") == (200, [])


def test_a_domain_that_cannot_be_accessed_answers_its_own_accounts_nothing(ask: Ask, store: Store, acme: None) -> None:
    assert ask("admin", "GET", "/domain/acme/roles") == (200, [])
    ask("reseller", "POST", "/domain/acme/disable")
    disabled = "domain acme@demo is disabled and cannot be accessed; its reseller can enable it"
    for method, path in (("POST", "/search/query"), ("GET", "/service/status")):
        status, answer = ask("admin", method, path)
        assert (status, answer["success"], answer["status"], answer["msg"]) == (409, False, 1, disabled)
    for who in ("admin", "reseller"):
        assert ask(who, "GET", "/domain/acme/roles") == (409, error(127, disabled))
    ask("reseller", "DELETE", "/domain/acme")
    assert ask("admin", "GET", "/domain/acme/roles") == (401, error(12, "the API key or the signature is wrong"))


DOMAIN_PATHS = [
    *(("GET", "/domain"), ("POST", "/domain"), ("GET", "/domain/acme"), ("DELETE", "/domain/acme")),
    *(("POST", "/domain/acme/enable"), ("POST", "/domain/acme/disable"), ("GET", "/domain/acme/roles")),
    *(("POST", "/domain/acme/roles"), ("GET", "/domain/acme/roles/r"), ("PUT", "/domain/acme/roles/r")),
    *(("DELETE", "/domain/acme/roles/r"), ("GET", "/domain/"), ("GET", "/domain/acme/roles/")),
    *(("POST", "/service/domain/check"), ("GET", "/service/domain/acme/available")),
]


@pytest.mark.parametrize(("method", "path"), DOMAIN_PATHS)
def test_every_error_of_a_domain_path_has_the_same_shape(ask: Ask, acme: None, method: str, path: str) -> None:
    assert ask("unknown", method, path) == (401, error(12, "the API key or the signature is wrong"))
    assert ask("admin", method, path, b"x" * 1_100_000) == (413, error(1, "the body is larger than 1.0 MB"))
    for who in ("ordinary", "local"):
        status, answer = ask(who, method, path, {"name": "b"})
        if status != 200:
            assert answer.keys() == {"error"}
            assert answer["error"].keys() == {"code", "message"}


@pytest.mark.parametrize(
    ("method", "path", "status", "answer"),
    [
        ("GET", "/domain/ac%2Fme", 404, error(106, "no domain ac/me@demo")),
        ("DELETE", "/domain/ac%2Fme", 404, error(106, "no domain ac/me@demo")),
        ("POST", "/domain/ac%2Fme/enable", 404, error(106, "no domain ac/me@demo")),
        ("POST", "/domain/%2F/disable", 404, error(106, "no domain /@demo")),
        ("PATCH", "/domain/acme", 404, error(1, "no route PATCH /domain/acme")),
        ("POST", "/domain/acme/rolls", 404, error(1, "no route POST /domain/acme/rolls")),
        ("PUT", "/domain", 404, error(1, "no route PUT /domain")),
    ],
)
def test_paths_below_domain_that_name_nothing_are_answered_in_that_shape(
    ask: Ask, method: str, path: str, status: int, answer: Any
) -> None:
    assert ask("reseller", method, path) == (status, answer)


def test_a_state_that_cannot_be_written_is_answered_in_that_shape(ask: Ask, store: Store) -> None:
    with read_only(store):
        status, answer = ask("reseller", "POST", "/domain", {"name": "b", "plan": "basic"})
    assert (status, answer.keys(), answer["error"]["code"]) == (503, {"error"}, 1)


def test_a_path_that_only_begins_like_a_domain_path_has_the_envelope(ask: Ask) -> None:
    status, answer = ask("reseller", "GET", "/domains")
    assert (status, answer["error"], answer["status"]) == (404, {"code": 1, "message": "no route GET /domains"}, 1)


@pytest.mark.parametrize("slashes", ["/", "//"])
def test_a_path_with_a_slash_at_its_end_is_answered_as_without(ask: Ask, acme: None, slashes: str) -> None:
    assert ask("reseller", "GET", f"/domain{slashes}") == (200, [ACME])
    assert ask("reseller", "GET", f"/domain/acme{slashes}") == (200, ACME | {"users": [ANN]})
    created = ask("reseller", "POST", f"/domain{slashes}", {"name": "beta", "plan": "basic"})
    assert created[0] == 200
    assert ask("reseller", "POST", f"/domain/beta/disable{slashes}") == (200, created[1] | {"status": "Disabled"})
    assert ask("reseller", "POST", f"/domain/beta/enable{slashes}") == created
    assert ask("reseller", "DELETE", f"/domain/beta{slashes}") == (200, created[1] | {"status": "Deleted"})
    assert ask("admin", "POST", f"/domain/acme/roles{slashes}", {"name": "a"})[0] == 200
    assert ask("admin", "GET", f"/domain/acme/roles{slashes}")[0] == 200
    assert ask("admin", "PUT", f"/domain/acme/roles/a{slashes}", {"description": "d"})[0] == 200
    assert ask("admin", "GET", f"/domain/acme/roles/a{slashes}")[1]["description"] == "d"
    assert ask("admin", "DELETE", f"/domain/acme/roles/a{slashes}")[0] == 200
    assert ask("admin", "GET", f"/search/jobs{slashes}")[0] == 200
    assert ask("admin", "GET", f"/search/job/none{slashes}")[1]["msg"] == "no job none"
    assert ask("admin", "GET", slashes)[1]["msg"] == "no route GET /"


def test_an_encoded_slash_at_the_end_belongs_to_the_name_of_a_role(ask: Ask, acme: None) -> None:
    for name in ("a", "a/", "/"):
        assert ask("admin", "POST", "/domain/acme/roles", {"name": name})[0] == 200
    for path, name in (("a", "a"), ("a/", "a"), ("a%2F", "a/"), ("a%2F/", "a/"), ("%2F", "/")):
        assert ask("admin", "GET", f"/domain/acme/roles/{path}")[1]["name"] == name
    assert ask("admin", "GET", "/search/jobs%2F")[0] == 404


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("who", ["admin", "ordinary", "reseller"])
def test_customers_may_not_load_files_of_this_machine(ask: Ask, who: str) -> None:
    status, answer = ask(who, "POST", "/service/load", {"files": [{"path": "/etc/passwd"}], "table": "a.b"})
    assert (status, answer["msg"]) == (401, "only an administrator of the service may load events")
