"""The failures of requests. They have the same names as in httpx.

RequestError
  TimeoutException: ConnectTimeout, ReadTimeout, WriteTimeout
  ConnectError: no connection
  ReadError: the connection broke
  ProxyError: a proxy made no connection
  LocalProtocolError: HTTP cannot carry the request
  RemoteProtocolError: the answer is not HTTP/1.1
  UnsupportedProtocol: the URL is not of http or https
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
    """No connection could be made; the cause of the exception is the reason."""


class ReadError(RequestError):
    """The connection broke while an answer was read."""


class ProxyError(RequestError):
    """A proxy could not make the connection.

    `status` is the HTTP status of the proxy's answer, if it sent one. `is_final` says that another attempt would fail
    in the same way.
    """

    status: int | None = None
    is_final = False

    def hint(self, host: str) -> str | None:
        """Advice for a user who wants to reach `host`; None if only the command line can give it."""
        return None


class LocalProtocolError(RequestError):
    """HTTP cannot carry the request."""


class RemoteProtocolError(RequestError):
    """The answer is not HTTP/1.1."""


class UnsupportedProtocol(RequestError):
    """The URL is not of http or https."""


class DecodingError(RequestError):
    """The compression of an answer is damaged."""


class InvalidURL(Exception):
    """The URL of a request is not valid."""
