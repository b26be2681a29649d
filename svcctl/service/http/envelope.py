"""The HTTP responses with an envelope. The envelope is the JSON object around a result or an error."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from svcctl.dates.epochs import seconds_to_ms
from svcctl.errors import Conflict, CredentialsError, NotFound, ServiceError, SvcctlError, Unavailable
from svcctl.io.losses import Losses
from svcctl.service.accounts.codes import reason_of
from svcctl.service.http import codes
from svcctl.service.language import QueryError
from svcctl.service.state.database import STATE_FULL, StateUnavailable

CID = "x-svc-cid"
"""The name of the header with the ID of the request. In some response formats, the body cannot contain the ID."""
ERRORS = "x-svc-errors"
"""The name of a header in every answer. Its value says how a client recognises errors, see `common_headers`."""

RETRY_SECONDS = 1
"""The value of the header `retry-after`, in seconds, in answers with the HTTP status 429 or 503."""
MAX_MESSAGE = 2000
"""The maximum number of characters in a message. A longer message is cut.

Messages can be long because they may quote the request.
"""

_DOMAIN_PATHS = ("/domain/", "/service/domain/")

_log = logging.getLogger("svcctl.service")
_HTTP_STATUS: tuple[tuple[type[SvcctlError], int], ...] = (
    *((CredentialsError, 401), (NotFound, 404), (Conflict, 409)),
    (Unavailable, 503),
)


def common_headers(cid: str) -> Mapping[str, str]:
    """Return the headers that every answer has: CID with the ID of the request, and ERRORS with the value `exact`.

    An answer with the HTTP status 200 may still end with an error. The value `exact` means that a client can recognise
    such an error, because no row looks like an error.
    """
    return {CID: cid, ERRORS: "exact"}


def refusal(error: Exception, cid: str) -> SvcctlError:
    """Return the error that a client gets for an exception.

    A SvcctlError is returned unchanged. Any other exception is a defect of the service: the client gets a general
    error, and the log gets the traceback. The log also gets errors with the code 500 or 507, and the error of a full
    disk.
    """
    if isinstance(error, StateUnavailable) and error.failure is STATE_FULL:
        _log.warning("request %s failed: %s", cid, error.detail)
    elif isinstance(error, ServiceError) and error.code in (500, 507):
        _log.warning("request %s failed: %s", cid, error.message)
    if isinstance(error, SvcctlError):
        return error
    _log.error("request %s failed: %r", cid, error, exc_info=error)
    return ServiceError("the service failed on this request; its log has the reason", code=500, reason="internal-error")


def envelope(cid: str, seconds: float, content: Any) -> dict[str, Any]:
    """Make the envelope of a result. `seconds` is the present time in epoch seconds.

    `content` is the result. If `content` is None, the envelope has no result.
    """
    made = {"success": True, "msg": "", "status": 0, "cid": cid, "timestamp": seconds_to_ms(seconds)}
    return made if content is None else made | {"object": content}


def error_envelope(cid: str, seconds: float, error: SvcctlError) -> dict[str, Any]:
    """Make the envelope of an error.

    The member `status` is 1, `msg` is the message, and `error` has the code and the message. `reason` and `data` come
    from the error. Some clients look for the message in `object`, which is a list of two texts:
    - The first text is the message. If the dates of a query are wrong, the text begins with the code.
    - The second text is the message without the hint, and without the position in the query.
    """
    code = codes.code_of(error)
    place = {}
    if isinstance(error, QueryError):
        message, place = str(error), {"context": {"line": error.line, "column": error.column}}
    else:
        message = message_with_hint(error)
    message = cut(message)
    return (
        envelope(
            cid,
            seconds,
            [f"{code} : {message}" if isinstance(error, codes.DatesRefused) else message, cut(error.message)],
        )
        | {"success": False, "msg": message, "status": codes.INVALID, "error": {"code": code, "message": message}}
        | {"reason": error.reason, "data": dict(error.data)}
        | place
    )


def error_content(path: str, cid: str, seconds: float, error: SvcctlError) -> dict[str, Any]:
    """Make the JSON body of an answer with an error. `path` is the path of the request.

    For operations on domains and roles, the body is an object with the members `error`, `reason` and `data`. The
    interface defines only `error`. For all other operations, the body is the envelope of the error.
    """
    content = error_envelope(cid, seconds, error)
    if not f"{path}/".startswith(_DOMAIN_PATHS):
        return content
    refused = content["error"]
    reason = reason_of(error)
    refused = refused if reason is None else refused | {"code": int(reason)}
    return {"error": refused, "reason": content["reason"], "data": content["data"]}


def message_with_hint(error: SvcctlError) -> str:
    """Return the message of an error, followed by its hint if it has a hint."""
    return f"{error.message}; {error.hint}" if error.hint else error.message


def cut(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE else f"{message[: MAX_MESSAGE - 1]}…"


def http_status(error: SvcctlError) -> int:
    """Return the HTTP status of an error.

    Some reasons and classes of errors have a fixed status. For any other ServiceError with a code from 400 to 599, the
    status is this code. For all other errors, the status is 400.
    """
    if isinstance(error, StateUnavailable):
        return error.failure.status
    if (reason := reason_of(error)) is not None:
        return reason.status
    if isinstance(error, codes.DatesRefused):
        return 400
    for kind, status in _HTTP_STATUS:
        if isinstance(error, kind):
            return status
    code = error.code if isinstance(error, ServiceError) else None
    return code if code is not None and 400 <= code < 600 else 400


def succeeded(request: Request, content: Any) -> Response:
    """Make the answer to a successful request. Its body is the envelope with `content` as the result."""
    return json_response(envelope(request.state.cid, request.app.state.service.clock(), content))


def failed(path: str, cid: str, seconds: float, error: Exception) -> Response:
    """Make the answer to a request that failed with `error`.

    If the error is a defect of the service, the connection is closed after the answer.
    """
    client_error = refusal(error, cid)
    response = json_response(error_content(path, cid, seconds, client_error), http_status(client_error))
    if response.status_code in (429, 503):
        response.headers["retry-after"] = str(RETRY_SECONDS)
    if client_error is not error:
        response.headers["connection"] = "close"
    return response


def json_response(content: Any, status: int = 200) -> Response:
    return Response(encoded(content), status, media_type="application/json")


def encoded(content: Any) -> bytes:
    """Return the JSON text of a value, encoded in UTF-8. A surrogate without its other half is replaced by U+FFFD."""
    return Losses().text(json.dumps(content, ensure_ascii=False)).encode()
