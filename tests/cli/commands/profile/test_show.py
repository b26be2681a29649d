"""`svcctl profile show`: the fields of a profile and where each comes from."""

from __future__ import annotations

from support.shells import Shell


def test_a_profile_is_shown_with_where_its_name_comes_from(shell: Shell) -> None:
    assert shell("profile", "set", "prod", "base_url=https://events.example.com").returncode == 0
    for words, source in (
        (["prod"], "argument"),
        (["-p", "prod"], "flag --profile"),
        (["-p", "x", "prod"], "argument"),
    ):
        shown = shell("profile", "show", *words, "-f", "csv").stdout
        assert shown.splitlines()[1:3] == [
            f"profile,prod,{source}",
            "base_url,https://events.example.com,profile prod",
        ]


def test_a_note_says_that_another_profile_has_a_key_twice(shell: Shell) -> None:
    assert shell("profile", "set", "a", "base_url=https://h.example").returncode == 0
    path = shell.home / ".config" / "svcctl" / "config.yaml"
    path.write_text(path.read_text() + "  b:\n    timeout: 5\n    timeout: 6\n")
    problem = f"profiles file {path}, line 6: key 'profiles.b.timeout' appears twice, first in line 5\n"
    shown = shell("-p", "a", "profile", "show")
    assert (shown.returncode, shown.stderr) == (0, f"svcctl: {problem}")
    refused = shell("-p", "b", "profile", "show")
    assert (refused.returncode, refused.stderr) == (2, f"svcctl: error: {problem}hint: keep one of them\n")
