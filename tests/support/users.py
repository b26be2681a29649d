"""Parts of tests that run as another user than root."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")


@contextmanager
def user(uid: int, gid: int, groups: Sequence[int] = ()) -> Iterator[None]:
    """Run the block without root's rights, in a group and in further groups."""
    before = os.getgroups()
    os.setgroups(groups)
    os.setegid(gid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(before)
