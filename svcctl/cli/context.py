"""The context of a command: its profile, client, clock and output. Each of these is built on first use."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from svcctl import profiles
from svcctl.cli import hints
from svcctl.dates.lengths import length_text
from svcctl.errors import Advice, CredentialsError, Declined, NotFound, ProfileError, SvcctlError, Unavailable
from svcctl.terminal import pager
from svcctl.terminal.diagnostics import Diagnostics, Work
from svcctl.terminal.formats import AUTO, OutputFormat, find_format
from svcctl.terminal.output import Output
from svcctl.terminal.prompt import Prompt, TerminalPrompt, confirm
from svcctl.terminal.standard_streams import has_glyphs, moves, wants_color

if TYPE_CHECKING:
    from svcctl.api.client import Client
    from svcctl.api.transport import Event
    from svcctl.service import process

    Observe = Callable[[Event], None]
    ClientFactory = Callable[[profiles.Profile, Diagnostics, Callable[[], float], Observe | None], Client]


class Flags(NamedTuple):
    """The global options on the command line. An option that was not given is None."""

    profile: str | None = None
    config: str | None = None
    timeout: float | None = None
    retries: int | None = None
    color: str = "auto"
    pager: bool = True


NO_FLAGS = Flags()


def _connect(
    profile: profiles.Profile, diagnostics: Diagnostics, clock: Callable[[], float], observe: Observe | None
) -> Client:
    """Return a client that uses the network.

    The client's code is imported here, so commands without a client start sooner.
    """
    from svcctl.cli.connect import connect

    return connect(profile, diagnostics, clock, observe)


@dataclass(frozen=True)
class Context:
    """The context of a command.

    A context is built once per run. Commands find the context in `ctx.obj`. Tests replace the clock and other fields.
    """

    flags: Flags = NO_FLAGS
    diagnostics: Diagnostics = field(default_factory=lambda: Diagnostics(sys.stderr, moving=moves(os.environ)))
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    clock: Callable[[], float] = time.time
    client_factory: ClientFactory = _connect
    arguments: Sequence[str] = ()
    """The arguments of the command line, as they were typed."""
    prompt: Prompt | None = None
    """The source of answers to questions. If it is None, the terminal is asked."""
    closing: ExitStack = field(default_factory=ExitStack)

    def with_flags(self, **changes: Any) -> Context:
        """Return a copy of the context with other global options.

        The client and other objects that are built on first use are built again. The clock and other fields are shared.
        """
        return replace(self, flags=self.flags._replace(**changes))

    @cached_property
    def store(self) -> profiles.ProfileStore:
        config = self.flags.config
        return profiles.default_store(self.environment, Path(config) if config else None)

    @cached_property
    def files(self) -> process.ServiceFiles:
        from svcctl.service import process

        return process.default_files(self.environment)

    @cached_property
    def profile(self) -> profiles.Profile:
        from svcctl.service import process

        resolved = profiles.resolve(
            self.store,
            flags=self.flags._asdict(),
            environment=self.environment,
            local=lambda name: process.profile_fields(self.files, name),
        )
        for text in (*resolved.notes, *profiles.misspelled_variables(self.environment)):
            self.diagnostics.note(text)
        return resolved

    def profiles_at(self, base_url: str) -> list[str | None]:
        """Return the values of the option -p that select a profile with this base URL.

        If the profile in use has this URL, the list has only the value of -p, which is None if -p was not given.
        """
        # The names are for a hint, so a profile or a profiles file that cannot be read is not reported.
        with suppress(SvcctlError):
            if self.profile.base_url == base_url:
                return [self.flags.profile]
        with suppress(SvcctlError):
            return [*self.store.before().at(base_url)]
        return []

    @cached_property
    def output(self) -> Output:
        return Output(
            sys.stdout,
            self.diagnostics,
            color=wants_color(self.flags.color, sys.stdout, self.environment),
            glyphs=has_glyphs(getattr(sys.stdout, "codec", "utf-8"), self.environment),
            moving=moves(self.environment),
            pager=pager.command(self.environment) if self.flags.pager else None,
            stdin=sys.stdin,
        )

    @cached_property
    def client(self) -> Client:
        """The client of the profile.

        If the profile is built in and the local service is not running, the service is started.
        """
        if self.profile.name in profiles.BUILT_IN:
            self.start_local(unasked=True)
        self.diagnostics.advice = self.advice
        client = self.connect()  # before any progress, which would overwrite the prompt of a command for a secret
        self.closing.enter_context(self.diagnostics.working(lambda: Work("waiting for the service")))
        return client

    def advice(self, error: SvcctlError) -> str | None:
        """Return advice about an error that has no hint.

        The advice depends on the kind of the error and the profile in use.
        """
        from svcctl.profiles.diagnosis import trust_advice
        from svcctl.service import process

        check = f"'svcctl profile check {self.profile.name}'" if self.profile.name else "'svcctl profile check'"
        match error:
            case CredentialsError():
                return f"{check} tests these credentials and shows what they may do"
            case NotFound(query=str()):
                return f"no queries are answered at this address: is base_url right? {check} tests it"
            case Unavailable(untrusted=True):
                return trust_advice(self.profile.name or "NAME")
            case Unavailable(unanswered=True):
                if self.profile.name in profiles.BUILT_IN and process.running_process(self.files) is None:
                    start = hints.how_to_start(process.last_start(self.files))
                    return Advice(f"the local service has ended: see {self.files.log}, and ", start)
                return f"find out why with {check}"
        return None

    def late(self, seconds: float, otherwise: SvcctlError) -> SvcctlError:
        """Return the error to raise when the time of --max-time is over.

        If the most recent request failed, the error has the message of this failure. If not, returns the error
        `otherwise`.
        """
        trouble = self.diagnostics.trouble
        if trouble is None:
            return otherwise
        unanswered = isinstance(trouble, Unavailable) and trouble.unanswered
        error = Unavailable(f"{trouble.message}; --max-time {length_text(seconds)} is over")
        error.advised_by(trouble if unanswered else otherwise)
        error.unanswered = unanswered
        return error

    def connect(self, observe: Observe | None = None) -> Client:
        """Return a client of the profile. No service is started, and nothing is sent."""
        return self.closing.enter_context(self.client_factory(self.profile, self.diagnostics, self.clock, observe))

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock(), UTC)

    def format(self, name: str | None, *, lists: bool = False) -> OutputFormat:
        """Return the output format `name`. If `name` is None, return the format of the environment or the profile.

        The default is `auto`.
        """
        chosen = name or (self._format_of_lists if lists else self.profile.format)
        return find_format(chosen, is_terminal=self.output.is_terminal, lists=lists)

    @cached_property
    def _format_of_lists(self) -> str:
        """Return the profile's format for lists.

        If the profile cannot be read, returns `auto` and prints a note, because some lists need no profile.
        """
        try:
            return self.profile.format
        except ProfileError as error:
            text = f"{error.message}; the list is printed in the default format"
            # No note after a failed command, because its error message is more important.
            self.closing.push(lambda kind, raised, trace: None if kind else self.diagnostics.note(text))
            return AUTO

    @cached_property
    def _prompt(self) -> Prompt:
        return self.prompt or TerminalPrompt(sys.stdin, self.diagnostics)

    @property
    def is_attended(self) -> bool:
        """Whether there is a person to answer questions."""
        return self._prompt.is_attended

    def ask(self, question: str, *, here: bool = False) -> None:
        """Ask a question. Returns only if the answer is yes.

        Raises Declined for any other answer, and UsageError if nobody can be asked. Also raises UsageError if the
        profile is read-only. With `here`, the question is about one of svcctl's own files, and a read-only profile is
        allowed.
        """
        if not here:
            self._refuse_change()
        confirm(self._prompt, question)

    def ask_word(self, question: str, expected: str, *others: str) -> None:
        """Ask a question. Returns only if the answer is `expected` or one of `others`.

        Raises Declined for any other answer, and UsageError if the profile is read-only.
        """
        self._refuse_change()
        if self._prompt.answer(question, ": ").strip() not in (expected, *others):
            self.diagnostics.note(f"that was not '{expected}'")
            raise Declined

    def _refuse_change(self) -> None:
        """Raise UsageError if the profile is read-only."""
        self.profile.guard.refuse_change("the change")

    def ask_for(self, what: str, *, hidden: bool = False) -> str:
        """Ask for a text, and return it; empty if nothing is typed.

        With `hidden`, the text is not shown while it is typed.
        """
        return self._prompt.answer(what, " (not shown): " if hidden else ": ", hidden=hidden).strip()

    def start_local(self, *, unasked: bool = False) -> bool:
        """Start the local service and print a note. If the service is already running, returns False.

        `unasked` means that the user did not ask for the start. Raises Unavailable if the service hangs. With
        `unasked`, also raises Unavailable if the service was last run with --listen.
        """
        from svcctl.service import process

        work = process.WAITING

        def notify(text: str) -> None:
            nonlocal work
            work = text

        with self.diagnostics.working(lambda: Work(work)):
            started = process.ensure_running(self.files, notify, self.diagnostics.note, unasked=unasked)
        if started:
            self.diagnostics.note("started the local service (stop it with 'svcctl service stop')")
        return started
