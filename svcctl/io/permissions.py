"""The owner, group and permissions that a new file takes over from the file that it replaces.

The process may not be allowed to set the owner or the group. In this case, permissions that would give additional users
access to the file are removed.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_ACL = "system.posix_acl_access"
"""The extended attribute that holds a file's access control list."""


class Permissions(NamedTuple):
    """The permissions of a file.

    `acl` is the access control list in the kernel's form; None if the file has no list.
    """

    mode: int
    owner: int
    group: int
    acl: bytes | None = None

    @classmethod
    def of(cls, path: Path) -> Permissions | None:
        """Return the permissions of a file; None if the file does not exist. Links are followed."""
        try:
            status = path.stat()
        except FileNotFoundError:
            return None
        return cls(stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, _acl(path))

    def give(self, handle: int, *, all_bits: bool) -> None:
        """Apply these permissions to an open file. Before the call, the file must not have more permissions than these.

        The set-user-ID and set-group-ID bits are applied only with `all_bits`. Because each write to the file removes
        these bits, use `all_bits` only after the last write.
        """
        status = os.fstat(handle)
        with suppress(OSError):  # not permitted, or the file system has no owners
            if status.st_uid != self.owner:
                os.fchown(handle, self.owner, -1)
        with suppress(OSError):
            if status.st_gid != self.group:
                os.fchown(handle, -1, self.group)
        status = os.fstat(handle)
        owner_kept, group_kept = status.st_uid == self.owner, status.st_gid == self.group
        mode = mode_for_replacement(self.mode, owner_kept=owner_kept, group_kept=group_kept)
        acl_kept = _set_acl(handle, self.acl if group_kept else None)
        if self.acl is not None and not acl_kept:
            mode &= stat.S_IRWXU  # with an access control list, the group's bits are a mask, not permissions
        if not all_bits:
            mode &= 0o777
        if stat.S_IMODE(os.fstat(handle).st_mode) != mode:
            with suppress(OSError):  # the file system has no permissions
                os.fchmod(handle, mode)


def mode_for_replacement(mode: int, *, owner_kept: bool, group_kept: bool) -> int:
    """Return the mode for a new file that replaces a file with `mode`.

    The mode gives access only to users who had access to the old file.

    `owner_kept` and `group_kept` say whether the new file has the owner and the group of the old file.
    """
    if not owner_kept:  # the former owner is now a member of the group, or one of the others
        owner = mode >> 6 & 7
        mode &= ~(stat.S_ISUID | 0o77) | owner << 3 | owner
    if not group_kept:  # members of the former group are now others, and others may be in the new group
        both = mode >> 3 & mode & 7
        mode = (mode & ~(stat.S_ISGID | 0o77)) | both << 3 | both
    return mode


def _acl(path: Path) -> bytes | None:
    if sys.platform == "linux":
        with suppress(OSError):  # no list, or not supported by the file system
            return os.getxattr(path, _ACL)
    return None


def _set_acl(handle: int, acl: bytes | None) -> bool:
    """Set a file's access control list. If `acl` is None, remove the list that was inherited from the directory.

    Returns whether a list was set.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            if acl is not None:
                os.setxattr(handle, _ACL, acl)
                return True
            os.removexattr(handle, _ACL)
    return False
