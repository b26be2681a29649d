"""The ranges at the head of `svcctl help dates` resolve to what they say."""

from __future__ import annotations

import shlex

import pytest
from support.shells import Shell

from svcctl.cli.help import topics

PAGE = topics.read("dates")
EXAMPLES = dict(line.strip().split("  ", 1) for line in PAGE.split("\n\n")[2].split("\n"))
RANGES = {
    "today so far": ("2024-02-10 00:00:00", "2024-02-10 12:30:00"),
    "yesterday": ("2024-02-09 00:00:00", "2024-02-10 00:00:00"),
    "the last 24 hours": ("2024-02-09 12:30:00", "2024-02-10 12:30:00"),
    "2 hours to 1 hour ago": ("2024-02-10 10:30:00", "2024-02-10 11:30:00"),
    "the last 7 whole days": ("2024-02-03 00:00:00", "2024-02-10 00:00:00"),
    "this calendar month": ("2024-02-01 00:00:00", "2024-02-10 12:30:00"),
    "last calendar month": ("2024-01-01 00:00:00", "2024-02-01 00:00:00"),
    "January 2024": ("2024-01-01 00:00:00", "2024-02-01 00:00:00"),
    "an hour of a day": ("2024-01-31 09:00:00", "2024-01-31 10:00:00"),
    "yesterday in Berlin": ("2024-02-08 23:00:00", "2024-02-09 23:00:00"),
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_range_of_the_page_resolves_to_what_it_says(shell: Shell, example: str) -> None:
    done = shell("range", *shlex.split(EXAMPLES[example]), "--at", "2024-02-10T12:30:00Z")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1] == "UTC,{} +0000,{} +0000".format(*RANGES[example])


def test_the_page_begins_with_the_ranges_and_is_short() -> None:
    assert list(EXAMPLES) == list(RANGES)
    assert len(PAGE.splitlines()) <= 100
