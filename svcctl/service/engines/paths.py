"""A check for paths that the library of an engine would misread. The check is made before anything is stored."""

from __future__ import annotations

import re

from svcctl.errors import UsageError

_BYTE = re.compile("[\ud800-\udfff]")


def check_path(path: str, misread: re.Pattern[str], what: str, hint: str = "") -> None:
    """Raise UsageError for a path with a character that `misread` matches, or with bytes that are not UTF-8.

    The error's message begins with `what`, and the error's hint begins with `hint`.
    """
    hint = f"{hint}paths of ASCII letters, digits and /._- always work"
    if _BYTE.search(path):
        raise UsageError(f"{what} cannot be used: {path} is not UTF-8", hint=hint)
    if match := misread.search(path):
        character = f"'{match[0]}'" if match[0].isprintable() else "a control character"
        raise UsageError(f"{what} cannot be used: the storage library misreads {character} in {path}", hint=hint)
