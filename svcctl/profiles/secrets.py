"""Secrets: shown masked, and read from their file or command only when they are used.

A command may prompt for a password, so it runs once: its output is kept with the resolved profile.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from svcctl.dates.lengths import length_text
from svcctl.errors import ProfileError, reason

COMMAND_SECONDS = 60


def mask(secret: str) -> str:
    """Four stars, and the last four characters of a secret that is long enough."""
    return "****" + (secret[-4:] if len(secret) >= 16 else "")


@dataclass(frozen=True, eq=False)
class SecretFile:
    path: Path
    profile: str

    @cached_property
    def text(self) -> str:
        """The file's text without blanks around it; ProfileError when it cannot be read."""
        try:
            return self.path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ProfileError(
                f"secret file {self.path} cannot be read: {reason(error)}",
                hint=f"write the secret to it, or name its file with 'svcctl profile set {self.profile} …_file=PATH'",
            ) from None


@dataclass(frozen=True, eq=False)
class SecretCommand:
    command: str = field(repr=False)

    @cached_property
    def text(self) -> str:
        """The command's output without blanks around it; ProfileError when the command fails."""
        word = re.match(r"\s*([\w./+-]+)(?=\s|$)", self.command)
        if word and not _found(word[1]):  # otherwise the shell would print its own message
            raise ProfileError(f"secret command '{self.command}' was not found", hint="check its name, and PATH")
        try:
            done = subprocess.run(
                self.command, shell=True, stdout=subprocess.PIPE, text=True, timeout=COMMAND_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise ProfileError(
                f"secret command '{self.command}' did not end in {length_text(COMMAND_SECONDS)}"
            ) from None
        if done.returncode == 127:  # the shell's code for a later command that it cannot find
            raise ProfileError(f"secret command '{self.command}' runs a command that was not found")
        if done.returncode != 0 or not done.stdout.strip():
            what = f"exited {done.returncode}" if done.returncode else "printed nothing"
            raise ProfileError(f"secret command '{self.command}' {what}")
        return done.stdout.strip()


@dataclass(frozen=True, eq=False)
class MadeOnUse:
    """A credential of the local service, created when it is first read, so that a refused command leaves no file."""

    make: Callable[[], str]

    @cached_property
    def text(self) -> str:
        return self.make()


def _found(word: str) -> bool:
    """Whether the shell knows a command: a program, or a builtin such as `read`."""
    known = ["/bin/sh", "-c", 'command -v "$1"', "sh", word]
    return bool(shutil.which(word)) or not subprocess.run(known, capture_output=True, check=False).returncode
