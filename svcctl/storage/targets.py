"""Targets as a person writes them: which storage `out/a.csv`, `s3://bucket/a.csv` or `hdfs://host/a.csv` is in."""

from __future__ import annotations

from collections.abc import Mapping

from svcctl import extras
from svcctl.errors import UsageError
from svcctl.storage import Storage
from svcctl.storage.local import Local


def open_target(target: str, environment: Mapping[str, str]) -> tuple[Storage, str]:
    """The storage of a target, and the object's name in it. Connects to nothing.

    What follows the place is taken literally, so it may be a pattern of names: `s3://bucket/{start:%Y/%m}.csv`.
    UsageError when the target has another scheme or names no object, or when the environment lacks the credentials
    (see s3.py); MissingExtra when the packages are not installed.
    """
    scheme, separator, rest = target.partition("://")
    if not separator:
        return Local(), target
    place, _, name = rest.partition("/")
    if scheme not in ("s3", "hdfs"):
        raise UsageError(
            f"cannot write to '{target}'", hint="targets are a local path, s3://bucket/name and hdfs://host/name"
        )
    if not place or not name or name.endswith("/"):
        raise UsageError(f"'{target}' names no object", hint=f"write {scheme}://{place or 'PLACE'}/NAME")
    extras.need(scheme, f"the target {scheme}://")
    if scheme == "s3":
        from svcctl.storage import s3

        return s3.from_environment(place, environment), name
    from svcctl.storage.hdfs import Hdfs

    return Hdfs(f"hdfs://{place}"), name
