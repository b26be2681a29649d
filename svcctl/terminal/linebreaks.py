"""Where messages on a terminal go to the next line: at spaces, and never inside a command that is to be copied.

A command that is longer than a line has one of its own, which the terminal breaks, so that it is copied whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from svcctl.terminal.tables import cell_width

_INDENT = "  "
_PROGRAMS = r"mkdir|chmod|pip|sed|jq|iconv|grep|tail|bzcat|xzcat|\(echo"
_COMMAND = (
    rf"(?:\A(?:{_PROGRAMS})|(?<=: )(?:svcctl|{_PROGRAMS})) "
    r"""(?:'[^']*'|"[^"]*"|(?!; | \(|, (?:which|and) ).)+[;,]?"""  # up to what is said about it
    r"|(?<![^\s(])'svcctl [^']*'\S*"
)
_PART = re.compile(rf"""(?P<command>{_COMMAND})|(?<![^\s(])'[^']*'\S*|(?<![^\s(])"[^"]*"\S*|\S+""")


def broken(text: str, width: int, taken: int) -> str:
    """A message in lines of a width, the first of which has `taken` cells before it; quotes that fit stay whole."""
    if taken + cell_width(text) <= width:
        return text
    lines: list[list[str]] = [[]]
    left = width - taken
    for part in _parts(text, width - len(_INDENT)):
        needed = cell_width(part) + bool(lines[-1])
        if needed > left:
            lines.append([])
            needed, left = cell_width(part), width - len(_INDENT)
        lines[-1].append(part)
        left -= needed
    return f"\n{_INDENT}".join(map(" ".join, lines)) + " " * text.endswith(" ")


def _parts(text: str, width: int) -> Iterator[str]:
    """The parts of a text between which lines can be broken."""
    for found in _PART.finditer(text):
        if found["command"] or cell_width(found[0]) <= width:
            yield found[0]
        else:
            yield from found[0].split(" ")
