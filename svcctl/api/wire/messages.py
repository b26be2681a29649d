"""Requests, their answers, and the headers of both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from svcctl.errors import UnprovenEnd


class Headers(Mapping[str, str]):
    """The headers of a message by name, in any case; the values of several headers with one name are joined.

    Iteration gives names in lower case; `fields` has the headers as they are sent.
    """

    def __init__(self, fields: Iterable[tuple[str, str]] = ()) -> None:
        self.fields = list(fields)

    def __getitem__(self, name: str) -> str:
        values = [value for other, value in self.fields if other.lower() == name.lower()]
        if not values:
            raise KeyError(name)
        return ", ".join(values)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name.lower() for name, _ in self.fields))

    def __len__(self) -> int:
        return len(set(self))

    def update(self, others: Mapping[str, str]) -> None:
        """Add headers in place of those with the same names."""
        names = {name.lower() for name in others}
        self.fields = [field for field in self.fields if field[0].lower() not in names] + list(others.items())


class Closing:
    """The end of a connection, which is awaited for some seconds; `seen` is set when it was a proper one."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.seen = False


def accepts_nothing(_: UnprovenEnd) -> bool:
    return False


@dataclass(eq=False)
class Request:
    """A request to a URL, and how long its parts may take, in seconds; None is any time."""

    method: str
    url: str
    headers: Headers
    target: bytes
    """The path and the query of the URL as they are sent."""
    body: bytes = b""
    timeout: float | None = None
    """For connecting, and for sending."""
    first: float | None = None
    """Until the answer begins."""
    silence: float | None = None
    """Between two parts of the answer."""
    reader: int | None = None
    """The pipe that the answer is written to: waiting ends with ReaderClosed when nobody reads it."""
    closing: Closing | None = None
    """The end of the connection, if the body ends with that: in a ReadError or a ReadTimeout if it is not proper."""
    accepts: Callable[[UnprovenEnd], bool] = accepts_nothing
    """Whether an answer counts as whole although its end is not proven."""


class Response:
    """An answer. Its body is read once, in the blocks that arrive; close it in any case.

    Closed before the end of its body, it gives its connection up by `close`.
    """

    def __init__(
        self,
        request: Request,
        status_code: int,
        headers: Headers,
        blocks: Iterator[bytes],
        close: Callable[[], None],
    ) -> None:
        self.request = request
        self.status_code = status_code
        self.headers = headers
        self.blocks = blocks
        self.close = close

    @property
    def is_success(self) -> bool:
        return 200 <= self.status_code < 300

    @property
    def is_redirect(self) -> bool:
        return self.status_code in (301, 302, 303, 307, 308)


class Transport(Protocol):
    """Carries requests to a service."""

    def send(self, request: Request) -> Response:
        """The answer, once its head is there. RequestError when there is none."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...
