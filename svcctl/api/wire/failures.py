"""The failures of requests, with the names that httpx has for them.

RequestError
  TimeoutException: ConnectTimeout, ReadTimeout, WriteTimeout
  ConnectError: no connection
  ReadError: the connection broke
  ProxyError: a proxy made no connection
  LocalProtocolError: HTTP cannot carry the request
  RemoteProtocolError: the answer is not HTTP/1.1
  UnsupportedProtocol: the URL is not of http or https
  DecodingError: the compression of the answer is damaged
InvalidURL: a request has no such URL
"""

from __future__ import annotations


class RequestError(Exception):
    """A request has no answer, or its answer cannot be read to the end."""


class TimeoutException(RequestError):
    """A step took too long."""


class ConnectTimeout(TimeoutException):
    """There was no connection in time."""


class ReadTimeout(TimeoutException):
    """Nothing came in time."""


class WriteTimeout(TimeoutException):
    """The request could not be sent in time."""


class ConnectError(RequestError):
    """There is no connection; the cause says why."""


class ReadError(RequestError):
    """The connection broke."""


class ProxyError(RequestError):
    """A proxy made no connection.

    `status` is the HTTP status of the proxy's answer, if it sent one. `is_final` says that another attempt would fail
    in the same way.
    """

    status: int | None = None
    is_final = False

    def hint(self, host: str) -> str | None:
        """The next thing to do for a user who wants to reach `host`; None where only the command line knows."""
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
    """The URL of a request is not one."""
