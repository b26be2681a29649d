"""Objects in a bucket of S3, or of a service with the same interface.

A small object is stored with one request. A larger object is uploaded in parts while it is written. A separate thread
uploads the parts. The S3 library aborts an upload only if the source of the bytes raises an error. So the source is a
generator, which waits for the bytes from `write`, and raises an error if the object is abandoned. If a writer is
killed, the parts of its upload are hidden, and stay until a rule of the bucket (AbortIncompleteMultipartUpload) removes
them.

`from_environment` reads the credentials from the same environment variables as other S3 clients:

    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY   required
    AWS_SESSION_TOKEN                          for temporary keys
    AWS_REGION, or AWS_DEFAULT_REGION          by default us-east-1
    AWS_ENDPOINT_URL_S3, or AWS_ENDPOINT_URL   URL of another S3 service

There are no options for credentials, because every user of a machine can see the arguments of a process.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from queue import Empty, Full, Queue
from typing import TYPE_CHECKING, Protocol

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import S3Store

from svcctl.errors import SvcctlError, UsageError
from svcctl.io.urls import names_host
from svcctl.storage import ACCESS_DENIED, AddressedFailure, Sink, Storage, absent, exists
from svcctl.words import mask_urls, plural

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Credential

UPLOAD_BYTES = 8 << 20
"""The size of a part of an upload, in bytes. S3 accepts at most 10000 parts, so an object has at most 83 GB."""
PIECE_BYTES = 1 << 20
"""The number of bytes that are collected before they are passed to the uploading thread."""
DEFAULT_REGION = "us-east-1"
CLIENT: ClientConfig = {"allow_http": True, "connect_timeout": "5s", "timeout": "60s"}
RETRY: RetryConfig = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}
"""The limits for the library's retries of a request: their maximum number, and their maximum total duration."""
_CAUSE = re.compile(r'\b(?:message|error): "([^"]+)"')
_OPERATION = re.compile(r"Error performing ([A-Z]+) ")
_STATUS = re.compile(r"Server returned non-2xx status code: (\d{3})\b")
_SAID = re.compile(r"<Code>(\w+)</Code>\s*<Message>([^<]*)</Message>")
_REASONS = {
    "without LOCATION": "was redirected without an address: check the region",
    "kind: Timeout": "was not answered in time",
    "kind: Decode": "got an answer that is not from S3",
    "Got invalid": "got an answer that is not from S3",
    "ETag Header missing": "got an answer that is not from S3",
}
"""The reasons for errors without an HTTP status. Each key is a part of the S3 library's message."""
CODES = (
    *("SignatureDoesNotMatch", "InvalidAccessKeyId", "RequestTimeTooSkewed", "ExpiredToken", "InvalidToken"),
    *("AccountProblem", "AllAccessDisabled", "NotSignedUp", "AuthorizationHeaderMalformed", "AccessDenied"),
    *("InvalidBucketName", "PermanentRedirect", "EntityTooLarge", "QuotaExceeded", "SlowDown", "ServiceUnavailable"),
)
"""The error codes of S3 that svcctl may repeat in a message. Any other text of an answer is left out of messages."""
DENIED = ("401", "403")
"""The HTTP statuses that mean denied access.

If a listing of objects is denied, the library raises a general error, and only the status shows the denial.
"""
NO_CONDITIONS = "501"
"""The HTTP status of services that refuse conditional requests. Some other services ignore the condition instead."""
ABANDON_SECONDS = 5.0
"""The maximum number of seconds that `abandon` waits for the server to remove the parts of the upload."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The credentials that sign requests to S3."""

    access_key: str
    secret_key: str
    session_token: str | None = None


def from_environment(bucket: str, environment: Mapping[str, str]) -> S3:
    """Return the storage for a bucket. The credentials come from environment variables.

    Raises UsageError if a required variable is missing. The message names the missing variables.
    """
    if missing := [name for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY") if not environment.get(name)]:
        raise UsageError(
            f"no credentials for s3://{bucket}: {' and '.join(missing)} {plural(len(missing), 'is', 'are')} not set",
            hint="set the AWS_* variables in the environment (AWS_ENDPOINT_URL too, for another S3 service)",
        )
    return S3(
        bucket,
        keys=Keys(
            environment["AWS_ACCESS_KEY_ID"],
            environment["AWS_SECRET_ACCESS_KEY"],
            environment.get("AWS_SESSION_TOKEN") or None,
        ),
        region=environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or DEFAULT_REGION,
        endpoint=environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL"),
    )


class S3Proxy(Protocol):
    """A proxy that remembers why the last connection through the proxy failed."""

    url: str

    def failure(self) -> SvcctlError | None:
        """Return the error of the last connection. Return None if the last connection succeeded."""


def endpoint_of(region: str) -> str:
    """Return the URL of Amazon S3 in a region."""
    return f"https://s3.{region}.amazonaws.com"


class S3(Storage):
    """A bucket of S3. Without `keys`, requests are not signed.

    `endpoint` is the URL of the S3 service. The default is Amazon's service. All connections go through `proxy`. If
    `proxy` is None, the environment variables choose the proxies.
    """

    def __init__(
        self,
        bucket: str,
        *,
        keys: Keys | None,
        region: str = DEFAULT_REGION,
        endpoint: str | None = None,
        proxy: S3Proxy | None = None,
    ) -> None:
        if endpoint and not names_host(endpoint, "http", "https"):
            raise UsageError(f"S3 endpoint '{mask_urls(endpoint)}' is not an http or https URL")
        self._bucket = bucket
        self._endpoint = endpoint or endpoint_of(region)
        self._proxy = proxy
        # Keys and endpoint are always passed. Otherwise the library would read both from the environment, and a job
        # would write with the credentials of the machine on which the service runs.
        self._store = S3Store(
            bucket,
            region=region,
            endpoint=self._endpoint,
            virtual_hosted_style_request=False,
            skip_signature=keys is None,
            credential_provider=_provider(keys),
            client_options=CLIENT if proxy is None else {**CLIENT, "proxy_url": proxy.url},
            retry_config=RETRY,
        )
        self._heeds_conditions = True

    def create(self, name: str, *, overwrite: bool, part_of: str | None = None) -> Sink:
        if not overwrite:
            self.refuse_taken(name)
        return _Object(self, name, overwrite=overwrite)

    def size(self, name: str) -> int | None:
        with self.translated(name), suppress(FileNotFoundError):
            return obstore.head(self._store, name)["size"]
        return None

    def read(self, name: str) -> Iterator[bytes]:
        try:
            with self.translated(name):
                for piece in obstore.get(self._store, name).stream(min_chunk_size=PIECE_BYTES):
                    yield bytes(piece)
        except FileNotFoundError:
            raise absent(self.address(name)) from None

    def sizes(self, folder: str = "") -> Iterator[tuple[str, int]]:
        try:
            with self.translated(folder):
                for page in obstore.list(self._store, folder or None, chunk_size=1000):
                    yield from ((str(item["path"]), item["size"]) for item in page)
        except FileNotFoundError:
            raise self._no_bucket() from None

    def beginning(self, prefix: str) -> Iterator[str]:
        folder = prefix.rpartition("/")[0]
        try:
            with self.translated(f"{prefix}*"):
                for page in obstore.list(self._store, folder or None, offset=prefix, chunk_size=1000):
                    for name in (str(item["path"]) for item in page):
                        if not name.startswith(prefix):  # the service lists names in order
                            return
                        if "/" not in name[len(prefix) :]:
                            yield name
        except FileNotFoundError:
            raise self._no_bucket() from None

    def folders(self, folder: str = "") -> Iterator[str]:
        try:
            with self.translated(folder):
                prefixes = obstore.list_with_delimiter(self._store, folder or None)["common_prefixes"]
        except FileNotFoundError:
            raise self._no_bucket() from None
        return (str(name).rpartition("/")[2] for name in prefixes)

    def put_new(self, name: str, data: bytes | bytearray) -> bool:
        if self._heeds_conditions:
            try:
                with self.translated(name):
                    obstore.put(self._store, name, data, mode="create")
                return True
            except AlreadyExistsError:
                return False
            except FileNotFoundError:
                raise self._no_bucket() from None
            except _NoConditions:
                self._heeds_conditions = False
        self.put(name, data)
        return True

    def remove(self, *names: str) -> None:
        with self.translated(next(iter(names), "")), suppress(FileNotFoundError):
            obstore.delete(self._store, names)

    def address(self, name: str) -> str:
        return f"s3://{self._bucket}/{name}"

    def put(self, name: str, data: bytes | bytearray | Iterator[bytearray]) -> None:
        """Store an object. An iterator is uploaded in parts. If the iterator raises an error, the upload is aborted."""
        parts = isinstance(data, Iterator)
        try:
            with self.translated(name):
                obstore.put(self._store, name, data, use_multipart=parts, chunk_size=UPLOAD_BYTES, max_concurrency=2)
        except FileNotFoundError:
            raise self._no_bucket() from None

    def _no_bucket(self) -> UsageError:
        return UsageError(f"bucket '{self._bucket}' does not exist")

    def refuse_taken(self, name: str) -> None:
        """Raise UsageError if an object with this name exists."""
        if self.size(name) is not None:
            raise exists(self.address(name))

    @contextmanager
    def translated(self, name: str) -> Iterator[None]:
        """Turn the errors of the S3 library into errors of svcctl.

        Two errors are not changed: FileNotFoundError for a missing object or bucket, and AlreadyExistsError.
        """
        try:
            yield
        except (FileNotFoundError, AlreadyExistsError):
            raise
        except (InvalidPathError, ValueError):
            raise UsageError(f"{self.address(name)} is not a valid name of an object") from None
        except (BaseError, OSError) as error:
            raise self._failure(name, error) from None

    def _failure(self, name: str, error: Exception) -> SvcctlError:
        """Return the error of svcctl for an error of the S3 library.

        A job or a redirect can choose any server, so the server may be untrusted. For this reason, the message of the
        error contains only the HTTP status and known error codes of S3. The server's own message is only in the hint.
        """
        if self._proxy is not None and (failure := self._proxy.failure()) is not None:
            return AddressedFailure(self.address(name), failure.message)
        text = str(error)
        code = next((f" ({code})" for code in CODES if f"<Code>{code}</Code>" in text), "")
        if isinstance(error, PermissionDeniedError | UnauthenticatedError):
            return UsageError(
                f"access to {self.address(name)} is denied{code}",
                hint="check the access key, the secret key and the permissions of the bucket",
                reason=ACCESS_DENIED,
            )
        operation = _OPERATION.search(text)
        request = operation[1] if operation else "the request"
        if (status := _STATUS.search(text)) is not None:
            kind = _NoConditions if status[1] == NO_CONDITIONS else AddressedFailure
            said = _SAID.search(text)
            hint = f"the service says: {said[1]}: {said[2]}"[:500] if said else None
            failure = kind(self.address(name), f"{request} was answered with {status[1]}{code}", hint=hint)
            if status[1] in DENIED:
                failure.reason = ACCESS_DENIED
            return failure
        # All lines except the first have details of the library. They also have the cause of a failed connection.
        if "kind: Connect" in text and (causes := _CAUSE.findall(text)):
            endpoint = mask_urls(self._endpoint)
            return AddressedFailure(
                self.address(name),
                f"no connection to {endpoint}: {causes[-1]}",
                hint="check the endpoint, and that its service is running",
            )
        reason = next((reason for mark, reason in _REASONS.items() if mark in text), "failed")
        return AddressedFailure(self.address(name), f"{request} {reason}", hint="check the endpoint")


class _NoConditions(AddressedFailure):
    """Raised if the service does not support conditional requests."""


class _Object(Sink):
    """An object that is being written. A small object is held in memory. A larger object is uploaded in parts."""

    def __init__(self, bucket: S3, name: str, *, overwrite: bool) -> None:
        self._bucket = bucket
        self._name = name
        self._overwrite = overwrite
        self._pending = bytearray()
        self._upload: _Upload | None = None
        self._over = False

    def write(self, data: bytes | memoryview, /) -> None:
        self._pending += data
        if len(self._pending) >= (PIECE_BYTES if self._upload else UPLOAD_BYTES):
            if self._upload is None:
                self._upload = _Upload(partial(self._bucket.put, self._name))
            piece, self._pending = self._pending, bytearray()
            self._upload.send(piece)

    def complete(self) -> None:
        if not self._overwrite:
            self._bucket.refuse_taken(self._name)
        if self._upload is None and self._overwrite:
            self._bucket.put(self._name, self._pending)
        elif self._upload is None:
            if not self._bucket.put_new(self._name, self._pending):
                raise exists(self._bucket.address(self._name))
        else:
            self._upload.send(self._pending)
            self._upload.finish()
        self._over = True

    def abandon(self) -> None:
        if self._upload is not None and not self._over:
            self._upload.abandon()
        self._over = True


class _Abandoned(Exception):
    """Raised to make the library abort an upload."""


class _Upload:
    """A thread that uploads the pieces of an object. The pieces are uploaded in the order of the calls of `send`."""

    def __init__(self, put: Callable[[Iterator[bytearray]], None]) -> None:
        self._put = put
        self._pieces: Queue[bytearray | None] = Queue(maxsize=1)
        self._failure: BaseException | None = None
        self._abandoned = False
        # A daemon thread does not keep the process alive if a caller has neither completed nor abandoned the sink.
        self._thread = threading.Thread(target=self._run, name="s3 upload", daemon=True)
        self._thread.start()

    def send(self, piece: bytearray | None) -> None:
        """Pass a piece to the uploading thread. Wait until the queue of the thread has room for the piece.

        If the upload has failed, raise the error of the upload.
        """
        if self._failure is None:
            self._pieces.put(piece)
        if self._failure is not None:
            raise self._failure

    def finish(self) -> None:
        self.send(None)
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def abandon(self) -> None:
        self._abandoned = True
        with suppress(Full):
            self._pieces.put_nowait(None)  # if the queue is full, the thread sees `_abandoned` after its next piece
        self._thread.join(ABANDON_SECONDS)

    def _run(self) -> None:
        try:
            self._put(self._source())
        except BaseException as error:
            self._failure = error
            with suppress(Empty):
                self._pieces.get_nowait()  # make room, because `send` may be waiting to put a piece

    def _source(self) -> Iterator[bytearray]:
        while (piece := self._pieces.get()) is not None and not self._abandoned:
            yield piece
        if self._abandoned:
            raise _Abandoned


def _provider(keys: Keys | None) -> Callable[[], S3Credential] | None:
    if keys is None:
        return None
    return lambda: {
        "access_key_id": keys.access_key,
        "secret_access_key": keys.secret_key,
        "token": keys.session_token,
        "expires_at": None,
    }
