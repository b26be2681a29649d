"""Words for messages: suggestions for mistyped names, plurals, sizes, JSON values as text, and masked secrets.

The client and the service make suggestions by the same rule. The rule ignores case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from svcctl.errors import NotFound, SvcctlError

LIKENESS = 0.7
"""The minimum similarity of a mistyped name and a suggested name, from 0 to 1."""
MIN_WORD_LETTERS = 2
"""The minimum length of a typed word for which a longer name is suggested, such as statusCode for status."""
NAMED = 5
"""The maximum number of names that a sentence lists."""
CHOICES = 20
"""The maximum number of names that a hint lists for the reader to choose from."""
FORMAT_NAMES: Mapping[str, str] = {
    "jsonl": "ndjson",
    "jsonlines": "ndjson",
    "json-lines": "ndjson",
    "json_lines": "ndjson",
    "xlsx": "xls",
    "excel": "xls",
}
"""Other names that are accepted for formats, with the standard name of each format."""
DESTINATION_TYPES = ("Kafka", "S3", "HDFS", "donothing")
"""The types of destinations, as the HTTP interface spells them.

The case of a type is ignored, because services report types in lower case.
"""

_SECRET = (
    r"secret|passw(?:or)?d|passphrase|token|sasl[._-]?jaas|oauthbearer[._-]?config"
    r"|auth[._-]?user[._-]?info|account[._-]?key"
    r"|(?:private|customer|encryption|keystore|storage|shared|signing|ssl|api)[._-]?key(?:[._-]?(?:content|data))?$"
    r"|(?:^|[._-])pwd$|credentials?(?:[._-]?json)?$|keystore$|(?:^|[._-])(?:pfx|p12|pkcs12)$"
)
"""A regular expression for the names of secrets. The expression is applied to names in lower case."""
_PEM = r"pem(?:$|[._-])"
_CERTIFICATE = r"(?:^|[._-])(?:ca|cert(?:ificate)?s?|chain)(?:$|[._-]|pem)"
"""A regular expression for the names of certificates, which are public.

The expression is applied only to names with the word `pem`, a file format of keys and certificates.
"""
_HARMLESS = r"(?:location|file|path|type|provider|class|serializer|algorithm|endpoint[._-]?url)$"
"""A regular expression for names whose values are not secret, such as `token_path` and `keystore_type`."""
_USER_INFO = (
    r"(?<=://)(?:"
    r"[^\s/?#\"<>]*@"
    r"|(?![^\s/?#@]*:(?:\d+\b|[\s/?#]|$))(?!\[)[^\s/?#@:]+:[^\n\"<>]{0,1000}@"  # a password with / or a blank
    r")"
)
"""A regular expression for the user name and the password in a URL.

In `http://host:80/a@b`, the number after the colon is a port, so the text before the `@` is not a password.
"""
_EXAMPLES = ("user@", "user:password@")
"""Examples of a user and a password in hints. These examples are not masked."""
_URL_PARAMETER = r"(?<=[?&;])([\w.-]+)=([^\s&;#\"'<>]+)"
_WORDS = r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+|\d+"


def is_secret(name: str) -> bool:
    """Return whether a parameter, field or header with this name has a secret value, which must not be shown.

    A name counts as secret if it contains a word that is common in names of secrets, such as password.
    """
    lowered = name.lower()
    if re.search(_HARMLESS, lowered):
        return False
    if re.search(_PEM, lowered) and not re.search(_CERTIFICATE, lowered):
        return True
    return re.search(_SECRET, lowered) is not None


def mask(secret: str = "") -> str:
    """Return the text that is shown in place of a secret.

    The text is four stars. If the secret has at least 16 characters, its last four characters follow.
    """
    return "****" + (secret[-4:] if len(secret) >= 16 else "")


def mask_urls(text: str) -> str:
    """Mask the users, passwords and secret parameters in the URLs of a text. The rest of the text is unchanged."""
    if "://" not in text:
        return text
    text = re.sub(_USER_INFO, lambda match: match[0] if match[0].lower() in _EXAMPLES else f"{mask()}@", text)
    return re.sub(_URL_PARAMETER, lambda match: f"{match[1]}={mask()}" if is_secret(match[1]) else match[0], text)


def nearest(name: str, candidates: Iterable[str], likeness: float = LIKENESS) -> str | None:
    """Return the candidate that is most similar to `name`.

    A candidate with the same letters in another order counts as the most similar. Returns None if no candidate is
    similar, or if `name` is itself a candidate.
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
    """Return the candidate that contains `name` as a word or begins with `name`, such as statusCode for status.

    Returns None if there is no such candidate, or if there are several such candidates.
    """
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
    """Return a hint that suggests the candidate most similar to `name`; None if there is nothing to suggest.

    If `words` is true and no candidate is similar, the hint suggests the only candidate that contains `name` as a word.
    """
    candidates = list(candidates)
    suggestion = nearest(name, candidates) or (having_word(name, candidates) if words else None)
    return f"did you mean '{suggestion}'?" if suggestion else None


def among(name: str, candidates: Iterable[str], what: str) -> str | None:
    """Return a hint with the candidate most similar to `name`, and with up to 20 candidates in alphabetical order.

    Returns None if there are no candidates. `what` is the noun for the candidates, in the plural.
    """
    names = sorted(candidates)
    known_names = f"{what} are {choices(names)}" if names else None
    return " ".join(filter(None, (did_you_mean(name, names), known_names))) or None


def choices(names: Iterable[str]) -> str:
    """Return a text with up to 20 names from which the reader can choose, and with the number of further names."""
    return some(list(names), CHOICES)


def some(names: Sequence[str], most: int = NAMED) -> str:
    """Return a text with at most `most` names, and with the number of further names."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


@contextmanager
def suggesting(
    name: str,
    candidates: Callable[[], Iterable[str | None]],
    what: str = "",
    *,
    when: Callable[[NotFound], bool] = lambda error: True,
) -> Iterator[None]:
    """Add a note to a NotFound error in the `with` block. The note suggests the candidate most similar to `name`.

    If no candidate is similar and the error has no hint, the note lists up to 20 candidates. For this list, `what`
    must be the noun for the candidates, in the plural. `candidates` is called only after an error. `when` decides
    whether the error gets a note.
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
    """Return the form of a noun or verb that fits a number: query for 1, otherwise queries.

    `many` is the plural. Without `many`, the plural is formed by the usual rule for nouns.
    """
    return (
        singular
        if number == 1
        else many or (f"{singular[:-1]}ies" if singular.endswith(("ty", "ry", "cy")) else f"{singular}s")
    )


def counted(number: int, singular: str, many: str | None = None) -> str:
    """Return a number with its noun: `1 query`, `2,000 queries`, `2 files are`."""
    return f"{number:,} {plural(number, singular, many)}"


def size_text(size: float) -> str:
    """Return a number of bytes as text: 812 bytes, 56 kB, 1.2 MB."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit or round(size * 1e3 / unit) >= 1e3:  # 999,600 is 1.0 MB, not 1000 kB
            return f"{size / unit:.{0 if size >= 9.95 * unit else 1}f} {name}"
    return counted(round(size), "byte")


def json_text(value: object) -> str:
    """Return a JSON value as text for people. A text is shown without quotes, any other value as JSON."""
    return value if isinstance(value, str) else _encode(value)


def _plain(value: object) -> object:
    """Convert a value of a type that JSON does not have: a mapping to a dict, and any other value to a text."""
    return dict(value) if isinstance(value, Mapping) else str(value)


_encode = json.JSONEncoder(ensure_ascii=False, default=_plain).encode


def format_name(name: str) -> str:
    """Return the standard name of a format. `name` is any accepted name, in upper or lower case."""
    return FORMAT_NAMES.get(name.lower(), name.lower())
