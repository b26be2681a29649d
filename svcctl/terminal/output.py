"""All of stdout, and the files that take its place: where the bytes of a result go."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeVar

from svcctl import files
from svcctl.api.suggest import by_likeness
from svcctl.errors import IncompleteResult, UsageError
from svcctl.terminal import tables
from svcctl.terminal.diagnostics import Diagnostics, ReaderClosed
from svcctl.terminal.formats import Format

T = TypeVar("T")


class Rows(Protocol):
    """What a query's answer offers to be printed."""

    @property
    def columns(self) -> Sequence[Any]: ...
    def rows(self) -> Iterator[tuple[Any, ...]]: ...
    def raw(self) -> Iterator[bytes]: ...


class Writable(Protocol):
    """An unbuffered stream: rows that arrived are rows that can be read, and nothing is left to fail later."""

    def write(self, data: memoryview, /) -> int | None: ...


class Sink:
    """Where data goes. A closed pipe is the reader's choice; any other failed write makes the result incomplete.

    `before` is called before each write.
    """

    def __init__(self, stream: Writable, name: str, before: Callable[[], None] | None = None) -> None:
        self._stream = stream
        self._name = name
        self._before = before

    def write(self, data: bytes | memoryview) -> None:
        """Write all of it."""
        if self._before:
            self._before()
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._stream.write(rest) :]
        except BrokenPipeError:
            raise ReaderClosed from None
        except OSError as error:
            raise IncompleteResult(f"cannot write to {self._name}: {os.strerror(error.errno or 0)}") from None

    def line(self, text: str) -> None:
        """One line of text."""
        self.write((text + "\n").encode("utf-8", "backslashreplace"))


@contextmanager
def open_file(path: Path, *, force: bool) -> Iterator[Sink]:
    """A sink whose file appears under its name only when all of it was written and is on the disk.

    `.gz` compresses. UsageError when the file exists and `force` is not given, Locked when another run is writing it.
    Devices and pipes are written directly.
    """
    if path.exists() and not path.is_file():
        with _opened(path, lambda: path.open("wb", buffering=0)) as device:
            yield Sink(device, str(path))
        return
    if path.exists() and not force:
        raise UsageError(f"file {path} exists", hint="give another name, or --force to replace it")
    with _opened(path, lambda: files.Part(path)) as part:
        try:
            if path.suffix == ".gz":
                import gzip

                with gzip.GzipFile(filename="", fileobj=part.stream, mode="wb", compresslevel=6, mtime=0) as compressed:
                    yield Sink(compressed, str(path))
            else:
                yield Sink(part.stream, str(path))
            part.publish(overwrite=force)
        except FileExistsError:
            raise UsageError(
                f"file {path} was made by another meanwhile", hint="give another name, or --force"
            ) from None
        except OSError as error:
            raise IncompleteResult(f"cannot write to {path}: {os.strerror(error.errno or 0)}") from None


def _opened(path: Path, opening: Callable[[], T]) -> T:
    try:
        return opening()
    except OSError as error:
        raise UsageError(f"file {path} cannot be written: {os.strerror(error.errno or 0)}") from None


class Output:
    """The one owner of stdout."""

    def __init__(
        self, stdout: TextIO, diagnostics: Diagnostics, *, color: bool, style: tables.Style | None = None
    ) -> None:
        self._stdout = stdout
        self._diagnostics = diagnostics
        width = shutil.get_terminal_size().columns if stdout.isatty() else None
        self.style = replace(style or tables.Style(), width=width, color=color)
        # Data that may come to stand on the same terminal ends the progress line; a file goes on being counted.
        before = None if _is_file(stdout) else diagnostics.clear_progress
        self.sink = Sink(getattr(stdout.buffer, "raw", stdout.buffer), "standard output", before)

    @property
    def is_terminal(self) -> bool:
        return self._stdout.isatty()

    @contextmanager
    def target(self, path: Path | None, format: Format, *, force: bool) -> Iterator[Sink]:
        """The sink for a result: a file, or stdout. A terminal is no place for a binary format: UsageError."""
        if path is not None and str(path) != "-":
            with open_file(path, force=force) as sink:
                yield sink
            return
        if format.binary and self.is_terminal:
            raise UsageError(f"{format.name} is binary", hint="write it to a file with --output FILE, or pipe it")
        yield self.sink

    def query(self, answer: Rows, format: Format, sink: Sink, names: Sequence[str] = ()) -> None:
        """Print a query's answer as it arrives; in the formats laid out here only the named columns, if any are."""
        if format.raw:
            for chunk in answer.raw():
                sink.write(chunk)
            return
        values = answer.rows()
        columns, rows = _pick(_table_columns(answer.columns), values, names)
        self._write(columns, rows, format, sink, self.style)

    def records(self, columns: Sequence[tables.TableColumn], rows: Iterable[Sequence[Any]], format: Format) -> None:
        """Print a list in one of the list formats; what is not there is a dash in a table."""
        self._write(columns, rows, format, self.sink, replace(self.style, null="-"))

    def live(
        self,
        columns: Sequence[Any],
        rows: Iterable[Sequence[Any]],
        format: Format,
        sink: Sink,
        names: Sequence[str] = (),
    ) -> None:
        """Print rows as they arrive, from a query that may never end; only the named columns, if any are."""
        picked, values = _pick(_table_columns(columns), rows, names)
        self._write(picked, values, format, sink, replace(self.style, sample=0))

    def _write(
        self,
        columns: Sequence[tables.TableColumn],
        rows: Iterable[Sequence[Any]],
        format: Format,
        sink: Sink,
        style: tables.Style,
    ) -> None:
        """Write rows line by line; a file is not as wide as the terminal, and not coloured."""
        if sink is not self.sink:
            style = replace(style, width=None, color=False)
        for line in format.write(columns, rows, style, self._diagnostics.note):
            sink.line(line)

    def text(self, text: str) -> None:
        """A line that is the command's whole answer."""
        self.sink.line(text)

    def stream(self, chunks: Iterable[bytes], sink: Sink) -> None:
        """Pass bytes on as they come; a terminal gets them as text, whole lines, control characters made visible."""
        if sink is not self.sink or not self.is_terminal:
            for chunk in chunks:
                sink.write(chunk)
            return
        import codecs

        decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        text = ""
        for text in filter(None, map(decoder.decode, chunks)):
            sink.write(_shown(text).encode())
        rest = decoder.decode(b"", final=True)
        if rest or (text and not text.endswith("\n")):
            sink.line(_shown(rest))


def _shown(text: str) -> str:
    return "".join(part if part in ("\n", "\t") else tables.visible(part) for part in re.split("([\n\t])", text))


def _is_file(stream: TextIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:  # not a file of the system at all
        return False


def _table_columns(columns: Sequence[Any]) -> list[tables.TableColumn]:
    return [tables.TableColumn(column.name, column.type) for column in columns]


def _pick(
    columns: Sequence[tables.TableColumn], rows: Iterable[Sequence[Any]], names: Sequence[str]
) -> tuple[Sequence[tables.TableColumn], Iterable[Sequence[Any]]]:
    """The named columns in the order of the names, with their values; all columns when none is named."""
    if not names:
        return columns, rows
    known = [column.name for column in columns]
    for name in names:
        if name not in known:
            raise UsageError(f"no column '{name}'", hint=f"columns are: {', '.join(by_likeness(name, known))}")
    places = [known.index(name) for name in names]
    return [columns[at] for at in places], ([row[at] for at in places] for row in rows)
