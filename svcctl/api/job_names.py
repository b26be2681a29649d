"""Names of jobs: find a job by its ID, the beginning of its ID or its friendly name, and shorten IDs for lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from svcctl.api.models import Job, status_text
from svcctl.errors import MalformedAnswer, UsageError
from svcctl.words import counted, did_you_mean, some

SHOWN_ID_CHARS = 8
"""The number of characters of a job's ID in lists. If two IDs have the same beginning, lists show more characters."""
MIN_ID_CHARS = 4
"""The minimum length of an abbreviated ID in a command that changes the job, in characters."""

_HASHED = r"(?s)(.+)\.([0-9a-f]{8})"
_FULL_ID = r"(?ia)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


class Chosen(NamedTuple):
    """The IDs of the jobs that a user named.

    `jobs` returns all jobs, and requests the list from the service at most once.
    """

    ids: Sequence[str]
    jobs: Callable[[], Sequence[Job]]

    def hint(self, text: str) -> str | None:
        """Return a hint with the most similar job name. `text` is a name that matches no job.

        Raises MalformedAnswer if the service's answer has no list of jobs.
        """
        return hint(text, () if is_whole(text) else self.jobs())

    def short(self, job_id: str) -> int:
        """Return the number of characters to show of a job's ID.

        If `job_id` is a complete ID, the number is SHOWN_ID_CHARS, and the list of jobs is not requested. Otherwise,
        the number is sufficient to distinguish all listed jobs.
        """
        return SHOWN_ID_CHARS if is_whole(job_id) else shortest(job.id for job in self.listed())

    def listed(self) -> Sequence[Job]:
        """Return the jobs that the service lists; empty if the service's answer has no list of jobs."""
        return _any_listed(self.jobs)


def choose(texts: Iterable[str], jobs: Callable[[], Sequence[Job]], *, changes: bool = False) -> Chosen:
    """Find the jobs that a user named by an ID, the beginning of an ID or a friendly name.

    Raises UsageError in the same cases as `resolved`. If the service's answer has no list of jobs, each text counts as
    an ID. The service then accepts or refuses this ID.
    """
    jobs = cache(jobs)
    return Chosen(resolved(texts, lambda: _any_listed(jobs), changes=changes), jobs)


def _any_listed(jobs: Callable[[], Sequence[Job]]) -> Sequence[Job]:
    try:
        return jobs()
    except MalformedAnswer:
        return ()


def split_name(name: str) -> tuple[str, str | None]:
    """Split a friendly name into the name itself and the hash that `svcctl job apply` appends.

    If the name has no hash, the second value is None.
    """
    match = re.fullmatch(_HASHED, name)
    return (match[1], match[2]) if match else (name, None)


def is_whole(text: str) -> bool:
    """Return whether a text is a UUID. In the HTTP interface, the ID of every job is a UUID."""
    return re.fullmatch(_FULL_ID, text) is not None


def resolved(texts: Iterable[str], jobs: Callable[[], Iterable[Job]], *, changes: bool = False) -> list[str]:
    """Return the IDs of the jobs that the texts name, without duplicates.

    `jobs` returns all jobs that the service lists. A text that matches no job is returned unchanged, because it may be
    the ID of a job that is not listed. Raises UsageError if a text matches several jobs. `changes` says that the
    caller will change the jobs. In this case, also raises UsageError for an abbreviated ID of fewer than MIN_ID_CHARS
    characters.
    """
    return list(dict.fromkeys(text if is_whole(text) else _resolved(text, list(jobs()), changes) for text in texts))


def _resolved(text: str, jobs: Sequence[Job], changes: bool) -> str:
    if any(job.id == text for job in jobs):
        return text
    called = [job for job in jobs if (name := job.friendly_name) and text in (name, split_name(name)[0])]
    begin = [job for job in jobs if text and job.id.lower().startswith(text.lower())]
    # A name takes precedence over an ID, so that the name still means the same job after other jobs get new IDs.
    meant = called or begin
    if len(meant) > 1:
        raise _ambiguous(text, meant, called=bool(called))
    if changes and meant and not called and len(text) < MIN_ID_CHARS:
        raise UsageError(
            f"'{text}' is too short for a command that changes a job: {_listed(begin)}",
            hint=f"give at least {MIN_ID_CHARS} characters, or the ID: {begin[0].id}",
        )
    return meant[0].id if meant else text


def _ambiguous(text: str, jobs: Sequence[Job], *, called: bool) -> UsageError:
    if called:
        return UsageError(
            f"{len(jobs)} jobs are named '{text}': {_listed(jobs, status_text)}", hint="give the ID of one"
        )
    return UsageError(f"{len(jobs)} job IDs begin with '{text}': {_listed(jobs)}", hint="give more of the ID")


def namesakes(job: Job, jobs: Iterable[Job]) -> str | None:
    """Return a sentence about the other jobs that have the friendly name of `job`; None if there are none."""
    others = [other for other in jobs if other.friendly_name == job.friendly_name and other.id != job.id]
    if not others or not job.friendly_name:
        return None
    which = counted(len(others), "other job is", "other jobs are")
    return f"{which} named '{job.friendly_name}': {_listed(others, status_text)}; commands need the ID"


def _listed(jobs: Sequence[Job], about: Callable[[Job], str | None] = attrgetter("friendly_name")) -> str:
    size = shortest(job.id for job in jobs)
    return some([" ".join(filter(None, (job.id[:size], about(job)))) for job in jobs])


def hint(text: str, jobs: Iterable[Job] = ()) -> str | None:
    """Return a hint with the most similar friendly name. `text` is a name that matches no job."""
    return did_you_mean(text, (split_name(job.friendly_name)[0] for job in jobs if job.friendly_name))


def shortest(ids: Iterable[str]) -> int:
    """Return the number of characters that are needed to distinguish the IDs of jobs, at least SHOWN_ID_CHARS."""
    ordered = sorted({job_id.lower() for job_id in ids})
    return max([SHOWN_ID_CHARS, *(_alike(job_id, next_id) + 1 for job_id, next_id in pairwise(ordered))])


def _alike(text: str, other: str) -> int:
    """Return the number of characters that two texts share at their beginning."""
    at = 0
    for at, (left, right) in enumerate(zip(text, other, strict=False)):
        if left != right:
            return at
    return min(len(text), len(other))
