"""The client: the interface's operations as methods, over one connection pool.

This file owns what happens between a call and its answer: which failures are tried again, when it is safe to, and which
exception is raised in the end. What a body says is `svcctl.api.refusals`' business, how a result is read
`svcctl.api.events`'.
"""

from __future__ import annotations

import ipaddress
import json
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlsplit

import httpx

from svcctl.api import backoff
from svcctl.api.auth import RESELLER, Credentials
from svcctl.api.destinations import REDACTED, is_secret
from svcctl.api.events import MODES, QueryResponse
from svcctl.api.models import Domain, Job, Role
from svcctl.api.query import QueryRequest
from svcctl.api.refusals import MAX_BODY, UNAVAILABLE, error_of, is_page, page_line, read_refusal
from svcctl.errors import (
    Conflict,
    IncompleteResult,
    NotFound,
    ServiceError,
    SvcctlError,
    Unavailable,
    UsageError,
)

MAX_RETRY_AFTER = 120.0
"""Seconds that a Retry-After is followed at most."""
SILENCE = 300.0
"""Seconds that a continuous query may be silent: it waits for events, but a dead connection must show some time."""
CID = "x-svc-cid"
"""The answer's header that names the request, where a service sends one; a cid in the body comes first."""
SKEW = 60
"""Seconds by which clocks may differ before a refused signature is blamed on them."""

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
_NOT_ACCEPTED = frozenset({429, 503})
_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Paths:
    """Where a deployment has the operations, below the base URL; `domain` is below the provisioning URL if given."""

    query: str = "/search/query"
    job: str = "/search/job"
    jobs: str = "/search/jobs"
    domain: str = "/domain"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and the head of its answer, secrets redacted; `status` is None when none came, and `failure` says
    why."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: str
    status: int | None
    answer_headers: tuple[tuple[str, str], ...]
    seconds: float
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """An attempt failed and another follows after `delay` seconds; `attempt` is the one to come, of `attempts`."""

    reason: str
    delay: float
    attempt: int
    attempts: int


@dataclass(frozen=True, slots=True)
class RawResponse:
    """The answer to any signed request; `body` ends in IncompleteResult when the connection breaks."""

    status: int
    headers: Mapping[str, str]
    body: Iterator[bytes]


@dataclass(frozen=True, slots=True)
class _Call:
    """A request that can be built anew for each attempt, and when an attempt may be repeated.

    `repeatable` says that doing it twice is the same as doing it once.
    """

    method: str
    url: str
    body: bytes = b""
    headers: Mapping[str, str] | None = None
    repeatable: bool = True
    reseller: bool = False
    endless: bool = False


class Client:
    """A client of one service. Close it, or use it in `with`.

    `timeout` is in seconds, for connecting and for each wait for more bytes; `retries` counts attempts after the first.
    `verify` is True, False or the path of a CA bundle. `transport` replaces the network, by a Unix socket for example.
    `clock` gives epoch seconds. `observe` is called with each Exchange and each Retry.
    """

    def __init__(
        self,
        base_url: str,
        auth: Credentials,
        *,
        paths: Paths = Paths(),
        provisioning_url: str | None = None,
        timeout: float = 60.0,
        retries: int = 4,
        verify: bool | str = True,
        transport: httpx.BaseTransport | None = None,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        observe: Callable[[Exchange | Retry], None] | None = None,
    ) -> None:
        self._base_url = _checked_url(base_url)
        self._provisioning_url = _checked_url(provisioning_url or base_url)
        self._auth = auth
        self._paths = paths
        self._retries = retries
        self._timeout = timeout
        self._clock = clock
        self._sleep = sleep
        self._observe = observe
        local = _is_loopback(self._base_url) and _is_loopback(self._provisioning_url)
        self._http = httpx.Client(
            auth=auth,
            verify=_trust(verify, (self._base_url, self._provisioning_url)),
            transport=transport,
            follow_redirects=False,
            # A proxy of the environment would take secrets for loopback out of the machine, in the clear.
            trust_env=not local,
            # The bytes are passed on as they come, so a compressed answer would only be work.
            headers={"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "svcctl"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # Queries

    @contextmanager
    def query(self, request: QueryRequest) -> Iterator[QueryResponse]:
        """The answer to a query, to be read inside `with`. Retried until an answer begins, never after."""
        if request.destination is not None:
            raise UsageError("a query with a destination is launched, not read")
        call = self._query_call(request, repeatable=True)
        with self._answer(call) as response:
            head = response.headers
            yield QueryResponse(MODES[request.mode], head.get("content-type", ""), _body(response), head.get(CID))

    def launch(self, request: QueryRequest) -> str:
        """Forwards a query to its destination and returns the ID of the job."""
        if request.destination is None:
            raise UsageError("a query without a destination is read, not launched")
        payload = self._payload(self._query_call(request, repeatable=False))
        job = _job(payload)
        _raise_job_failure(job)
        if not job.id:
            raise ServiceError("the service launched the query but named no job")
        return job.id

    def preview(self, request: QueryRequest) -> str:
        """What a query or launch would send, as text, secrets redacted."""
        call = self._query_call(request, repeatable=False)
        built = next(self._auth.sync_auth_flow(self._built(call)))
        head = [f"{built.method} {built.url}", *(f"{name}: {value}" for name, value in self._shown(built.headers))]
        return "\n".join([*head, "", _shown_body(call.body)])

    def _query_call(self, request: QueryRequest, *, repeatable: bool) -> _Call:
        return _Call(
            "POST",
            self._base_url + self._paths.query,
            request.body(),
            repeatable=repeatable,
            endless=request.continuous and request.destination is None,
        )

    # Jobs

    def job(self, job_id: str) -> Job:
        return _job(self._payload(self._job_call("GET", "", job_id)))

    def jobs(self) -> tuple[Job, ...]:
        return tuple(
            Job.from_json(item) for item in _list(self._payload(_Call("GET", self._base_url + self._paths.jobs)))
        )

    def stop_job(self, job_id: str) -> Job:
        """Stops a job; after a lost reply, a job that already stands still is success."""
        return self._change_job("GET", "/stop", job_id, ("STOPPED", "COMPLETED"))

    def start_job(self, job_id: str) -> Job:
        """Restarts a stopped job where it stopped; ServiceError when it stands still again with an error of its own."""
        job = self._change_job("GET", "/start", job_id, ("RUNNING", "COMPLETED"))
        _raise_job_failure(job)
        return job

    def remove_job(self, job_id: str) -> Job:
        """Removes a job; one that is gone after a lost reply counts as removed."""
        return self._change_job("DELETE", "/remove", job_id, ("REMOVED",))

    def _job_call(self, method: str, verb: str, job_id: str) -> _Call:
        return _Call(method, f"{self._base_url}{self._paths.job}{verb}/{_segment(job_id)}")

    def _change_job(self, method: str, verb: str, job_id: str, wanted: tuple[str, ...]) -> Job:
        def already() -> Job | None:
            try:
                job = self.job(job_id)
            except NotFound:
                if "REMOVED" in wanted:
                    return Job(job_id, "REMOVED")
                raise
            return job if job.status in wanted else None

        answer = self._send(self._job_call(method, verb, job_id), already, read=True)
        return answer if isinstance(answer, Job) else _job(_decoded(answer))

    # Domains

    def domains(self) -> tuple[Domain, ...]:
        payload = self._payload(self._domain_call("GET"))
        return tuple(Domain.from_json(item) for item in _list(payload, "domains"))

    def domain(self, name: str) -> Domain:
        return Domain.from_json(_record(self._payload(self._domain_call("GET", name))))

    def create_domain(self, name: str, plan: str, *, time: float | None = None, volume: float | None = None) -> Domain:
        """Creates a domain; the answer holds its full name."""
        given = Domain(name, plan, time=time, volume=volume)
        call = replace(self._domain_call("POST"), body=_encoded(given.to_json()), repeatable=False)
        return Domain.from_json(_record(self._payload(call)))

    def enable_domain(self, name: str) -> None:
        """Enables a disabled domain; Conflict (117) when it is enabled, unless by this call's own lost request."""
        self._done(self._domain_call("POST", name, "enable"), Conflict)

    def disable_domain(self, name: str) -> None:
        """Disables an enabled domain; Conflict (117) when it is disabled, unless by this call's own lost request."""
        self._done(self._domain_call("POST", name, "disable"), Conflict)

    def delete_domain(self, name: str) -> None:
        self._done(self._domain_call("DELETE", name), NotFound)

    def _domain_call(self, method: str, *segments: str) -> _Call:
        url = "/".join([self._provisioning_url + self._paths.domain, *map(_segment, segments)])
        return _Call(method, url, reseller=True)

    # Roles

    def roles(self, domain: str) -> tuple[Role, ...]:
        """The roles of a domain. Reading roles is not part of the interface; this is where deployments have it."""
        return tuple(Role.from_json(item) for item in _list(self._payload(self._role_call("GET", domain)), "roles"))

    def role(self, domain: str, name: str) -> Role:
        """A full role read, the read-only fields too; its path is not part of the interface either."""
        return Role.from_json(_record(self._payload(self._role_call("GET", domain, name))))

    def create_role(self, domain: str, role: Role) -> Role:
        """Creates a role and returns it as the service tells it, or as it was given when the service tells nothing."""
        if not role.name:
            raise UsageError("a role needs a name")
        call = replace(self._role_call("POST", domain), body=_encoded(role.body()), repeatable=False)
        return _told_role(self._payload(call), role)

    def update_role(self, domain: str, name: str, changes: Role) -> Role:
        """Sends the given fields of `changes`; fields that are None stay as they are."""
        call = replace(self._role_call("PUT", domain, name), body=_encoded(changes.body()))
        return _told_role(self._payload(call), replace(changes, name=changes.name or name))

    def delete_role(self, domain: str, name: str) -> None:
        """Deletes a role; its path is not part of the interface, this is where deployments have it."""
        self._done(self._role_call("DELETE", domain, name), NotFound)

    def _role_call(self, method: str, domain: str, *name: str) -> _Call:
        return replace(self._domain_call(method, domain, "roles", *name), reseller=False)

    # Anything else

    @contextmanager
    def request(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Iterator[RawResponse]:
        """Any signed request, its answer unread. `path` starts with a slash; those of domains go to provisioning."""
        with self._answer(self._any_call(method, path, body, headers)) as response:
            yield RawResponse(response.status_code, response.headers, _body(response))

    def call(self, method: str, path: str, body: bytes = b"") -> Any:
        """The decoded answer of any signed request, out of its envelope when it has one."""
        return self._payload(self._any_call(method, path, body, None))

    def _any_call(self, method: str, path: str, body: bytes, headers: Mapping[str, str] | None) -> _Call:
        if not path.startswith("/"):
            raise UsageError(f"path '{path}' does not start with a slash")
        plain = path.partition("?")[0]
        below_domain = plain == self._paths.domain or plain.startswith(self._paths.domain + "/")
        return _Call(
            method.upper(),
            (self._provisioning_url if below_domain else self._base_url) + path,
            body,
            headers=headers,
            repeatable=method.upper() not in {"POST", "PATCH"},
            reseller=below_domain and "/roles" not in plain,
        )

    # Between a call and its answer

    def _payload(self, call: _Call) -> Any:
        """The decoded answer of a small operation; raises what an error body says, with HTTP 200 too."""
        return _decoded(self._send(call, lambda: None, read=True))

    def _done(self, call: _Call, already: type[ServiceError]) -> None:
        """Does what may be done twice; after a lost reply, the error `already` says that the first time did it."""
        lost = False

        def note() -> None:
            nonlocal lost
            lost = True

        try:
            _decoded(self._send(call, note, read=True))
        except already:
            if not lost:
                raise

    @contextmanager
    def _answer(self, call: _Call) -> Iterator[httpx.Response]:
        response = self._send(call, lambda: None, read=False)
        try:
            yield response
        finally:
            response.close()

    def _send(self, call: _Call, after_loss: Callable[[], T | None], *, read: bool) -> httpx.Response | T:
        """The answer, after as many attempts as it takes and are allowed.

        A reply that was lost may be that of a request that was done, so before another attempt `after_loss` may look,
        and what it finds (not None) is returned instead of an answer.
        """
        for attempt in range(2, self._retries + 3):
            failure: SvcctlError
            retry_after = None
            try:
                response = self._exchange(call, read=read)
            except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, UnicodeEncodeError) as error:
                # The text of these errors may hold the header, and so the secret, that cannot be sent.
                raise UsageError(f"the request cannot be sent: {type(error).__name__}") from None
            except httpx.RequestError as error:
                failure = _no_answer(call, error)
                lost = not isinstance(error, _NOT_SENT)
                hopeless = "certificate verify failed" in str(error).lower()
            else:
                if response.is_success:
                    return response
                failure = self._refused(response)
                if response.status_code not in UNAVAILABLE:
                    raise failure
                lost = response.status_code not in _NOT_ACCEPTED
                hopeless = False
                retry_after = self._retry_after(response)
            if lost and not call.repeatable:
                failure.hint = "the service may have done it all the same: look before trying again"
                raise failure
            if hopeless or attempt > self._retries + 1:
                raise failure
            delay = backoff.delay(attempt - 1) if retry_after is None else retry_after
            if self._observe:
                self._observe(Retry(failure.message, delay, attempt, self._retries + 1))
            self._sleep(delay)
            if lost and (found := after_loss()) is not None:
                return found
        raise AssertionError("the last attempt returns or raises")

    def _exchange(self, call: _Call, *, read: bool) -> httpx.Response:
        """One attempt: a request made anew, so that its signature is; an unsuccessful answer is always read."""
        request = self._built(call)
        started = time.monotonic()
        try:
            response = self._http.send(request, stream=True)
        except httpx.HTTPError as error:
            self._tell(request, call.body, None, time.monotonic() - started, type(error).__name__)
            raise
        self._tell(request, call.body, response, time.monotonic() - started, None)
        if read or not response.is_success:
            try:
                response.extensions[_READ] = _start_of(response, None if response.is_success else MAX_BODY)
            finally:
                response.close()
        return response

    def _built(self, call: _Call) -> httpx.Request:
        silence = max(self._timeout, SILENCE) if call.endless else self._timeout
        return self._http.build_request(
            call.method,
            call.url,
            content=call.body,
            headers=dict(call.headers or {}),
            timeout=httpx.Timeout(self._timeout, read=silence),
            extensions={RESELLER: call.reseller},
        )

    def _tell(
        self,
        request: httpx.Request,
        body: bytes,
        response: httpx.Response | None,
        seconds: float,
        failure: str | None,
    ) -> None:
        if self._observe is None:
            return
        self._observe(
            Exchange(
                request.method,
                str(request.url),
                self._shown(request.headers),
                _shown_body(body),
                response.status_code if response is not None else None,
                self._shown(response.headers) if response is not None else (),
                seconds,
                failure,
            )
        )

    def _shown(self, headers: httpx.Headers) -> tuple[tuple[str, str], ...]:
        secret = self._auth.secret_headers | _SECRET_HEADERS
        return tuple(
            (name, REDACTED if name in secret or is_secret(name) else value) for name, value in headers.items()
        )

    def _refused(self, response: httpx.Response) -> SvcctlError:
        """What an answer without success says."""
        status = response.status_code
        if location := response.headers.get("location") if response.is_redirect else None:
            return ServiceError(
                f"the service redirects to {location}",
                code=status,
                hint="redirects are not followed: use that base URL",
            )
        hint = self._skew_hint(response) if status == 401 else None
        head = response.headers
        return error_of(status, head.get("content-type", ""), response.extensions[_READ], hint=hint, cid=head.get(CID))

    def _skew_hint(self, response: httpx.Response) -> str | None:
        theirs = _http_date(response.headers.get("date", ""))
        ahead = 0 if theirs is None else round(self._clock() - theirs)
        if abs(ahead) <= SKEW:
            return None
        direction = "ahead of" if ahead > 0 else "behind"
        return f"this machine's clock is {abs(ahead)} s {direction} the service's, which makes signatures invalid"

    def _retry_after(self, response: httpx.Response) -> float | None:
        """Seconds to wait as the service asks, from a number or a date, capped."""
        text = response.headers.get("retry-after", "").strip()
        if text.isascii() and text.isdigit():
            return min(float(text[:9]), MAX_RETRY_AFTER)
        moment = _http_date(text)
        return None if moment is None else min(max(moment - self._clock(), 0.0), MAX_RETRY_AFTER)


_READ = "svcctl.read"


def _checked_url(url: str) -> str:
    """The URL without a slash at its end; UsageError when secrets must not be sent there."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 (raises when it is none)
    except ValueError:
        raise UsageError(f"'{url}' is not a URL") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"'{url}' is not a URL of http or https")
    if parts.username or parts.password:
        raise UsageError("a base URL must not hold a user or a password")
    if parts.query or parts.fragment:
        raise UsageError(f"'{url}' has a query or a fragment, which a base URL cannot have")
    if parts.scheme == "http" and not _is_loopback(url):
        raise UsageError(f"'{url}' would carry secrets unencrypted", hint="use https, or http on this machine only")
    return url.rstrip("/")


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _trust(verify: bool | str, urls: tuple[str, ...]) -> ssl.SSLContext | bool:
    """What to check certificates with. Loading the authorities takes longer than a local request, so plain http, where
    there is nothing to check, goes without."""
    if not any(url.startswith("https:") for url in urls):
        return False
    if isinstance(verify, bool):
        return verify
    try:
        return ssl.create_default_context(cafile=verify)
    except OSError as error:
        raise UsageError(f"the CA bundle '{verify}' cannot be used: {error.strerror or error}") from None


def _segment(name: str) -> str:
    if name in ("", ".", ".."):
        raise UsageError(f"'{name}' is not a name")
    return quote(name, safe="@")


def _encoded(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def _shown_body(body: bytes) -> str:
    """A body that may be logged: the values of keys that name secrets are redacted, however deep."""
    try:
        return json.dumps(_redacted(json.loads(body)), ensure_ascii=False)
    except (ValueError, RecursionError):
        return "" if not body else f"{len(body)} bytes that are not JSON"


def _redacted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: REDACTED if is_secret(key) else _redacted(inner) for key, inner in value.items()}
    return [_redacted(inner) for inner in value] if isinstance(value, list) else value


def _body(response: httpx.Response) -> Iterator[bytes]:
    try:
        yield from response.iter_bytes()
    except httpx.TimeoutException:
        raise IncompleteResult("the result is incomplete: the service fell silent") from None
    except httpx.HTTPError:
        raise IncompleteResult("the result is incomplete: the connection broke in the middle") from None


def _start_of(response: httpx.Response, size: int | None) -> bytes:
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if size is not None and len(body) >= size:
            break
    return bytes(body[:size])


def _no_answer(call: _Call, error: httpx.RequestError) -> Unavailable:
    host = urlsplit(call.url).netloc
    if isinstance(error, httpx.TimeoutException):
        return Unavailable(f"no answer from {host} in time")
    reason = re.sub(r"^\[Errno -?\d+\] ", "", " ".join(str(error).split())) or type(error).__name__
    hint = "give the service's CA bundle" if "certificate" in reason.lower() else None
    return Unavailable(f"no answer from {host}: {reason}", hint=hint)


def _http_date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def _decoded(response: httpx.Response) -> Any:
    """The payload of an answer, out of its envelope; None for an empty one."""
    body: bytes = response.extensions[_READ]
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


def _record(payload: Any) -> Mapping[str, Any]:
    if isinstance(payload, list) and len(payload) == 1:
        payload = payload[0]
    if not isinstance(payload, Mapping):
        raise Unavailable("the service's answer does not hold what was asked for")
    return payload


def _list(payload: Any, key: str = "object") -> list[Mapping[str, Any]]:
    if isinstance(payload, Mapping):
        payload = payload.get(key)
    if payload is not None and not isinstance(payload, list):
        raise Unavailable("the service's answer does not hold the list that was asked for")
    return [item for item in payload or [] if isinstance(item, Mapping)]


def _job(payload: Any) -> Job:
    return Job.from_json(_record(payload))


def _raise_job_failure(job: Job) -> None:
    if job.status == "STOPPED" and job.error:
        raise ServiceError(f"job {job.id} stopped with an error: {'; '.join(job.error)}")


def _told_role(payload: Any, given: Role) -> Role:
    return Role.from_json(payload) if isinstance(payload, Mapping) and payload.get("name") else given
