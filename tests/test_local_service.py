"""The local service as its starter sees it: the numbers that its process takes from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from svcctl.errors import UsageError
from svcctl.local_service import (
    CONNECTIONS,
    DEMO_DAYS,
    OPEN_QUERIES,
    PADDING_SECONDS,
    QUERY_PLACES,
    QUERY_SECONDS,
    RUNNING_JOBS,
    TOTAL_JOBS,
    Files,
    ProcessSetting,
)


@pytest.mark.parametrize(
    ("setting", "default"), [(DEMO_DAYS, 30), (QUERY_SECONDS, 600), (PADDING_SECONDS, 5), (CONNECTIONS, 500)]
)
def test_a_setting_of_the_process_has_a_default(setting: ProcessSetting, default: float) -> None:
    assert setting.read({}) == default
    assert setting.read({setting.environment: ""}) == default
    assert setting.read({setting.environment: "0.5"}) == 0.5


@pytest.mark.parametrize("text", ["x", "0", "-1", "inf", "nan"])
def test_a_time_limit_that_is_not_above_zero_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        QUERY_SECONDS.read({"SVCCTL_QUERY_SECONDS": text})
    assert caught.value.message == f"SVCCTL_QUERY_SECONDS is '{text}', which is not a number above 0"


@pytest.mark.parametrize(
    ("setting", "default"), [(QUERY_PLACES, 8), (OPEN_QUERIES, 64), (RUNNING_JOBS, 16), (TOTAL_JOBS, 64)]
)
def test_a_count_is_a_whole_number(setting: ProcessSetting, default: float) -> None:
    assert setting.read({}) == default
    assert setting.read({setting.environment: "3"}) == 3
    for text in ("0", "2.5", "x"):
        with pytest.raises(UsageError) as caught:
            setting.read({setting.environment: text})
        assert caught.value.message == f"{setting.environment} is '{text}', which is not a whole number above 0"


def test_there_may_be_no_days_of_demo_events_but_not_fewer() -> None:
    assert DEMO_DAYS.read({"SVCCTL_DEMO_DAYS": "0"}) == 0
    with pytest.raises(UsageError) as caught:
        DEMO_DAYS.read({"SVCCTL_DEMO_DAYS": "-1"})
    assert caught.value.message == "SVCCTL_DEMO_DAYS is '-1', which is not a number from 0 on"


@pytest.mark.parametrize("mode", [0o755, 0o710, 0o1777])
def test_a_directory_that_others_can_use_is_refused_and_left_as_it_is(tmp_path: Path, mode: int) -> None:
    directory = tmp_path / "my data"
    directory.mkdir()
    directory.chmod(mode)
    with pytest.raises(UsageError) as caught:
        Files(directory).make()
    assert (caught.value.message, caught.value.hint) == (
        f"directory {directory} can be used by others (its mode is {mode:04o})",
        f"make it private: chmod 700 '{directory}'; or set SVCCTL_DATA to a directory that is made anew",
    )
    assert directory.stat().st_mode & 0o7777 == mode
    directory.chmod(0o700)
    Files(directory).make()
