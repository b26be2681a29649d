"""Secrets: the rule for the text of a secret, and the sources of secrets (values, files and commands).

A source is read only when the secret is used. A command runs only once, because it may prompt for a password.
"""

from __future__ import annotations

import codecs
import os
import re
import select
import shlex
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from svcctl.dates.lengths import length_text
from svcctl.errors import Advice, CommandLine, ProfileError, reason
from svcctl.io import home
from svcctl.profiles import shell_command
from svcctl.words import size_text

READ_SECONDS = 60.0
"""The maximum number of seconds that a command may run, or that reading a pipe may take."""
MAX_BYTES = 64_000
"""The maximum number of bytes of a secret.

A longer text is probably from the wrong file, or from a command that does not end.
"""

_AROUND = "\ufeff \xa0\t\r\n"
"""The characters that are removed from both ends of a secret: byte order marks, blanks, tabs and line ends.

The blanks include the no-break space, which may come from a web page.
"""
_LINE_END = "[\n\r\x0b\x0c\x85\u2028\u2029]"
_CONTROL = "[\x00-\x1f\x7f-\x9f]"
_OTHER_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",  # the first row, because this mark begins with the mark of UTF-16
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
"""The byte order marks of encodings other than UTF-8."""


def secret_text(data: bytes | str, source: str, *, hint: str | None = None) -> str:
    """Return the text of a secret, without blanks around it: one line of UTF-8 without control characters.

    Raises ProfileError for any other text. The message names the source and contains no part of the text. `hint` is the
    hint of the error about a text with several lines.
    """
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")  # a text that is not UTF-8 is refused below
    for mark, encoding in _OTHER_MARKS.items():
        if data.startswith(mark):
            convert = CommandLine(f"iconv -f {encoding} -t UTF-8")
            raise ProfileError(f"{source} is {encoding}, not UTF-8", hint=Advice("convert it with: ", convert))
    try:
        text = data.decode("utf-8").strip(_AROUND)
    except UnicodeDecodeError:
        raise ProfileError(f"{source} is not UTF-8") from None
    if not text:
        raise ProfileError(f"{source} is empty")
    if re.search(_LINE_END, text) and "\0" not in text:
        raise ProfileError(f"{source} has more than one line", hint=hint or "a secret is one line: remove the others")
    if re.search(_CONTROL, text):
        raise ProfileError(f"{source} has a control character in it")
    return text


@dataclass(frozen=True, eq=False)
class SecretValue:
    """A secret that is written directly in an argument, in an environment variable, or in the profile."""

    written: str = field(repr=False)
    source: str

    @cached_property
    def text(self) -> str:
        return secret_text(self.written, self.source)


@dataclass(frozen=True, eq=False)
class SecretFile:
    """A secret in a file."""

    path: Path
    setting: Mapping[str, str] | None = None
    """The `profile` and the `field` that contain the path of the file; None if no stored profile contains the path."""
    seconds: float = READ_SECONDS

    @cached_property
    def text(self) -> str:
        """The secret in the file. Raises ProfileError if the file cannot be read, or if other users can write to it."""
        try:
            return secret_text(self._bytes(), f"secret file {self.path}")
        except OSError as error:
            raise home.unexpanded_error(self.path) or ProfileError(
                f"secret file {self.path} cannot be read: {reason(error)}",
                reason="secret-file-unread",
                data=self.setting,
            ) from None

    @property
    def is_open_to_others(self) -> bool:
        """Whether other users can read the file; False if the file does not exist."""
        try:
            status = self.path.stat()
        except OSError:
            return False
        return stat.S_ISREG(status.st_mode) and bool(status.st_mode & (stat.S_IRGRP | stat.S_IROTH))

    def _bytes(self) -> bytes:
        """Read all bytes of the file or pipe.

        Raises ProfileError if other users can write to the file. If the path is a link, the permissions of the linked
        file are checked. The file is opened without blocking, because a pipe may have no writer.
        """
        file = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            mode = os.fstat(file).st_mode
            if (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)) and mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise ProfileError(
                    f"secret file {self.path} can be written by others (mode {stat.S_IMODE(mode):04o})",
                    hint=Advice("close it with: ", CommandLine(f"chmod 600 {shlex.quote(str(self.path))}")),
                )
            content, deadline = bytearray(), time.monotonic() + self.seconds
            while block := self._block(file, deadline):
                content += block
                if len(content) > MAX_BYTES:
                    raise ProfileError(f"secret file {self.path} is larger than {size_text(MAX_BYTES)}")
            return bytes(content)
        finally:
            os.close(file)

    def _block(self, file: int, deadline: float) -> bytes:
        while select.select([file], [], [], max(0, deadline - time.monotonic()))[0]:
            with suppress(BlockingIOError):
                return os.read(file, 1 << 16)
        raise ProfileError(f"secret file {self.path} was not written in {length_text(self.seconds)}")


@dataclass(frozen=True, eq=False)
class SecretCommand:
    """A secret that a shell command prints."""

    command: str = field(repr=False)
    seconds: float = READ_SECONDS

    @cached_property
    def text(self) -> str:
        """The secret that the command prints. Raises ProfileError if the command fails, or prints no valid secret."""
        name = f"secret command '{self.command}'"
        word = re.match(r"\s*([\w./+-]+)(?=\s|$)", self.command)
        if word and not _is_command(word[1]):  # running an unknown command would make the shell print a message
            raise ProfileError(f"{name} was not found", hint="check its name, and PATH")
        try:
            ended = shell_command.run(self.command, seconds=self.seconds, max_bytes=MAX_BYTES)
        except shell_command.CommandTimeout:
            raise ProfileError(
                f"{name} did not end in {length_text(self.seconds)}", hint="run it by itself to see what it waits for"
            ) from None
        except shell_command.TooLong:
            raise ProfileError(f"{name} prints more than {size_text(MAX_BYTES)}", hint=_FIRST_LINE) from None
        if ended.code == 127:  # the exit code of the shell if it cannot find a later command
            raise ProfileError(f"{name} runs a command that was not found")
        if ended.code < 0:
            raise ProfileError(f"{name} was ended by {signal.Signals(-ended.code).name}")
        if ended.code:
            raise ProfileError(f"{name} failed with exit code {ended.code}")
        if not ended.output.strip():
            raise ProfileError(f"{name} printed nothing")
        return secret_text(ended.output, f"the output of {name}", hint=_FIRST_LINE)


_FIRST_LINE = "if the secret is its first line, end the command with: | head -n 1"


@dataclass(frozen=True, eq=False)
class MadeOnUse:
    """A credential of the local service.

    The credential is created when it is first used.
    """

    make: Callable[[], str]

    @cached_property
    def text(self) -> str:
        return self.make()


def _is_command(word: str) -> bool:
    """Return whether the shell knows a command with this name: a program, or a builtin such as `read`."""
    lookup = ["/bin/sh", "-c", 'command -v "$1"', "sh", word]
    return bool(shutil.which(word)) or not subprocess.run(lookup, capture_output=True, check=False).returncode
