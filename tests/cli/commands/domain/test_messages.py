"""The messages of `svcctl domain` on stderr, each as a whole, with their exit codes."""

from __future__ import annotations

import pytest
from support.reseller import Reseller

REFUSALS = [
    (("show", "nemo"), 4, "svcctl: error: no domain nemo@demo (code 106)\nhint: domains are: acme, waiting\n"),
    (
        ("show", "nemo@x"),
        4,
        "svcctl: error: no domain nemo@x (code 106)\nhint: domains are: acme@demo, waiting@demo\n",
    ),
    (("disable", "acmee"), 4, "svcctl: error: no domain acmee@demo (code 106)\nhint: did you mean 'acme'?\n"),
    (("show", "acmee"), 4, "svcctl: error: no domain acmee@demo (code 106)\nhint: did you mean 'acme'?\n"),
    (
        ("enable", "acme"),
        5,
        "svcctl: error: domain acme@demo is already enabled (code 117)\nhint: --if-needed allows that\n",
    ),
    (("enable", "waiting"), 5, "svcctl: error: domain waiting@demo is pending and cannot be enabled (code 118)\n"),
    (
        ("create", "acme", "--plan", "basic"),
        5,
        "svcctl: error: domain acme@demo already exists (code 122)\n"
        "hint: --if-needed allows that, if the domain has the same plan\n",
    ),
    (
        ("create", "b", "--plan", "x"),
        1,
        "svcctl: error: reseller 'demo' has no plan 'x'; its plans are basic, full, trial (code 123)\n",
    ),
    (
        ("create", "b", "--plan", "trial", "--time", "1"),
        1,
        "svcctl: error: plan 'trial' does not accept time (code 124)\n",
    ),
    (
        ("create", "a" * 60, "--plan", "basic"),
        1,
        f"svcctl: error: domain name '{'a' * 60}@demo' has 65 characters, more than 64 (code 121)\n",
    ),
]


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(("arguments", "code", "stderr"), REFUSALS)
def test_a_refusal_is_one_line_and_an_exit_code(
    reseller: Reseller, arguments: tuple[str, ...], code: int, stderr: str
) -> None:
    done = reseller("domain", *arguments)
    assert (done.code, done.stdout, done.stderr) == (code, "", stderr)


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(
    ("arguments", "code", "stderr"),
    [
        (("enable", "acme"), 0, "svcctl: nothing to do: domain acme@demo is already enabled\n"),
        (("rm", "nemo"), 0, "svcctl: nothing to do: no domain nemo@demo\n"),
        (("create", "acme", "--plan", "basic"), 0, "svcctl: nothing to do: domain acme@demo already exists\n"),
        (
            ("create", "acme", "--plan", "full"),
            5,
            "svcctl: error: domain acme@demo already exists with plan basic, not full\n",
        ),
        (
            ("create", "acme", "--plan", "basic", "--time", "3"),
            5,
            "svcctl: error: domain acme@demo already exists with time 30.0, not 3.0\n",
        ),
        (
            ("create", "b", "--plan", "x"),
            1,
            "svcctl: error: reseller 'demo' has no plan 'x'; its plans are basic, full, trial (code 123)\n",
        ),
        (("enable", "nemo"), 4, "svcctl: error: no domain nemo@demo (code 106)\nhint: domains are: acme, waiting\n"),
        (("enable", "waiting"), 5, "svcctl: error: domain waiting@demo is pending and cannot be enabled (code 118)\n"),
    ],
)
def test_if_needed_allows_only_a_state_that_is_there_already(
    reseller: Reseller, arguments: tuple[str, ...], code: int, stderr: str
) -> None:
    done = reseller("domain", *arguments, "--if-needed")
    assert (done.code, done.stderr) == (code, stderr)
