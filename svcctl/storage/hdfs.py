"""Files in a Hadoop file system, over its native protocol.

While the file `/logs/web.csv` is being written, it has the name `/logs/.web.csv.part`. Programs that read a folder
ignore such names. When the file is complete, it is renamed. If a writer is killed, the incomplete file stays, and the
next writer of the same file overwrites it.

A new file gets the owner, group and permissions of the file that it replaces. Only a superuser can set all three. If
the user is not a superuser, the new file may have another owner or group.

The user name comes from the environment variable HADOOP_USER_NAME. Without this variable, the user of the process is
used. For a cluster with several NameNodes, the library reads settings from HADOOP_CONF_DIR. If a NameNode of such a
cluster accepts a connection and never answers, the library waits without limit.
"""

from __future__ import annotations

import posixpath
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from urllib.parse import urlsplit

from hdfs_native import Client, FileStatus, FileWriter, WriteOptions

from svcctl.errors import SvcctlError, UsageError
from svcctl.io.files import PART_SUFFIX, derived_name
from svcctl.io.permissions import mode_for_replacement
from svcctl.io.urls import names_host
from svcctl.storage import ACCESS_DENIED, AddressedFailure, Sink, Storage, absent, exists
from svcctl.storage.hdfs_probe import Probe
from svcctl.words import mask_urls

PIECE_BYTES = 1 << 20
FAILOVER_SETTINGS = {"dfs.client.failover.max.attempts": "2"}
"""Settings of the HDFS library that limit its attempts to connect. By default, the library tries for three minutes."""


class Hdfs(Storage):
    """The Hadoop file system at a URL, such as `hdfs://host:port`. The names of objects are paths from the root.

    `replication` is the number of copies of each block. If `replication` is None, the cluster decides. `address` is the
    IP address for connections. If `address` is None, the host of the URL is looked up.
    """

    def __init__(self, url: str, *, replication: int | None = None, address: str | None = None) -> None:
        if not names_host(url, "hdfs"):
            raise UsageError(f"'{mask_urls(url)}' is not a URL of the form hdfs://host:port")
        self._url = url.rstrip("/")
        port = urlsplit(url).port
        host = f"[{address}]" if address and ":" in address else address
        connected = f"hdfs://{host}:{port}" if host else self._url
        try:
            self._client = Client(connected, dict(FAILOVER_SETTINGS))
            self._probe = Probe(connected) if port else None
        except RuntimeError as error:  # the URL has no port, and the configuration has no cluster of this name
            raise UsageError(f"cannot use {self._url}: {_reason(error)}", hint="write hdfs://host:port") from None
        self._replication = replication

    def create(self, name: str, *, overwrite: bool, part_of: str | None = None) -> Sink:
        with self._explained(name):
            old = self._status(name)
            if old is not None and old.isdir:
                raise UsageError(f"{self.address(name)} is a directory")
            if old is not None and not overwrite:
                raise exists(self.address(name))
            like = old if part_of is None else self._status(part_of)
            self._client.mkdirs(posixpath.dirname(_path(name)), 0o755, create_parent=True)
            part = _part(_path(name))
            stream = self._client.create(part, self._options(0o600 & like.permission if like else None))
            if like is not None:
                self._hand_on(like, part)
            return _File(self._client, stream, part, _path(name), overwrite, partial(self._explained, name))

    def _options(self, permission: int | None = None) -> WriteOptions:
        return WriteOptions(overwrite=True, replication=self._replication, create_parent=True, permission=permission)

    def _hand_on(self, old: FileStatus, part: str) -> None:
        """Give the incomplete file `part` the owner, group and permissions of the file `old`.

        If the user may not set the owner or the group, the permissions are reduced, so that no other user gets new
        access.
        """
        for owner, group in ((old.owner, None), (None, old.group)):
            now = self._client.get_file_info(part)
            if owner not in (None, now.owner) or group not in (None, now.group):
                with suppress(OSError, RuntimeError):
                    self._client.set_owner(part, owner, group)
        now = self._client.get_file_info(part)
        mode = mode_for_replacement(
            old.permission, owner_kept=now.owner == old.owner, group_kept=now.group == old.group
        )
        self._client.set_permission(part, mode)

    def _status(self, name: str) -> FileStatus | None:
        with suppress(FileNotFoundError):
            return self._client.get_file_info(_path(name))
        return None

    def size(self, name: str) -> int | None:
        with self._explained(name):
            status = self._status(name)
            return None if status is None or status.isdir else status.length

    def read(self, name: str) -> Iterator[bytes]:
        try:
            with self._explained(name):
                file = self._client.read(_path(name))
                while piece := file.read(PIECE_BYTES):
                    yield piece
        except FileNotFoundError:
            raise absent(self.address(name)) from None

    def sizes(self, folder: str = "") -> Iterator[tuple[str, int]]:
        return ((file.path.removeprefix("/"), file.length) for file in self._listed(folder, recursive=True))

    def beginning(self, prefix: str) -> Iterator[str]:
        files = self._listed(prefix.rpartition("/")[0], recursive=False)
        return (name for file in files if (name := file.path.removeprefix("/")).startswith(prefix))

    def _listed(self, folder: str, *, recursive: bool) -> Iterator[FileStatus]:
        """Yield the complete files in a folder. With `recursive`, also yield the complete files in its subfolders."""
        with self._explained(folder), suppress(FileNotFoundError):
            for entry in self._client.list_status(_path(folder.rstrip("/")), recursive=recursive):
                if not entry.isdir and not _is_part(entry.path):
                    yield entry

    def folders(self, folder: str = "") -> Iterator[str]:
        with self._explained(folder), suppress(FileNotFoundError):
            for entry in self._client.list_status(_path(folder.rstrip("/")), recursive=False):
                if entry.isdir:
                    yield posixpath.basename(entry.path)

    def put_new(self, name: str, data: bytes) -> bool:
        path, part = _path(name), _part(f"{_path(name)}.{uuid.uuid4().hex}")
        try:
            with self._explained(name):
                with self._client.create(part, self._options()) as stream:
                    stream.write(data)
                self._client.rename(part, path, False)
        except UsageError:
            with self._explained(name):
                self._client.delete(part)
            if self.size(name) is not None:
                return False
            raise
        return True

    def remove(self, *names: str) -> None:
        for name in names:
            if self.size(name) is not None:
                with self._explained(name):
                    self._client.delete(_path(name))

    def remove_folder(self, name: str) -> None:
        with suppress(OSError, RuntimeError, ValueError):
            self._client.delete(_path(name.rstrip("/")), recursive=False)

    def address(self, name: str) -> str:
        return f"{self._url}/{name}"

    @contextmanager
    def _explained(self, name: str, *, probed: bool = True) -> Iterator[None]:
        """Turn the errors of the HDFS library into errors of svcctl. FileNotFoundError is not changed.

        If `probed` is true, the `with` block begins after the NameNode has answered a probe. Writes are not probed,
        because a probe would halve the speed of writing.
        """
        address = self.address(name)
        try:
            if probed and self._probe is not None:
                self._check(address)
            yield
        except FileNotFoundError:
            raise
        except FileExistsError:
            raise exists(address) from None
        except PermissionError as error:
            raise UsageError(f"access to {address} is denied", hint=_answer(error), reason=ACCESS_DENIED) from None
        except (OSError, RuntimeError, ValueError) as error:  # a refusal by the NameNode is a RuntimeError
            raise failure(address, error) from None

    def _check(self, address: str) -> None:
        """Raise Unavailable if the NameNode does not answer."""
        assert self._probe is not None
        try:
            self._probe.check()
        except (FileNotFoundError, FileExistsError, PermissionError):
            raise
        except OSError as error:
            reason = _reason(error).partition(" (os error")[0]
            raise AddressedFailure(
                address,
                f"no connection to {self._url}: {reason}",
                hint="check host and port of the NameNode, and that it runs",
            ) from None


class _File(Sink):
    """A file that is being written, under a temporary name."""

    def __init__(
        self,
        client: Client,
        stream: FileWriter,
        part: str,
        path: str,
        overwrite: bool,
        explained: Callable[..., AbstractContextManager[None]],
    ) -> None:
        self._client = client
        self._stream = stream
        self._part = part
        self._path = path
        self._overwrite = overwrite
        self._explained = explained
        self._over = False

    def write(self, data: bytes | memoryview, /) -> None:
        with self._explained(probed=False):
            self._stream.write(data)

    def complete(self) -> None:
        with self._explained():
            self._stream.close()
            self._client.rename(self._part, self._path, self._overwrite)
        self._over = True

    def abandon(self) -> None:
        if not self._over:
            with suppress(OSError, RuntimeError, SvcctlError), self._explained():
                self._client.delete(self._part)
        self._over = True


def _path(name: str) -> str:
    return f"/{name}"


def _part(path: str) -> str:
    folder, file = posixpath.split(path)
    return posixpath.join(folder, derived_name(file, prefix=".", suffix=PART_SUFFIX))


def _is_part(path: str) -> bool:
    file = posixpath.basename(path)
    return file.startswith(".") and file.endswith(PART_SUFFIX)


def failure(address: str, error: Exception) -> UsageError | AddressedFailure:
    """Return the error of svcctl for an error of the HDFS library.

    The errors of the library have no codes, so an invalid name is recognised by the text of the error.
    """
    if re.search("InvalidPathException|InvalidArgument", str(error)):
        return UsageError(f"{address}: {_reason(error)}", hint=_answer(error))
    return AddressedFailure(address, _reason(error), hint=_answer(error))


_VARIANT = re.compile(r'(\w+)\((?:"([\w.$]*)", )?"(.*?)(?:\\n|"\)|$)', re.DOTALL)
"""A pattern for the text of an error of the HDFS library.

The groups of the pattern are the kind of the error, the Java class of the NameNode's error, and the message.
"""


def _reason(error: Exception) -> str:
    """Return the reason for an error of the HDFS library: the first line of the error's message.

    If the NameNode has refused the request, the reason has only the Java class of the NameNode's error. The reason
    never repeats a text from the NameNode, which may be an untrusted server.
    """
    variant = _VARIANT.match(str(error))
    if variant is not None and "RPC" in variant[1]:
        name = re.split(r"[.$]", variant[2] or "")[-1]
        return f"the NameNode refuses it ({name})" if name else "the NameNode refuses it"
    return _line(variant[3] if variant else str(error)) or type(error).__name__


def _answer(error: Exception) -> str | None:
    """Return a hint with the NameNode's message, without the Java stack trace.

    Return None if there is no such message.
    """
    variant = _VARIANT.match(str(error))
    text = _line(variant[3] if variant else str(error) if isinstance(error, PermissionError) else "")
    return f"the NameNode says: {text}" if text else None


def _line(text: str) -> str:
    return " ".join(text.partition("\n")[0].split())[:500]
