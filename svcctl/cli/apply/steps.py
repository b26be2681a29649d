"""Run an `apply` command: show the steps, ask for confirmation, and carry out the steps one after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from svcctl.cli.apply.options import ApplyOptions
from svcctl.cli.apply.plan import PlanStep, show
from svcctl.cli.context import Context
from svcctl.cli.inputs import text
from svcctl.errors import Differs, ErrorSubject, ServiceError, Unavailable, UsageError
from svcctl.words import counted


class Noun(ABC):
    """The domains, the roles or the jobs that `apply` changes. A Noun checks and carries out the steps.

    A step creates, changes or removes one domain, role or job.
    """

    kind: str
    """The word for a domain, role or job in messages, such as `role`."""
    where: str = ""
    """A text that says in messages which domain the roles belong to, such as ` in acme`. Empty for domains and jobs."""

    @abstractmethod
    def check(self, step: Any) -> str | None:
        """Check a step before any step is carried out. Raises UsageError for a step that the service would refuse.

        Returns a text that names the parts of the step that were not checked; None if everything was checked.
        """

    def warnings(self, steps: Sequence[Any]) -> Iterable[str]:
        """Return the warnings to print before the user is asked for confirmation."""
        return ()

    def prepare(self, step: Any) -> None:
        """Read the secrets that a step needs. Called for all steps before the first step is carried out."""
        return

    @abstractmethod
    def make(self, step: Any) -> str:
        """Carry out a step, and return the outcome as a participle, such as `created`."""


def carry_out(svc: Context, noun: Noun, steps: Sequence[PlanStep[Any, Any]], options: ApplyOptions) -> None:
    """Show the steps, and carry them out. With --dry-run or --check, the steps are only shown.

    With --check, raises Differs if there is any step.
    """
    is_trial = options.check or options.dry_run
    unchecked = dict.fromkeys(svc.diagnostics.for_each(steps, noun.check, failures=UsageError))
    for part in filter(None, unchecked if is_trial else ()):
        svc.diagnostics.note(f"not checked: {part}")
    show(svc, noun.kind, noun.where, steps, options.format)
    sources = ", ".join(map(text.name, options.file))
    if not steps:
        svc.diagnostics.note(f"nothing to do: the {noun.kind}s{noun.where} are already as in {sources}")
        return
    if options.check:
        raise Differs(f"{counted(len(steps), f'{noun.kind} differs', f'{noun.kind}s differ')} from {sources}")
    if is_trial:
        return
    if not options.yes:
        svc.ask(" ".join([*noun.warnings(steps), "Apply these changes?"]))
    list(svc.diagnostics.for_each(steps, noun.prepare, failures=UsageError))
    with svc.diagnostics.count_before_failure(steps, "applied") as remaining:
        for step in remaining:
            with _about_step(noun, step):
                outcome = noun.make(step)
            svc.diagnostics.note(f"{outcome} {noun.kind} '{step.name}'{noun.where}")


@contextmanager
def _about_step(noun: Noun, step: PlanStep[Any, Any]) -> Iterator[None]:
    """Add the name of the step's domain, role or job to errors in the block."""
    try:
        yield
    except (ServiceError, Unavailable) as error:
        place = None if step.wanted is None else step.wanted.document.place("name")
        error.subject = ErrorSubject(noun.kind, step.name, place, repeats=True)
        raise
