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
    ("zone", "from_", "seconds"),
    [
        ("America/Sao_Paulo", "2018-11-04", 1_541_300_400),
        ("America/Sao_Paulo", "2018-11-04 01:00", 1_541_300_400),
        ("Europe/Berlin", "2026-03-29 03:00", 1_774_746_000),
        ("Europe/Berlin", "2026-10-25 02:30+02:00", 1_792_888_200),
        ("Europe/Berlin", "2026-10-25 02:30+01:00", 1_792_891_800),
    ],
)
def test_a_date_without_an_offset_is_in_the_zone_also_in_that_of_this_computer(
    shell: Shell, zone: str, from_: str, seconds: int
) -> None:
    for given, variables in ((zone, {}), ("local", {"TZ": zone})):
        done = shell("range", "--from", from_, "--to", "1s", "--time-zone", given, **variables)
        assert (done.returncode, done.stdout.splitlines()[4:5]) == (0, [f"seconds,{seconds},{seconds + 1}"]), (
            done.stderr
        )


@pytest.mark.parametrize("given", ["Europe/Berlin", "local"])
def test_a_local_time_that_occurs_twice_or_never_is_refused_with_the_spellings_that_decide(
    shell: Shell, given: str
) -> None:
    for text, problem in (("2026-10-25 02:30", "occurs twice"), ("2026-03-29 02:30", "does not exist")):
        done = shell("range", "--from", text, "--to", "1s", "--time-zone", given, TZ="Europe/Berlin")
        offsets = ("+02:00", "+01:00") if "twice" in problem else ("+01:00", "+02:00")
        either = " or ".join(f"{text.replace(' ', 'T')}{offset}" for offset in offsets)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"'{text}' {problem} in {given}, " in done.stderr
        assert f"hint: write {either}\n" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "stderr"),
    [
        (
            ("--from", "now", "--to", "2024-01-31", *AT),
            "svcctl: error: the range ends before it starts: from 2024-02-10 12:30:00 to 2024-01-31 00:00:00 (UTC)\n"
            "hint: without --to, a range ends now; see how a pair resolves with 'svcctl range --from … --to …'\n",
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
