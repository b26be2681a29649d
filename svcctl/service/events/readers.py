"""The kinds of file that can be loaded: a row for each, and how to recognize it.

These are facts and load nothing, so the command line can list them; DuckDB reads the files, see
`engines/duckdb/files.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Looks = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file: its name and usual endings, and a test of its first line that is not blank.

    `pattern` matches a line, for files that are read line by line.
    """

    name: str
    endings: tuple[str, ...]
    looks: Looks
    pattern: str = ""


ACCESS = (
    r'^(\S+) \S+ (\S+) \[([^\]]+)\] "((?:[^"\\]|\\.)*)" (\d{3}) (\d+|-)'
    r'(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)")?'
)
"""A common log line: host, user, time, request, status and size, and in the combined format referrer and agent."""
TIMED = r"^(\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z| ?[+-]\d{2}:?\d{2})?)\s+(.*)$"
"""A line that begins with a time: the time, and the rest."""


def _begins(text: str) -> Looks:
    return lambda line: line.startswith(text)


def _holds(characters: str) -> Looks:
    return lambda line: set(characters) & set(line)


def _matches(pattern: str) -> Looks:
    return lambda line: re.match(pattern, line)


FILE_KINDS: Mapping[str, FileKind] = {
    kind.name: kind
    for kind in (
        FileKind("csv", (".csv",), _holds(",;")),
        FileKind("tsv", (".tsv", ".tab"), _holds("\t")),
        FileKind("ndjson", (".ndjson", ".jsonl", ".json"), _begins("{")),
        FileKind("parquet", (".parquet", ".pq"), _begins("PAR1")),
        FileKind("access", (), _matches(ACCESS), ACCESS),
        FileKind("log", (), _matches(TIMED), TIMED),
    )
}
"""By name; more specific kinds come later."""


def known_kind(ending: str, first_lines: Sequence[str]) -> FileKind | None:
    """The kind of a file by its ending (`.csv`), or else by its first line; of several, the most specific one."""
    for kind in FILE_KINDS.values():
        if ending.lower() in kind.endings:
            return kind
    alike = [kind for kind in FILE_KINDS.values() if first_lines and kind.looks(first_lines[0])]
    return alike[-1] if alike else None
