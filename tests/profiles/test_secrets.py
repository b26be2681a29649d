"""Secrets: masked, and read once when they are used."""

from pathlib import Path

import pytest
from support.profiles import PROD, look_up

from svcctl.errors import ProfileError
from svcctl.profiles.secrets import mask
from svcctl.profiles.store import ProfileStore

# What the errors say, each once; the tests state their kind.
WORDS = {
    "a command that is not there": "secret command 'no-such-store show svcctl' was not found",
    "a file that is not there": "secret file {none} cannot be read: No such file or directory",
}
HINTS = {
    "a command that is not there": "check its name, and PATH",
    "a file that is not there": "write the secret to it, or name its file with 'svcctl profile set p …_file=PATH'",
}


def test_secrets_are_masked_and_read_only_when_used(store: ProfileStore, tmp_path: Path) -> None:
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


def test_a_command_runs_once_however_often_its_secret_is_used(store: ProfileStore, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    store.set("p", {"base_url": "https://a.example", "api_secret_command": f"echo run >> '{runs}'; echo hush"})
    profile = look_up(store, {"profile": "p"})
    assert [profile.api_secret, profile.values["api_secret"].read(), profile.api_secret] == ["hush"] * 3
    assert runs.read_text() == "run\n"


@pytest.mark.parametrize(("secret", "shown"), [("short", "****"), ("0123456789abcdef", "****cdef"), ("", "****")])
def test_a_mask_spares_the_end_of_long_secrets_only(secret: str, shown: str) -> None:
    assert mask(secret) == shown


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("exit 3", "secret command 'exit 3' exited 3"),
        ("true", "secret command 'true' printed nothing"),
    ],
)
def test_a_secret_command_that_fails_says_so(store: ProfileStore, command: str, message: str) -> None:
    store.set("p", {"base_url": "https://a.example", "token_command": command})
    with pytest.raises(ProfileError) as caught:
        _ = look_up(store, {"profile": "p"}).token
    assert caught.value.message == message


def test_a_secret_command_that_is_not_there_is_told_in_one_line(
    store: ProfileStore, capfd: pytest.CaptureFixture[str]
) -> None:
    store.set("p", {"base_url": "https://a.example", "token_command": "no-such-store show svcctl"})
    with pytest.raises(ProfileError) as caught:
        _ = look_up(store, {"profile": "p"}).token
    assert (caught.value.message, caught.value.hint, capfd.readouterr().err) == (
        WORDS["a command that is not there"],
        HINTS["a command that is not there"],
        "",
    )


def test_what_only_the_shell_knows_is_a_command_and_its_errors_are_seen(
    store: ProfileStore, capfd: pytest.CaptureFixture[str]
) -> None:
    store.set("p", {"base_url": "https://a.example", "token_command": "eval 'echo Passphrase: >&2; echo hush'"})
    assert (look_up(store, {"profile": "p"}).token, capfd.readouterr().err) == ("hush", "Passphrase:\n")


def test_a_secret_file_that_cannot_be_read_says_what_to_do(store: ProfileStore, tmp_path: Path) -> None:
    store.set("p", {"base_url": "https://a.example", "token_file": str(tmp_path / "none")})
    with pytest.raises(ProfileError) as caught:
        _ = look_up(store, {"profile": "p"}).token
    assert (caught.value.message, caught.value.hint) == (
        WORDS["a file that is not there"].format(none=tmp_path / "none"),
        HINTS["a file that is not there"],
    )
