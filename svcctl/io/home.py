"""Where svcctl keeps files of its own: the platform's directories, which most environments place below HOME.

It also recognises paths in which the shell did not replace `~` or a variable.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal

from svcctl.errors import UsageError


def expanded(path: Path | str, variable: str | None = None) -> Path:
    """A path with the home directory in place of `~`. UsageError if that is unknown; its hint offers `variable`."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise _unknown(variable, str(path)) from None


_UNEXPANDED = re.compile(r"^~[^/]*(?=/)|\$([A-Za-z_]\w*|\{[A-Za-z_]\w*\})(?=[^/]*/)")


def unexpanded(path: Path | str) -> UsageError | None:
    """The error for a path in a folder that is missing because quotes kept the shell from replacing `~` or `$NAME`."""
    text = str(path)
    match = _UNEXPANDED.search(text)
    if match is None or os.path.lexists(text[: text.index("/", match.end())]):
        return None
    if match.start() or match[0][0] == "$":
        what, quotes, instead = f"has {match[0]} in it", "single quotes", f'"{text}"'
    else:
        begin = '"$HOME/' if match[0] == "~" else f'{match[0]}/"'
        what, quotes, instead = "begins with ~", "quotes", f'{begin}{text[match.end() + 1 :]}"'
    return UsageError(f"{text} {what}, which the shell replaces outside {quotes} only", hint=f"write {instead}")


def directory(kind: Literal["config", "data", "state", "cache"], variable: str | None = None) -> Path:
    """The platform's directory for svcctl's files of a kind. UsageError if the home directory is unknown."""
    import platformdirs

    try:
        return expanded(getattr(platformdirs, f"user_{kind}_path")("svcctl"), variable)
    except RuntimeError:  # some versions raise it, others leave `~` in the path
        raise _unknown(variable) from None


def _unknown(variable: str | None, path: str = "~") -> UsageError:
    user = path[1:].partition("/")[0]
    if user:
        return UsageError(f"the home directory of '{user}' is not known")
    return UsageError(
        f"the home directory is not known: HOME is not set, and the user {os.getuid()} has no account",
        hint=f"set HOME, or {variable}" if variable else "set HOME",
    )
