"""Targets in the form that users write: `out/a.csv`, `s3://bucket/a.csv` or `hdfs://host/a.csv`.

A target consists of a storage and the name of an object in the storage.
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
    """A scheme of targets, such as s3.

    `place` is a word for the text between `://` and the next slash, such as bucket. The function `open` takes this text
    and the environment variables, and returns the storage. `extra` is the name of the pip extra of svcctl that the
    storage needs.
    """

    open: Callable[[str, Mapping[str, str]], Storage]
    place: str
    extra: str | None = None


SCHEMES: Mapping[str, Scheme] = {
    "s3": Scheme(_s3, "bucket", extra="s3"),
    "hdfs": Scheme(_hdfs, "host", extra="hdfs"),
}
"""The schemes of targets, by the text before `://` in a target. A target without `://` is a local path."""


def open_target(target: str, environment: Mapping[str, str], *, take: bool = False) -> tuple[Storage, str]:
    """Return the storage of a target, and the name of the object in the storage. Opens no connection.

    With `take`, the storage takes over a local file that another process is writing. S3 and HDFS have no locks, so
    `take` does nothing there. The target may be a pattern such as `s3://bucket/{start:%Y/%m}.csv`, because the name of
    the object is not interpreted.

    Raises UsageError if the scheme is unknown, if the target does not name an object, or if credentials are missing
    (see s3.py). Raises MissingExtra if the needed packages are not installed.
    """
    scheme, separator, rest = target.partition("://")
    if not separator:
        return LocalStorage(take=take), target
    if scheme not in SCHEMES:
        *first, last = ("a local path", *(f"{name}://{row.place}/name" for name, row in SCHEMES.items()))
        raise UsageError(f"unknown kind of target '{target}'", hint=f"targets are {', '.join(first)} and {last}")
    place, _, name = rest.partition("/")
    if not place or not name or name.endswith("/"):
        raise UsageError(
            f"'{target}' is not the address of an object", hint=f"write {scheme}://{place or 'PLACE'}/NAME"
        )
    row = SCHEMES[scheme]
    if row.extra is not None:
        extras.need(row.extra, f"the target {scheme}://")
    return row.open(place, environment), name
