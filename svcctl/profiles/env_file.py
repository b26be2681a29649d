"""Files with lines of the form `NAME=VALUE`. A line that a shell would read in another way is refused.

The message of an error never contains a value, because a value may be a secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from svcctl.errors import UsageError

_ASSIGNMENT = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.]*)([ \t]*)=(.*)")
_VALUE_PART = re.compile(
    r"""
    (?P<plain> [^\ \t'"\\$`;&|<>()]+)
    | \\(?P<escaped> .)
    | '(?P<single> [^']*)'
    | "(?P<double> (?:[^"\\$`] | \\.)*)"
    """,
    re.VERBOSE,
)
_HOME = re.compile(r"~[\w.-]*(?=[/ \t]|$)")
_REPLACED = re.compile(r'(?:"(?:[^"\\$`]|\\.)*)?[$`]')
_SPOILT = {
    "'": "a quote is not closed",
    '"': "a quote is not closed",
    "\\": "the line ends in a backslash",
    " ": "a text follows the value",
    "\t": "a text follows the value",
}


def is_env_file(text: str) -> bool:
    """Return whether the first line of a text has the form `NAME=VALUE`. Comments and empty lines are skipped."""
    _, first = next(_lines(text), (0, ""))
    return _ASSIGNMENT.fullmatch(first) is not None


def assignments(text: str, source: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line number, the name and the value of each assignment.

    Raises UsageError, with the line number, for a line that a shell would read in another way.
    """
    for number, line in _lines(text):
        match = _ASSIGNMENT.fullmatch(line)
        try:
            if match is None:
                raise ValueError("not of the form NAME=VALUE")
            value = _value(match[2], match[3])
        except ValueError as error:
            name = f"{match[1]}: " if match else ""
            hint = "write NAME=VALUE without blanks, or NAME='VALUE'"
            raise UsageError(f"{source}, line {number}: {name}{error}", hint=hint) from None
        yield number, match[1], value


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its number. Comments and empty lines are left out."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line.rstrip("\r")


def _value(before: str, text_after: str) -> str:
    """Return the value for the text after `=`.

    Raises ValueError, with the reason, for a text that a shell would read in another way. `before` contains the blanks
    before the `=`.
    """
    home = _HOME.match(text_after)
    value, position = (os.path.expanduser(home[0]), home.end()) if home else ("", 0)  # noqa: PTH111
    while part := _VALUE_PART.match(text_after, position):
        value += part["plain"] or part["escaped"] or part["single"] or _unescaped(part["double"] or "")
        position = part.end()
    rest = text_after[position:]
    text = rest.strip(" \t")
    if before or (text and rest[0] in " \t" and not text.startswith("#") and not position):
        raise ValueError("there are blanks around the =")
    if not text or (text.startswith("#") and rest != text):
        return value
    if _REPLACED.match(rest):
        raise ValueError("a shell replaces text that begins with $ or `")
    raise ValueError(_SPOILT.get(rest[0], f"{rest[0]} means something else to a shell"))


def _unescaped(text: str) -> str:
    """Resolve the escapes in a text between double quotes. Only double quotes, backslashes, $ and ` can be escaped."""
    return re.sub(r'\\(["\\$`])', r"\1", text)
