"""Jobs that are applied from files end as the files say, whatever breaks on the way; events are delivered once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.job_service import FIRST, Killed, World, opened
from support.waiting import eventually

from svcctl.api.models import JobStatus
from svcctl.cli.apply.job_steps import DomainJobs, JobStep, current
from svcctl.cli.inputs import yaml_files
from svcctl.cli.inputs.job_files import WrittenJob, written
from svcctl.errors import ServiceError, SvcctlError, UsageError

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(params=["own", "other"])
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    with opened(tmp_path, is_own=request.param == "own") as found:
        yield found


def described(name: str, version: int = 0, state: str = "running", topic: str = "up") -> dict[str, Any]:
    destination = {"type": "Kafka", "params": {"topic": topic, "bootstrap.servers": "b:9092"}}
    return {
        "name": name,
        "query": f'from t select n, "{version}" as version',
        "from": FIRST,
        "destination": destination,
        "state": state,
    }


def read(*jobs: Mapping[str, Any]) -> list[WrittenJob]:
    found = yaml_files.parse(yaml_files.to_yaml(list(jobs)), "jobs.yaml", "job")
    return [written(one, NOW) for one in found]


def planned(
    world: World, *jobs: Mapping[str, Any], prune: bool = True, relaunch: str = ""
) -> tuple[DomainJobs, list[JobStep]]:
    noun = DomainJobs(world.client, lambda text: None, relaunch=relaunch.split())
    steps = noun.steps(read(*jobs), prune=prune)
    for step in steps:
        noun.check(step)
    return noun, steps


def applied(world: World, *jobs: Mapping[str, Any], relaunch: str = "") -> list[str]:
    """What is done to the jobs."""
    noun, steps = planned(world, *jobs, relaunch=relaunch)
    return [noun.make(step) for step in steps]


def states(world: World) -> dict[str, JobStatus | str]:
    return {str(job.friendly_name).partition(".")[0]: job.status for job in world.client.jobs()}


def test_jobs_are_launched_changed_stopped_started_and_removed(world: World) -> None:
    world.append([1, 2])
    assert applied(world, described("a"), described("b", state="stopped")) == ["created", "created"]
    assert (states(world), planned(world, described("a"), described("b", state="stopped"))[1]) == (
        {"a": "RUNNING", "b": "STOPPED"},
        [],
    )
    assert applied(world, described("a", state="stopped"), described("b")) == ["stopped", "started"]
    first = world.client.jobs()[0].id
    assert applied(world, described("a", 1), described("b")) == ["updated"]
    assert (first in [job.id for job in world.client.jobs()], states(world)) == (
        False,
        {"a": "RUNNING", "b": "RUNNING"},
    )
    assert applied(world, described("a", 1), relaunch="a") == ["updated", "removed"]
    assert (len(world.client.jobs()), planned(world, described("a", 1))[1]) == (1, [])


def test_late_events_are_delivered_once_while_the_query_of_a_running_job_changes(tmp_path: Path) -> None:
    with opened(tmp_path) as world:
        changes(world, events=90, count=1)
        world.settle("a")
        assert world.rows("a") == list(range(world.events))


@pytest.mark.slow
def test_200_000_events_are_delivered_once_over_20_changes_of_a_running_job(tmp_path: Path) -> None:
    with opened(tmp_path, batch=10_000) as world:
        changes(world, events=200_000, count=20)
        world.settle("a")
        assert world.rows("a") == list(range(world.events))


def changes(world: World, *, events: int, count: int) -> None:
    """Store events between changes of the query of a job, every fifth of them dated an hour before the others."""
    each = events // (count + 1)
    for version in range(count + 1):
        seconds = [7200 + at if at % 5 else at for at in range(version * each, (version + 1) * each)]
        world.append(seconds[: each // 2])
        applied(world, described("a", version))
        world.append(seconds[each // 2 :])


def test_a_change_that_ended_in_the_middle_is_taken_back_where_its_job_has_read_to(tmp_path: Path) -> None:
    with opened(tmp_path) as world:
        world.append([1, 2])
        applied(world, described("a"))
        [old] = world.client.jobs()
        launched = world.client.launch(read(described("a", 1))[0].request(continues=old.id))  # the old one stays
        assert [job.id for job in current(world.client.jobs())] == [launched]
        world.append([3, 4])
        eventually(lambda: len(world.rows("a")) == world.events)
        world.append([5])
        assert applied(world, described("a")) == ["updated"]
        [new] = world.client.jobs()
        assert (new.id != old.id, new.friendly_name) == (True, old.friendly_name)
        world.settle("a")
        assert world.rows("a") == [0, 1, 2, 3, 4]


def test_the_old_job_runs_again_when_the_new_one_fails_at_once(world: World) -> None:
    world.append([1, 2, 3])
    applied(world, described("a"))
    old = world.client.jobs()
    with pytest.raises(ServiceError) as caught:
        applied(world, described("a", topic="down"))
    assert caught.value.message == "FAILING: no such topic"
    assert [(job.id, job.status) for job in world.client.jobs()] == [(old[0].id, "RUNNING")]
    world.append([4])
    world.settle("a")
    assert world.rows("a") == [0, 1, 2, 3]


def test_nothing_is_applied_to_a_service_that_gives_jobs_other_names(world: World) -> None:
    applied(world, described("a"))
    world.wire.names = "kafka_x1y2z3"
    for jobs in ([described("b"), described("a")], [described("a", 1)]):
        with pytest.raises(ServiceError) as caught:
            applied(world, *jobs)
        assert "kafka_x1y2z3" in caught.value.message
        assert states(world) == {"a": "RUNNING"}


def test_files_of_one_name_are_not_continued_where_their_numbers_cannot_be_handed_on(tmp_path: Path) -> None:
    def files(name: str, version: int) -> dict[str, Any]:
        return described("a", version) | {
            "destination": {"type": "HDFS", "params": {"file": name, "fs.defaultFS": "hdfs://h:1"}}
        }

    with opened(tmp_path, is_own=False) as world:
        applied(world, files("/x.csv", 0))
        with pytest.raises(UsageError):
            planned(world, files("/x.csv", 1))
        assert len(planned(world, files("/y.csv", 1))[1]) == 1
        world.wire.is_own = True
        assert len(planned(world, files("/x.csv", 1))[1]) == 1


@pytest.mark.parametrize(
    "query",
    [
        "from tt",
        "from t\nwher n = 1",
        "from t where missing = 1",
        "from t where n = ''",
        "from t group by n select count() as c",  # never complete without an end
    ],
)
def test_a_query_that_would_be_refused_is_reported_before_anything_is_changed(world: World, query: str) -> None:
    job = described("a") | {"query": query}
    if world.wire.is_own:
        with pytest.raises(UsageError, match=r"^jobs.yaml, line 9: query: line \d, column \d"):
            planned(world, described("b"), job)
        assert world.client.jobs() == ()
    else:
        noun, steps = planned(world, job)
        assert noun.check(steps[0]) is not None


def test_a_query_without_its_keyword_has_the_message_of_the_query_command(tmp_path: Path) -> None:
    with opened(tmp_path) as world, pytest.raises(UsageError) as caught:
        planned(world, described("a") | {"query": "from t\nwher n = 1"})
    assert caught.value.message.endswith("query: line 2, column 1: unexpected 'wher' (did you mean 'where'?)")


def test_a_job_that_was_launched_by_hand_is_changed_by_a_file_but_not_pruned(world: World) -> None:
    by_hand = read(described("by-hand"))[0].request()
    assert by_hand.destination is not None
    params = {**by_hand.destination.params, "friendlyName": "by-hand"}
    world.client.launch(replace(by_hand, destination=replace(by_hand.destination, params=params)))
    applied(world, described("a"))
    assert applied(world) == ["removed"]
    assert states(world) == {"by-hand": "RUNNING"}
    assert len(planned(world, described("by-hand"))[1]) == (0 if world.wire.is_own else 1)
    assert applied(world, described("by-hand", 1)) == ["updated"]


State = Mapping[str, tuple[int, str]]
"""The versions and states of jobs by their names."""
STATES = st.dictionaries(
    st.sampled_from("abc"), st.tuples(st.integers(0, 2), st.sampled_from(["running", "stopped"])), max_size=3
)
FAULTS = st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["lost", "kill before", "kill behind"])), max_size=5)


def converges(is_own: bool, states: list[State], faults: list[tuple[int, str]]) -> None:
    """Apply each state while events arrive, and in the end the last one: after at most two more runs it is there, and
    nothing is left. A job that was never removed has then delivered each event once.
    """
    with tempfile.TemporaryDirectory() as directory, opened(Path(directory), is_own=is_own) as world:
        for state in states:
            desired = [described(name, version, status) for name, (version, status) in state.items()]
            world.append([30 + world.events, 20 + world.events])
            world.wire.due = list(faults)
            with suppress(Killed, SvcctlError):
                applied(world, *desired)
            world.append([10])
        world.wire.due = []
        for _ in range(2):
            applied(world, *desired)
        assert planned(world, *desired)[1] == []
        full = {job.friendly_name: job.status for job in world.client.jobs()}
        expected = {
            read(described(name, version, status))[0].full_name: status.upper()
            for name, (version, status) in state.items()
        }
        assert full == expected
        if is_own:  # elsewhere late events may be missed
            always = {name: state[name][1] for name in state if all(name in one for one in states)}
            world.settle(*(name for name, status in always.items() if status == "running"))
            for name, status in always.items():
                rows = world.rows(name)
                assert rows == (list(range(world.events)) if status == "running" else sorted(set(rows))), name


@pytest.mark.parametrize("is_own", [True, False])
def test_jobs_end_as_the_files_say_after_lost_answers_and_kills(is_own: bool) -> None:
    running, changed = {"a": (0, "running"), "b": (0, "stopped")}, {"a": (1, "running")}
    converges(is_own, [running, changed], [(3, "lost"), (2, "kill behind")])


@pytest.mark.slow
@pytest.mark.parametrize("is_own", [True, False])
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(states=st.lists(STATES, min_size=1, max_size=4), faults=FAULTS)
def test_jobs_end_as_the_files_say_after_many_lost_answers_and_kills(
    is_own: bool, states: list[State], faults: list[tuple[int, str]]
) -> None:
    converges(is_own, states, faults)
