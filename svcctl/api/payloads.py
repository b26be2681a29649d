"""Answers of small operations: the payload without its envelope, as one record or as a list."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from svcctl.api.body import whole
from svcctl.api.models import Job
from svcctl.api.refusals import is_page, page_line, read_refusal
from svcctl.api.transport import CID
from svcctl.api.wire.messages import Response
from svcctl.errors import ServiceError, Unavailable


def decoded(response: Response) -> Any:
    """The payload of an answer, None for an empty one; raises the error that a body states, even with HTTP 200."""
    payload = _answer(response, whole(response))
    return payload["object"] if isinstance(payload, dict) and "object" in payload else payload


def launched(response: Response) -> Job:
    """The job in the notification of a launch, for which the interface shows no shape.

    The job's ID is `id` or `jobId`, in `object` or beside it, or the only UUID in a text. ServiceError with the whole
    answer when there is no ID, because the job runs nevertheless.
    """
    body = whole(response)
    if _UUID.fullmatch(text := body.decode("utf-8", "replace").strip()):
        return Job(text, "")
    answer = _answer(response, body)
    content = answer.get("object") if isinstance(answer, dict) else answer
    [content] = content if isinstance(content, list) and len(content) == 1 else [content]
    for part in (content, answer):
        for name in ("id", "jobId"):
            if isinstance(part, Mapping) and part.get(name):
                return Job.from_json({**part, "id": part[name]})
    for part in (content, answer.get("msg") if isinstance(answer, dict) else None):
        if isinstance(part, str) and len(found := set(_UUID.findall(part))) == 1:
            return Job(found.pop(), "")
    raise ServiceError(
        f"the query is launched, but no job ID is found in the answer: {' '.join(text.split()) or 'nothing'}",
        hint="the job runs: 'svcctl job list' lists it",
    )


_UUID = re.compile("[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def _answer(response: Response, body: bytes) -> Any:
    """An answer with its envelope, None for an empty one; raises the error that it states."""
    if not body.strip():
        return None
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        what = "a web page" if is_page(response.headers.get("content-type", ""), body) else "something that is not JSON"
        raise Unavailable(f"the service answered with {what}: {page_line(body)}") from None
    if refusal := read_refusal(payload):
        raise refusal.of(response.headers.get(CID)).as_error()
    return payload


def record(payload: Any) -> Mapping[str, Any]:
    """The payload as one record; a list of one record counts as that record."""
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
