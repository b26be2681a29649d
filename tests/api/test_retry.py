"""The wait before another attempt."""

import pytest

from svcctl.api.retry import delay


@pytest.mark.parametrize(
    ("failures", "longest"), [(1, 0.5), (2, 1), (3, 2), (4, 4), (5, 8), (6, 16), (7, 30), (8, 30), (100_000, 30)]
)
def test_the_longest_wait_doubles_up_to_half_a_minute(failures: int, longest: float) -> None:
    assert delay(failures, chance=lambda: 1) == longest


def test_the_wait_is_drawn_evenly_from_half_of_the_longest_on() -> None:
    drawn = iter((0, 0.25, 0.5, 1))
    assert [delay(3, chance=lambda: next(drawn)) for _ in range(4)] == [1, 1.25, 1.5, 2]


def test_two_waits_differ() -> None:
    assert len({delay(7) for _ in range(20)}) > 1
