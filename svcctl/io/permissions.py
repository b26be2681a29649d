"""The owner, group and permissions of a file that is replaced by another, which gets as much of them as possible.

A permission that would let somebody else read, write or run the new file is dropped: an owner or a group that this
process cannot set changes the meaning of the others' permissions.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_ACL = "system.posix_acl_access"
"""The attribute with the access control list of a file."""


class Permissions(NamedTuple):
    """The permissions of a file; `acl` is its access control list in the kernel's form, if it has one."""

    mode: int
    owner: int
    group: int
    acl: bytes | None = None

    @classmethod
    def of(cls, path: Path) -> Permissions | None:
        """Those of the file at a path, or at the end of a link; None if there is no file."""
        try:
            status = path.stat()
        except FileNotFoundError:
            return None
        return cls(stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, _acl(path))

    def give(self, handle: int, *, all_bits: bool) -> None:
        """Give them to an open file, which has none yet that these do not include.

        The set-user-ID and set-group-ID bits are given only with `all_bits`, because a write removes them.
        """
        status = os.fstat(handle)
        with suppress(OSError):  # this process may not, or the file system has no owners
            if status.st_uid != self.owner:
                os.fchown(handle, self.owner, -1)
        with suppress(OSError):
            if status.st_gid != self.group:
                os.fchown(handle, -1, self.group)
        status = os.fstat(handle)
        owner_kept, group_kept = status.st_uid == self.owner, status.st_gid == self.group
        mode = without_openings(self.mode, owner_kept=owner_kept, group_kept=group_kept)
        acl_kept = _set_acl(handle, self.acl if group_kept else None)
        if self.acl is not None and not acl_kept:
            mode &= stat.S_IRWXU  # the group's bits were the mask of the list, not permissions
        if not all_bits:
            mode &= 0o777
        if stat.S_IMODE(os.fstat(handle).st_mode) != mode:
            with suppress(OSError):  # the file system has no permissions
                os.fchmod(handle, mode)


def without_openings(mode: int, *, owner_kept: bool, group_kept: bool) -> int:
    """The mode for a file that replaces one of this mode, whose owner or group it may not have."""
    if not owner_kept:  # the former owner counts as one of the group or of the others
        owner = mode >> 6 & 7
        mode &= ~(stat.S_ISUID | 0o77) | owner << 3 | owner
    if not group_kept:  # members of the former group count as others, and others may be members of the new one
        both = mode >> 3 & mode & 7
        mode = (mode & ~(stat.S_ISGID | 0o77)) | both << 3 | both
    return mode


def _acl(path: Path) -> bytes | None:
    if sys.platform == "linux":
        with suppress(OSError):  # it has none, or the file system does not know them
            return os.getxattr(path, _ACL)
    return None


def _set_acl(handle: int, acl: bytes | None) -> bool:
    """Set the access control list of a file, or remove the one that its directory gave it; whether it has one now."""
    if sys.platform == "linux":
        with suppress(OSError):
            if acl is not None:
                os.setxattr(handle, _ACL, acl)
                return True
            os.removexattr(handle, _ACL)
    return False
