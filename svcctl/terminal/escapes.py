"""Text that is safe on a terminal: characters that could control the terminal are written as escapes.

Events contain text from strangers, so the terminal gets no control characters except svcctl's own. Its colours and
cursor movements are of type `Styled`, made only by the functions of this module and by constants.
`terminal.standard_streams` passes all other text through `shown`. A slice or an extension of a Styled is a plain str,
whose escape sequences are shown as text: a mistake is visible, but harmless.
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
    """Text for a terminal in which all escape sequences are svcctl's own."""

    __slots__ = ()


def visible(text: str) -> str:
    """Text on one line, with control, bidirectional and invisible characters as escapes, also tabs and newlines."""
    return text if text.isprintable() else _IN_LINE.sub(_escape, text)


def shown(text: str) -> str:
    """Text for a terminal: escaped like `visible` does, but with tabs and newlines; Styled text is unchanged."""
    if isinstance(text, Styled) or text.replace("\n", "").isprintable():
        return text
    return _IN_LINES.sub(_escape, text)


def styled(code: int, text: str) -> Styled:
    """Text in a colour or weight, given by the code of its escape sequence."""
    return Styled(f"\x1b[{code}m{shown(text)}\x1b[0m")


def joined(*parts: str, between: str = "") -> Styled:
    """Several texts, Styled or plain, as one Styled."""
    return Styled(between.join(map(shown, parts)))


def _escape(match: re.Match[str]) -> str:
    if "\udc80" <= match[0] <= "\udcff":  # Python's surrogate for a byte that is not UTF-8
        return f"\\x{ord(match[0]) - 0xDC00:x}"
    return match[0].encode("unicode_escape").decode("ascii")
