"""The three authorization methods: headers made from the bytes that are sent.

The headers are made anew for each attempt, so a retry gets a new timestamp and signature. The fields that hold secrets
are left out of `repr`.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

JSON = {"Content-Type": "application/json"}


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
class Signature:
    """API key and secret; `clock` gives epoch seconds."""

    api_key: str
    api_secret: str = field(repr=False)
    names: HeaderNames = HeaderNames()
    clock: Callable[[], float] = time.time

    @property
    def secret_headers(self) -> frozenset[str]:
        names = (self.names.apikey, self.names.sign, self.names.reseller_apikey)
        return frozenset(name.lower() for name in names if name)

    def headers(self, body: bytes, *, reseller: bool = False) -> Mapping[str, str]:
        """The headers that sign a body; some deployments take the API key of resellers in a header of its own."""
        timestamp_ms = int(self.clock() * 1000)
        return JSON | {
            (reseller and self.names.reseller_apikey) or self.names.apikey: self.api_key,
            self.names.timestamp: str(timestamp_ms),
            self.names.sign: sign(self.api_key, self.api_secret, body, timestamp_ms),
        }


@dataclass(frozen=True)
class Token:
    """A token in the `Authorization` header under the scheme that the subclass names."""

    scheme = ""

    token: str = field(repr=False)

    @property
    def secret_headers(self) -> frozenset[str]:
        return frozenset({"authorization"})

    def headers(self, body: bytes, *, reseller: bool = False) -> Mapping[str, str]:
        return JSON | {"Authorization": f"{self.scheme} {self.token}"}


class Bearer(Token):
    """`Authorization: Bearer <token>`."""

    scheme = "Bearer"


class Jwt(Token):
    """`Authorization: jwt <token>`; the scheme is in lower case."""

    scheme = "jwt"


Credentials = Signature | Bearer | Jwt
