"""Requests, answers, and the protocol `Wire`, which sends the ones and returns the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Headers(Mapping[str, str]):
    """Headers by name, whatever its case; values of a name that comes several times are joined by commas."""

    def __init__(self, fields: Iterable[tuple[str, str]] = ()) -> None:
        self._values: dict[str, str] = {}
        for name, value in fields:
            key = name.lower()
            self._values[key] = f"{self._values[key]}, {value}" if key in self._values else value

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True, slots=True)
class Request:
    """A request with all its headers, and how many seconds to wait: `timeout` for connecting and for sending, `silence`
    for each part of the answer, and `first` until its body begins (None: as long as the other side is there). `reader`
    is the pipe that the answer is written to: waiting ends with ReaderClosed when nobody reads it any more."""

    method: str
    url: str
    fields: tuple[tuple[str, str], ...]
    body: bytes
    timeout: float
    silence: float
    first: float | None
    reader: int | None = None


class Response:
    """An answer, whose body is read once, in blocks as they arrive. Close it: reading to the end is not enough."""

    def __init__(
        self, method: str, status: int, headers: Headers, body: Iterator[bytes], close: Callable[[], None]
    ) -> None:
        self.method = method
        self.status = status
        self.headers = headers
        self._body = body
        self._close: Callable[[], None] | None = close

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_redirect(self) -> bool:
        return self.status in _REDIRECTS and "location" in self.headers

    def __iter__(self) -> Iterator[bytes]:
        yield from self._body
        self._close = None  # the connection may carry another answer by now

    def close(self) -> None:
        """Drop what was not read."""
        if self._close is not None:
            self._close()
            self._close = None


class Wire(Protocol):
    """Sends requests."""

    def send(self, request: Request) -> Response:
        """The answer, once its head is there; WireError when it fails, at once or while the body is read."""
        ...

    def close(self) -> None: ...
