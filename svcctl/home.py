"""Where svcctl keeps files of its own: the platform's directories, which most environments place below HOME."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from svcctl.errors import UsageError


def expanded(path: Path | str, variable: str | None = None) -> Path:
    """A path with the home directory in place of `~`. UsageError when nobody knows it; `variable` would do instead."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise _unknown(variable, str(path)) from None


def directory(kind: Literal["config", "data", "state", "cache"], variable: str | None = None) -> Path:
    """The platform's directory for svcctl's files of a kind. UsageError as above."""
    import platformdirs

    try:
        return expanded(getattr(platformdirs, f"user_{kind}_path")("svcctl"), variable)
    except RuntimeError:  # of the versions that do not leave `~` in the path
        raise _unknown(variable) from None


def _unknown(variable: str | None, path: str = "~") -> UsageError:
    user = path[1:].partition("/")[0]
    if user:
        return UsageError(f"the home directory of '{user}' is not known")
    return UsageError(
        f"the home directory is not known: HOME is not set, and the user {os.getuid()} has no account",
        hint=f"set HOME, or {variable}" if variable else "set HOME",
    )
