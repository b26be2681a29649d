"""The settings of the local service: what its process takes from the environment, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from svcctl.errors import UsageError
from svcctl.io.setting import Setting
from svcctl.service.settings import (
    ACCESS_TIME,
    CONNECTIONS,
    CORS_ORIGINS,
    DEMO,
    LAG_TIME,
    LINE_END,
    LOAD_BYTES,
    LOAD_DEPTH,
    LOAD_MEMORY,
    LOAD_NESTED_COLUMNS,
    LOAD_RATIO,
    LOAD_TIME,
    OPEN_QUERIES,
    PADDING_TIME,
    QUERY_PLACES,
    QUERY_TIME,
    RUNNING_JOBS,
    TOTAL_JOBS,
    absolute_locations,
    places,
)

# What the errors say, each once; the tests state their kind.
WORDS = {
    "not a length": "SVCCTL_QUERY_TIME '{text}' cannot be used: it is not a length such as 90, 30s, 5m, 1h30m or 1d",
    "no time": "SVCCTL_QUERY_TIME '0' cannot be used: it must be at least 0.001s",
    "not a line end": "SVCCTL_LINE_END 'cr' cannot be used: it must be one of lf, crlf",
    "not an origin": (
        "SVCCTL_CORS_ORIGINS 'https://app.example {text}' cannot be used: '{text}' is not an origin: write a scheme "
        "and a host, such as https://app.example:8443"
    ),
    "not a size": "SVCCTL_LOAD_BYTES '{text}' cannot be used: it is not a size, such as 500MB or 20GB",
    "not a whole number": "{name} '{text}' cannot be used: it is not a whole number of at least 1",
}


@pytest.mark.parametrize(
    ("setting", "default"), [(DEMO, 30 * 86_400), (QUERY_TIME, 600), (PADDING_TIME, 5), (CONNECTIONS, 500)]
)
def test_a_setting_of_the_process_has_a_default(setting: Setting, default: float) -> None:
    assert setting.read({}) == setting.default_value == default
    assert setting.read({setting.name: ""}) == default


@pytest.mark.parametrize("setting", [DEMO, QUERY_TIME, PADDING_TIME, LAG_TIME, ACCESS_TIME])
def test_a_setting_that_is_a_length_takes_a_number_of_seconds_and_units(setting: Setting) -> None:
    assert [setting.read({setting.name: text}) for text in ("90", "90s", "1h30m", "1d")] == [
        90,
        90,
        5400,
        86_400,
    ]


@pytest.mark.parametrize(
    ("text", "why"), [("x", "not a length"), ("-1", "not a length"), ("nan", "not a length"), ("0", "no time")]
)
def test_a_time_limit_that_is_not_above_zero_is_refused(text: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        QUERY_TIME.read({"SVCCTL_QUERY_TIME": text})
    assert caught.value.message == WORDS[why].format(text=text)


@pytest.mark.parametrize(
    ("setting", "default"), [(QUERY_PLACES, 8), (OPEN_QUERIES, 64), (RUNNING_JOBS, 64), (TOTAL_JOBS, 256)]
)
def test_a_count_is_a_whole_number(setting: Setting, default: float) -> None:
    assert setting.read({}) == default
    assert setting.read({setting.name: "3"}) == 3
    for text in ("0", "2.5", "x"):
        with pytest.raises(UsageError) as caught:
            setting.read({setting.name: text})
        assert caught.value.message == WORDS["not a whole number"].format(name=setting.name, text=text)


def test_there_may_be_no_days_of_demo_events_but_not_fewer() -> None:
    assert DEMO.read({"SVCCTL_DEMO": "0"}) == 0
    with pytest.raises(UsageError):
        DEMO.read({"SVCCTL_DEMO": "-1"})


def test_lines_end_in_lf_unless_the_setting_says_otherwise() -> None:
    assert [LINE_END.read({"SVCCTL_LINE_END": text}) for text in ("", "lf", "crlf", "CRLF")] == [
        "lf",
        "lf",
        "crlf",
        "crlf",
    ]
    assert LINE_END.read({}) == "lf"
    with pytest.raises(UsageError) as caught:
        LINE_END.read({"SVCCTL_LINE_END": "cr"})
    assert caught.value.message == WORDS["not a line end"]


@pytest.mark.parametrize(
    ("text", "origins"),
    [
        ("", ()),
        (" , ", ()),
        ("https://app.example", ("https://app.example",)),
        ("HTTP://LocalHost:3000, https://app.example", ("http://localhost:3000", "https://app.example")),
        ("http://[::1]:3000\nhttps://app.example", ("http://[::1]:3000", "https://app.example")),
    ],
)
def test_origins_are_read_as_browsers_send_them(text: str, origins: tuple[str, ...]) -> None:
    assert (CORS_ORIGINS.read({"SVCCTL_CORS_ORIGINS": text}) or ()) == origins


@pytest.mark.parametrize("text", ["*", "null", "app.example", "https://app.example/", "https://*.example", "file://x"])
def test_what_no_browser_sends_as_an_origin_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        CORS_ORIGINS.read({"SVCCTL_CORS_ORIGINS": f"https://app.example {text}"})
    assert caught.value.message == WORDS["not an origin"].format(text=text)


def test_what_a_service_uses_is_told_without_secrets() -> None:
    environment = {
        "SVCCTL_TABLES": "/srv/a;b",
        "SVCCTL_SERVICE_STATE": "postgresql://me:p@ss@db:5432/svcctl?password=p",
        "SVCCTL_ENGINE": "sc://spark:15002/;token=t",
    }
    assert places(environment) == {
        "folder": "/srv/a;b",
        "state": "postgresql://****@db:5432/svcctl",
        "engine": "sc://spark:15002/",
    }
    assert places({"SVCCTL_ENGINE": "duckdb"}, folder="s3://events/a", state=None) == {"folder": "s3://events/a"}


def test_a_path_is_absolute_for_the_service_in_the_background_which_runs_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"SVCCTL_TABLES": "tables", "SVCCTL_TABLES_LOCK": "/x/lock", "SVCCTL_SPARK_CA_BUNDLE": "", "HOME": "/h"}
    assert absolute_locations(given) == {"SVCCTL_TABLES": f"{tmp_path}/tables", "SVCCTL_TABLES_LOCK": "/x/lock"}
    assert absolute_locations({"SVCCTL_TABLES": "s3://bucket/events"}) == {"SVCCTL_TABLES": "s3://bucket/events"}
    assert places({}, folder="tables") == {"folder": f"{tmp_path}/tables"}


@pytest.mark.parametrize(
    ("setting", "default"),
    [
        *((LOAD_TIME, 7200), (LOAD_BYTES, 100_000_000_000), (LOAD_RATIO, 5000), (LOAD_MEMORY, 500_000_000)),
        *((LOAD_DEPTH, 5), (LOAD_NESTED_COLUMNS, 200)),
    ],
)
def test_a_limit_of_loads_has_a_default(setting: Setting, default: float) -> None:
    assert setting.read({}) == default


@pytest.mark.parametrize(
    ("text", "size"), [("1", 1), ("500MB", 500_000_000), ("20 gb", 20_000_000_000), ("3k", 3000), ("7B", 7)]
)
def test_a_size_is_a_number_of_bytes_with_a_unit(text: str, size: int) -> None:
    assert LOAD_BYTES.read({"SVCCTL_LOAD_BYTES": text}) == size


@pytest.mark.parametrize("text", ["0", "x", "-1", "1.5GB", "1 PB", "GB", "\u0663", "5 MBB"])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        LOAD_BYTES.read({"SVCCTL_LOAD_BYTES": text})
    assert caught.value.message == WORDS["not a size"].format(text=text)
