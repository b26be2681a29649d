"""What is sent while a query has no rows, so that nothing on the way takes the connection for dead.

`KINDS` are the values of a request's `keepAlive.type`. Without `keepAlive` each format sends its own padding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from svcctl.errors import ServiceError


@dataclass(frozen=True, slots=True)
class Shape:
    """What padding is made of in one format: its end of line, and the separators of a row where rows have them.

    A document, such as json or xml, takes nothing but white space between its parts.
    """

    line_end: str
    separators: str | None
    document: bool


Padding = Callable[[Shape, str], str]
"""The padding of a format, from the token of the request."""

KINDS: Mapping[str, Padding] = {
    "none": lambda shape, token: "",
    "newline": lambda shape, token: shape.line_end,
    "empty": lambda shape, token: (shape.separators or "") + shape.line_end,
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
        if shape.document and self.token.strip(" \t\r\n"):
            raise ServiceError("the token of keepAlive can only be white space in json, json/compact and xml")
        return KINDS[self.type](shape, self.token).encode()


SPACES = KeepAlive("token", "    ")
NEWLINE = KeepAlive("newline")
