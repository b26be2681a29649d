"""The table timed.events, with an event every five minutes for six hours, and what tests of its exports share."""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from support.reseller import WIDE
from support.shells import Shell
from svcctl.cli.context import Context
from svcctl.cli.main import run
from svcctl.terminal.diagnostics import Diagnostics
from svcctl.terminal.prompt import Prompt
from svcctl.words import counted, size_text

START = 1_706_659_200
"""2024-01-31, the day of the events, in epoch seconds."""


EVENTS = 72


HOURS = ("--from", "2024-01-31", "--to", "6h")


QUERY = "from timed.events"


def broken(*hours: int, fault: str = "503") -> Callable[[bytes], str | None]:
    """Choose a fault for the windows that begin at these hours."""
    wanted = {START + 3600 * hour for hour in hours}
    return lambda body: fault if json.loads(body or b"{}").get("from") in wanted else None


def left(folder: Path) -> list[str]:
    """The names of the files in a folder, without hidden ones."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in paths if not any(part.startswith(".") for part in path.parts))


def hinted(target: str, given: str, *, more: bool = False) -> str:
    """The hint of verify: the command that fetches a range; `more` ranges come with the next one."""
    after = "; then verify again for the next range" if more else ""
    return f"hint: fetch the missing windows with: svcctl export '{QUERY}' -o {shlex.quote(target)} {given}{after}\n"


def forgets(name: str) -> str:
    """The message about missing files."""
    command = f"svcctl export verify {shlex.quote(name)} --from DATE --keep"
    return f"svcctl: if files before a date were removed on purpose: {command}\n"


def all_whole(files: int, size: int) -> str:
    """The message about an export whose files are all complete."""
    return f"svcctl: {counted(files, 'file')}, {size_text(size)}: all unchanged\n"


def pasted(stderr: str) -> list[str]:
    """The command at the end of a hint, as a shell reads it."""
    return shlex.split(stderr.splitlines()[-1].partition(": svcctl ")[2])


def timeless(stderr: str) -> str:
    """The messages, without the seconds and the range in the summary line."""
    return re.sub(r"seconds=\d+\.\d\d from=\S+ to=\S+", "seconds=…", stderr)


def summary(stderr: str) -> dict[str, str]:
    """The numbers in the summary line of an export."""
    (line,) = (line for line in stderr.splitlines() if line.startswith("svcctl: rows="))
    return dict(word.split("=", 1) for word in line.split()[1:])


def counts(shell: Shell, name: str) -> dict[str, str]:
    """The counts of 'export status', and the files that it does not find."""
    lines = dict(line.split(",", 1) for line in shell("export", "status", name).stdout.splitlines())
    return {what: lines[what] for what in ("windows", "rows", "bytes", "missing", "no file") if what in lines}


BERLIN = ("--from", "2024-01-30T23:00:00Z", "--to", "2d", "--window", "1d", "--time-zone", "Europe/Berlin")


@dataclass
class Moved:
    """Runs svcctl in this process with a clock that a test sets.

    It signs in with a token, because the service would refuse a signature with a wrong time.
    """

    shell: Shell
    now: float

    def __call__(
        self, *arguments: str, stderr: io.StringIO | None = None, prompt: Prompt | None = None
    ) -> tuple[int, str]:
        """Run a command. Returns the exit code and stderr."""
        told = stderr or io.StringIO()
        data = Path(self.shell.environment["SVCCTL_DATA"])
        token = json.loads((data / "credentials.json").read_text())["local"]["token"]
        environment = self.shell.environment | {"SVCCTL_AUTH": "token", "SVCCTL_TOKEN": token}
        context = Context(
            diagnostics=Diagnostics(told, width=WIDE), environment=environment, clock=lambda: self.now, prompt=prompt
        )
        code = run([*arguments], context)
        return code, timeless(told.getvalue())


def hourly(moved: Moved, *more: str) -> tuple[int, str]:
    target = f"{moved.shell.home}/out/{{start:%FT%H}}.csv"
    return moved("export", QUERY, "--from", "2024-01-31", "--state", "timed", "-o", target, "--workers", "2", *more)


def folder_name(moved: Moved) -> str:
    """The name of the folder with the records of an export, beside its files in `out`."""
    return next((moved.shell.home / "out").glob(".*.export")).name
