"""Metrics in the text format of Prometheus.

The metrics are written to a file for the textfile collector of a node exporter.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from svcctl.errors import IncompleteResult, UsageError
from svcctl.io import files, home


def gauge(name: str, meaning: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    """Yield the lines of a metric. Each element of `samples` is a pair: the labels of a value, and the value."""
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} gauge"
    for labels, value in samples:
        pairs = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield f"{name}{{{pairs}}} {value:.15g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def check_writable(path: Path) -> None:
    """Raise UsageError if the metrics file cannot be written.

    A command calls this function before the command begins its work.
    """
    with suppress(OSError):
        if files.is_direct(path) or os.access(path.parent, os.W_OK):
            return
    raise home.unexpanded_error(path) or UsageError(
        f"the metrics file {path} cannot be written: no such directory, or no permission"
    )


def write(path: Path, lines: Iterable[str]) -> None:
    """Replace the metrics file as a whole, so that a collector never reads an incomplete file.

    Devices, pipes, and open files of this process such as /dev/stdout are written directly. Raises IncompleteResult if
    the file cannot be written.
    """
    text = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    try:
        if files.is_direct(path):
            with files.open_direct(path) as stream:
                files.write_all(stream, text)
        else:
            files.write(path, text)
            path.chmod(0o644)
    except OSError as error:
        raise IncompleteResult(f"the metrics file {path} cannot be written: {error.strerror}") from None
