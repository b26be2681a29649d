"""The three methods by which a request is authorized. This module shares no code with the client.

- `x-svc-apikey`, `x-svc-timestamp` and `x-svc-sign`: the signature `x-svc-sign` is the HMAC-SHA256 of key, body and
  timestamp with the API secret, in lower-case hexadecimal. The timestamp is in epoch milliseconds, and differs by at
  most CLOCK_WINDOW_MS from the service's clock.
- `Authorization: Bearer <token>`, or `Authorization: <token>`: the token is the account's token.
- `Authorization: jwt <token>`: the JWT is signed with the API secret (HS256). Its `iss` is the API key, and its `exp`
  is in the future.

Expired keys are refused with the same message as unknown keys. Error messages never repeat a header, because a header
may contain a secret.

The HTTP interface leaves the form of tokens and the contents of JWTs open, so this module defines both.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from svcctl.dates.epochs import seconds_to_ms
from svcctl.errors import CredentialsError, UsageError
from svcctl.service.accounts import accounts, domains, keys
from svcctl.service.accounts.accounts import Account
from svcctl.service.http.body import read
from svcctl.service.http.codes import CREDENTIALS
from svcctl.service.http.context import Service
from svcctl.service.state.database import StateUnavailable
from svcctl.service.state.store import Store

CLOCK_WINDOW_MS = 5 * 60 * 1000
_ALGORITHM = "HS256"
_NOT_SIGNED_BY_KEY = "the API key or the signature is wrong"
_NO_TOKEN = "the token is not valid"


class KeyExpired(CredentialsError):
    """Raised if the API key of an account has expired. The client gets the same message as for an unknown key."""

    def __init__(self, message: str, account: Account) -> None:
        super().__init__(message, code=CREDENTIALS)
        self.account = account


def claimed(headers: Mapping[str, str], store: Store, clock: Callable[[], float]) -> Callable[[bytes], Account]:
    """Check the headers of a request, and return a function that checks the request's body.

    The returned function takes the body, and returns the account that signed the request. The caller reads the body
    only after the headers were accepted. So the body of an unknown client takes no memory.

    Raises KeyExpired for an expired key, and CredentialsError for any other fault. Error messages never contain the
    expected signature.
    """
    scheme, blank, token = headers.get("authorization", "").strip().partition(" ")
    match scheme.lower(), blank:
        case "", _:
            return _by_signature(headers, store, clock)
        case "bearer", _:
            account = _by_token(token.strip(), store, clock)
        case "jwt", _:
            account = _by_jwt(token.strip(), store, clock)
        case _, "":
            account = _by_token(scheme, store, clock)
        case _:
            raise _refused("unknown authorization scheme; write Bearer, jwt, or the token alone")
    return lambda body: account


def _by_signature(headers: Mapping[str, str], store: Store, clock: Callable[[], float]) -> Callable[[bytes], Account]:
    key, stamp, signature = (headers.get(f"x-svc-{name}", "") for name in ("apikey", "timestamp", "sign"))
    if not (key and stamp and signature):
        raise _refused("the request is not signed: x-svc-apikey, x-svc-timestamp and x-svc-sign are required")
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) < 20):
        raise _refused("x-svc-timestamp is not a number of milliseconds")
    if abs(int(stamp) - seconds_to_ms(clock())) > CLOCK_WINDOW_MS:
        raise _refused("x-svc-timestamp is more than 5 minutes off the service's clock")

    account = _valid(accounts.with_key(store, key), clock, _NOT_SIGNED_BY_KEY)

    def signer(body: bytes) -> Account:
        expected = hmac.digest(account.api_secret.encode(), key.encode() + body + stamp.encode(), hashlib.sha256).hex()
        if not hmac.compare_digest(expected.encode(), signature.encode()):
            raise _refused(_NOT_SIGNED_BY_KEY)
        return account

    return signer


def _refused(message: str) -> CredentialsError:
    return CredentialsError(message, code=CREDENTIALS)


def _valid(account: Account | None, clock: Callable[[], float], refusal: str) -> Account:
    """Check that the account of a key or a token is valid, and return the account.

    Raises CredentialsError with the message `refusal` if `account` is None. Raises KeyExpired if the account's key has
    expired.
    """
    if account is None:
        raise _refused(refusal)
    if account.has_expired(clock()):
        raise KeyExpired(refusal, account)
    return account


def _by_token(token: str, store: Store, clock: Callable[[], float]) -> Account:
    return _valid(accounts.with_token(store, token) if token else None, clock, _NO_TOKEN)


def expiring_token(store: Store, key: str, expires: int) -> str:
    """Make a JWT for the account of an API key. The JWT is signed with the account's secret.

    The token is valid until `expires`, in epoch seconds. Raises NotFound for an unknown key. Raises UsageError if the
    key expires before the token.
    """
    import jwt

    with store.reading() as connection:
        account = accounts.find(connection, key)
    if account.expires is not None and account.expires < seconds_to_ms(expires):
        raise UsageError(
            f"the key '{key}' expires on {keys.utc_text(account.expires)}, before the token",
            hint="let the token expire earlier, or use another key",
        )
    return jwt.encode({"iss": account.api_key, "exp": expires}, account.api_secret, algorithm=_ALGORITHM)


def _by_jwt(token: str, store: Store, clock: Callable[[], float]) -> Account:
    import jwt

    account = None
    try:
        key = jwt.decode(token, options={"verify_signature": False}).get("iss", "")
        account = accounts.with_key(store, str(key))
        if account is not None:
            jwt.decode(token, account.api_secret, algorithms=[_ALGORITHM], options={"require": ["iss", "exp"]})
    except (jwt.InvalidTokenError, ValueError, OverflowError, RecursionError):
        account = None  # a token from a stranger may have JSON that is too deep, huge numbers or invalid text
    return _valid(account, clock, _NO_TOKEN)


class Authentication:
    """Middleware that passes only signed requests to a route.

    The middleware reads the body, checks the signature, and sets `request.state.account` and `request.state.body`. Each
    route has its own middleware. So a request to an unknown path gets the HTTP status 404, even if the request is not
    signed.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        service: Service = scope["app"].state.service
        try:
            signer = await service.look(claimed, Headers(scope=scope), service.store, service.clock)
        except KeyExpired as error:
            service.key_uses.note_refusal(error.account)
            raise
        body = await read(Request(scope, receive), service)
        account = await service.look(_admitted, signer, body, service.store)
        service.key_uses.note_use(account, service.clock())
        scope["state"] |= {"account": account, "body": body}
        await self._app(scope, receive, send)


class OnOwnSocket(Authentication):
    """Authentication that accepts unsigned requests on the Unix socket while the database is unavailable.

    Signatures cannot be checked without the database, which has the accounts. Unsigned requests are safe, because only
    the user that runs the service can connect to the Unix socket. For such a request, `request.state.account` is None.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except StateUnavailable:
            if scope["client"] is not None:
                raise
            scope["state"] |= {"account": None, "body": b""}
            await self._app(scope, receive, send)


def _admitted(signer: Callable[[bytes], Account], body: bytes, store: Store) -> Account:
    """Return the account that signed a request. `body` is the body of the request.

    Raises CredentialsError for a wrong signature. Also raises an error if the account's domain cannot be accessed.
    """
    account = signer(body)
    if account.domain_id is not None:
        domains.require_access(store, account.domain_id)
    return account


def signed(
    method: str, path: str, endpoint: Callable[[Request], object], by: type[Authentication] = Authentication
) -> Route:
    """Return a route that accepts only signed requests. `by` is the middleware that checks the signature."""
    return Route(path, endpoint, methods=[method], middleware=[Middleware(by)])
