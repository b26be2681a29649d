"""The interface's envelope, which is the JSON around results and errors, and the HTTP responses with an envelope."""

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
"""The header with the ID of the request, since some formats have no place for it in the body."""
ERRORS = "x-svc-errors"
"""The header that says, in every answer, how a client recognises errors."""

RETRY_SECONDS = 1
"""The value of the header `retry-after`, in seconds, in an answer with HTTP status 429 or 503."""
MAX_MESSAGE = 2000
"""The maximum number of characters in a message. A longer message is cut, because it may quote the request."""

_DOMAIN_PATHS = ("/domain/", "/service/domain/")

_log = logging.getLogger("svcctl.service")
_HTTP_STATUS: tuple[tuple[type[SvcctlError], int], ...] = (
    *((CredentialsError, 401), (NotFound, 404), (Conflict, 409)),
    (Unavailable, 503),
)


def common_headers(cid: str) -> Mapping[str, str]:
    """Return the headers of every answer: the ID of the request, and `exact` as the way to recognise errors.

    `exact` means that the format of an answer has its own form for an error, and that no row can have this form. An
    answer with an HTTP status below 400 reports an error only in this form.
    """
    return {CID: cid, ERRORS: "exact"}


def refusal(error: Exception, cid: str) -> SvcctlError:
    """Return the error that a client gets for an exception: a SvcctlError unchanged, and a general error for a defect.

    The details of a defect are only in the log, with its traceback. Failures of the service itself and a full disk are
    logged too.
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
    """Make the envelope of a result. `seconds` is the time in epoch seconds. `content` is the result, or None."""
    made = {"success": True, "msg": "", "status": 0, "cid": cid, "timestamp": seconds_to_ms(seconds)}
    return made if content is None else made | {"object": content}


def error_envelope(cid: str, seconds: float, error: SvcctlError) -> dict[str, Any]:
    """Make the envelope of an error: `status` is 1, `msg` is the message, and `error` has the code and the message.

    Clients look for errors in different members, so `object` is a list that repeats the message. The second element of
    the list is the message without the place in the query and without a hint. If the dates of a query are refused, the
    first element begins with the code. `reason` and `data` are those of the error.
    """
    code = codes.code_of(error)
    place = {}
    if isinstance(error, QueryError):
        message, place = str(error), {"context": {"line": error.line, "column": error.column}}
    else:
        message = told(error)
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
    """Make the body of an error: the envelope, or a smaller object for operations on domains and roles.

    The smaller object has `error`, which the interface defines, and the additional members `reason` and `data`.
    """
    content = error_envelope(cid, seconds, error)
    if not f"{path}/".startswith(_DOMAIN_PATHS):
        return content
    refused = content["error"]
    reason = reason_of(error)
    refused = refused if reason is None else refused | {"code": int(reason)}
    return {"error": refused, "reason": content["reason"], "data": content["data"]}


def told(error: SvcctlError) -> str:
    """Return the message of an error, followed by its hint if it has a hint."""
    return f"{error.message}; {error.hint}" if error.hint else error.message


def cut(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE else f"{message[: MAX_MESSAGE - 1]}…"


def http_status(error: SvcctlError) -> int:
    """Return the HTTP status of an error.

    It is the status of the error's reason or class, or the code of a ServiceError. Without any of these, and for a code
    that is not an HTTP status of errors, it is 400.
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
    """Make the answer to a request that succeeded: the envelope with its result."""
    return json_response(envelope(request.state.cid, request.app.state.service.clock(), content))


def failed(path: str, cid: str, seconds: float, error: Exception) -> Response:
    """Answer a request that failed with any exception. After a defect the connection is closed."""
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
    """Return the JSON text of a value in UTF-8. Half of a surrogate pair is not a character, and becomes U+FFFD."""
    return Losses().text(json.dumps(content, ensure_ascii=False)).encode()
