"""The local service as its starter sees it: the numbers that its process takes from the environment."""

from __future__ import annotations

import pytest

from svcctl.errors import UsageError
from svcctl.local_service import DEMO_DAYS, PADDING_SECONDS, QUERY_SECONDS, ProcessSetting


@pytest.mark.parametrize(("setting", "default"), [(DEMO_DAYS, 30), (QUERY_SECONDS, 600), (PADDING_SECONDS, 5)])
def test_a_setting_of_the_process_has_a_default(setting: ProcessSetting, default: float) -> None:
    assert setting.read({}) == default
    assert setting.read({setting.environment: ""}) == default
    assert setting.read({setting.environment: "0.5"}) == 0.5


@pytest.mark.parametrize("text", ["x", "0", "-1", "inf", "nan"])
def test_a_time_limit_that_is_not_above_zero_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        QUERY_SECONDS.read({"SVCCTL_QUERY_SECONDS": text})
    assert caught.value.message == f"SVCCTL_QUERY_SECONDS is '{text}', which is not a number above 0"


def test_there_may_be_no_days_of_demo_events_but_not_fewer() -> None:
    assert DEMO_DAYS.read({"SVCCTL_DEMO_DAYS": "0"}) == 0
    with pytest.raises(UsageError) as caught:
        DEMO_DAYS.read({"SVCCTL_DEMO_DAYS": "-1"})
    assert caught.value.message == "SVCCTL_DEMO_DAYS is '-1', which is not a number from 0 on"
