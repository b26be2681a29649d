"""`svcctl profile set`: fields from a command line, an environment, a file, and a person."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
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


def test_an_environment_that_says_nothing_is_a_mistake(shell: Shell) -> None:
    done = shell("profile", "set", "prod", "--from-env")
    assert (done.returncode, "SVCCTL_BASE_URL" in done.stderr) == (2, True)


def test_a_profile_is_shown_with_where_its_name_comes_from(shell: Shell) -> None:
    assert shell("profile", "set", "prod", "base_url=https://events.example.com").returncode == 0
    for given, source in (
        (["prod"], "argument"),
        (["-p", "prod"], "flag --profile"),
        (["-p", "x", "prod"], "argument"),
    ):
        shown = shell("profile", "show", *given, "-f", "csv").stdout
        assert shown.splitlines()[1:3] == [
            f"profile,prod,{source}",
            "base_url,https://events.example.com,profile prod",
        ]


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
        ("", "f has no fields of a profile\nhint: write YAML, JSON or NAME=VALUE lines"),
        ("- a\n- b\n", "f has no fields of a profile\nhint: write YAML, JSON or NAME=VALUE lines"),
        ("{", "f, line 1: not YAML: expected the node content, but found '<stream end>' (column 2)"),
        (
            "SVCCTL_API_KEY = abc\n",
            "f, line 1: SVCCTL_API_KEY: there are blanks around the =\n"
            "hint: write NAME=VALUE without blanks, or NAME='VALUE'",
        ),
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


def test_values_of_a_file_are_the_texts_that_are_written(shell: Shell) -> None:
    (shell.home / "f.yaml").write_text("base_url: https://h.example\napi_key: 0123456701234567\ntime_zone: +2\n")
    (shell.home / "f.env").write_text("SVCCTL_API_KEY=abc # key of ann\nSVCCTL_API_SECRET='s # t'\n")
    assert shell("profile", "set", "no", "--from-file", "f.yaml").returncode == 0
    rows = shell("-p", "no", "profile", "show", "-f", "csv").stdout.splitlines()
    assert {"api_key,0123456701234567,profile no", "time_zone,+2,profile no"} <= set(rows)
    assert shell("profile", "set", "no", "--from-file", "f.env").returncode == 0
    assert stored(shell, "no") == {
        "base_url": "https://h.example",
        "api_key": "abc",
        "time_zone": "+2",
        "api_secret": "s # t",
    }


def test_a_note_says_that_another_profile_has_a_key_twice(shell: Shell) -> None:
    assert shell("profile", "set", "a", "base_url=https://h.example").returncode == 0
    path = shell.home / ".config" / "svcctl" / "config.yaml"
    path.write_text(path.read_text() + "  b:\n    timeout: 5\n    timeout: 6\n")
    problem = f"profiles file {path}, line 6: key 'profiles.b.timeout' appears twice, first in line 5\n"
    shown = shell("-p", "a", "profile", "show")
    assert (shown.returncode, shown.stderr) == (0, f"svcctl: {problem}")
    refused = shell("-p", "b", "profile", "show")
    assert (refused.returncode, refused.stderr) == (2, f"svcctl: error: {problem}hint: keep one of them\n")


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


def test_without_a_terminal_nobody_is_asked(shell: Shell) -> None:
    done = shell("profile", "set", "prod")
    assert (done.returncode, "FIELD=VALUE" in done.stderr) == (2, True)


def test_a_list_marks_the_profile_in_use_and_says_how_each_authorizes(shell: Shell) -> None:
    shell("profile", "set", "prod", "base_url=https://events.example.com", "token_file=t")
    shell("profile", "use", "prod")
    assert shell("profile", "list").stdout == (
        "name,used,auth,base_url\n"
        "prod,true,token,https://events.example.com\n"
        "local,false,signature,\n"
        "local-reseller,false,signature,\n"
    )
    assert shell("profile", "list", "-f", "table").stdout.split("\n")[2:4] == [
        "prod            *     token      https://events.example.com",
        "local                 signature  -",
    ]


def test_a_profiles_file_that_is_not_there_stops_only_what_needs_a_profile(shell: Shell) -> None:
    missing = str(shell.home / "none.yaml")
    listed = shell("profile", "list", SVCCTL_CONFIG=missing)
    note = f"svcctl: profiles file {missing} (SVCCTL_CONFIG) does not exist\n"
    assert (listed.returncode, listed.stdout.split("\n")[1]) == (0, "local,true,signature,")
    assert listed.stderr.startswith(note)
    (shell.home / "roles.yaml").write_text("{name: Watch, policies: [Search]}\n")
    linted = shell("role", "lint", "roles.yaml", SVCCTL_CONFIG=missing)
    assert (linted.returncode, "does not exist" in linted.stderr) == (0, True)
    asked = shell("--config", missing, "job", "list")
    assert (asked.returncode, missing in asked.stderr, "--config" in asked.stderr) == (2, True, True)


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


def test_service_refuses_the_profile_of_another_service(shell: Shell) -> None:
    shell("profile", "set", "prod", "base_url=https://events.example.com")
    done = shell("-p", "prod", "service", "reset", "--yes")
    assert (done.returncode, "--profile" in done.stderr) == (2, True)
    done = shell("-p", "prod", "service", "load", "a.csv", "-t", "a.b")
    assert (done.returncode, "svcctl service load FILE -t TABLE --tables URI" in done.stderr) == (2, True)


# A person


@pytest.fixture
def terminal(shell: Shell, tmp_path: Path) -> Iterator[Terminal]:
    opened = open_shell("bash", tmp_path, shell.environment)
    yield opened
    opened.close()


def test_a_person_is_asked_for_what_is_missing_and_secrets_are_not_seen(shell: Shell, terminal: Terminal) -> None:
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


def test_only_what_is_missing_is_asked_for(shell: Shell, terminal: Terminal) -> None:
    terminal.type(f"clear; {COMMAND} profile set prod base_url=https://events.example.com auth=jwt", "Enter")
    screen = terminal.wait_for("token (bearer token or JWT) (not shown):")
    assert "base_url (" not in screen
    terminal.type("t", "Enter")
    terminal.wait_for("make it the default with")
    terminal.type(f"clear; {COMMAND} profile set prod timeout=5; echo $((6 * 7)) done", "Enter")
    assert "not shown" not in terminal.wait_for("42 done")
    assert stored(shell) == {"base_url": "https://events.example.com", "auth": "jwt", "token": "t", "timeout": "5"}


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


# What the commands say on stderr where prod is a profile: each text is here once, the tests above state what happens.

WORDS: list[tuple[str, str]] = [
    (
        "profile set prod --from-env",
        "svcctl: error: none of the SVCCTL_* variables is set\n"
        "hint: set at least one of SVCCTL_BASE_URL, SVCCTL_AUTH, SVCCTL_API_KEY, SVCCTL_API_SECRET, SVCCTL_TOKEN, "
        "SVCCTL_TIMEOUT, SVCCTL_RETRIES, SVCCTL_READ_ONLY, "
        "SVCCTL_MAX_ROWS, SVCCTL_FORMAT\n",
    ),
    ("profile set prod ca_bundle=no/ca.pem", "svcctl: ca_bundle <home>/no/ca.pem does not exist yet\n"),
    ("profile set prod token_file=~/none", "svcctl: token_file ~/none does not exist yet\n"),
    (
        "profile set other",
        "svcctl: error: nothing to set\nhint: give fields as FIELD=VALUE, for example base_url=https://…\n",
    ),
    (
        "--config none.yaml job list",
        "svcctl: error: profiles file none.yaml does not exist\n"
        "hint: --config names it; 'svcctl profile set NAME' creates it\n",
    ),
    (
        "profile set prod base_url=http://events.example.com",
        "svcctl: error: base_url cannot be used: 'http://events.example.com' would send secrets unencrypted\n"
        "hint: use https; http is only for this machine\n",
    ),
    (
        "-p prod service reset --yes",
        "svcctl: error: 'svcctl service' is about the service on this machine, and not about profile prod\n"
        "hint: leave out --profile\n",
    ),
]


@pytest.mark.parametrize(("command", "said"), WORDS)
def test_what_a_command_of_profiles_says(shell: Shell, command: str, said: str) -> None:
    shell("profile", "set", "prod", "base_url=https://events.example.com")
    assert shell(*command.split()).stderr.replace(str(shell.home), "<home>") == said


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
        (("api_secret=-",), "hunter2\0\n", "api_secret (standard input) has a control character in it"),
        (("api_secret=-",), "hunter2\udcff\n", "api_secret (standard input) is not UTF-8"),
        (("api_secret=-",), " \n", "standard input holds no api_secret"),
        (("token=-",), "hünter2", "token (standard input) is not printable ASCII, so it cannot be sent in a header"),
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
