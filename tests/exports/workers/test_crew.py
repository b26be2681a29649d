"""The line of progress of an export."""

from __future__ import annotations

from svcctl.exports.workers.crew import RunProgress


def test_a_rate_and_its_unit_have_one_blank_between_them() -> None:
    going = RunProgress(clock=lambda: 0.0)
    going.take(0, 24)
    assert going.line() == "0 of 24 windows, 0 bytes/s"
