"""Text that is safe on a terminal. Characters that could control the terminal are written as escapes.

Events contain text from strangers, so svcctl sends only its own control characters to a terminal. Text with colours and
cursor movements has the type `Styled`. The module `terminal.standard_streams` passes all other text through the
function `shown`. A slice of a Styled is a plain str, so the escape sequences in the slice are shown as text.
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
    """Text for a terminal. Its escape sequences come from svcctl, and not from data."""

    __slots__ = ()


def visible(text: str) -> str:
    """Return a text as one line that is safe on a terminal.

    Control, bidirectional and invisible characters are escaped, including tabs and newlines.
    """
    return text if text.isprintable() else _IN_LINE.sub(_escape, text)


def shown(text: str) -> str:
    """Return a text that is safe on a terminal.

    Control, bidirectional and invisible characters are escaped, except tabs and newlines. Styled text is unchanged.
    """
    if isinstance(text, Styled) or text.replace("\n", "").isprintable():
        return text
    return _IN_LINES.sub(_escape, text)


def styled(code: int, text: str) -> Styled:
    """Return a text in a colour or weight. `code` is the number in the escape sequence."""
    return Styled(f"\x1b[{code}m{shown(text)}\x1b[0m")


def joined(*parts: str, between: str = "") -> Styled:
    """Join texts into one Styled. Plain texts are escaped, except tabs and newlines."""
    return Styled(between.join(map(shown, parts)))


def _escape(match: re.Match[str]) -> str:
    if "\udc80" <= match[0] <= "\udcff":  # the surrogate that Python uses for a byte that is not UTF-8
        return f"\\x{ord(match[0]) - 0xDC00:x}"
    return match[0].encode("unicode_escape").decode("ascii")
