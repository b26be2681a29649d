"""Fixtures that run a test on every kind of storage."""

from __future__ import annotations

import pytest
from peers.hdfs import HdfsPeer
from support.places import Place, hdfs, local, s3

SERVERS = [
    "s3_peer",
    pytest.param("ceph_peer", marks=pytest.mark.slow),
    pytest.param("hdfs_peer", marks=pytest.mark.slow),
]


def opened(name: str, request: pytest.FixtureRequest) -> Place:
    if name == "local":
        return local(request.getfixturevalue("tmp_path"))
    peer = request.getfixturevalue(name)
    return hdfs(peer) if isinstance(peer, HdfsPeer) else s3(peer)


@pytest.fixture(params=["local", *SERVERS])
def place(request: pytest.FixtureRequest) -> Place:
    """A place in each kind of storage."""
    return opened(request.param, request)


@pytest.fixture(params=SERVERS)
def remote(request: pytest.FixtureRequest) -> Place:
    """A place in each kind of storage that has a server."""
    return opened(request.param, request)
