"""The steps of `profile check`, from reading the profiles file to testing the permissions of the credentials.

Each step is a row of STEPS. A step returns its finding, or raises an error with a hint on what to do. After a failed
step, the later steps are skipped.
"""

from __future__ import annotations

import shlex
import socket
import ssl
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from pathlib import Path

from svcctl.api import addresses
from svcctl.api.addresses import checked_url, trust
from svcctl.api.client import Client
from svcctl.api.query import QueryRequest
from svcctl.api.transport import CLOCK_SKEW_SECONDS, Event, Exchange
from svcctl.api.wire.proxies import Proxy
from svcctl.api.wire.sockets import Origin, Route, origin
from svcctl.api.wire.tunnels import ProxyFailure, blaming
from svcctl.dates.lengths import UNITS, length_text
from svcctl.errors import (
    Advice,
    CommandLine,
    Conflict,
    CredentialsError,
    NotFound,
    ServiceError,
    SvcctlError,
    Unavailable,
    reason,
)
from svcctl.io import unix_sockets
from svcctl.profiles.resolve import Profile
from svcctl.profiles.settings import BUILT_IN
from svcctl.profiles.store import ProfileStore
from svcctl.words import counted

MAX_STEP_SECONDS = 10.0
"""The maximum number of seconds for which a step of the diagnosis waits for the network."""
RENEW_DAYS = 21
"""If a certificate expires within this number of days, `profile check` advises renewing it."""

OK, WARNING, NO, FAILED, SKIPPED = "ok", "warning", "no", "failed", "-"
"""The outcomes of a step of the diagnosis. `no` means that a permission is missing."""


@dataclass(frozen=True, slots=True)
class StepFinding:
    """The finding of a diagnosis step that did not fail.

    `next` is advice to the user; empty if the user need not do anything.
    """

    text: str
    next: str = ""
    outcome: str = OK


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a step of the diagnosis, shown as one line. `error` is set if the step failed."""

    step: str
    outcome: str
    text: str
    next: str = ""
    error: SvcctlError | None = None


@dataclass
class TestedProfile:
    """The profile that is tested, and the requests and responses that were exchanged with its service so far.

    `resolve` returns the profile, and `connect` returns a client. Both functions raise an error for a broken profile.
    The argument of `connect` is a function that is called with each exchange.
    """

    store: ProfileStore
    resolve: Callable[[], Profile]
    connect: Callable[[Callable[[Event], None]], Client]
    environment: Mapping[str, str]
    clock: Callable[[], float] = time.time
    exchanges: list[Exchange] = field(default_factory=list)
    failure: SvcctlError | None = None
    """The error of the step that failed; None if no step has failed so far."""

    @cached_property
    def profile(self) -> Profile:
        return self.resolve()

    @cached_property
    def client(self) -> Client:
        return self.connect(self._heard)

    def _heard(self, event: Event) -> None:
        if isinstance(event, Exchange):
            self.exchanges.append(event)

    @cached_property
    def origin(self) -> Origin:
        return origin(checked_url(self.profile.base_url))

    @cached_property
    def route(self) -> Route:
        """The object that opens connections to the service, directly or through a proxy or socket."""
        profile = self.profile
        urls = (profile.base_url, profile.provisioning_url or profile.base_url)
        return Route(trust(profile.ca_bundle or True, urls), profile.socket, self.environment)

    @cached_property
    def proxy(self) -> Proxy | None:
        return self.route.proxy(self.origin)

    @property
    def name(self) -> str:
        """The name of the profile in suggested commands; the placeholder NAME if the profile has no name."""
        return self.profile.name or "NAME"

    @property
    def patience(self) -> float:
        return min(self.profile.timeout, MAX_STEP_SECONDS)

    @cached_property
    def answers(self) -> dict[str, SvcctlError | None]:
        """The error from the service for each operation of PERMISSIONS; None if the operation succeeded."""
        return {name: _error_of(self, ask) for name, ask in PERMISSIONS.items()}


def run(subject: TestedProfile) -> Iterator[Result]:
    """Run the steps of the diagnosis in order. The steps after the first failure are skipped."""
    for name, step in STEPS.items():
        if not _applies(name, subject):
            continue
        if subject.failure is not None:
            yield Result(name, SKIPPED, "not tried")
            continue
        try:
            finding = step(subject)
        except SvcctlError as error:
            subject.failure = error
            yield Result(name, FAILED, error.message, error.hint or advice(subject, error) or "", error)
        else:
            yield Result(name, finding.outcome, finding.text, finding.next)


def _applies(step: str, subject: TestedProfile) -> bool:
    """Return whether a step applies to the profile. If the profile cannot be read, all steps apply."""
    try:
        if step == "limits":
            return subject.profile.guard.is_set
        if step == "TLS close" and not subject.origin.secure:
            return False
        return step not in WITH_A_SOCKET or WITH_A_SOCKET[step] == (subject.profile.socket is not None)
    except SvcctlError:
        return True


# The steps


def _file(subject: TestedProfile) -> StepFinding:
    path = subject.store.path
    subject.store.load()
    if not path.exists():
        return StepFinding(f"no file at {path}; it is not needed")
    return StepFinding(f"{path}, mode {stat.S_IMODE(path.stat().st_mode):04o}")


def _profile(subject: TestedProfile) -> StepFinding:
    profile = subject.profile
    name = profile.name or "none, the environment has all settings"
    return StepFinding(f"{name} ({profile.name_source})")


def _settings(subject: TestedProfile) -> StepFinding:
    profile = subject.profile
    profile.check_complete()
    for url in (profile.base_url, profile.provisioning_url):
        if url:
            checked_url(url)
    by_source: dict[str, list[str]] = {}
    for value in profile.values.values():
        if value.setting.connection and value.value is not None:
            by_source.setdefault(value.source, []).append(value.setting.name)
    if (proxy := subject.proxy) is not None:
        by_source.setdefault(f"environment {proxy.variable}", []).append(f"proxy {proxy}")
    sources = "; ".join(f"{', '.join(names)} from {source}" for source, names in by_source.items())
    text = f"{profile.method}: {sources}"
    if open_files := [str(file.path) for file in profile.secret_files if file.is_open_to_others]:
        close = Advice("close it with: ", CommandLine(f"chmod 600 {shlex.join(open_files)}"))
        return StepFinding(f"{text}; others can read {', '.join(open_files)}", close, WARNING)
    return StepFinding(text)


def _limits(subject: TestedProfile) -> StepFinding:
    guard = subject.profile.guard
    rules = [f"only queries and lists, by read_only of {guard.read_only_source}"] if guard.read_only else []
    if guard.max_rows is not None:
        rules.append(f"at most {counted(guard.max_rows, 'row')} in an answer, by max_rows of {guard.max_rows_source}")
    return StepFinding("; ".join(rules))


def _socket(subject: TestedProfile) -> StepFinding:
    path = Path(str(subject.profile.socket))
    try:
        unix_sockets.connect(path, subject.patience).close()
    except OSError as error:
        hint = (
            "start the service with 'svcctl service start', or run a query"
            if subject.profile.name in BUILT_IN
            else None
        )
        raise Unavailable(f"nothing answers at the socket {path}: {reason(error)}", hint=hint) from None
    return StepFinding(f"{path} answers")


def _name(subject: TestedProfile) -> StepFinding:
    proxy = subject.proxy
    host, port, via = subject.origin.host, subject.origin.port, ""
    if proxy is not None:
        host, port, via = proxy.host, proxy.port, f" (the proxy from {proxy.variable})"
    try:
        with blaming(proxy) if proxy is not None else nullcontext():
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except ProxyFailure as error:
        raise _proxy_unavailable(subject, error) from None
    except (OSError, UnicodeError) as error:
        raise Unavailable(
            f"the host {host} has no address: {reason(error)}",
            hint=f"check base_url for typos ('svcctl profile show {subject.name}'); the service may also need a VPN",
        ) from None
    return StepFinding(f"{host}{via} is {', '.join(dict.fromkeys(str(row[4][0]) for row in rows))}")


def _connection(subject: TestedProfile) -> StepFinding:
    host, port = subject.origin.host, subject.origin.port
    started = time.monotonic()
    try:
        subject.route.open(subject.origin, subject.patience).close()
    except ProxyFailure as error:
        raise _proxy_unavailable(subject, error) from None
    except TimeoutError:
        raise Unavailable(
            f"{host} port {port} does not answer in {length_text(subject.patience)}",
            hint="a firewall may block it; if you need a proxy, set the environment variable HTTPS_PROXY",
        ) from None
    except OSError as error:
        raise Unavailable(
            f"{host} port {port} cannot be reached: {reason(error)}",
            hint=f"check the host and port in base_url ('svcctl profile show {subject.name}')",
        ) from None
    via = f" through the proxy {subject.proxy}" if subject.proxy else ""
    return StepFinding(f"port {port}{via} after {length_text(time.monotonic() - started)}")


def _tls(subject: TestedProfile) -> StepFinding:
    where, route = subject.origin, subject.route
    if not where.secure:
        return StepFinding("none: plain http to this machine")
    try:
        with (
            route.open(where, subject.patience) as connection,
            route.secure(connection, where, subject.patience) as secured,
        ):
            version, certificate = secured.version(), secured.getpeercert() or {}
    except ProxyFailure as error:
        raise _proxy_unavailable(subject, error) from None
    except OSError as error:
        meaning, hint = addresses.tls_failure(error) or (reason(error), "check the port in base_url")
        failure = Unavailable(f"no TLS with {where.host} port {where.port}: {meaning}", hint=hint)
        failure.untrusted = addresses.is_untrusted(error)
        raise failure from None
    end = ssl.cert_time_to_seconds(str(certificate["notAfter"]))
    days = int((end - subject.clock()) // UNITS["d"])
    text = (
        f"{version}, certificate of {_part(certificate, 'subject')} by {_part(certificate, 'issuer')}, "
        f"until {datetime.fromtimestamp(end, UTC):%Y-%m-%d} ({counted(days, 'day')})"
    )
    if days < RENEW_DAYS:
        return StepFinding(text, "ask the operator of the service to renew it", WARNING)
    return StepFinding(text)


def _answer(subject: TestedProfile) -> StepFinding:
    """Check that the service answers.

    Raises an error if none of the operations in PERMISSIONS gets a proper answer. A refusal because of a missing
    permission is a proper answer.
    """
    errors = list(subject.answers.values())
    heard = [exchange for exchange in subject.exchanges if exchange.status is not None]
    if errors[0] is not None and (not heard or all(isinstance(error, Unavailable) for error in errors)):
        raise errors[0]
    surprises = [error for name in subject.answers if (error := _surprise(subject, name)) is not None]
    if surprises and not any(_is_answered(subject, name) for name in subject.answers):
        raise surprises[0]
    return StepFinding(f"HTTP {heard[0].status} after {length_text(heard[0].seconds)}")


def _tls_close(subject: TestedProfile) -> StepFinding:
    """Check whether the service ends TLS connections with the message close_notify.

    Without this message, an answer that was cut off can look complete.
    """
    accepted = subject.profile.accepts_any_close
    try:
        notified = subject.client.sends_close_notify()
    except SvcctlError:
        notified = None
    if notified is None:
        return StepFinding("not known: no connection ended during the check")
    if notified:
        return StepFinding("with close_notify" + (", so 'tls_close: any' is not needed" if accepted else ""))
    if accepted:
        return StepFinding("without close_notify, which 'tls_close: any' accepts: a cut answer may look complete")
    return StepFinding(
        "without close_notify: an answer without a length or chunks counts as incomplete (exit 7), unless its format "
        "marks its end",
        Advice(
            "ask for json, or accept such answers: ",
            CommandLine(f"svcctl profile set {subject.name} tls_close=any"),
        ),
        WARNING,
    )


def _clock(subject: TestedProfile) -> StepFinding:
    ahead = _ahead(subject)
    if ahead is None:
        return StepFinding("the service does not send its time")
    if abs(ahead) < 2:
        return StepFinding("the same as the service's")
    text = f"{length_text(round(abs(ahead)))} {'ahead of' if ahead > 0 else 'behind'} the service's"
    if abs(ahead) <= CLOCK_SKEW_SECONDS:
        return StepFinding(text)
    return StepFinding(text, "set this machine's clock: signatures contain the time", WARNING)


def _credentials(subject: TestedProfile) -> StepFinding:
    """Check the credentials.

    The check succeeds if an operation succeeded, or failed with an error that services send only for valid credentials.
    """
    errors = list(subject.answers.values())
    if any(not isinstance(error, CredentialsError | NotFound | Unavailable) or _is_ours(error) for error in errors):
        return StepFinding(f"the {'signature' if subject.profile.method == 'signature' else 'token'} is accepted")
    kinds = (CredentialsError, NotFound, Unavailable)
    error = next(error for kind in kinds for error in errors if isinstance(error, kind))
    if not isinstance(error, NotFound):
        raise error
    hint = (
        "check base_url, which ends before /search and /domain; if the service has other paths, set them "
        "(see 'svcctl help profiles')"
    )
    raise NotFound(error.message, code=error.code, cid=error.cid, hint=hint)


def advice(subject: TestedProfile, error: SvcctlError) -> str | None:
    """Return the advice for an error that has no hint; None if there is no advice for such an error."""
    match error:
        case CredentialsError():
            return CREDENTIAL_HINTS[subject.profile.method].format(subject.name)
        case Unavailable(untrusted=True):
            return trust_advice(subject.name)
    return None


def trust_advice(name: str) -> str:
    """Return the advice for a profile that does not trust the CA of its service."""
    return Advice("trust its CA: ", CommandLine(f"svcctl profile set {name} ca_bundle=FILE"))


def _permission(name: str, yes: str, no: str) -> Callable[[TestedProfile], StepFinding]:
    def step(subject: TestedProfile) -> StepFinding:
        error = subject.answers[name]
        if isinstance(error, Unavailable):
            raise error
        if isinstance(error, CredentialsError):
            return StepFinding(error.message, no, NO)
        if isinstance(error, NotFound) and not _is_ours(error):
            return StepFinding(
                f"nothing at this path ({error.message})", "set the path (see 'svcctl help profiles')", NO
            )
        if (surprise := _surprise(subject, name)) is not None:
            raise surprise
        return StepFinding(yes)

    return step


STEPS: Mapping[str, Callable[[TestedProfile], StepFinding]] = {
    "file": _file,
    "profile": _profile,
    "settings": _settings,
    "limits": _limits,
    "socket": _socket,
    "name": _name,
    "connection": _connection,
    "TLS": _tls,
    "answer": _answer,
    "TLS close": _tls_close,
    "clock": _clock,
    "credentials": _credentials,
    "queries": _permission("queries", "allowed", "ask the issuer of the key for the right to run queries"),
    "jobs": _permission("jobs", "allowed", "ask the issuer of the key for the right to forward queries"),
    "domains": _permission("domains", "allowed", "only 'svcctl domain' needs this right"),
}
"""The steps of the diagnosis, in order."""
WITH_A_SOCKET = {"socket": True, "name": False, "connection": False, "TLS": False, "TLS close": False}
"""The steps that apply only to some profiles.

The value of a step is True if the profile must have a socket, and False if the profile must not have a socket.
"""

CREDENTIAL_HINTS = {
    "signature": "set the key and secret again: 'svcctl profile set {} api_key=… api_secret=-'; "
    "if the service uses other header names, set them (see 'svcctl help profiles')",
    "token": "the token may have expired: set a new one with 'svcctl profile set {} token=-'",
    "jwt": "the token may have expired: set a new one with 'svcctl profile set {} token=-'",
}


def _query(client: Client, now: float) -> None:
    """Run a test query that returns no rows."""
    request = QueryRequest(query="from svcctl.check where false", from_=int(now) - 1, to=int(now), limit=1)
    with client.query(request) as answer:
        for _ in answer.raw():
            pass


PERMISSIONS: Mapping[str, Callable[[Client, float], object]] = {
    "jobs": lambda client, now: client.jobs(),
    "queries": _query,
    "domains": lambda client, now: client.domains(),
}
"""The permissions that are tested, each with an operation that needs the permission. The operations change nothing."""


def _error_of(subject: TestedProfile, ask: Callable[[Client, float], object]) -> SvcctlError | None:
    try:
        ask(subject.client, subject.clock())
    except SvcctlError as error:
        return error
    return None


def _surprise(subject: TestedProfile, name: str) -> SvcctlError | None:
    """Return the error of an operation if the error shows that the service does not work properly; otherwise None.

    A missing permission, an unknown path and an unavailable service do not count. A refusal of the test query counts
    only if it is a Conflict, or if another operation fails with the same message. If the domain of the account is
    disabled or pending, both operations fail with the same message.
    """
    error = subject.answers[name]
    if isinstance(error, CredentialsError | Unavailable) or (isinstance(error, NotFound) and not _is_ours(error)):
        return None
    if name != "queries" or isinstance(error, Conflict) or not isinstance(error, ServiceError):
        return error
    others = (other for kind, other in subject.answers.items() if kind != name and other is not None)
    return error if any(other.message == error.message for other in others) else None


def _is_answered(subject: TestedProfile, name: str) -> bool:
    """Return whether an operation succeeded, or failed only because the service refuses the test query."""
    error = subject.answers[name]
    refused = isinstance(error, ServiceError) and not isinstance(error, CredentialsError | NotFound)
    return error is None or (name == "queries" and refused and _surprise(subject, name) is None)


def _is_ours(error: SvcctlError | None) -> bool:
    """Return whether the code of an error shows that the service knows the operation.

    The result is False for an unknown path, and for an error about credentials.
    """
    unspecific = (None, 1, 404)
    return isinstance(error, ServiceError) and not isinstance(error, CredentialsError) and error.code not in unspecific


def _ahead(subject: TestedProfile) -> float | None:
    """Return the number of seconds by which this machine's clock is ahead of the service's clock.

    Returns None if the service sends no date. The precision is one second.
    """
    for exchange in subject.exchanges:
        for name, value in exchange.answer_headers:
            if name.lower() == "date":
                try:
                    return subject.clock() - parsedate_to_datetime(value).timestamp()
                except (ValueError, TypeError):
                    return None
    return None


def _proxy_unavailable(subject: TestedProfile, error: ProxyFailure) -> Unavailable:
    """Return the error for a step of the diagnosis that failed because of a proxy."""
    failure = Unavailable(str(error), hint=error.hint(subject.origin.host))
    failure.untrusted = addresses.is_untrusted(error)
    return failure


def _part(certificate: Mapping[str, object], whose: str) -> str:
    """Return the common name of the subject or issuer of a certificate, or else the name of the organisation."""
    names = {key: value for entry in certificate.get(whose) or () for key, value in entry}  # type: ignore[attr-defined]
    return str(names.get("commonName") or names.get("organizationName") or "an unnamed authority")
