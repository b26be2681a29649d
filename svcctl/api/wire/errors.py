"""What can go wrong between a request and the end of its answer; the names are those of httpx, which users know.

WireError
├── UnsendableError     LocalProtocolError, InvalidURL, UnsupportedProtocol: the request cannot be sent by anyone
├── NotSentError        ConnectError, UnknownHost, ConnectTimeout, ProxyError: the service has not seen the request
└── LostError           ReadError, ReadTimeout, WriteTimeout, RemoteProtocolError, DecodingError: it may have seen it
"""

from __future__ import annotations


class WireError(Exception):
    """A request without a whole answer."""

    timed_out = False
    attempts: int | None = None
    """How often such a request is sent at most; None when only the user limits it."""


class UnsendableError(WireError):
    """The request is not one that HTTP can carry. The text of these errors may hold a secret."""


class LocalProtocolError(UnsendableError):
    """A header or a method that would break out of its line."""


class InvalidURL(UnsendableError):
    """Not a URL."""


class UnsupportedProtocol(UnsendableError):
    """A URL that is not of http or https."""


class NotSentError(WireError):
    """No connection, so the request was not sent."""


class ConnectError(NotSentError):
    """No connection to the service, or no trust in its certificate."""


class UnknownHost(ConnectError):
    """No host has this name."""

    attempts = 1


class UnresolvedHost(ConnectError):
    """The host's name cannot be looked up at the moment; without a network that does not change soon."""

    attempts = 3


class ConnectTimeout(NotSentError):
    """No connection in time."""

    timed_out = True


class PoolTimeout(NotSentError):
    """No connection was free in time."""

    timed_out = True


class ProxyError(NotSentError):
    """The proxy does not make a connection to the service."""


class LostError(WireError):
    """The connection broke after the request, or part of it, was sent."""


class ReadError(LostError):
    """The connection broke."""


class ReadTimeout(LostError):
    """Nothing came in time."""

    timed_out = True


class WriteTimeout(LostError):
    """The request could not be sent in time."""

    timed_out = True


class RemoteProtocolError(LostError):
    """The answer is not HTTP, or it was cut."""


class DecodingError(LostError):
    """The compression of the answer is damaged or cut."""
