"""Text that a command reads from a file or from standard input. `-` always means standard input."""

from __future__ import annotations

import io
import os
import select
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO

from svcctl.errors import IncompleteResult, UsageError, reason
from svcctl.io import encoding, files, home
from svcctl.io.temporary import temporary

STDIN = "-"


def read(source: Path | str, what: str) -> str:
    """Read the text of a file or of standard input. Raises UsageError if reading fails.

    `what` is the word for the content in messages, such as `roles`.
    """
    try:
        text = encoding.decoded_text(read_bytes(source, what))
    except UnicodeDecodeError as error:
        raise _unreadable(source, what, error) from None
    return io.StringIO(text, newline=None).read()  # converts the line ends of other systems


def read_bytes(source: Path | str, what: str) -> bytes:
    """Read the bytes of a file or of standard input. Raises UsageError if reading fails.

    `what` is the word for the content in messages, such as `roles`.
    """
    try:
        if str(source) != STDIN:
            return Path(source).read_bytes()
        if sys.stdin.isatty():
            print(f"svcctl: reading {what} from the terminal; Ctrl-D ends it", file=sys.stderr)
        return sys.stdin.buffer.read()
    except OSError as error:
        raise _unreadable(source, what, error) from None


class InputLines:
    """The lines of standard input that are not blank, as bytes. Lines of a pipe can be read before the pipe ends."""

    def __init__(self, stdin: int) -> None:
        self._stdin = stdin
        self._bytes = b""

    def next(self, what: str) -> bytes:
        """Return the next line. Raises UsageError if there is no further line."""
        while b"\n" not in self._bytes.lstrip() and (block := self._block(what)):
            self._bytes += block
        line, _, self._bytes = self._bytes.lstrip().partition(b"\n")
        if not line:
            raise UsageError(f"standard input contains no {what}")
        return line

    def is_over(self, what: str) -> bool:
        """Return whether standard input has ended. This function does not wait for a line to arrive."""
        while not self._bytes.strip() and select.select([self._stdin], [], [], 0)[0] and (block := self._block(what)):
            self._bytes += block
        return not self._bytes.strip()

    def _block(self, what: str) -> bytes:
        try:
            return os.read(self._stdin, 1 << 16)
        except OSError as error:
            raise _unreadable(STDIN, what, error) from None


@contextmanager
def as_file(source: Path, directory: Callable[[], Path]) -> Iterator[Path]:
    """Yield the path of a regular file, which other processes can open and JSON can contain.

    Standard input, pipes and devices are copied to a temporary file. The same is done with a file whose path is not
    UTF-8. The copy of a regular file keeps the modification time, because a load finds years with it. The function
    `directory` returns the directory for the temporary file. Raises UsageError if `source` does not exist, and
    IncompleteResult if the directory has too little space.
    """
    # The links are followed here, because /dev/stdin is another file in another process.
    path = Path(os.path.realpath(source))
    if str(source) != STDIN and path.is_file() and name(path) == str(path):
        yield path
        return
    import tempfile

    with _opened(source) as stream, tempfile.TemporaryFile(dir=directory(), buffering=0) as spool:
        try:
            while block := _block(stream, source):
                files.write_all(spool, block)
        except OSError as error:
            raise IncompleteResult(
                f"cannot copy {name(source)} to {directory()}: {reason(error)}",
                hint="make room there, or save it to a file and load the file",
            ) from None
        # The temporary file has no name, so it disappears even if this process is killed.
        path = Path(f"/proc/{os.getpid()}/fd/{spool.fileno()}")
        if path.exists():
            _keep_time(stream, path)
            yield path
            return
        spool.seek(0)
        with temporary("load", directory()) as folder:
            with (folder / "spool").open("wb") as copy:
                shutil.copyfileobj(spool, copy)
            _keep_time(stream, folder / "spool")
            yield folder / "spool"


def _keep_time(stream: IO[bytes], path: Path) -> None:
    """Give the file at `path` the modification time of an open regular file. Do nothing for other streams."""
    with suppress(io.UnsupportedOperation):  # standard input may be an object without a descriptor
        status = os.fstat(stream.fileno())
        if stat.S_ISREG(status.st_mode):
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _opened(source: Path) -> AbstractContextManager[IO[bytes]]:
    if str(source) == STDIN:
        return nullcontext(sys.stdin.buffer)
    if source.is_dir():
        raise UsageError(f"{source} is a directory", hint="name the files in it")
    if not source.exists():
        raise UsageError(f"no file {source}")
    try:
        return source.open("rb")
    except OSError as error:
        raise _unreadable(source, "the file", error) from None


def _block(stream: IO[bytes], source: Path) -> bytes:
    try:
        return stream.read(1 << 20)
    except OSError as error:
        raise _unreadable(source, "the file", error) from None


def is_stdin(source: Path | str) -> bool:
    """Return whether a command reads standard input for `source`: for `-`, and for a path such as /dev/stdin."""
    return str(source) == STDIN or files.descriptor(Path(source)) == 0


def name(source: Path | str) -> str:
    r"""Return the name that messages use for a file or for standard input. Bytes that are not UTF-8 become \xe9."""
    return "standard input" if str(source) == STDIN else os.fsencode(source).decode(encoding.UTF_8, "backslashreplace")


def _unreadable(source: Path | str, what: str, error: Exception) -> UsageError:
    return home.unexpanded_error(source) or UsageError(f"{what} cannot be read from {name(source)}: {reason(error)}")
