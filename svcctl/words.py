"""Words of messages: suggestions for mistyped names, plurals, sizes, JSON values as text, and masked secrets.

Client and service make suggestions by the same rule, which ignores case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from svcctl.errors import NotFound, SvcctlError

LIKENESS = 0.7
"""The similarity, from 0 to 1, that a name needs to be suggested for another."""
MIN_WORD_LETTERS = 2
"""The fewest letters of a word that is searched for in names."""
NAMED = 5
"""The most names that a sentence lists."""
CHOICES = 20
"""The most names in a hint from which the reader chooses one."""
FORMAT_NAMES: Mapping[str, str] = {
    "jsonl": "ndjson",
    "jsonlines": "ndjson",
    "json-lines": "ndjson",
    "json_lines": "ndjson",
    "xlsx": "xls",
    "excel": "xls",
}
"""Other accepted names of formats."""
DESTINATION_TYPES = ("Kafka", "S3", "HDFS", "donothing")
"""The types of destinations as the interface spells them. Case does not count; services report them in lower case."""

_SECRET = (
    r"secret|passw(?:or)?d|passphrase|token|sasl[._-]?jaas|oauthbearer[._-]?config"
    r"|auth[._-]?user[._-]?info|account[._-]?key"
    r"|(?:private|customer|encryption|keystore|storage|shared|signing|ssl|api)[._-]?key(?:[._-]?(?:content|data))?$"
    r"|(?:^|[._-])pwd$|credentials?(?:[._-]?json)?$|keystore$|(?:^|[._-])(?:pfx|p12|pkcs12)$"
)
"""A pattern for the names of secrets, in lower case."""
_PEM = r"pem(?:$|[._-])"
_CERTIFICATE = r"(?:^|[._-])(?:ca|cert(?:ificate)?s?|chain)(?:$|[._-]|pem)"
"""A pattern for the names of PEM files that hold certificates, which are public."""
_HARMLESS = r"(?:location|file|path|type|provider|class|serializer|algorithm|endpoint[._-]?url)$"
"""Endings of names that hold the location or the kind of a secret, not the secret itself."""
_USER_INFO = (
    r"(?<=://)(?:"
    r"[^\s/?#\"<>]*@"
    r"|(?![^\s/?#@]*:(?:\d+\b|[\s/?#]|$))(?!\[)[^\s/?#@:]+:[^\n\"<>]{0,1000}@"  # a / or a blank that is not encoded
    r")"
)
"""The user name and password in a URL. Text after a port number is not a password."""
_EXAMPLES = ("user@", "user:password@")
"""Placeholders for user and password in hints."""
_URL_PARAMETER = r"(?<=[?&;])([\w.-]+)=([^\s&;#\"'<>]+)"
_WORDS = r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+|\d+"


def is_secret(name: str) -> bool:
    """Whether the value of a parameter, field or header with this name is a secret, which must not be shown.

    svcctl may not know the name, so common words in the names of secrets decide.
    """
    lowered = name.lower()
    if re.search(_HARMLESS, lowered):
        return False
    if re.search(_PEM, lowered) and not re.search(_CERTIFICATE, lowered):
        return True
    return re.search(_SECRET, lowered) is not None


def mask(secret: str = "") -> str:
    """The text shown in place of a secret: four stars, then its last four characters if it has 16 or more."""
    return "****" + (secret[-4:] if len(secret) >= 16 else "")


def mask_urls(text: str) -> str:
    """A text in which the users, passwords and secret parameters of URLs are masked; nothing else changes."""
    if "://" not in text:
        return text
    text = re.sub(_USER_INFO, lambda match: match[0] if match[0].lower() in _EXAMPLES else f"{mask()}@", text)
    return re.sub(_URL_PARAMETER, lambda match: f"{match[1]}={mask()}" if is_secret(match[1]) else match[0], text)


def nearest(name: str, candidates: Iterable[str], likeness: float = LIKENESS) -> str | None:
    """The candidate most similar to `name`, or with the same letters in another order.

    None if no candidate is similar, or if `name` is itself a candidate.
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
    """The only candidate that has `name` as a word or begins with it, such as statusCode for status; else None."""
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
    """A hint that suggests the candidate nearest to `name`; None if there is none.

    With `words`, the only candidate that contains `name` as a word is suggested if none is similar.
    """
    candidates = list(candidates)
    suggestion = nearest(name, candidates) or (having_word(name, candidates) if words else None)
    return f"did you mean '{suggestion}'?" if suggestion else None


def among(name: str, candidates: Iterable[str], what: str) -> str | None:
    """A hint with the candidate nearest to `name` and the first names of all; None without candidates.

    `what` says in the plural what the candidates are.
    """
    names = sorted(candidates)
    known_names = f"{what} are {choices(names)}" if names else None
    return " ".join(filter(None, (did_you_mean(name, names), known_names))) or None


def choices(names: Iterable[str]) -> str:
    """Up to 20 names from which the reader can choose, and how many more there are."""
    return some(list(names), CHOICES)


def some(names: Sequence[str], most: int = NAMED) -> str:
    """The first names, and how many more there are. Every message that lists names uses this function."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


@contextmanager
def suggesting(
    name: str,
    candidates: Callable[[], Iterable[str | None]],
    what: str = "",
    *,
    when: Callable[[NotFound], bool] = lambda error: True,
) -> Iterator[None]:
    """Add a hint to a NotFound error of the block: the candidate most similar to `name`.

    `candidates` is called only after the error. If no candidate is similar, the hint lists the first ones, provided
    that `what` says in the plural what they are. `when` selects the errors that get a hint.
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
    """The singular or plural of a noun or verb for a number: query or queries.

    `many` is the plural where the rule gives a wrong one: of verbs, and of nouns with words after them.
    """
    return (
        singular
        if number == 1
        else many or (f"{singular[:-1]}ies" if singular.endswith(("ty", "ry", "cy")) else f"{singular}s")
    )


def counted(number: int, singular: str, many: str | None = None) -> str:
    """A number with its noun: `1 query`, `2,000 queries`, `2 files are`."""
    return f"{number:,} {plural(number, singular, many)}"


def size_text(size: float) -> str:
    """A number of bytes: 812 bytes, 56 kB, 1.2 MB."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.{0 if size >= 10 * unit else 1}f} {name}"
    return counted(round(size), "byte")


def json_text(value: object) -> str:
    """A JSON value as people read it: a text without quotes, any other value as JSON."""
    return value if isinstance(value, str) else _encode(value)


def _plain(value: object) -> object:
    """A value that JSON has no type for, as a dict or a text."""
    return dict(value) if isinstance(value, Mapping) else str(value)


_encode = json.JSONEncoder(ensure_ascii=False, default=_plain).encode


def format_name(name: str) -> str:
    """The standard name of a format, for any accepted spelling."""
    return FORMAT_NAMES.get(name.lower(), name.lower())
