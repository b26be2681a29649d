"""Padding: the bytes sent while a query has no rows, so that nothing on the way takes the connection for dead.

`KINDS` are the values of a request's `keepAlive.type`. Lines of padding end in LF, also where rows end in CRLF.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from svcctl.errors import ServiceError


@dataclass(frozen=True, slots=True)
class Shape:
    """The padding that one format can have. `separators` are those of a row, in formats that have them.

    A document, such as json or xml, takes nothing but white space between its parts. In a format of lines, `is_row`
    says whether a reader could take a line that is not blank for a row, or for an error.
    """

    separators: str | None = None
    is_row: Callable[[str], bool] | None = None


Padding = Callable[[Shape, str], str]
"""The padding of a format, from the token of the request."""

KINDS: Mapping[str, Padding] = {
    "none": lambda shape, token: "",
    "newline": lambda shape, token: "\n",
    "empty": lambda shape, token: (shape.separators or "") + "\n",
    "token": lambda shape, token: token,
}


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """The `keepAlive` of a request. The type `token` always has a token, sent unchanged; other types have none."""

    type: str
    token: str = ""

    def padding(self, shape: Shape) -> bytes:
        """The bytes to send. ServiceError when they would not be padding in this format."""
        if self.type == "empty" and shape.separators is None:
            raise ServiceError("keepAlive 'empty' is a row of separators, which only csv and tsv have")
        if shape.is_row is None:
            if self.token.strip(" \t\r\n"):
                raise ServiceError("the token of keepAlive can only be white space in json, json/compact and xml")
        elif any(shape.is_row(line) for line in self.token.split("\n") if line.strip()):
            raise ServiceError("a line of the token of keepAlive could be taken for a row")
        return KINDS[self.type](shape, self.token).encode()


NO_PADDING = KeepAlive("none")
SPACES = KeepAlive("token", "    ")
NEWLINE = KeepAlive("newline")
