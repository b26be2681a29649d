"""S3 servers; tests read their objects through rclone, which implements signing and listing independently."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sysconfig
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from peers.processes import HOST, Peer, Process, free_port, running

RCLONE = Path(sysconfig.get_path("scripts"), "rclone")
KEY, SECRET, REGION = "PEERKEY", "peersecret", "us-east-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Peer(Peer):
    """An S3 server and a bucket; the bucket is part of the path, not of the host name."""

    endpoint: str
    bucket: str = ""
    key: str = KEY
    secret: str = SECRET
    region: str = REGION

    def fresh_bucket(self) -> S3Peer:
        """Return the same server with a new bucket that no other test uses."""
        fresh = replace(self, bucket=f"bucket-{uuid.uuid4().hex[:12]}")
        fresh.rclone("mkdir", f":s3:{fresh.bucket}")
        return fresh

    def objects(self, prefix: str = "") -> dict[str, bytes]:
        """Return the bucket's objects below a prefix that ends with a slash, by their full keys."""
        with tempfile.TemporaryDirectory() as copy:
            self.rclone("copy", f":s3:{self.bucket}/{prefix}", copy)
            files = [path for path in Path(copy).rglob("*") if path.is_file()]
            return {f"{prefix}{path.relative_to(copy).as_posix()}": path.read_bytes() for path in sorted(files)}

    def uploads(self) -> list[str]:
        """Return the keys of uploads that were neither completed nor aborted."""
        try:
            found = json.loads(self.rclone("backend", "list-multipart-uploads", f":s3:{self.bucket}"))
        except OSError as error:
            if "NoSuchUpload" in str(error):  # rclone's own server answers this for a bucket that never had an upload
                return []
            raise
        return sorted(upload["Key"] for upload in found[self.bucket])

    def rclone(self, *arguments: str) -> str:
        environment = {
            "RCLONE_S3_PROVIDER": "Other",
            "RCLONE_S3_ENDPOINT": self.endpoint,
            "RCLONE_S3_REGION": self.region,
            "RCLONE_S3_ACCESS_KEY_ID": self.key,
            "RCLONE_S3_SECRET_ACCESS_KEY": self.secret,
        }
        return _runrclone([*arguments, "--retries", "1", "--multi-thread-streams", "0"], environment)


def _runrclone(arguments: list[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        [RCLONE, "--config", "", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode:
        raise OSError(f"rclone {arguments[0]} failed: {done.stderr}")
    return done.stdout


@contextmanager
def rclone(directory: Path) -> Iterator[S3Peer]:
    """`rclone serve s3` over a directory: it checks signatures, and every object is a plain file."""
    port = free_port()
    objects = directory / "objects"
    objects.mkdir()
    server = Process(
        name="rclone",
        arguments=[
            *(RCLONE, "--config", "", "serve", "s3", objects, "--addr", f"{HOST}:{port}"),
            *("--auth-key", f"{KEY},{SECRET}"),
        ],
        directory=directory,
        ready=lambda: socket.create_connection((HOST, port), timeout=1).close(),
    )
    with running(server):
        yield S3Peer(server=server, endpoint=f"http://{HOST}:{port}").fresh_bucket()
