"""The credential store: precedence, sources, masking, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from svcctl import profiles
from svcctl.errors import ProfileError, UsageError
from svcctl.profiles import SETTINGS, Profile, Store, Value, parse_assignments, resolve

PROD = {"base_url": "https://api.example.com", "api_key": "key-1", "api_secret": "0123456789abcdefXYZ1"}
LOCAL = {
    "base_url": "http://localhost",
    "socket": "/run/s.sock",
    "api_key": "k",
    "api_secret": "s" * 20,
    "token": "t" * 20,
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "config" / "config.yaml")


def look_up(store: Store, flags: dict[str, Any] | None = None, environment: dict[str, str] | None = None) -> Profile:
    return resolve(store, flags=flags or {}, environment=environment or {}, local=lambda name: LOCAL)


def test_with_nothing_configured_the_local_service_is_used(store: Store) -> None:
    profile = look_up(store)
    assert (profile.name, profile.name_source) == ("local", "built in")
    assert profile.get("socket") == "/run/s.sock"
    assert not store.path.exists()


def test_a_flag_beats_the_environment_beats_the_profile_beats_the_default(store: Store) -> None:
    def timeout(*given: Any) -> Value:
        return look_up(store, *given).values["timeout"]

    store.set("prod", PROD)
    store.use("prod")
    assert (timeout().value, timeout().source) == (60.0, "default")
    store.set("prod", {"timeout": "20"})
    assert (timeout().value, timeout().source) == (20.0, "profile prod")
    environment = {"SVCCTL_TIMEOUT": "30"}
    assert (timeout({}, environment).value, timeout({}, environment).source) == (30.0, "environment SVCCTL_TIMEOUT")
    flags = {"timeout": 40.0}
    assert (timeout(flags, environment).value, timeout(flags, environment).source) == (40.0, "flag --timeout")


def test_the_profile_is_chosen_by_flag_then_environment_then_file(store: Store) -> None:
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


def test_a_profile_named_by_flag_is_not_redirected_by_the_environment(store: Store) -> None:
    store.set("prod", PROD)
    environment = {"SVCCTL_BASE_URL": "https://other.example.com", "SVCCTL_API_KEY": "other", "SVCCTL_TIMEOUT": "5"}
    profile = look_up(store, {"profile": "prod"}, environment)
    assert profile.get("base_url") == "https://api.example.com"
    assert profile.get("api_key") == "key-1"
    assert profile.get("timeout") == 5.0


def test_the_environment_alone_is_enough(store: Store) -> None:
    profile = look_up(store, {}, {"SVCCTL_BASE_URL": "https://api.example.com/", "SVCCTL_TOKEN": "abc"})
    assert (profile.name, profile.get("base_url"), profile.get("token"), profile.method()) == (
        None,
        "https://api.example.com",
        "abc",
        "token",
    )


def test_secrets_are_masked_and_read_only_when_used(store: Store, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from-a-file\n")
    marker = tmp_path / "ran"
    store.set("plain", PROD)
    store.set("file", {"base_url": "https://a.example", "api_secret_file": str(tmp_path / "secret")})
    store.set(
        "command", {"base_url": "https://a.example", "api_secret_command": f"touch '{marker}'; echo from-a-command"}
    )
    secrets = {name: look_up(store, {"profile": name}).values["api_secret"] for name in ("plain", "file", "command")}
    assert {name: (secret.masked(), secret.source) for name, secret in secrets.items()} == {
        "plain": ("****XYZ1", "profile plain"),
        "file": ("(not read)", f"profile file, file {tmp_path / 'secret'}"),
        "command": ("(not read)", f"profile command, command touch '{marker}'; echo from-a-command"),
    }
    assert not marker.exists()
    assert [secret.read() for secret in secrets.values()] == [PROD["api_secret"], "from-a-file", "from-a-command"]
    assert marker.exists()


@pytest.mark.parametrize(("secret", "shown"), [("short", "****"), ("0123456789abcdef", "****cdef"), ("", "****")])
def test_a_mask_spares_the_end_of_long_secrets_only(secret: str, shown: str) -> None:
    assert profiles.mask(secret) == shown


def test_the_file_is_private_and_refused_when_others_can_read_it(store: Store) -> None:
    store.set("prod", PROD)
    assert store.path.stat().st_mode & 0o777 == 0o600
    store.path.chmod(0o640)
    with pytest.raises(ProfileError) as caught:
        store.load()
    assert caught.value.message == f"profiles file {store.path} can be read by others (mode 0640)"
    assert caught.value.hint == f"close it with: chmod 600 '{store.path}'"


def test_setting_changes_some_fields_and_an_empty_value_removes_one(store: Store) -> None:
    store.set("prod", {**PROD, "headers.apikey": "x-other-apikey", "timeout": "5"})
    store.set("prod", {"timeout": "", "api_secret_file": "/run/secret", "headers.apikey": ""})
    assert store.load()["profiles"]["prod"] == {
        "base_url": "https://api.example.com",
        "api_key": "key-1",
        "api_secret_file": "/run/secret",
    }


def test_removing_the_default_profile_goes_back_to_local(store: Store) -> None:
    store.set("prod", PROD)
    store.use("prod")
    store.remove("prod")
    assert look_up(store).name == "local"
    with pytest.raises(ProfileError) as caught:
        store.remove("prod")
    assert (caught.value.message, caught.value.hint) == (
        "no profile 'prod'",
        "there are: local, local-reseller; make one with 'svcctl profile set prod'",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("profiles:\n\tp: 1", "profiles file {path}, line 2 is not YAML"),
        ("- a", "profiles file {path} must hold 'profiles:' with a name and its fields each"),
        ("profiles: {p: 3}", "profile p in {path} must be a mapping of fields"),
        ("profiles: {p: {base_uri: x}}", "profile p in {path} has an unknown field 'base_uri'"),
        (
            "profiles: {p: {timeout: soon}}",
            "timeout 'soon' (profile p in {path}) cannot be used: it is not a number of seconds",
        ),
        ("profiles: {p: {headers: {apikeys: x}}}", "profile p in {path} has an unknown field 'headers.apikeys'"),
        ("profiles: {p: {token: a, token_file: b}}", "profile p in {path} sets both token and token_file"),
    ],
)
def test_a_file_that_cannot_be_used_says_where(store: Store, text: str, message: str) -> None:
    store.path.parent.mkdir()
    store.path.write_text(text)
    store.path.chmod(0o600)
    with pytest.raises(ProfileError) as caught:
        store.load()
    assert caught.value.message == message.format(path=store.path)


@pytest.mark.parametrize(
    ("field", "text", "reason"),
    [
        ("base_url", "api.example.com", "it must begin with https:// or http://"),
        ("auth", "basic", "it must be one of signature, token, jwt"),
        ("timeout", "0", "it must be more than 0 and at most 86400 seconds"),
        ("retries", "-1", "it is not a whole number"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_with_its_source(
    store: Store, field: str, text: str, reason: str
) -> None:
    environment = {str(SETTINGS[field].environment): text}
    with pytest.raises(ProfileError) as caught:
        look_up(store, {}, environment)
    assert (
        caught.value.message == f"{field} '{text}' (environment {SETTINGS[field].environment}) cannot be used: {reason}"
    )


def test_a_secret_is_never_an_argument() -> None:
    assert parse_assignments(["base_url=https://a", "api_secret=-", "token=", "api_secret_file=x=y"]) == {
        "base_url": "https://a",
        "api_secret": "-",
        "token": "",
        "api_secret_file": "x=y",
    }
    with pytest.raises(UsageError) as caught:
        parse_assignments(["api_secret=hunter2"])
    assert caught.value.message == "api_secret is a secret, and other users can see command lines"
    with pytest.raises(UsageError):
        parse_assignments(["base_url"])


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("exit 3", "secret command 'exit 3' exited 3"),
        ("true", "secret command 'true' printed nothing"),
    ],
)
def test_a_secret_command_that_fails_says_so(store: Store, command: str, message: str) -> None:
    store.set("p", {"base_url": "https://a.example", "token_command": command})
    with pytest.raises(ProfileError) as caught:
        look_up(store, {"profile": "p"}).get("token")
    assert caught.value.message == message


def test_a_missing_setting_says_how_to_give_it(store: Store) -> None:
    store.set("p", {"base_url": "https://a.example"})
    with pytest.raises(ProfileError) as caught:
        profiles.require(look_up(store, {"profile": "p"}), "api_secret")
    assert (caught.value.message, caught.value.hint) == (
        "profile p has no api_secret",
        "give it with 'svcctl profile set p api_secret_file=…' or the environment variable SVCCTL_API_SECRET",
    )
