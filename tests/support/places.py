"""Places for tests on every kind of storage, opened in the way of users."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from peers.hdfs import HdfsPeer
from peers.processes import Peer
from peers.s3 import S3Peer

from svcctl.storage import Storage
from svcctl.storage.targets import open_target


@dataclass(frozen=True)
class Place:
    """A folder of a storage; `everything` returns the names of all objects, also of hidden ones."""

    target: str
    environment: Mapping[str, str]
    everything: Callable[[], list[str]]
    peer: Peer | None = None

    def open(self, name: str = "rows.csv") -> tuple[Storage, str]:
        return open_target(f"{self.target}/{name}", self.environment)


def local(path: Path) -> Place:
    return Place(str(path), {}, lambda: sorted(file.name for file in path.rglob("*") if file.is_file()))


def s3(peer: S3Peer) -> Place:
    bucket = peer.fresh_bucket()
    environment = {
        "AWS_ACCESS_KEY_ID": bucket.key,
        "AWS_SECRET_ACCESS_KEY": bucket.secret,
        "AWS_REGION": bucket.region,
        "AWS_ENDPOINT_URL": bucket.endpoint,
    }
    target = f"s3://{bucket.bucket}/folder"
    return Place(target, environment, lambda: [*bucket.objects("folder/"), *bucket.uploads()], bucket)


def hdfs(peer: HdfsPeer) -> Place:
    folder = peer.fresh_directory()

    def everything() -> list[str]:
        try:
            return list(peer.files(folder))
        except FileNotFoundError:
            return []

    return Place(f"{peer.default_fs}{folder}", {}, everything, peer)
