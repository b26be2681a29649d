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

    `pattern` matches an entry, for files that are read line by line, and `continuation` the beginning of a line that
    continues the entry above it.
    """

    name: str
    endings: tuple[str, ...]
    looks: Looks
    pattern: str = ""
    continuation: str = ""


ACCESS = (
    r'^(\S+) \S+ (\S+) \[([^\]]+)\] "((?:[^"\\]|\\.)*)" (\d{3}) (\d+|-)'
    r'(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)")?'
)
"""A common log line: host, user, time, request, status and size, and in the combined format referrer and agent."""
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {_MONTH} [ \d]\d"
_AREAS = "Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Brazil|Canada|Chile|Etc|Europe|Indian|Pacific|US"
_ZONE = (
    r" ?Z| ?[+-]\d{2}:?\d{2}| [+-](?:0\d|1[0-4])"
    rf"| (?:UTC|GMT|CES?T|EES?T|WES?T|MET|E[SD]T|M[SD]T|P[SD]T|(?:{_AREAS})/[\w+/-]+)"
)
"""An offset or a zone behind a time; of the abbreviations those that mean one zone."""
_UNREAD_ZONE = (
    r"(?:A[CEK]?[DS]T|ART|AWST|BRT|BST|CAT|C[DS]T|EAT|HKT|HST|ICT|IST|JST|KST|MSK|NZ[DS]T|PHT|PKT|SAST|SGT|WAT|WIB)\b"
)
_TIME = (
    rf"\d{{4}}[-/]\d{{2}}[-/]\d{{2}}[T ]\d{{2}}:\d{{2}}:\d{{2}}(?:[.,]\d+)?(?:{_ZONE})?"
    rf"|{_DAY} \d\d:\d\d:\d\d(?:\.\d+)? \d{{4}}"
)
_BEGINS_TIME = rf"\d{{4}}[-/]\d\d[-/]\d\d[T ]\d\d:|{_DAY} \d\d:"

DAY_FIRST = r"\d{2}/\d{2}/\d{4} \d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?"
"""A time of the interface at the beginning of a log line; seconds may be missing."""


def timed(time: str) -> str:
    """A line that begins with a time, which may be in brackets: `[` or nothing, the time, `]` or nothing, the rest."""
    return rf"(?s)^(\[?)({time})(\]?)\s+(.*)$"


def untimed(time: str) -> str:
    """The beginning of a line without a time."""
    return rf"(?!\[?(?:{time}))"


def day_first(line: str) -> object:
    """Whether a log line begins with the day, the month and the year; before AM or PM that may be the month."""
    return re.match(rf"\[?{DAY_FIRST}\]?\s+(?!\s|[AP]M\b)", line)


def unread_zone(entry: re.Match[str]) -> str:
    """The abbreviation of a zone that the pattern of a log leaves in the message behind the time, or nothing."""
    found = re.match(_UNREAD_ZONE, entry[4])
    return found[0] if found else ""


_TAG = r"([^\s:\[\]]+)(?:\[([^\]]*)\])?:(?: |$)"
_OLD_TIME = rf"{_MONTH} [ \d]\d (?:\d{{4}} )?\d\d:\d\d:\d\d"
_PRECISE_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}[+-]\d\d:\d\d"
"""The time that today's daemons of syslog write to files."""
SYSLOG = (
    r"(?s)^(?:<(\d{1,3})>1 (\S+) (\S+) (\S+) (\S+) (\S+) (-|(?:\[(?:[^\]\\]|\\.)*\])+)(?: " + "\ufeff?(.*))?"
    rf"|(?:<(\d{{1,3}})>)?({_OLD_TIME}|{_PRECISE_TIME}) (\S+) (?:{_TAG})?(.*))$"
)
"""A line of syslog: RFC 5424 with its eight parts, or RFC 3164 with the six that it has."""
_LOOKS_SYSLOG = rf"<\d{{1,3}}>1 \S+ |(?:<\d{{1,3}}>)?{_OLD_TIME} \S+ |{_PRECISE_TIME} [a-z0-9][\w.-]* {_TAG}"
"""Programs write precise times too, so there a host (in lower case) and a tag must follow."""


def _begins(text: str) -> Looks:
    return lambda line: line.startswith(text)


def _holds(characters: str) -> Looks:
    return lambda line: set(characters) & set(line)


def _matches(pattern: str) -> Looks:
    return lambda line: re.match(pattern, line)


FILE_KINDS: Mapping[str, FileKind] = {
    kind.name: kind
    for kind in (
        FileKind("csv", (".csv",), _holds(",;|")),
        FileKind("tsv", (".tsv", ".tab"), _holds("\t")),
        FileKind("ndjson", (".ndjson", ".jsonl", ".json"), _begins("{")),
        FileKind("json", (".json", ".ndjson", ".jsonl"), lambda line: line.startswith("[") or line.strip() == "{"),
        FileKind("parquet", (".parquet", ".pq"), _begins("PAR1")),
        FileKind("access", (), _matches(ACCESS), ACCESS),
        FileKind(
            "log", (), lambda line: re.match(timed(_TIME), line) or day_first(line), timed(_TIME), untimed(_BEGINS_TIME)
        ),
        FileKind("syslog", (), _matches(_LOOKS_SYSLOG), SYSLOG, "[ \\t]"),
    )
}
"""By name; more specific kinds come later."""


def known_kind(ending: str, first_lines: Sequence[str]) -> FileKind | None:
    """The kind of a file by its ending (`.csv`), or else by its first line; of several, the most specific one."""
    endings = [kind for kind in FILE_KINDS.values() if ending.lower() in kind.endings]
    alike = [kind for kind in endings or FILE_KINDS.values() if first_lines and kind.looks(first_lines[0])]
    return alike[-1] if alike else endings[0] if endings else None
