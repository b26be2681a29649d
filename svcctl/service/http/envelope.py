"""JSON over HTTP: the interface's envelope around results and errors."""

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
"""The header that holds a request's ID; some formats have no place for it in the body."""
ERRORS = "x-svc-errors"
"""The header that says how a client recognises errors."""

RETRY_SECONDS = 1
"""The `retry-after` of an answer with 429 or 503."""
MAX_MESSAGE = 2000
"""A longer message is cut: it may quote the request."""

_DOMAIN_PATHS = ("/domain/", "/service/domain/")

_log = logging.getLogger("svcctl.service")
_HTTP_STATUS: tuple[tuple[type[SvcctlError], int], ...] = (
    *((CredentialsError, 401), (NotFound, 404), (Conflict, 409)),
    (Unavailable, 503),
)


def common_headers(cid: str) -> Mapping[str, str]:
    """The headers of every answer. `exact` means: an answer with a lower HTTP status than 400 states an error in one
    form only, the one of its format, and no row can have that form.
    """
    return {CID: cid, ERRORS: "exact"}


def refusal(error: Exception, cid: str) -> SvcctlError:
    """Return the error that a client gets for any exception: a SvcctlError itself, a general one for a defect.

    The reason of a defect is only in the log, with its traceback. Failures of the service itself and a full disk are
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
    """Make the envelope of a result, at a time in epoch seconds. None leaves the result out."""
    made = {"success": True, "msg": "", "status": 0, "cid": cid, "timestamp": seconds_to_ms(seconds)}
    return made if content is None else made | {"object": content}


def error_envelope(cid: str, seconds: float, error: SvcctlError) -> dict[str, Any]:
    """Make the envelope of an error: `status` is 1, and the code of the error is in `error`.

    Clients read errors in different members, so code and message are also in `error`, and the message is also in
    `object`, before the cause: the message without the place in the query and without a hint. The codes of dates are
    in `object` too. `reason` and `data` are the error's own.
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
    """Make the body of an error: the envelope, or for operations on domains and roles the interface's `error`, with
    `reason` and `data`.
    """
    content = error_envelope(cid, seconds, error)
    if not f"{path}/".startswith(_DOMAIN_PATHS):
        return content
    refused = content["error"]
    reason = reason_of(error)
    refused = refused if reason is None else refused | {"code": int(reason)}
    return {"error": refused, "reason": content["reason"], "data": content["data"]}


def told(error: SvcctlError) -> str:
    """The message of an error and its hint."""
    return f"{error.message}; {error.hint}" if error.hint else error.message


def cut(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE else f"{message[: MAX_MESSAGE - 1]}…"


def http_status(error: SvcctlError) -> int:
    """Return the HTTP status of an error: of its reason, by its class, or a ServiceError's code that is one."""
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
    """Answer a request that succeeded."""
    return json_response(envelope(request.state.cid, request.app.state.service.clock(), content))


def failed(path: str, cid: str, seconds: float, error: Exception) -> Response:
    """Answer a request that failed, for whatever reason; a defect also ends the connection."""
    told = refusal(error, cid)
    response = json_response(error_content(path, cid, seconds, told), http_status(told))
    if response.status_code in (429, 503):
        response.headers["retry-after"] = str(RETRY_SECONDS)
    if told is not error:
        response.headers["connection"] = "close"
    return response


def json_response(content: Any, status: int = 200) -> Response:
    return Response(encoded(content), status, media_type="application/json")


def encoded(content: Any) -> bytes:
    """The UTF-8 of a JSON value. Half of a surrogate pair, which is not a character, becomes U+FFFD."""
    return Losses().text(json.dumps(content, ensure_ascii=False)).encode()
