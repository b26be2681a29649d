"""The free space on the disk that stores the service's data. Regular probes detect a full disk before a write fails."""

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
"""The interval between two probes of the disk, in seconds."""
_NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
"""The error numbers that a file system returns if it cannot reserve space."""
_NO_SPACE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_log = logging.getLogger("svcctl.service")


class Unwritable(Unavailable):
    """The error that is raised while the service cannot write its data.

    `detail` names the directory, for the operator.
    """

    def __init__(self, directory: Path, error: OSError) -> None:
        if error.errno in _NO_SPACE_ERRORS:
            message, why = "no space left for the data of the service", "less than 1 MB of its disk is free"
        else:
            message, why = "the data of the service cannot be written", reason(error)
        super().__init__(message, hint="try again when its disk has room and can be written")
        self.detail = f"directory {directory} cannot be written: {why}"


def reserve(directory: Path) -> None:
    """Reserve PROBE_BYTES in a temporary file, and release the space.

    Raises OSError if the disk has too little space.
    """
    with tempfile.TemporaryFile(dir=directory) as file:
        try:
            os.posix_fallocate(file.fileno(), 0, PROBE_BYTES)
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise


class Disk:
    """The disk that contains a directory.

    `failure` is the error of the last probe of the disk. `failure` is None if the last probe succeeded.
    """

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
        """Probe the disk if the last probe was at least PROBE_SECONDS ago.

        Writes to the log when probes begin to fail, when they fail for another reason, and when they succeed again.
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
