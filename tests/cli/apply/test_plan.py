"""The plan, on random desired and actual states."""

from hypothesis import given
from hypothesis import strategies as st

from svcctl.cli.apply.plan import Action, FieldDifference, PlanStep, plan

STATES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 2))


def differ(wanted: int, found: int | None) -> list[FieldDifference]:
    return [] if wanted == found else [FieldDifference("value", None if found is None else str(found), str(wanted))]


def performed(state: dict[str, int], steps: list[PlanStep[int, int]]) -> dict[str, int]:
    after = dict(state)
    for step in steps:
        if step.wanted is None:
            del after[step.name]
        else:
            after[step.name] = step.wanted
    return after


@given(STATES, STATES, st.booleans(), st.integers(0, 20))
def test_a_plan_that_is_cut_anywhere_and_made_again_ends_in_the_desired_state(
    desired: dict[str, int], actual: dict[str, int], prune: bool, cut: int
) -> None:
    def steps(state: dict[str, int]) -> list[PlanStep[int, int]]:
        return plan(desired, state, differ, lambda found: prune)

    halfway = performed(actual, steps(actual)[:cut])
    after = performed(halfway, steps(halfway))
    assert after == (desired if prune else actual | desired)
    assert steps(after) == []


def test_things_are_created_and_changed_in_their_order_and_removed_last() -> None:
    steps = plan({"new": 1, "other": 2, "same": 3}, {"gone": 0, "same": 3, "other": 0}, differ, lambda found: True)
    assert [(step.action, step.name) for step in steps] == [
        (Action.CREATE, "new"),
        (Action.CHANGE, "other"),
        (Action.REMOVE, "gone"),
    ]
