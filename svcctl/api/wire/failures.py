"""The failures of requests. The exceptions have the same names as in httpx.

RequestError
  TimeoutException: ConnectTimeout, ReadTimeout, WriteTimeout
  ConnectError: no connection
  ReadError: the connection broke
  ProxyError: a proxy made no connection
  LocalProtocolError: the request cannot be sent by HTTP
  RemoteProtocolError: the answer is not valid HTTP/1.1
  UnsupportedProtocol: the scheme of the URL is neither http nor https
  DecodingError: the compression of the answer is damaged
InvalidURL: the URL of a request is not valid
"""

from __future__ import annotations


class RequestError(Exception):
    """A request has no answer, or its answer cannot be read to the end."""


class TimeoutException(RequestError):
    """A step of a request took too long."""


class ConnectTimeout(TimeoutException):
    """No connection was made in time."""


class ReadTimeout(TimeoutException):
    """No bytes of the answer arrived in time."""


class WriteTimeout(TimeoutException):
    """The request could not be sent in time."""


class ConnectError(RequestError):
    """No connection could be made. The exception's `__cause__` is the reason."""


class ReadError(RequestError):
    """The connection broke while an answer was read."""


class ProxyError(RequestError):
    """A proxy could not make the connection to the service.

    `status` is the HTTP status of the proxy's answer; None without an answer. `is_final` says that another attempt
    would fail in the same way.
    """

    status: int | None = None
    is_final = False

    def hint(self, host: str) -> str | None:
        """Return the error's advice for a user who wants to reach `host`; None if the error has no advice."""
        return None


class LocalProtocolError(RequestError):
    """The request cannot be sent by HTTP."""


class RemoteProtocolError(RequestError):
    """The answer is not valid HTTP/1.1."""


class UnsupportedProtocol(RequestError):
    """The scheme of the URL is neither http nor https."""


class DecodingError(RequestError):
    """The compression of an answer is damaged."""


class InvalidURL(Exception):
    """The URL of a request is not valid."""
