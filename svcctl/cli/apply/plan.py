"""The plan: which steps lead from what is there to what is desired. It is pure; each noun brings its comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

Wanted = TypeVar("Wanted")
Found = TypeVar("Found")


class Action(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Difference:
    """A field whose value is to change, both values in words; None where there is no value."""

    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Step(Generic[Wanted, Found]):
    """One thing to create, to change or to remove: as a file describes it, as it is there, and how these differ."""

    action: Action
    name: str
    wanted: Wanted | None
    found: Found | None
    differences: Sequence[Difference] = ()


def plan(
    desired: Mapping[str, Wanted],
    actual: Mapping[str, Found],
    differ: Callable[[Wanted, Found | None], Sequence[Difference]],
    surplus: Callable[[Found], bool],
) -> list[Step[Wanted, Found]]:
    """The steps in the order of the desired things; then those that remove the `surplus` of what nothing describes."""
    steps: list[Step[Wanted, Found]] = []
    for name, wanted in desired.items():
        found = actual.get(name)
        differences = differ(wanted, found)
        if found is None:
            steps.append(Step(Action.CREATE, name, wanted, None, differences))
        elif differences:
            steps.append(Step(Action.CHANGE, name, wanted, found, differences))
    rest = {name: found for name, found in actual.items() if name not in desired and surplus(found)}
    return steps + [Step(Action.REMOVE, name, None, found) for name, found in rest.items()]
