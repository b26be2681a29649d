"""Finds the kind of a file, such as csv or syslog, from the first lines of the file (the head).

For each kind, this module counts the lines that fit the kind. A line fits if it is an entry or continues an entry.
Blank lines and comments do not count. At least nine of ten lines must fit. A file that names its fields in a comment
has the kind `fields`. For other files, the ending of the file's name decides which kinds are tried first.

Many texts have a comma in each line. So a file without the ending .csv gets the kind csv in two cases only: no other
kind fits, or the heading has a usual name for a column of times.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

from svcctl.errors import UsageError
from svcctl.service.loading.csv import fitting_lines, frequent_separator
from svcctl.service.loading.kinds import FILE_KINDS, JOURNAL_HEADER, FileKind, incomplete_time, log_kinds
from svcctl.service.loading.lines import CONTINUES
from svcctl.service.loading.skips import DATE_OR_TIME, Skip, incomplete, shown
from svcctl.words import counted

HEAD_BYTES = 1 << 20
_MAX_LINES = 1000
"""HEAD_BYTES and _MAX_LINES are the maximum number of bytes and of lines in a head."""
_LINES_WITH_TIMES = 10
"""The maximum number of lines in which times are checked for missing parts."""
_LEAST_PERCENT = 90
_LINE_END = re.compile(r"\r*\n")


@dataclass(frozen=True, slots=True)
class FileHead:
    """The first lines of a file, including blank lines. If `is_cut` is true, the last of these lines is incomplete.

    If `is_open` is true, the last of these lines is the last line of the file, and has no line end. A program may still
    be writing this line. If `has_returns` is true, lines end with a carriage return alone.
    """

    name: str
    lines: Sequence[str]
    is_cut: bool
    is_open: bool = False
    has_returns: bool = False

    @property
    def has_events(self) -> bool:
        """Whether a line of the head is neither blank nor a comment."""
        return bool(self.first_event)

    @property
    def has_one_line(self) -> bool:
        """Whether exactly one line of the head is neither blank nor a comment."""
        return sum(map(_may_be_event, self.lines)) == 1

    @property
    def first_event(self) -> str:
        """The first line that is neither blank nor a comment. Empty if there is no such line."""
        return next(filter(_may_be_event, self.lines), "")

    @property
    def comment_with_time(self) -> str:
        """The first comment with a date or a time of day. It may be an event, because some events begin with `#`.

        Empty if there is no such comment, or if a comment names the fields of the file.
        """
        comments = [line for line in self.lines if line.startswith("#")]
        names_fields = any(map(FILE_KINDS["fields"].looks, comments))
        return "" if names_fields else next(filter(DATE_OR_TIME.search, comments), "")


def _may_be_event(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#") and not re.match(JOURNAL_HEADER, line)


def head_of(name: str, data: bytes) -> FileHead:
    """Return the first lines of a file. `data` has the first HEAD_BYTES bytes, or all bytes of a shorter file.

    Raises UsageError if the first line has the character NUL, because such a text is not in UTF-8. Also raises
    UsageError if the first line begins with a record separator, as in RFC 7464.
    """
    text = data.decode("utf-8-sig", errors="replace").replace("\n\ufeff", "\n")
    has_returns = text.count("\r") > 2 * text.count("\n")
    lines = re.split("[\r\n]", text) if has_returns else _LINE_END.split(text)
    is_cut = len(data) == HEAD_BYTES
    if len(lines) > 1:
        lines, is_cut = lines[:-1] if is_cut or not lines[-1] else lines, False
    is_open = 1 < len(lines) <= _MAX_LINES and len(data) < HEAD_BYTES and not data.endswith((b"\n", b"\r"))
    first = next(filter(str.strip, lines), "")
    if "\0" in first and not data.startswith(b"PAR1"):
        raise UsageError(f"{name} is not text in UTF-8: its first line has the character NUL", reason="nul-character")
    if first.startswith("\x1e"):
        raise UsageError(f"{name} has record separators (0x1E) before its entries", reason="record-separators")
    return FileHead(name, lines[:_MAX_LINES], is_cut, is_open, has_returns)


@dataclass(frozen=True, slots=True)
class Score:
    """The result of testing whether the first lines of a file fit a kind.

    `lines` is the number of tested lines, and `read` is the number of lines that fit. `first_unread` is the index of
    the first line that does not fit, or None if all lines fit.
    """

    kind: FileKind
    read: int
    lines: int
    reads_first: bool
    first_unread: int | None
    names: Sequence[str] = ()
    """The cells in the first row of csv."""

    @property
    def is_enough(self) -> bool:
        return self.read > 0 and 100 * self.read >= _LEAST_PERCENT * self.lines

    @property
    def percent(self) -> int:
        return 100 * self.read // (self.lines or 1)


def kind_of(head: FileHead, ending: str, written: str, time_names: Sequence[str]) -> FileKind:
    """Find the kind of a file by its first lines, and by the ending of its name, such as `.csv`.

    `written` is the pattern of the times in a log, or empty. `time_names` has the usual names of columns of times, in
    lower case. A line with one of these names is a heading of csv. Raises UsageError if the kind is not clear.
    """
    is_lacking = not written and incomplete_time(head.first_event) is not None
    scores = [_score(kind, head, written) for kind in FILE_KINDS.values()]
    endings = [score for score in scores if ending.lower() in score.kind.endings]
    others = [score for score in scores if score.kind.name not in _SEPARATORS]
    tables = [score for score in scores if score.kind.name in _SEPARATORS]
    log = next(score for score in scores if score.kind.name == "log")
    dated = [
        score
        for score in tables
        if any(name.strip().casefold() in time_names for name in score.names) or _is_above_times(score, log, head)
    ]
    if head.has_one_line:
        tables = dated
    readers = [score.kind.name for score in others if score.reads_first]
    own = [score for score in endings if score in others or (score in tables and not {*readers} & {*_OBJECTS})]
    named = [score for score in scores if score.kind.name == "fields"]
    if readers or _BEGINS_OBJECT.match(head.first_event):
        tables = dated = []
    for group in (named, own, [*dated, *others], tables):
        best = _best(group)
        if best is not None and best.is_enough and not (is_lacking and best in tables and best not in dated):
            return best.kind
    if not written and not readers and (lacking := _lacking(head)):
        raise incomplete(head.name, *lacking)
    if endings:
        return max(endings, key=lambda score: score.read).kind
    raise _unclear(head, [*tables, *others])


def _is_above_times(table: Score, log: Score, head: FileHead) -> bool:
    """Return whether the first line is a heading of csv, and the lines below it have a time in their first cell.

    The first cell of a line is a time if the line fits the kind `log`, and the separator directly follows the time.
    """
    separator = _SEPARATORS[table.kind.name] or frequent_separator(head.first_event)
    if log.reads_first or table.read < table.lines or f"{separator} " in head.first_event:
        return False
    entries = [entry for line in head.lines if (entry := re.match(log.kind.pattern, line))]
    return bool(entries) and all(entry.string.startswith(separator, entry.end(4)) for entry in entries)


def _lacking(head: FileHead) -> tuple[str, Skip] | None:
    """Return the first incomplete time in the first lines of a file, and the part that this time lacks.

    Returns None if fewer than half of these lines have an incomplete time.
    """
    lines = list(islice(filter(_may_be_event, head.lines), _LINES_WITH_TIMES))
    times = [time for time in map(incomplete_time, lines) if time]
    return times[0] if times and 2 * len(times) >= len(lines) else None


def best_log(head: FileHead, written: str) -> FileKind:
    """Return the kind of log that fits a file best. This function is for a file that the user calls a log.

    The kinds of logs differ in the place of the time in a line. Raises UsageError if the times lack a part.
    """

    def entries(kind: FileKind) -> int:
        return sum(re.match(kind.pattern, line) is not None for line in head.lines)

    score = _score(FILE_KINDS["log"], head, written)
    if score.read:
        return score.kind
    if not written and (lacking := _lacking(head)):
        raise incomplete(head.name, *lacking)
    return max(log_kinds(head.lines, written), key=entries)


def _best(scores: Iterable[Score]) -> Score | None:
    """Return the score with the largest share of fitting lines.

    If several scores are equal, the last score is returned, because its kind is the most specific.
    """
    return max(reversed(list(scores)), key=lambda score: score.read / (score.lines or 1), default=None)


def _score(kind: FileKind, head: FileHead, written: str) -> Score:
    if kind.name != "log":
        return _counted(kind, head)
    best = None
    for variant in log_kinds(head.lines, written):
        score = _counted(variant, head)
        if score.is_enough:
            return score
        if best is None or score.read > best.read:
            best = score
    assert best is not None
    return best


def _counted(kind: FileKind, head: FileHead) -> Score:
    names: Sequence[str] = ()
    if kind.name in _SEPARATORS:
        fits, names = fitting_lines(head.lines, _SEPARATORS[kind.name])
    else:
        fits = _MEASURES.get(kind.name, _entries)(kind, head)
    comment = re.compile(f"#|{kind.comment}" if kind.comment else "#")
    # An unfinished last line need not fit. For csv, this is so only if two lines fit, because prose has commas, too.
    end = len(head.lines) - (head.is_open and (kind.name not in _SEPARATORS or sum(fits) > 1))
    pairs = enumerate(zip(head.lines, fits, strict=True))
    lines = [at for at, (line, fit) in pairs if fit or (line.strip() and at < end and not comment.match(line))]
    unread = [at for at in lines if not fits[at]]
    return Score(
        kind,
        len(lines) - len(unread),
        len(lines),
        reads_first=bool(lines) and fits[lines[0]],
        first_unread=unread[0] if unread else None,
        names=names,
    )


def _entries(kind: FileKind, head: FileHead) -> list[bool]:
    """Return for each line whether it begins or continues an entry. The kind must have a pattern.

    A line between an entry and its stack trace, for example an error message, also continues the entry.
    """
    lines, fits = head.lines, [False] * len(head.lines)
    joins = re.compile(kind.continuation) if kind.continuation else None
    has_entry = is_joined = False
    for at, line in enumerate(lines):
        if kind.looks(line) and re.match(kind.pattern, line):
            fits[at] = has_entry = True
            is_joined = False
        elif has_entry and joins and line.strip() and joins.match(line):
            is_joined = is_joined or any(map(CONTINUES.match, lines[at : at + 2]))
            fits[at] = is_joined
    return fits


def _objects(kind: FileKind, head: FileHead) -> list[bool]:
    """Return for each line whether it is a JSON object. The last line may be incomplete."""
    fits = [line.startswith("{") and _json_end(line) == len(line.rstrip()) for line in head.lines]
    if head.is_cut:
        fits[-1] = head.lines[-1].startswith("{")
    return fits


def _json_end(text: str) -> int:
    """Return the end of the first JSON value in a text. Returns 0 if the text does not begin with JSON.

    A value that is nested too deep counts as JSON.
    """
    try:
        _, end = _DECODER.raw_decode(text)
    except RecursionError:
        return len(text.rstrip())
    except ValueError:
        return 0
    return end


def _documents(kind: FileKind, head: FileHead) -> list[bool]:
    """Return for each line whether it belongs to a JSON array or to a sequence of JSON values.

    If each line is an object, the result is false for all lines, because the file is then ndjson. In a file of ndjson,
    the last line may be incomplete.
    """
    fits = [False] * len(head.lines)
    objects = _objects(kind, head)
    text = "\n".join(head.lines)
    at = len(text) - len(text.lstrip())
    whole = list(zip(objects, head.lines, strict=True))[: -1 if head.is_open and any(objects) else None]
    only_objects = all(fit or not line.strip() for fit, line in whole)
    if only_objects or not text.startswith(("{", "["), at):
        return fits
    is_array = text.startswith("[", at)
    between = _BETWEEN_ELEMENTS if is_array else _BETWEEN_DOCUMENTS
    at += is_array
    while (at := between.match(text, at).end()) < len(text):  # type: ignore[union-attr]  # it matches any text
        try:
            _, at = _DECODER.raw_decode(text, at)
        except RecursionError:
            break
        except json.JSONDecodeError as error:
            if error.pos < len(text.rstrip()) and not error.msg.startswith("Unterminated"):
                lines = text.count("\n", 0, error.pos)
                return [number < lines and bool(line.strip()) for number, line in enumerate(head.lines)]
            break
    return [bool(line.strip()) for line in head.lines]


def _fields(kind: FileKind, head: FileHead) -> list[bool]:
    """Return for each line whether it fits the kind `fields`.

    If a comment before the rows names the fields, all lines fit except blank lines. Otherwise, no line fits.
    """
    comments = takewhile(lambda line: line.startswith("#") or not line.strip(), head.lines)
    is_named = any(map(kind.looks, comments))
    return [is_named and bool(line.strip()) for line in head.lines]


def _magic(kind: FileKind, head: FileHead) -> list[bool]:
    return [head.lines[0].startswith("PAR1")] * len(head.lines)


_BEGINS_OBJECT = re.compile(r'\s*\[?\s*\{\s*"')
"""Matches the beginning of JSON. A row of csv does not begin so, even if the JSON is not valid."""
_BETWEEN_DOCUMENTS, _BETWEEN_ELEMENTS = re.compile(r"\s*"), re.compile(r"[\s,\]]*")
_DECODER = json.JSONDecoder()
_SEPARATORS = {"csv": None, "tsv": "\t"}
"""The separators of the kinds that are tables of text. None if the heading decides the separator."""
_OBJECTS = ("ndjson", "json")
_MEASURES: dict[str, Callable[[FileKind, FileHead], list[bool]]] = {
    "ndjson": _objects,
    "json": _documents,
    "parquet": _magic,
    "fields": _fields,
}
"""The functions that find the fitting lines, by the name of the kind. Kinds with a pattern or a separator need none."""


def _unclear(head: FileHead, scores: Iterable[Score]) -> UsageError:
    """Return the error for a file with first lines that do not fit any kind.

    The message shows the two best kinds and the first line that does not fit.
    """
    best = sorted((score for score in scores if score.read), key=lambda score: -score.read / score.lines)[:2]
    at = best[0].first_unread if best else next(at for at, line in enumerate(head.lines) if line.strip())
    line = shown(head.lines[at or 0])
    what = f"no format fits the line {line}"
    if best:
        shares = " and ".join(f"{score.kind.name} fits {score.percent}%" for score in best)
        others = f"the first line that does not fit is line {(at or 0) + 1}: {line}"
        what = f"of its first {counted(best[0].lines, 'line')}, {shares}; {others}"
    return UsageError(
        f"the format of {head.name} is not clear: {what}",
        reason="unclear-format",
        data={"formats": list(FILE_KINDS)},
    )
