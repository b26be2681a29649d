"""Runs svcctl as a user's shell does, on the engine that is tested."""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support import launcher
from support.spark import shared

TESTED = os.environ.get("SVCCTL_TEST_ENGINE", "duckdb")
"""The engine that the tests of services and of the interface run on: duckdb, lake, sail or spark."""
OWN_FILE = {"SVCCTL_TABLES": "", "SVCCTL_ENGINE": ""}
"""The settings of a service that stores all tables in its own file, whatever TESTED is."""
SVCCTL = [sys.executable, "-m", "svcctl"]


def made(folder: Path) -> str:
    """Make a shared folder, as 'service serve --create' does."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (identity := folder / ".svcctl").exists():
        identity.write_text(uuid.uuid4().hex)
    return str(folder)


def on_tested_engine(folder: Path) -> dict[str, str]:
    """The settings of a service with tables in a folder and queries on the engine of TESTED."""
    match TESTED:
        case "duckdb":
            return {}
        case "lake":
            return {"SVCCTL_TABLES": made(folder)}
        case name:
            return {"SVCCTL_TABLES": made(folder), "SVCCTL_ENGINE": shared(name)}


def add_command(home: Path, before: str = "") -> Path:
    """Make `bin/svcctl` in a home directory, for scripts that have it on PATH; it begins with the line `before`."""
    path = home / "bin" / "svcctl"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\n{before}\nexec {shlex.join(SVCCTL)} "$@"\n')
    path.chmod(0o755)
    return path


@dataclass(frozen=True)
class Shell:
    """Runs svcctl with this home directory and an otherwise clean environment."""

    home: Path
    variables: dict[str, str] = field(default_factory=dict)
    timeout: float = 60
    """Seconds that a command may take."""

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": "/usr/bin:/bin",
            "SVCCTL_DATA": str(self.home / "data"),
            "LANG": "C.UTF-8",
            "SVCCTL_DEMO": "3h",
            **launcher.MEASURED,
            **on_tested_engine(self.home / "tables"),
            **self.variables,
        }

    def __call__(self, *arguments: str, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command; stdout and stderr are text with untouched newlines."""
        environment, text = self.environment | variables, stdin.encode("utf-8", "surrogateescape")
        if launcher.can_run(environment):
            done = launcher.run(arguments, environment, self.home, text, self.timeout)
        else:
            done = subprocess.run(
                [*SVCCTL, *arguments],
                input=text,
                capture_output=True,
                env=environment,
                cwd=self.home,
                timeout=self.timeout,
                check=False,
            )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode()
        )

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start a command in the background; the caller must end it."""
        process: subprocess.Popen[bytes] = subprocess.Popen(
            [*SVCCTL, *arguments], env=self.environment, cwd=self.home, **options
        )
        return process

    def kill_service(self) -> None:
        """Kill the local service, and wait until it has ended: until then its socket accepts connections."""
        pid = int((self.home / "data" / "service.lock").read_text())
        process = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        select.select([process], [], [])
        os.close(process)

    def ndjson(self, *arguments: str) -> list[dict[str, object]]:
        """Run a command with `-f ndjson` and return its rows."""
        done = self(*arguments, "-f", "ndjson")
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.split("\n")[:-1]]


@dataclass(frozen=True)
class Scripts:
    """Runs scripts of bash in a home directory with `bin` on PATH, where svcctl uses the service of another shell."""

    home: Path
    service: Shell

    def __post_init__(self) -> None:
        add_command(self.home)

    def __call__(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script, which ends at the first command that fails."""
        return subprocess.run(
            ["bash", "-ec", script],
            env={
                "PATH": f"{self.home}/bin:{os.environ['PATH']}",
                "HOME": str(self.home),
                "LANG": "C.UTF-8",
                "SVCCTL_DATA": self.service.environment["SVCCTL_DATA"],
            },
            cwd=self.home,
            capture_output=True,
            encoding="utf-8",
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )


SAMPLE = '''\
eventdate,name,n,x,ok
2024-01-31 10:00:00.000,plain,1,0.5,true
2024-01-31 10:00:01.000,"comma, ""quote""",9007199254740993,,false
2024-01-31 10:00:02.007,[brackets] 漢字 😀,-3,1e10,
2024-01-31 10:00:03.000,"two
lines",,2.25,true
'''
DAY = ("--from", "2024-01-31", "--to", "1d")
"""The range with all rows of the table `sample`."""
