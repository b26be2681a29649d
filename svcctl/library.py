"""The public Python interface of svcctl, for notebooks, scripts and connectors.

>>> with svcctl.connect("local") as client:
...     for result, n in client.query("from auth.all group by result select count() as n", from_="1h"):
...         assert n > 0

Settings, dates, requests and errors are the same as on the command line. The library prints nothing and changes no
global state. The library starts the local service only for a built-in profile. Several threads may use the same client,
but not the same answer.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, date, datetime
from types import TracebackType

TYPE_CHECKING = False  # importing `typing` and the errors would take twice as long as importing the rest
if TYPE_CHECKING:
    from typing import Any, Literal, Self

    import pyarrow as pa

    from svcctl.api.client import Client
    from svcctl.api.columns import ResultColumn
    from svcctl.api.models import Domain, Job, Role
    from svcctl.api.query import QueryRequest
    from svcctl.api.response import QueryResponse
    from svcctl.dates.range import RequestDates
    from svcctl.dates.shorthand import Typed
    from svcctl.errors import UsageError
    from svcctl.profiles import Profile

    Names = Sequence[str] | str
    """Several names, or one name, or `*` for all."""

Moment = str | float | date
"""A moment: epoch seconds, a date, an aware datetime, or a text as in `--from`.

Examples of such texts are `1h`, `yesterday` and `2026-11-25 09:00`.
"""

MODE = "json/simple/compact"
"""The response format of queries.

In this format, the types of the columns come before the rows, and an answer can be read while it arrives.
"""


BYTES_AT_ONCE = 1 << 20
"""The minimum number of bytes of an answer that are converted to one Arrow batch."""


def connect(
    profile: str | None = None,
    *,
    base_url: str | None = None,
    token: str | None = None,
    api_key: str | None = None,
    api_secret: str | None = None,
    auth: Literal["signature", "token", "jwt"] | None = None,
    provisioning_url: str | None = None,
    socket: str | os.PathLike[str] | None = None,
    ca_bundle: str | os.PathLike[str] | None = None,
    tls_close: Literal["notify", "any"] | None = None,
    timeout: float | str | None = None,
    retries: int | None = None,
    time_zone: str | None = None,
    read_only: bool | None = None,
    max_rows: int | None = None,
    headers: Mapping[str, str] | None = None,
    paths: Mapping[str, str] | None = None,
    config: str | os.PathLike[str] | None = None,
) -> ServiceClient:
    """Return a client of the service that a profile describes.

    If `profile` is None, the profile is chosen as on the command line. The other arguments are the settings of
    profiles. These arguments take precedence over the environment and the profile. If `base_url` is set, no profile is
    read, and the arguments alone describe the connection. Credentials in the arguments replace all credentials of the
    profile. `timeout` is in seconds, or a text such as `30s`. `config` is the path of a profiles file. `read_only` and
    `max_rows` can tighten the limits of the environment and the profile, but cannot loosen them.

    With the profile `local`, the local service is started if it is not running. Otherwise, nothing is sent to the
    service before the first request.

    Raises UsageError for arguments that exclude each other, and ProfileError for a profile that cannot be used.
    """
    arguments = {
        "profile": profile,
        "base_url": base_url,
        "token": token,
        "api_key": api_key,
        "api_secret": api_secret,
        "auth": auth,
        "provisioning_url": provisioning_url,
        "socket": None if socket is None else os.fspath(socket),
        "ca_bundle": None if ca_bundle is None else os.fspath(ca_bundle),
        "tls_close": tls_close,
        "timeout": None if timeout is None else str(timeout),
        "retries": None if retries is None else str(retries),
        "time_zone": time_zone,
        "read_only": None if read_only is None else str(read_only).lower(),
        "max_rows": None if max_rows is None else str(max_rows),
        "config": None if config is None else os.fspath(config),
    }
    _check_arguments(arguments)
    for name, mapping in (("headers", headers), ("paths", paths)):
        _check_mapping(name, mapping)
        _check_texts(**{f"{name}.{key}": value for key, value in (mapping or {}).items()})
    resolved = _profile(arguments, {"headers": headers or {}, "paths": paths or {}})
    from svcctl.profiles.client import client_of

    return ServiceClient(client_of(resolved), resolved)


def _check_arguments(arguments: Mapping[str, Any]) -> None:
    """Raise UsageError for arguments that exclude each other, are empty, or are not text.

    Also raises UsageError if only one of `api_key` and `api_secret` is given.
    """
    _check_texts(**arguments)
    for name, value in arguments.items():
        if value == "":
            raise _unusable(f"{name} is empty")
    for argument, alternative in (("profile", "base_url"), ("token", "api_key"), ("token", "api_secret")):
        if arguments[argument] is not None and arguments[alternative] is not None:
            raise _unusable(f"{argument} and {alternative} exclude each other")
    if (arguments["api_key"] is None) != (arguments["api_secret"] is None):
        raise _unusable("api_key and api_secret must be given together")


def _profile(arguments: Mapping[str, Any], mappings: Mapping[str, Mapping[str, str]]) -> Profile:
    """Resolve the settings of a connection. For a built-in profile, start the local service."""
    from dataclasses import replace
    from pathlib import Path

    from svcctl import profiles
    from svcctl.profiles.resolve import ARGUMENT
    from svcctl.profiles.settings import MAPPINGS, unknown_field
    from svcctl.service import process

    config = arguments["config"]
    files = process.default_files
    resolved = profiles.resolve(
        profiles.default_store(os.environ, Path(config) if config else None, ARGUMENT.format("config")),
        flags=arguments,
        environment=os.environ,
        local=lambda name: process.profile_fields(files(os.environ), name),
        spelled=ARGUMENT,
    )
    for group, names in mappings.items():
        for name in names:
            if name not in MAPPINGS[group]:
                raise unknown_field(f"{group}.{name}", f"argument {group}")
    if resolved.name in profiles.BUILT_IN:
        process.ensure_running(files(os.environ), _ignored, _ignored)
    merged = {group: {**resolved.mappings[group], **names} for group, names in mappings.items()}
    return replace(resolved, mappings=merged)


def _unusable(message: str, hint: str | None = None) -> UsageError:
    """Return a UsageError with this message and hint."""
    from svcctl.errors import UsageError

    return UsageError(message, hint=hint)


def _check_texts(**arguments: Any) -> None:
    """Raise UsageError for an argument that is neither text nor None."""
    for name, value in arguments.items():
        if value is not None and not isinstance(value, str):
            raise _unusable(f"{name} must be text, not {type(value).__name__}")


def _check_mapping(name: str, value: object) -> None:
    """Raise UsageError for an argument that is neither a mapping nor None."""
    if value is not None and not isinstance(value, Mapping):
        raise _unusable(f"{name} must be a dict, not {type(value).__name__}")


def _whole(name: str, value: Any) -> int | None:
    """Return a number of rows as an int. Returns None for None.

    Integers of numpy are accepted. Raises UsageError for any other value.
    """
    from numbers import Integral

    if value is None or (isinstance(value, Integral) and not isinstance(value, bool)):
        return None if value is None else int(value)
    raise _unusable(f"{name} must be a whole number, not {type(value).__name__}")


def _ignored(text: str) -> None:
    """Ignore a message about progress."""


class ServiceClient:
    """A client of one service, made by `connect`. Use the client in a `with` block, or close it.

    Threads may share a client. A forked child process may also use the client, and gets its own connections. An answer
    can be read only in the process that ran the query.
    """

    def __init__(self, client: Client, profile: Profile) -> None:
        self._client = client
        self._profile = profile
        self._closed = False
        self._answers: weakref.WeakSet[QueryAnswer] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._finalizer = weakref.finalize(self, client.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections, including those of answers that were not read to the end."""
        self._closed = True
        with self._lock:
            answers = list(self._answers)
        for answer in answers:
            answer.close()
        self._finalizer()

    @property
    def jobs(self) -> JobOperations:
        """The operations on jobs of the account."""
        return JobOperations(self)

    @property
    def domains(self) -> DomainOperations:
        """The operations on domains of a reseller."""
        return DomainOperations(self)

    @property
    def roles(self) -> RoleOperations:
        """The operations on roles of domains."""
        return RoleOperations(self)

    def query(
        self,
        query: str | None = None,
        *,
        from_: Moment,
        to: Moment | None = "now",
        time_zone: str | None = None,
        limit: int | None = None,
        skip: int | None = None,
        query_id: str | None = None,
    ) -> QueryAnswer:
        """Run a query, or a saved query by its ID, and return the answer as soon as the answer begins.

        The range is `from_ <= eventdate < to`. If `to` is a length such as `1h`, the length counts from `from_`. A `to`
        in the future means now. With `to=None`, the query has no end and waits for new events. `time_zone` applies to
        dates without an offset, and to texts that name a day, such as `today`.

        >>> answer = client.query("from auth.all group by result select count() as n", from_="1d")
        >>> [(column.name, column.type) for column in answer.columns]
        [('result', 'str'), ('n', 'int8')]

        Raises UsageError for arguments that cannot be used, ServiceError if the service refuses the query, and
        Unavailable if the service does not answer.
        """
        from svcctl.api.query import QueryRequest

        _check_texts(query=query, query_id=query_id)
        dates = self._dates(from_, to, time_zone, waits=to is None)
        request = QueryRequest(
            from_=dates.from_,
            to=dates.to,
            query=query,
            query_id=query_id,
            mode=MODE,
            limit=_whole("limit", limit),
            skip=_whole("skip", skip),
        )
        answer = QueryAnswer(self._open, request)
        with self._lock:
            self._answers.add(answer)
        return answer

    @property
    def _open(self) -> Client:
        if self._closed:
            raise _unusable("the client is closed")
        return self._client

    def _dates(
        self,
        from_: Moment,
        to: Moment | None,
        time_zone: str | None,
        *,
        waits: bool,
        written: bool = False,
        date_format: str | None = None,
    ) -> RequestDates:
        from svcctl.dates.range import dates_of
        from svcctl.dates.zones import named_zone

        _check_texts(time_zone=time_zone)
        return dates_of(
            _typed(from_, "from_"),
            None if to is None else _typed(to, "to"),
            date_format,
            named_zone(time_zone) if time_zone else self._profile.time_zone,
            now=datetime.fromtimestamp(time.time(), UTC),
            written=written,
            waits=waits,
        )


class QueryAnswer(Iterator["tuple[Any, ...]"]):
    """The answer to a query. It can be read once: as tuples, as Arrow batches, or as an Arrow table.

    A tuple has one value per column. Timestamps are aware datetimes in UTC. Other values are int, float, bool or str,
    and null is None. If an answer is incomplete, reading raises IncompleteResult at the end of the answer. An answer
    frees its connection when it is closed or garbage collected.
    """

    def __init__(self, client: Client, request: QueryRequest) -> None:
        self._process = os.getpid()
        self._stack = ExitStack()
        self._response: QueryResponse = self._stack.enter_context(client.query(request))
        self._packer = _Packer(self._response)
        self._parts = self._response.packed(self._packer.pack, self._packer.size)
        self._at_once = 0 if request.continuous else BYTES_AT_ONCE
        self._rows: Iterator[tuple[Any, ...]] | None = None
        self._state = "open"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Free the connection. Rows that were not read are lost."""
        if self._state == "open":
            self._state = "closed"
        self._stack.close()

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        """The columns with their names and types, such as `ResultColumn(name='n', type='int8')`.

        This property waits until the columns have arrived.
        """
        if self._state == "open":
            with _Closing(self):
                self._check_process()
                return self._response.columns
        return self._response.columns

    @property
    def row_count(self) -> int:
        """The number of rows that were read so far."""
        return self._response.row_count or 0

    def __iter__(self) -> Self:
        self._check_open()
        return self

    def __next__(self) -> tuple[Any, ...]:
        if self._state == "read":
            raise StopIteration
        self._check_open()
        with _Closing(self):
            if self._rows is None:
                self._rows = _tuples(self._parts, self._response)
            row = next(self._rows, None)
            if row is None:
                self._end()
                raise StopIteration
            return row

    def batches(self) -> pa.RecordBatchReader:
        """Return an Arrow reader of the rows.

        The reader has the schema of the rows, and yields batches as the rows arrive.

        >>> reader = client.query("from auth.all select user", from_="1h").batches()
        >>> reader.schema.names, sum(batch.num_rows for batch in reader) > 0
        (['user'], True)

        The types are the same as those of the method `arrow`. If the answer is incomplete, the reader raises
        IncompleteResult at the end of the answer. Raises MissingExtra if pyarrow is not installed.
        """
        self._begin_arrow()
        import pyarrow as pa

        from svcctl.io.arrow import schema_of

        with _Closing(self):
            return pa.RecordBatchReader.from_batches(schema_of(self._packer.columns), self._batches())

    def arrow(self) -> pa.Table:
        """Return all rows as an Arrow table. The method `to_pandas()` of the table returns a data frame.

        >>> client.query("from auth.all group select count() as n", from_="1h").arrow().schema.types
        [DataType(int64)]

        Timestamps are `timestamp[ms, UTC]`, int4 is int32, int8 is int64, float8 is double, and bool is bool. All other
        types are string. A table without rows has the same types. Raises IncompleteResult for an incomplete answer, and
        MissingExtra if pyarrow is not installed.
        """
        return self.batches().read_all()

    def _begin_arrow(self) -> None:
        from svcctl.io import extras

        self._check_open()
        if self._rows is not None:
            raise _unusable("the answer cannot be read as Arrow: a part of it was already read as tuples")
        extras.need("parquet", "Arrow")
        self._packer.packs, self._packer.bytes = True, self._at_once
        self._rows = iter(())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        from svcctl.io import arrow
        from svcctl.io.losses import Losses

        losses = Losses()
        with _Closing(self):
            for part in self._parts:
                if not isinstance(part, list):
                    yield part
                elif part:
                    yield from arrow.batches(losses.rows(part), self._packer.columns)
            self._end()

    def _end(self) -> None:
        self._state = "read"
        self._stack.close()

    def _check_open(self) -> None:
        self._check_process()
        if self._state == "read":
            raise _unusable("the answer was already read, and can be read only once")
        if self._state == "closed":
            raise _unusable("the answer is closed")

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise _unusable("the answer was begun in another process: run the query in this one")


class _Closing:
    """A context manager that closes an answer if its block raises an error, including KeyboardInterrupt."""

    def __init__(self, answer: QueryAnswer) -> None:
        self._answer = answer

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._answer.close()


class _Packer:
    """Converts the lines of an answer to Arrow batches. While `packs` is False, nothing is converted.

    A packer has no reference to the QueryAnswer, so that an unused answer is freed at once.
    """

    def __init__(self, response: QueryResponse) -> None:
        self._response = response
        self.packs = False
        self.bytes = 0

    @property
    def columns(self) -> list[tuple[str, str]]:
        return [(column.name, column.type or "") for column in self._response.columns]

    def size(self) -> int:
        return self.bytes

    def pack(self, lines: bytes) -> pa.RecordBatch | None:
        if not self.packs:
            return None
        from svcctl.api.formats.lines import VALUES
        from svcctl.io.arrow import batch_of_values

        values = VALUES.values(lines)
        return None if values is None else batch_of_values(values, self.columns)


def _tuples(parts: Iterator[Any], response: QueryResponse) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of an answer, one by one."""
    from svcctl.io.losses import Losses

    losses = Losses()
    for part in parts:
        if part:
            yield from _converted(losses.rows(part), response.columns)


def _converted(rows: Sequence[Sequence[Any]], columns: Sequence[ResultColumn]) -> Iterator[tuple[Any, ...]]:
    """Convert timestamps in rows to datetimes, and addresses to text.

    Raises IncompleteResult for a date that Python cannot represent.
    """
    kinds = [column.type for column in columns]
    if not _CONVERTED.intersection(kinds):
        return iter(map(tuple, rows))
    values = [
        map(_CONVERSIONS[kind], column, [name] * len(column)) if kind in _CONVERSIONS else column
        for kind, column, name in zip(kinds, zip(*rows, strict=True), (column.name for column in columns), strict=True)
    ]
    return zip(*values, strict=True)


def _moment(value: Any, name: str) -> datetime | None:
    from svcctl.dates.epochs import from_ms
    from svcctl.errors import IncompleteResult

    try:
        return None if value is None else from_ms(value)
    except (OverflowError, TypeError):
        raise IncompleteResult(
            f"column {name} has the date {value}, which Python cannot hold", hint="read the answer as Arrow"
        ) from None


def _address(value: Any, kind: str) -> str | None:
    from svcctl.io.arrow import TEXT_OF

    return None if value is None else TEXT_OF[kind](value)


_CONVERSIONS: Mapping[str | None, Any] = {
    "timestamp": _moment,
    "ip4": lambda value, name: _address(value, "ip4"),
    "ip6": lambda value, name: _address(value, "ip6"),
}
_CONVERTED = frozenset(_CONVERSIONS)


def _typed(moment: Moment, name: str) -> Typed:
    """Parse the date in an argument. `name` is the name of the argument.

    Raises UsageError for a datetime without a zone, and for a value of another type.
    """
    from numbers import Integral

    from svcctl.dates.epochs import to_seconds
    from svcctl.dates.operators import check_epoch
    from svcctl.dates.shorthand import parse_moment

    if isinstance(moment, float | datetime) and str(moment) in ("nan", "NaT"):  # NaT of pandas is a datetime
        raise _unusable(f"{name} must be a date, not {moment}")
    if isinstance(moment, datetime):
        if moment.utcoffset() is None:
            raise _unusable(
                f"{name} is a datetime without a time zone", "give it one, as in datetime.now(timezone.utc)"
            )
        return to_seconds(moment)
    if isinstance(moment, date):
        return parse_moment(moment.isoformat())
    if isinstance(moment, str):
        return parse_moment(moment)
    if isinstance(moment, Integral | float) and not isinstance(moment, bool):
        return check_epoch(float(moment) if isinstance(moment, float) else int(moment))  # numpy has other types
    raise _unusable(f"{name} must be a date, not {type(moment).__name__}", "give text, epoch seconds or a datetime")


class JobOperations:
    """Operations on jobs, available as `client.jobs`.

    A job runs a query, and the service sends the rows to a destination.
    """

    def __init__(self, client: ServiceClient) -> None:
        self._of = client

    def list(self) -> tuple[Job, ...]:
        """Return all jobs of the account."""
        return self._of._open.jobs()

    def get(self, job_id: str) -> Job:
        """Return a job by its ID. Raises NotFound if the job does not exist."""
        return self._of._open.job(job_id)

    def launch(
        self,
        query: str | None = None,
        destination: str = "donothing",
        params: Mapping[str, Any] | None = None,
        *,
        from_: Moment,
        to: Moment | None = None,
        time_zone: str | None = None,
        date_format: Literal["default", "sql", "iso"] | None = None,
        query_id: str | None = None,
    ) -> Job:
        """Launch a job, and return it.

        `destination` is a destination type such as `kafka`, and `params` contains the parameters of the destination. If
        `to` is None, the job never ends. If `to` is in the future, the job runs until then. Dates in the rows of the
        job are written in `time_zone` and `date_format`.

        >>> job = client.jobs.launch("from auth.all", "donothing", {"friendlyName": "count"}, from_="now")
        >>> job.friendly_name, client.jobs.remove(job.id).status
        ('count', 'REMOVED')

        Raises UsageError for an unknown destination, and for a destination without a required parameter.
        """
        from svcctl.api.destinations import Destination, check, known_key
        from svcctl.api.query import QueryRequest

        _check_texts(query=query, query_id=query_id, destination=destination, date_format=date_format)
        _check_mapping("params", params)
        parameters = {known_key(destination, key): value for key, value in (params or {}).items()}
        target = Destination(destination, parameters)
        check(target, endless=to is None)
        written = time_zone is not None
        dates = self._of._dates(from_, to, time_zone, waits=True, written=written, date_format=date_format)
        request = QueryRequest(
            from_=dates.from_,
            to=dates.to,
            query=query,
            query_id=query_id,
            mode="csv" if written or date_format else "json",
            destination=target,
            date_format=dates.date_format,
            time_zone=dates.time_zone if written else None,
        )
        client = self._of._open
        return client.job(client.launch(request))

    def stop(self, job_id: str) -> Job:
        """Stop a job. Raises Conflict if the job is already stopped."""
        return self._of._open.stop_job(job_id)

    def start(self, job_id: str) -> Job:
        """Start a stopped job. The job continues at the position where it stopped."""
        return self._of._open.start_job(job_id)

    def remove(self, job_id: str) -> Job:
        """Remove a job. Raises NotFound if the job does not exist."""
        return self._of._open.remove_job(job_id)

    def verify(
        self, job_id: str, *, from_: Moment | None = None, keep: bool = False
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Compare the rows at a job's destination with the rows that the job delivered.

        Yields pairs while the check runs. The first element is `progress`, `finding` or `result`, and the second
        element is a mapping. Earlier jobs that the job continues are checked too, and each of them has a result. The
        last result is for the job itself. Rows with a date before `from_` may be missing at the destination. With
        `keep`, the date `from_` is saved for later checks of the job.

        Raises ServiceError if the service is not svcctl's local service, UsageError for a destination that cannot be
        verified, and Unavailable if the check does not finish. Raises Conflict if a check of the job or
        too many other checks are running, and CredentialsError if the destination refuses the job's credentials.
        """
        from svcctl.api.own_service import verify
        from svcctl.dates.epochs import to_ms
        from svcctl.dates.range import start_of

        since = None
        if from_ is not None:
            now = datetime.fromtimestamp(time.time(), UTC)
            since = to_ms(start_of(_typed(from_, "from_"), self._of._profile.time_zone, now=now))
        return verify(self._of._open, job_id, since=since, keep=keep)


class DomainOperations:
    """Operations on the customer domains of a reseller, available as `client.domains`.

    The operations need the reseller's credentials.
    """

    def __init__(self, client: ServiceClient) -> None:
        self._of = client

    def list(self) -> tuple[Domain, ...]:
        """Return all domains of the reseller."""
        return self._of._open.domains()

    def get(self, name: str) -> Domain:
        """Return a domain by its full name. Raises NotFound if the domain does not exist."""
        return self._of._open.domain(name)

    def create(self, name: str, plan: str, *, time: float | None = None, volume: float | None = None) -> Domain:
        """Create a domain with a price plan. Returns the domain with its full name."""
        return self._of._open.create_domain(name, plan, time=time, volume=volume)

    def enable(self, name: str) -> None:
        """Enable a domain. Raises Conflict if the domain is already enabled."""
        self._of._open.enable_domain(name)

    def disable(self, name: str) -> None:
        """Disable a domain. Raises Conflict if the domain is already disabled."""
        self._of._open.disable_domain(name)

    def delete(self, name: str) -> None:
        """Delete a domain, and the users who belong only to this domain."""
        self._of._open.delete_domain(name)


class RoleOperations:
    """Operations on the roles of domains, available as `client.roles`.

    `policies` and `applications` are names, or `*` for all. `resource_ids` maps labels to lists of numbers. An argument
    that is None is not sent. A new role without any of these three fields grants everything. In an update, a field that
    is not sent stays unchanged.
    """

    def __init__(self, client: ServiceClient) -> None:
        self._of = client

    def list(self, domain: str) -> tuple[Role, ...]:
        """Return all roles of a domain."""
        return self._of._open.roles(domain)

    def get(self, domain: str, name: str) -> Role:
        """Return a role by its name. Raises NotFound if the role does not exist."""
        return self._of._open.role(domain, name)

    def create(
        self,
        domain: str,
        name: str,
        *,
        description: str | None = None,
        policies: Names | None = None,
        applications: Names | None = None,
        resource_ids: Mapping[str, Sequence[int]] | None = None,
        finder_name: str | None = None,
        default_application_name: str | None = None,
    ) -> Role:
        """Create a role."""
        fields = (description, policies, applications, resource_ids, finder_name, default_application_name)
        return self._of._open.create_role(domain, _role(name, *fields))

    def update(
        self,
        domain: str,
        name: str,
        *,
        new_name: str | None = None,
        description: str | None = None,
        policies: Names | None = None,
        applications: Names | None = None,
        resource_ids: Mapping[str, Sequence[int]] | None = None,
        finder_name: str | None = None,
        default_application_name: str | None = None,
    ) -> Role:
        """Change the fields of a role. Fields that are None stay unchanged.

        An empty `default_application_name` removes the default application.
        """
        fields = (description, policies, applications, resource_ids, finder_name, default_application_name)
        return self._of._open.update_role(domain, name, _role(new_name, *fields))

    def delete(self, domain: str, name: str) -> None:
        """Delete a role."""
        self._of._open.delete_role(domain, name)


def _role(name: str | None, *values: Any) -> Role:
    from svcctl.api.models import Role

    fields = ("description", "policies", "applications", "resourceIds", "finderName", "defaultApplicationName")
    lists = [list(value) if isinstance(value, set | frozenset) else value for value in values]
    return Role.from_json({"name": name, **dict(zip(fields, lists, strict=True))})
