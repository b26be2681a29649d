"""What the verb `apply` of every noun does with its steps: it shows them, asks, and makes one after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from svcctl.cli.apply.plan import Step, show
from svcctl.cli.completion import words
from svcctl.cli.completion.words import FILES, Completes
from svcctl.cli.context import Context
from svcctl.cli.inputs import text
from svcctl.errors import Differs, ServiceError, Subject, Unavailable, UsageError
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
    show(svc, noun.kind, noun.where, steps, options.format)
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
