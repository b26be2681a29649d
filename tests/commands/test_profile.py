"""`svcctl profile set`: fields from a command line, an environment, a file, and a person."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from support.shells import SVCCTL, Shell
from support.terminal import Terminal, need, open_terminal

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
        "timeout": 20.0,
    }


def test_an_environment_that_says_nothing_is_a_mistake(shell: Shell) -> None:
    done = shell("profile", "set", "prod", "--from-env")
    assert (done.returncode, done.stderr) == (
        2,
        "svcctl: error: none of the SVCCTL_* variables is set\n"
        "hint: set at least one of SVCCTL_BASE_URL, SVCCTL_AUTH, SVCCTL_API_KEY, SVCCTL_API_SECRET, SVCCTL_TOKEN, "
        "SVCCTL_TIMEOUT, SVCCTL_RETRIES, SVCCTL_FORMAT\n",
    )


@pytest.mark.parametrize(
    "text",
    [
        "base_url: https://events.example.com\ntoken: t\nheaders: {apikey: x-key}\n",
        '{"base_url": "https://events.example.com", "token": "t", "headers": {"apikey": "x-key"}}',
        "# of the service\nexport SVCCTL_BASE_URL='https://events.example.com'\ntoken=t\n\nheaders.apikey=x-key\n",
    ],
)
@pytest.mark.parametrize("source", ["file", "-"])
def test_a_file_becomes_a_profile(text: str, source: str, shell: Shell) -> None:
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
        ("", "f contains no fields of a profile\nhint: write YAML, JSON or NAME=VALUE lines"),
        ("- a\n- b\n", "f contains no fields of a profile\nhint: write YAML, JSON or NAME=VALUE lines"),
        ("{", "f contains no fields of a profile\nhint: write YAML, JSON or NAME=VALUE lines"),
        (
            "base_url: ftp://x\n",
            "base_url 'ftp://x' (base_url=ftp://x) cannot be used: it must begin with https:// or http://",
        ),
    ],
)
def test_a_file_that_is_no_profile_changes_nothing(text: str, error: str, shell: Shell) -> None:
    (shell.home / "f").write_text(text)
    done = shell("profile", "set", "prod", "--from-file", "f")
    assert (done.returncode, done.stderr) == (2, f"svcctl: error: {error}\n")
    assert not (shell.home / ".config").exists()


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("local", "profile local is built in and cannot be deleted\n"),
        (
            "prod",
            "no profile 'prod'\nhint: profiles are: local, local-reseller; create one with 'svcctl profile set prod'\n",
        ),
    ],
)
def test_a_profile_that_cannot_be_deleted_is_refused_before_anybody_is_asked(
    name: str, error: str, shell: Shell
) -> None:
    done = shell("profile", "rm", name)
    assert (done.returncode, done.stderr) == (2, f"svcctl: error: {error}")


def test_without_a_terminal_nobody_is_asked(shell: Shell) -> None:
    done = shell("profile", "set", "prod")
    assert (done.returncode, done.stderr) == (
        2,
        "svcctl: error: nothing to set\nhint: give fields as FIELD=VALUE, for example base_url=https://…\n",
    )


# A person


@pytest.fixture
def terminal(shell: Shell, tmp_path: Path) -> Iterator[Terminal]:
    need("tmux")
    opened = open_terminal(tmp_path, ["bash", "--norc", "--noprofile", "-i"], shell.environment)
    try:
        opened.type("PS1='$ '", "Enter")
        yield opened
    finally:
        opened.close()


def test_a_person_is_asked_for_what_is_missing_and_secrets_are_not_seen(shell: Shell, terminal: Terminal) -> None:
    terminal.type(f"clear; {COMMAND} profile set prod", "Enter")
    terminal.wait_for("base_url (https://…):")
    terminal.type("events.example.com", "Enter")
    terminal.wait_for("svcctl: that cannot be used: it must begin with https:// or http://")
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


def test_only_what_is_missing_is_asked_for(shell: Shell, terminal: Terminal) -> None:
    terminal.type(f"clear; {COMMAND} profile set prod base_url=https://events.example.com auth=jwt", "Enter")
    screen = terminal.wait_for("token (token, for auth token or jwt) (not shown):")
    assert "base_url (" not in screen
    terminal.type("t", "Enter")
    terminal.wait_for("make it the default with")
    terminal.type(f"clear; {COMMAND} profile set prod timeout=5; echo $((6 * 7)) done", "Enter")
    assert "not shown" not in terminal.wait_for("42 done")
    assert stored(shell) == {"base_url": "https://events.example.com", "auth": "jwt", "token": "t", "timeout": 5.0}


def test_a_terminal_is_as_it_was_after_a_secret_was_interrupted(shell: Shell, terminal: Terminal) -> None:
    terminal.type(f"clear; {COMMAND} profile set prod base_url=https://events.example.com api_key=k", "Enter")
    terminal.wait_for("api_secret (API secret) (not shown):")
    terminal.type("C-c")
    terminal.wait_for("svcctl: interrupted")
    # readline sets the terminal anew for its own line, so a program looks at what svcctl left.
    terminal.type(f"clear; {COMMAND} profile set prod base_url=https://events.example.com api_key=k; stty -a", "Enter")
    terminal.wait_for("api_secret (API secret) (not shown):")
    terminal.type("C-c")
    screen = terminal.wait_for("svcctl: interrupted", "icanon")
    assert {"icanon", "echo", "isig"} <= set(screen.split())
    assert not (shell.home / ".config").exists()
