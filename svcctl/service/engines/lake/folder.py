"""The shared folder at a URI: its objects, and the settings with which libraries access the objects.

A folder that was moved away, or is on a disk that is not mounted, must not be mistaken for a folder without tables. So
each folder has an identity, which is stored in an object in the folder. All code that reads or writes the folder runs
in a `with` block of `reading`, `checked` or `writing`. These methods check the identity.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import close
from os.path import realpath
from pathlib import Path

from svcctl.errors import Unavailable, UsageError, reason
from svcctl.io.files import lock
from svcctl.service.engines.paths import check_path
from svcctl.service.settings import absolute
from svcctl.storage import Absent, Storage
from svcctl.storage.targets import SCHEMES, open_target

_MISREAD = r"%?*\[\]{}\\\x00-\x1f\x7f"
_NO_NAME = r"//|(?:^|/)\.\.?(?=/|$)"
MISREAD: Mapping[str, re.Pattern[str]] = {
    "": re.compile(f"[{_MISREAD}]"),
    "s3": re.compile(f"[{_MISREAD}#]|{_NO_NAME}"),
    "hdfs": re.compile(f'[{_MISREAD}# "<>`]|[^\0-\x7f]|{_NO_NAME}'),
}
"""Patterns for characters that a library misreads in a path, keyed by the scheme of the folder's URI.

With such a character in the path, a load could store rows where no query finds them, or a query could read the wrong
folder.
"""

LOCK_SECONDS = 60.0
"""The maximum time, in seconds, that a commit waits for the lock on `lock_file`."""

_log = logging.getLogger("svcctl.service")


class Folder:
    """A shared folder of tables. With `lock_file`, every writer locks this file during a commit."""

    IDENTITY = ".svcctl"
    """The name of the object that contains the folder's identity.

    The identity stays the same if the folder is mounted elsewhere.
    """

    def __init__(self, uri: str, environment: Mapping[str, str], lock_file: Path | None = None) -> None:
        self.uri = absolute(uri).rstrip("/")
        _check(uri)
        _check_characters(self.uri)
        storage, name = open_target(f"{self.uri}/-", environment)
        self.storage: Storage = storage
        self.local = Path(self.uri) if "://" not in self.uri else None
        self._top = name.removesuffix("-")
        self._environment = environment
        self._lock_file = lock_file
        self._honours: bool | None = None
        self._identity: str | None = None

    def name(self, path: str) -> str:
        """Return the name that the storage uses for the object at a path below the folder."""
        return f"{self._top}{path}"

    def names(self) -> list[str]:
        """Return the names of the tables' folders, including the folders of dropped tables."""
        with self.reading():
            folders = self.storage.folders(self.name("").rstrip("/"))
            return sorted(name for name in folders if not name.startswith("."))

    def create(self) -> bool:
        """Make the folder and its identity if they are missing. Return whether the identity was made.

        Raises UsageError if the parent folder does not exist, or if the folder cannot be written.
        """
        if self.local is not None and not self.local.is_dir():
            self._make(self.local)
        if self.identity() is not None:
            return False
        with self._exclusive():
            made = self.put_new(self.IDENTITY, uuid.uuid4().hex.encode())
        if made:
            _log.info("made the shared folder %s", self.uri)
        return made

    def _make(self, local: Path) -> None:
        if not local.parent.is_dir():
            raise UsageError(
                f"cannot make the shared folder {self.uri}: there is no folder {local.parent}",
                hint="check its path; if it is right, make the folder, or mount its disk",
            )
        try:
            local.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot make the shared folder {self.uri}: {reason(error)}") from None

    def identity(self) -> str | None:
        """Return the present identity of the folder at the URI.

        Return None if the folder or its identity is missing.
        """
        with self._granted():
            try:
                content = b"".join(self.storage.read(self.name(self.IDENTITY)))
            except Absent:
                return None
        return content.decode(errors="replace").strip() or None

    def require(self, identity: str | None = None) -> None:
        """Raise Unavailable if the folder is missing, or if another folder is in its place.

        The folder must have the identity `identity`, now and at later checks. If `identity` is None, the folder must
        have the same identity as at earlier checks.
        """
        self._identity = identity or self._identity
        cannot, current = f"cannot read the shared folder {self.uri}", self.identity()
        hint = (
            "check its path, and that its disk is mounted"
            if self._identity is None
            else f"check that its disk is mounted; to use another folder in its place, write {self._identity} into that"
            f" folder's file {self.IDENTITY}"
        )
        if current is None:
            gone = self.local is not None and not self.local.is_dir()
            why = "it does not exist" if gone else f"it has no file {self.IDENTITY}"
            raise Unavailable(f"{cannot}: {why}", hint=hint, reason=None if self._identity else "no-folder")
        self._identity = self._identity or current
        if current != self._identity:
            raise Unavailable(f"{cannot}: another folder is in its place", hint=hint)

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Check the folder before and after the `with` block.

        Raises Unavailable if the folder is missing or was replaced. This error replaces any error of the block.
        """
        self.require()
        try:
            yield
        finally:
            self.require()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read from the folder in the `with` block.

        Raises Unavailable if the folder is missing or was replaced, or if the storage refuses access.
        """
        with self.checked(), self._granted():
            yield

    @contextmanager
    def _granted(self) -> Iterator[None]:
        """Raise Unavailable if the storage refuses access in the `with` block."""
        try:
            yield
        except UsageError as error:
            raise Unavailable(f"cannot read the shared folder {self.uri}: {error.message}") from None

    def table_uri(self, table: str) -> str:
        return f"{self.uri}/{table}"

    @property
    def options(self) -> dict[str, str]:
        """The options with which delta-rs accesses the storage.

        Most of the options have the names of environment variables.
        """
        if not self.uri.startswith("s3://"):
            return {}
        environment = self._environment
        options = {
            "AWS_ACCESS_KEY_ID": environment["AWS_ACCESS_KEY_ID"],
            "AWS_SECRET_ACCESS_KEY": environment["AWS_SECRET_ACCESS_KEY"],
            "AWS_SESSION_TOKEN": environment.get("AWS_SESSION_TOKEN", ""),
            "AWS_REGION": environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1",
            "AWS_ENDPOINT_URL": environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL", ""),
            "AWS_ALLOW_HTTP": "true",
            "aws_conditional_put": "etag",
        }
        return {name: value for name, value in options.items() if value}

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run a commit in the `with` block. If several writers try to make the same commit, only one of them succeeds.

        Raises UsageError if the store cannot guarantee that only one writer succeeds. If Unavailable is raised, the
        commit may or may not have been made.
        """
        with self.checked(), self._exclusive():
            yield

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        if self._lock_file is not None:
            descriptor = lock(self._lock_file, f"another process holds {self._lock_file}", patience=LOCK_SECONDS)
            try:
                yield
            finally:
                close(descriptor)
            return
        if self._honours is None:
            self._honours = self._try()
        if not self._honours:
            raise UsageError(
                f"cannot write tables in {self.uri}: its store lets two writers of the same object both succeed",
                hint="set SVCCTL_TABLES_LOCK to a file that all writers of this folder can lock",
            )
        yield

    def put_new(self, name: str, data: bytes) -> bool:
        """Store a small new object below the folder. Returns False if the object exists.

        Call this method only in a `writing` block.
        """
        if self._lock_file is not None and self.storage.size(self.name(name)) is not None:
            return False
        return self.storage.put_new(self.name(name), data)

    def _try(self) -> bool:
        """Return whether this store refuses to create an object that already exists.

        This method tries to create the same object twice.
        """
        name = self.name(f".trial-{uuid.uuid4().hex}")
        try:
            return self.storage.put_new(name, b"first") and not self.storage.put_new(name, b"second")
        finally:
            self.storage.remove(name)


def _check(uri: str) -> None:
    """Raise UsageError for a text that is neither a path nor a URL.

    For example, `s3:/bucket` is refused. As a path, it would mean a local folder with the name `s3:`.
    """
    scheme, separator, rest = uri.partition("://")
    meant = scheme if separator else uri.partition(":")[0]
    if (separator and meant not in SCHEMES) or (not separator and ":" in uri and meant in SCHEMES):
        raise UsageError(
            f"'{uri}' cannot be a shared folder of tables",
            hint="name a path, hdfs://host:port/path or s3://bucket/path",
        )
    if separator and not rest.partition("/")[0]:
        raise UsageError(f"'{uri}' has no {SCHEMES[meant].place}", hint=f"write {meant}://{SCHEMES[meant].place}/path")


def _check_characters(uri: str) -> None:
    """Raise UsageError for a path that a library misreads.

    For a local folder, also check the path to which symbolic links lead.
    """
    scheme, _, rest = uri.partition("://") if "://" in uri else ("", "", uri)
    path = rest.partition("/")[2] if scheme == "hdfs" else rest  # the host may have brackets
    for place in (path, path if scheme else realpath(path)):
        check_path(place, MISREAD[scheme], f"the shared folder {uri}")
