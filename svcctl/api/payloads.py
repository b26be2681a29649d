"""Answers of small operations: the payload without its envelope, as one record or as a list."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from svcctl.api.body import whole
from svcctl.api.refusals import is_page, page_line, read_refusal
from svcctl.api.transport import CID
from svcctl.api.wire.messages import Response
from svcctl.errors import Unavailable


def decoded(response: Response) -> Any:
    """The payload of an answer, None for an empty one; raises the error that a body states, with HTTP 200 too."""
    body = whole(response)
    if not body.strip():
        return None
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        what = "a web page" if is_page(response.headers.get("content-type", ""), body) else "something that is not JSON"
        raise Unavailable(f"the service answered with {what}: {page_line(body)}") from None
    if refusal := read_refusal(payload):
        raise refusal.of(response.headers.get(CID)).as_error()
    return payload["object"] if isinstance(payload, dict) and "object" in payload else payload


def record(payload: Any) -> Mapping[str, Any]:
    """The payload as one record; a list of one is that one."""
    if isinstance(payload, list) and len(payload) == 1:
        payload = payload[0]
    if not isinstance(payload, Mapping):
        raise Unavailable("the service's answer does not hold what was asked for")
    return payload


def records(payload: Any, key: str = "object") -> list[Mapping[str, Any]]:
    """The payload as a list of records, or the list under `key` in it."""
    if isinstance(payload, Mapping):
        payload = payload.get(key)
    if payload is not None and not isinstance(payload, list):
        raise Unavailable("the service's answer does not hold the list that was asked for")
    return [item for item in payload or [] if isinstance(item, Mapping)]
