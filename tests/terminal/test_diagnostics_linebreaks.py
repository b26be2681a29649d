"""Messages on a terminal: where their lines end."""

import pytest

from svcctl.terminal.diagnostics import line_broken


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("what fits is one line", ["what fits is one line"]),
        (
            "a message that is longer ends its lines at spaces",
            ["a message that is longer", "  ends its lines at spaces"],
        ),
        ("file 'a name with blanks' is no directory", ["file 'a name with blanks'", "  is no directory"]),
        (
            "see it with 'svcctl export status out.csv', or again",
            ["see it with", "  'svcctl export status out.csv',", "  or again"],
        ),
        (
            "add to ~/.bashrc: source '/home/ann/svcctl'",
            ["add to ~/.bashrc: source", "  '/home/ann/svcctl'"],
        ),
        ("漢漢漢漢漢漢 漢漢漢漢漢漢漢", ["漢漢漢漢漢漢", "  漢漢漢漢漢漢漢"]),
        ("it isn't a quote, and it doesn't stay in one", ["it isn't a quote, and it", "  doesn't stay in one"]),
        ("Delete all of the events and the state? [y/N]: ", ["Delete all of the events", "  and the state? [y/N]: "]),
    ],
)
def test_lines_end_at_spaces_and_not_inside_commands_or_quotes_that_fit(text: str, lines: list[str]) -> None:
    assert line_broken(text, 32, 6).split("\n") == lines


@pytest.mark.parametrize(
    ("before", "command", "after", "lines"),
    [
        (
            "save it: ",
            "svcctl query 'from auth.all' --from 1h",
            "; or wait for it",
            ["save it:", "  svcctl query 'from auth.all' --from 1h;", "  or wait for it"],
        ),
        (
            "",
            "sed 's/ +/ /; s/a/b/' FILE | svcctl service load - -t a.b",
            "",
            ["", "  sed 's/ +/ /; s/a/b/' FILE | svcctl service load - -t a.b"],
        ),
        ("put names before it: ", "(echo a,b; cat FILE)", "", ["put names before it:", "  (echo a,b; cat FILE)"]),
    ],
)
def test_no_line_ends_inside_a_command(before: str, command: str, after: str, lines: list[str]) -> None:
    assert line_broken(before + command + after, 32, 6, [command]).split("\n") == lines
