"""Send requests: sign each attempt, retry failures, and report each attempt with its answer to an observer.

This module decides when a request may be repeated, and which exception is raised in the end. `svcctl.api.wire` sends
and receives the bytes, and `svcctl.api.refusals` recognises the errors in bodies.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeVar
from urllib.parse import quote, urljoin, urlsplit

from svcctl.api import addresses, retry
from svcctl.api.auth import Credentials
from svcctl.api.formats.body import read_into
from svcctl.api.guard import Guard
from svcctl.api.refusals import CID, MAX_BODY, error_of
from svcctl.api.wire.failures import (
    ConnectError,
    ConnectTimeout,
    DecodingError,
    InvalidURL,
    LocalProtocolError,
    ProxyError,
    ReadError,
    RequestError,
    TimeoutException,
    UnsupportedProtocol,
)
from svcctl.api.wire.heads import check_header
from svcctl.api.wire.messages import Closing, Headers, Request, Response, Transport
from svcctl.api.wire.sockets import origin
from svcctl.errors import IncompleteResult, ServiceError, SvcctlError, Unavailable, UnprovenEnd, UsageError
from svcctl.words import is_secret, mask, mask_urls, size_text

SILENCE_SECONDS = 300.0
"""The maximum number of seconds that a continuous query waits for the next byte.

The limit is high because events may be rare. Without a limit, a dead connection would never be noticed.
"""
LATE_HEADER = "x-svc-late"
"""The header of a request that asks svcctl's own service to report late events in the answer."""
CUT_TEXTS = "x-svc-cut-texts"
"""The header in which svcctl's own service states how many texts it shortened to fit into spreadsheet cells."""
LOST_TABLES = "x-svc-lost-tables"
"""The header in which svcctl's own service states how many of its tables have lost events."""
CLOCK_SKEW_SECONDS = 60
"""The allowed difference, in seconds, between the clocks of client and service.

If the difference is larger, an error about a refused signature contains a hint about the clock.
"""

_DEFAULTS = {
    "Connection": "keep-alive",
    "Accept": "*/*",
    # The bytes are processed as they arrive, so compression would only cost time.
    "Accept-Encoding": "identity",
    "User-Agent": "svcctl",
}
_SAFE = "!$%&'()*+,-./:;=?@[]_~"
"""The characters of a path or a query that are sent unquoted. `%` begins a character that was quoted before."""
_UNSENDABLE = (InvalidURL, LocalProtocolError, UnsupportedProtocol, UnicodeEncodeError)
"""The errors of a request that cannot be sent. UnicodeEncodeError means that a character in the URL cannot be sent."""
_NOT_SENT = (ConnectError, ConnectTimeout, ProxyError)
_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})

_MAYBE_DONE = "the service may have carried out the request: check before trying again"

T = TypeVar("T")


class Exchange:
    """One request, and the status and headers of its answer, with masked secrets.

    Without an answer, `status` is None and `failure` is the reason. `changes` says whether the request may change
    something in the service.
    """

    def __init__(
        self,
        call: RepeatableRequest,
        request: Request,
        response: Response | None,
        seconds: float,
        failure: str | None,
        *,
        changes: bool,
        secret_headers: frozenset[str],
    ) -> None:
        self.method = request.method
        self.url = call.url
        self.status = None if response is None else response.status_code
        self.seconds = seconds
        self.failure = failure
        self.changes = changes
        self._body = call.body
        self._headers = request.headers
        self._answer_headers = Headers() if response is None else response.headers
        self._secret_headers = secret_headers

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        return _shown_headers(self._headers, self._secret_headers)

    @property
    def answer_headers(self) -> tuple[tuple[str, str], ...]:
        return _shown_headers(self._answer_headers, self._secret_headers)

    @property
    def body(self) -> str:
        return _shown_body(self._body)[0]

    @property
    def note(self) -> str:
        """A note which says that values in `body` are masked; empty if no value is masked."""
        return _shown_body(self._body)[1]

    @property
    def reports_loss(self) -> bool:
        """Whether the answer says that tables of the service have lost events."""
        return LOST_TABLES in self._answer_headers


MASKED = "the signature and the content-length are of the unmasked body"


class Preview(NamedTuple):
    """The text of a request that is not sent, with masked secrets.

    `note` says that values in the body are masked; empty if no value is masked.
    """

    text: str
    note: str


class Retry(NamedTuple):
    """A failed attempt that is followed by a retry.

    The next attempt begins in `delay` seconds. `attempt` is the number of the next attempt: 2 for the first retry.
    `attempts` is the maximum number of attempts.
    """

    failure: SvcctlError
    delay: float
    attempt: int
    attempts: int


Event = Exchange | Retry | UnprovenEnd


class RepeatableRequest(NamedTuple):
    """A call to the service, which may need several attempts. Each attempt builds a new HTTP request from the call.

    `repeatable` says that the service may carry out the call twice without harm. `reseller` marks an operation for
    resellers. `endless` says that a long time may pass between two parts of the answer. `whole` says that the answer
    begins only after the service has computed the whole answer. With `as_is`, the answer to the last attempt is
    returned even if this answer states an error.
    """

    method: str
    url: str
    body: bytes = b""
    headers: Mapping[str, str] | None = None
    repeatable: bool = True
    reseller: bool = False
    endless: bool = False
    whole: bool = False
    as_is: bool = False
    once: bool = False
    """Whether there is only one attempt."""
    reader: int | None = None
    """The pipe to which the caller writes the answer.

    ReaderClosed is raised when no process reads this pipe any more.
    """
    closing: Closing | None = None
    """If set, the client waits for the end of the connection after the answer.

    `Closing.seen` then says whether the connection ended properly.
    """


class Sender:
    """Sends calls, with retries and a new signature for each attempt. The docstring of `Client` describes the options.

    `change` is a function that describes a call that may change something. For a call that only reads, the function
    returns None. A read-only `guard` refuses calls that may change something.
    """

    def __init__(
        self,
        transport: Transport,
        auth: Credentials,
        *,
        timeout: float,
        retries: int,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        observe: Callable[[Event], None] | None,
        any_close: bool,
        change: Callable[[RepeatableRequest], str | None],
        guard: Guard,
    ) -> None:
        self._transport = transport
        self._auth = auth
        self._change = change
        self._guard = guard
        self._timeout = timeout
        self._attempts = retries + 1
        self._clock = clock
        self._sleep = sleep
        self._observe = observe
        self._any_close = any_close
        self._accepted = False

    def close(self) -> None:
        self._transport.close()

    def send(
        self, call: RepeatableRequest, read: Callable[[Response], T], after_loss: Callable[[], T | None] | None = None
    ) -> T:
        """Send a call until an attempt succeeds, or until no more attempts are allowed.

        `read` is called with the answer, and its result is returned. The answer must be closed by `read` or by the user
        of this result. `read` raises Unavailable for an unusable answer.

        If a reply was lost, the service may have carried out the call. So `after_loss` is called before the next
        attempt. If the result of `after_loss` is not None, this result is returned, and there is no further attempt.

        Raises UsageError for a call that the guard refuses.
        """
        if (change := self._change(call)) is not None:
            self._guard.refuse_change(change)
        for attempt in range(1, self._attempts + 1):
            failure: SvcctlError
            retry_after = None
            request = self._built(call)
            try:
                response = self._exchange(call, request)
                if response.is_success or (call.as_is and self._is_last(call, response, attempt)):
                    with _doubtful(changes=not call.repeatable or after_loss is not None):
                        return read(response)
                failure = self.error(call, response, _start_of(response))
            except _UNSENDABLE as error:
                raise _unsendable(error) from None
            except RequestError as error:
                lost = not isinstance(error, _NOT_SENT)
                failure = _no_answer(call, error, hint=_MAYBE_DONE if lost and not call.repeatable else None)
                most = 1 if isinstance(error, ProxyError) and error.is_final else retry.attempts(error)
            else:
                if response.status_code not in retry.STATUSES:
                    raise failure
                lost = response.status_code not in retry.NOT_DONE
                most = None
                retry_after = retry.after(response.headers.get("retry-after", ""), self._clock(), self._timeout)
                if isinstance(failure, Unavailable):
                    failure.retry_after = retry_after
            if lost and not call.repeatable:
                raise failure
            attempts = 1 if call.once else self._attempts if most is None else min(most, self._attempts)
            if attempt >= attempts:
                raise failure
            delay = retry.delay(attempt, retry_after)
            if self._observe:
                self._observe(Retry(failure, delay, attempt + 1, attempts))
            self._sleep(delay)
            result = after_loss() if lost and after_loss else None
            if result is not None:
                return result
        raise AssertionError("the last attempt returns or raises")

    def accepts(self, error: UnprovenEnd) -> bool:
        """Return whether an answer counts as complete, although its connection did not end properly.

        The result is True if `any_close` is set and the TLS connection was closed without the message close_notify.
        """
        if not (self._any_close and error.closed):
            return False
        if self._observe and not self._accepted:
            self._observe(error)
        self._accepted = True  # one report is enough, because all answers of a service end in the same way
        return True

    def preview(self, call: RepeatableRequest) -> Preview:
        request = self._built(call)
        try:
            self._signer(call).authorize(request)
        except _UNSENDABLE as error:
            raise _unsendable(error) from None
        headers = _shown_headers(request.headers, self._auth.secret_headers)
        head = [f"{request.method} {call.url}", *(f"{name}: {value}" for name, value in headers)]
        body, note = _shown_body(call.body)
        return Preview("\n".join([*head, "", body]), note)

    def _exchange(self, call: RepeatableRequest, request: Request) -> Response:
        """Sign and send one attempt, and return the answer before its body is read."""
        started = time.monotonic()
        try:
            self._signer(call).authorize(request)
            response = self._transport.send(request)
        except RequestError as error:
            self._tell(call, request, None, time.monotonic() - started, type(error).__name__)
            raise
        self._tell(call, request, response, time.monotonic() - started, None)
        return response

    def _built(self, call: RepeatableRequest) -> Request:
        """Build the request of one attempt, without the headers of the authorization."""
        silence = max(self._timeout, SILENCE_SECONDS) if call.endless else self._timeout
        target = _target(call.url)
        try:
            return Request(
                call.method,
                call.url,
                _headers(call),
                target,
                call.body,
                timeout=self._timeout,
                first=None if call.whole else silence,
                silence=silence,
                reader=call.reader,
                closing=call.closing,
                accepts=self.accepts,
            )
        except _UNSENDABLE as error:
            raise _unsendable(error) from None

    def _signer(self, call: RepeatableRequest) -> Credentials:
        return self._auth.of_reseller() if call.reseller else self._auth

    def _tell(
        self,
        call: RepeatableRequest,
        request: Request,
        response: Response | None,
        seconds: float,
        failure: str | None,
    ) -> None:
        if self._observe is None:
            return
        changes = self._change(call) is not None
        secret = self._auth.secret_headers
        self._observe(Exchange(call, request, response, seconds, failure, changes=changes, secret_headers=secret))

    def _is_last(self, call: RepeatableRequest, response: Response, attempt: int) -> bool:
        """Return whether an unsuccessful answer is the answer to the last attempt."""
        again = response.status_code in retry.STATUSES and not _may_be_done(call, response)
        return not again or attempt == self._attempts

    def error(self, call: RepeatableRequest, response: Response, start: bytes) -> SvcctlError:
        """Return the error that an unsuccessful answer states. `start` is the beginning of its body."""
        status = response.status_code
        if location := response.headers.get("location") if response.is_redirect else None:
            if not _is_url(urljoin(call.url, location)):
                return Unavailable(f"the service redirects to {location}, which is not a URL")
            return ServiceError(
                f"the service redirects to {location}",
                code=status,
                hint="redirects are not followed: use that base URL",
            )
        hint = self._skew_hint(response) if status == 401 else _MAYBE_DONE if _may_be_done(call, response) else None
        return error_of(
            status, response.headers.get("content-type", ""), start, hint=hint, cid=response.headers.get(CID)
        )

    def _skew_hint(self, response: Response) -> str | None:
        theirs = retry.http_date(response.headers.get("date", ""))
        ahead = 0 if theirs is None else round(self._clock() - theirs)
        if abs(ahead) <= CLOCK_SKEW_SECONDS:
            return None
        direction = "ahead of" if ahead > 0 else "behind"
        return f"this machine's clock is {abs(ahead)} s {direction} the service's, which makes signatures invalid"


@contextmanager
def _doubtful(*, changes: bool) -> Iterator[None]:
    """Add a hint if the `with` block raises an error about an unusable answer.

    The hint says that the service may have carried out the request. If `changes` is false, no hint is added,
    because the request can be repeated without harm.
    """
    try:
        yield
    except Unavailable as error:
        if changes:
            error.hint = error.hint or _MAYBE_DONE
        raise


def _headers(call: RepeatableRequest) -> Headers:
    """Return the headers of a call's request. Raises LocalProtocolError for a header that cannot be sent."""
    additions = call.headers or {}
    for name, value in additions.items():
        check_header(name, value)
    headers = Headers(_DEFAULTS.items())
    headers.update({name: value for name, value in additions.items() if name.lower() != "content-length"})
    first = {} if "host" in headers else {"Host": origin(call.url).authority}
    if call.body or call.method in ("POST", "PUT", "PATCH"):
        headers.fields.append(("Content-Length", str(len(call.body))))
    headers.fields[:0] = first.items()
    return headers


def _is_url(text: str) -> bool:
    try:
        origin(text)
    except (InvalidURL, UnsupportedProtocol):
        return False
    return True


def _target(url: str) -> bytes:
    """Return the path and the query of a URL. Characters that cannot be sent are quoted."""
    parts = urlsplit(url)
    path = quote(parts.path or "/", safe=_SAFE)
    return (f"{path}?{quote(parts.query, safe=_SAFE)}" if parts.query else path).encode()


def _unsendable(error: Exception) -> UsageError:
    """Return the error for a request that cannot be sent by HTTP.

    The message contains neither the URL nor the value of a header.
    """
    what = str(error) if isinstance(error, LocalProtocolError) else "its URL is not valid"
    return UsageError(f"the request cannot be sent: {what}")


def _shown_headers(headers: Headers, secret: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Return the headers in a form that may be logged.

    The value of a header is masked if its name is in `secret`, or if its name is typical of secrets.
    """
    masked = secret | _SECRET_HEADERS
    return tuple((name, mask() if name in masked or is_secret(name) else value) for name, value in headers.items())


_STRING = r'"(?:[^"\\]|\\.)*"'
_COLON = r"[ \t\r\n]*:[ \t\r\n]*"


def _shown_body(body: bytes) -> tuple[str, str]:
    """Return a body in a form that may be logged, and a note. If nothing is masked, the note is empty.

    The values of keys that name secrets are masked, at any depth. Secrets in URLs are masked, too.
    """
    try:
        text = body.decode()
        json.loads(text)
    except (ValueError, RecursionError):
        return ("" if not body else f"{size_text(len(body))} that are not JSON"), ""
    masked, start, at = "", 0, 0
    strings, colons = re.compile(_STRING), re.compile(_COLON)
    while string := strings.search(text, at):
        at = string.end()
        colon = colons.match(text, at)
        if colon is not None and is_secret(json.loads(string[0])):
            masked += f'{text[start : colon.end()]}"{mask()}"'
            _, at = json.JSONDecoder().raw_decode(text, colon.end())
            start = at
    shown = mask_urls(masked + text[start:])
    return shown, MASKED if shown != text else ""


def _may_be_done(call: RepeatableRequest, response: Response) -> bool:
    """Return whether the service may have carried out a call that must not be repeated.

    The result is True for all HTTP statuses that are retried, except those in NOT_DONE.
    """
    return response.status_code in retry.STATUSES - retry.NOT_DONE and not call.repeatable


def _start_of(response: Response) -> bytes:
    """Read at most MAX_BODY bytes of an error's body. Raises no exception if the body is cut off."""
    start = bytearray()
    with suppress(Unavailable, IncompleteResult, RequestError):
        read_into(start, response, MAX_BODY)
    return bytes(start)


def _no_answer(call: RepeatableRequest, error: Exception, hint: str | None) -> Unavailable:
    """Return the error for a call without an answer. If `hint` is None, the hint depends on the cause."""
    host = urlsplit(call.url).netloc
    connected = isinstance(error, ReadError)
    meaning, advice = addresses.tls_failure(error, connected=connected) or (
        addresses.plain(error) or type(error).__name__,
        None,
    )
    message = f"no answer from {host}: {meaning}"
    if isinstance(error, TimeoutException):
        message = f"no answer from {host} in time"
    elif isinstance(error, ProxyError):
        message, advice = f"no answer from {host}: {error}", error.hint(urlsplit(call.url).hostname or host)
    elif isinstance(error, DecodingError):
        message = f"the answer from {host} cannot be read: {error}"
    elif connected and call.url.startswith("http:"):
        advice = "if this port expects TLS, base_url must begin with https://"
    failure = Unavailable(message, hint=hint or advice)
    failure.unanswered, failure.untrusted = True, addresses.is_untrusted(error)
    if isinstance(error, ProxyError):
        failure.status = error.status
    return failure
