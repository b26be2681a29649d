"""The maximum length of an expression's text, computed before the query runs.

Texts are limited, because a few nested replacements could make a text that does not fit in memory. The length of a
stored text is assumed to be STORED_CHARS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from svcctl.service.language.query_error import UnplacedError

STORED_CHARS = 100
"""The assumed length of a stored text, in characters. Stored values of other types are shorter."""
MAX_TEXT_CHARS = 2_000_000
"""The maximum number of characters of a text, or of a row of the answer. No computed bound may exceed this number."""


@dataclass(frozen=True, slots=True)
class TextBound:
    """The maximum number of characters of a text.

    Some characters of the text come from literals in the query. `literal_counts` says how often each of these
    characters can occur. `other_chars` is the number of all other characters. The separate counts keep the bound of
    nested replacements small. For example, if `&` was replaced by `&amp;`, the inserted characters do not count in a
    later replacement of `<`.
    """

    other_chars: int = STORED_CHARS
    literal_counts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of_literal(cls, text: str) -> TextBound:
        return cls(0, Counter(text))

    @classmethod
    def widest(cls, bounds: Iterable[TextBound]) -> TextBound:
        """Return the longest of several bounds. All characters of the result count as `other_chars`."""
        return cls(max((bound.chars for bound in bounds), default=STORED_CHARS))

    @property
    def chars(self) -> int:
        return self.other_chars + sum(self.literal_counts.values())

    def joined(self, other: TextBound, times: int = 1) -> TextBound:
        """Return the bound of this text after another text is appended `times` times.

        Raises UnplacedError if the result is too long.
        """
        counts = Counter(self.literal_counts)
        for character, count in other.literal_counts.items():
            counts[character] += count * times
        bound = TextBound(self.other_chars + other.other_chars * times, counts)
        check_chars(bound.chars)
        return bound

    def replaced(self, old: str | None, new: TextBound) -> TextBound:
        """Return the bound of this text after each `old` is replaced by a text with the bound `new`.

        `old` is None if the replaced text is not a literal.
        """
        if new.chars <= (1 if old is None else len(old)):
            return TextBound(self.chars)
        return self.joined(new, self._occurrences(old))

    def _occurrences(self, old: str | None) -> int:
        if old is None:
            return self.chars
        counts = Counter(old).items()
        return min(
            ((self.other_chars + self.literal_counts.get(character, 0)) // count for character, count in counts),
            default=0,
        )


def check_chars(chars: int) -> None:
    """Raise UnplacedError if `chars`, the maximum length of a text or a row, is greater than MAX_TEXT_CHARS."""
    if chars > MAX_TEXT_CHARS:
        hint = f"a stored text counts as {STORED_CHARS}; use shorter replacements, or fewer of them"
        raise UnplacedError(f"a text could get more than {MAX_TEXT_CHARS:,} characters", hint=hint)
