"""The free space on the disk with the service's data. Regular probes find a full disk before a write fails."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from svcctl.errors import Unavailable, reason

PROBE_BYTES = 1 << 20
PROBE_SECONDS = 5.0
"""The interval, in seconds, at which the disk is probed."""
_NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
"""The error numbers of file systems that cannot reserve space."""
_NO_SPACE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_log = logging.getLogger("svcctl.service")


class Unwritable(Unavailable):
    """The error while the service's data cannot be written. `detail` is for the operator and names the directory."""

    def __init__(self, directory: Path, error: OSError) -> None:
        if error.errno in _NO_SPACE_ERRORS:
            message, why = "no space left for the data of the service", "less than 1 MB of its disk is free"
        else:
            message, why = "the data of the service cannot be written", reason(error)
        super().__init__(message, hint="try again when its disk has room and can be written")
        self.detail = f"directory {directory} cannot be written: {why}"


def reserve(directory: Path) -> None:
    """Reserve PROBE_BYTES in a temporary file, and release them. Raises OSError if the disk has no room for them."""
    with tempfile.TemporaryFile(dir=directory) as file:
        try:
            os.posix_fallocate(file.fileno(), 0, PROBE_BYTES)
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise


class Disk:
    """The disk of a directory. `failure` is the error of the last probe; None if the disk could be written."""

    def __init__(
        self,
        directory: Path,
        *,
        probe: Callable[[Path], None] = reserve,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory
        self._probe = probe
        self._monotonic = monotonic
        self._next = monotonic()
        self.failure: Unwritable | None = None

    def look(self) -> None:
        """Probe the disk, unless the last probe was less than PROBE_SECONDS ago.

        Log when the disk becomes full, and when it has room again.
        """
        if self._monotonic() < self._next:
            return
        before = self.failure
        try:
            self._probe(self._directory)
            self.failure = None
        except OSError as error:
            self.failure = Unwritable(self._directory, error)
        self._next = self._monotonic() + PROBE_SECONDS
        if self.failure is not None and (before is None or before.detail != self.failure.detail):
            _log.warning("%s", self.failure.detail)
        elif before is not None and self.failure is None:
            _log.info("directory %s can be written again", self._directory)

    def check(self) -> None:
        """Raise Unwritable if the last probe of the disk failed."""
        if self.failure is not None:
            raise self.failure

    def free(self) -> int:
        """Return the number of free bytes on the disk."""
        return shutil.disk_usage(self._directory).free
