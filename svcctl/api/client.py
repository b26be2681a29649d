"""The client. Its methods are the operations of the HTTP interface, and share one pool of connections.

`svcctl.api.transport` retries requests, `svcctl.api.refusals` recognises errors, and `svcctl.api.response` reads
results.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from svcctl.api import retry
from svcctl.api.addresses import DEFAULT_PATHS, Paths, checked_url, is_closed_without_notify, segment, trust
from svcctl.api.auth import Credentials
from svcctl.api.formats.body import BROKEN, length_of, pieces
from svcctl.api.guard import UNGUARDED, Guard
from svcctl.api.json_text import encoded
from svcctl.api.operations import Operations
from svcctl.api.refusals import CID, decoded, is_exact, launched, record, records, refusal_in
from svcctl.api.transport import CUT_TEXTS, LATE_HEADER, Event, Preview, RepeatableRequest, Sender
from svcctl.api.wire.failures import DecodingError, RequestError, TimeoutException
from svcctl.api.wire.messages import Closing, Response, Transport
from svcctl.api.wire.pool import CLOSE_SECONDS, Pool
from svcctl.api.wire.sockets import Route
from svcctl.errors import (
    Conflict,
    IncompleteResult,
    MalformedAnswer,
    NotFound,
    ServiceError,
    SvcctlError,
    UnprovenEnd,
    UsageError,
)

if TYPE_CHECKING:
    from svcctl.api.formats.progress import Late
    from svcctl.api.models import Domain, Job, Role
    from svcctl.api.query import QueryRequest
    from svcctl.api.response import Mode, QueryResponse


class RawResponse(NamedTuple):
    """The answer to a request that `Client.request` sent.

    Reading `body` raises IncompleteResult if the connection breaks.

    `error` is a function with one argument, the beginning of the body. It returns the error that the answer states, or
    None if the answer states no error. An answer may state an error even with HTTP 200.
    """

    status: int
    headers: Mapping[str, str]
    body: Iterator[bytes]
    error: Callable[[bytes], SvcctlError | None]

    @property
    def refused(self) -> bool:
        """Whether the HTTP status alone shows that the request failed."""
        return not 200 <= self.status < 300


class Client:
    """A client of one service. Close the client, or use it in a `with` statement.

    `timeout` is in seconds. The timeout limits the wait for a connection and each wait for more bytes. If the service
    asks for a delay in a header Retry-After, the timeout limits this delay, too. `retries` is the number of attempts
    after the first attempt. `verify` says whether certificates are checked, or is the path of a CA bundle. `socket`
    is the path of a Unix socket that receives all requests, for any host. `transport` replaces the network. `clock`
    returns epoch seconds. With `any_close`, an answer counts as complete even if its TLS connection ended without the
    message close_notify. `observe` is called with each Exchange and each Retry. For the first answer that is accepted
    only because of `any_close`, `observe` is called with an UnprovenEnd. `environment` contains the variables that may
    name a proxy. A read-only `guard` raises UsageError for every request that may change something. A guard with
    `max_rows` raises TooManyRows for an answer with more rows.
    """

    def __init__(
        self,
        base_url: str,
        auth: Credentials,
        *,
        paths: Paths = DEFAULT_PATHS,
        provisioning_url: str | None = None,
        timeout: float = 60.0,
        retries: int = 4,
        verify: bool | str = True,
        socket: str | None = None,
        transport: Transport | None = None,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        observe: Callable[[Event], None] | None = None,
        any_close: bool = False,
        guard: Guard = UNGUARDED,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._base_url = checked_url(base_url)
        self._provisioning_url = checked_url(provisioning_url or base_url)
        self._paths = paths
        self._guard = guard
        self._operations = Operations(self._base_url, self._provisioning_url, paths)
        if transport is None:
            transport = Pool(Route(trust(verify, (self._base_url, self._provisioning_url)), socket, environment))
        self._sender = Sender(
            transport,
            auth,
            timeout=timeout,
            retries=retries,
            clock=clock,
            sleep=sleep,
            observe=observe,
            any_close=any_close,
            change=lambda call: self._operations.change(call.method, call.url, call.body, call.headers or ()),
            guard=guard,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._sender.close()

    @property
    def guard(self) -> Guard:
        return self._guard

    # Queries

    @contextmanager
    def query(
        self,
        request: QueryRequest,
        *,
        once: bool = False,
        reader: int | None = None,
        late: Late | None = None,
        counts: bool = True,
    ) -> Iterator[QueryResponse]:
        """Send a query, and yield its answer. The answer can be read only inside the `with` block.

        The request is retried until an answer begins. After the beginning of an answer, nothing is retried.

        With `once`, there is a single attempt. `reader` is the pipe to which the caller writes the answer. ReaderClosed
        is raised as soon as no process reads this pipe any more. `late` is called when the service reports events that
        arrived too late to be counted in a group of the query. Only svcctl's own service reports late events, and only
        in the format json/simple/compact. Without `counts`, the client's guard does not limit the rows.
        """
        from svcctl.api.response import MODES, QueryResponse

        if request.destination is not None:
            raise UsageError("a query with a destination must be launched, not read")
        if not MODES[request.mode].counts:
            self._guard.check_limit(request.mode, request.limit)
        headers = None if late is None else {LATE_HEADER: "lines"}
        call = self._query_call(request, repeatable=True)._replace(once=once, reader=reader, headers=headers)
        with _explained(request), self._answer(call) as response:
            if response.status_code == 204:
                raise MalformedAnswer("the service's answer is not a result: it is empty (HTTP 204)")
            head = response.headers
            yield QueryResponse(
                MODES[request.mode],
                head.get("content-type", ""),
                _body(response),
                head.get(CID),
                lambda: retry.http_date(head.get("date", "")),
                late,
                length_of(response),
                _count(head.get(CUT_TEXTS, "")),
                self._sender.accepts,
                exact=is_exact(head),
                guard=self._guard if counts else UNGUARDED,
            )

    @contextmanager
    def query_spans(self, requests: Sequence[QueryRequest], *, reader: int | None = None) -> Iterator[QueryResponse]:
        """Send queries for consecutive spans of time, and yield their answers as one answer.

        If there are several queries, their format must be csv or tsv.

        Each request is sent after the answer to the previous request was read. If a later request fails, its error is
        raised after the rows of the earlier requests. Raises IncompleteResult if the columns of a later answer differ
        from those of the first answer.
        """
        from svcctl.api.response import QueryResponse

        with ExitStack() as stack:
            answer = stack.enter_context(self.query(requests[0], reader=reader))
            if len(requests) == 1:
                yield answer
                return

            def blocks() -> Iterator[bytes]:
                rows = answer.raw()
                heading = next(rows)
                yield heading
                yield from rows
                for request in requests[1:]:
                    stack.close()
                    rows = stack.enter_context(self.query(request, reader=reader)).raw()
                    if next(rows) != heading:
                        raise IncompleteResult("the result is incomplete: its columns changed")
                    yield from rows

            yield QueryResponse(answer.mode, "", blocks(), answer.cid, exact=True, guard=self._guard)

    def launch(self, request: QueryRequest) -> str:
        """Launch a query that sends its rows to a destination, and return the ID of its job."""
        if request.destination is None:
            raise UsageError("a query without a destination must be read, not launched")
        with _explained(request):
            job = self._sender.send(self._query_call(request, repeatable=False), launched)
        _raise_job_failure(job)
        return job.id

    def preview(self, request: QueryRequest) -> Preview:
        """Return a preview of the request that `query` or `launch` would send."""
        return self._sender.preview(self._query_call(request, repeatable=False))

    def _query_call(self, request: QueryRequest, *, repeatable: bool) -> RepeatableRequest:
        return RepeatableRequest(
            "POST",
            self._base_url + self._paths.query,
            request.body(),
            repeatable=repeatable,
            endless=request.continuous and request.destination is None,
            whole=not request.streams and request.destination is None,
        )

    # Jobs

    def job(self, job_id: str) -> Job:
        return _job(record(self._payload(self._job_call("GET", "", job_id)), "id", "status"))

    def jobs(self) -> tuple[Job, ...]:
        payload = self._payload(RepeatableRequest("GET", self._base_url + self._paths.jobs))
        return tuple(map(_job, records(payload, "id", "status")))

    def stop_job(self, job_id: str) -> Job:
        """Stop a job. Raises Conflict if the job is neither stopped nor completed afterwards."""
        return self._change_job("GET", "/stop", job_id, "stopped", ("STOPPED", "COMPLETED"))

    def start_job(self, job_id: str) -> Job:
        """Start a stopped job. The job continues at the position where it stopped.

        Raises ServiceError if the job stops again at once with an error. Otherwise, raises Conflict
        if the new state is not RUNNING, COMPLETED, CREATED or RECONNECTING.
        """
        states = ("RUNNING", "COMPLETED", "CREATED", "RECONNECTING")
        return self._change_job("GET", "/start", job_id, "started", states)

    def remove_job(self, job_id: str) -> Job:
        """Remove a job. Raises Conflict if the service answers with a state other than REMOVED."""
        return self._change_job("DELETE", "/remove", job_id, "removed", ("REMOVED",))

    def _job_call(self, method: str, verb: str, job_id: str) -> RepeatableRequest:
        return RepeatableRequest(method, f"{self._base_url}{self._paths.job}{verb}/{segment(job_id)}")

    def _change_job(self, method: str, verb: str, job_id: str, changed: str, states: tuple[str, ...]) -> Job:
        """Change a job, so that its state becomes one of `states`.

        If the reply is lost, the client reads the job. The change counts as successful if the state of the job is one
        of `states`.
        """

        def already() -> Job | None:
            try:
                job = self.job(job_id)
            except NotFound:
                if "REMOVED" in states:
                    return _job({"id": job_id, "status": "REMOVED"})
                raise
            return job if job.status in states else None

        call = self._job_call(method, verb, job_id)

        def answered(response: Response) -> Job:
            return _job({"id": job_id, **record(decoded(response), "status")})

        job = self._sender.send(call, answered, already)
        if job.status in states:
            return job
        if "RUNNING" in states:
            _raise_job_failure(job)
        raise Conflict(
            f"job {job_id} is not {changed}: the service answered {job.status or 'no state'}",
            reason="job-unchanged",
            data={"job": job_id},
        )

    # Domains

    def domains(self) -> tuple[Domain, ...]:
        payload = self._payload(self._domain_call("GET"))
        return tuple(map(_domain, records(payload, "name", key="domains")))

    def domain(self, name: str) -> Domain:
        return _domain(record(self._payload(self._domain_call("GET", name)), "name"))

    def create_domain(self, name: str, plan: str, *, time: float | None = None, volume: float | None = None) -> Domain:
        """Create a domain, and return it with its full name.

        Raises UsageError if `time` or `volume` is not a finite number of at least 0.
        """
        from svcctl.api.models import Domain, is_amount

        for key, value in (("time", time), ("volume", volume)):
            if value is not None and not is_amount(value):
                raise UsageError(f"{key} must be 0 or more, not {value}")
        domain = Domain(name, plan, time=time, volume=volume)
        call = self._domain_call("POST")._replace(body=encoded(domain.to_json()), repeatable=False)
        return self._sender.send(call, lambda response: _domain(record(decoded(response), "name")))

    def enable_domain(self, name: str) -> None:
        """Enable a domain. Raises Conflict (code 117) if the domain is already enabled.

        If the reply to an earlier attempt of this call was lost, Conflict counts as success, because that attempt has
        probably enabled the domain.
        """
        self._done(self._domain_call("POST", name, "enable"), Conflict)

    def disable_domain(self, name: str) -> None:
        """Disable a domain. Raises Conflict (code 117) if the domain is already disabled.

        If the reply to an earlier attempt of this call was lost, Conflict counts as success, because that attempt has
        probably disabled the domain.
        """
        self._done(self._domain_call("POST", name, "disable"), Conflict)

    def delete_domain(self, name: str) -> None:
        self._done(self._domain_call("DELETE", name), NotFound)

    def _domain_call(self, method: str, *segments: str) -> RepeatableRequest:
        url = "/".join([self._provisioning_url + self._paths.domain, *map(segment, segments)])
        return RepeatableRequest(method, url, reseller=True)

    # Roles

    def roles(self, domain: str) -> tuple[Role, ...]:
        """Return the roles of a domain.

        The specification shows no path for this operation. This method uses the path of deployed services.
        """
        payload = self._payload(self._role_call("GET", domain))
        return tuple(map(_role, records(payload, "name", key="roles")))

    def role(self, domain: str, name: str) -> Role:
        """Return a role with its read-only fields.

        The specification shows no path for this operation. This method uses the path of deployed services.
        """
        return _role(record(self._payload(self._role_call("GET", domain, name)), "name"))

    def create_role(self, domain: str, role: Role) -> Role:
        """Create a role, and return the role from the service's answer. If the answer is empty, return `role`."""
        if not role.name:
            raise UsageError("a role needs a name")
        call = self._role_call("POST", domain)._replace(body=encoded(role.body()), repeatable=False)
        return _role_of_answer(self._payload(call), role)

    def update_role(self, domain: str, name: str, changes: Role) -> Role:
        """Change a role: set the fields that are not None in `changes`. The other fields stay unchanged."""
        call = self._role_call("PUT", domain, name)._replace(body=encoded(changes.body()))
        return _role_of_answer(self._payload(call), replace(changes, name=changes.name or name))

    def delete_role(self, domain: str, name: str) -> None:
        """Delete a role.

        The specification shows no path for this operation. This method uses the path of deployed services.
        """
        self._done(self._role_call("DELETE", domain, name), NotFound)

    def _role_call(self, method: str, domain: str, *name: str) -> RepeatableRequest:
        return self._domain_call(method, domain, "roles", *name)._replace(reseller=False)

    # Other requests

    @contextmanager
    def request(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Iterator[RawResponse]:
        """Sign and send any request, and yield the answer before its body is read.

        No exception is raised for an answer that states an error. `path` starts with a slash. A path of an operation on
        domains or roles is appended to the provisioning URL. Any other path is appended to the base URL.
        """

        def error(start: bytes) -> SvcctlError | None:
            if not response.is_success:
                return self._sender.error(call, response, start)
            refusal = refusal_in(start, exact=is_exact(response.headers))
            return refusal.as_error(response.status_code) if refusal else None

        call = self._any_call(method, path, body, headers)._replace(as_is=True)
        mode = self._counted_mode(call)
        with self._answer(call) as response:
            content = self._checked_body(response)
            if mode is not None and response.is_success:
                from svcctl.api.response import counted_body

                content = counted_body(mode, response.headers.get("content-type", ""), content, self._guard)
            yield RawResponse(response.status_code, response.headers, content, error)

    def call(self, method: str, path: str, body: bytes = b"", *, repeatable: bool = False) -> Any:
        """Sign and send any request, and return the decoded content of the answer.

        The JSON object around the content (the envelope) is removed. `repeatable` allows retries of a POST.
        """
        call = self._any_call(method, path, body, None)
        return self._payload(call._replace(repeatable=repeatable or call.repeatable))

    def _any_call(self, method: str, path: str, body: bytes, headers: Mapping[str, str] | None) -> RepeatableRequest:
        if not path.startswith("/"):
            raise UsageError(f"path '{path}' does not start with a slash")
        plain = path.partition("?")[0]
        below_domain = self._paths.is_of_domain(plain)
        method = method.upper()
        url = (self._provisioning_url if below_domain else self._base_url) + path
        return RepeatableRequest(
            method,
            url,
            body,
            headers=headers,
            repeatable=self._operations.is_repeatable(method, url, body, headers or ()),
            reseller=below_domain and "/roles" not in plain,
        )

    def _counted_mode(self, call: RepeatableRequest) -> Mode | None:
        """Return the response format of a query if the guard limits the rows of its answer; otherwise None.

        The rows of some formats cannot be counted. For these formats, raises UsageError if the query has no limit, or
        if the limit is higher than the guard allows.
        """
        if self._guard.max_rows is None or not self._operations.is_query(call.method, call.url):
            return None
        from svcctl.api.response import MODES

        try:
            fields = json.loads(call.body)
        except (ValueError, RecursionError):
            return None  # the service refuses a body that is not JSON
        if not isinstance(fields, dict) or fields.get("destination") is not None:
            return None
        stated = fields.get("mode")
        name = stated.get("type", "json") if isinstance(stated, dict) else "json"
        mode = MODES.get(str(name).lower())
        if mode is None or not mode.counts:
            limit = fields.get("limit")
            self._guard.check_limit(str(name), limit if isinstance(limit, int) else None)
        return mode

    def sends_close_notify(self, seconds: float = CLOSE_SECONDS) -> bool | None:
        """Return whether the service ends TLS connections with the message close_notify; None if this is unknown.

        The client asks the service to close a connection, and waits at most `seconds` for the end of the connection.
        """
        closing = Closing(seconds)
        call = self._any_call("GET", self._paths.jobs, b"", {"Connection": "close"})
        try:
            with self._answer(call._replace(as_is=True, once=True, closing=closing)) as response:
                for _ in pieces(response):
                    pass
        except (RequestError, UnprovenEnd) as error:
            return False if is_closed_without_notify(error) else None
        return closing.seen or None

    # Calls and their answers

    def _checked_body(self, response: Response) -> Iterator[bytes]:
        """Yield the body of an answer in any format.

        Raises IncompleteResult if the body was cut off, unless the HTTP status is an error.
        """
        try:
            yield from _body(response)
        except IncompleteResult as error:
            if response.is_success and not (isinstance(error, UnprovenEnd) and self._sender.accepts(error)):
                raise

    def _payload(self, call: RepeatableRequest) -> Any:
        """Send a call, and return the decoded content of the answer. The answer must be small.

        Raises the error that the body states, even with HTTP 200.
        """
        return self._sender.send(call, decoded)

    def _done(self, call: RepeatableRequest, already: type[ServiceError]) -> None:
        """Send a call that may be repeated. The content of the answer is ignored.

        An error of class `already` says that the change was already made. If the reply to an earlier attempt was lost,
        this error counts as success.
        """
        lost = False

        def note() -> None:
            nonlocal lost
            lost = True

        try:
            self._sender.send(call, decoded, note)
        except already:
            if not lost:
                raise

    @contextmanager
    def _answer(self, call: RepeatableRequest) -> Iterator[Response]:
        response = self._sender.send(call, lambda response: response)
        try:
            yield response
        finally:
            response.close()


@contextmanager
def _explained(request: QueryRequest) -> Iterator[None]:
    """Add the query's text to a ServiceError that the `with` block raises.

    The error may contain a position in this text.
    """
    try:
        yield
    except ServiceError as error:
        error.query = request.query
        raise


def _count(text: str) -> int:
    return int(text[:9]) if text.isascii() and text.isdecimal() else 0


def _body(response: Response) -> Iterator[bytes]:
    try:
        yield from pieces(response)
    except DecodingError as error:
        raise IncompleteResult(f"the result is incomplete: {error}") from None
    except TimeoutException:
        raise IncompleteResult("the result is incomplete: the service stopped sending") from None
    except RequestError:
        raise IncompleteResult(BROKEN) from None


def _raise_job_failure(job: Job) -> None:
    if job.status == "STOPPED" and job.error:
        raise ServiceError(f"job {job.id} stopped with an error: {job.reason}")


def _role_of_answer(payload: Any, role: Role) -> Role:
    return _role(payload) if isinstance(payload, Mapping) and payload.get("name") else role


# The models are imported late, because queries do not use them.


def _job(source: Mapping[str, Any]) -> Job:
    from svcctl.api.models import Job

    return Job.from_json(source)


def _domain(source: Mapping[str, Any]) -> Domain:
    from svcctl.api.models import Domain

    return Domain.from_json(source)


def _role(source: Mapping[str, Any]) -> Role:
    from svcctl.api.models import Role

    return Role.from_json(source)
