"""Padding: bytes that are sent while a query has no rows. Padding prevents proxies from closing an idle connection.

`KINDS` has the possible values of a request's `keepAlive.type`. Lines of padding end in LF, even if rows end in CRLF.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from svcctl.errors import ServiceError


@dataclass(frozen=True, slots=True)
class PaddingForms:
    """The rules for padding in a response format.

    `separators` is the text of an empty row, which consists only of separators. For a format without separators,
    `separators` is None. `is_row` returns True for a line that a reader could mistake for a row or an error. In json,
    json/compact and xml, `is_row` is None, because these documents allow only white space as padding.
    """

    separators: str | None = None
    is_row: Callable[[str], bool] | None = None


Padding = Callable[[PaddingForms, str], str]
"""A function that makes padding from the rules of the response format and the token of the request."""

KINDS: Mapping[str, Padding] = {
    "none": lambda shape, token: "",
    "newline": lambda shape, token: "\n",
    "empty": lambda shape, token: (shape.separators or "") + "\n",
    "token": lambda shape, token: token,
}


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """The option `keepAlive` of a request. Only the type `token` has a token, which is sent unchanged."""

    type: str
    token: str = ""

    def padding(self, shape: PaddingForms) -> bytes:
        """Return the bytes of padding in a response format.

        Raises ServiceError if a reader could mistake the padding for a part of the response.
        """
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
