"""Targets as people write them: `out/a.csv`, `s3://bucket/a.csv` or `hdfs://host/a.csv`.

A target names a storage, and an object in that storage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from svcctl.errors import UsageError
from svcctl.io import extras
from svcctl.storage import Storage
from svcctl.storage.local import LocalStorage


def _s3(place: str, environment: Mapping[str, str]) -> Storage:
    from svcctl.storage import s3

    return s3.from_environment(place, environment)


def _hdfs(place: str, environment: Mapping[str, str]) -> Storage:
    from svcctl.storage.hdfs import Hdfs

    return Hdfs(f"hdfs://{place}")


@dataclass(frozen=True, slots=True)
class Scheme:
    """A scheme of targets, such as s3. `place` is the word for the part after `://`.

    `extra` is the extra that must be installed. `open` opens the storage. Its arguments are the place and the
    environment. `open` imports the module of the storage late, because the packages of that module belong to an extra.
    """

    open: Callable[[str, Mapping[str, str]], Storage]
    place: str
    extra: str | None = None


SCHEMES: Mapping[str, Scheme] = {
    "s3": Scheme(_s3, "bucket", extra="s3"),
    "hdfs": Scheme(_hdfs, "host", extra="hdfs"),
}
"""The schemes, by the text before `://` in a target. A target without `://` is a local path."""


def open_target(target: str, environment: Mapping[str, str], *, take: bool = False) -> tuple[Storage, str]:
    """Return the storage of a target, and the name of the object in that storage. Opens no connection.

    With `take`, a local file that another process is writing is taken over. In other storages, writers are never kept
    out. The name is not interpreted, so it may be a pattern for names: `s3://bucket/{start:%Y/%m}.csv`. Raises
    UsageError if the scheme is unknown, the target names no object, or the environment lacks credentials (see s3.py).
    Raises MissingExtra if the packages are not installed.
    """
    scheme, separator, rest = target.partition("://")
    if not separator:
        return LocalStorage(take=take), target
    if scheme not in SCHEMES:
        *first, last = ("a local path", *(f"{name}://{row.place}/name" for name, row in SCHEMES.items()))
        raise UsageError(f"unknown kind of target '{target}'", hint=f"targets are {', '.join(first)} and {last}")
    place, _, name = rest.partition("/")
    if not place or not name or name.endswith("/"):
        raise UsageError(f"'{target}' names no object", hint=f"write {scheme}://{place or 'PLACE'}/NAME")
    row = SCHEMES[scheme]
    if row.extra is not None:
        extras.need(row.extra, f"the target {scheme}://")
    return row.open(place, environment), name
