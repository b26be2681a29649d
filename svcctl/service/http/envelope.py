"""The interface's response envelope, and what an error looks like in it."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from svcctl.errors import Conflict, CredentialsError, NotFound, ServiceError, SvcctlError
from svcctl.service.language import QueryError
from svcctl.service.service import Service

_STATUS: tuple[tuple[type[SvcctlError], int], ...] = ((CredentialsError, 401), (NotFound, 404), (Conflict, 409))


def http_status(error: SvcctlError) -> int:
    """The HTTP status of an error; the code of a ServiceError when it is one."""
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return status
    code = error.code if isinstance(error, ServiceError) else None
    return code if code is not None and 400 <= code < 600 else 400


def envelope(service: Service, cid: str, content: Any, **fields: Any) -> dict[str, Any]:
    """The interface's response envelope; `fields` replace its own."""
    made = {"success": True, "msg": "", "status": 0, "cid": cid, "timestamp": int(service.clock() * 1000)}
    return made | fields | ({} if content is None else {"object": content})


def failure(service: Service, error: SvcctlError, cid: str) -> Response:
    """The envelope of an error: `success` false, `status` 1, and the place in the query when it has one."""
    return json_response(failed(service, error, cid), http_status(error))


def failed(service: Service, error: SvcctlError, cid: str) -> dict[str, Any]:
    if isinstance(error, QueryError):
        context = {"context": {"line": error.line, "column": error.column}}
        return envelope(service, cid, None, success=False, msg=str(error), status=1, **context)
    message = f"{error.message}; {error.hint}" if error.hint else error.message
    return envelope(service, cid, None, success=False, msg=message, status=1)


def json_response(content: Any, status: int = 200) -> Response:
    return Response(json.dumps(content, ensure_ascii=False, default=str), status, media_type="application/json")
