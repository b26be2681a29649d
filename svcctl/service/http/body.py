"""The body of a request: the limit of its size, and the checks of its JSON object.

The size is limited because a body must be read before its signature can be checked.

The whole JSON object is checked before a route reads any member. After the check, these statements are true:
- Text is valid Unicode without U+0000.
- Numbers are finite and fit 64 bits.
- An object has no two members with the same name.
- Nothing is nested deeper than MAX_DEPTH levels.

So all values can be stored, compared, printed and passed to any library. The error for an invalid object names the
invalid member. A member with the value null counts as missing.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request

from svcctl.errors import ServiceError
from svcctl.io.compression import compressions
from svcctl.words import json_text, size_text, some

if TYPE_CHECKING:
    from svcctl.service.http.context import Service

MAX_BODY_BYTES = 2**20
"""The maximum number of bytes in a request's body. A request with a larger body is refused with the HTTP status 413."""

SMALL_BODY_BYTES = 2**16
"""The maximum number of bytes in a small body.

A larger body is read only while the request holds the semaphore `large_bodies`. So only a few large bodies are read at
the same time.
"""
MAX_DEPTH = 16
MOST_INTEGER = 2**63
MAX_SHOWN = 100
"""The maximum number of characters of a value in an error message. A longer value is cut."""

_JSON_MEDIA = re.compile(r"(?:application|text)/json|[^/\s]+/[^/\s]+\+json")
"""A pattern for the media types of JSON in the header Content-Type."""
_log = logging.getLogger("svcctl.service")
_TOO_DEEP = f"the body is nested deeper than {MAX_DEPTH} levels"


async def read(request: Request, service: Service) -> bytes:
    """Read the body of a request before its signature is checked.

    Only a few large bodies are read at the same time, because anybody can send an unsigned body. Raises ServiceError if
    the body is too large, if the client disconnects, or if the headers say that the body is not JSON.
    """
    body = bytearray()
    async with AsyncExitStack() as holding:
        if int(request.headers.get("content-length", "0")) > MAX_BODY_BYTES:
            raise _too_large()
        try:
            async for chunk in request.stream():
                if chunk and not body:
                    _check_kind(request.headers)
                if len(body) <= SMALL_BODY_BYTES < len(body) + len(chunk):
                    await holding.enter_async_context(service.large_bodies)
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    raise _too_large()
        except ClientDisconnect:
            raise ServiceError("the client left before its request was complete") from None
        return bytes(body)


def _too_large() -> ServiceError:
    return ServiceError(f"the body is larger than {size_text(MAX_BODY_BYTES)}", code=413, reason="body-too-large")


def _check_kind(headers: Headers) -> None:
    """Raise ServiceError if the headers of a request say that its body is compressed or is not JSON.

    Parameters such as a charset are ignored, because JSON is always UTF-8.
    """
    if names := compressions(", ".join(headers.getlist("content-encoding"))):
        raise ServiceError(
            f"the body is compressed with {value_text(', '.join(names))}", code=415, hint="send it without compression"
        )
    for kind in headers.getlist("content-type"):
        media = kind.partition(";")[0].strip().lower()
        if media and not _JSON_MEDIA.fullmatch(media):
            raise ServiceError(
                f"the body has the Content-Type {value_text(kind)}, which is not JSON",
                code=415,
                hint="send it as application/json",
            )


def json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in the body of a request. Members with the value null are left out.

    Raises ServiceError if the body is not a JSON object, or if a member is not valid.
    """
    try:
        fields = json.loads(body, parse_constant=_no_constant, parse_int=_integer, object_pairs_hook=_members)
    except RecursionError:
        raise ServiceError(_TOO_DEEP) from None
    except ValueError:
        raise ServiceError("the body is not JSON") from None
    if not isinstance(fields, dict):
        raise ServiceError("the body is not a JSON object")
    for path, value in _values("", fields, MAX_DEPTH):
        if isinstance(value, str):
            _check_text(path, value)
        elif isinstance(value, float) and not math.isfinite(value):
            raise ServiceError(f"{path} is a number that is too large")
        elif isinstance(value, int) and not -MOST_INTEGER <= value < MOST_INTEGER:
            raise ServiceError(f"{path} is a number that is too large: {value_text(value)}")
    return fields


def note_unknown(request: str, fields: Mapping[str, Any], members: Collection[str]) -> None:
    """Log the members of a request that are not in `members`. The route ignores these members.

    The log helps to find misspelt names, and clients that are newer than the service.
    """
    if unknown := sorted(fields.keys() - set(members)):
        names = some([repr(value_text(name)) for name in unknown])
        _log.info("%s: ignored unknown members %s", request, names)


def value_text(value: Any) -> str:
    """Return a value as text for an error message. The text is cut after MAX_SHOWN characters."""
    written = json_text(value)
    return written if len(written) <= MAX_SHOWN else f"{written[:MAX_SHOWN]}…"


def _no_constant(name: str) -> Any:
    raise ServiceError(f"the body is not JSON: {name} is not a number")


def _integer(digits: str) -> int:
    # Python refuses to convert thousands of digits. 30 digits are enough, because the number is refused anyway.
    return int(digits[:30])


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise ServiceError(f"the body has the member {_printable(value_text(name))} more than once")
        members[name] = value
    return {name: value for name, value in members.items() if value is not None}


def _values(path: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield every text, number, boolean and null in a JSON value, each with its path.

    Raises ServiceError for a member with an invalid name, and for a value that is nested deeper than `depth` levels.
    """
    if not isinstance(value, dict | list):
        yield path, value
        return
    if depth == 0:
        raise ServiceError(_TOO_DEEP)
    if isinstance(value, list):
        for member in value:
            yield from _values(path, member, depth - 1)
        return
    for name, member in value.items():
        inner = f"{path}.{value_text(name)}" if path else value_text(name)
        _check_text(f"the name of {_printable(inner)}", name)
        yield from _values(inner, member, depth - 1)


def _check_text(path: str, text: str) -> None:
    if "\0" in text:
        raise ServiceError(f"{_printable(path)} contains the character U+0000")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ServiceError(f"{_printable(path)} contains half of a surrogate pair, which is not a character") from None


def _printable(text: str) -> str:
    return text.replace("\0", "\\u0000").encode(errors="backslashreplace").decode()
