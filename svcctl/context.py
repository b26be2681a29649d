"""What a command works with: the profile, the client, the clock and the output, each built when first used."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from svcctl import profiles
from svcctl.errors import UsageError
from svcctl.terminal.diagnostics import Diagnostics, wants_color
from svcctl.terminal.formats import Format, find_format
from svcctl.terminal.output import Output

if TYPE_CHECKING:
    from svcctl import local_service
    from svcctl.api.client import Client


@dataclass
class Context:
    """Built once a run by the root command, from the global options; commands find it in `ctx.obj`."""

    flags: Mapping[str, Any]
    diagnostics: Diagnostics
    color: str = "auto"
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    clock: Callable[[], float] = time.time
    closing: ExitStack = field(default_factory=ExitStack)
    activity: Callable[[], str] = lambda: "waiting for the service"
    """What is going on, for whom it takes long."""

    @cached_property
    def store(self) -> profiles.ProfileStore:
        config = self.flags.get("config")
        return profiles.default_store(self.environment, Path(config) if config else None)

    @cached_property
    def files(self) -> local_service.Files:
        from svcctl import local_service

        return local_service.default_files(self.environment)

    @cached_property
    def profile(self) -> profiles.Profile:
        return self._resolve(self.flags)

    @cached_property
    def output(self) -> Output:
        return Output(sys.stdout, self.diagnostics, color=wants_color(self.color, sys.stdout, self.environment))

    @cached_property
    def client(self) -> Client:
        """The client of the profile; the built-in profile's service is started if it does not run."""
        if self.profile.name in profiles.BUILT_IN:
            self.start_local()
        self.closing.enter_context(self.diagnostics.working(self._tell))
        return self.connect()

    @cached_property
    def local_client(self) -> Client:
        """The client of the local service, whatever the profile is."""
        self.start_local()
        return self.connect(self._resolve({**self.flags, "profile": profiles.LOCAL}))

    def _resolve(self, flags: Mapping[str, Any]) -> profiles.Profile:
        from svcctl import local_service

        return profiles.resolve(
            self.store,
            flags=flags,
            environment=self.environment,
            local=lambda name: local_service.profile_fields(self.files, name),
        )

    def _tell(self) -> str:
        return self.activity()

    def connect(self, profile: profiles.Profile | None = None) -> Client:
        """A client of a profile, by default the chosen one; nothing is started and nothing sent."""
        from svcctl.connect import connect

        return self.closing.enter_context(connect(profile or self.profile, self.diagnostics, self.clock))

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock(), UTC)

    def format(self, name: str | None, *, lists: bool = False) -> Format:
        """The format asked for: the option, else what the profile or the environment says, else `auto`."""
        chosen = name or self.profile.format
        return find_format(chosen, is_terminal=self.output.is_terminal, lists=lists)

    def ask(self, question: str) -> None:
        """Go on only when a person says yes; Abort when they do not, UsageError when there is nobody to ask."""
        if self._answer(question, " [y/N]: ").strip().lower() not in ("y", "yes"):
            raise typer.Abort

    def ask_word(self, question: str, expected: str) -> None:
        """Go on only when a person types the expected word."""
        if self._answer(question, ": ").strip() != expected:
            raise UsageError(f"that was not '{expected}'; nothing was done")

    @property
    def is_attended(self) -> bool:
        """Whether there is somebody to ask."""
        return sys.stdin.isatty() and self.diagnostics.is_terminal

    def ask_for(self, what: str, *, hidden: bool = False) -> str:
        """What a person types, unseen when it is a secret; empty for nothing."""
        if not hidden:
            return self._answer(what, ": ").strip()
        import getpass

        try:
            return getpass.getpass(f"{what} (not shown): ").strip()
        except EOFError:
            raise typer.Abort from None

    def _answer(self, question: str, ending: str) -> str:
        if not self.is_attended:
            raise UsageError(f"{question} There is no terminal to ask on", hint="say it with --yes")
        self.diagnostics.prompt(question + ending)
        if not (answer := sys.stdin.readline()):
            raise typer.Abort
        return answer

    def start_local(self) -> bool:
        """Start the local service unless it runs, and say so; False when it did."""
        from svcctl import local_service

        if local_service.answers(self.files):
            return False
        self.diagnostics.note("starting the local service (stop it with 'svcctl service stop')")
        started = local_service.start(self.files, self.diagnostics.progress)
        self.diagnostics.clear_progress()
        return started
