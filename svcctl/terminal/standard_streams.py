"""The standard streams of the process. Everything that svcctl reads and prints goes through these streams.

When the process begins, `adopt` replaces the streams that Python has opened. So even logs and tracebacks go through
this module. Text for a terminal is made safe by the function `escapes.shown`, and is written in the encoding of the
terminal. Bytes for a pipe or a file are unchanged.
"""

from __future__ import annotations

import codecs
import io
import os
import select
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO

from svcctl.errors import IncompleteResult, ReaderClosed, reason
from svcctl.io import encoding
from svcctl.terminal.escapes import shown
from svcctl.terminal.pager import Paged

_PLAIN = bytes((*b"\t\n", *range(0x20, 0x7F)))
_LIKENESSES = str.maketrans({"…": "...", "—": "-", "●": "*", "─": "-", "│": "|", "├": "+", "└": "+"})
_LIKENESS = "svcctl.likeness"


def adopt() -> None:
    """Replace the three standard streams with streams that accept any text. The descriptors 0, 1 and 2 must be open."""
    # If the descriptor was closed when Python started, sys.stdin is None.
    stdin: Any = sys.stdin or io.TextIOWrapper(io.FileIO(0, closefd=False))
    stdin.reconfigure(encoding=encoding.of_locale(), errors="surrogateescape")
    sys.stdin, sys.stdout, sys.stderr = stdin, _writer(Descriptor(1)), _writer(_Errors(2))


def _writer(stream: Descriptor) -> Any:
    codec = encoding.of_locale()
    return Terminal(stream, codec, has_glyphs(codec, os.environ)) if stream.isatty() else Text(stream, codec)


def has_glyphs(codec: str, environment: Mapping[str, str]) -> bool:
    """Return whether a terminal can show the Unicode characters of lines, blocks and Braille.

    The encoding must be Unicode, and TERM must not be `dumb`. With the locale C or POSIX, the result is False, because
    the terminal may be able to show only ASCII.
    """
    locale = next((environment[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environment.get(name)), "")
    return codec.startswith("utf") and environment.get("TERM") != "dumb" and locale not in ("C", "POSIX")


def wants_color(choice: str, stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Return whether to use colours. The option --color comes first, then the environment, then the kind of stream.

    The variables are NO_COLOR, CLICOLOR_FORCE and CLICOLOR. An empty variable counts as unset. Without the option and
    the variables, a stream has colours if it is a terminal with a Unicode encoding and TERM is not `dumb`.
    """
    if choice != "auto":
        return choice == "always"
    if environment.get("NO_COLOR"):
        return False
    if environment.get("CLICOLOR_FORCE") not in (None, "", "0"):
        return True
    if environment.get("CLICOLOR") == "0":
        return False
    unicode = getattr(stream, "codec", "utf-8").startswith("utf")
    return stream.isatty() and unicode and environment.get("TERM") != "dumb"


def moves(environment: Mapping[str, str]) -> bool:
    """Return whether the cursor of the terminal can be moved."""
    return environment.get("TERM") not in ("dumb", "unknown")


class Descriptor(io.RawIOBase):
    """An unbuffered stream on a file descriptor.

    A write raises ReaderClosed if the pipe is closed, and IncompleteResult if the write fails for another reason.
    """

    def __init__(self, number: int) -> None:
        self._number = number

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return os.isatty(self._number)

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        """Write all of the data."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._write(rest) :]
        except BrokenPipeError:
            raise ReaderClosed from None
        except OSError as error:
            self._fail(error)
        return len(data)

    def _write(self, data: memoryview) -> int:
        try:
            return os.write(self._number, data)
        except BlockingIOError:  # another program made the terminal or pipe non-blocking
            select.select([], [self._number], [])
            return 0

    def _fail(self, error: OSError) -> None:
        raise IncompleteResult(f"cannot write to standard output: {reason(error)}")


class _Errors(Descriptor):
    """The stream on the descriptor of stderr. Failed writes are ignored, because they cannot be reported anywhere."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except ReaderClosed:
            return len(data)

    def _fail(self, error: OSError) -> None:
        pass


class Text(io.TextIOBase):
    """A stream that accepts any text, and writes it in the encoding `codec`.

    Bytes that are written to `buffer` are unchanged.
    """

    encoding = "utf-8"  # other libraries read this attribute, and may then write any text

    def __init__(self, stream: io.RawIOBase, codec: str) -> None:
        self.stream = stream
        self.codec = codec
        self.buffer = stream

    def fileno(self) -> int:
        return self.stream.fileno()

    def isatty(self) -> bool:
        return self.stream.isatty()

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        self.stream.write(text.encode(self.codec, _LIKENESS))
        return len(text)


class Terminal(Text):
    """A stream on a terminal. Control characters are escaped, except in Styled text. `buffer` accepts bytes in UTF-8.

    On a terminal without `glyphs`, three dots are written instead of `…`.
    """

    def __init__(self, stream: io.RawIOBase, codec: str, glyphs: bool = True) -> None:
        super().__init__(stream, codec)
        self.glyphs = glyphs
        self.buffer = _Bytes(self)

    def write(self, text: str, /) -> int:
        self.buffer.flush()
        return self.put(text)

    def put(self, text: str) -> int:
        return super().write(self.plain(shown(text)))

    def plain(self, text: str) -> str:
        """Return a text as the terminal will show it, so that its width can be measured."""
        return text if self.glyphs else text.replace("…", "...")

    def flush(self) -> None:
        self.buffer.flush()

    @contextmanager
    def paged(self, pager: str, above: Iterable[str]) -> Iterator[Paged]:
        """Show the output of the block in a pager, below the lines `above`, if the output is longer than the screen.

        If a pager was started, the end of the block waits until the person has left the pager.
        """
        paged = Paged(self.stream, pager, (line.encode(self.codec, _LIKENESS) for line in above))
        self.stream = paged
        try:
            yield paged
        finally:
            try:
                self.flush()
            finally:
                self.stream = paged.terminal
                paged.finish()


class _Bytes(io.RawIOBase):
    """A stream for bytes in UTF-8 on a terminal. Bytes that are not UTF-8 are shown as hexadecimal escapes."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._decoder = codecs.getincrementaldecoder(encoding.UTF_8)("backslashreplace")
        self._pending = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        """Write bytes. The bytes may end in the middle of a character."""
        block = bytes(data)
        if not self._pending and not block.translate(None, _PLAIN):
            self._terminal.stream.write(block)
            return len(block)
        self._terminal.put(self._decoder.decode(block))
        self._pending = bool(self._decoder.getstate()[0])
        return len(block)

    def flush(self) -> None:
        """Write the bytes of an incomplete character."""
        if self._pending:
            self._pending = False
            self._terminal.put(self._decoder.decode(b"", final=True))


def _likeness(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace characters that are missing in an encoding by similar characters, or by escapes."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end].translate(_LIKENESSES)
    return text.encode("ascii", "backslashreplace").decode("ascii"), error.end


codecs.register_error(_LIKENESS, _likeness)
