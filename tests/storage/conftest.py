"""Fixtures that run a test on every kind of storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from support.places import Place, hdfs, local, s3

PLACES: Mapping[str, Callable[[Any], Place]] = {"tmp_path": local, "s3_peer": s3, "ceph_peer": s3, "hdfs_peer": hdfs}
"""A row for each storage: the fixture with its directory or server, and what makes a place there."""
SLOW = ("ceph_peer", "hdfs_peer")
ROWS = [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in PLACES]


@pytest.fixture(params=ROWS)
def place(request: pytest.FixtureRequest) -> Place:
    """A place in each kind of storage."""
    return PLACES[request.param](request.getfixturevalue(request.param))


@pytest.fixture(params=ROWS[1:])
def remote(request: pytest.FixtureRequest) -> Place:
    """A place in each kind of storage that has a server."""
    return PLACES[request.param](request.getfixturevalue(request.param))
