"""`svcctl range`: both ends of a range in UTC, in the zone and in local time, as numbers, and the length."""

from __future__ import annotations

import pytest
from support.shells import Shell

AT = ("--at", "2024-02-10T12:30:00Z")


def test_a_range_is_shown_in_utc_in_the_zone_and_in_local_time(shell: Shell) -> None:
    done = shell("range", "--from", "2h", *AT, "--time-zone", "GMT+5:30", TZ="XXX+3")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "as,from,to\n"
        "UTC,2024-02-10 10:30:00 +0000,2024-02-10 12:30:00 +0000\n"
        "zone,2024-02-10 16:00:00 +0530,2024-02-10 18:00:00 +0530\n"
        "local,2024-02-10 07:30:00 -0300,2024-02-10 09:30:00 -0300\n"
        "seconds,1707561000,1707568200\n"
        "milliseconds,1707561000000,1707568200000\n"
        "length,,2h\n"
    )


def test_milliseconds_are_shown_where_there_are_some(shell: Shell) -> None:
    done = shell("range", "--from", "2024-02-10 12:30:00.718", "--to", "1s", *AT, TZ="UTC0")
    assert done.stdout == (
        "as,from,to\n"
        "UTC,2024-02-10 12:30:00.718 +0000,2024-02-10 12:30:01.718 +0000\n"
        "zone,2024-02-10 12:30:00.718 +0000,2024-02-10 12:30:01.718 +0000\n"
        "local,2024-02-10 12:30:00.718 +0000,2024-02-10 12:30:01.718 +0000\n"
        "seconds,1707568200.718,1707568201.718\n"
        "milliseconds,1707568200718,1707568201718\n"
        "length,,1s\n"
    )


@pytest.mark.parametrize(
    ("from_", "to", "length"),
    [
        ("2024-01-31", "2024-02-02T03:04:05Z", "2d3h4m5s"),
        ("2024-01-31T10:00:00Z", "2024-01-31T11:30:00Z", "1h30m"),
        ("now", "now", "0s"),
        ("2024-01-31T10:00:00.5Z", "2024-01-31T10:00:02.505Z", "2.005s"),
    ],
)
def test_the_length_leaves_out_the_units_that_are_zero(shell: Shell, from_: str, to: str, length: str) -> None:
    done = shell("range", "--from", from_, "--to", to, *AT)
    assert done.stdout.splitlines()[-1] == f"length,,{length}"


@pytest.mark.parametrize(
    ("arguments", "stderr"),
    [
        (
            ("--from", "now", "--to", "2024-01-31", *AT),
            "svcctl: error: the range ends before it starts: from 2024-02-10 12:30:00 to 2024-01-31 00:00:00 (UTC)\n"
            "hint: see how a pair resolves with 'svcctl range --from … --to …'\n",
        ),
        (
            ("--from", "2h", "--at", "1h"),
            "svcctl: error: --at '1h' is a relative date\nhint: give a date such as 2018-10-08T14:33:12Z\n",
        ),
    ],
)
def test_an_invalid_range_is_refused(shell: Shell, arguments: tuple[str, ...], stderr: str) -> None:
    done = shell("range", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", stderr)
