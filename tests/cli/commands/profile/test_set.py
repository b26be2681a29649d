"""`svcctl profile set`: fields from a command line, an environment, a file, and a person."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from support.scripted import Serve, ok
from support.shells import SVCCTL, Shell
from support.terminal import Terminal, open_shell

COMMAND = " ".join(SVCCTL)


def stored(shell: Shell, name: str = "prod") -> dict[str, object]:
    path = shell.home / ".config" / "svcctl" / "config.yaml"
    fields: dict[str, object] = yaml.safe_load(path.read_text())["profiles"][name]
    return fields


def test_the_environment_becomes_a_profile(shell: Shell) -> None:
    variables = {
        "SVCCTL_BASE_URL": "https://events.example.com/",
        "SVCCTL_API_KEY": "key",
        "SVCCTL_API_SECRET": "secret",
        "SVCCTL_TIMEOUT": "20",
        "SVCCTL_DATA": str(shell.home / "data"),
    }
    done = shell("profile", "set", "prod", "--from-env", "api_key=other", **variables)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert stored(shell) == {
        "base_url": "https://events.example.com",
        "api_key": "other",
        "api_secret": "secret",
        "timeout": "20",
    }


@pytest.mark.parametrize("source", ["file", "-"])
def test_a_file_becomes_a_profile(source: str, shell: Shell) -> None:
    text = "base_url: https://events.example.com\ntoken: t\nheaders: {apikey: x-key}\n"
    (shell.home / "file").write_text(text)
    done = shell("profile", "set", "prod", "--from-file", source, stdin=text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert stored(shell) == {
        "base_url": "https://events.example.com",
        "token": "t",
        "headers": {"apikey": "x-key"},
    }


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "f has no fields of a profile\nhint: write YAML, JSON or NAME=VALUE lines"),
        (
            "base_url: ftp://x\n",
            "base_url 'ftp://x' cannot be used: it must begin with https:// or http://",
        ),
        (
            "base_url: events.example.com:8443\n",
            "base_url 'events.example.com:8443' cannot be used: it must begin with https:// or http://, "
            "as in https://events.example.com:8443",
        ),
    ],
)
def test_a_file_that_is_no_profile_changes_nothing(text: str, error: str, shell: Shell) -> None:
    (shell.home / "f").write_text(text)
    done = shell("profile", "set", "prod", "--from-file", "f")
    assert (done.returncode, done.stderr) == (2, f"svcctl: error: {error}\n")
    assert not (shell.home / ".config").exists()


def test_the_paths_of_a_profile_are_those_of_its_requests(serve: Serve, shell: Shell) -> None:
    script = serve(ok('{"name":"a@demo"}'))
    fields = (f"base_url={script.url}", "token=-", "paths.domain=/provisioning/v1/domain")
    assert shell("profile", "set", "prod", *fields, stdin="t").returncode == 0
    assert shell("-p", "prod", "domain", "show", "a").returncode == 0
    assert script.lines == ["GET /provisioning/v1/domain/a"]


def test_a_path_is_that_from_where_it_was_typed(shell: Shell) -> None:
    (shell.home / "sec").write_text("hush\n")
    done = shell("profile", "set", "prod", "base_url=https://a.example", "api_secret_file=sec", "ca_bundle=no/ca.pem")
    assert (done.returncode, f"ca_bundle {shell.home}/no/ca.pem" in done.stderr) == (0, True)
    done = shell("profile", "set", "prod", "token_file=~/none", "ca_bundle=")
    assert (done.returncode, "token_file ~/none" in done.stderr) == (0, True)
    assert stored(shell) == {
        "base_url": "https://a.example",
        "api_secret_file": f"{shell.home}/sec",
        "token_file": "~/none",
    }


def test_plain_http_to_another_machine_is_refused_at_once(shell: Shell) -> None:
    done = shell("profile", "set", "prod", "base_url=http://events.example.com")
    assert (done.returncode, "unencrypted" in done.stderr) == (2, True)
    assert shell("profile", "set", "prod", "base_url=http://127.0.0.1:8080").stderr == ""


@pytest.mark.parametrize(
    "field",
    [
        *("base_url=https://a.example:99999", "base_url=https://[::1", "base_url=https://a..b", "base_url=https://a b"),
        *("format=yaml", "time_zone=Mars", "date_format=us"),
    ],
)
def test_a_value_that_would_fail_at_its_use_is_refused(field: str, shell: Shell) -> None:
    done = shell("profile", "set", "prod", field)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert not (shell.home / ".config" / "svcctl" / "config.yaml").exists()


@pytest.fixture
def terminal(shell: Shell, tmp_path: Path) -> Iterator[Terminal]:
    opened = open_shell("bash", tmp_path, shell.environment)
    yield opened
    opened.close()


def test_a_person_is_asked_for_missing_fields_and_secrets_are_not_shown(shell: Shell, terminal: Terminal) -> None:
    terminal.type(f"clear; {COMMAND} profile set prod", "Enter")
    terminal.wait_for("base_url (https://…):")
    terminal.type("events.example.com", "Enter")
    terminal.wait_for("svcctl: that cannot be used: it must begin with https:// or http://, as in")
    terminal.type("https://events.example.com", "Enter")
    terminal.wait_for("auth (signature, token or jwt; default signature):")
    terminal.type("Enter")
    terminal.wait_for("api_key (API key of the domain):")
    terminal.type("key-1", "Enter")
    terminal.wait_for("api_secret (API secret) (not shown):")
    terminal.type("very-secret", "Enter")
    screen = terminal.wait_for("svcctl: make it the default with 'svcctl profile use prod'")
    assert "very-secret" not in screen
    assert stored(shell) == {
        "base_url": "https://events.example.com",
        "auth": "signature",
        "api_key": "key-1",
        "api_secret": "very-secret",
    }


def test_a_terminal_is_as_it_was_after_a_secret_was_interrupted(shell: Shell, terminal: Terminal) -> None:
    terminal.type(f"clear; {COMMAND} profile set prod base_url=https://events.example.com api_key=k", "Enter")
    terminal.wait_for("api_secret (API secret) (not shown):")
    terminal.type("C-c")
    terminal.wait_for("svcctl: interrupted")
    terminal.clear()  # or the question of before would be taken for the next one
    # readline sets the terminal anew for its own line, so a program looks at what svcctl left.
    terminal.type(f"{COMMAND} profile set prod base_url=https://events.example.com api_key=k; stty -a", "Enter")
    terminal.wait_for("api_secret (API secret) (not shown):")
    terminal.type("C-c")
    screen = terminal.wait_for("svcctl: interrupted", "icanon")
    assert {"icanon", "echo", "isig"} <= set(screen.split())
    assert not (shell.home / ".config").exists()


@pytest.mark.parametrize(
    ("fields", "stdin", "stored_fields"),
    [
        (("api_secret=-",), "\ufeff hush\t\r\n\n", {"api_secret": "hush"}),
        (("api_secret=-", "token=-"), "\nhush\n\ntok\n", {"api_secret": "hush", "token": "tok"}),
        (("api_secret=-", "api_key= k "), "pässwörd", {"api_secret": "pässwörd", "api_key": "k"}),
    ],
)
def test_a_secret_of_standard_input_is_its_line(
    shell: Shell, fields: tuple[str, ...], stdin: str, stored_fields: dict[str, str]
) -> None:
    assert shell("profile", "set", "prod", *fields, stdin=stdin).returncode == 0
    assert stored(shell) == stored_fields


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (("api_secret=-",), "hunter2\nurl: x\n", "api_secret (standard input) has more than one line"),
        (("api_secret=-", "token=-"), "hunter2\nhunter3\nhunter4\n", "token (standard input) has more than one line"),
        (("--from-env",), "", "api_secret (environment SVCCTL_API_SECRET) has more than one line"),
        (("--from-file", "f.env"), "", "api_secret (f.env, line 2) has a control character in it"),
        (("--from-file", "f.yaml"), "", "token (f.yaml, line 1) has more than one line"),
        (("headers.apikey=x y",), "", "headers.apikey cannot be used: 'x y' is not the name of a header"),
    ],
)
def test_a_secret_that_cannot_be_used_names_its_source_and_is_not_stored(
    shell: Shell, arguments: tuple[str, ...], stdin: str, message: str
) -> None:
    (shell.home / "f.env").write_text("SVCCTL_RETRIES=1\nSVCCTL_API_SECRET='hunter2\x7f'\n")
    (shell.home / "f.yaml").write_text('token: "hunter2\\nmore"\n')
    done = shell("profile", "set", "prod", *arguments, stdin=stdin, SVCCTL_API_SECRET="hunter2\nmore")
    assert (done.returncode, done.stderr.split("\n")[0]) == (2, f"svcctl: error: {message}")
    assert "hunter" not in done.stderr
    assert not (shell.home / ".config" / "svcctl" / "config.yaml").exists()
