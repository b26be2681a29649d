"""Text that a command line takes from a file or from standard input; `-` is standard input everywhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from svcctl.errors import UsageError, reason

STDIN = "-"


def read(source: Path | str, what: str) -> str:
    """The text of a file or of standard input, in UTF-8. UsageError says that `what` cannot be read, and why."""
    try:
        return sys.stdin.read() if str(source) == STDIN else Path(source).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(source, what, error) from None


def read_bytes(source: Path | str, what: str) -> bytes:
    """The bytes of a file or of standard input. UsageError says that `what` cannot be read, and why."""
    try:
        return sys.stdin.buffer.read() if str(source) == STDIN else Path(source).read_bytes()
    except OSError as error:
        raise _unreadable(source, what, error) from None


def line(what: str) -> str:
    """The first line of standard input; UsageError when it is empty."""
    if text := sys.stdin.readline().rstrip("\r\n"):
        return text
    raise UsageError(f"standard input holds no {what}")


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
        while block := sys.stdin.buffer.read(1 << 20):
            spool.write(block)
        spool.flush()
        yield Path(spool.name)


def words(given: Iterable[str]) -> list[str]:
    """The given words, each once; the words of standard input replace `-`."""
    expanded = [word for one in given for word in (sys.stdin.read().split() if one == STDIN else [one])]
    return list(dict.fromkeys(expanded))


def name(source: Path | str) -> str:
    """A source as messages name it."""
    return "standard input" if str(source) == STDIN else str(source)


def _unreadable(source: Path | str, what: str, error: Exception) -> UsageError:
    return UsageError(f"{what} cannot be read from {name(source)}: {reason(error)}")
