"""The profiles file: what is kept, and what is refused."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.profiles import PROD, look_up

from svcctl.errors import ProfileError
from svcctl.profiles.store import ProfileStore

# What the errors say, each once; the tests state their kind.
WORDS = {
    "open to others": "profiles file {path} can be read by others (mode 0640)",
    "an unknown profile": "no profile 'prod'",
}
HINTS = {
    "open to others": "close it with: chmod 600 '{path}'",
    "an unknown profile": "profiles are: local, local-reseller; create one with 'svcctl profile set prod'",
}

SETTER = """
import sys
from pathlib import Path
from svcctl.profiles.store import ProfileStore
for line in sys.stdin:
    path, name = line.split()
    ProfileStore(Path(path)).set(name, {"base_url": f"https://{name}.example"})
    print("set", flush=True)
"""


def test_the_file_is_private_and_refused_when_others_can_read_it(store: ProfileStore) -> None:
    store.set("prod", PROD)
    assert store.path.stat().st_mode & 0o777 == 0o600
    store.path.chmod(0o640)
    with pytest.raises(ProfileError) as caught:
        store.load()
    assert caught.value.message == WORDS["open to others"].format(path=store.path)
    assert caught.value.hint == HINTS["open to others"].format(path=store.path)


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
        WORDS["an unknown profile"],
        HINTS["an unknown profile"],
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
            "timeout 'soon' (profile p in {path}) cannot be used: it is not a length such as 90, 30s, 5m, 1h30m or 1d",
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


def test_profiles_that_are_set_at_once_before_there_is_a_file_are_all_kept(tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(8)]
    setters = [
        subprocess.Popen([sys.executable, "-c", SETTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in names
    ]
    pipes = [(each.stdin, each.stdout) for each in setters if each.stdin and each.stdout]
    for round in ("first", "second", "third"):  # in the first one, they are only starting
        store = ProfileStore(tmp_path / round / "config.yaml")
        for name, (orders, _) in zip(names, pipes, strict=True):
            print(store.path, name, file=orders, flush=True)
        assert [answers.readline() for _, answers in pipes] == ["set\n"] * len(names)
        assert sorted(store.load().profiles) == names
    for setter in setters:
        setter.communicate(timeout=20)
