"""HDFS: csv files beside each other, `<file>_<nnn>` before the extension: `/logs/web.csv` is `/logs/web_000.csv`, ….

While it is written, a file is `.<name>.part`, which readers of a folder pass over; then it is renamed. So a writer that
was killed leaves whole files and one hidden part, which its successor writes again. As for s3, `retention.size` (MB,
1 to 10000, 128 unless given) and `retention.time` (seconds, 1 to 86400, 300 unless given) say when a file is complete.
"""

from __future__ import annotations

import posixpath
from urllib.parse import urlsplit

from hdfs_native import Client, WriteOptions

from svcctl.service.destinations import Memo
from svcctl.service.destinations.params import Params
from svcctl.service.destinations.parts import MEGABYTE, Parts, Sink

PATIENCE = {"dfs.client.failover.max.attempts": "2"}
"""Else the library tries for three minutes before it says that nobody answers."""


class Hdfs(Parts):
    # what a NameNode answers, that it is in safe mode for example, comes as a RuntimeError
    failures = (OSError, RuntimeError, ValueError)

    def __init__(self, job_id: str, params: Params) -> None:
        self._url = params.required("fs.defaultFS")
        if urlsplit(self._url).scheme != "hdfs" or not urlsplit(self._url).hostname:
            raise params.refused("fs.defaultFS", "is not of the form hdfs://host:port")
        self._file = params.required("file")
        if not self._file.startswith("/") or self._file.endswith("/"):
            raise params.refused("file", "is not the whole path of a file")
        self._replication = params.number("dfs.replication", 1, 512, 0) if params.text("dfs.replication") else None
        super().__init__(
            size=params.number("retention.size", 1, 10_000, 128) * MEGABYTE,
            age=float(params.number("retention.time", 1, 86_400, 300)),
        )

    def name(self, number: int) -> str:
        stem, extension = posixpath.splitext(self._file)
        return f"{stem}_{number:03}{extension}"

    def open(self, sent: int, memo: Memo, head: bytes) -> int:
        self._client = Client(self._url, dict(PATIENCE))
        return super().open(sent, memo, head)

    def create(self, name: str) -> Sink:
        self._client.mkdirs(posixpath.dirname(name), 0o755, True)
        options = WriteOptions(overwrite=True, replication=self._replication, create_parent=True)
        self._stream = self._client.create(_hidden(name), options)
        return self._stream

    def complete(self, name: str) -> None:
        self._stream.close()
        self._client.rename(_hidden(name), name, True)


def _hidden(name: str) -> str:
    folder, file = posixpath.split(name)
    return posixpath.join(folder, f".{file}.part")
