"""The kinds of file that can be loaded. Each kind has a row with the patterns that recognise the kind.

This module imports no engine, so that the command line can list the kinds. DuckDB reads the files, see `files.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from svcctl.service.loading.skips import Skip

Looks = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file, with its name and the usual endings of file names.

    For files that are read line by line, `looks` recognises an entry, and `pattern` finds the parts of an entry.
    `continuation` matches the beginning of a line that continues the previous entry. `comment` matches a line that is
    left out. The code that recognises other kinds is in `heads.py`.
    """

    name: str
    endings: tuple[str, ...]
    looks: Looks = bool
    pattern: str = ""
    continuation: str = ""
    comment: str = ""


ACCESS_HOST = r'(?:[^\s":,]+(?::\d*)?|\[?[\da-fA-F]*:[\da-fA-F:.]*(?:%[^\s":]+)?\]?(?::\d+)?)'
"""The pattern of a host in an access log: a name or an address, and perhaps a port.

A client that uses a Unix socket has the host `unix:`.
"""
ACCESS = (
    rf"^(?:(\S+:\d+) )?({ACCESS_HOST}) "
    r"(?:- (-|[^\s-]\S*(?: [^\s\[]\S*)*|-\S+(?: [^\s\[]\S*)*)|(\S+) (\S+)) "
    r'\[([^\]]+)\] "((?:[^"\\]|\\.)*)" (\d{3}) (\d+|-)'
    r'(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)")?(.*)'
)
"""The pattern of a line in the common log format: host, identity, user, time, request, status and size.

The identity is usually `-`, and the name of the user may then have blanks. In other lines with more than three words
before the time, it is not clear which word is the host. Such lines do not match. A server and a port may come before
these parts. In the combined format, referrer and agent follow. The last group is the rest of the line.
"""
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {_MONTH} [ \d]\d"
_AREAS = "Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Brazil|Canada|Chile|Etc|Europe|Indian|Pacific|US"
_ABBREVIATIONS = (
    "A[CEK]?[DS]T|[CEMP][DS]T|[CEW]ES?T|(?:AW|SA|[BHIJK])ST|(?:[CEW]A|AR|BR|HK|IC|ME|PH|PK|SG)T|MSK|NZ[DS]T|WIB"
)
_ZONE = (
    r" ?(?:Z|UTC|GMT)[+-]\d[\d:]*| ?[+-](?:0\d|1[0-4])(?::?(?:00|15|30|45))?| ?Z"
    rf"| (?:UTC|GMT|{_ABBREVIATIONS}|(?:{_AREAS})/[\w+/-]+)"
)
"""The pattern of an offset or a zone after a time. Other words in capitals belong to the message.

An offset may follow Z, UTC or GMT, as in GMT+08:00. Then the offset belongs to the time, too.
"""
_FRACTION = r"(?:[.,]\d+|:\d{3})?"
"""The pattern of the fraction of a second. Some programs write milliseconds after a colon."""
_HALF_OF_DAY = "(?:[ \N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}](?:[AP]M|[ap]m|[ap]\\. ?m\\.))?"
"""The pattern of AM or PM, as several languages write it."""
_TIME = (
    rf"(?:(?:(?:\d{{4}}[-/]\d\d?[-/]\d\d?(?:T| +)|\d\d?[/ -]{_MONTH}[/ -]\d{{4}}[: ])\d\d?:\d\d:\d\d{_FRACTION}"
    rf"|\d\d?(?:/\d\d?/|\.\d\d?\.)\d{{4}} \d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?){_HALF_OF_DAY}"
    rf"|{_DAY} \d\d:\d\d:\d\d(?:\.\d+)? \d{{4}})(?:{_ZONE})?"
)
"""The pattern of a time in a log.

The pattern is short, because DuckDB needs three times as long for a pattern with more than about 500 states.
"""
_BEGINS_TIME = (
    r"\d{4}[-/]\d\d?[-/]\d\d?(?:T| +)\d\d?:"
    rf"|{_DAY} \d\d:"
    r"|\d\d?[/ -][^\s\d/-]{3,9}[/ -]\d{4}[: ]\d\d?:"
    r"|\d\d?[/.]\d\d?[/.]\d{4} \d\d?:"
)
"""The pattern of the beginning of a time. It also matches times that cannot be read, such as 31-Mai-2024 10:00:00.

A line that begins so is not a continuation of the entry above. If it cannot be read, it is skipped and counted.
"""
_EPOCH = r"1\d{9}(?:\.\d{1,9})?|1\d{12}"
"""The pattern of epoch seconds or milliseconds at the beginning of a line, for the years 2001 to 2033."""
NUMBER_TIME = r"\d+(?:[.,]\d+)?"
_INNER_NUMBER_TIME = r"\d{9,}(?:[.,]\d+)?"
"""The pattern of a time that is a number of at least nine digits, after some words of a line.

At the beginning of a line, NUMBER_TIME is used instead. The user must name the unit of such times.
"""
_WORD = r"""(?:\[[^\]\n{"]*\][^\s{"]*|\[?[^\s\[{"][^\s{"]*)[ \t]+"""
"""The pattern of a word, or a text in brackets, before the time of a log line.

The pattern excludes braces and quotes, because lines of JSON and csv contain such characters.
"""
_MOST_WORDS = 8
_LINES_WITH_PLACES = 100
"""The maximum number of lines that are searched for the place of the time."""
JOURNAL_HEADER = r"-- (?:Logs begin|Journal begins|Boot|Reboot|No entries)\b.* --$"
"""The pattern of a line that journalctl writes before and between events."""
_TIME_FIRST = r"()((?:\[ *)?)"
"""The pattern of the text before a time at the beginning of a line.

The first group is always empty. The second group is `[`, or empty if there is no bracket.
"""


def _inner_groups(words: int, *, indented: bool) -> str:
    """Return the pattern of the text before a time inside a line.

    The pattern has two groups. The first group matches at most `words` words, and then a text that contains no
    blanks and may be empty. This text must not end with a digit, because the digit may be a part of the time. It may
    consist of codes for the colour of text on a terminal, or of a number such as `<13>`. The second group matches `[`,
    `ts=` or `msg=audit(`, or is empty. With `indented`, the line may begin with blanks.
    """
    joined = r"""(?:(?:[^\s\[({"=]*[^\s\[({"=\d])?[^\s\[({"=\w]|[A-Z]|(?:\x1b\[[\d;]*m)+|<\d+>)?"""
    blanks = "[ \t]*" if indented else ""
    return rf"""{blanks}((?:{_WORD}){{0,{words}}}?{joined})((?:[@A-Za-z]\w*=(?:\w+\()?)?[\[("]?)"""


def _entry(before: str, time: str) -> str:
    """Return the pattern of an entry.

    The groups are the text before the time, an opening bracket, the time, a closing bracket and the message. If a
    bracket is missing, its group is empty.

    The message has two groups, and one of them is empty. The first is for a message after a separator. The second is
    for a message that directly follows the time, and begins with a character that is neither a letter nor a digit.
    A point and a digit would be a part of the time.
    """
    return rf"""(?s)^{before}({time})([\])"]?)(?:(?:[:,;|]\s*|\s+)(.*)|((?:[^A-Za-z0-9\s:,;|.]|\.\D).*|\.))?$"""


def _log(before: str, time: str, begins: str) -> FileKind:
    entry = _entry(before, time)

    def looks(line: str) -> object:
        """Return whether a line is an entry.

        The result is false for a line of an access log, for a comment, for a line of csv with the time in a cell, and
        for a number before a time, because the number may be an ID.
        """
        match = None if line.startswith("#") else re.match(entry, line)
        is_cell = match and match[1].endswith((",", ";", "|")) and match[1][-1] in line[match.start(3) :]
        is_id = match and time == _EPOCH and re.match(_BEGINS_TIME, match[5] or "")
        return match and "\t" not in match[1] and not is_cell and not is_id and not re.match(ACCESS, line)

    return FileKind("log", (), looks, entry, rf"(?!\0*{before}(?:{begins})|{JOURNAL_HEADER})", JOURNAL_HEADER)


def log_kinds(lines: Sequence[str], written: str = "") -> Iterator[FileKind]:
    """Yield the kinds of logs that may fit these lines. The kinds differ in the place of the time in a line.

    `written` is a pattern of the time. A time is at the beginning of a line, or after some words. Lines that begin with
    blanks may be entries, too. Numbers at the beginning of lines are tried last.
    """
    time = (written, written) if written else (_TIME, _BEGINS_TIME)
    yield _log(_TIME_FIRST, *time)
    inner = (_INNER_NUMBER_TIME,) * 2 if written == NUMBER_TIME else time
    pattern = re.compile(_entry(_inner_groups(_MOST_WORDS, indented=True), inner[0]))
    entries = ((line, pattern.match(line)) for line in lines[:_LINES_WITH_PLACES])
    places = {(len(re.findall(_WORD, match[1])), line[0] in " \t") for line, match in entries if match}
    yield from (_log(_inner_groups(words, indented=indented), *inner) for words, indented in sorted(places))
    if not written:
        yield _log(_TIME_FIRST, _EPOCH, _EPOCH)


_MONTH_DAY = rf"(?:{_DAY}|{_MONTH} {{1,2}}\d{{1,2}}|\d\d[/.-]\d\d|\d{{1,2}}[ /-]{_MONTH}|[A-Z]?[01]\d[0-3]\d)"
_INCOMPLETE: Mapping[Skip, str] = {
    Skip.SHORT_YEAR: r"(?:"
    + "|".join(rf"\d{{1,2}}{by}(?:\d{{1,2}}|{_MONTH}){by}\d\d" for by in ("/", r"\.", "-"))
    + r")[ T,:-]+\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?"
    + r"|\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]) (?: ?\d|\d\d):?[0-5]\d:?[0-5]\d(?:[.,]\d+)?",
    Skip.NO_YEAR: rf"(?<!\d{{4}} ){_MONTH_DAY}[ T-]+\d\d:\d\d:\d\d(?:[.,]\d+)?(?! (?:[A-Z]+ ){{0,2}}\d{{4}}\b)",
    Skip.NO_DAY: r"\d\d:\d\d:\d\d(?:[.,]\d+)?",
}
"""The patterns of incomplete times in logs, by the missing part."""


def incomplete_time(line: str) -> tuple[str, Skip] | None:
    """Find an incomplete time in a line of a log. Return the time and its missing part.

    A time without a date counts only at the beginning of the line. Returns None if there is no incomplete time.
    """
    for lack, pattern in _INCOMPLETE.items():
        entries = (re.match(kind.pattern, line) for kind in log_kinds([line], pattern))
        entry = next(filter(None, entries), None)
        if entry and not (lack is Skip.NO_DAY and entry[1]):
            return entry[3], lack
    return None


_TAG = r"([^\s:\[\]|]+)(?:\[([^\]]*)\])?:(?: |$)"
_HOST = r"(-|[\w:\[](?:[^\s|]*[^\s|:])?)"
_OLD_TIME = (
    rf"{_MONTH} {{1,2}}\d{{1,2}} (?:\d{{4}} )?\d\d:\d\d:\d\d(?:\.\d{{1,6}})?"
    rf"(?: (?:UTC|GMT|{_ABBREVIATIONS}))?(?: (?:19|20)\d\d)?"
)
"""The pattern of a time of RFC 3164. Some devices add the zone and the year."""
_ISO_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"
_PRECISE_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}[+-]\d\d:\d\d"
"""The pattern of a time as current syslog daemons write it to files, with microseconds and an offset."""
SYSLOG = (
    r"(?s)^(?:<(\d{1,3})>1 (\S+) (\S+) ([^\s|]+) ([^\s|]+) ([^\s|]+)"
    r"(?: (-|(?:\[(?:[^\]\\]|\\.)*\])+))?(?: " + "\ufeff?(.*))?"
    rf"|(?:<(\d{{1,3}})>(?:1 )?)?({_OLD_TIME}|{_ISO_TIME}):?(?: (?:{_HOST}(?: |$))?(?:{_TAG})?(.*))?)$"
)
"""The pattern of a line of syslog: the eight parts of RFC 5424, or the parts of RFC 3164.

In RFC 3164, a tag may come without a host.
"""
_LOOKS_SYSLOG = (
    rf"<\d{{1,3}}>1 \S+ |(?:<\d{{1,3}}>)?{_OLD_TIME}:?(?: |$)|<\d{{1,3}}>{_ISO_TIME} \S+ "
    rf"|{_PRECISE_TIME} [a-z0-9][\w.-]* {_TAG}"
)
"""The pattern for the beginning of a line of syslog.

Other programs also write times with microseconds. So a host in lower case and a tag must follow such a time.
"""
_PAIR = r'[^\s="]+=(?:"(?:[^"\\]|\\.)*"|[^\s"]*)'
_LOGFMT = rf"{_PAIR}(?:\s+{_PAIR})+\s*$"
"""The pattern of a line with at least two pairs key=value. A value that contains blanks is in quotes."""


def _matches(pattern: str) -> Looks:
    return lambda line: re.match(pattern, line)


_NAMES_FIELDS = r"#[Ff]ields(?:[:\t]|[^\w\s])|#separator "
"""The pattern of a comment that names the fields of a file, or the separator of the fields."""
OWN_JSON = r'\{"success":true,"msg":"[^\n]*"object":\[\s*$'
"""The pattern of the first line of a service's JSON answer. The rows begin on the next line."""

FILE_KINDS: Mapping[str, FileKind] = {
    kind.name: kind
    for kind in (
        FileKind("csv", (".csv",)),
        FileKind("tsv", (".tsv", ".tab")),
        FileKind("ndjson", (".ndjson", ".jsonl", ".json")),
        FileKind("json", (".json", ".ndjson", ".jsonl")),
        FileKind("parquet", (".parquet", ".pq")),
        FileKind("access", (), _matches(ACCESS), ACCESS),
        _log(_TIME_FIRST, _TIME, _BEGINS_TIME),
        FileKind("syslog", (), _matches(_LOOKS_SYSLOG), SYSLOG, "[ \\t]", JOURNAL_HEADER),
        FileKind("logfmt", (), _matches(_LOGFMT)),
        FileKind("fields", (), _matches(_NAMES_FIELDS)),
    )
}
"""The kinds of file by name. More specific kinds come after less specific kinds."""
