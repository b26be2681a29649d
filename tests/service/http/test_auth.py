"""Which signatures and tokens are accepted, and how the others are refused."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import jwt
import pytest
from support.state import with_catalog

from svcctl.errors import CredentialsError
from svcctl.service.accounts import accounts
from svcctl.service.accounts.accounts import Account
from svcctl.service.http.auth import KeyExpired, claimed

NOW = 1_700_000_000.0
MINUTE = 60_000
ACCOUNT = Account("key", "a secret of at least thirty-two bytes", "token", "local", domain_id=1)
BODY = '{"query":"from t where text = \'é\'"}'.encode()

Authorize = Callable[[dict[str, str]], Account]


@pytest.fixture
def authorized(tmp_path: Path) -> Iterator[Authorize]:
    """Authorizes a request with these headers and BODY."""
    store = with_catalog(tmp_path / "state.db")
    accounts.put(store, ACCOUNT)
    accounts.put(store, Account("tokenless", "another secret", None, "local"))
    accounts.put(store, replace(ACCOUNT, api_key="lasting", token="lasting", expires=int(NOW * 1000) + 1))
    accounts.put(store, replace(ACCOUNT, api_key="expired", token="expired", expires=int(NOW * 1000)))
    yield lambda headers: claimed(headers, store, lambda: NOW)(BODY)
    store.close()


def signature(
    *, key: str = "key", secret: str = ACCOUNT.api_secret, body: bytes = BODY, late: int = 0
) -> dict[str, str]:
    stamp = str(int(NOW * 1000) - late)
    sign = hmac.new(secret.encode(), key.encode() + body + stamp.encode(), hashlib.sha256).hexdigest()
    return {"x-svc-apikey": key, "x-svc-timestamp": stamp, "x-svc-sign": sign}


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def signed_jwt(secret: str = ACCOUNT.api_secret, algorithm: str = "HS256", **claims: object) -> dict[str, str]:
    # PyJWT compares `exp` with the clock of this machine.
    token = jwt.encode({"iss": "key", "exp": 4_000_000_000} | claims, secret, algorithm)
    return {"authorization": f"jwt {token}"}


@pytest.mark.parametrize(
    "headers",
    [
        signature(),
        signature(late=5 * MINUTE),
        signature(late=-5 * MINUTE),
        bearer("token"),
        {"authorization": "bearer  token "},
        {"authorization": "token"},
        {"authorization": " token "},
        signed_jwt(),
    ],
    ids=["signature", "late", "early", "token", "blanks", "no scheme", "no scheme and blanks", "jwt"],
)
def test_a_request_is_its_accounts(authorized: Authorize, headers: dict[str, str]) -> None:
    assert authorized(headers) == ACCOUNT


WRONG = "the API key or the signature is wrong"
NO_TOKEN = "the token is not valid"
NO_SCHEME = "unknown authorization scheme; write Bearer, jwt, or the token alone"


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({}, "the request is not signed: x-svc-apikey, x-svc-timestamp and x-svc-sign are required"),
        (
            signature() | {"x-svc-sign": ""},
            "the request is not signed: x-svc-apikey, x-svc-timestamp and x-svc-sign are required",
        ),
        (signature() | {"x-svc-timestamp": "-1"}, "x-svc-timestamp is not a number of milliseconds"),
        (signature() | {"x-svc-timestamp": "١٢"}, "x-svc-timestamp is not a number of milliseconds"),
        (
            signature(late=5 * MINUTE + 1),
            "x-svc-timestamp is more than 5 minutes off the service's clock",
        ),
        (signature(secret="guessed"), WRONG),
        (signature(key="nobody", secret=""), WRONG),
        (signature(body=b"{}"), WRONG),
        (signature() | {"x-svc-sign": signature()["x-svc-sign"].upper()}, WRONG),
        (signature() | {"x-svc-sign": "é"}, WRONG),
        (bearer("Token"), NO_TOKEN),
        (bearer(""), NO_TOKEN),
        (bearer("None"), NO_TOKEN),
        (signed_jwt("guessed, and of at least thirty-two bytes"), NO_TOKEN),
        (signed_jwt(iss="nobody"), NO_TOKEN),
        (signed_jwt(exp=1_000_000_000), NO_TOKEN),
        (signed_jwt(exp=None), NO_TOKEN),
        (signed_jwt("", "none"), NO_TOKEN),
        (signed_jwt(iss="\ud800"), NO_TOKEN),
        (signed_jwt(iss="key", exp=float("inf")), NO_TOKEN),
        ({"authorization": f"jwt a.{base64.b64encode(b'[' * 30_000).decode()}.c"}, NO_TOKEN),
        ({"authorization": "jwt a.b.c"}, NO_TOKEN),
        ({"authorization": "Token"}, NO_TOKEN),
        ({"authorization": "bearer"}, NO_TOKEN),
        ({"authorization": "jwt"}, NO_TOKEN),
        ({"authorization": "Basic a2V5"}, NO_SCHEME),
        ({"authorization": "a-secret and more"}, NO_SCHEME),
        (signature() | {"authorization": "Basic a2V5"}, NO_SCHEME),
    ],
)
def test_any_other_request_is_refused_without_saying_what_was_expected(
    authorized: Authorize, headers: dict[str, str], message: str
) -> None:
    with pytest.raises(CredentialsError) as caught:
        authorized(headers)
    assert (caught.value.message, caught.value.code) == (message, 12)


WAYS: dict[str, tuple[Callable[[str], dict[str, str]], str]] = {
    "signature": (lambda key: signature(key=key), WRONG),
    "token": (bearer, NO_TOKEN),
    "token alone": (lambda key: {"authorization": key}, NO_TOKEN),
    "jwt": (lambda key: signed_jwt(iss=key), NO_TOKEN),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_key_is_valid_until_it_expires_and_then_refused_as_an_unknown_one(authorized: Authorize, way: str) -> None:
    headers, message = WAYS[way]
    assert authorized(headers("lasting")).api_key == "lasting"
    with pytest.raises(KeyExpired) as caught:
        authorized(headers("expired"))
    assert (caught.value.message, caught.value.code, caught.value.account.api_key) == (message, 12, "expired")
    with pytest.raises(CredentialsError) as unknown:
        authorized(headers("unknown"))
    assert (unknown.value.message, unknown.value.code, type(unknown.value)) == (message, 12, CredentialsError)
