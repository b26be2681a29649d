"""Fixtures that every test module may use: a clean command line, and one real service a test process."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SVCCTL = [sys.executable, "-m", "svcctl"]


@dataclass(frozen=True)
class Shell:
    """Runs svcctl as a user with this home would, and with an environment that holds nothing else."""

    home: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": "/usr/bin:/bin",
            "SVCCTL_DATA": str(self.home / "data"),
            "LANG": "C.UTF-8",
            **self.variables,
        }

    def __call__(
        self, *arguments: str, stdin: str | bytes = b"", timeout: float = 60, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """One command; stdout and stderr as text, newlines untouched."""
        done = subprocess.run(
            [*SVCCTL, *arguments],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            env=self.environment | variables,
            cwd=self.home,
            timeout=timeout,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode()
        )

    def start(self, *arguments: str, **options: object) -> subprocess.Popen[bytes]:
        """A command that goes on; the caller ends it."""
        return subprocess.Popen([*SVCCTL, *arguments], env=self.environment, cwd=self.home, **options)  # type: ignore[call-overload,no-any-return]

    def ndjson(self, *arguments: str) -> list[dict[str, object]]:
        """The rows of a command that prints ndjson."""
        done = self(*arguments, "-f", "ndjson")
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.split("\n")[:-1]]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A fresh home with no service."""
    return Shell(tmp_path)


@pytest.fixture(scope="session")
def service() -> Iterator[Shell]:
    """A shell whose local service runs, with the demo events and the table `sample` (see SAMPLE)."""
    with tempfile.TemporaryDirectory(prefix="svcctl-") as home:
        shell = Shell(Path(home))
        assert shell("service", "start").returncode == 0
        (shell.home / "sample.csv").write_text(SAMPLE, encoding="utf-8")
        loaded = shell("service", "load", "sample.csv", "--table", "sample")
        assert loaded.returncode == 0, loaded.stderr
        yield shell
        shell("service", "stop")


SAMPLE = '''\
eventdate,name,n,x,ok
2024-01-31 10:00:00.000,plain,1,0.5,true
2024-01-31 10:00:01.000,"comma, ""quote""",9007199254740993,,false
2024-01-31 10:00:02.007,"[brackets] 漢字 😀",-3,1e10,
2024-01-31 10:00:03.000,"two
lines",,2.25,true
'''
