"""The three authorization methods, as httpx authentication: the headers are made from the bytes that are sent.

A retry passes through here again, so it gets a new timestamp and signature. The fields that hold secrets are left out
of `repr`.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

import httpx

RESELLER = "svcctl.reseller"
"""Request extension that marks a reseller operation; some deployments take its API key in a separate header."""


@dataclass(frozen=True, slots=True)
class HeaderNames:
    """The names of the signature's headers in a deployment; `reseller_apikey` is None when it equals `apikey`."""

    apikey: str = "x-svc-apikey"
    sign: str = "x-svc-sign"
    timestamp: str = "x-svc-timestamp"
    reseller_apikey: str | None = None


def sign(api_key: str, api_secret: str, body: bytes, timestamp_ms: int) -> str:
    """HMAC-SHA256 with the API secret over API key, body and timestamp, as 64 lower-case hexadecimal characters."""
    message = api_key.encode() + body + str(timestamp_ms).encode()
    return hmac.new(api_secret.encode(), message, hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Signature(httpx.Auth):
    """API key and secret; `clock` gives epoch seconds."""

    requires_request_body = True

    api_key: str
    api_secret: str = field(repr=False)
    names: HeaderNames = HeaderNames()
    clock: Callable[[], float] = time.time

    @property
    def secret_headers(self) -> frozenset[str]:
        names = (self.names.apikey, self.names.sign, self.names.reseller_apikey)
        return frozenset(name.lower() for name in names if name)

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        timestamp_ms = int(self.clock() * 1000)
        reseller = request.extensions.get(RESELLER) and self.names.reseller_apikey
        request.headers["Content-Type"] = "application/json"
        request.headers[reseller or self.names.apikey] = self.api_key
        request.headers[self.names.timestamp] = str(timestamp_ms)
        request.headers[self.names.sign] = sign(self.api_key, self.api_secret, request.content, timestamp_ms)
        yield request


@dataclass(frozen=True)
class Token(httpx.Auth):
    """A token in the `Authorization` header under the scheme that the subclass names."""

    requires_request_body = True
    scheme = ""

    token: str = field(repr=False)

    @property
    def secret_headers(self) -> frozenset[str]:
        return frozenset({"authorization"})

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Content-Type"] = "application/json"
        request.headers["Authorization"] = f"{self.scheme} {self.token}"
        yield request


class Bearer(Token):
    """`Authorization: Bearer <token>`."""

    scheme = "Bearer"


class Jwt(Token):
    """`Authorization: jwt <token>`; the scheme is in lower case."""

    scheme = "jwt"


Credentials = Signature | Bearer | Jwt
