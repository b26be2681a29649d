"""The profiles file: what is kept, and what is refused."""

import pytest
from support.profiles import PROD, look_up

from svcctl.errors import ProfileError
from svcctl.profiles.store import ProfileStore


def test_the_file_is_private_and_refused_when_others_can_read_it(store: ProfileStore) -> None:
    store.set("prod", PROD)
    assert store.path.stat().st_mode & 0o777 == 0o600
    store.path.chmod(0o640)
    with pytest.raises(ProfileError) as caught:
        store.load()
    assert caught.value.message == f"profiles file {store.path} can be read by others (mode 0640)"
    assert caught.value.hint == f"close it with: chmod 600 '{store.path}'"


def test_setting_changes_some_fields_and_an_empty_value_removes_one(store: ProfileStore) -> None:
    store.set("prod", {**PROD, "headers.apikey": "x-other-apikey", "timeout": "5"})
    store.set("prod", {"timeout": "", "api_secret_file": "/run/secret", "headers.apikey": ""})
    assert store.load().fields("prod") == {
        "base_url": "https://api.example.com",
        "api_key": "key-1",
        "api_secret_file": "/run/secret",
    }


def test_removing_the_default_profile_goes_back_to_local(store: ProfileStore) -> None:
    store.set("prod", PROD)
    store.use("prod")
    store.remove("prod")
    assert look_up(store).name == "local"
    with pytest.raises(ProfileError) as caught:
        store.remove("prod")
    assert (caught.value.message, caught.value.hint) == (
        "no profile 'prod'",
        "profiles are: local, local-reseller; create one with 'svcctl profile set prod'",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("profiles:\n\tp: 1", "profiles file {path}, line 2 is not YAML"),
        ("- a", "profiles file {path} must hold 'profiles:' with a name and its fields each"),
        ("profiles: {p: 3}", "profile p in {path} must be a mapping of fields"),
        ("profiles: {p: {base_uri: x}}", "unknown field 'base_uri' in profile p in {path}"),
        (
            "profiles: {p: {timeout: soon}}",
            "timeout 'soon' (profile p in {path}) cannot be used: it is not a number of seconds",
        ),
        ("profiles: {p: {headers: {apikeys: x}}}", "unknown field 'headers.apikeys' in profile p in {path}"),
        ("profiles: {p: {token: a, token_file: b}}", "profile p in {path} sets both token and token_file"),
    ],
)
def test_a_file_that_cannot_be_used_says_where(store: ProfileStore, text: str, message: str) -> None:
    store.path.parent.mkdir()
    store.path.write_text(text)
    store.path.chmod(0o600)
    with pytest.raises(ProfileError) as caught:
        store.load()
    assert caught.value.message == message.format(path=store.path)
