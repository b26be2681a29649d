"""Recognise errors in the bodies of answers, and raise them as exceptions.

The module also removes the envelope of small answers, which is the object around the content. Services with this HTTP
interface send errors in several shapes, with a failing HTTP status or with HTTP 200. Proxies in front of these services
send web pages.

A row of data can look like an error. So svcctl's own service declares in a header that its answers are exact. In an
exact answer with HTTP 200, errors have a single form, which no row can have.

The HTTP status 507 and all HTTP statuses that are retried raise Unavailable. HTTP 401 and 403 raise CredentialsError.
For any other HTTP status, the error code in the body decides the class of the exception. If the code is missing or
unknown, the HTTP status decides.

A JSON answer with HTTP 500 raises InternalError, because the service read the request and failed. A web page with HTTP
500 is not from the service, so it raises Unavailable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from svcctl.api.formats.body import is_json, whole
from svcctl.api.json_text import value_of
from svcctl.api.retry import STATUSES
from svcctl.errors import (
    Conflict,
    CredentialsError,
    InternalError,
    MalformedAnswer,
    NotFound,
    QueryPosition,
    ServiceError,
    SvcctlError,
    Unavailable,
)
from svcctl.words import json_text

if TYPE_CHECKING:
    from svcctl.api.models import Job
    from svcctl.api.wire.messages import Response

NO_SPACE = 507
"""The HTTP status of a full disk. A request with this status is not retried."""

CID = "x-svc-cid"
"""The response header that contains the ID of the request. Some services do not send the header.

A member `cid` of the body takes precedence.
"""
ERRORS = "x-svc-errors"
"""The response header that describes the form of errors. svcctl's own service sends the value `exact`."""
MAX_BODY = 64 * 1024
"""The maximum number of bytes that are read of an error's body. The rest of the body is ignored."""


class Code(IntEnum):
    """The error codes that the client distinguishes.

    The specification shows 106 and 117. Deployed services also use the other codes.
    """

    NO_JOB = 100
    JOB_UNCHANGEABLE = 101
    """The job cannot be started, because it is already running or too many jobs are running."""
    NO_DOMAIN = 106
    JOB_NOT_RUNNING = 108
    ALREADY_SO = 117
    """The domain is already enabled, or already disabled."""


_CLASSES: Mapping[int, type[ServiceError]] = {
    Code.NO_JOB: NotFound,
    Code.NO_DOMAIN: NotFound,
    404: NotFound,
    Code.JOB_UNCHANGEABLE: Conflict,
    Code.JOB_NOT_RUNNING: Conflict,
    Code.ALREADY_SO: Conflict,
    409: Conflict,
    500: InternalError,
    401: CredentialsError,
    403: CredentialsError,
}
_ENVELOPE_FIELDS = frozenset(
    {"error", "e", "msg", "status", "timestamp", "cid", "object", "code", "context", "success", "message"}
)
# A single line of json/simple is an error only if it has all fields of one of these sets. A row may have columns called
# msg and status.
_MARKS = (
    {"msg", "status", "cid"},
    {"msg", "status", "object"},
    {"error", "status", "cid"},
    {"error", "object"},
    {"msg", "code", "cid"},
    {"msg", "code", "context"},
    {"success", "msg"},
)
_REASON = r"[a-z][a-z0-9-]{0,63}"
_CODED = r"(?s)\s*(\d{1,6})\s*:\s*(.+)"
_PAGE = rb"(?i)\s*<(?:!doctype\s+html|html|head|body|title|h1|center)\b"
_TITLE = r"(?is)<(title|h1)[^>]*>(.*?)</\1>"
_TAG = r"<[^>]*>"


_NO_DATA: Mapping[str, Any] = {}


class Refusal(NamedTuple):
    """The error that the body of an answer states, in any of the known shapes."""

    message: str
    code: int | None = None
    cid: str | None = None
    place: QueryPosition | None = None
    """The position of the error in the query, if the body has a `context` with a line and a column."""
    hint: str | None = None
    """The advice in the service's message; None if the message contains no advice."""
    reason: str | None = None
    data: Mapping[str, Any] = _NO_DATA
    """The values in the message. The field `reason` is an identifier of the cause.

    Some services send neither `data` nor `reason`.
    """

    def as_error(self, http_status: int = 200, *, hint: str | None = None) -> SvcctlError:
        """Return the exception for this error. `http_status` is the HTTP status of the answer."""
        hint = hint or self.hint
        if http_status in STATUSES or http_status == NO_SPACE:
            message = self.message + (f" (cid {self.cid})" if self.cid else "")
            return _unavailable(http_status, message, hint, self.reason, self.data)
        code = self.code if self.code is not None or http_status == 200 else http_status
        if http_status in (401, 403):
            kind: type[ServiceError] = CredentialsError
        else:
            kind = _CLASSES.get(code or 0) or _CLASSES.get(http_status) or ServiceError
        return kind(
            self.message,
            code=code,
            cid=self.cid,
            hint=hint,
            place=self.place,
            reason=self.reason,
            data=self.data,
        )

    def of(self, cid: str | None) -> Refusal:
        """Return a copy of this error with `cid` as the ID of the request. An ID from the body is not replaced."""
        return self._replace(cid=self.cid or cid)

    def in_one_line(self) -> str:
        """Return the message, the code and the request's ID as one text."""
        facts = [f"code {self.code}"] if self.code is not None else []
        facts += [f"cid {self.cid}"] if self.cid else []
        return f"{self.message} ({', '.join(facts)})" if facts else self.message


def read_refusal(payload: Any) -> Refusal | None:
    """Return the error that a decoded body states, in any of the known shapes; None if the body states no error."""
    if isinstance(payload, list):
        return _listed(payload[1:], None) if payload[:1] == ["error"] else None
    if not isinstance(payload, Mapping):
        return None
    cid = json_text(payload["cid"]) if payload.get("cid") else None
    for name in ("error", "e"):
        error = payload.get(name)
        if isinstance(error, Mapping):
            message, hint = _hinted(error.get("message") or error.get("msg"), payload.get("object"))
            place = _place(payload.get("context"))
            code, reason, data = _code(error.get("code")), payload.get("reason"), payload.get("data")
            return Refusal(
                message or "the service gave no message",
                code,
                cid,
                place,
                hint,
                reason if isinstance(reason, str) and re.fullmatch(_REASON, reason) else None,
                data if isinstance(data, Mapping) else {},
            )
        if isinstance(error, list) and error:
            return _listed(error, cid)
        if isinstance(error, str) and error:
            return _named(error, payload, cid)
    status, code = _code(payload.get("status")), _code(payload.get("code"))
    if status or payload.get("success") is False:
        message = _with_causes(_line(payload.get("msg")) or _problem(payload), payload.get("object"))
        return Refusal(message, status or code, cid, _place(payload.get("context")))
    if code and "msg" in payload:
        message = _line(payload["msg"]) or "the service gave no message"
        return Refusal(message, code, cid, _place(payload.get("context")))
    return None


def _hinted(message: Any, causes: Any) -> tuple[str, str | None]:
    """Split a message of the form `<cause>; <hint>` into the cause and the hint.

    `causes` is the list of causes in the same body. The message is split only if this list has two elements, and the
    message begins with the second cause. Otherwise, the hint is None.
    """
    whole = _line(message)
    cause = _line(causes[1]) if isinstance(causes, list) and len(causes) == 2 else ""
    hint = whole.removeprefix(f"{cause}; ")
    return (cause, hint) if cause and hint != whole else (whole, None)


def is_exact(headers: Mapping[str, str]) -> bool:
    """Return whether the headers of an answer declare that errors have a form that no row can have."""
    return "exact" in map(str.strip, headers.get(ERRORS, "").lower().split(","))


def refusal_in(body: bytes, *, exact: bool = False) -> Refusal | None:
    """Return the error that a body contains.

    Returns None if the body is a row of json/simple, is not JSON, or has more than MAX_BODY bytes.
    """
    try:
        payload = value_of(body) if len(body) <= MAX_BODY else None
    except (ValueError, RecursionError):
        return None
    return lone_refusal(payload, exact=exact)


def lone_refusal(payload: Any, *, exact: bool) -> Refusal | None:
    """Return the error that a single JSON value states; None if the value is a row.

    An error is a list, or an object with only the fields in `_ENVELOPE_FIELDS`. In an `exact` answer, an object is an
    error only if its member `error` or `e` is a list.
    """
    if isinstance(payload, Mapping):
        in_stream = isinstance(payload.get("error", payload.get("e")), list)
        if not in_stream if exact else not set(payload) <= _ENVELOPE_FIELDS:
            return None
    return read_refusal(payload)


def is_error_line(payload: Any) -> bool:
    """Return whether a single line of json/simple is an error and not a row.

    An error has only fields in `_ENVELOPE_FIELDS`. It must also have a member `error` that is an object, or all fields
    of one set in `_MARKS`, such as `success` and `msg`.
    """
    if not isinstance(payload, Mapping) or lone_refusal(payload, exact=False) is None:
        return False
    return isinstance(payload.get("error"), Mapping) or any(marks <= set(payload) for marks in _MARKS)


def error_of(
    http_status: int, content_type: str, body: bytes, *, hint: str | None = None, cid: str | None = None
) -> SvcctlError:
    """Return the exception for an answer with a failing HTTP status. The body may have any form.

    `cid` is the ID of the request in the headers of the answer.
    """
    try:
        payload = value_of(body)
    except (ValueError, RecursionError):
        payload = None
    refusal = read_refusal(payload)
    if refusal is None and isinstance(payload, Mapping):
        message = _line(payload.get("msg") or payload.get("message")) or _problem(payload)
        refusal = Refusal(message, None, _line(payload.get("cid")) or None) if message else None
    if refusal is not None:
        return refusal.of(cid).as_error(http_status, hint=hint)
    line = page_line(body)
    if http_status >= 500 or http_status in STATUSES:
        # The titles of many web pages begin with the HTTP status.
        return _unavailable(http_status, line.removeprefix(f"{http_status} "), hint)
    if is_page(content_type, body):
        hint = (
            hint or "this is a web page and not the service's answer: check the base URL, and any proxy in front of it"
        )
    return Refusal(line or f"HTTP {http_status} with no message", cid=cid).as_error(http_status, hint=hint)


def _unavailable(
    http_status: int,
    message: str,
    hint: str | None,
    reason: str | None = None,
    data: Mapping[str, Any] | None = None,
) -> Unavailable:
    text = f"the service answered HTTP {http_status}" + (f": {message}" if message else "")
    error = Unavailable(text, hint=hint, reason=reason, data=data)
    error.status = http_status
    return error


def already_so(error: ServiceError) -> bool:
    """Return whether the error says that the domain is already enabled, or already disabled."""
    return error.code == Code.ALREADY_SO


def no_domain(error: ServiceError) -> bool:
    """Return whether the error says that the domain does not exist."""
    return error.code == Code.NO_DOMAIN


def no_role(error: ServiceError) -> bool:
    """Return whether the error says that the role does not exist, although its domain exists."""
    return isinstance(error, NotFound) and error.code != Code.NO_DOMAIN


def is_page(content_type: str, body: bytes) -> bool:
    """Return whether an answer is a web page."""
    return "html" in content_type.lower() or re.match(_PAGE, body) is not None


def page_line(body: bytes) -> str:
    """Return the title of a web page, or the first words of a text without a title. The result may be empty."""
    text = body.decode("utf-8", "replace")
    title = re.search(_TITLE, text)
    line = " ".join(re.sub(_TAG, " ", title[2] if title else text).split())
    return line if len(line) <= 120 else line[:119] + "…"


def _problem(payload: Mapping[str, Any]) -> str:
    """Return the message of a problem document (RFC 9457), which gateways send.

    The message is the `detail`, or else the `title`.
    """
    return _line(payload.get("detail")) or _line(payload.get("title"))


def _listed(error: list[Any], cid: str | None) -> Refusal:
    code = _code(error[0]) if error else None
    words = [_line(part) for part in (error if code is None else error[1:])]
    return Refusal(" ".join(filter(None, words)) or "the service gave no message", code, cid)


def _named(error: str, payload: Mapping[str, Any], cid: str | None) -> Refusal:
    """Return the error of a body in which the member `error` is a text.

    An example is `{"error": "Bad parameters", "object": ["406 : …"]}`. In other bodies, the member `status` is the code
    of the error.
    """
    causes = payload.get("object")
    if isinstance(causes, list) and causes and (coded := re.fullmatch(_CODED, str(causes[0]))):
        return Refusal(f"{_line(error)}: {_line(coded[2])}", int(coded[1]), cid)
    return Refusal(_with_causes(_line(error), causes), _code(payload.get("status")), cid)


def _with_causes(message: str, causes: Any) -> str:
    parts = [message] if message else []
    if isinstance(causes, list):
        parts += [_line(cause) for cause in causes if isinstance(cause, str) and _line(cause) != message]
    return ": ".join(dict.fromkeys(filter(None, parts))) or "the service gave no message"


def _place(context: Any) -> QueryPosition | None:
    if not isinstance(context, Mapping):
        return None
    line, column = _code(context.get("line")), _code(context.get("column"))
    return QueryPosition(line, column) if line and column else None


def _code(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:9])
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _line(value: Any) -> str:
    """Return a text in one line. Blanks within a line are not changed."""
    return "" if value is None else " ".join(filter(None, map(str.strip, json_text(value).splitlines())))


def decoded(response: Response) -> Any:
    """Return the content of an answer without its envelope; None for an empty answer.

    Raises the error that the body states, even with HTTP 200.
    """
    payload = _answer(response, whole(response))
    return payload["object"] if isinstance(payload, dict) and "object" in payload else payload


def launched(response: Response) -> Job:
    """Return the job in the answer to a launch. The specification does not show the form of this answer.

    The job's ID is the member `id` or `jobId`, in `object` or at the top level. Without such a member,
    the ID is taken from a text in the answer that contains exactly one UUID. If there is no ID, raises ServiceError
    with the whole answer in its message.
    """
    from svcctl.api.models import Job

    body = whole(response, marks_end=lambda body: is_json(body) or re.fullmatch(_UUID, _text(body)) is not None)
    if re.fullmatch(_UUID, text := _text(body)):
        return Job(text, "")
    answer = _answer(response, body)
    content = answer.get("object") if isinstance(answer, dict) else answer
    [content] = content if isinstance(content, list) and len(content) == 1 else [content]
    for part in (content, answer):
        for name in ("id", "jobId"):
            if isinstance(part, Mapping) and part.get(name):
                return Job.from_json({**part, "id": part[name]})
    for part in (content, answer.get("msg") if isinstance(answer, dict) else None):
        if isinstance(part, str) and len(ids := set(re.findall(_UUID, part))) == 1:
            return Job(ids.pop(), "")
    raise ServiceError(
        f"the query was launched, but the answer has no job ID: {' '.join(text.split()) or 'it is empty'}",
        hint="the job is running",
        reason="no-job-id",
    )


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace").strip()


_UUID = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"


def _answer(response: Response, body: bytes) -> Any:
    """Return the JSON of an answer with its envelope; None for an empty answer.

    Raises the error that the answer states.
    """
    if not body.strip():
        return None
    try:
        payload = value_of(body)
    except (ValueError, RecursionError):
        what = "a web page" if is_page(response.headers.get("content-type", ""), body) else "something that is not JSON"
        raise Unavailable(f"the service answered with {what}: {page_line(body)}") from None
    if refusal := read_refusal(payload):
        raise refusal.of(response.headers.get(CID)).as_error()
    return payload


def record(payload: Any, *needs: str) -> Mapping[str, Any]:
    """Return the content of an answer as one record. The members that `needs` names must be texts.

    A list with a single record counts as this record. Raises MalformedAnswer for any other content.
    """
    if isinstance(payload, list) and len(payload) == 1:
        [payload] = payload
    return _checked("answer", payload, needs)


def records(payload: Any, *needs: str, key: str = "object") -> list[Mapping[str, Any]]:
    """Return a list of records: the content of an answer, or the member `key` of the content.

    In each record, the members that `needs` names must be texts. Raises MalformedAnswer for any other content. A
    missing list raises MalformedAnswer, too, and does not count as an empty list.
    """
    items = payload.get(key) if isinstance(payload, Mapping) else payload
    if not isinstance(items, list):
        what = "is empty" if payload is None else "does not contain the requested list"
        raise MalformedAnswer(f"the service's answer {what}")
    return [_checked(f"answer (record {number} of its list)", item, needs) for number, item in enumerate(items, 1)]


def _checked(where: str, item: Any, needs: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(item, Mapping):
        what = "is empty" if item is None else "is not a JSON object"
        raise MalformedAnswer(f"the service's {where} {what}")
    for name in needs:
        value = item.get(name)
        if not isinstance(value, str) or (name in ("id", "name") and not value):
            raise MalformedAnswer(f"the service's {where} has no {name}")
    return item
