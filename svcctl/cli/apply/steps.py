"""What the verb `apply` of every noun does with its steps: it shows them, asks, and makes one after the other."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from svcctl.cli.apply.plan import Action, Difference, Step
from svcctl.cli.completion import words
from svcctl.cli.completion.words import FILES, Completes
from svcctl.cli.context import Context
from svcctl.cli.inputs import text
from svcctl.errors import Differs, ServiceError, Subject, Unavailable, UsageError
from svcctl.terminal.escapes import visible
from svcctl.terminal.records import CHANGES
from svcctl.words import counted


@dataclass(frozen=True, kw_only=True)
class ApplyOptions:
    """The options of every `apply`."""

    file: Annotated[
        list[Path],
        typer.Option("--file", "-F", metavar="FILE", help="YAML of what there shall be; repeat for more files."),
        Completes(FILES),
    ]
    var: Annotated[
        list[str] | None,
        typer.Option("--var", metavar="K=V", help="Replace {{K}} in the files by V; in a query as a quoted literal."),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the differences and change nothing.")] = False
    check: Annotated[bool, typer.Option("--check", help="The same, with exit code 10 if there are differences.")] = (
        False
    )
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False
    format: Annotated[
        str | None,
        typer.Option("--format", "-f", metavar="FORMAT", help="Print the differences for programs, as ndjson."),
        Completes(words=words.list_formats),
    ] = None


class Noun(ABC):
    """The things that files describe: how these are named, warned about and changed."""

    kind: str
    """`role`."""
    where: str = ""
    """Where they are, behind a name or their plural: ` in acme`, or nothing."""

    @abstractmethod
    def check(self, step: Any) -> str | None:
        """What of a step cannot be checked here; None if all is. UsageError for what the service would refuse."""

    def warnings(self, steps: Sequence[Any]) -> Iterable[str]:
        """Sentences about what a person should know before saying yes."""
        return ()

    def prepare(self, step: Any) -> None:
        """Read what a step needs, before the first one is made."""
        return

    @abstractmethod
    def make(self, step: Any) -> str:
        """Make a step; returns what was done, as `created`."""


def carry_out(svc: Context, noun: Noun, steps: Sequence[Step[Any, Any]], options: ApplyOptions) -> None:
    """Show the steps, and make them unless this is a trial. Differs when there are some, with --check."""
    is_trial = options.check or options.dry_run
    unchecked = dict.fromkeys(svc.diagnostics.each(steps, noun.check, failures=UsageError))
    for what in filter(None, unchecked if is_trial else ()):
        svc.diagnostics.note(f"not checked: {what}")
    _show(svc, noun, steps, options.format)
    sources = ", ".join(map(text.name, options.file))
    if not steps:
        svc.diagnostics.note(f"nothing to do: the {noun.kind}s{noun.where} are already as in {sources}")
        return
    if options.check:
        raise Differs(f"{counted(len(steps), noun.kind)} not as in {sources}")
    if is_trial:
        return
    if not options.yes:
        svc.ask(" ".join([*noun.warnings(steps), "Apply these changes?"]))
    list(svc.diagnostics.each(steps, noun.prepare, failures=UsageError))
    with svc.diagnostics.counted(steps, "applied") as left:
        for step in left:
            with _about_step(noun, step):
                done = noun.make(step)
            svc.diagnostics.note(f"{done} {noun.kind} '{step.name}'{noun.where}")


@contextmanager
def _about_step(noun: Noun, step: Step[Any, Any]) -> Iterator[None]:
    """Note in errors which thing the step is about, and that the step can be repeated."""
    try:
        yield
    except (ServiceError, Unavailable) as error:
        place = None if step.wanted is None else step.wanted.document.place("name")
        error.subject = Subject(noun.kind, step.name, place, repeats=True)
        raise


_TITLES = {Action.CREATE: "new ", Action.CHANGE: "", Action.REMOVE: "removed "}


def _show(svc: Context, noun: Noun, steps: Sequence[Step[Any, Any]], format: str | None) -> None:
    """Print the differences: as lines with - and +, or in a format that was asked for."""
    if format is not None:
        changed = [
            (str(step.action), noun.kind, step.name, one and one.key, one and one.before, one and one.after)
            for step in steps
            for one in step.differences or (None,)
        ]
        svc.output.records(CHANGES, changed, svc.format(format, lists=True))
        return
    for step in steps:
        svc.output.text(f"{_TITLES[step.action]}{noun.kind} '{visible(step.name)}'{visible(noun.where)}")
        for one in step.differences:
            _show_difference(svc, one, is_change=step.action is Action.CHANGE)


def _show_difference(svc: Context, one: Difference, *, is_change: bool) -> None:
    """Print a difference: the old value and the new one, or the lines of these if one has several."""
    before, after = (one.before or "none").splitlines(), (one.after or "none").splitlines()
    if len(before) <= 1 and len(after) <= 1:
        if is_change:
            svc.output.change("-", f"{one.key}: {one.before or 'none'}")
        svc.output.change("+", f"{one.key}: {one.after or 'none'}")
        return
    svc.output.text(f"  {one.key}:")
    for line in difflib.ndiff(before if is_change else [], after):
        if line[0] == " ":
            svc.output.text(f"  {visible(line)}")
        elif line[0] != "?":
            svc.output.change(line[0], f"  {line[2:]}")
