"""The shared folder behind a URI: its objects, and what the libraries need to reach the same ones."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import close
from pathlib import Path

from svcctl.errors import Unavailable, UsageError, reason
from svcctl.files import lock
from svcctl.service_settings import absolute
from svcctl.storage import Storage
from svcctl.storage.targets import SCHEMES, open_target

LOCK_SECONDS = 60.0
"""How long a commit waits for the lock."""

_log = logging.getLogger("svcctl.service")


class Folder:
    """A folder that holds tables. `lock_file` is a path that all writers share, for a store that needs one."""

    IDENTITY = ".svcctl"
    """The object below a folder that tells it from others, wherever it is mounted."""

    def __init__(self, uri: str, environment: Mapping[str, str], lock_file: Path | None = None) -> None:
        self.uri = absolute(uri).rstrip("/")
        _check(uri)
        storage, name = open_target(f"{self.uri}/-", environment)
        self.storage: Storage = storage
        self.local = Path(self.uri) if "://" not in self.uri else None
        self._top = name.removesuffix("-")
        self._environment = environment
        self._lock_file = lock_file
        self._honours: bool | None = None

    def name(self, path: str) -> str:
        """The object of a path below the folder, as the storage names it."""
        return f"{self._top}{path}"

    def names(self) -> list[str]:
        """The folders of tables, with those of tables that were dropped."""
        with self.reading():
            folders = self.storage.folders(self.name("").rstrip("/"))
            return sorted(name for name in folders if not name.startswith("."))

    def make(self) -> bool:
        """Make a local folder that is not there; whether it was. UsageError when it would not be in a folder."""
        if self.local is None or self.local.is_dir():
            return False
        if not self.local.parent.is_dir():
            raise UsageError(
                f"cannot make the shared folder {self.uri}: there is no folder {self.local.parent}",
                hint="check its path; if it is right, make the folder, or mount its disk",
            )
        try:
            self.local.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot make the shared folder {self.uri}: {reason(error)}") from None
        _log.info("made the shared folder %s", self.uri)
        return True

    def identity(self) -> str | None:
        """What tells this folder from others; None when it was not given an identity yet."""
        name = self.name(self.IDENTITY)
        with self.reading():
            found = self.storage.size(name) is not None and b"".join(self.storage.read(name))
        return found.decode(errors="replace").strip() if found else None

    def identify(self) -> str:
        """The identity of this folder, which is given one if it has none. UsageError when it cannot be written."""
        if (known := self.identity()) is not None:
            return known
        with self.writing():
            self.put_new(self.IDENTITY, uuid.uuid4().hex.encode())
        found = self.identity()
        assert found is not None
        return found

    def require(self) -> None:
        """Unavailable when a folder that had tables has none: a disk that is not mounted is such a folder.

        A table that was dropped keeps its log, so a folder never comes to be empty.
        """
        self.require_there()
        if not self.names():
            raise Unavailable(f"cannot read the shared folder {self.uri}: it had tables and is empty now")

    def require_there(self) -> None:
        """Unavailable when a local folder is not there: nobody knows which tables it has."""
        if self.local is not None and not self.local.is_dir():
            raise Unavailable(f"cannot read the shared folder {self.uri}: it is not there")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Access that is refused is an outage, since it may be granted."""
        try:
            yield
        except UsageError as error:
            raise Unavailable(f"cannot read the shared folder {self.uri}: {error.message}") from None

    def table_uri(self, table: str) -> str:
        return f"{self.uri}/{table}"

    @property
    def options(self) -> dict[str, str]:
        """The storage options of delta-rs, which knows the same variables."""
        if not self.uri.startswith("s3://"):
            return {}
        given = self._environment
        options = {
            "AWS_ACCESS_KEY_ID": given["AWS_ACCESS_KEY_ID"],
            "AWS_SECRET_ACCESS_KEY": given["AWS_SECRET_ACCESS_KEY"],
            "AWS_SESSION_TOKEN": given.get("AWS_SESSION_TOKEN", ""),
            "AWS_REGION": given.get("AWS_REGION") or given.get("AWS_DEFAULT_REGION") or "us-east-1",
            "AWS_ENDPOINT_URL": given.get("AWS_ENDPOINT_URL_S3") or given.get("AWS_ENDPOINT_URL", ""),
            "AWS_ALLOW_HTTP": "true",
            "aws_conditional_put": "etag",
        }
        return {name: value for name, value in options.items() if value}

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A commit belongs in such a block. UsageError when two writers of the store could both win."""
        if self._lock_file is not None:
            held = lock(self._lock_file, f"another process holds {self._lock_file}", patience=LOCK_SECONDS)
            try:
                yield
            finally:
                close(held)
            return
        if self._honours is None:
            self._honours = self._try()
        if not self._honours:
            raise UsageError(
                f"cannot write tables in {self.uri}: two writers of the same object would both be told that they won",
                hint="set SVCCTL_TABLES_LOCK to a file that all writers of this folder can lock",
            )
        yield

    def put_new(self, name: str, data: bytes) -> bool:
        """Store a small object below the folder unless there is one; for use in a `writing` block."""
        if self._lock_file is not None and self.storage.size(self.name(name)) is not None:
            return False
        return self.storage.put_new(self.name(name), data)

    def _try(self) -> bool:
        """Whether the store lets only one writer of an object win, by trying it."""
        name = self.name(f".trial-{uuid.uuid4().hex}")
        try:
            return self.storage.put_new(name, b"first") and not self.storage.put_new(name, b"second")
        finally:
            self.storage.remove(name)


def _check(uri: str) -> None:
    """UsageError for what is neither a path nor the URL of a place: `s3:/bucket` would be a folder named `s3:`."""
    scheme, separator, rest = uri.partition("://")
    meant = scheme if separator else uri.partition(":")[0]
    if (separator and meant not in SCHEMES) or (not separator and ":" in uri and meant in SCHEMES):
        raise UsageError(f"'{uri}' cannot hold tables", hint="name a path, hdfs://host:port/path or s3://bucket/path")
    if separator and not rest.partition("/")[0]:
        raise UsageError(
            f"'{uri}' names no {SCHEMES[meant].place}", hint=f"write {meant}://{SCHEMES[meant].place}/path"
        )
