"""Words: the known name that a mistyped one was probably meant to be, spellings of formats, plurals and sizes, values
of JSON as text, which names mean secrets, and how secrets are masked.

Client and service suggest by the same rule. Case does not count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from svcctl.errors import NotFound, SvcctlError

LIKENESS = 0.7
"""How alike two names must be, from 0 to 1."""
MIN_WORD_LETTERS = 2
"""The fewest letters of a word that is looked for in names."""
NAMED = 5
"""The most names in a sentence."""
CHOICES = 20
"""The most names in a hint, from which the reader chooses one."""
FORMAT_NAMES: Mapping[str, str] = {
    "jsonl": "ndjson",
    "jsonlines": "ndjson",
    "json-lines": "ndjson",
    "json_lines": "ndjson",
    "xlsx": "xls",
    "excel": "xls",
}
"""Other names of formats that are accepted."""

_SECRET = (
    r"secret|passw(?:or)?d|passphrase|token|sasl[._-]?jaas|oauthbearer[._-]?config"
    r"|auth[._-]?user[._-]?info|account[._-]?key"
    r"|(?:private|customer|encryption|keystore|storage|shared|signing|ssl|api)[._-]?key(?:[._-]?(?:content|data))?$"
    r"|(?:^|[._-])pwd$|credentials?(?:[._-]?json)?$|keystore$|(?:^|[._-])(?:pfx|p12|pkcs12)$"
)
"""Parts of names that mean secrets, in lower case."""
_PEM = r"pem(?:$|[._-])"
_CERTIFICATE = r"(?:^|[._-])(?:ca|cert(?:ificate)?s?|chain)(?:$|[._-]|pem)"
"""What is public of a key in the PEM format."""
_HARMLESS = r"(?:location|file|path|type|provider|class|serializer|algorithm|endpoint[._-]?url)$"
"""Ends of names that mean a place or a kind of a secret."""
_USER_INFO = (
    r"(?<=://)(?:"
    r"[^\s/?#\"<>]*@"
    r"|(?![^\s/?#@]*:(?:\d+\b|[\s/?#]|$))(?!\[)[^\s/?#@:]+:[^\n\"<>]{0,1000}@"  # a / or a blank that is not encoded
    r")"
)
"""User name and password of a URL. Text after a port is not a password."""
_EXAMPLES = ("user@", "user:password@")
"""Placeholders for user and password in hints."""
_URL_PARAMETER = r"(?<=[?&;])([\w.-]+)=([^\s&;#\"'<>]+)"
_WORDS = r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+|\d+"


def is_secret(name: str) -> bool:
    """Whether the value of a parameter, a field or a header of this name must not be shown.

    Names that nobody knows are sent too, so a secret is recognised by how secrets are commonly named.
    """
    lowered = name.lower()
    if re.search(_HARMLESS, lowered):
        return False
    if re.search(_PEM, lowered) and not re.search(_CERTIFICATE, lowered):
        return True
    return re.search(_SECRET, lowered) is not None


def mask(secret: str = "") -> str:
    """The text shown for a secret: four stars, and the last four characters of a text that is long enough."""
    return "****" + (secret[-4:] if len(secret) >= 16 else "")


def mask_urls(text: str) -> str:
    """A text whose URLs have their users, passwords and secret parameters masked; the other characters stay."""
    if "://" not in text:
        return text
    text = re.sub(_USER_INFO, lambda match: match[0] if match[0].lower() in _EXAMPLES else f"{mask()}@", text)
    return re.sub(_URL_PARAMETER, lambda match: f"{match[1]}={mask()}" if is_secret(match[1]) else match[0], text)


def nearest(name: str, candidates: Iterable[str], likeness: float = LIKENESS) -> str | None:
    """The known name that is most like `name`, or has its letters in another order.

    None when none is close, or when `name` is known itself.
    """
    from difflib import get_close_matches

    by_fold: dict[str, str] = {}
    for candidate in candidates:
        if candidate == name:
            return None
        by_fold.setdefault(candidate.casefold(), candidate)
    typed = name.casefold()
    mixed = [candidate for candidate in by_fold if sorted(candidate) == sorted(typed)]
    close = mixed or get_close_matches(typed, by_fold, n=1, cutoff=likeness)
    return by_fold[close[0]] if close else None


def having_word(name: str, candidates: Iterable[str]) -> str | None:
    """The only known name that has `name` as one of its words, or begins with it: statusCode for status."""
    word = name.casefold()
    if len(word) < MIN_WORD_LETTERS:
        return None
    matches = [
        candidate
        for candidate in candidates
        if word in map(str.casefold, re.findall(_WORDS, candidate)) or candidate.casefold().startswith(word)
    ]
    return matches[0] if len(matches) == 1 and matches[0] != name else None


def did_you_mean(name: str, candidates: Iterable[str], *, words: bool = True) -> str | None:
    """The nearest name as a hint; with `words`, otherwise the only known name that contains `name` as a word."""
    candidates = list(candidates)
    suggestion = nearest(name, candidates) or (having_word(name, candidates) if words else None)
    return f"did you mean '{suggestion}'?" if suggestion else None


def among(name: str, candidates: Iterable[str], what: str) -> str | None:
    """The nearest name as a hint, and the first names that there are."""
    names = sorted(candidates)
    known_names = f"{what} are {choices(names)}" if names else None
    return " ".join(filter(None, (did_you_mean(name, names), known_names))) or None


def choices(names: Iterable[str]) -> str:
    """The names that a reader can choose from: the first ones, and how many more there are."""
    return some(list(names), CHOICES)


def some(names: Sequence[str], most: int = NAMED) -> str:
    """The first names, and how many more there are. Every message that lists names does it by this function."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


@contextmanager
def suggesting(
    name: str,
    candidates: Callable[[], Iterable[str | None]],
    what: str = "",
    *,
    when: Callable[[NotFound], bool] = lambda error: True,
) -> Iterator[None]:
    """When `name` is not found, the error gets the most similar of the known names, which are requested only then.

    When none is similar, the error lists some of the names, if `what` says what they are. `when` chooses the errors.
    """
    try:
        yield
    except NotFound as error:
        if not when(error):
            raise
        with suppress(SvcctlError):
            names = [candidate for candidate in candidates() if candidate]
            if suggestion := did_you_mean(name, names):
                error.add_note(suggestion)
            elif what and names and not error.hint:
                error.add_note(f"{what} are: {choices(names)}")
        raise


def plural(number: int, singular: str, many: str | None = None) -> str:
    """A word for a number of things: query or queries; `many` is given where words follow the noun, or for a verb."""
    return (
        singular
        if number == 1
        else many or (f"{singular[:-1]}ies" if singular.endswith(("ty", "ry", "cy")) else f"{singular}s")
    )


def counted(number: int, singular: str, many: str | None = None) -> str:
    """A number of things: `1 query`, `2,000 queries`, `2 files are`."""
    return f"{number:,} {plural(number, singular, many)}"


def size_text(size: float) -> str:
    """A number of bytes: 812 bytes, 56 kB, 1.2 MB."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.{0 if size >= 10 * unit else 1}f} {name}"
    return counted(round(size), "byte")


def json_text(value: object) -> str:
    """A value of JSON as people read it: a text without quotes, any other value as JSON writes it."""
    return value if isinstance(value, str) else _encode(value)


def _plain(value: object) -> object:
    """A value that JSON has no type for, as one that it has."""
    return dict(value) if isinstance(value, Mapping) else str(value)


_encode = json.JSONEncoder(ensure_ascii=False, default=_plain).encode


def format_name(name: str) -> str:
    """The name of a format, from any spelling of it."""
    return FORMAT_NAMES.get(name.lower(), name.lower())
