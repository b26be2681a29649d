"""Looks at jobs, one after another."""

import itertools
from collections.abc import Iterator

import pytest

from svcctl.api.job_watch import looks
from svcctl.api.models import Job
from svcctl.errors import Unavailable


def test_looks_have_rates_and_lags_and_keep_the_jobs_of_a_service_that_is_away() -> None:
    def reads() -> Iterator[list[Job]]:
        for sent in (100, 150):
            yield [Job("a", "RUNNING", events_sent=sent, last_datetime=9_000), Job("b", "STOPPED", events_sent=7)]

    answers = reads()

    def read() -> list[Job]:
        for jobs in answers:
            return jobs
        raise Unavailable("down")

    clock = itertools.count(1009.0, 2.0)
    seen = list(itertools.islice(looks(read, ["a"], interval=0, seconds=None, clock=lambda: next(clock)), 3))
    assert [(look.at, look.failure) for look in seen] == [(1_009_000, None), (1_011_000, None), (1_013_000, "down")]
    assert [[(one.job.events_sent, one.rate, one.lag) for one in look.jobs] for look in seen] == [
        [(100, None, 1000.0)],
        [(150, 25.0, 1002.0)],
        [(150, 0.0, 1004.0)],
    ]


def test_the_rate_is_that_of_generated_events_until_a_service_says_how_many_it_sent() -> None:
    jobs = [
        Job("a", "RUNNING", event_generated=1_000),
        Job("a", "RUNNING", event_generated=3_000),
        Job("a", "COMPLETED", event_generated=3_500, events_sent=3_500),
        Job("a", "COMPLETED", event_generated=3_500, events_sent=3_500),
    ]
    reads, clock = iter(jobs), itertools.count(10.0, 2.0)
    seen = itertools.islice(looks(lambda: [next(reads)], [], interval=0, seconds=None, clock=lambda: next(clock)), 4)
    assert [look.jobs[0].rate for look in seen] == [None, 1000.0, 250.0, 0.0]


def test_looks_that_end_while_the_service_is_away_end_in_its_error() -> None:
    def read() -> list[Job]:
        raise Unavailable("down")

    seen = looks(read, [], interval=0, seconds=0, clock=lambda: 10.0)
    assert next(seen).failure == "down"
    with pytest.raises(Unavailable, match="down"):
        next(seen)
