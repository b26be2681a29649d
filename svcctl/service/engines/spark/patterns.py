"""Translates regular expressions from the syntax of RE2 to the syntax of Java and of Rust.

The regular expressions of the query language have the syntax of RE2. Spark's own server uses Java's regular
expressions. The server Sail uses the regular expressions of Rust's package regex. Most parts of a pattern have the same
meaning in RE2, Java and Rust.

This module rewrites the other parts: ASCII classes (\\d, \\w, \\s, \\b and [:alpha:]), the dot and $ (Java has other
rules for line ends), names of groups, quoted text (\\Q...\\E), octal numbers, and brackets and operators inside a
class. The translation adds no capturing groups. A pattern must be valid in RE2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import lru_cache


class Matcher(Enum):
    JAVA = "java"
    RUST = "rust"


_CLASSES: Mapping[str, str] = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
_POSIX: Mapping[str, str] = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": r"\x21-\x7E",
    "lower": "a-z",
    "print": r"\x20-\x7E",
    "punct": r"\x21-\x2F\x3A-\x40\x5B-\x60\x7B-\x7E",
    "space": r"\t\n\x0B\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_WORD = _CLASSES["w"]
_BEFORE, _AFTER = f"(?<=[{_WORD}])", f"(?=[{_WORD}])"
_NOT_BEFORE, _NOT_AFTER = f"(?<![{_WORD}])", f"(?![{_WORD}])"
_EDGES = {
    (Matcher.JAVA, "b"): f"(?:{_BEFORE}{_NOT_AFTER}|{_NOT_BEFORE}{_AFTER})",
    (Matcher.JAVA, "B"): f"(?:{_BEFORE}{_AFTER}|{_NOT_BEFORE}{_NOT_AFTER})",
    (Matcher.RUST, "b"): r"(?-u:\b)",
    (Matcher.RUST, "B"): r"(?-u:\B)",
}
_FLAGS = {Matcher.JAVA: "(?d)", Matcher.RUST: ""}
"""The flags that are written before each pattern. With (?d), Java treats only \\n as the end of a line."""
_TOKEN = re.compile(
    r"""\\Q(?P<quoted>.*?)(?:\\E|\Z)
    | \\(?P<octal>[1-7][0-7]{1,2}|0[0-7]{0,2})
    | \\x\{(?P<hex>[0-9A-Fa-f]+)\} | \\x(?P<byte>[0-9A-Fa-f]{2})
    | \\(?P<property>[pP](?:\{\^?\w+\}|\w))
    | \\(?P<escape>.)
    | \(\?P?<(?P<name>\w+)>
    | \(\?(?P<flags>[a-zA-Z-]+)(?P<close>[:)])
    | (?P<posix>\[:\^?\w+:\])
    | (?P<count>\{\d+(?:,\d*)?\})
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


@lru_cache(maxsize=1024)
def pattern_for(pattern: str, matcher: Matcher) -> str:
    """Return an RE2 pattern in the syntax of Java or of Rust."""
    return _FLAGS[matcher] + "".join(_pieces(pattern, matcher))


@lru_cache(maxsize=1024)
def body_of_group(pattern: str, group: int) -> str | None:
    """Return the pattern inside a capturing group.

    For group 0, return the whole pattern. If there is no such group, return None.
    """
    if group == 0:
        return pattern
    tokens = list(_TOKEN.finditer(pattern))
    seen, depth, start = 0, 0, None
    index = 0
    while index < len(tokens):
        token = tokens[index]
        index += 1
        captures = token.lastgroup == "name" or (token[0] == "(" and pattern[token.end() : token.end() + 1] != "?")
        if token[0] == "[":
            index, _ = _class(tokens, index, Matcher.JAVA)
        elif captures or token[0] == "(" or token["close"] == ":":
            depth += start is not None
            seen += captures
            if captures and seen == group:
                depth, start = 0, token.end()
        elif token[0] == ")" and start is not None:
            if depth == 0:
                return pattern[start : token.start()]
            depth -= 1
    return None


def _pieces(pattern: str, matcher: Matcher) -> Iterator[str]:
    tokens = list(_TOKEN.finditer(pattern))
    lines: list[bool] = [False]
    """One value for each open group: whether ^ and $ in the group match at the beginning and end of each line."""
    index = 0
    while index < len(tokens):
        token = tokens[index]
        index += 1
        kind, text = token.lastgroup, token[0]
        if kind == "close":
            text = _flags(token["flags"], token["close"], matcher, lines)
            yield text
        elif kind == "name":
            lines.append(lines[-1])
            yield "("  # the name is not needed, and Java refuses a name with _
        elif text == "(":
            lines.append(lines[-1])
            yield text
        elif text == ")":
            if len(lines) > 1:
                lines.pop()
            yield text
        elif text == "[":
            end, written = _class(tokens, index, matcher)
            index = end
            yield written
        elif text == "$" and kind == "other":
            yield "$" if lines[-1] else r"\z"
        elif text in "{}" and kind == "other":
            yield f"\\{text}"
        elif kind == "escape":
            yield _escape(token, matcher)
        elif kind == "posix":  # outside of a class, [:alpha:] means a class of the characters between its brackets
            yield f"[{''.join(map(_point, text[1:-1]))}]"
        else:
            yield _translated(token, matcher)


def _escape(token: re.Match[str], matcher: Matcher) -> str:
    """Translate an escape (a backslash and a character) outside of a character class."""
    escape = token["escape"]
    if escape in "bB":
        return _EDGES[matcher, escape]
    if inside := _CLASSES.get(escape.lower()):
        return f"[{'^' if escape.isupper() else ''}{inside}]"
    return _translated(token, matcher)


def _flags(flags: str, close: str, matcher: Matcher, lines: list[bool]) -> str:
    on, _, off = flags.partition("-")
    here = lines[-1]
    if "m" in on:
        here = True
    if "m" in off:
        here = False
    if close == ":":
        lines.append(here)
    else:
        lines[-1] = here
    if matcher is Matcher.JAVA:  # without the flag u, the flag i of Java ignores only the case of ASCII letters
        on, off = on.replace("i", "iu"), off.replace("i", "iu")
    return f"(?{on}{'-' if off else ''}{off}{close}"


def _class(tokens: list[re.Match[str]], index: int, matcher: Matcher) -> tuple[int, str]:
    """Translate a character class. `index` is the index of the token after the opening bracket.

    Returns the index of the token after the class, and the text of the translated class.
    """
    parts: list[str] = []
    negated = tokens[index][0] == "^"
    index += negated
    first = True
    while index < len(tokens):
        token = tokens[index]
        index += 1
        text = token[0]
        if text == "]" and not first:
            break
        first = False
        if inside := _named(token):
            parts.append(inside)
            if index < len(tokens) and tokens[index][0] == "-":
                parts.append(_point("-"))
                index += 1
        elif token.lastgroup in ("other", "count", "name", "close"):
            parts += (char if char.isalnum() or char == "-" or not char.isascii() else _point(char) for char in text)
        else:
            parts.append(_translated(token, matcher))
    return index, f"[{'^' if negated else ''}{''.join(parts)}]"


def _named(token: re.Match[str]) -> str | None:
    """Translate an ASCII class, such as \\d, inside a character class. Return None for any other token.

    A negated class, such as \\D, becomes a class of all other characters.
    """
    if token.lastgroup == "posix":
        name = token[0][2:-2]
        return f"[^{_POSIX[name[1:]]}]" if name.startswith("^") else _POSIX[name]
    if token.lastgroup == "escape" and (inside := _CLASSES.get(token["escape"].lower())):
        return f"[^{inside}]" if token["escape"].isupper() else inside
    return None


def _translated(token: re.Match[str], matcher: Matcher) -> str:
    """Translate a token that has the same meaning inside and outside of a character class."""
    match token.lastgroup:
        case "quoted":
            return "".join(map(_point, token["quoted"]))
        case "octal":
            return _point(chr(int(token["octal"], 8)))
        case "hex":
            return _point(chr(int(token["hex"], 16)))
        case "byte":
            return _point(chr(int(token["byte"], 16)))
        case "property":
            return _property(token["property"], matcher)
        case "escape":
            escape = token["escape"]
            return {"a": r"\x07", "v": r"\x0B"}.get(escape, _point(escape) if not escape.isalnum() else token[0])
    return token[0]


def _property(text: str, matcher: Matcher) -> str:
    """Translate a Unicode class, such as \\p{Greek}.

    In Java, the name of a script has the prefix Is. Only RE2 allows a negation inside the braces, such as \\p{^Greek}.
    """
    kind, name = text[0], text[1:].strip("{}")
    if name.startswith("^"):
        kind, name = ("P" if kind == "p" else "p"), name[1:]
    if name == "Any":
        return r"[\x{0}-\x{10FFFF}]" if kind == "p" else r"[^\x{0}-\x{10FFFF}]"
    return f"\\{kind}{{{'Is' if matcher is Matcher.JAVA and len(name) > 2 else ''}{name}}}"


def _point(character: str) -> str:
    return f"\\x{{{ord(character):X}}}"
