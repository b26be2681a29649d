"""What the verb `apply` of every noun does with its steps: it shows them, asks, and makes one after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from svcctl.cli.apply.options import ApplyOptions
from svcctl.cli.apply.plan import Step, show
from svcctl.cli.context import Context
from svcctl.cli.inputs import text
from svcctl.errors import Differs, ServiceError, Subject, Unavailable, UsageError
from svcctl.words import counted


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
    unchecked = dict.fromkeys(svc.diagnostics.for_each(steps, noun.check, failures=UsageError))
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
    list(svc.diagnostics.for_each(steps, noun.prepare, failures=UsageError))
    with svc.diagnostics.count_before_failure(steps, "applied") as left:
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
