"""Text that is safe to look at: whatever a terminal would obey instead of print is written as an escape.

Events hold what strangers wrote, so a terminal gets no control character but svcctl's own. Its colours and movements of
the cursor are `Styled`, made by the functions here and by constants; `terminal.standard_streams` passes all other text
through `shown`. A part of a Styled, or a Styled with something added, is a plain str, and the terminal shows its escape
sequences: a mistake is seen, and does no harm.
"""

from __future__ import annotations

import re

_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # invisible, bidirectional, separators
    "\ud800-\udfff"  # halves of pairs, and bytes that are not UTF-8
    "\U000e0000-\U000e007f"  # tags
)
_IN_LINES = re.compile(f"[{_HIDDEN}]")
_IN_LINE = re.compile(f"[{_HIDDEN}\t\n]")


class Styled(str):
    """Text for a terminal with escape sequences of svcctl's own, and no others."""

    __slots__ = ()


def visible(text: str) -> str:
    """Text on one line: control, bidirectional and invisible characters are escapes, tabs and newlines too."""
    return text if text.isprintable() else _IN_LINE.sub(_escape, text)


def shown(text: str) -> str:
    """Text as a terminal gets it: escaped as by `visible`, except tabs and newlines."""
    if isinstance(text, Styled) or text.replace("\n", "").isprintable():
        return text
    return _IN_LINES.sub(_escape, text)


def styled(code: int, text: str) -> Styled:
    """Text in a colour or weight, by the code of its escape sequence."""
    return Styled(f"\x1b[{code}m{shown(text)}\x1b[0m")


def joined(*parts: str, between: str = "") -> Styled:
    """Texts one after the other, some of them Styled."""
    return Styled(between.join(map(shown, parts)))


def _escape(match: re.Match[str]) -> str:
    if "\udc80" <= match[0] <= "\udcff":  # how Python holds a byte that is not UTF-8
        return f"\\x{ord(match[0]) - 0xDC00:x}"
    return match[0].encode("unicode_escape").decode("ascii")
