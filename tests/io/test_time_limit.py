"""A block is left when its time is up, and otherwise undisturbed."""

import select
import signal
from contextlib import suppress

import pytest

from svcctl.io.time_limit import time_limit


def test_a_block_that_waits_is_left_when_its_time_is_up() -> None:
    with time_limit(0.05):
        select.select([], [], [], 30)
        pytest.fail("the time was not up")


def test_what_the_block_raises_comes_out_and_the_alarm_is_off() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(KeyError), time_limit(30):
        raise KeyError("x")
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_without_a_limit_no_alarm_is_set() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(None):
        assert signal.getsignal(signal.SIGALRM) is before


def test_what_the_limit_raises_comes_out_and_no_handler_of_errors_keeps_the_block_alive() -> None:
    def late(seconds: float) -> TimeoutError:
        return TimeoutError(f"no answer within {seconds}")

    with pytest.raises(TimeoutError, match=r"no answer within 0\.05"), time_limit(0.05, late):
        while True:
            with suppress(Exception):
                select.select([], [], [], 30)


def test_no_time_at_all_is_over_at_once() -> None:
    with time_limit(0):
        select.select([], [], [], 30)
        pytest.fail("the time was not up")
