"""A shell in a tmux terminal; tests type into it and read its screen."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

PROMPT = "$>"
COMMANDS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
PROMPTS = {
    "bash": f"PS1='{PROMPT} '",
    "zsh": f"PS1='{PROMPT} '",
    "fish": f"function fish_prompt; echo -n '{PROMPT} '; end; set -g fish_greeting",
}


def need(*programs: str) -> None:
    """Skip the test when a program is missing; fail it with SVCCTL_REQUIRE_PEERS=1."""
    for program in programs:
        if shutil.which(program) is None:
            if os.environ.get("SVCCTL_REQUIRE_PEERS") == "1":
                raise FileNotFoundError(f"{program} is not installed")
            pytest.skip(f"{program} is not installed")


@dataclass(frozen=True)
class Terminal:
    """A terminal: `type` presses keys, `wait_for` reads the screen until it shows a text."""

    socket: Path

    def type(self, *keys: str) -> None:
        """Type words literally, and keys by their tmux names: Tab, Enter, C-c."""
        for key in keys:
            literal = [] if key in ("Tab", "Enter", "Escape") or key.startswith("C-") else ["-l"]
            self._tmux("send-keys", *literal, "--", key)

    def screen(self) -> str:
        """Return the screen without trailing blanks."""
        seen = self._tmux("capture-pane", "-p").stdout
        return "\n".join(line.rstrip() for line in seen.rstrip().split("\n"))

    def wait_for(self, *texts: str, seconds: float = 20) -> str:
        """Return the screen once it shows all the texts."""
        deadline = time.monotonic() + seconds
        while not all(text in (screen := self.screen()) for text in texts):
            assert time.monotonic() < deadline, f"no {texts!r} on:\n{screen}"
            time.sleep(0.02)  # no event says that a screen has changed
        return screen

    def clear(self) -> None:
        """Clear the command line and the screen."""
        self.type("C-e", "C-u", "C-l")
        deadline = time.monotonic() + 20
        while (screen := self.screen()).strip() != PROMPT:
            assert time.monotonic() < deadline, screen
            time.sleep(0.02)

    def resize(self, columns: int, lines: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def close(self) -> None:
        self._tmux("kill-server")

    def _tmux(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["tmux", "-S", str(self.socket), *arguments], capture_output=True, text=True, check=True, timeout=20
        )


def open_terminal(
    directory: Path,
    command: list[str],
    environment: dict[str, str],
    *,
    columns: int = 100,
    lines: int = 40,
) -> Terminal:
    """Open a terminal that runs a command in exactly this environment."""
    socket = directory / "tmux"
    variables = [f"{name}={value}" for name, value in environment.items()]
    subprocess.run(
        [
            *("tmux", "-S", str(socket), "-f", os.devnull, "new-session", "-d"),
            *("-x", str(columns), "-y", str(lines), "-c", environment["HOME"]),
            *("env", "-i", "TERM=screen", *variables, *command),
        ],
        check=True,
        timeout=20,
    )
    return Terminal(socket)


def open_shell(
    name: str, directory: Path, environment: dict[str, str], *setup: str, command: list[str] | None = None
) -> Terminal:
    """Open a terminal with a shell that has run the lines of `setup` and shows an empty prompt."""
    need("tmux", name)
    terminal = open_terminal(directory, command or COMMANDS[name], environment)
    ready = "rea''dy"  # so that the typed text differs from the printed one
    terminal.type("; ".join([*setup, PROMPTS[name], f"echo {ready}"]), "Enter")
    terminal.wait_for("\nready\n")
    terminal.clear()
    return terminal
