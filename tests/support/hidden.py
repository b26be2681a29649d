"""The code points by which a terminal runs commands, hides text or reorders it, found by properties of Unicode."""

import unicodedata

_INVISIBLE = {0xAD, *range(0x200B, 0x200E), *range(0x2060, 0x2070), 0xFEFF, *range(0xFFF9, 0xFFFC)}
_TAGS = range(0xE0000, 0xE0080)


def _is_hidden(code: int) -> bool:
    character = chr(code)
    return (
        unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
        or unicodedata.bidirectional(character) in ("LRE", "LRO", "RLE", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
        or character in "\u061c\u200e\u200f"  # marks of direction
        or code in _INVISIBLE
        or code in _TAGS
    )


HIDDEN = frozenset(filter(_is_hidden, (*range(0x3000), *range(0xD800, 0xE000), *range(0xFE00, 0x10000), *_TAGS)))
"""All hidden code points: the rest of Unicode has none."""
