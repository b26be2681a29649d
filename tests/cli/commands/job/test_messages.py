"""The messages of `svcctl job` on stderr, each as a whole once; the other tests of this folder state the effects."""

from __future__ import annotations

import pytest
from support.jobs import COMPLETED, NIGHTLY, OTHER, REFUSED, STOPPED, UNKNOWN, has_read_everything
from support.reseller import Machine, Reseller

LIST = "hint: list the jobs with 'svcctl job list'"
MEANT = "hint: did you mean 'nightly'?"
WORDS: dict[tuple[str, ...], str] = {
    ("show", "3f2a"): (
        f"svcctl: error: 2 job IDs begin with '3f2a': {OTHER} other, {NIGHTLY} nightly\nhint: give more of the ID\n"
    ),
    ("stop", "nope"): f"svcctl: error: no job nope (code 100)\n{LIST}\n",
    ("watch", "nope"): f"svcctl: error: no job nope\n{LIST}\n",
    ("show", "nightley"): f"svcctl: error: no job nightley (code 100)\n{MEANT}\n",
    ("stop", "caf"): (
        f"svcctl: error: 'caf' is too short for a command that changes a job: {COMPLETED[:8]} done\n"
        f"hint: give at least 4 characters, or the ID: {COMPLETED}\n"
    ),
    ("list", "--status", "REMOVED", "-f", "table"): "svcctl: none of 4 jobs\n",
    ("restart", "nightly", COMPLETED): (
        f"svcctl: job {NIGHTLY} was FAILING with the error: {REFUSED}\n"
        f"svcctl: nothing to do: job {COMPLETED} is COMPLETED\n"
        "svcctl: restarted 1 of 2 jobs\n"
    ),
    ("stop", "resting", "done", "nightly"): (
        f"svcctl: error: job {STOPPED} is STOPPED: only a running job can be stopped (code 108)\n"
        "hint: --if-needed allows that\n"
        f"svcctl: nothing to do: job {COMPLETED} is COMPLETED\n"
        "svcctl: stopped 1 of 3 jobs\n"
    ),
    ("stop", STOPPED, "--if-needed"): (
        f"svcctl: nothing to do: job {STOPPED} is STOPPED: only a running job can be stopped\n"
    ),
    ("start", OTHER, "--if-needed"): f"svcctl: nothing to do: job {OTHER} is already running\n",
    ("rm", "nightley", UNKNOWN): (
        f"svcctl: error: no job nightley (code 100)\n{MEANT}\n"
        f"svcctl: error: no job {UNKNOWN} (code 100)\n{LIST}\n"
        "svcctl: nothing was removed\n"
    ),
    ("rm", "nope", "--if-needed"): "svcctl: nothing to do: no job nope\n",
    ("rm", "nightly"): (
        f"svcctl: error: this needs confirmation: Remove job {NIGHTLY}  FAILING  nightly?\nhint: add --yes\n"
    ),
    ("rm", NIGHTLY, OTHER): "svcctl: error: this needs confirmation: Remove 2 jobs?\nhint: add --yes\n",
}


@pytest.mark.parametrize("arguments", [*WORDS], ids=" ".join)
def test_a_command_prints_its_whole_message(job: Reseller, arguments: tuple[str, ...]) -> None:
    assert job(*arguments, terminal=True).stderr == WORDS[arguments]


def test_messages_about_a_job_that_stopped_with_an_error_or_waits_for_events(place: Machine, job: Reseller) -> None:
    said = {
        "restart": f"svcctl: job {NIGHTLY} was STOPPED with the error: {REFUSED}\n",
        "wait": f"svcctl: job {OTHER} has read all events up to now: "
        "it waits for new events, until the end of its range, or for ever if it was launched with --follow\n"
        f"svcctl: error: job {OTHER} is RUNNING, not COMPLETED, and the time is up\n",
    }
    assert job("stop", "nightly").code == 0
    has_read_everything(place, OTHER)
    for verb, arguments in (("restart", ["nightly"]), ("wait", ["other", "--max-time", "0.001"])):
        assert job(verb, *arguments).stderr == said[verb]
