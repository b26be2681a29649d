"""The three methods of authorization. Each method adds headers to a request.

Each attempt to send a request gets a new timestamp and a new signature. The `repr` of credentials omits secrets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from svcctl.api.wire.heads import check_header
from svcctl.api.wire.messages import Request
from svcctl.dates.epochs import seconds_to_ms

JSON = {"Content-Type": "application/json"}


class HeaderNames(NamedTuple):
    """The names of the headers of signed requests.

    `reseller_apikey` is the header for the API key of a reseller. If `reseller_apikey` is None, the header `apikey` is
    used for resellers, too.
    """

    apikey: str = "x-svc-apikey"
    sign: str = "x-svc-sign"
    timestamp: str = "x-svc-timestamp"
    reseller_apikey: str | None = None


INTERFACE_HEADERS = HeaderNames()
"""The header names in the specification of the HTTP interface."""


def sign(api_key: str, api_secret: str, body: bytes, timestamp_ms: int) -> str:
    """Return the signature of a request as 64 lower-case hexadecimal characters.

    The signature is the HMAC-SHA256 of the API key, the body and the timestamp. The key of the HMAC is the API secret.
    """
    import hashlib  # loads OpenSSL, which requests with a token do not need
    import hmac

    message = api_key.encode() + body + str(timestamp_ms).encode()
    return hmac.new(api_secret.encode(), message, hashlib.sha256).hexdigest()


def _add(request: Request, headers: Mapping[str, str]) -> None:
    """Add headers to a request. Raises LocalProtocolError for a header that cannot be sent."""
    for name, value in headers.items():
        check_header(name, value)
    request.headers.update({**JSON, **headers})


@dataclass(frozen=True)
class Signature:
    """Authentication that signs requests with an API key and its secret. `clock` returns epoch seconds."""

    api_key: str
    api_secret: str = field(repr=False)
    names: HeaderNames = INTERFACE_HEADERS
    clock: Callable[[], float] = time.time

    @property
    def secret_headers(self) -> frozenset[str]:
        names = (self.names.apikey, self.names.sign, self.names.reseller_apikey)
        return frozenset(name.lower() for name in names if name)

    def of_reseller(self) -> Signature:
        """Return a copy of these credentials for the operations of a reseller.

        Some services expect a reseller's API key in another header.
        """
        return replace(self, names=self.names._replace(apikey=self.names.reseller_apikey or self.names.apikey))

    def authorize(self, request: Request) -> None:
        """Add the headers of a signed request. Raises LocalProtocolError for a header that cannot be sent."""
        timestamp_ms = seconds_to_ms(self.clock())
        _add(
            request,
            {
                self.names.apikey: self.api_key,
                self.names.timestamp: str(timestamp_ms),
                self.names.sign: sign(self.api_key, self.api_secret, request.body, timestamp_ms),
            },
        )


@dataclass(frozen=True)
class Token:
    """Authentication with a token in the header `Authorization`. Each subclass defines the `scheme`."""

    scheme = ""

    token: str = field(repr=False)

    @property
    def secret_headers(self) -> frozenset[str]:
        return frozenset({"authorization"})

    def of_reseller(self) -> Self:
        return self

    def authorize(self, request: Request) -> None:
        """Add the header `Authorization`. Raises LocalProtocolError if the header cannot be sent."""
        _add(request, {"Authorization": f"{self.scheme} {self.token}"})


class Bearer(Token):
    """Authentication with the header `Authorization: Bearer <token>`."""

    scheme = "Bearer"


class Jwt(Token):
    """Authentication with the header `Authorization: jwt <token>`. The word `jwt` is in lower case."""

    scheme = "jwt"


Credentials = Signature | Bearer | Jwt
