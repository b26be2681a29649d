"""How long the text of an expression can become, computed before the query runs.

A few nested replacements could make a text that no memory holds. A stored text counts as STORED_CHARS characters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from svcctl.service.language.query_error import Refused

STORED_CHARS = 100
"""The characters that a stored text counts as; a stored value of another type has fewer."""
MAX_TEXT_CHARS = 2_000_000
"""The most characters that a text, or a row of the answer, may have by its bounds."""


@dataclass(frozen=True, slots=True)
class TextBound:
    """The most characters of a text: `known` counts characters that the query spells out, `unknown` all others.

    The known characters are counted one by one, so that a chain of replacements, such as the escapes of HTML, does not
    count as if each replacement worked on the results of those before it.
    """

    unknown: int = STORED_CHARS
    known: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of_literal(cls, text: str) -> TextBound:
        return cls(0, Counter(text))

    @classmethod
    def widest(cls, bounds: Iterable[TextBound]) -> TextBound:
        """The bound of a value that is made of one of several values, in characters that may be any."""
        return cls(max((bound.chars for bound in bounds), default=STORED_CHARS))

    @property
    def chars(self) -> int:
        return self.unknown + sum(self.known.values())

    def joined(self, other: TextBound, times: int = 1) -> TextBound:
        """The bound of this text with another one added to it this many times. Raises Refused when it is too long."""
        known = Counter(self.known)
        for character, count in other.known.items():
            known[character] += count * times
        bound = TextBound(self.unknown + other.unknown * times, known)
        check_chars(bound.chars)
        return bound

    def replaced(self, old: str | None, new: TextBound) -> TextBound:
        """The bound after `old`, which is None unless the query spells it out, is replaced everywhere by `new`."""
        if new.chars <= (1 if old is None else len(old)):
            return TextBound(self.chars)
        return self.joined(new, self._occurrences(old))

    def _occurrences(self, old: str | None) -> int:
        if old is None:
            return self.chars
        counts = Counter(old).items()
        return min(((self.unknown + self.known.get(character, 0)) // count for character, count in counts), default=0)


def check_chars(chars: int) -> None:
    """Raise Refused for a text or a row of so many characters."""
    if chars > MAX_TEXT_CHARS:
        hint = f"a stored text counts as {STORED_CHARS}; use shorter replacements, or fewer of them"
        raise Refused(f"a text could get more than {MAX_TEXT_CHARS:,} characters", hint=hint)
