"""The standard streams of the process. Everything that svcctl reads and prints goes through them.

`adopt` replaces Python's streams when the process begins, so that everything written to sys.stdout or sys.stderr comes
here: commands, help pages, loggers, tracebacks. A terminal gets text through `escapes.shown`, in its own encoding. A
pipe or a file gets bytes unchanged.
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
    """Replace the three streams of this process by streams that accept any text. Their descriptors must be open."""
    # Python sets sys.stdin to None if the descriptor was closed at the start.
    stdin: Any = sys.stdin or io.TextIOWrapper(io.FileIO(0, closefd=False))
    stdin.reconfigure(encoding=encoding.of_locale(), errors="surrogateescape")
    sys.stdin, sys.stdout, sys.stderr = stdin, _writer(Descriptor(1)), _writer(_Errors(2))


def _writer(stream: Descriptor) -> Any:
    codec = encoding.of_locale()
    return Terminal(stream, codec, has_glyphs(codec, os.environ)) if stream.isatty() else Text(stream, codec)


def has_glyphs(codec: str, environment: Mapping[str, str]) -> bool:
    """Whether a terminal can show lines, blocks and Braille: it needs a Unicode encoding and must not be dumb.

    A locale named C or POSIX may mean that a terminal can only show ASCII.
    """
    locale = next((environment[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environment.get(name)), "")
    return codec.startswith("utf") and environment.get("TERM") != "dumb" and locale not in ("C", "POSIX")


def wants_color(choice: str, stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether to use colours, from --color, NO_COLOR, CLICOLOR_FORCE, CLICOLOR, and whether the stream is a terminal.

    An empty variable counts as unset. A terminal without a Unicode encoding gets no colours.
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
    """Whether the cursor of the terminal can be moved."""
    return environment.get("TERM") not in ("dumb", "unknown")


class Descriptor(io.RawIOBase):
    """An unbuffered file descriptor. A failed write raises ReaderClosed for a closed pipe, else IncompleteResult."""

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
    """The descriptor of stderr. Its own failures are ignored, because they cannot be reported anywhere."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except ReaderClosed:
            return len(data)

    def _fail(self, error: OSError) -> None:
        pass


class Text(io.TextIOBase):
    """A stream that accepts any text and writes it in the encoding `codec`; `buffer` passes bytes on unchanged."""

    encoding = "utf-8"  # read by other libraries: any text can be written

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
    """A terminal to write on: text is made safe, unless it is Styled. `buffer` takes bytes in UTF-8.

    A terminal without `glyphs` gets three dots in place of `…`.
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
        """A text as the terminal will show it, for measuring its width."""
        return text if self.glyphs else text.replace("…", "...")

    def flush(self) -> None:
        self.buffer.flush()

    @contextmanager
    def paged(self, pager: str, above: Iterable[str]) -> Iterator[Paged]:
        """Show the output of the block in a pager, below the lines `above`, if it is longer than the screen.

        Returns when the person leaves the pager.
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
    """A terminal's stream for bytes in UTF-8. Other bytes are shown in hexadecimal."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._decoder = codecs.getincrementaldecoder(encoding.UTF_8)("backslashreplace")
        self._pending = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        """Write bytes, which may end in the middle of a character."""
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
    """Replace characters that an encoding lacks by similar ones, or by escapes."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end].translate(_LIKENESSES)
    return text.encode("ascii", "backslashreplace").decode("ascii"), error.end


codecs.register_error(_LIKENESS, _likeness)
