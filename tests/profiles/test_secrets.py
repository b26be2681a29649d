"""Secrets: masked, and read once when they are used."""

import codecs
import os
import subprocess
import traceback
from pathlib import Path

import pytest
from support.profiles import PROD, look_up

from svcctl.errors import ProfileError
from svcctl.profiles.secrets import SecretCommand, SecretFile, secret_text
from svcctl.profiles.store import ProfileStore

# What the errors say, each once; the tests state their kind.
WORDS = {
    "a command that is not there": "secret command 'no-such-store show svcctl' was not found",
    "a file that is not there": "secret file {none} cannot be read: No such file or directory",
}
HINTS = {
    "a command that is not there": "check its name, and PATH",
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


def test_the_password_of_a_url_is_not_shown(store: ProfileStore) -> None:
    profile = look_up(store, environment={"SVCCTL_BASE_URL": "https://user:word@a.example"})
    assert profile.values["base_url"].masked() == "https://****@a.example"


def test_a_command_runs_once_however_often_its_secret_is_used(store: ProfileStore, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    store.set("p", {"base_url": "https://a.example", "api_secret_command": f"echo run >> '{runs}'; echo hush"})
    profile = look_up(store, {"profile": "p"})
    assert [profile.api_secret, profile.values["api_secret"].read(), profile.api_secret] == ["hush"] * 3
    assert runs.read_text() == "run\n"


GOOD = {
    b"hush": "hush",
    b"hush\n": "hush",
    b"\xef\xbb\xbf \thush\t \r\n\r\n": "hush",
    b"\n\xef\xbb\xbfhush\xef\xbb\xbf": "hush",
    "\xa0hush\xa0\n".encode(): "hush",
    b"two words": "two words",
    "pässwörd \u200b€".encode(): "pässwörd \u200b€",
}
MANY, CONTROL, NO_UTF_8 = "has more than one line", "has a control character in it", "is not UTF-8"
BAD = {
    b"": "is empty",
    b" \t\r\n\xef\xbb\xbf\n": "is empty",
    b"hunter2\nurl: https://h.example\n": MANY,
    b"hunter2\r\nmore\r\n": MANY,
    b"hunter2\rmore": MANY,
    b"hunter2\x0bmore": MANY,
    b"hunter2\x0c": MANY,
    "hunter2\x85more".encode(): MANY,
    "hunter2\u2028more".encode(): MANY,
    "hunter2\u2029".encode(): MANY,
    b"hunter2\0": CONTROL,
    "hunter2\n".encode("utf-16-le"): CONTROL,
    b"hun\tter2": CONTROL,
    b"hunter2\x1b[A": CONTROL,
    b"hunter2\x7f": CONTROL,
    "hunter2\x9f".encode(): CONTROL,
    b"hunter2\xff": NO_UTF_8,
    "hünter2".encode("latin-1"): NO_UTF_8,
    b"hunter2\xed\xa0\x80": NO_UTF_8,
    codecs.BOM_UTF16_LE + "hunter2\n".encode("utf-16-le"): "is UTF-16, not UTF-8",
    codecs.BOM_UTF16_BE + "hunter2\n".encode("utf-16-be"): "is UTF-16, not UTF-8",
    codecs.BOM_UTF32_LE + "hunter2\n".encode("utf-32-le"): "is UTF-32, not UTF-8",
}


@pytest.mark.parametrize(("content", "secret"), GOOD.items())
def test_white_space_around_a_secret_is_removed(content: bytes, secret: str) -> None:
    assert (secret_text(content, "it"), secret_text(content.decode(), "it")) == (secret, secret)


@pytest.mark.parametrize(("content", "problem"), BAD.items())
def test_a_text_that_is_no_secret_is_refused_without_showing_it(content: bytes, problem: str) -> None:
    with pytest.raises(ProfileError) as caught:
        secret_text(content, "it")
    assert (caught.value.message, "hunter" in str(caught.value.hint)) == (f"it {problem}", False)
    assert "hunter" not in "".join(traceback.format_exception(caught.value, chain=True)).partition("ProfileError")[2]


@pytest.mark.parametrize("surrogate", [0xDCFF, 0xD800])
def test_a_text_that_was_not_utf_8_is_refused(surrogate: int) -> None:
    with pytest.raises(ProfileError) as caught:
        secret_text(f"hunter2{chr(surrogate)}", "it")
    assert caught.value.message == "it is not UTF-8"


def secret_of(store: ProfileStore, field: str, value: str) -> str:
    """The token of a profile that has a field, or of a variable."""
    variables = {field: value} if field.startswith("SVCCTL_") else {}
    store.set("p", {"base_url": "https://a.example", **({} if variables else {field: value})})
    store.use("p")
    return look_up(store, environment=variables).token


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text(" hush\n")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    ("content", "problem"), [("hush\nmore\n", MANY), ("hush\0", CONTROL), ("hush\x80", CONTROL), ("", "is empty")]
)
@pytest.mark.parametrize(
    ("field", "value", "source"),
    [
        ("token_file", "{path}", "secret file {path}"),
        ("token_command", "cat {path}; echo", "the output of secret command 'cat {path}; echo'"),
        ("SVCCTL_TOKEN", " {text}", "token (environment SVCCTL_TOKEN)"),
    ],
    ids=["file", "command", "variable"],
)
def test_an_error_names_the_source_of_a_secret(
    store: ProfileStore, secret_file: Path, field: str, value: str, source: str, content: str, problem: str
) -> None:
    secret_file.write_text(content)
    with pytest.raises(ProfileError) as caught:
        secret_of(store, field, value.format(path=secret_file, text=content))
    named = source.format(path=secret_file)
    if field == "token_command" and not content:
        named, problem = named.removeprefix("the output of "), "printed nothing"
    assert caught.value.message == f"{named} {problem}"


def test_more_lines_of_a_command_are_cut_off_by_the_hint(store: ProfileStore) -> None:
    with pytest.raises(ProfileError) as caught:
        secret_of(store, "token_command", "printf 'hush\nuser: me\n'")
    assert caught.value.hint == "if the secret is its first line, end the command with: | head -n 1"
    assert secret_of(store, "token_command", "printf 'hush\nuser: me\n' | head -n 1") == "hush"


def test_a_value_of_a_profile_follows_the_rule_and_is_shown_all_the_same(store: ProfileStore) -> None:
    store.path.parent.mkdir()
    store.path.write_text('profiles: {p: {api_key: " k\\n", api_secret: "a\\nb", token: "t t "}}\n')
    store.path.chmod(0o600)
    profile = look_up(store, {"profile": "p"})
    assert (profile.api_key, profile.token, profile.values["api_secret"].masked()) == ("k", "t t", "****")
    with pytest.raises(ProfileError) as caught:
        _ = profile.api_secret
    assert caught.value.message == "api_secret (profile p) has more than one line"


@pytest.mark.parametrize("name", ["api_key", "token"])
def test_a_credential_that_no_header_can_have_names_its_setting_and_source(store: ProfileStore, name: str) -> None:
    profile = look_up(store, environment={"SVCCTL_BASE_URL": "https://a.example", f"SVCCTL_{name.upper()}": "ké\u200b"})
    with pytest.raises(ProfileError) as caught:
        profile.values[name].read()
    problem = f"{name} (environment SVCCTL_{name.upper()}) is not printable ASCII, so it cannot be sent in a header"
    assert caught.value.message == problem
    with pytest.raises(ProfileError) as caught:
        store.set("p", {name: "ké"})
    assert caught.value.message == f"{name} is not printable ASCII, so it cannot be sent in a header"


def test_a_secret_that_is_only_computed_with_may_have_any_letters(store: ProfileStore) -> None:
    store.set("p", {"base_url": "https://a.example", "api_secret": " pässwörd "})
    assert look_up(store, {"profile": "p"}).api_secret == "pässwörd"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("exit 3", "secret command 'exit 3' failed with exit code 3"),
        ("echo hush; exit 1", "secret command 'echo hush; exit 1' failed with exit code 1"),
        ("true", "secret command 'true' printed nothing"),
        ("echo ' '", "secret command 'echo ' '' printed nothing"),
        ("kill -9 $$", "secret command 'kill -9 $$' was ended by SIGKILL"),
        ("yes", "secret command 'yes' prints more than 64 kB"),
    ],
)
def test_a_secret_command_that_fails_says_so(store: ProfileStore, command: str, message: str) -> None:
    with pytest.raises(ProfileError) as caught:
        secret_of(store, "token_command", command)
    assert caught.value.message == message


def test_a_command_that_does_not_end_is_named_with_the_limit() -> None:
    with pytest.raises(ProfileError) as caught:
        _ = SecretCommand("sleep 100", seconds=0.1).text
    assert (caught.value.message, caught.value.hint) == (
        "secret command 'sleep 100' did not end in 0.1s",
        "run it by itself to see what it waits for",
    )


def test_a_missing_secret_command_is_reported_in_one_line(
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
    assert caught.value.message == WORDS["a file that is not there"].format(none=tmp_path / "none")
    assert (caught.value.reason, caught.value.data) == (
        "secret-file-unread",
        {"profile": "p", "field": "token_file"},
    )


@pytest.mark.parametrize(
    ("mode", "is_used", "is_open"),
    [(0o600, True, False), (0o400, True, False), (0o640, True, True), (0o604, True, True)]
    + [(mode, False, True) for mode in (0o620, 0o602, 0o664, 0o666)],
)
@pytest.mark.parametrize("linked", [False, True], ids=["file", "link"])
def test_a_file_that_others_can_write_is_refused(
    secret_file: Path, mode: int, is_used: bool, is_open: bool, linked: bool
) -> None:
    path = secret_file
    if linked:
        path = secret_file.with_name("link")
        path.symlink_to(secret_file)
    secret_file.chmod(mode)
    if is_used:
        assert (SecretFile(path).text, SecretFile(path).is_open_to_others) == ("hush", is_open)
        return
    with pytest.raises(ProfileError) as caught:
        _ = SecretFile(path).text
    assert (caught.value.message, caught.value.hint) == (
        f"secret file {path} can be written by others (mode {mode:04o})",
        f"close it with: chmod 600 {path}",
    )


def test_a_pipe_is_a_file_and_may_be_written_later(secret_file: Path) -> None:
    pipe = secret_file.with_name("pipe")
    os.mkfifo(pipe, 0o600)
    writer = subprocess.Popen(["sh", "-c", 'sleep 0.1; cat "$0" > "$1"', secret_file, pipe])
    assert SecretFile(pipe).text == "hush"
    writer.wait()
    with secret_file.open() as stream:
        assert SecretFile(Path(f"/dev/fd/{stream.fileno()}")).text == "hush"


def test_a_pipe_that_nobody_writes_has_a_limit(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ProfileError) as caught:
        _ = SecretFile(tmp_path / "pipe", seconds=0.1).text
    assert caught.value.message == f"secret file {tmp_path}/pipe was not written in 0.1s"


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/", "cannot be read: Is a directory"),
        ("/dev/null", "is empty"),
        ("/dev/zero", "is larger than 64 kB"),
        ("/dev/null/x", "cannot be read: Not a directory"),
    ],
)
def test_a_path_without_a_secret_says_so(path: str, problem: str) -> None:
    with pytest.raises(ProfileError) as caught:
        _ = SecretFile(Path(path)).text
    assert caught.value.message == f"secret file {path} {problem}"
