"""A text that a person changes in their own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from svcctl.errors import UsageError, reason


def edited(text: str, environment: Mapping[str, str], *, suffix: str = "", attended: bool) -> str:
    """The text as it is when the editor ends; it may hold secrets, so only this user can read it meanwhile.

    UsageError when nobody is there to use the editor: only one that the user chose may do without.
    """
    chosen = environment.get("VISUAL") or environment.get("EDITOR")
    if not chosen and not attended:
        raise UsageError("an editor needs a terminal", hint="use 'svcctl profile set', or set VISUAL or EDITOR")
    command = chosen or "vi"
    with tempfile.TemporaryDirectory(prefix="svcctl-") as directory:  # of mode 0700
        path = Path(directory) / f"profiles{suffix}"
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        try:
            code = subprocess.run([*shlex.split(command), os.fspath(path)], check=False).returncode
            if code != 0:
                raise UsageError(f"the editor '{command}' ended with {code}: nothing was changed")
            return path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise UsageError(
                f"the editor '{command}' cannot be used: {reason(error)}", hint="set VISUAL or EDITOR"
            ) from None
