"""The messages of `svcctl profile` on stderr, each as a whole once, where prod is a profile."""

from __future__ import annotations

import pytest
from support.shells import Shell

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
        "hint: --config names this file; 'svcctl profile set NAME' creates it\n",
    ),
    (
        "profile set prod base_url=http://events.example.com",
        "svcctl: error: base_url cannot be used: 'http://events.example.com' would send secrets unencrypted\n"
        "hint: use https; http is only for this machine\n",
    ),
    (
        "-p prod service reset --yes",
        "svcctl: error: 'svcctl service' controls the service on this machine, not that of profile prod\n"
        "hint: leave out --profile\n",
    ),
]


@pytest.mark.parametrize(("command", "said"), WORDS)
def test_a_command_prints_its_whole_message(shell: Shell, command: str, said: str) -> None:
    shell("profile", "set", "prod", "base_url=https://events.example.com")
    done = shell(*command.split())
    assert done.stderr.replace(str(shell.home), "<home>") == said
    assert done.returncode == (2 if said.startswith("svcctl: error:") else 0)
