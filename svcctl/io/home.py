"""The directories for svcctl's own files, as the platform defines them. Usually, these directories are below HOME.

The module also recognises paths with a `~` or a variable that the shell did not replace.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal

from svcctl.errors import UsageError


def expanded_path(path: Path | str, variable: str | None = None) -> Path:
    """Return a path in which `~` is replaced by the home directory.

    Raises UsageError if the home directory is unknown. If `variable` is given, the hint suggests setting this
    environment variable.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise _unknown(variable, str(path)) from None


_UNEXPANDED = re.compile(r"^~[^/]*(?=/)|\$([A-Za-z_]\w*|\{[A-Za-z_]\w*\})(?=[^/]*/)")


def unexpanded_error(path: Path | str) -> UsageError | None:
    """Return the error for a path in which the shell did not replace `~` or `$NAME`, because the path was in quotes.

    Returns None for any other path. Also returns None if a folder with exactly this name exists.
    """
    text = str(path)
    match = _UNEXPANDED.search(text)
    if match is None or os.path.lexists(text[: text.index("/", match.end())]):
        return None
    if match.start() or match[0][0] == "$":
        what, quotes, instead = f"has {match[0]} in it", "single quotes", f'"{text}"'
    else:
        begin = '"$HOME/' if match[0] == "~" else f'{match[0]}/"'
        what, quotes, instead = "begins with ~", "quotes", f'{begin}{text[match.end() + 1 :]}"'
    return UsageError(f"{text} {what}, which the shell does not replace within {quotes}", hint=f"write {instead}")


def directory(kind: Literal["config", "data", "state", "cache"], variable: str | None = None) -> Path:
    """Return the platform's directory for one kind of svcctl's files. `kind` is config, data, state or cache.

    Raises UsageError if the home directory is unknown. The hint suggests the environment variable `variable`, if given.
    """
    import platformdirs

    try:
        return expanded_path(getattr(platformdirs, f"user_{kind}_path")("svcctl"), variable)
    except RuntimeError:  # some versions of platformdirs raise this error, others leave `~` in the path
        raise _unknown(variable) from None


def _unknown(variable: str | None, path: str = "~") -> UsageError:
    user = path[1:].partition("/")[0]
    if user:
        return UsageError(f"the home directory of '{user}' is not known")
    return UsageError(
        f"the home directory is not known: HOME is not set, and the user {os.getuid()} has no account",
        hint=f"set HOME, or {variable}" if variable else "set HOME",
    )
