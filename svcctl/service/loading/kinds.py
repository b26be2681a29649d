"""The kinds of file that can be loaded: a row for each, and how to recognize it.

This module imports no engine, so that the command line can list the kinds; DuckDB reads the files, see `files.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

Looks = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file: its name and usual endings, and a test of the first line that is not blank.

    For files that are read line by line, `pattern` matches an entry, and `continuation` matches the beginning of a line
    that continues the previous entry. If the times of a log are not `usual`, they are read as text in a format.
    """

    name: str
    endings: tuple[str, ...]
    looks: Looks
    pattern: str = ""
    continuation: str = ""
    time_is_usual: bool = True


ACCESS = (
    r'^(?:(\S+:\d+) )?(\S+) \S+ (\S+) \[([^\]]+)\] "((?:[^"\\]|\\.)*)" (\d{3}) (\d+|-)'
    r'(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)")?(.*)'
)
"""A line in the common log format: host, user, time, request, status and size.

Server and port may come before, and in the combined format referrer and agent come after; the last group is the rest.
"""
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {_MONTH} [ \d]\d"
_AREAS = "Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Brazil|Canada|Chile|Etc|Europe|Indian|Pacific|US"
_ZONE = (
    r" ?Z| ?[+-]\d{2}:?\d{2}| [+-](?:0\d|1[0-4])"
    rf"| (?:UTC|GMT|CES?T|EES?T|WES?T|MET|E[SD]T|M[SD]T|P[SD]T|(?:{_AREAS})/[\w+/-]+)"
)
"""An offset or a zone after a time; only abbreviations that mean a single zone."""
_NAMED_DAY = rf"\d\d[/ -]{_MONTH}[/ -]\d{{4}}[: ]"
_TIME = (
    rf"\d{{4}}[-/]\d{{2}}[-/]\d{{2}}(?:T| +)\d{{2}}:\d{{2}}:\d{{2}}(?:[.,]\d+)?(?:{_ZONE})?"
    rf"|{_DAY} \d\d:\d\d:\d\d(?:\.\d+)? \d{{4}}"
    rf"|{_NAMED_DAY}\d\d:\d\d:\d\d(?:[.,]\d+)?(?: [+-]\d{{4}})?"
)
_BEGINS_TIME = rf"\d{{4}}[-/]\d\d[-/]\d\d(?:T| +)\d\d:|{_DAY} \d\d:|{_NAMED_DAY}\d\d:"

_DAY_FIRST = r"\d{2}/\d{2}/\d{4} \d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?"
"""A time in the interface's format; seconds may be missing."""
_EPOCH = r"1\d{9}(?:\.\d{1,9})?|1\d{12}"
"""Epoch seconds or milliseconds at the beginning of a line, of the years 2001 to 2033."""
_WORD = r"""(?:\[[^\]\n{"]*\][^\s{"]*|\[?[^\s\[{"][^\s{"]*)[ \t]+"""
"""A word or a text in brackets before the time of a log line, without braces and quotes, which JSON and csv have."""
_MOST_WORDS = 8
_FIRST = r"()(\[?)"
"""The two groups before a time at the beginning of a line: nothing, and `[` or nothing."""


def _behind(words: int, *, indented: bool) -> str:
    """The two groups before a time inside a line: up to `words` words and a text that touches the time; `[` or `ts=`.

    The touching text does not end with a digit: after a digit, 00:00 may be the rest of 10:00:00.
    """
    joined = r"""(?:(?:[^\s\[({"=]*[^\s\[({"=\d])?[^\s\[({"=\w])?"""
    blanks = "[ \t]*" if indented else ""
    return rf"""{blanks}((?:{_WORD}){{0,{words}}}?{joined})((?:[@A-Za-z]\w*=)?[\[("]?)"""


@dataclass(frozen=True, slots=True)
class LogTime:
    """Patterns for the times of a log, for the beginning of such a time, and for the text before it in a line."""

    time: str = _TIME
    begins: str = _BEGINS_TIME
    before: str = _FIRST

    @property
    def is_usual(self) -> bool:
        """Whether times have the year first or the name of the month, so that they are read without a format."""
        return self.time == _TIME

    @property
    def pattern(self) -> str:
        """The pattern of an entry, with groups: the text before, `[` or nothing, the time, `]` or nothing, the rest."""
        return rf"""(?s)^{self.before}({self.time})([\])"]?):?(?:\s+(.*))?$"""

    @property
    def continuation(self) -> str:
        """The pattern for the beginning of a line without a time."""
        return rf"(?!{self.before}(?:{self.begins}))"


def log_time(lines: Sequence[str], written: str = "") -> LogTime | None:
    """The LogTime of a log, found in its first lines; None if no line has a time. `written` is a pattern of the time.

    If a line begins with a time, times are at the beginning of lines. Otherwise the first line that has a time decides
    after how many words a time may come, and whether lines that begin with blanks are entries.
    """
    times = [LogTime(written, written)] if written else [LogTime(), LogTime(_DAY_FIRST, _DAY_FIRST)]
    for given in times if written else [*times, LogTime(_EPOCH, _EPOCH)]:
        if any(_entry(given, line) for line in lines):
            return given
    for line, given in product(lines, times):
        if found := _entry(replace(given, before=_behind(_MOST_WORDS, indented=True)), line):
            return replace(given, before=_behind(len(re.findall(_WORD, found[1])), indented=line[0] in " \t"))
    return None


def _entry(time: LogTime, line: str) -> re.Match[str] | None:
    """The match of an entry; None for a line without a time, with AM or PM after the time, or with a number only."""
    found = re.match(time.pattern, line)
    if found is None or (time.time == _EPOCH and not found[5]):
        return None
    return None if re.match(r"[AP]M\b", found[5] or "") else found


def looks_log(line: str, written: str = "") -> object:
    """Whether a line has the time of a log; false for an access log, a comment, and a time after a tab (csv)."""
    time = log_time([line], written)
    entry = time and _entry(time, line)
    return entry and not line.startswith("#") and "\t" not in entry[1] and not re.match(ACCESS, line)


_TAG = r"([^\s:\[\]]+)(?:\[([^\]]*)\])?:(?: |$)"
_OLD_TIME = rf"{_MONTH} [ \d]\d (?:\d{{4}} )?\d\d:\d\d:\d\d"
_PRECISE_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}[+-]\d\d:\d\d"
"""A time as current syslog daemons write it to files."""
SYSLOG = (
    r"(?s)^(?:<(\d{1,3})>1 (\S+) (\S+) (\S+) (\S+) (\S+) (-|(?:\[(?:[^\]\\]|\\.)*\])+)(?: " + "\ufeff?(.*))?"
    rf"|(?:<(\d{{1,3}})>)?({_OLD_TIME}|{_PRECISE_TIME}) (\S+) (?:{_TAG})?(.*))$"
)
"""A line of syslog: the eight parts of RFC 5424, or the six parts of RFC 3164."""
_LOOKS_SYSLOG = rf"<\d{{1,3}}>1 \S+ |(?:<\d{{1,3}}>)?{_OLD_TIME} \S+ |{_PRECISE_TIME} [a-z0-9][\w.-]* {_TAG}"
"""The beginning of a line of syslog. Other programs write precise times, so a lower-case host and a tag must follow."""


_PAIR = r'[^\s="]+=(?:"(?:[^"\\]|\\.)*"|[^\s"]*)'
_LOGFMT = rf"{_PAIR}(?:\s+{_PAIR})+\s*$"
"""A line that consists of at least two pairs key=value; a value with blanks is in quotes."""


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
        FileKind("json", (".json", ".ndjson", ".jsonl"), _matches(r'\s*(?:\[\s*(?:[\[\]{"]|$)|\{\s*$)')),
        FileKind("parquet", (".parquet", ".pq"), _begins("PAR1")),
        FileKind("access", (), _matches(ACCESS), ACCESS),
        FileKind("log", (), looks_log, LogTime().pattern, LogTime().continuation),
        FileKind("syslog", (), _matches(_LOOKS_SYSLOG), SYSLOG, "[ \\t]"),
        FileKind("logfmt", (), _matches(_LOGFMT)),
    )
}
"""The kinds of file by name; more specific kinds come later."""


def known_kind(ending: str, first_lines: Sequence[str]) -> FileKind | None:
    """The most specific kind of a file by its ending (`.csv`) and its first line; None if it is not clear."""
    endings = [kind for kind in FILE_KINDS.values() if ending.lower() in kind.endings]
    alike = [kind for kind in endings or FILE_KINDS.values() if first_lines and kind.looks(first_lines[0])]
    return alike[-1] if alike else endings[0] if endings else None


OTHERS: Mapping[str, tuple[str, str]] = {
    "a log of squid": (
        r"\d{9,10}\.\d{3} +\d+ \S+ [A-Z_]+/\d{3} \d+ [A-Z]",
        """awk -v OFS='\\t' 'BEGIN {print "time","ms","client","code","bytes","method","uri","user","peer","type"} """
        """{$1=$1; print}' FILE | svcctl service load - -f tsv -t …""",
    ),
    "a log of auditd": (
        r"(?:node=\S+ )?type=\w+ msg=audit\(\d+\.\d+:\d+\):",
        r"sed -E 's/msg=audit\(([0-9.]+):([0-9]+)\):/time=\1 id=\2/' FILE | svcctl service load - -t …",
    ),
    "the answer of a query as one document": (
        r'\s*\{\s*"(success"\s*:\s*(true|false)\b.*"object"\s*:\s*(\[|\{\s*"m")|m"\s*:\s*\{.*"(metadata|d)"\s*:)',
        "write the answer with -f ndjson, which can be loaded",
    ),
    "a document of XML": (r"\s*<\?xml\b", "write or convert it as csv or ndjson"),
}
"""Kinds of file that cannot be loaded as they are: a pattern for the beginning of a line, and the remedy."""


def unread(line: str) -> tuple[str, str] | None:
    """The kind of a file that cannot be loaded as it is, by its first line, and the remedy; None for other files."""
    return next(((what, how) for what, (begin, how) in OTHERS.items() if re.match(begin, line)), None)
