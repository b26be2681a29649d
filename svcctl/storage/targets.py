"""Targets as people write them: the storage and the name of `out/a.csv`, `s3://bucket/a.csv` or `hdfs://host/a.csv`."""

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
    """A scheme of targets: the function that opens its storage, the word for its place, and the extra that it needs.

    `open` gets the place and the environment. It imports the storage's module late, because its packages are an extra.
    """

    open: Callable[[str, Mapping[str, str]], Storage]
    place: str
    extra: str | None = None


SCHEMES: Mapping[str, Scheme] = {
    "s3": Scheme(_s3, "bucket", extra="s3"),
    "hdfs": Scheme(_hdfs, "host", extra="hdfs"),
}
"""The schemes, by the text before `://` in a target. A target without a scheme is a local path."""


def open_target(target: str, environment: Mapping[str, str], *, take: bool = False) -> tuple[Storage, str]:
    """The storage of a target, and the name of the object in it. Connects to nothing.

    With `take`, a local file that another process is writing is taken over; in other storages that is always so. The
    name is used literally, so it may be a pattern of names: `s3://bucket/{start:%Y/%m}.csv`. UsageError if the scheme
    is unknown, the target names no object, or the environment lacks credentials (see s3.py). MissingExtra if the
    packages are not installed.
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
