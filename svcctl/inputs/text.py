"""Text that a command line takes from a file or from standard input; `-` is standard input everywhere."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from svcctl import encoding
from svcctl.errors import UsageError, reason

STDIN = "-"


def read(source: Path | str, what: str) -> str:
    """The text of a file or of standard input. UsageError says that `what` cannot be read, and why."""
    try:
        text = encoding.decoded(read_bytes(source, what))
    except UnicodeDecodeError as error:
        raise _unreadable(source, what, error) from None
    return io.StringIO(text, newline=None).read()  # lines may end as on other systems


def read_bytes(source: Path | str, what: str) -> bytes:
    """The bytes of a file or of standard input. UsageError says that `what` cannot be read, and why."""
    try:
        return sys.stdin.buffer.read() if str(source) == STDIN else Path(source).read_bytes()
    except OSError as error:
        raise _unreadable(source, what, error) from None


def line(what: str) -> str:
    """The first line of standard input; UsageError when it is empty."""
    try:
        text = encoding.decoded(sys.stdin.buffer.readline()).rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(STDIN, what, error) from None
    if not text:
        raise UsageError(f"standard input holds no {what}")
    return text


@contextmanager
def as_file(source: Path, directory: Path) -> Iterator[Path]:
    """The file itself, or a temporary one in `directory` with what standard input holds. UsageError when it is none."""
    if str(source) != STDIN:
        if not source.is_file():
            raise UsageError(f"no file {source}")
        yield source.absolute()
        return
    import tempfile

    with tempfile.NamedTemporaryFile(dir=directory) as spool:
        while block := _block():
            spool.write(block)
        spool.flush()
        yield Path(spool.name)


def _block() -> bytes:
    """The next bytes of standard input."""
    try:
        return sys.stdin.buffer.read(1 << 20)
    except OSError as error:
        raise _unreadable(STDIN, "the file", error) from None


def words(given: Iterable[str]) -> list[str]:
    """The given words, each once; the words of standard input replace `-`."""
    expanded = [word for one in given for word in (read(one, "the list").split() if one == STDIN else [one])]
    return list(dict.fromkeys(expanded))


def name(source: Path | str) -> str:
    """A source as messages name it."""
    return "standard input" if str(source) == STDIN else str(source)


def _unreadable(source: Path | str, what: str, error: Exception) -> UsageError:
    return UsageError(f"{what} cannot be read from {name(source)}: {reason(error)}")
