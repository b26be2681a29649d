"""JSON over HTTP: the object in a request's body, and the interface's envelope around results and errors."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from svcctl.errors import Conflict, CredentialsError, NotFound, ServiceError, SvcctlError
from svcctl.service.jobs.jobs import STATUSES
from svcctl.service.language import QueryError

_HTTP_STATUS: tuple[tuple[type[SvcctlError], int], ...] = ((CredentialsError, 401), (NotFound, 404), (Conflict, 409))


def json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a request's body. ServiceError when the body holds anything else."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise ServiceError("the body is not JSON") from None
    if not isinstance(fields, dict):
        raise ServiceError("the body is not a JSON object")
    return fields


def envelope(cid: str, seconds: float, content: Any) -> dict[str, Any]:
    """Make the envelope of a result, at a time in epoch seconds. None leaves the result out."""
    made = {"success": True, "msg": "", "status": 0, "cid": cid, "timestamp": int(seconds * 1000)}
    return made if content is None else made | {"object": content}


def error_envelope(cid: str, seconds: float, error: SvcctlError) -> dict[str, Any]:
    """Make the envelope of an error: `status` is the code of a refused job operation, else 1."""
    status = error.code if isinstance(error, ServiceError) and error.code in STATUSES else 1
    made = envelope(cid, seconds, None) | {"success": False, "status": status}
    if isinstance(error, QueryError):
        return made | {"msg": str(error), "context": {"line": error.line, "column": error.column}}
    return made | {"msg": f"{error.message}; {error.hint}" if error.hint else error.message}


def http_status(error: SvcctlError) -> int:
    """Return the HTTP status of an error: by its class, else the code of a ServiceError that is an HTTP status."""
    for kind, status in _HTTP_STATUS:
        if isinstance(error, kind):
            return status
    code = error.code if isinstance(error, ServiceError) else None
    return code if code is not None and 400 <= code < 600 else 400


def succeeded(request: Request, content: Any) -> Response:
    """Answer a request that succeeded."""
    return json_response(envelope(request.state.cid, request.app.state.service.clock(), content))


def failed(request: Request, error: SvcctlError) -> Response:
    """Answer a request that failed."""
    content = error_envelope(request.state.cid, request.app.state.service.clock(), error)
    return json_response(content, http_status(error))


def json_response(content: Any, status: int = 200) -> Response:
    return Response(encoded(content), status, media_type="application/json")


def encoded(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode()
