"""The operations of svcctl's own service that the HTTP interface does not have: tables, loads, and several checks."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from svcctl.api.addresses import segment
from svcctl.api.loads import Loaded, LoadOptions
from svcctl.api.models import Domain
from svcctl.api.refusals import MAX_BODY, is_exact, record, records
from svcctl.errors import (
    CredentialsError,
    IncompleteResult,
    NotFound,
    ServiceError,
    SvcctlError,
    Unavailable,
    UsageError,
)

if TYPE_CHECKING:
    from svcctl.api.client import Client, RawResponse


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table of events. Each element of `columns` is a name and a type, such as `statusCode int4`."""

    name: str
    columns: tuple[str, ...]

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.rpartition(" ")[0] for column in self.columns)


@dataclass(frozen=True, slots=True)
class ReadingJob:
    """A job that reads a table and is not completed."""

    id: str
    status: str
    friendly_name: str


@dataclass(frozen=True, slots=True)
class TableExtent(StoredTable):
    """A table and its content: the number of its events, the dates of its first and last event, and its size.

    The dates are in epoch milliseconds, and the size is in bytes. `jobs` and `queries` are the jobs and saved queries
    that read the table. The service lists the jobs and queries only for an administrator, and only if a single table is
    requested.
    """

    events: int
    oldest: int | None
    newest: int | None
    bytes: int | None
    live: bool = False
    """Whether the events of the table are written by the service itself."""
    jobs: tuple[ReadingJob, ...] = ()
    queries: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> TableExtent:
        """Read a table from JSON.

        Raises NotFound if the object does not describe a table.
        """
        if not {"name", "columns", "events"} <= source.keys():
            raise NotFound("the service does not describe its tables")
        return cls(
            str(source["name"]),
            tuple(source["columns"]),
            int(source["events"]),
            source.get("from"),
            source.get("to"),
            source.get("bytes"),
            bool(source.get("live")),
            _jobs(source),
            tuple(map(str, source.get("queries") or ())),
        )


@dataclass(frozen=True, slots=True)
class Status:
    """The state of the service.

    `started` is in epoch milliseconds. `address` is the host and the port of the service, if the service also listens
    on TCP. `uses` contains the locations of the shared folder (`folder`), the shared database (`state`) and the query
    engine (`engine`), if the service uses them. `problems` are the reasons why the service cannot work at present.
    `foreground` says whether the log of the service goes to stderr. `lost` describes a loss of events that nobody
    has confirmed yet; None if there is none. Each element of `expiring` is the name of a key that expires soon, and its
    expiry in epoch milliseconds.
    """

    version: str
    started: int
    address: str | None
    tables: tuple[StoredTable, ...]
    uses: Mapping[str, str]
    problems: tuple[str, ...] = ()
    foreground: bool = False
    lost: str | None = None
    expiring: tuple[tuple[str, int], ...] = ()


def status(client: Client) -> Status:
    """Request the state of the service."""
    answer = record(client.call("GET", "/service/status"))
    tables = tuple(StoredTable(str(row["name"]), tuple(row["columns"])) for row in records(answer, key="tables"))
    return Status(
        str(answer.get("version")),
        int(answer.get("startedAt") or 0),
        answer.get("address"),
        tables,
        answer.get("uses") or {},
        tuple(map(str, answer.get("problems") or ())),
        bool(answer.get("foreground")),
        _lost(answer),
        tuple((str(key["name"]), int(key["expires"])) for key in records(answer.get("expiringKeys") or [])),
    )


def confirm_loss(client: Client) -> str | None:
    """Confirm that events were lost, so that the service no longer reports the loss.

    Returns the description of the loss; None if no events were lost.
    """
    return _lost(record(client.call("POST", "/service/confirm-loss")))


def _lost(answer: Mapping[str, Any]) -> str | None:
    lost = answer.get("lost")
    return str(lost.get("text")) if isinstance(lost, Mapping) else None


def _jobs(source: Mapping[str, Any]) -> tuple[ReadingJob, ...]:
    jobs = records(source.get("jobs") or [])
    return tuple(ReadingJob(str(job["id"]), str(job["status"]), str(job["friendlyName"])) for job in jobs)


def tables(client: Client) -> list[TableExtent]:
    """Return all tables with their content. Raises NotFound if the service is not svcctl's own."""
    payload = client.call("GET", "/service/tables")
    if not isinstance(payload, list):
        raise NotFound("the service does not list its tables")
    return [TableExtent.from_json(row) for row in records(payload)]


def table_names(client: Client) -> Collection[str] | None:
    """Return the names of the tables; None if the service is not svcctl's own."""
    try:
        return [table.name for table in tables(client)]
    except CredentialsError:
        raise
    except ServiceError:
        return None
    except Unavailable as error:
        if error.unanswered:
            raise
        return None


def table(client: Client, name: str) -> TableExtent:
    """Return a table with its content, and with the jobs and saved queries that read the table.

    Raises NotFound if the table does not exist, or if the service is not svcctl's own.
    """
    return TableExtent.from_json(record(client.call("GET", f"/service/tables/{segment(name)}")))


def drop(client: Client, name: str) -> TableExtent:
    """Drop a table, and return a description of its content before the drop."""
    return TableExtent.from_json(record(client.call("DELETE", f"/service/tables/{segment(name)}")))


def trim(client: Client, name: str, before: int) -> tuple[int, TableExtent]:
    """Remove the events of a table that have a date before `before`, in epoch milliseconds.

    Returns the number of removed events, and the table after the removal.
    """
    body = json.dumps({"before": before}).encode()
    answer = record(client.call("POST", f"/service/tables/{segment(name)}/trim", body))
    return int(answer["removed"]), TableExtent.from_json(answer)


def copy(client: Client, name: str, to: str) -> int:
    """Move a table, and return the number of its events.

    `to` is the new place: `folder` means the shared folder, and `file` means the service's own file.
    """
    body = json.dumps({"to": to}).encode()
    return int(record(client.call("POST", f"/service/tables/{segment(name)}/copy", body))["events"])


def available(client: Client, domain: str) -> Mapping[str, Collection[str]] | None:
    """Return the names of the `policies` and `applications` that roles of a domain can grant.

    Returns None if the service does not list these names.
    """
    answer = _optional_answer(client, "GET", f"/service/domain/{segment(domain)}/available")
    kinds = ("policies", "applications")
    if not isinstance(answer, Mapping) or not all(isinstance(answer.get(kind), list) for kind in kinds):
        return None
    return {kind: tuple(map(str, answer[kind])) for kind in kinds}


@dataclass(frozen=True, slots=True)
class DomainCheck:
    """The result of checking a new domain: the first field that the service refuses, the reason and a hint.

    `key` is the name of this field; None if the domain can be created.
    """

    key: str | None
    message: str = ""
    hint: str | None = None


def check_domain(client: Client, domain: Domain) -> DomainCheck | None:
    """Check whether a domain can be created, without creating the domain.

    Returns None if the service cannot check this.
    """
    answer = _optional_answer(client, "POST", "/service/domain/check", json.dumps(domain.to_json()).encode())
    if not isinstance(answer, Mapping) or "key" not in answer:
        return None
    return DomainCheck(answer["key"], str(answer.get("message")), answer.get("hint"))


def _optional_answer(client: Client, method: str, path: str, body: bytes = b"") -> Any:
    """Return the answer to a request that changes nothing; None if the service does not have the operation."""
    try:
        return client.call(method, path, body, repeatable=True)
    except ServiceError:
        return None
    except Unavailable as error:
        if error.unanswered:
            raise
        return None


def load(
    client: Client,
    files: Iterable[tuple[str, str]],
    table: str,
    options: LoadOptions,
    load_id: str | None = None,
    attempt: str = "",
) -> Loaded | None:
    """Load files on the service's machine into a table. Each element of `files` is a path and a name for messages.

    `load_id` identifies the load, so that the service does not load the files twice. Returns None if the table already
    has a load with this ID. With a `load_id`, the request is sent again when its answer is lost. `attempt` is another
    ID of the load, for a later call of `load_ended`.
    """
    body = {
        "files": [{"path": path, "name": name} for path, name in files],
        "table": table,
        **options.to_json(),
        "loadId": load_id,
        "attempt": attempt or None,
    }
    answer = record(client.call("POST", "/service/load", json.dumps(body).encode(), repeatable=load_id is not None))
    return None if "alreadyLoaded" in answer else Loaded.from_json(answer)


@contextmanager
def temporary_table(
    client: Client,
    files: Iterable[tuple[str, str]],
    options: LoadOptions,
    query: str,
    empty_columns: Iterable[str] = (),
) -> Iterator[tuple[str, Loaded]]:
    """Load files on the service's machine into a temporary table. The table exists during the `with` block.

    Yields the ID of the table and the result of the load. In queries, the name of the table is `file`. Each request
    that queries the table must contain its ID. Only requests with the same API key can read the table. Each element of
    `files` is a path and a name for messages. The service checks the `query` before it reads the files. If the files
    contain no events, the table gets the columns `empty_columns`.
    """
    body = {
        "files": [{"path": path, "name": name} for path, name in files],
        **options.to_json(),
        "query": query,
        "emptyColumns": list(empty_columns),
    }
    try:
        with client.request("POST", "/service/temporary-table", json.dumps(body).encode()) as response:
            line = _first_line(response.body)
            if (error := response.error(line)) is not None:
                raise error
            answer = record(_object(line), "temporaryTable")
            yield str(answer["temporaryTable"]), Loaded.from_json(answer)
    except ServiceError as error:
        error.query = error.query or query
        raise


def _first_line(body: Iterator[bytes]) -> bytes:
    """Return the first line of an answer. If the answer has no line end, return the whole answer.

    Raises Unavailable if the answer is cut off.
    """
    line = b""
    try:
        while b"\n" not in line and (block := next(body, None)) is not None:
            line += block.lstrip() if not line else block
    except IncompleteResult as error:
        raise Unavailable("the service ended before the files were loaded", hint=error.hint) from None
    return line


def _object(line: bytes) -> Any:
    """Return the member `object` of the envelope in a line; None if the line is not an envelope."""
    try:
        payload = json.loads(line)
    except ValueError:
        return None
    return payload.get("object") if isinstance(payload, dict) else None


def load_ended(client: Client, attempt: str) -> tuple[bool, Loaded | None]:
    """Return two values: whether a load has ended, and its result. `attempt` is the ID that was passed to `load`.

    The result is None if no events were stored. Raises NotFound for an unknown `attempt`.
    """
    answer = record(client.call("GET", f"/service/load/{segment(attempt)}"))
    loaded = answer.get("loaded")
    stored = None if not isinstance(loaded, dict) or "alreadyLoaded" in loaded else Loaded.from_json(loaded)
    return bool(answer.get("ended")), stored


def verify(
    client: Client, job_id: str, *, since: int | None = None, keep: bool = False
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Check whether a job's destination has the rows that the job delivered.

    Yields pairs. The first element is `progress`, `finding` or `result`. The second element is a mapping with the
    details. If the job continues earlier jobs, all these jobs are checked, and each has its own result. The last result
    is for the job itself. `since` is a date in epoch milliseconds. Rows with an earlier date may be missing at the
    destination. With `keep`, the service stores this date for later checks.

    Raises UsageError for a destination that cannot be verified. Raises Conflict while other checks run. Raises
    CredentialsError if the destination refuses the job's credentials. Raises Unavailable if the destination cannot be
    read, or if the check ends without the result of the job. Raises ServiceError if the service is not svcctl's own.
    """
    parameters = "&".join([f"from={since}"] * (since is not None) + ["keep=true"] * keep)
    path = f"/service/jobs/{segment(job_id)}/verify" + f"?{parameters}" * bool(parameters)
    is_verified = False
    try:
        with client.request("GET", path) as response:
            if response.refused or not is_exact(response.headers):
                raise _unverified(response)
            for line in _lines(response.body):
                kind, members = _members(line)
                if kind == "error":
                    raise _check_failed(members)
                is_verified = is_verified or (kind == "result" and members.get("job") == job_id)
                yield kind, members
    except IncompleteResult as error:
        if not is_verified:
            raise Unavailable(f"the check of job {job_id} was cut off: {error.message}") from None
    if not is_verified:
        raise Unavailable(f"the service ended the check of job {job_id} without a result")


def _unverified(response: RawResponse) -> SvcctlError:
    """Return the error for an answer that does not contain the findings and results of a check."""
    start = bytearray()
    for block in response.body:
        start += block
        if len(start) >= MAX_BODY:
            break
    error = response.error(bytes(start[:MAX_BODY])) if response.refused else None
    if error is not None and error.reason == "not-verifiable":
        return UsageError(error.message, hint=error.hint, reason=error.reason, data=error.data)
    if isinstance(error, CredentialsError | Unavailable):
        return error
    if error is not None and is_exact(response.headers) and error.reason != "no-route":
        return error
    return ServiceError(
        "this service cannot verify jobs: only svcctl's own service of this version or newer can",
        reason="cannot-verify",
    )


def _lines(body: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines of a body, without empty lines and without an incomplete line at the end."""
    rest = b""
    for block in body:
        *lines, rest = (rest + block).split(b"\n")
        yield from filter(None, map(bytes.strip, lines))


def _members(line: bytes) -> tuple[str, Mapping[str, Any]]:
    """Parse a line of the answer to a check, such as `{"progress": {…}}`. Return the key and the inner object.

    Raises MalformedAnswer for any other line.
    """
    try:
        [(kind, members)] = json.loads(line).items()
    except (ValueError, AttributeError, RecursionError):
        kind, members = "", None
    return kind, record(members)


def _check_failed(error: Mapping[str, Any]) -> SvcctlError:
    """Return the error that ended a check of a destination.

    A CredentialsError means that the destination refused the job's credentials.
    """
    status, message, reason = error.get("status"), str(error.get("message")), str(error.get("reason") or "failed")
    if status in (401, 403):
        hint = "the service uses the credentials with which the job was launched"
        return CredentialsError(message, hint=hint, reason=reason)
    if status == 503:
        return Unavailable(message, reason=reason)
    return ServiceError(message, reason=reason)
