"""Fixtures that run a test on every kind of storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from support.places import Place, hdfs, local, s3

PLACES: Mapping[str, Callable[[Any], Place]] = {"tmp_path": local, "s3_peer": s3, "ceph_peer": s3, "hdfs_peer": hdfs}
"""A row for each storage: the fixture with its directory or server, and what makes a place there."""


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Place:
    """A place in each kind of storage."""
    return PLACES[request.param](request.getfixturevalue(request.param))


@pytest.fixture(params=[*PLACES][1:])
def remote(request: pytest.FixtureRequest) -> Place:
    """A place in each kind of storage that has a server."""
    return PLACES[request.param](request.getfixturevalue(request.param))
