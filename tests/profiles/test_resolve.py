"""Precedence and sources of settings."""

from typing import Any

import pytest
from support.profiles import PROD, look_up

from svcctl.errors import ProfileError
from svcctl.profiles.resolve import SettingValue, misspelled_variables
from svcctl.profiles.settings import PROFILE_SETTINGS
from svcctl.profiles.store import ProfileStore

# What the errors say, each once; the tests state their kind.
WORDS = {
    "an invalid value": "{field} '{text}' (environment {environment}) cannot be used: {reason}",
    "no secret": "profile p has no api_secret",
}


def test_with_nothing_configured_the_local_service_is_used(store: ProfileStore) -> None:
    profile = look_up(store)
    assert (profile.name, profile.name_source) == ("local", "built in")
    assert profile.socket == "/run/s.sock"
    assert not store.path.exists()


def test_an_address_that_is_given_is_used_without_a_profile(store: ProfileStore) -> None:
    store.set("prod", PROD)
    profile = look_up(store, {"base_url": "https://other.example"}, {"SVCCTL_PROFILE": "prod"})
    assert (profile.base_url, profile.name_source) == ("https://other.example", "flag --base_url")


def test_a_flag_beats_the_environment_beats_the_profile_beats_the_default(store: ProfileStore) -> None:
    def timeout(*given: Any) -> SettingValue:
        return look_up(store, *given).values["timeout"]

    store.set("prod", PROD)
    store.use("prod")
    assert (timeout().value, timeout().source) == (60.0, "default")
    store.set("prod", {"timeout": "20"})
    assert (timeout().value, timeout().source) == (20.0, "profile prod")
    environment = {"SVCCTL_TIMEOUT": "1m30s"}
    assert (timeout({}, environment).value, timeout({}, environment).source) == (90.0, "environment SVCCTL_TIMEOUT")
    flags = {"timeout": 40.0}
    assert (timeout(flags, environment).value, timeout(flags, environment).source) == (40.0, "flag --timeout")


def test_the_profile_is_chosen_by_flag_then_environment_then_file(store: ProfileStore) -> None:
    for name in ("one", "two", "three"):
        store.set(name, {**PROD, "api_key": name})
    store.use("one")
    chosen = [
        look_up(store),
        look_up(store, {}, {"SVCCTL_PROFILE": "two"}),
        look_up(store, {"profile": "three"}, {"SVCCTL_PROFILE": "two"}),
    ]
    assert [(profile.name, profile.name_source) for profile in chosen] == [
        ("one", "profiles file"),
        ("two", "environment SVCCTL_PROFILE"),
        ("three", "flag --profile"),
    ]


def test_a_profile_named_by_flag_is_not_redirected_by_the_environment(store: ProfileStore) -> None:
    store.set("prod", PROD)
    environment = {"SVCCTL_BASE_URL": "https://other.example.com", "SVCCTL_API_KEY": "other", "SVCCTL_TIMEOUT": "5"}
    profile = look_up(store, {"profile": "prod"}, environment)
    assert profile.base_url == "https://api.example.com"
    assert profile.api_key == "key-1"
    assert profile.timeout == 5.0


def test_the_environment_alone_is_enough(store: ProfileStore) -> None:
    profile = look_up(store, {}, {"SVCCTL_BASE_URL": "https://api.example.com/", "SVCCTL_TOKEN": "abc"})
    assert (profile.name, profile.base_url, profile.token, profile.method) == (
        None,
        "https://api.example.com",
        "abc",
        "token",
    )


@pytest.mark.parametrize(
    ("field", "text", "reason"),
    [
        ("base_url", "api.example.com", "it must begin with https:// or http://, as in https://api.example.com"),
        ("auth", "basic", "it must be one of signature, token, jwt"),
        ("timeout", "0", "it must be at least 0.001s"),
        ("retries", "-1", "it is not a whole number of at least 0"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_with_its_source(
    store: ProfileStore, field: str, text: str, reason: str
) -> None:
    environment = {str(PROFILE_SETTINGS[field].environment): text}
    with pytest.raises(ProfileError) as caught:
        look_up(store, {}, environment)
    assert caught.value.message == WORDS["an invalid value"].format(
        field=field, text=text, environment=PROFILE_SETTINGS[field].environment, reason=reason
    )


def test_a_missing_setting_says_how_to_give_it(store: ProfileStore) -> None:
    store.set("p", {"base_url": "https://a.example"})
    with pytest.raises(ProfileError) as caught:
        _ = look_up(store, {"profile": "p"}).api_secret
    assert caught.value.message == WORDS["no secret"]
    assert (caught.value.reason, caught.value.data) == (
        "setting-missing",
        {"profile": "p", "field": "api_secret_file", "variable": "SVCCTL_API_SECRET"},
    )


def test_a_mistyped_variable_is_noted() -> None:
    given = {"SVCCTL_RETIRES": "3", "SVCCTL_RETRIES": "3", "SVCCTL_DATA": "/data", "RETRIEZ": "1"}
    assert list(misspelled_variables(given)) == [
        "svcctl has no variable SVCCTL_RETIRES; did you mean SVCCTL_RETRIES?",
    ]


@pytest.mark.parametrize(
    ("field", "stored", "variable", "value", "source"),
    [
        ("read_only", None, None, "false", "default"),
        ("read_only", "true", None, "true", "profile prod"),
        ("read_only", None, "true", "true", "environment SVCCTL_READ_ONLY"),
        ("read_only", "true", "FALSE", "true", "profile prod"),
        ("read_only", "false", "true", "true", "environment SVCCTL_READ_ONLY"),
        ("max_rows", None, None, None, "not set"),
        ("max_rows", "100", None, 100, "profile prod"),
        ("max_rows", None, "100", 100, "environment SVCCTL_MAX_ROWS"),
        ("max_rows", "100", "1000", 100, "profile prod"),
        ("max_rows", "100", "10", 10, "environment SVCCTL_MAX_ROWS"),
    ],
)
@pytest.mark.parametrize("flags", [{}, {"profile": "prod"}])
def test_the_environment_tightens_a_guard_and_does_not_loosen_it(
    store: ProfileStore,
    field: str,
    stored: str | None,
    variable: str | None,
    value: Any,
    source: str,
    flags: dict[str, Any],
) -> None:
    store.set("prod", PROD | ({} if stored is None else {field: stored}))
    store.use("prod")
    environment = {} if variable is None else {f"SVCCTL_{field.upper()}": variable}
    profile = look_up(store, flags, environment)
    assert (profile.values[field].value, profile.values[field].source) == (value, source)
    guard = profile.guard
    assert (guard.read_only, guard.max_rows) == (value == "true", value if field == "max_rows" else None)


@pytest.mark.parametrize(("field", "text"), [("read_only", "yes"), ("read_only", "1"), ("max_rows", "0")])
def test_a_guard_with_an_unclear_value_is_refused(store: ProfileStore, field: str, text: str) -> None:
    with pytest.raises(ProfileError):
        store.set("prod", PROD | {field: text})
    with pytest.raises(ProfileError):
        look_up(store, {}, {f"SVCCTL_{field.upper()}": text})
