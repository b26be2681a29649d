"""Verifies the interface's three authorization methods, without sharing code with the client that signs.

- `x-svc-apikey`, `x-svc-timestamp` (milliseconds) and `x-svc-sign`: HMAC-SHA256 with the API secret over key, body and
  timestamp, in lower-case hexadecimal, at most CLOCK_WINDOW_MS away from this clock.
- `Authorization: Bearer <token>`, or the token alone: the account's token.
- `Authorization: jwt <token>`: a JWT signed HS256 with the API secret, its `iss` the API key, its `exp` in the future.

The interface does not say how a token is made or what a JWT holds; that is decided here. A refusal repeats
no part of a header, because any part may be a secret.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping

from svcctl.errors import CredentialsError, NotFound
from svcctl.service.accounts import accounts
from svcctl.service.accounts.accounts import Account
from svcctl.service.state.store import Store

CLOCK_WINDOW_MS = 5 * 60 * 1000
_ALGORITHM = "HS256"


def claimed(headers: Mapping[str, str], store: Store, clock: Callable[[], float]) -> Callable[[bytes], Account]:
    """Check the headers of a request, and return a function that finds the account that signed the body.

    So a body is not read when its headers are refused. CredentialsError says what was refused, never what was
    expected.
    """
    scheme, blank, token = headers.get("authorization", "").strip().partition(" ")
    match scheme.lower(), blank:
        case "", _:
            return _by_signature(headers, store, clock)
        case "bearer", _:
            account = _by_token(token.strip(), store)
        case "jwt", _:
            account = _by_jwt(token.strip(), store)
        case _, "":
            account = _by_token(scheme, store)
        case _:
            raise CredentialsError("unknown authorization scheme; write Bearer, jwt, or the token alone")
    return lambda body: account


def _by_signature(headers: Mapping[str, str], store: Store, clock: Callable[[], float]) -> Callable[[bytes], Account]:
    key, stamp, signature = (headers.get(f"x-svc-{name}", "") for name in ("apikey", "timestamp", "sign"))
    if not (key and stamp and signature):
        raise CredentialsError("the request is not signed: x-svc-apikey, x-svc-timestamp and x-svc-sign are required")
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) < 20):
        raise CredentialsError("x-svc-timestamp is not a number of milliseconds")
    if abs(int(stamp) - clock() * 1000) > CLOCK_WINDOW_MS:
        raise CredentialsError("x-svc-timestamp is more than 5 minutes off the service's clock")

    def signer(body: bytes) -> Account:
        account = accounts.with_key(store, key)
        # An unknown key takes as long as a wrong signature and is answered alike.
        secret = account.api_secret if account else ""
        expected = hmac.digest(secret.encode(), key.encode() + body + stamp.encode(), hashlib.sha256).hex()
        if not hmac.compare_digest(expected.encode(), signature.encode()) or account is None:
            raise CredentialsError("the API key or the signature is wrong")
        return account

    return signer


def _by_token(token: str, store: Store) -> Account:
    account = accounts.with_token(store, token) if token else None
    if account is None:
        raise CredentialsError("the token is not valid")
    return account


def expiring_token(store: Store, api_key: str, expires: int) -> str:
    """Make a JWT of an account, signed with its secret, that expires at epoch seconds. NotFound without a key."""
    import jwt

    account = accounts.with_key(store, api_key)
    if account is None:
        raise NotFound(f"no key '{api_key}'", hint="list them with 'svcctl service accounts list keys'")
    return jwt.encode({"iss": api_key, "exp": expires}, account.api_secret, algorithm=_ALGORITHM)


def _by_jwt(token: str, store: Store) -> Account:
    import jwt

    try:
        key = jwt.decode(token, options={"verify_signature": False}).get("iss", "")
        account = accounts.with_key(store, str(key))
        if account is not None:
            jwt.decode(token, account.api_secret, algorithms=[_ALGORITHM], options={"require": ["iss", "exp"]})
            return account
    except (jwt.InvalidTokenError, ValueError, OverflowError, RecursionError):
        pass  # the token's JSON is from anybody: any depth, any number, half a character
    raise CredentialsError("the token is not valid")
