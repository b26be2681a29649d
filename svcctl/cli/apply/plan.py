"""The plan of an `apply` command: the steps from the actual state to the desired state, and how they are printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from svcctl.terminal.escapes import visible
from svcctl.terminal.records import row_listing

if TYPE_CHECKING:
    from svcctl.cli.context import Context

Wanted = TypeVar("Wanted")
Existing = TypeVar("Existing")

CHANGES = row_listing("action", "kind", "name", "key", "before", "after")
"""The columns of the list of steps. The list has a row for each changed field of a domain, role or job."""


class Action(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A changed field of a domain, role or job, with the old and the new value as texts.

    A value is None if the field has no value.
    """

    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class PlanStep(Generic[Wanted, Existing]):
    """The creation, change or removal of one domain, role or job.

    A step has the desired state, the actual state, and the differences between them.
    """

    action: Action
    name: str
    wanted: Wanted | None
    existing: Existing | None
    differences: Sequence[FieldDifference] = ()


def plan(
    desired: Mapping[str, Wanted],
    actual: Mapping[str, Existing],
    differ: Callable[[Wanted, Existing | None], Sequence[FieldDifference]],
    surplus: Callable[[Existing], bool],
) -> list[PlanStep[Wanted, Existing]]:
    """Return the steps that turn the actual domains, roles or jobs into the desired ones. Removals come last.

    `desired` and `actual` map names to domains, roles or jobs. If a name is only in `actual`, the function
    `surplus` decides whether a step removes the domain, role or job with this name.
    """
    steps: list[PlanStep[Wanted, Existing]] = []
    for name, wanted in desired.items():
        existing = actual.get(name)
        differences = differ(wanted, existing)
        if existing is None:
            steps.append(PlanStep(Action.CREATE, name, wanted, None, differences))
        elif differences:
            steps.append(PlanStep(Action.CHANGE, name, wanted, existing, differences))
    rest = {name: existing for name, existing in actual.items() if name not in desired and surplus(existing)}
    return steps + [PlanStep(Action.REMOVE, name, None, existing) for name, existing in rest.items()]


_TITLES = {Action.CREATE: "new ", Action.CHANGE: "", Action.REMOVE: "removed "}


def show(svc: Context, kind: str, where: str, steps: Sequence[PlanStep[Any, Any]], format: str | None) -> None:
    """Print the steps as lines with - and +, or in the format `format` if it is not None.

    `kind` is `domain`, `role` or `job`. `where` is a text to print after each name, such as ` in acme`.
    """
    if format is not None:
        changed = [
            (
                str(step.action),
                kind,
                step.name,
                difference and difference.key,
                difference and difference.before,
                difference and difference.after,
            )
            for step in steps
            for difference in step.differences or (None,)
        ]
        svc.output.records(CHANGES, changed, svc.format(format, lists=True))
        return
    for step in steps:
        svc.output.text(f"{_TITLES[step.action]}{kind} '{visible(step.name)}'{visible(where)}")
        for difference in step.differences:
            _show_difference(svc, difference, is_change=step.action is Action.CHANGE)


def _show_difference(svc: Context, difference: FieldDifference, *, is_change: bool) -> None:
    """Print the old and the new value of a difference. Texts of several lines are compared line by line."""
    before, after = (difference.before or "none").splitlines(), (difference.after or "none").splitlines()
    if len(before) <= 1 and len(after) <= 1:
        if is_change:
            svc.output.change("-", f"{difference.key}: {difference.before or 'none'}")
        svc.output.change("+", f"{difference.key}: {difference.after or 'none'}")
        return
    import difflib

    svc.output.text(f"  {difference.key}:")
    for line in difflib.ndiff(before if is_change else [], after):
        if line[0] == " ":
            svc.output.text(f"  {visible(line)}")
        elif line[0] != "?":
            svc.output.change(line[0], f"  {line[2:]}")
