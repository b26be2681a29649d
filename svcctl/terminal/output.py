"""The output of data, to stdout or to a file. Only this module writes results."""

from __future__ import annotations

import errno
import os
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO, TypeVar

from svcctl.errors import Advice, CommandLine, IncompleteResult, ReaderClosed, UsageError, reason
from svcctl.io import files, home
from svcctl.io.compression import COMPRESSIONS, Compressed, DamagedCompression, check
from svcctl.io.losses import Losses
from svcctl.terminal import layout
from svcctl.terminal.diagnostics import Diagnostics, Reported
from svcctl.terminal.escapes import Styled, joined, styled, visible
from svcctl.terminal.formats import FORMATS, OutputFormat, alone, sorted_blocks
from svcctl.terminal.layout import Style, TableColumn
from svcctl.terminal.notes import loss_notes
from svcctl.terminal.records import LIST
from svcctl.terminal.selection import NO_SELECTION, Selection
from svcctl.terminal.size import terminal_size
from svcctl.terminal.standard_streams import Terminal
from svcctl.words import counted

if TYPE_CHECKING:
    from svcctl.api.job_watch import Look, Watched
    from svcctl.terminal.records import Listing

T = TypeVar("T")


class PrintedRows(Protocol):
    """Rows that can be printed, such as the rows of a followed query."""

    @property
    def columns(self) -> Sequence[Any]: ...
    def rows(self) -> Iterator[tuple[Any, ...]]: ...


class Answer(PrintedRows, Protocol):
    """The answer to a query: the rows, and the bytes in which the rows arrived."""

    def raw(self) -> Iterator[bytes]: ...
    @property
    def cut_texts(self) -> int: ...


class OutputSink:
    """A destination for data: stdout or a file.

    A write raises ReaderClosed if the pipe is closed, and IncompleteResult if the write fails for another reason.
    Nothing is buffered, so other programs can read the data immediately after each write. The function `before` is
    called before each write. If stdout is a pipe, `reader` is the file descriptor of the pipe. With this descriptor, a
    caller can check whether the pipe still has a reader.
    """

    def __init__(
        self,
        stream: files.Unbuffered,
        name: str,
        before: Callable[[], None] | None = None,
        reader: int | None = None,
    ) -> None:
        self._stream = stream
        self._name = name
        self._before = before
        self.reader = reader

    def write(self, data: bytes | memoryview) -> None:
        """Write all of the data."""
        if self._before:
            self._before()
        with _failing(self._name):
            files.write_all(self._stream, data)

    def line(self, text: str) -> None:
        """Write a line of text. Bytes that are not UTF-8 are written unchanged."""
        self.write((text + "\n").encode("utf-8", "surrogateescape"))


@contextmanager
def _failing(name: str) -> Iterator[None]:
    """Convert the OSError of a failed write to ReaderClosed or IncompleteResult."""
    try:
        yield
    except BrokenPipeError:
        raise ReaderClosed from None
    except OSError as error:
        raise _unwritten(name, error) from None


@contextmanager
def _available(models: Iterable[T]) -> Iterator[Iterable[T]]:
    """Yield an iterator over the objects that can be read.

    If some objects could not be read, raises Reported after the block.
    """
    raised: list[Reported] = []

    def there() -> Iterator[T]:
        try:
            yield from models
        except Reported as error:
            raised.append(error)

    yield models if isinstance(models, Sequence) else there()
    if raised:
        raise raised[0]


def _unwritten(name: str, error: OSError) -> IncompleteResult:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    hint = "make room on its disk, or write to another one" if full else None
    return IncompleteResult(f"cannot write to {name}: {reason(error)}", hint=hint)


def is_kept(path: Path) -> bool:
    """Return whether a path is a regular file, and not a device, a pipe, or stdout under another name."""
    return path.is_file() and not files.is_direct(path)


def _refuse_what_is_no_file(path: Path) -> None:
    if path.is_dir():
        what = "is empty or ." if path == Path() else f"is the directory {path}"
        raise UsageError(f"--output {what}", hint="name a file, as in -o events.csv")
    scheme, _, rest = str(path).partition(":/")  # Path turns two slashes into one
    if rest and scheme in ("s3", "hdfs") and not path.parent.exists():
        raise UsageError(f"a query writes local files, not {scheme}://{rest}", hint="'svcctl export' writes there")


@contextmanager
def open_file(path: Path, *, force: bool) -> Iterator[OutputSink]:
    """Open a file for data. The file gets its name only when all data is written and synced to the disk.

    If the name ends in `.gz` or `.zst`, the data is compressed. Devices, pipes and streams of this process, such as
    /dev/stdout, are written directly. Without `force`, raises UsageError if the file exists. Raises Locked if another
    process is writing the file.
    """
    if _opened(path, lambda: files.is_direct(path)):
        with _opened(path, lambda: files.open_direct(path)) as stream:
            yield OutputSink(stream, str(path))
        return
    exists = _opened(path, path.exists)
    _refuse_what_is_no_file(path)
    if exists and not force:
        raise UsageError(f"file {path} already exists", hint="choose another name, or overwrite it with --force")
    with _opened(path, lambda: files.PartFile(path)) as part:
        try:
            if path.suffix in COMPRESSIONS:
                compressed = Compressed(part, COMPRESSIONS[path.suffix]())
                yield OutputSink(compressed, str(path))
                compressed.end()
                check(path.suffix, part.read())
            else:
                yield OutputSink(part, str(path))
            part.publish(overwrite=force)
        except FileExistsError:
            raise UsageError(
                f"file {path} was created in the meantime", hint="choose another name, or overwrite it with --force"
            ) from None
        except DamagedCompression as error:
            raise IncompleteResult(f"cannot write to {path}: the written data {error}") from None
        except OSError as error:
            raise _unwritten(str(path), error) from None


def _opened(path: Path, opening: Callable[[], T]) -> T:
    try:
        return opening()
    except OSError as error:
        if (slip := home.unexpanded_error(path)) is not None:
            raise slip from None
        folder = files.resolved_path(path).parent
        make = CommandLine(f"mkdir -p {shlex.quote(str(folder))}")
        hint = None if folder.exists() else Advice("make the directory: ", make)
        raise UsageError(f"file {path} cannot be written: {reason(error)}", hint=hint) from None


_NAME = "standard output"
_PLAIN = Style()
_LIVE = Style(sample=0)
_SORTED_SAMPLE = 10_000


class Output:
    """The output of a command to stdout. Data is written to `sink`, and lines for people are printed by `text`."""

    def __init__(
        self,
        stdout: TextIO,
        diagnostics: Diagnostics,
        *,
        color: bool,
        glyphs: bool = False,
        moving: bool = True,
        pager: str | None = None,
        stdin: TextIO | None = None,
    ) -> None:
        self._stdout = stdout
        self._stdin = stdin
        self._diagnostics = diagnostics
        self._width = terminal_size(stdout).columns if stdout.isatty() else None
        self._color = color
        self._moving = moving
        self._pager = pager
        self._glyphs = glyphs and (color or stdout.isatty())
        self._ellipsis = "…" if glyphs else "..."
        # If stdout is not a file, data may appear on the terminal of the progress line, so that line is erased first.
        self._before = None if _is(stat.S_ISREG, stdout) else diagnostics.clear_progress
        pipe = stdout.fileno() if _is(stat.S_ISFIFO, stdout) or _is(stat.S_ISSOCK, stdout) else None
        self.sink = OutputSink(getattr(stdout.buffer, "raw", stdout.buffer), _NAME, self._before, pipe)

    @property
    def is_terminal(self) -> bool:
        return self._stdout.isatty()

    @contextmanager
    def paged(self) -> Iterator[None]:
        """Show the output of the block in a pager, if the output is longer than the screen.

        Notes are printed after the pager has ended.
        """
        if self._pager is None or not isinstance(self._stdout, Terminal):
            yield
            return
        with self._diagnostics.hold_notes() as notes:
            with self._stdout.paged(self._pager, self._above(notes)) as paged:
                yield
            if paged.failed:
                notes.append(f"the pager '{self._pager}' failed (exit code {paged.failed}); this is printed without it")

    def _above(self, notes: list[str]) -> Iterator[str]:
        """Yield the notes that exist when the pager starts, as lines to show above the text.

        Each note is removed from `notes`.
        """
        while notes:
            yield f"svcctl: {self._diagnostics.laid_out(notes.pop(0), 8)}\n"

    @contextmanager
    def target(self, path: Path | None, format: OutputFormat, *, force: bool) -> Iterator[OutputSink]:
        """Open the file for a result, or stdout if there is no file.

        Raises UsageError for a binary format on a terminal.
        """
        if path is not None and str(path) != "-":
            with open_file(path, force=force) as sink:
                yield sink
            return
        if format.binary and self.is_terminal:
            raise UsageError(
                f"{format.name} is a binary format", hint="write it to a file with --output FILE, or pipe it"
            )
        yield self.sink

    def query(
        self,
        answer: Answer,
        format: OutputFormat,
        sink: OutputSink,
        selection: Selection = NO_SELECTION,
        style: Style = _PLAIN,
        *,
        paged: bool = True,
    ) -> None:
        """Print the answer to a query as it arrives.

        If the format and the selection allow it, the service's bytes are printed unchanged. The width and the colours
        of `style` are set by this method. If the range ends in the future, the query may wait for rows. Then each row
        is printed to stdout as soon as it arrives. Sorted rows are printed only when all rows have arrived.
        """
        waits = style.span is not None and style.span.end > style.span.now
        if waits and sink is self.sink and not selection.sort:
            style = style._replace(sample=0)
        with self.paged() if paged and not waits and sink is self.sink else nullcontext():
            self._query(answer, format, sink, selection, style)

    def _query(
        self, answer: Answer, format: OutputFormat, sink: OutputSink, selection: Selection, style: Style
    ) -> None:
        if not format.writes(selection):
            blocks = answer.raw()
            if format.heading and not selection.header:
                next(blocks, None)
            for block in blocks:
                sink.write(block)
            for text in loss_notes(Losses(texts=answer.cut_texts)):
                self._diagnostics.note(text)
            return
        values = answer.rows()
        all_columns = _table_columns(answer.columns)
        if selection.sort and format.by_row and (format.keeps_bytes or selection.top is None):
            style = style._replace(header=selection.header)
            note = self._diagnostics.note
            self._put_blocks(sorted_blocks(format, all_columns, values, selection, style, note), sink.line)
            return
        columns, rows = selection.pick(all_columns, selection.order(all_columns, values))
        if format.whole is not None:
            format = format._replace(layout=format.whole)
        if selection.sort:  # nothing is printed before all rows have arrived
            style = style._replace(sample=_SORTED_SAMPLE)
        self._write(columns, rows, format, sink, style._replace(header=selection.header))

    def records(
        self,
        listing: Listing[T],
        models: Iterable[T],
        format: OutputFormat,
        selection: Selection = NO_SELECTION,
        *,
        single: bool = False,
    ) -> None:
        """Print objects in a format for lists. In a table, a missing value is a dash.

        Objects are sorted by their values, and not by the texts that people see. With `single`, the user asked for one
        object by name. In json, the output is then an object instead of a list.
        """
        with _available(models) as there:
            self._records(listing, there, alone(format, keyed=listing.keyed) if single else format, selection)

    def _records(self, listing: Listing[T], models: Iterable[T], format: OutputFormat, selection: Selection) -> None:
        if format is FORMATS["table"] and listing.paragraph is not None:
            width = terminal_size(self._stdout).columns
            for model in models:
                self.text(listing.paragraph(model, width))
            return
        if format is FORMATS["table"] and listing.whole:
            format = FORMATS["vertical"]
        models = listing.in_order(models, selection)
        format.check(selection)
        columns, rows = selection.pick(*listing.laid_out(models, shown=not format.raw, every=bool(selection.columns)))
        # If objects arrive one by one, a pager would hold them back.
        with self.paged() if isinstance(models, Sequence) else nullcontext():
            self._write(columns, rows, format, self.sink, LIST._replace(header=selection.header))

    def watch(self, listing: Listing[Watched], looks: Iterable[Look], format: OutputFormat) -> None:
        """Print jobs each time their state is read from the service.

        On a terminal, a table is updated in place, and a failure of the service is shown in its footer. Elsewhere, rows
        with the time are printed after each reading, and a failure is printed as a note.
        """
        if format is FORMATS["table"] and self.is_terminal:
            style = LIST._replace(color=self._color, ellipsis=self._ellipsis)
            self.in_place(_frame(listing, look, style) for look in looks)
            return
        if not format.lines:
            raise UsageError(
                f"cannot watch in format {format.name}, which needs the end of the result",
                hint="use csv, tsv or ndjson",
            )
        columns, _ = listing.laid_out([], shown=False)
        looks = self._noting_failures(self.until_left(looks))
        first = list(islice(looks, 1))  # read before the heading is printed, because it may fail
        rows = ([look.at, *row] for look in chain(first, looks) for row in listing.laid_out(look.jobs, shown=False)[1])
        self._write([TableColumn("time", "int8"), *columns], rows, format, self.sink, _LIVE)

    def _noting_failures(self, looks: Iterable[Look]) -> Iterator[Look]:
        """Yield each reading of the jobs, and print a note when the service fails for a new reason."""
        failure = None
        for look in looks:
            if look.failure is not None and look.failure != failure:
                self._diagnostics.note(look.failure)
            failure = look.failure
            yield look

    def first_rows(
        self, answer: Answer, format: OutputFormat, selection: Selection
    ) -> tuple[Sequence[TableColumn], Sequence[Sequence[Any]]]:
        """Return the columns and the first rows of an answer: enough rows for a screen, or all rows for a chart."""
        values = answer.rows()
        all_columns = _table_columns(answer.columns)
        columns, rows = selection.pick(all_columns, selection.order(all_columns, values))
        if format is FORMATS["chart"]:
            from svcctl.terminal.charts.chart import MAX_ROWS

            return columns, list(islice(rows, MAX_ROWS + 1))
        return columns, list(islice(rows, layout.SAMPLE_ROWS))

    def frame(
        self,
        columns: Sequence[TableColumn],
        rows: Sequence[Sequence[Any]],
        format: OutputFormat,
        style: Style,
        footer: str,
    ) -> str:
        """Return rows and a footer as text that fits the present size of the terminal."""
        from svcctl.terminal.screen import frame_text

        width = terminal_size(self._stdout).columns
        style = style._replace(width=width, color=self._color, glyphs=self._glyphs, ellipsis=self._ellipsis)
        return frame_text(format.write(columns, rows, style, lambda note: None), footer)

    def in_place(self, frames: Iterable[str]) -> None:
        """Show frames in one place on the terminal.

        If the cursor cannot move, the frames are printed one after the other.
        """
        from svcctl.terminal.screen import show

        if self._moving:
            show(frames, self._put, self._stdout, stdin=self._stdin, color=self._color)
            return
        for frame in self.until_left(frames):
            self.text(frame)

    def until_left(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items. If stdout and stdin are terminals, the iteration ends when somebody types q."""
        if not self.is_terminal:
            yield from items
            return
        from svcctl.terminal.keyboard import Keyboard

        def stay() -> None:
            """Do nothing before and after Ctrl-Z, because no screen is shown."""

        keyboard = Keyboard(self._stdin)
        with keyboard.watched(stay, stay):
            yield from keyboard.until_left(items)

    def change(self, sign: str, text: str) -> None:
        """Print a line that shows an old or a new value.

        An old value has the sign `-` and is red, and a new value has `+` and is green.
        """
        line = f"{sign} {visible(text)}"
        self.text(styled(31 if sign == "-" else 32, line) if self._color else line)

    def live(
        self,
        answer: PrintedRows,
        format: OutputFormat,
        sink: OutputSink,
        selection: Selection = NO_SELECTION,
        style: Style = _PLAIN,
    ) -> None:
        """Print the rows of a query that may never end. Each row is printed when it arrives."""
        columns, rows = selection.pick(_table_columns(answer.columns), answer.rows())
        self._write(columns, rows, format, sink, style._replace(sample=0, header=selection.header))

    def _write(
        self,
        columns: Sequence[TableColumn],
        rows: Iterable[Sequence[Any]],
        format: OutputFormat,
        sink: OutputSink,
        style: Style,
    ) -> None:
        """Write rows. On stdout, lines can have colours and a limited width; in a file, they have neither."""
        if format.packing is not None:
            format.pack(columns, rows, style, sink, self._diagnostics.note)
            return
        if sink is self.sink:
            style = style._replace(width=self._width, color=self._color, glyphs=self._glyphs, ellipsis=self._ellipsis)
        put = self.text if sink is self.sink and not format.raw else sink.line
        self._put_blocks(format.blocks(columns, rows, style, self._diagnostics.note), put)

    @staticmethod
    def _put_blocks(blocks: Iterable[Sequence[str]], put: Callable[[str], None]) -> None:
        """Write the lines of each block with a single write, which is much faster than a write for each line."""
        for lines in filter(None, blocks):
            drawn = any(isinstance(line, Styled) for line in lines)
            put(joined(*lines, between="\n") if drawn else "\n".join(lines))

    def text(self, text: str) -> None:
        """Print one or more lines."""
        self._put(joined(text, "\n"))

    def _put(self, text: str) -> None:
        if self._before:
            self._before()
        with _failing(_NAME):
            self._stdout.write(text)
            self._stdout.flush()

    def stream(self, chunks: Iterable[bytes], sink: OutputSink) -> None:
        """Write bytes as they arrive. On a terminal, a newline is added if the last line does not end in one."""
        chunk = b"\n"
        for chunk in filter(None, chunks):
            sink.write(chunk)
        if sink is self.sink and self.is_terminal and not chunk.endswith(b"\n"):
            sink.line("")


def _frame(listing: Listing[Watched], look: Look, style: Style) -> str:
    from svcctl.api.job_watch import failing_first
    from svcctl.terminal.screen import table_frame

    columns, rows = listing.laid_out(failing_first(look.jobs), shown=True)
    count = counted(len(look.jobs), "job")
    footer = f"{look.failure or count}, {layout.format_moment(look.at, style, fraction=False)} (UTC)"
    return table_frame(columns, rows, footer, style)


def _is(kind: Callable[[int], bool], stream: TextIO) -> bool:
    try:
        return kind(os.fstat(stream.fileno()).st_mode)
    except OSError:  # the stream has no file descriptor
        return False


def _table_columns(columns: Sequence[Any]) -> list[TableColumn]:
    return [TableColumn(column.name, column.type) for column in columns]
