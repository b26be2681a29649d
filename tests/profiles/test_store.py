"""The profiles file: what is kept, and what is refused."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.profiles import PROD, look_up

from svcctl.dates.zones import named_zone
from svcctl.errors import Locked, ProfileError
from svcctl.io.files import lock
from svcctl.profiles.store import ProfileStore

# What the errors say, each once; the tests state their kind.
WORDS = {
    "open to others": "profiles file {path} can be read by others (mode 0640)",
    "an unknown profile": "no profile 'prod'",
}
HINTS = {
    "open to others": "close it with: chmod 600 {path}",
    "an unknown profile": "profiles are: local, local-reseller",
}

SETTER = """
import sys
from collections.abc import Callable
from pathlib import Path
from svcctl.profiles.store import ProfileStore
for line in sys.stdin:
    path, name = line.split()
    ProfileStore(Path(path)).set(name, {"base_url": f"https://{name}.example"})
    print("set", flush=True)
"""


def write(store: ProfileStore, text: str) -> None:
    store.path.parent.mkdir(exist_ok=True)
    store.path.write_text(text)
    store.path.chmod(0o600)


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
        (
            "profiles:\n\tp: 1",
            "profiles file {path}, line 2: not YAML: found character '\\t' that cannot start any token (column 1)",
        ),
        (
            "profiles: {p: {token: !a}}",
            "profiles file {path}, line 1: a value begins with '!', which YAML takes for a tag",
        ),
        ("profiles: {}\n---\ndefault: a", "profiles file {path}, line 3: a second document begins"),
        ("default: a\ndefault: b", "profiles file {path}, line 2: key 'default' appears twice, first in line 1"),
        ("default: [a]", "profiles file {path}, line 1: 'default' must be the name of a profile"),
        ("profiles:\n  '': {}", "profiles file {path}, line 2: a profile has no name"),
        ("profiles:\n  p:\n    token:x", "profile p in {path}, line 2 must be a mapping of fields"),
        ("profiles:\n  p:\n    token: ~", "profile p in {path}, line 3: 'token' has no value"),
        ("profiles:\n  p:\n    token:\n    - a", "profile p in {path}, line 3: 'token' must be a single value"),
        (
            "profiles:\n  p: {headers: {sign: [a]}}",
            "profile p in {path}, line 2: 'headers.sign' must be a single value",
        ),
        ("profiles:\n  p: {headers: x}", "profile p in {path}, line 2: 'headers' must be a mapping of names"),
        *(
            (
                f"profiles:\n  p:\n    retries: {text}",
                f"retries '{text}' (profile p in {{path}}, line 3) cannot be used: "
                "it is not a whole number of at least 0",
            )
            for text in ("0x3", "1_0", "3.0", "yes", "-1", "1e1", ".nan")
        ),
        ("- a", "profiles file {path} must have 'profiles:', a mapping of names to fields"),
        ("profiles: {p: 3}", "profile p in {path}, line 1 must be a mapping of fields"),
        ("profiles: {p: {base_uri: x}}", "unknown field 'base_uri' in profile p in {path}, line 1"),
        (
            "profiles: {p: {timeout: soon}}",
            "timeout 'soon' (profile p in {path}, line 1) cannot be used: it is not a length such as 90, 30s, 5m, "
            "1h30m or 1d",
        ),
        ("profiles: {p: {headers: {apikeys: x}}}", "unknown field 'headers.apikeys' in profile p in {path}, line 1"),
        ("profiles: {p: {token: a, token_file: b}}", "profile p in {path}, line 1 sets both token and token_file"),
    ],
)
def test_a_file_that_cannot_be_used_says_where(store: ProfileStore, text: str, message: str) -> None:
    write(store, text)
    with pytest.raises(ProfileError) as caught:
        store.load().usable("p")
    assert caught.value.message == message.format(path=store.path)


def test_a_profile_that_cannot_be_used_spoils_no_other(store: ProfileStore) -> None:
    write(store, "profiles:\n  a: {timeout: soon, token: t}\n  b: {token: u}\n  c: {tokens: v}\n")
    bad = store.load().unusable
    assert list(bad) == ["a", "c"]
    profile = look_up(store, {"profile": "b"})
    assert (profile.token, profile.notes) == ("u", [error.message for error in bad.values()])
    for name, message in (("a", "timeout 'soon'"), ("c", "unknown field 'tokens'")):
        with pytest.raises(ProfileError, match=message):
            look_up(store, {"profile": name})
    store.set("b", {"timeout": "5"})
    assert store.load().fields("a") == {"timeout": "soon", "token": "t"}
    store.set("a", {"timeout": "6"})
    assert look_up(store, {"profile": "a"}).timeout == 6
    store.remove("c")
    assert not store.load().unusable


NAMES = (
    "no",
    "yes",
    "1",
    "01",
    "0123",
    "1.1",
    "1.10",
    "null",
    "~",
    "2024-01-31",
    "1:30",
    "<<",
    "=",
    "a b",
    "ä",
    "'",
    "#",
)


def test_a_field_and_a_name_are_the_texts_that_are_written(store: ProfileStore) -> None:
    names = [name for name in NAMES if name not in ("<<", "'", "#")]
    fields = "{api_key: 0123456701234567, timeout: 1m, retries: 03, time_zone: +2, headers: {sign: on}}"
    write(store, "default: no\nprofiles:\n" + "".join(f"  {name}: {fields}\n" for name in names))
    document = store.load()
    assert (document.default, list(document.profiles)) == ("no", names)
    for name in names:
        profile = look_up(store, {"profile": name})
        assert (profile.name, profile.api_key, profile.retries, profile.time_zone, profile.timeout) == (
            *(name, "0123456701234567", 3, named_zone("+2"), 60.0),
        )
        assert profile.mappings["headers"] == {"sign": "on"}
    assert look_up(store).name == "no"


@pytest.mark.parametrize(
    "text", [*NAMES, "!x", "*x", "&x", "x #y", "x: y", " x ", "0x1F", "\t", "|", "\u2028", "\x85", "é", "-", "a\nb"]
)
def test_a_value_that_is_set_is_read_back_as_the_same_text(store: ProfileStore, text: str) -> None:
    store.set("no", {"socket": text, "paths.query": text})
    store.set("other", {"ca_bundle": text})
    assert store.load().fields("no") == {"socket": text, "paths": {"query": text}}
    assert store.load().fields("other") == {"ca_bundle": text}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_set_is_read_back_as_the_same_text(store: ProfileStore, name: str) -> None:
    store.set(name, PROD)
    store.use(name)
    assert (look_up(store).name, look_up(store).api_key) == (name, PROD["api_key"])


def test_a_change_keeps_what_svcctl_does_not_know(store: ProfileStore) -> None:
    write(store, "note: &n {since: 2024-01-31, id: 010, none: ~}\nprofiles: {a: {token: t}}\nmore: [*n, no]\n")
    store.set("b", {"token": "u"})
    note = {"since": "2024-01-31", "id": "010", "none": None}
    assert store.load().extra == {"note": note, "more": [note, "no"]}


TWICE = "profiles:\n  a:\n    token: t\n    token: u\n  b: {token: v}\n"


def test_a_key_that_appears_twice_is_refused_in_the_profile_in_use_and_a_note_elsewhere(store: ProfileStore) -> None:
    write(store, TWICE)
    message = f"profiles file {store.path}, line 4: key 'profiles.a.token' appears twice, first in line 3"
    with pytest.raises(ProfileError) as caught:
        look_up(store, {"profile": "a"})
    assert (caught.value.message, caught.value.hint) == (message, "keep one of them")
    assert look_up(store, {"profile": "b"}).notes == [message]
    assert look_up(store, {}, {"SVCCTL_BASE_URL": "http://h"}).notes == [message]


@pytest.mark.parametrize(
    ("text", "ambiguous"),
    [
        ("profiles: {a: {token: t}, a: {token: u}, b: {}}", ["a"]),
        ("profiles: {a: {headers: {sign: t, sign: u}}, b: {}}", ["a"]),
        ("profiles: {a: &a {token: t, token: u}, b: {<<: *a}, c: {}}", ["a", "b"]),
        ("profiles: {a: &a {token: t}, b: {<<: *a, token: u}}", []),
        ("profiles: {no: {token: t}, 'no': {token: u}, 1.1: {}, 1.10: {}}", ["no"]),
    ],
)
def test_a_key_that_appears_twice_spoils_its_profile_only(store: ProfileStore, text: str, ambiguous: list[str]) -> None:
    write(store, text)
    assert list(store.load().ambiguous) == ambiguous


def test_a_file_with_an_unclear_profile_is_not_changed_except_to_remove_that(store: ProfileStore) -> None:
    write(store, TWICE)
    changes: list[Callable[[], None]] = [
        lambda: store.set("b", {"timeout": "5"}),
        lambda: store.use("b"),
        lambda: store.set("a", {"token": "x"}),
    ]
    for change in changes:
        with pytest.raises(ProfileError):
            change()
    assert store.path.read_text() == TWICE
    store.remove("a")
    assert store.load().profiles == {"b": {"token": "v"}}


def test_nobody_changes_the_file_while_another_process_does(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    held = lock(path.with_name(".config.yaml.lock"), "held")
    with pytest.raises(Locked, match=r"config\.yaml is being changed$"):
        ProfileStore(path, lock_patience=0.1).set("other", {"base_url": "https://c.example.com"})
    os.close(held)
    assert not path.exists()


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
