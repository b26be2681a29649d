"""Hints that name commands, from the reason and the data of an error."""

from __future__ import annotations

from typing import Any

import pytest

from svcctl.cli.hints import HINTS, hint_of
from svcctl.errors import SvcctlError, commands_in

DATA = {
    "similar": False,
    "command": None,
    "service_log": "/l",
    "domain": "acme@demo",
    "formats": ["csv", "log"],
    "format": "csv",
    "columns": ["a", "b"],
    "kind": "policy",
    "role": "OWNER",
    "unpacker": "lzip -dc",
    "variable": "host",
    "job": "3f2a",
    "setting": "SVCCTL_RUNNING_JOBS",
    "column": "clock",
    "max_rows": 3,
    "member": "Records",
    "profile": "prod",
    "field": "api_key",
    "type": "float8",
    "parameters": {"topic": "web"},
    "code": "q",
}
EPOCHS = (
    "read them as epochs of any year with --time-format epoch, epoch_ms, epoch_us or epoch_ns; or name another column "
    "with --time-field"
)


def hint(reason: str, **data: Any) -> str | None:
    return hint_of(SvcctlError("no", reason=reason, data=data))


@pytest.mark.parametrize("reason", HINTS)
def test_every_row_makes_a_hint_from_data(reason: str) -> None:
    made = hint(reason, **DATA)
    assert made is not None
    assert "{" not in made.replace("{…}", "")
    # A terminal shows a command in a line of its own, which people copy.
    assert {made.partition(command)[2][:1] for command in commands_in(made)} <= {"", " "}


@pytest.mark.parametrize(
    ("reason", "data", "said", "commands"),
    [
        ("events-unread", {"job": "3f2a"}, "to remove it: svcctl job rm 3f2a", ["svcctl job rm 3f2a"]),
        ("events-unread", {"job": "x; rm -rf ~"}, "to remove it: svcctl job rm 'x; rm -rf ~'", None),
        ("events-unread", {"job": "{job}"}, "to remove it: svcctl job rm '{job}'", None),
        ("events-unread", {"job": None, "more": 1}, "to remove it: svcctl job rm None", None),
        ("service-not-running", {"command": None}, "start it with 'svcctl service start'", []),
        (
            "service-not-running",
            {"command": "svcctl service serve --listen :1"},
            "start it with: svcctl service serve --listen :1 (or in the background with 'svcctl service start')",
            ["svcctl service serve --listen :1"],
        ),
        ("query-sorts", {"sort": "n:desc", "top": "3"}, "sort the printed rows with --sort n:desc --top 3", []),
        (
            "setting-missing",
            {"profile": "p", "field": "api_key", "variable": "SVCCTL_API_KEY"},
            "set it with 'svcctl profile set p api_key=…' or the environment variable SVCCTL_API_KEY",
            [],
        ),
        (
            "secret-file-unread",
            {"profile": "p", "field": "token_file"},
            "write the secret to it, or name its file with 'svcctl profile set p token_file=PATH'",
            [],
        ),
        ("query-sorts", {"sort": "n"}, "sort the printed rows with --sort n", []),
        ("unknown-query", {"similar": False}, "save one with 'svcctl service queries set'", []),
        ("query-sorts", {}, "use --sort, as --sort n:desc", []),
        ("escaped-quote", {}, 'double such quotes: sed \'s/\\\\"/""/g\' FILE | svcctl service load - -t …', None),
        ("packed-file", {"unpacker": "lzip -dc"}, "unpack it: lzip -dc FILE | svcctl service load - -t …", None),
        (
            "no-column-of-days",
            {"column": "a b"},
            "add a column of days, and name both with --time-field 'DATE,a b'",
            [],
        ),
        (
            "events-in-array",
            {"member": "a.b"},
            "if these are the events, load them with --events-in a.b; if not, name the field of the time with "
            "--time-field, or add such a field",
            [],
        ),
        (
            "no-column-of-times",
            {"columns": ["a", "b"], "format": "csv"},
            "name it with --time-field: a, b; if its format is not csv, name it with --format; if no column has "
            "times, add one",
            [],
        ),
        (
            "no-column-of-times",
            {"columns": ["a"], "format": None},
            "name it with --time-field: a; if no column has times, add one",
            [],
        ),
        ("unclear-numbers", {"spelled": "%Y%m%d"}, "read them as dates with --time-format %Y%m%d", []),
        ("unclear-numbers", {"clock": "ts"}, f"name the column of days, too: --time-field DATE,ts; or {EPOCHS}", []),
        (
            "unclear-numbers",
            {"unit": "spreadsheet"},
            f"read them as such days with --time-format spreadsheet; or {EPOCHS}",
            [],
        ),
        ("unclear-numbers", {}, EPOCHS, []),
        ("unknown-time-code", {"code": "s"}, "read epoch seconds with --time-format epoch", []),
        (
            "unknown-time-code",
            {"code": "q"},
            "use the codes in 'svcctl help loading', as in '%d/%m/%Y %H:%M:%S'",
            [],
        ),
        ("record-separators", {}, "remove them: tr -d '\\036' <FILE | svcctl service load - -t …", None),
        ("anything", {"service_log": "/l"}, "its log has the reason: /l", []),
    ],
)
def test_a_hint_has_the_data_and_knows_its_commands(
    reason: str, data: dict[str, Any], said: str, commands: list[str] | None
) -> None:
    made = hint_of(SvcctlError("no", reason=reason, data=data))
    assert made == said
    if commands is not None:
        assert list(made.commands) == commands


@pytest.mark.parametrize(
    ("reason", "data"),
    [
        ("anything", {}),
        ("unknown-query", {"similar": True}),
        ("events-unread", {"job": "a\nb"}),
        ("events-unread", {"job": "\u202ea"}),
        ("failed", {"job": "x"}),
        ("events-unread", {}),
        ("packed-file", {"packer": "x"}),
    ],
)
def test_without_a_row_or_with_other_data_there_is_no_hint(reason: str, data: dict[str, Any]) -> None:
    assert hint(reason, **data) is None


def test_a_log_is_named_only_without_another_hint() -> None:
    assert hint_of(SvcctlError("no", hint="do this", data={"service_log": "/l"})) is None
