"""HTTP requests, their responses, and the headers of both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from svcctl.errors import UnprovenEnd


class Headers(Mapping[str, str]):
    """The headers of a message by name. The case of the name is ignored.

    If several headers have the same name, their values are joined. Iteration yields names in lower case. `fields` is
    the list of headers as they are sent, in their order.
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
        """Set the headers in `others`.

        A header with the same name is replaced, and a header with a new name is added.
        """
        names = {name.lower() for name in others}
        self.fields = [field for field in self.fields if field[0].lower() not in names] + list(others.items())


class Closing:
    """A wait for the end of a connection, for at most `seconds` seconds.

    `seen` becomes True if the connection ends properly.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.seen = False


def accepts_nothing(_: UnprovenEnd) -> bool:
    return False


@dataclass(eq=False)
class Request:
    """A request to a URL, with time limits in seconds. None means that there is no limit."""

    method: str
    url: str
    headers: Headers
    target: bytes
    """The path and the query of the URL, quoted as they are sent."""
    body: bytes = b""
    timeout: float | None = None
    """The time limit for connecting, and also the time limit for sending."""
    first: float | None = None
    """The time limit until the answer begins."""
    silence: float | None = None
    """The time limit between two parts of the answer."""
    reader: int | None = None
    """The pipe to which the caller writes the answer.

    While the client waits for bytes, ReaderClosed is raised if no process reads this pipe any more.
    """
    closing: Closing | None = None
    """If set, reading the body waits until the connection has ended.

    Raises ReadError or ReadTimeout if the connection does not end properly.
    """
    accepts: Callable[[UnprovenEnd], bool] = accepts_nothing
    """A function that returns whether an answer counts as complete.

    The function is called if the answer may have been cut off at the end of its connection.
    """


class Response:
    """An answer. Its body can be read once, in blocks as they arrive. Every answer must be closed.

    If an answer is closed before the end of its body, its connection is closed, too.
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
    """Sends requests to a service, and returns the answers."""

    def send(self, request: Request) -> Response:
        """Send a request, and return the answer as soon as its head has arrived.

        Raises RequestError if there is no answer.
        """
        ...

    def close(self) -> None:
        """Close the connections to the service."""
        ...
