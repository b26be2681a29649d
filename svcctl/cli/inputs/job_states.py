"""The states of jobs in the value of an option, such as `--status running,failing`. Case does not matter."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from svcctl.api.models import FAILING, OTHER_STATUSES, Job, JobStatus
from svcctl.errors import UsageError
from svcctl.words import did_you_mean


def to_list(text: str | None, jobs: Callable[[], Iterable[Job]]) -> frozenset[str]:
    """Return the states in an option's text; empty if the option is not given.

    Raises UsageError for an unknown state.
    """
    return _checked(_named(text), jobs, (*JobStatus, FAILING))


def to_wait_for(text: str, jobs: Callable[[], Iterable[Job]]) -> frozenset[str]:
    """Return the states to wait for, from an option's text.

    Raises UsageError if the text has no state, an unknown state, or the state FAILING.
    """
    if not _named(text):
        raise UsageError(f"'{text}' does not name a state", hint=_listed(JobStatus))
    if FAILING in _named(text):
        raise UsageError(
            f"cannot wait for {FAILING}, which means a running job with an error",
            hint="without it, 'svcctl job wait' fails as soon as a job reports an error",
        )
    return _checked(_named(text), jobs, tuple(JobStatus))


def _named(text: str | None) -> dict[str, str]:
    """Return the states in an option's text. The keys are in upper case, and the values are the words as typed."""
    words = [word.strip() for word in (text or "").split(",")]
    return {word.upper(): word for word in words if word}


def _checked(states: Mapping[str, str], jobs: Callable[[], Iterable[Job]], choices: Collection[str]) -> frozenset[str]:
    """Check the states, and return them. Raises UsageError for an unknown state.

    A state is known if it is in `choices` or OTHER_STATUSES, or if a job is in this state.
    """
    for state in sorted(states.keys() - {*choices, *OTHER_STATUSES}):
        if state not in {job.status.upper() for job in jobs()}:
            near = did_you_mean(state, (*choices, *OTHER_STATUSES))
            raise UsageError(f"there is no state '{states[state]}'", hint=near or _listed(choices))
    return frozenset(states)


def _listed(states: Iterable[str]) -> str:
    return f"states are {', '.join(states)}"
