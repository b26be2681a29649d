"""The connection to a server that supports Spark Connect: its session, TLS and token, and its errors.

Errors of the server become errors of svcctl. A session ends when the server's process ends, and the server may also end
an idle session. The next statement then begins a new session.

This module sends gRPC messages itself. Spark's own client cannot be interrupted, and would wait minutes for a server
that has stopped. This module never logs or prints the token.
"""

from __future__ import annotations

import importlib
import re
import sys
import threading
import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from svcctl.errors import ServiceError, SvcctlError, Unavailable, UsageError
from svcctl.io import extras
from svcctl.service.engines.spark.patterns import Matcher
from svcctl.service.settings import SPARK_CA_BUNDLE, SPARK_TOKEN

PORT = 15002
REACHED_SECONDS = 3.0
"""The maximum time, in seconds, to wait until a server answers. The server may be restarting."""
REASON_SECONDS = 0.2
"""The maximum time, in seconds, to find the reason why a server does not answer."""
REQUEST_SECONDS = 30.0
"""The maximum time, in seconds, for a server to begin or end a session, or to receive an interrupt."""
MESSAGE_BYTES = 128 << 20
_TIME_ZONE = "spark.sql.session.timeZone"
_SESSION_SETTINGS = {
    _TIME_ZONE: "UTC",
    "spark.sql.ansi.enabled": "true",
    # With adaptive execution, a stage that begins during an interrupt would still run to its end.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "8192",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
_USER = "svcctl"
_CLASS = re.compile(r"^(?:\[[A-Z_.0-9]+\] |[\w.]+(?:Error|Exception): )+")
_ENDED = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "ABORTED", "DATA_LOSS")
_WHY = {
    "address lookup failed": ": its host cannot be found",
    "Connection refused": ": connection refused",
    "Failed parsing HTTP/2": ": the server there does not speak Spark Connect, or requires TLS",
    "WRONG_VERSION_NUMBER": ": the server there does not speak TLS, which a token or SVCCTL_SPARK_CA_BUNDLE requires",
}
"""Reasons why a server does not answer, for the end of the error message. The keys are parts of gRPC's message."""
_REFUSED = ("UNAUTHENTICATED", "PERMISSION_DENIED", "UNIMPLEMENTED")
_BROKEN = re.compile(r"Stream removed|Received (?:RST_STREAM|GOAWAY)|Socket closed|Connection reset")
"""A pattern for gRPC's message when a proxy in front of the server ends a call."""
_CERTIFICATE = re.compile("CERTIFICATE_VERIFY_FAILED|Peer name .* is not in peer certificate")
_LOST_SESSION = re.compile(r"SESSION_(?:CHANGED|CLOSED|NOT_FOUND)|INVALID_HANDLE|session [\w-]+ is not running")
"""A pattern for the messages of Spark and of Sail when the server no longer has a session."""
_HINT = "check SVCCTL_SPARK_TOKEN and SVCCTL_SPARK_CA_BUNDLE, which the service reads when it starts"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class SessionLost(Unavailable):
    """The server no longer has the session, and has not begun the statement."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server at sc://HOST:PORT. With a token or with certificate authorities, the connection uses TLS.

    For a server on this machine, a token alone does not turn on TLS.
    """

    uri: str
    token: str | None = field(default=None, repr=False)
    ca_bundle: Path | None = None

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.uri)
            good = parts.scheme == "sc" and bool(parts.hostname) and parts.port != 0
        except ValueError:
            good = False
        if not good or parts.username or parts.query or parts.path.strip("/"):
            hint = "write sc://HOST:PORT, as in sc://spark:15002; a token belongs in SVCCTL_SPARK_TOKEN"
            raise UsageError("this is not the address of a Spark Connect server", hint=hint)

    @classmethod
    def of(cls, uri: str, environment: Mapping[str, str]) -> Server:
        """Return the server at a URI, with the token and the certificate authorities from the environment."""
        bundle = SPARK_CA_BUNDLE.read(environment)
        return cls(uri, SPARK_TOKEN.read(environment), None if bundle is None else Path(bundle))

    @property
    def address(self) -> str:
        parts = urlsplit(self.uri)
        host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
        return f"{host}:{parts.port or PORT}"

    @property
    def encrypted(self) -> bool:
        here = urlsplit(self.uri).hostname in _LOOPBACK
        return self.ca_bundle is not None or (self.token is not None and not here)

    def authorities(self) -> bytes | None:
        """Return the trusted certificates from `ca_bundle`. Return None if the certificates of the system are used.

        Raises UsageError if the file cannot be read.
        """
        try:
            return self.ca_bundle.read_bytes() if self.ca_bundle else None
        except OSError as error:
            raise UsageError(
                f"cannot read {self.ca_bundle}: {error.strerror}", hint="see SVCCTL_SPARK_CA_BUNDLE"
            ) from None


class Session:
    """A session on a server. `matcher` is the syntax of the regular expressions that the server uses."""

    def __init__(self, channel: Any, token: str | None) -> None:
        from pyspark.sql.connect import proto

        self.proto: Any = proto
        self._stub = self.proto.SparkConnectServiceStub(channel)
        self._metadata = [("authorization", f"Bearer {token}")] if token else []
        self._who: dict[str, Any] = {"session_id": str(uuid.uuid4()), "user_context": proto.UserContext(user_id=_USER)}
        self._server_side: str | None = None
        pairs = [proto.KeyValue(key=key, value=value) for key, value in _SESSION_SETTINGS.items()]
        operation = proto.ConfigRequest.Operation(set=proto.ConfigRequest.Set(pairs=pairs))
        answer = self._stub.Config(
            self.proto.ConfigRequest(**self._who, operation=operation), metadata=self._metadata, timeout=REQUEST_SECONDS
        )
        self._server_side = answer.server_side_session_id or None
        self.matcher = self._find_matcher()

    def start(self, plan: Any, tag: str) -> Any:
        """Start a plan. Returns a gRPC call, which any thread may read or cancel."""
        request = self.proto.ExecutePlanRequest(
            **self._who, client_observed_server_side_session_id=self._server_side, plan=plan, tags=[tag]
        )
        return self._stub.ExecutePlan(request, metadata=self._metadata)

    def is_of(self, response: Any) -> bool:
        """Whether a response comes from this session.

        After a restart, the server may answer from a new session without the settings of this session.
        """
        return self._server_side in (None, response.server_side_session_id)

    def check(self) -> None:
        """Raise an error of gRPC if the server no longer has this session."""
        operation = self.proto.ConfigRequest.Operation(get=self.proto.ConfigRequest.Get(keys=[_TIME_ZONE]))
        request = self.proto.ConfigRequest(**self._who, operation=operation)
        self._stub.Config(request, metadata=self._metadata, timeout=REQUEST_SECONDS)

    def interrupt(self, tag: str) -> None:
        """Stop the work of a plan on the server. Errors of the server are ignored.

        If the connection was closed in the meantime, the session and its work have already ended.
        """
        import grpc

        kind = self.proto.InterruptRequest.InterruptType.INTERRUPT_TYPE_TAG
        request = self.proto.InterruptRequest(**self._who, interrupt_type=kind, operation_tag=tag)
        with suppress(grpc.RpcError, ValueError):  # a closed connection raises ValueError
            self._stub.Interrupt(request, metadata=self._metadata, timeout=REQUEST_SECONDS)

    def release(self) -> None:
        import grpc

        with suppress(grpc.RpcError):
            self._stub.ReleaseSession(
                self.proto.ReleaseSessionRequest(**self._who), metadata=self._metadata, timeout=REQUEST_SECONDS
            )

    def _find_matcher(self) -> Matcher:
        """Return the syntax of the regular expressions that the server uses.

        The server gets a pattern that Java accepts and Rust refuses. If the server accepts the pattern, the syntax is
        Java's.
        """
        import grpc

        query = "SELECT 'a' RLIKE '(?=a)' AS java"
        relation = self.proto.Relation(sql=self.proto.SQL(query=query))
        try:
            for _ in self.start(self.proto.Plan(root=relation), "svcctl-matcher"):
                pass
        except grpc.RpcError as error:
            if status(error) in (*_ENDED, *_REFUSED):
                raise
            return Matcher.RUST
        return Matcher.JAVA


class SparkConnection:
    """The current session on a server. The session begins at its first use."""

    def __init__(self, server: Server) -> None:
        extras.need("spark", "queries on Spark")
        self._server = server
        self._authorities = server.authorities()
        self._lock = threading.RLock()
        self._session: Session | None = None
        self._channel: Any = None

    def session(self, *, answers: bool = False) -> Session:
        """Return the current session. If there is no session, begin a new session.

        If `answers` is True, the caller knows that the server answers, and this method does not check that again.
        Raises Unavailable if the server does not answer, and ServiceError if the server refuses access.
        """
        with self._lock:
            if self._session is None:
                with self.translated(None):
                    self._session = Session(self._open() if answers else self._reached(), self._server.token)
            return self._session

    def forget(self, session: Session | None) -> None:
        """Discard a session, so that the next statement begins a new session."""
        with self._lock:
            if self._session is session:
                self._session = None

    def close(self) -> None:
        with self._lock:
            session, self._session = self._session, None
            if session is not None:
                session.release()
            if self._channel is not None:
                self._channel.close()
                self._channel = None

    def _open(self) -> Any:
        import grpc

        _import_messages()
        if self._channel is None:
            address = self._server.address
            options = [
                ("grpc.max_receive_message_length", MESSAGE_BYTES),
                ("grpc.max_send_message_length", MESSAGE_BYTES),
                ("grpc.enable_http_proxy", 0),
                # connect to a restarted server at once
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.min_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 2000),
            ]
            if self._server.encrypted:
                credentials = grpc.ssl_channel_credentials(root_certificates=self._authorities)
                self._channel = grpc.secure_channel(address, credentials, options)
            else:
                self._channel = grpc.insecure_channel(address, options)
        return self._channel

    def _reached(self) -> Any:
        """Wait until the server answers, and return a channel to the server.

        Raises Unavailable if the server does not answer, and ServiceError if the server's certificate is not trusted.
        """
        import grpc

        channel = self._open()
        try:
            grpc.channel_ready_future(channel).result(timeout=REACHED_SECONDS)
        except grpc.FutureTimeoutError:
            with self.translated(None):
                channel.unary_unary("/")(b"", timeout=REASON_SECONDS)  # this error has the reason of the last failure
            raise self.ended(None) from None
        return channel

    @contextmanager
    def translated(self, session: Session | None) -> Iterator[None]:
        """Turn errors of the server in the `with` block into ServiceError or Unavailable.

        Unavailable means that the server may answer later. The message of the error has one line.
        """
        import grpc
        import pyarrow as pa

        try:
            yield
        except (grpc.RpcError, pa.ArrowException, OSError) as error:
            raise self._error(error, session) from None

    def ended(self, session: Session | None, message: str = "") -> Unavailable:
        """Return the error for a server that has stopped or was restarted. `message` is gRPC's message."""
        self.forget(session)
        why = next((why for pattern, why in _WHY.items() if pattern in message), ", or has ended")
        return Unavailable(f"Spark at {self._server.address} does not answer{why}")

    def _error(self, error: Exception, session: Session | None) -> SvcctlError:
        if isinstance(error, OSError):  # an error in the files of a large result
            reason = error.strerror or str(error).partition("\n")[0]
            return Unavailable(f"the answer cannot be sent through the shared folder: {reason}")
        code, text = status(error), str(getattr(error, "details", lambda: error)())
        address = self._server.address
        if _CERTIFICATE.search(text):
            return ServiceError(f"the certificate of Spark at {address} is not accepted", hint=_HINT, code=500)
        if _LOST_SESSION.search(text):
            self.forget(session)
            return SessionLost(f"Spark at {address} has ended the session of this service")
        if code in _ENDED or _BROKEN.match(text):
            return self.ended(session, text)
        if code in _REFUSED:
            return ServiceError(f"Spark at {address} refuses this service", hint=_HINT, code=500)
        line = " ".join(_CLASS.sub("", text).strip().partition("\n")[0].split())[:300]
        return ServiceError(f"Spark cannot run the query: {line}", code=500)


def status(error: Exception) -> str | None:
    """Return the name of an error's gRPC status. Return None for an error that is not from gRPC."""
    code = getattr(error, "code", None)
    return None if code is None else str(code().name)


def _import_messages() -> None:
    """Import the Python classes of Spark's protocol messages, and hide the warnings of this import.

    With `python -c`, the module `__main__` has no `__file__`, and the import could end the program. So this function
    sets `__file__` during the import.
    """
    main = sys.modules["__main__"]
    nameless = not hasattr(main, "__file__")
    if nameless:
        main.__file__ = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module("pyspark.sql.connect.proto")
    finally:
        if nameless:
            del main.__file__
