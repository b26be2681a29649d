"""The steps and messages that `service load` and `query --load` share."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from svcctl.cli.context import Context
from svcctl.cli.inputs import text
from svcctl.dates.lengths import rough_text
from svcctl.errors import ServiceError, UsageError
from svcctl.io.file_offsets import read_so_far
from svcctl.terminal.diagnostics import Work
from svcctl.terminal.layout import second_text
from svcctl.words import counted, size_text

if TYPE_CHECKING:
    from svcctl.api.loads import Loaded


@contextmanager
def as_files(svc: Context, sources: Iterable[Path]) -> Iterator[list[tuple[str, str]]]:
    """Yield the paths of files, and their names in messages.

    Standard input and pipes are copied to temporary files, which exist during the block.
    """
    with ExitStack() as spooled:
        yield [
            (str(spooled.enter_context(text.as_file(source, svc.files.make))), text.name(source))
            for source in dict.fromkeys(sources)
        ]


@contextmanager
def refused_as_usage(**names: str) -> Iterator[None]:
    """Convert the service's errors about files and options to UsageErrors.

    `names` are the names of commands and options for hints, if they differ from those of `svcctl service load`.
    """
    try:
        yield
    except ServiceError as error:
        if type(error) is not ServiceError or error.place is not None:
            raise
        data = {**error.data, **names}
        raise UsageError(error.message, hint=error.hint, reason=error.reason, data=data) from None


def load_progress(sources: Sequence[tuple[str, str]], process: int, clock: Callable[[], float]) -> Callable[[], Work]:
    """Return a function that reports how much of the files a process has read.

    If the function cannot find this out, it reports the size of the files and the time so far.
    """
    files, began, done = [Path(path) for path, _ in sources], clock(), 0
    size = sum(file.stat().st_size for file in files)

    def tell() -> Work:
        nonlocal done
        done, seconds = read_so_far(process, files) or done, max(clock() - began, 0.001)
        if not done:
            return Work(f"loading {size_text(size)}, {rough_text(seconds)}")
        return Work(f"loading, {size_text(done)} of {size_text(size)}, {size_text(done / seconds)}/s", done, size)

    return tell


def note_empty_files(svc: Context, loaded: Loaded) -> None:
    """Print a note that names the files without events."""
    for name in loaded.empty:
        svc.diagnostics.note(f"{name} has no events")


def note_findings(svc: Context, loaded: Loaded) -> None:
    """Print notes on the lines that were skipped, the values that became null, and the changes to other lines."""
    note = svc.diagnostics.note
    for skip in loaded.skips:
        svc.diagnostics.warning(f"skipped {counted(skip.count, 'line')}; the first: {skip.place}: {skip.sentence}")
    for null in loaded.nulls:
        values = f"{counted(null.count, 'value')} of {', '.join(null.fields)}"
        svc.diagnostics.warning(f"null in place of {values}; the first: {null.place}: {null.sentence}")
        if null.fields[0] in loaded.wider:
            wish = shlex.quote(f"{null.fields[0]}={loaded.wider[null.fields[0]]}")
            note(f"--types {wish} would have widened the column for such values")
    for aside in loaded.asides:
        note(f"{counted(aside.count, 'line')}; the first: {aside.place}: {aside.sentence}")
    for change in loaded.changes:
        note(f"{counted(change.count, 'row')}; the first: {change.place}: {change.sentence}")
    if loaded.rows == 1 and loaded.arrays:
        array = loaded.arrays[0]
        note(f"if the array {array} has the events, load them with --events-in {shlex.quote(array)}")


def range_text(oldest: int | None, newest: int | None) -> str:
    first, last = second_text(oldest), second_text(newest)
    return f"at {first} (UTC)" if first == last else f"from {first} to {last} (UTC)"
